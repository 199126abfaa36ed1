/* SPDX-License-Identifier: Apache-2.0 */
/* Each workload against three real Regions, in both modes, and what the checkers make of what its
 * clients saw: a Region that does what it should must never be blamed. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "chaos/check/append.h"
#include "chaos/check/chain.h"
#include "chaos/check/converge.h"
#include "chaos/check/counter.h"
#include "chaos/check/register.h"
#include "chaos/check/rpo.h"
#include "chaos/check/set.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "tests/lib/drive/regions.h"

enum { OPERATIONS = 900, ALL = 7 };
static const uint64_t PATIENCE_NS = 60ull * 1000000000u;

static void expect_ok(const struct regions *regions, struct verdict *verdict)
{
    struct buf text;
    buf_init(&text);
    buf_append_bytes(&text, buf_view(&verdict->text));
    for (uint32_t i = 0; i < verdict->op_count; i++) {
        buf_append_text(&text, "\n  ");
        history_print(&regions->history, verdict->ops[i], NULL, 0, &text);
    }
    if (verdict->kind != VERDICT_OK)
        fail_msg("%.*s", (int)text.len, (const char *)text.at);
    buf_deinit(&text);
    verdict_deinit(verdict);
}

static uint32_t count_ops(const struct regions *regions, enum history_kind kind, uint8_t outcome)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < regions->history.count; i++) {
        const struct history_op *op = &regions->history.ops[i];
        count += op->kind == kind && op->outcome == outcome && !op->final;
    }
    return count;
}

/* What every history must be like, and what it must hold. */
static void expect_history(const struct regions *regions)
{
    uint32_t ok = 0, of[REGIONS] = {0};
    for (uint32_t i = 0; i < regions->history.count; i++) {
        const struct history_op *op = &regions->history.ops[i];
        const char *fault = history_op_fault(op);
        if (fault)
            fail_msg("operation %u: %s", i, fault);
        ok += op->outcome == HISTORY_OK;
        of[op->region]++;
    }
    assert_true(ok > OPERATIONS / 3); /* some may lose a race, none may meet a broken server */
    for (int i = 0; i < REGIONS; i++)
        assert_true(of[i] > 0);
}

/* Everything equal in all Regions, in the end: scanned until it is. */
static void expect_convergence(struct regions *regions)
{
    for (;;) {
        struct verdict verdict;
        struct converge_options options = {0};
        drive_scan(regions->drive, ALL, PATIENCE_NS, regions_on_done, regions);
        regions_await(regions);
        options.scans = drive_scans(regions->drive, &options.scan_count);
        assert_int_equal(options.scan_count, REGIONS);
        check_converge(&regions->history, &options, &verdict);
        bool equal = verdict_get(&verdict, "different") == 0;
        if (equal)
            expect_ok(regions, &verdict);
        else
            verdict_deinit(&verdict);
        if (equal)
            break;
    }
}

static void run(struct regions *regions, const char *mode, const char *workload)
{
    regions_drive(regions, mode, workload);
    drive_prepare(regions->drive, PATIENCE_NS, regions_on_done, regions);
    assert_false(regions->done);
    regions_await(regions);
    regions_work(regions, OPERATIONS);
    expect_convergence(regions);
    drive_look(regions->drive, ALL, PATIENCE_NS, regions_on_done, regions);
    regions_await(regions);
    expect_history(regions);
}

static void expect_chain(const struct regions *regions, bool eventual)
{
    struct verdict verdict;
    check_chain(&regions->history, &(struct chain_options){.eventual = eventual}, NULL, &verdict);
    assert_true(verdict_get(&verdict, "operations") > 0);
    expect_ok(regions, &verdict);
}

static void expect_nothing_lost(const struct regions *regions, bool strong)
{
    struct verdict verdict;
    check_rpo(&regions->history, &(struct rpo_options){.strong = strong}, NULL, &verdict);
    assert_true(verdict_get(&verdict, "acked") > 0);
    expect_ok(regions, &verdict);
}

static void test_swap_register(void **state)
{
    run(*state, "strong", "{kind: swap-register, keys: 8}");
    expect_chain(*state, false);
    expect_nothing_lost(*state, true);
}

static void test_swap_register_deletes(void **state)
{
    run(*state, "eventual",
        "{kind: swap-register, keys: 8, mix: {write: 0.5, read_eventual: 0.4, delete: 0.1}}");
    assert_true(count_ops(*state, HISTORY_DELETE, HISTORY_OK) > 0);
    expect_chain(*state, true);
}

static void test_cas_register(void **state)
{
    struct regions *regions = *state;
    struct verdict verdict;
    run(regions, "strong", "{kind: cas-register, keys: 3, clients_per_region: 2}");
    assert_true(count_ops(regions, HISTORY_PUT_IF, HISTORY_OK) > 0);
    assert_true(count_ops(regions, HISTORY_PUT_IF, HISTORY_FAILED) > 0);
    uint32_t keys = 0;
    for (uint32_t i = 0; i < regions->history.count; i++)
        keys = regions->history.ops[i].key > keys ? regions->history.ops[i].key : keys;
    assert_true(keys > 3); /* items were given up for fresh ones */
    check_register(&regions->history, &(struct register_options){0}, &verdict);
    assert_true(verdict_get(&verdict, "operations") > OPERATIONS / 3);
    expect_ok(regions, &verdict);
}

static void test_counter(void **state)
{
    struct regions *regions = *state;
    struct verdict verdict;
    run(regions, "strong", "{kind: counter, keys: 4}");
    check_counter(&regions->history, &(struct counter_options){0}, &verdict);
    assert_int_equal(verdict_get(&verdict, "acked"), count_ops(regions, HISTORY_ADD, HISTORY_OK));
    expect_ok(regions, &verdict);
}

static void test_counter_eventual(void **state)
{
    struct regions *regions = *state;
    struct verdict verdict;
    run(regions, "eventual", "{kind: counter, keys: 4}");
    check_counter(&regions->history, &(struct counter_options){.eventual = true}, &verdict);
    assert_true(verdict_get(&verdict, "lost") > 0); /* sums that crossed */
    expect_ok(regions, &verdict);
}

static void test_append(void **state)
{
    struct regions *regions = *state;
    struct verdict verdict;
    run(regions, "strong", "{kind: append, keys: 4}");
    check_append(&regions->history, &(struct append_options){0}, &verdict);
    assert_int_equal(verdict_get(&verdict, "appended"),
                     count_ops(regions, HISTORY_APPEND, HISTORY_OK));
    expect_ok(regions, &verdict);
}

static void expect_set(const struct regions *regions, bool strong)
{
    struct verdict verdict;
    check_set(&regions->history, &(struct set_options){.linearizable = strong}, &verdict);
    assert_int_equal(verdict_get(&verdict, "stable"),
                     count_ops(regions, HISTORY_INSERT, HISTORY_OK));
    expect_ok(regions, &verdict);
}

static void test_set(void **state)
{
    run(*state, "strong", "{kind: set, keys: 2}");
    expect_set(*state, true);
}

static void test_set_eventual(void **state)
{
    run(*state, "eventual", "{kind: set, keys: 2}");
    expect_set(*state, false);
}

static void test_lww_conflict(void **state)
{
    struct verdict verdict;
    run(*state, "eventual", "{kind: lww-conflict, keys: 3}");
    expect_nothing_lost(*state, false);
    struct regions *regions = *state;
    check_chain(&regions->history, &(struct chain_options){.eventual = true}, NULL, &verdict);
    assert_true(verdict_get(&verdict, "forks") > 0);
    expect_ok(regions, &verdict);
}

static void test_ycsb(void **state)
{
    run(*state, "eventual", "{kind: ycsb-a, keys: 50, rate: 2000, item_size: 1KiB}");
    expect_chain(*state, true);
}

static void test_ycsb_read_modify_write(void **state)
{
    run(*state, "strong", "{kind: ycsb-f, keys: 50}");
    assert_true(count_ops(*state, HISTORY_PUT, HISTORY_OK) > 0);
    expect_chain(*state, false);
}

/* Open loop: what is due is due on a grid of the rate's period, and none of it is sent twice. */
static void test_open_loop(void **state)
{
    enum { RATE = 600 };
    struct regions *regions = *state;
    run(regions, "eventual", "{kind: ycsb-b, keys: 50, rate: 600, open_loop: true}");
    uint64_t first = UINT64_MAX;
    uint8_t *taken = xcalloc(1, 100000);
    for (uint32_t i = 0; i < regions->history.count; i++)
        if (!regions->history.ops[i].final && regions->history.ops[i].intended_ns < first)
            first = regions->history.ops[i].intended_ns;
    for (uint32_t i = 0; i < regions->history.count; i++) {
        const struct history_op *op = &regions->history.ops[i];
        if (op->final)
            continue;
        uint64_t place = (op->intended_ns - first + 1000) * RATE / 1000000000u;
        uint64_t exact = first + place * 1000000000u / RATE;
        assert_true(op->intended_ns + 1000 > exact);
        assert_true(op->intended_ns < exact + 1000);
        assert_true(place < 100000);
        assert_int_equal(taken[place]++, 0);
    }
    free(taken);
}

/* A Region that goes away and comes back, in the middle of the load. */
static void test_region_goes_away(void **state)
{
    struct regions *regions = *state;
    regions_drive(regions, "strong",
                  "{kind: swap-register, keys: 8, rate: 1000, open_loop: true, timeout: 500ms}");
    drive_prepare(regions->drive, PATIENCE_NS, regions_on_done, regions);
    regions_await(regions);
    drive_phase(regions->drive, &regions->scenario.phases[0]);
    while (regions->history.count < 500)
        uv_run(&regions->loop.uv, UV_RUN_ONCE);
    region_stop(&regions->at[1]);
    struct drive_figures figures;
    drive_figures(regions->drive, &figures);
    assert_true(figures.region[1].ok > 0);
    assert_true(figures.region[1].p50_ns > 0);
    uint32_t refused = 0;
    for (uint32_t i = regions->history.count; refused < 50;) {
        uv_run(&regions->loop.uv, UV_RUN_ONCE);
        for (; i < regions->history.count; i++)
            refused += regions->history.ops[i].reason == HISTORY_REASON_REFUSED;
    }
    region_start(&regions->at[1]);
    regions_work(regions, 200);
    drive_look(regions->drive, ALL, PATIENCE_NS, regions_on_done, regions);
    regions_await(regions);
    for (uint32_t i = 0; i < regions->history.count; i++)
        assert_null(history_op_fault(&regions->history.ops[i]));
    expect_chain(regions, false);
    expect_nothing_lost(regions, true);
}

/* Tables of somebody else's program are compared as well, whatever is in them. */
static void test_foreign_tables(void **state)
{
    struct regions *regions = *state;
    run(regions, "eventual", "{kind: set, keys: 2}");
    uint32_t count, elements = drive_scans(regions->drive, &count)[0].count;
    assert_true(elements > 100);
    regions_drive(regions, "eventual", "{kind: exec, exec: [/bin/true]}");
    drive_scan(regions->drive, 5, PATIENCE_NS, regions_on_done, regions);
    regions_await(regions);
    const struct converge_scan *scans = drive_scans(regions->drive, &count);
    assert_int_equal(count, 2);
    assert_int_equal(scans[1].region, 2);
    struct verdict verdict;
    const struct converge_options options = {.scans = scans, .scan_count = count};
    check_converge(&regions->history, &options, &verdict);
    assert_int_equal(scans[0].count, elements);
    assert_int_equal(verdict_get(&verdict, "items"), elements);
    assert_int_equal(verdict_get(&verdict, "different"), 0);
    expect_ok(regions, &verdict);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, regions_setup, regions_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_swap_register),
        TEST(test_swap_register_deletes),
        TEST(test_cas_register),
        TEST(test_counter),
        TEST(test_counter_eventual),
        TEST(test_append),
        TEST(test_set),
        TEST(test_set_eventual),
        TEST(test_lww_conflict),
        TEST(test_ycsb),
        TEST(test_ycsb_read_modify_write),
        TEST(test_open_loop),
        TEST(test_region_goes_away),
        TEST(test_foreign_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
