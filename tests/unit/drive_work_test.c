/* SPDX-License-Identifier: Apache-2.0 */
/* The clients against a server that does as it is told. What is recorded must say no more than a
 * client can know, and lies must be caught. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "chaos/check/chain.h"
#include "chaos/check/rpo.h"
#include "chaos/check/set.h"
#include "conflict/base/check.h"
#include "tests/lib/drive/fake.h"

/* ---- Help ---- */

#define OP_AT(index) (&regions->history.ops[index])

static uint32_t count_reason(const struct regions *regions, enum history_reason reason)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < regions->history.count; i++)
        count += OP_AT(i)->reason == reason;
    return count;
}

static void expect_sound(const struct regions *regions)
{
    for (uint32_t i = 0; i < regions->history.count; i++) {
        const char *fault = history_op_fault(OP_AT(i));
        if (fault)
            fail_msg("operation %u: %s", i, fault);
    }
}

static void look(struct regions *regions)
{
    drive_look(regions->drive, 7, 10000000000u, regions_on_done, regions);
    regions_await(regions);
}

static enum verdict_kind chain_verdict(const struct regions *regions)
{
    struct verdict verdict;
    check_chain(&regions->history, &(struct chain_options){0}, NULL, &verdict);
    enum verdict_kind kind = verdict.kind;
    verdict_deinit(&verdict);
    return kind;
}

/* ---- Honest, and not ---- */

static void test_honest(void **state)
{
    struct regions *regions = *state;
    regions_drive(regions, "strong", "{kind: swap-register, keys: 4}");
    regions_work(regions, 2000);
    look(regions);
    expect_sound(regions);
    assert_int_equal(count_reason(regions, HISTORY_REASON_NONE), regions->history.count);
    assert_int_equal(chain_verdict(regions), VERDICT_OK);
    assert_int_equal(fake.repeated, 0);
}

static void test_stale_reads_are_caught(void **state)
{
    struct regions *regions = *state;
    fake.conduct = STALE_READS;
    regions_drive(regions, "strong", "{kind: swap-register, keys: 4}");
    regions_work(regions, 500);
    assert_int_equal(chain_verdict(regions), VERDICT_WRONG);
}

static void test_lost_writes_are_caught(void **state)
{
    struct regions *regions = *state;
    struct verdict verdict;
    fake.conduct = LOSES;
    regions_drive(regions, "strong", "{kind: swap-register, keys: 4}");
    regions_work(regions, 500);
    look(regions);
    assert_int_equal(chain_verdict(regions), VERDICT_WRONG);
    check_rpo(&regions->history, &(struct rpo_options){.strong = true}, NULL, &verdict);
    assert_int_equal(verdict.kind, VERDICT_WRONG);
    verdict_deinit(&verdict);
}

static enum verdict_kind set_verdict(const struct regions *regions)
{
    struct verdict verdict;
    check_set(&regions->history, &(struct set_options){.linearizable = true}, &verdict);
    enum verdict_kind kind = verdict.kind;
    verdict_deinit(&verdict);
    return kind;
}

static void test_set_of_many_pages(void **state)
{
    struct regions *regions = *state;
    regions_drive(regions, "strong", "{kind: set, keys: 1}");
    regions_work(regions, 300);
    look(regions);
    expect_sound(regions);
    assert_int_equal(regions->history.ops[regions->history.count - 1].list_count,
                     fake.element_count);
    assert_int_equal(set_verdict(regions), VERDICT_OK);
}

static void test_lost_elements_are_caught(void **state)
{
    struct regions *regions = *state;
    fake.conduct = LOSES;
    regions_drive(regions, "strong", "{kind: set, keys: 1}");
    regions_work(regions, 300);
    look(regions);
    assert_int_equal(set_verdict(regions), VERDICT_WRONG);
}

/* ---- No answers ---- */

static void test_timeouts(void **state)
{
    struct regions *regions = *state;
    fake.conduct = SILENT;
    regions_drive(regions, "strong",
                  "{kind: swap-register, keys: 4, clients_per_region: 2, timeout: 60ms}");
    regions_work(regions, 12);
    expect_sound(regions);
    assert_int_equal(count_reason(regions, HISTORY_REASON_TIMEOUT), regions->history.count);
    /* Nobody who does not know what became of a write goes on under that number. */
    for (uint32_t i = 0; i < regions->history.count; i++) {
        assert_true(OP_AT(i)->return_ns - OP_AT(i)->invoke_ns >= 50000000u);
        for (uint32_t k = i + 1; k < regions->history.count; k++)
            assert_false(OP_AT(i)->outcome == HISTORY_INFO && OP_AT(k)->client == OP_AT(i)->client);
    }
}

static void test_hang_ups(void **state)
{
    struct regions *regions = *state;
    fake.conduct = HANGS_UP;
    regions_drive(regions, "strong", "{kind: swap-register, keys: 4, mix: {read_strong: 1}}");
    regions_work(regions, 12);
    expect_sound(regions);
    assert_int_equal(count_reason(regions, HISTORY_REASON_DISCONNECTED), regions->history.count);
}

/* A write on a connection that then breaks is not sent again: it may have been carried out. */
static void test_no_write_twice(void **state)
{
    struct regions *regions = *state;
    fake.conduct = ONE_A_TIME;
    regions_drive(regions, "strong",
                  "{kind: swap-register, keys: 4, clients_per_region: 1, mix: {write: 1}}");
    regions_work(regions, 30);
    expect_sound(regions);
    assert_true(count_reason(regions, HISTORY_REASON_DISCONNECTED) > 0);
    assert_int_equal(fake.repeated, 0);
}

static void test_server_errors(void **state)
{
    struct regions *regions = *state;
    fake.conduct = BREAKS;
    regions_drive(regions, "strong", "{kind: swap-register, keys: 4}");
    regions_work(regions, 24);
    expect_sound(regions);
    assert_int_equal(count_reason(regions, HISTORY_REASON_SERVER), regions->history.count);
}

/* Nobody there: refused at once, and not in a busy loop. */
static void test_refusals(void **state)
{
    struct regions *regions = *state;
    fake_close();
    regions_drive(regions, "strong",
                  "{kind: swap-register, keys: 4, clients_per_region: 2, timeout: 10s}");
    uint64_t began = uv_hrtime();
    regions_work(regions, 30);
    expect_sound(regions);
    assert_int_equal(count_reason(regions, HISTORY_REASON_REFUSED), regions->history.count);
    /* Six clients, four rests of 50 ms each before the thirtieth. */
    assert_true(uv_hrtime() - began >= 199000000u);
    for (uint32_t i = 0; i < regions->history.count; i++)
        assert_true(OP_AT(i)->return_ns - OP_AT(i)->invoke_ns < 10000000000u);
}

static void test_unfinished(void **state)
{
    struct regions *regions = *state;
    fake.conduct = SILENT;
    regions_drive(regions, "strong", "{kind: swap-register, keys: 4, clients_per_region: 3}");
    drive_phase(regions->drive, &regions->scenario.phases[0]);
    while (fake.held_count < 9)
        uv_run(&regions->loop.uv, UV_RUN_ONCE);
    struct drive_figures figures;
    drive_figures(regions->drive, &figures);
    assert_int_equal(figures.under_way, 9);
    drive_free(regions->drive);
    regions->drive = NULL;
    expect_sound(regions);
    assert_int_equal(regions->history.count, 9);
    assert_int_equal(count_reason(regions, HISTORY_REASON_UNFINISHED), 9);
}

/* ---- Pace ---- */

/* While nobody answers, operations stay due when they were due, and are turned away after as long
 * as one may take. */
static void test_open_loop_waits(void **state)
{
    struct regions *regions = *state;
    fake.conduct = SILENT;
    regions_drive(regions, "strong",
                  "{kind: swap-register, keys: 4, clients_per_region: 1, timeout: 100ms, rate: "
                  "1000, open_loop: true}");
    regions_work(regions, 200);
    expect_sound(regions);
    uint32_t refused = 0, waited = 0;
    for (uint32_t i = 0; i < regions->history.count; i++) {
        uint64_t wait = OP_AT(i)->invoke_ns - OP_AT(i)->intended_ns;
        if (OP_AT(i)->reason == HISTORY_REASON_REFUSED) {
            refused++;
            assert_true(wait >= 100000000u);
        } else {
            assert_int_equal(OP_AT(i)->reason, HISTORY_REASON_TIMEOUT);
            waited += wait > 20000000u;
        }
    }
    assert_true(refused > 100);
    assert_true(waited > 0);
}

/* Closed loop at a rate: each client keeps to its share of it, however fast the answers are. */
static void test_closed_loop_rate(void **state)
{
    struct regions *regions = *state;
    regions_drive(regions, "strong",
                  "{kind: swap-register, keys: 4, clients_per_region: 2, rate: 600}");
    regions_work(regions, 120);
    uint64_t first = UINT64_MAX, last = 0;
    for (uint32_t i = 0; i < regions->history.count; i++) {
        first = OP_AT(i)->invoke_ns < first ? OP_AT(i)->invoke_ns : first;
        last = OP_AT(i)->invoke_ns > last ? OP_AT(i)->invoke_ns : last;
    }
    /* All may be one period early to one late. */
    assert_true(last - first >= (regions->history.count - 12) * 1000000000ull / 600);
}

/* What was asked for and what was begun: the same where clients are quick enough, in open loop and
 * in closed; without a rate nothing can be missed. */
static void test_load_is_counted(void **state)
{
    static const struct {
        const char *workload;
        enum conduct conduct;
        bool kept;
    } cases[] = {
        {"{kind: swap-register, keys: 4, clients_per_region: 8, rate: 300, open_loop: true}",
         HONEST, true},
        {"{kind: swap-register, keys: 4, clients_per_region: 1, timeout: 100ms, rate: 1000, "
         "open_loop: true}",
         SILENT, false},
        {"{kind: swap-register, keys: 4, clients_per_region: 1, timeout: 100ms, rate: 1000}",
         SILENT, false},
        {"{kind: swap-register, keys: 4, clients_per_region: 2}", HONEST, true},
    };
    struct regions *regions = *state;
    for (size_t i = 0; i < array_len(cases); i++) {
        struct drive_load load;
        fake.conduct = cases[i].conduct;
        regions_drive(regions, "strong", cases[i].workload);
        regions_work(regions, 30);
        drive_load(regions->drive, &load);
        assert_true(load.running_ns > 0);
        assert_true(load.begun > 0);
        assert_true(load.begun <= load.due);
        assert_int_equal(load.begun * 10 >= load.due * 9, cases[i].kept);
        drive_load(regions->drive, &load);
        uint64_t running_ns = load.running_ns;
        drive_load(regions->drive, &load);
        assert_int_equal(load.running_ns, running_ns); /* at rest it does not grow */
        for (uint32_t j = 0; j < fake.held_count; j++)
            exchange_abort(fake.held[j]);
        fake.held_count = 0;
    }
}

static void test_writers(void **state)
{
    struct regions *regions = *state;
    for (int open = 0; open < 2; open++) {
        struct scenario_phase phase = {.writers = 2};
        regions_drive(regions, "strong",
                      open ? "{kind: swap-register, keys: 4, rate: 2000, open_loop: true}"
                           : "{kind: swap-register, keys: 4}");
        drive_phase(regions->drive, &phase);
        while (regions->history.count < (open ? 400u : 200u))
            uv_run(&regions->loop.uv, UV_RUN_ONCE);
        drive_stop(regions->drive, regions_on_done, regions);
        regions_await(regions);
    }
    uint32_t writes = 0, reads[REGIONS] = {0};
    for (uint32_t i = 0; i < regions->history.count; i++) {
        if (history_kind_writes((enum history_kind)OP_AT(i)->kind)) {
            assert_int_equal(OP_AT(i)->region, 1);
            writes++;
        } else {
            reads[OP_AT(i)->region]++;
        }
    }
    assert_true(writes > 100);
    for (int i = 0; i < REGIONS; i++)
        assert_true(reads[i] > 0);
}

/* Nothing is sent that could not be recorded, and the last look has its room. */
static void test_history_is_full(void **state)
{
    struct regions *regions = *state;
    struct drive_figures figures = {0};
    history_deinit(&regions->history);
    history_init(&regions->history, 300, 1000);
    regions_drive(regions, "strong", "{kind: swap-register, keys: 4}");
    drive_phase(regions->drive, &regions->scenario.phases[0]);
    while (!figures.full || figures.under_way > 0) {
        uv_run(&regions->loop.uv, UV_RUN_ONCE);
        drive_figures(regions->drive, &figures);
    }
    drive_stop(regions->drive, regions_on_done, regions);
    regions_await(regions);
    assert_in_range(regions->history.count, 200, 300);
    look(regions);
    assert_int_equal(chain_verdict(regions), VERDICT_OK);
    for (uint32_t i = 0; i < 1000; i++)
        history_append(&regions->history, OP_AT(0), NULL);
    drive_look(regions->drive, 7, 10000000000u, regions_on_done, regions);
    regions_run_until(regions, &regions->done);
    assert_false(regions->good);
    assert_non_null(strstr(regions->error, "no room"));
}

/* Lists that the history has no room for are forgotten, and the last look's are not. */
static void test_lists_are_full(void **state)
{
    struct regions *regions = *state;
    history_deinit(&regions->history);
    history_init(&regions->history, 10000, 400);
    regions_drive(regions, "strong", "{kind: set, keys: 1, mix: {write: 0.2, scan: 0.8}}");
    regions_work(regions, 150);
    uint32_t blind = 0;
    for (uint32_t i = 0; i < regions->history.count; i++)
        blind += OP_AT(i)->kind == HISTORY_SCAN && OP_AT(i)->saw == HISTORY_SAW_NOTHING;
    assert_true(blind > 0);
    assert_in_range(regions->history.value_count, 200, 300);
    fake.element_count = 30;
    look(regions);
    assert_int_equal(OP_AT(regions->history.count - 1)->list_count, 30);
}

/* ---- Chores ---- */

static void test_prepare_gives_up(void **state)
{
    struct regions *regions = *state;
    fake.conduct = BREAKS;
    regions_drive(regions, "strong", "{kind: swap-register, keys: 4}");
    drive_prepare(regions->drive, 200000000u, regions_on_done, regions);
    regions_run_until(regions, &regions->done);
    assert_false(regions->good);
    assert_string_equal(regions->error, "us-east-1: CreateTable: 500 InternalServerError");
    regions->done = false;
    fake.conduct = SILENT; /* a call that is under way is dropped */
    drive_prepare(regions->drive, 100000000u, regions_on_done, regions);
    regions_run_until(regions, &regions->done);
    assert_false(regions->good);
    regions->done = false;
    fake.conduct = HONEST;
    regions_work(regions, 50);
}

static void test_find_key(void **state)
{
    struct regions *regions = *state;
    uint16_t table = 9;
    uint32_t key = 9;
    regions_drive(regions, "eventual", "{kind: lww-conflict, keys: 4}");
    assert_true(drive_find_key(regions->drive, bytes_literal("tidemark-chaos"),
                               bytes_literal("{\"pk\": {\"S\": \"k3\"}}"), &table, &key));
    assert_int_equal(table, 0);
    assert_int_equal(key, 3);
    static const char *const wrong[] = {
        "", "{}", "[]", "{\"pk\":{\"N\":\"3\"}}", "{", "{\"pk\":{\"S\":\"three\"}}"};
    for (size_t i = 0; i < array_len(wrong); i++)
        assert_false(drive_find_key(regions->drive, bytes_literal("tidemark-chaos"),
                                    bytes_text(wrong[i]), &table, &key));
    assert_false(drive_find_key(regions->drive, bytes_literal("orders"),
                                bytes_literal("{\"pk\":{\"S\":\"k3\"}}"), &table, &key));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_honest),
        TEST(test_stale_reads_are_caught),
        TEST(test_lost_writes_are_caught),
        TEST(test_set_of_many_pages),
        TEST(test_lost_elements_are_caught),
        TEST(test_timeouts),
        TEST(test_hang_ups),
        TEST(test_no_write_twice),
        TEST(test_server_errors),
        TEST(test_refusals),
        TEST(test_unfinished),
        TEST(test_open_loop_waits),
        TEST(test_closed_loop_rate),
        TEST(test_load_is_counted),
        TEST(test_writers),
        TEST(test_history_is_full),
        TEST(test_lists_are_full),
        TEST(test_prepare_gives_up),
        TEST(test_find_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
