/* SPDX-License-Identifier: Apache-2.0 */
/* A GroupsMessage as it comes from a peer. What is taken is what protobuf's own parser finds; its
 * checksum comes off as it was put on. */

#include <string.h>

#include "conflict/base/check.h"
#include "region/peers_internal.h"
#include "replicator/replicator.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct bytes body, whole;
    struct buf sealed = {0};
    (void)peers_unseal(bytes_make(data, len), &whole);
    buf_append_bytes(&sealed, bytes_make(data, len));
    peers_seal(&sealed);
    check(peers_unseal(buf_view(&sealed), &whole));
    check(bytes_equal(whole, bytes_make(data, len)));
    buf_deinit(&sealed);
    if (!peers_take_groups(bytes_make(data, len), &body))
        return 0;
    Tidemark__Replication__V1__GroupsMessage *message =
        tidemark__replication__v1__groups_message__unpack(NULL, len, data);
    check(message != NULL);
    check(bytes_equal(bytes_make(message->body.data, message->body.len), body));
    tidemark__replication__v1__groups_message__free_unpacked(message, NULL);
    return 0;
}
