/* SPDX-License-Identifier: Apache-2.0 */
/* Histories may come from a file that anyone can write. Whatever passes history_op_fault, no
 * checker may crash on, nor take for ever, nor call wrong without an operation or an item to show.
 */

#include "tests/lib/check/history_make.h"

#include "chaos/check/append.h"
#include "chaos/check/chain.h"
#include "chaos/check/converge.h"
#include "chaos/check/counter.h"
#include "chaos/check/ledgers.h"
#include "chaos/check/register.h"
#include "chaos/check/rpo.h"
#include "chaos/check/rto.h"
#include "chaos/check/set.h"
#include "chaos/check/staleness.h"

enum { OPS = 40, ROUNDS = 4000 };

static uint64_t draw_number(struct rng *rng)
{
    switch (rng_below(rng, 8)) {
    case 0:
        return rng_next(rng);
    case 1:
        return UINT64_MAX;
    default:
        return rng_below(rng, 12);
    }
}

static struct history_op draw_op(struct rng *rng, uint64_t kinds)
{
    struct history_op op = {.table = (uint16_t)rng_below(rng, 2),
                            .key = (uint32_t)rng_below(rng, 3),
                            .region = (uint8_t)rng_below(rng, HISTORY_REGIONS_MAX),
                            .bytes = (uint32_t)rng_next(rng)};
    do
        op.kind = (uint8_t)rng_below(rng, HISTORY_KIND_COUNT);
    while (!(kinds >> op.kind & 1));
    op.outcome = (uint8_t)rng_below(rng, HISTORY_OUTCOME_COUNT);
    op.reason = (uint8_t)rng_below(rng, HISTORY_REASON_COUNT);
    op.saw = (uint8_t)rng_below(rng, HISTORY_SAW_COUNT);
    op.intended_ns = rng_one_in(rng, 4) ? 0 : rng_below(rng, 100);
    op.invoke_ns = op.intended_ns + rng_below(rng, 20);
    op.return_ns = rng_one_in(rng, 10) ? INT64_MAX - 1 : op.invoke_ns + rng_below(rng, 50);
    op.written = rng_one_in(rng, 3) ? 0 : draw_number(rng);
    op.expected = rng_one_in(rng, 2) ? 0 : draw_number(rng);
    op.value = draw_number(rng);
    op.list_count = op.saw == HISTORY_SAW_LIST ? (uint32_t)rng_below(rng, 6) : 0;
    op.strong = rng_one_in(rng, 2);
    op.final = rng_one_in(rng, 4);
    return op;
}

static void judge(const struct history *history, struct verdict *verdict)
{
    assert_true(verdict->text.len > 0);
    assert_true(verdict->op_count <= VERDICT_OPS_MAX);
    for (uint32_t i = 0; i < verdict->op_count; i++)
        assert_true(verdict->ops[i] < history->count);
    verdict_deinit(verdict);
}

static void run_items(const struct history *history, bool flag)
{
    struct verdict verdict;
    check_chain(history, &(struct chain_options){.eventual = flag}, NULL, &verdict);
    judge(history, &verdict);
    check_register(history, &(struct register_options){.steps_max = 2000, .weak_reads = flag},
                   &verdict);
    judge(history, &verdict);
    check_set(history, &(struct set_options){.linearizable = flag}, &verdict);
    judge(history, &verdict);
    check_counter(history, &(struct counter_options){.eventual = flag}, &verdict);
    judge(history, &verdict);
    check_append(history, &(struct append_options){.eventual = flag}, &verdict);
    judge(history, &verdict);
    check_staleness(history, &(struct staleness_options){.strong_fresh = flag}, NULL, &verdict);
    judge(history, &verdict);
    struct rto_options rto = {.fault_ns = 50, .to_ns = flag ? 1000 : INT64_MAX, .window_ns = 500};
    check_rto(history, &rto, NULL, &verdict);
    judge(history, &verdict);
}

static void run_rows(struct rng *rng, const struct history *history)
{
    struct ledgers_row rows[4];
    struct converge_item items[4];
    for (int i = 0; i < 4; i++) {
        rows[i] = (struct ledgers_row){.winner = draw_number(rng),
                                       .loser = draw_number(rng),
                                       .regions = draw_number(rng),
                                       .key = (uint32_t)rng_below(rng, 4),
                                       .table = (uint16_t)rng_below(rng, 3),
                                       .late = rng_one_in(rng, 2)};
        items[i] = (struct converge_item){.digest = rng_below(rng, 2),
                                          .value = draw_number(rng),
                                          .element = rng_one_in(rng, 2) ? 0 : draw_number(rng),
                                          .key = (uint32_t)rng_below(rng, 3)};
    }
    struct verdict verdict;
    struct ledgers_options ledgers = {rows, 4, rng_next(rng)};
    check_ledgers(history, &ledgers, &verdict);
    judge(history, &verdict);
    struct rpo_death deaths[] = {{rng_below(rng, 100), (uint8_t)rng_below(rng, 256)},
                                 {rng_below(rng, 100), (uint8_t)rng_below(rng, 4)}};
    struct rpo_options rpo = {.deaths = deaths,
                              .death_count = (uint32_t)rng_below(rng, 3),
                              .rows = rows,
                              .row_count = 4,
                              .strong = rng_one_in(rng, 2)};
    check_rpo(history, &rpo, NULL, &verdict);
    judge(history, &verdict);
    struct converge_scan scans[] = {{items, 4, 0}, {items, 3, 255}};
    struct converge_options converge = {scans, 2, scans, 1};
    check_converge(history, &converge, &verdict);
    judge(history, &verdict);
}

static void test_anything(void **state)
{
    (void)state;
    static const uint64_t mixes[] = {(1 << HISTORY_KIND_COUNT) - 1,
                                     1 << HISTORY_PUT | 1 << HISTORY_PUT_IF | 1 << HISTORY_READ |
                                         1 << HISTORY_DELETE,
                                     1 << HISTORY_PUT | 1 << HISTORY_READ,
                                     1 << HISTORY_ADD | 1 << HISTORY_READ,
                                     1 << HISTORY_APPEND | 1 << HISTORY_READ,
                                     1 << HISTORY_INSERT | 1 << HISTORY_SCAN};
    struct rng rng;
    rng_init(&rng, 99);
    uint32_t kept = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct history history = new_history();
        uint64_t count = rng_below(&rng, OPS);
        while (history.count < count) {
            struct history_op op = draw_op(&rng, mixes[(unsigned)round % 6]);
            uint64_t values[6];
            for (int j = 0; j < 6; j++)
                values[j] = draw_number(&rng);
            if (!history_op_fault(&op))
                kept += history_append(&history, &op, values) != HISTORY_FULL;
        }
        run_items(&history, rng_one_in(&rng, 2));
        run_rows(&rng, &history);
        for (uint32_t i = 0; i < history.count; i++) {
            struct buf text = {0};
            history_print(&history, i, NULL, rng_next(&rng), &text);
            buf_deinit(&text);
        }
        history_deinit(&history);
    }
    assert_true(kept > ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_anything)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
