/* SPDX-License-Identifier: Apache-2.0 */
/* The one byte form of a batch, written by the core and read by whichever store performs it. */

#include "conflict/base/check.h"
#include "region/core/store.h"

static void append_row(struct buf *batch, enum store_operation operation, struct bytes key,
                       struct bytes value)
{
    check(key.len > 0);
    buf_append_u8(batch, (uint8_t)operation);
    buf_append_prefixed(batch, key);
    buf_append_prefixed(batch, value);
}

void store_batch_put(struct buf *batch, struct bytes key, struct bytes value)
{
    append_row(batch, STORE_PUT, key, value);
}

void store_batch_replace(struct buf *batch, struct bytes key, struct bytes value)
{
    append_row(batch, STORE_REPLACE, key, value);
}

void store_batch_delete(struct buf *batch, struct bytes key)
{
    check(key.len > 0);
    buf_append_u8(batch, STORE_DELETE);
    buf_append_prefixed(batch, key);
}

bool store_batch_take(struct bytes *rest, enum store_operation *ret, struct bytes *ret_key,
                      struct bytes *ret_value)
{
    if (rest->len == 0)
        return false;
    uint8_t operation;
    struct bytes key, value = BYTES_NONE;
    /* Batches come from this core only, so anything else is a bug, not an input. */
    bool whole = bytes_take_u8(rest, &operation) && bytes_take_prefixed(rest, &key);
    check(whole);
    check(operation >= STORE_PUT && operation <= STORE_REPLACE);
    if (operation != STORE_DELETE) {
        bool valued = bytes_take_prefixed(rest, &value);
        check(valued);
    }
    *ret = (enum store_operation)operation;
    *ret_key = key;
    *ret_value = value;
    return true;
}
