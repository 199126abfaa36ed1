/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a ledger row, with a right checksum put before them so that the parser is reached.
 * What is accepted must be written back the same. */

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/base/crc32c.h"
#include "conflict/ledger.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ledger_entry entry;
    ledger_decode(bytes_make(data, size), &entry);
    cleanup(buf_deinit) struct buf row = {0};
    buf_append_be32(&row, crc32c(0, bytes_make(data, size)));
    buf_append(&row, data, size);
    if (ledger_decode(buf_view(&row), &entry)) {
        cleanup(buf_deinit) struct buf again = {0};
        ledger_encode(&entry, &again);
        check(bytes_equal(buf_view(&again), buf_view(&row)));
    }
    return 0;
}
