/* SPDX-License-Identifier: Apache-2.0 */
#ifndef API_API_H
#define API_API_H

/* DynamoDB's JSON 1.0 protocol: an HTTP request's parts to an operation, a result to a body and
 * headers. Pure: bytes and structs in, bytes out; knows no socket and no table.
 *
 * Order of refusals is AWS's: protocol and target, authentication, JSON, types (Serialization-
 * Exception), member constraints (all at once: "N validation errors detected: ..."), expressions;
 * the table's schema comes later, in op_plan. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/arena.h"
#include "conflict/base/bytes.h"
#include "region/core/op.h"

struct api_request {     /* header values, empty when absent; all borrowed */
    struct bytes method; /* "POST" */
    struct bytes path;   /* with the query */
    struct bytes target; /* X-Amz-Target */
    struct bytes content_type;
    struct bytes authorization;
    struct bytes amz_date;
    struct bytes amz_security_token;
    struct bytes host;
    struct bytes body;
};

struct json_reader;

struct api_config {
    uint16_t region;
    bool strict_credentials;  /* unsigned requests are refused, else served */
    struct json_reader *json; /* json.h; may be NULL */
};

/* Reads a request into a new op in the arena. When op->answered is set the result is complete and
 * the core is not to be asked: so on every failure, with result.error, and for the few operations
 * that depend on no table. Every answer is written by api_respond. Never NULL. */
struct op *api_parse(const struct api_config *config, const struct api_request *request,
                     struct arena *arena);

/* Appends the JSON body of a finished operation. */
void api_respond(const struct op *op, struct buf *body);

/* Of a failure that has no op, such as a body that was too large. */
void api_respond_error(enum api_error error, const char *message, struct buf *body);

struct api_answer {
    int status;
    char request_id[53];          /* 52 characters A-Z0-9, as AWS; NUL */
    char crc32[11];               /* decimal, of the bytes that are sent, compressed or not */
    const char *content_encoding; /* NULL, "gzip" or "deflate" */
};
/* The last step before sending: compresses a body over 4 KB when accept_encoding allows (RFC 9110
 * 12.5.3, q-values included; see cases on which), and fills the headers. `scratch` receives the
 * compressed bytes; *body is replaced by a view of them then. `id` makes the request id unique. */
void api_finish(enum api_error error, struct bytes accept_encoding, uint64_t id_high,
                uint64_t id_low, struct bytes *body, struct buf *scratch, struct api_answer *ret);

/* Credential scope's Region of an Authorization header or of a presigned query; empty when unsigned
 * or unreadable. */
struct bytes sigv4_region(struct bytes authorization, struct bytes path);
/* Region named by a Host: dynamodb.R.amazonaws.com, ACCOUNT.ddb.R.amazonaws.com,
 * R.localhost[:port], dynamodb.R.localhost; empty for others. */
struct bytes host_region(struct bytes host);

/* An account's tables live under one id, whatever the access key. */
#define API_ACCOUNT_ID "000000000000"

#endif
