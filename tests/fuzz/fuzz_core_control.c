/* SPDX-License-Identifier: Apache-2.0 */
/* What peers send about tables, and what the store says of them: whatever comes out of a decoder
 * goes back in and comes out the same. */

#include <stddef.h>
#include <stdint.h>

#include "conflict/base/check.h"
#include "region/core/control_wire.h"
#include "region/core/keyspace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void again(const struct description *first, bool local)
{
    struct description second;
    struct buf bytes;
    buf_init(&bytes);
    description_encode(first, local, &bytes);
    bool decoded = description_decode(buf_view(&bytes), local, &second);
    check(decoded);
    check(second.member_count == first->member_count);
    check(second.strong.epoch == first->strong.epoch);
    check(second.strong.witness == first->strong.witness);
    check(second.strong.dissolver == first->strong.dissolver);
    check(second.strong.ended == first->strong.ended);
    buf_deinit(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct bytes from = bytes_make(data + 1, size - 1);
    struct description description;
    enum call_kind kind;
    enum call_outcome outcome;
    uint16_t region;
    bool flag = false;
    switch (data[0] % 6) {
    case 0:
    case 1:
        if (description_decode(from, data[0] % 6 == 0, &description))
            again(&description, data[0] % 6 == 0);
        return 0;
    case 2:
        while (descriptions_take(&from, &description, &flag))
            again(&description, false);
        return 0;
    case 3:
        if (call_decode(from, &kind, &region, &description))
            again(&description, false);
        return 0;
    case 4:
        if (answer_decode(from, &outcome, &flag, &description) && flag)
            again(&description, false);
        return 0;
    default: {
        struct partition_meta partition;
        struct region_meta meta;
        struct ledger_counts counts;
        uint64_t clock;
        partition_meta_decode(from, &partition);
        region_meta_decode(from, &meta);
        ledger_counts_decode(from, &counts);
        clock_decode(from, &clock);
        return 0;
    }
    }
}
