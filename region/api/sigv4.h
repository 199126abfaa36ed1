/* SPDX-License-Identifier: Apache-2.0 */
#ifndef API_SIGV4_H
#define API_SIGV4_H

/* The outside of an AWS Signature Version 4: which parts it has and which Region and service it is
 * scoped to. The signature itself is not computed, as no secret key is known here: any key is as
 * good as any other, and tables belong to the one account whatever the key. */

#include <stdbool.h>

#include "conflict/base/bytes.h"

struct sigv4 { /* all views into the header or the path */
    struct bytes credential;
    struct bytes signed_headers;
    struct bytes signature;
    struct bytes date;     /* of a presigned query; a header has it elsewhere */
    bool credential_whole; /* it has five parts, which follow */
    struct bytes key, scope_date, region, service, terminator;
};

/* Reads an Authorization header that starts with "AWS4-HMAC-SHA256", else a presigned query. False
 * when there is neither: the request is unsigned. Absent parts are empty runs. */
bool sigv4_read(struct bytes authorization, struct bytes path, struct sigv4 *ret);

#endif
