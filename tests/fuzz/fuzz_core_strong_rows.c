/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the rows of a consensus group, as they are and with a right checksum put before them
 * so that the parser is reached. What is accepted is written back the same; what is judged of many
 * rows, a member must be able to start from. */

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/base/crc32c.h"
#include "region/core/strong_rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct bytes sealed(struct buf *row, uint32_t before, struct bytes body)
{
    buf_reset(row);
    buf_append_be32(row, crc32c(before, body));
    buf_append_bytes(row, body);
    return buf_view(row);
}

static uint32_t sum_of_index(uint64_t index)
{
    uint8_t at[8];
    be64_encode(at, index);
    return crc32c(0, bytes_make(at, sizeof(at)));
}

static void again(const struct buf *written, struct bytes row)
{
    check(bytes_equal(buf_view(written), row));
}

static void use_row(uint8_t kind, struct bytes row)
{
    cleanup(buf_deinit) struct buf to = {0};
    struct consensus_hard hard;
    struct consensus_entry entry;
    struct strong_payload payload;
    uint64_t one, two;
    switch (kind) {
    case 0:
        if (strong_hard_decode(row, &hard, &one)) {
            strong_hard_encode(&hard, one, &to);
            again(&to, row);
        }
        return;
    case 1:
        if (strong_base_decode(row, &one, &two)) {
            strong_base_encode(one, two, &to);
            again(&to, row);
        }
        return;
    case 2:
        if (strong_log_decode(9, row, &entry, &one)) {
            strong_log_encode(&entry, one, &to);
            again(&to, row);
        }
        return;
    default:
        if (strong_payload_decode(row, &payload)) {
            strong_payload_encode(&payload, &to);
            again(&to, row);
        }
        return;
    }
}

static void start_member(struct consensus_start start)
{
    const struct consensus_config config = {.epoch = 1,
                                            .heartbeat_ns = 1,
                                            .election_ns = 1,
                                            .election_ns_max = 1,
                                            .request_timeout_ns = 1,
                                            .retry_ns = 1,
                                            .batch_bytes_max = 1,
                                            .inflight_bytes_max = 1,
                                            .log_bytes_max = 1,
                                            .frame_bytes_max = 1 << 20,
                                            .pending_max = 1,
                                            .evaluate_max = 1,
                                            .trim_entries = 1};
    struct consensus *member = consensus_new(&config);
    struct consensus_output out;
    struct consensus_input in = {.kind = CONSENSUS_START, .start = &start};
    consensus_step(member, &in, &out);
    consensus_free(member);
}

/* kind u8 | length-prefixed body, and so on: all of it is one group's. */
static void use_group(struct bytes from)
{
    cleanup(buf_deinit) struct buf row = {0};
    struct strong_found found;
    struct consensus_start start = {.incarnation = 1};
    struct bytes body;
    uint8_t kind;
    uint64_t index = 0;
    strong_found_init(&found);
    while (bytes_take_u8(&from, &kind) && bytes_take_prefixed(&from, &body)) {
        if (kind % 4 == 0)
            strong_found_hard(&found, sealed(&row, 0, body));
        else if (kind % 4 == 1)
            strong_found_base(&found, sealed(&row, 0, body));
        else if ((index += (uint64_t)kind / 4 + 1))
            strong_found_log(&found, index, sealed(&row, sum_of_index(index), body));
    }
    strong_found_judge(&found, &start);
    start_member(start);
    strong_found_deinit(&found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    cleanup(buf_deinit) struct buf row = {0};
    struct bytes body = bytes_make(data + 1, size - 1);
    uint8_t kind = data[0] % 8;
    if (kind >= 4) {
        use_group(body);
        return 0;
    }
    use_row(kind, body);
    if (kind < 3)
        use_row(kind, sealed(&row, kind == 2 ? sum_of_index(9) : 0, body));
    return 0;
}
