/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a record's body and as a log row. What is accepted must be written back the same. */

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes input = bytes_make(data, size);
    struct record record;
    if (record_decode_body(input, &record)) {
        cleanup(buf_deinit) struct buf again = {0};
        record_encode_body(&record, &again);
        check(bytes_equal(buf_view(&again), input));
        cleanup(buf_deinit) struct buf row = {0};
        record_encode_log(bytes_literal("key"), input, &row);
        check(record_decode_log(buf_view(&row), &record, NULL));
    }
    struct bytes body;
    if (record_decode_log(input, &record, &body)) {
        cleanup(buf_deinit) struct buf again = {0};
        record_encode_log(record.key, body, &again);
        check(bytes_equal(buf_view(&again), input));
    }
    return 0;
}
