/* SPDX-License-Identifier: Apache-2.0 */
/* A strong table ends whole: one Region gets it back with everything that was ever acknowledged,
 * the others drop it, whoever crashes meanwhile. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/region_id.h"
#include "tests/lib/core/fixture_strong.h"

/* ---- Dissolving ---- */

static void expect_regional(struct fixture *f, uint32_t node)
{
    for (uint32_t i = 0; i < 3; i++) {
        if (i != node)
            assert_null(fixture_table(f, i, "tbl"));
    }
    const struct table *table = describe(f, node);
    assert_int_equal(table->mode, TABLE_REGIONAL);
    assert_int_equal(table->status, TABLE_ACTIVE);
    assert_int_equal(table->replica_count, 0);
    assert_int_equal(table->witness, 0);
}

static void a_table_is_dissolved(void **state)
{
    (void)state;
    for (uint32_t witness = 0; witness < 2; witness++) {
        struct fixture f;
        fixture_init(&f, 3);
        make(&f, witness != 0);
        for (uint32_t i = 0; i < 20; i++) {
            char pk[16];
            snprintf(pk, sizeof(pk), "k%u", i);
            assert_int_equal(put(&f, i % 2, pk, "strong"), API_OK);
        }
        /* Not the one that made it, and within its first day. */
        struct op *op = witness ? fixture_dissolve(&f, "tbl", "us-east-1", NULL, JAPAN)
                                : fixture_dissolve(&f, "tbl", "us-east-1", JAPAN, NULL);
        accept(&f, 1, op);
        assert_int_equal(op->result.table->status, TABLE_UPDATING);
        assert_int_equal(op->result.table->mode, TABLE_STRONG);
        assert_int_equal(op->result.table->replicas[0].status, REPLICA_DELETING);
        if (witness)
            assert_int_equal(op->result.table->witness_status, REPLICA_DELETING);
        fixture_advance(&f, 3000);
        expect_regional(&f, 1);
        for (uint32_t i = 0; i < 3; i++) {
            expect_no_strong_rows(&f, i);
            assert_int_equal(rows(&f, i, KEYSPACE_ITEM), i == 1 ? 20 : 0);
            assert_int_equal(region_group_count(f.nodes[i].core), 0);
        }
        fixture_restart(&f, 1);
        assert_int_equal(put(&f, 1, "k3", "regional"), API_OK);
        assert_string_equal(fixture_value(&f, 1, "tbl", "k3"), "regional");
        assert_int_equal(describe(&f, 1)->item_count, 20);
        fixture_deinit(&f);
    }
}

/* In either mode, with the Regions in other parts. */
static void a_dissolved_table_becomes_global_again(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    make(&f, true);
    assert_int_equal(put(&f, 0, "a", "1"), API_OK);
    accept(&f, 1, fixture_dissolve(&f, "tbl", "us-east-1", NULL, JAPAN));
    fixture_advance(&f, 3000);
    expect_regional(&f, 1);
    accept(&f, 1, fixture_replica(&f, "tbl", true, JAPAN)); /* which was a witness */
    fixture_advance(&f, 2000);
    assert_int_equal(describe(&f, 1)->mode, TABLE_EVENTUAL);
    assert_int_equal(describe(&f, 2)->mode, TABLE_EVENTUAL);
    assert_int_equal(describe(&f, 2)->status, TABLE_ACTIVE);
    assert_string_equal(fixture_value(&f, 2, "tbl", "a"), "1");
    accept(&f, 2, fixture_put(&f, "tbl", "a", "2"));
    fixture_advance(&f, 1000);
    assert_string_equal(fixture_value(&f, 1, "tbl", "a"), "2");
    assert_int_equal(region_counters(f.nodes[1].core).ledger_rows, 0);
    fixture_restart(&f, 2);
    fixture_advance(&f, 1000);
    assert_int_equal(describe(&f, 2)->mode, TABLE_EVENTUAL);
    accept(&f, 1, fixture_replica(&f, "tbl", false, JAPAN));
    fixture_advance(&f, 2000);
    accept(&f, 1, fixture_delete(&f, "tbl", "a"));
    fixture_advance(&f, 2000);
    accept(&f, 1, fixture_strong(&f, "tbl", "us-east-1", JAPAN, NULL));
    fixture_advance(&f, 4000);
    expect_strong(&f, false);
    assert_int_equal(put(&f, 2, "b", "1"), API_OK);
    for (uint32_t i = 0; i < 3; i++)
        assert_string_equal(strong_value(&f, i, "b"), "1");
    accept(&f, 2, fixture_dissolve(&f, "tbl", "us-east-1", EUROPE, NULL));
    fixture_advance(&f, 3000);
    expect_regional(&f, 2);
    assert_string_equal(fixture_value(&f, 2, "tbl", "b"), "1");
    for (uint32_t i = 0; i < 3; i++)
        expect_no_strong_rows(&f, i);
    accept(&f, 2, fixture_delete(&f, "tbl", "b"));
    accept(&f, 2, fixture_strong(&f, "tbl", "us-east-1", EUROPE, NULL));
    fixture_advance(&f, 4000);
    expect_strong(&f, false);
    assert_int_equal(put(&f, 0, "c", "1"), API_OK);
    assert_string_equal(strong_value(&f, 1, "c"), "1");
    fixture_restart(&f, 2);
    fixture_advance(&f, 2000);
    assert_string_equal(strong_value(&f, 2, "c"), "1");
    accept(&f, 0, fixture_dissolve(&f, "tbl", JAPAN, EUROPE, NULL));
    fixture_advance(&f, 3000);
    expect_regional(&f, 0);
    for (uint32_t i = 0; i < 3; i++)
        expect_no_strong_rows(&f, i);
    fixture_deinit(&f);
}

static void the_dissolver_crashes_in_the_middle(void **state)
{
    (void)state;
    for (uint32_t durable = 0; durable < 12; durable++) {
        struct fixture f;
        fixture_init(&f, 3);
        make(&f, false);
        assert_int_equal(put(&f, 1, "a", "1"), API_OK);
        f.nodes[0].hold_disk = true;
        struct op *op = fixture_dissolve(&f, "tbl", EUROPE, JAPAN, NULL);
        fixture_send(&f, 0, op);
        for (uint32_t i = 0; i < durable; i++) {
            fixture_run(&f);
            fixture_sync(&f, 0, 1);
        }
        fixture_run(&f);
        bool acknowledged = fixture_replied(&f, op) != 0;
        assert_int_equal(acknowledged, durable > 0);
        f.nodes[0].hold_disk = false;
        fixture_restart(&f, 0);
        fixture_advance(&f, 6000);
        if (durable == 0)
            expect_strong(&f, false);
        else
            expect_regional(&f, 0);
        assert_string_equal(strong_value(&f, 0, "a"), "1");
        fixture_deinit(&f);
    }
}

/* Who is told to leave crashes, and hears of it afterwards. */
static void a_leaver_crashes_in_the_middle(void **state)
{
    (void)state;
    uint32_t partly = 0;
    for (uint32_t durable = 0; durable < 6; durable++) {
        struct fixture f;
        fixture_init(&f, 3);
        make(&f, true);
        assert_int_equal(put(&f, 1, "a", "1"), API_OK);
        f.nodes[1].hold_disk = true;
        accept(&f, 0, fixture_dissolve(&f, "tbl", EUROPE, NULL, JAPAN));
        for (uint32_t i = 0; i < durable; i++) {
            fixture_run(&f);
            fixture_sync(&f, 1, 1);
        }
        fixture_kill(&f, 1);
        fixture_advance(&f, 4000);
        const struct table *table = describe(&f, 0);
        bool left = table->replica_count + (table->witness != 0) == 0;
        assert_true(left || durable < 4);
        partly += !left;
        assert_int_equal(table->mode, left ? TABLE_REGIONAL : TABLE_STRONG);
        f.nodes[1].hold_disk = false;
        fixture_start(&f, 1);
        fixture_advance(&f, 3000);
        expect_regional(&f, 0);
        assert_string_equal(fixture_value(&f, 0, "tbl", "a"), "1");
        for (uint32_t i = 0; i < 3; i++)
            expect_no_strong_rows(&f, i);
        fixture_deinit(&f);
    }
    assert_true(partly > 0);
}

/* Two at once: at most one is accepted, and it gets the table. */
static void two_dissolve_at_once(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    make(&f, false);
    assert_int_equal(put(&f, 2, "a", "1"), API_OK);
    struct op *first = fixture_dissolve(&f, "tbl", EUROPE, JAPAN, NULL);
    struct op *second = fixture_dissolve(&f, "tbl", "us-east-1", JAPAN, NULL);
    fixture_send(&f, 0, first);
    fixture_send(&f, 1, second);
    fixture_run(&f);
    assert_int_equal(first->result.error, API_RESOURCE_IN_USE);
    assert_int_equal(second->result.error, API_RESOURCE_IN_USE);
    expect_strong(&f, false);
    /* The second has not heard of the first, which has written its word. */
    f.nodes[0].hold_disk = true;
    first = fixture_dissolve(&f, "tbl", EUROPE, JAPAN, NULL);
    fixture_send(&f, 0, first);
    fixture_run(&f);
    fixture_cut(&f, 0, 1, true);
    fixture_sync(&f, 0, UINT32_MAX);
    f.nodes[0].hold_disk = false;
    second = fixture_dissolve(&f, "tbl", "us-east-1", JAPAN, NULL);
    fixture_send(&f, 1, second);
    fixture_run(&f);
    assert_int_equal(first->result.error, API_OK);
    assert_int_equal(second->result.error, API_RESOURCE_IN_USE);
    fixture_cut(&f, 0, 1, false);
    fixture_advance(&f, 4000);
    expect_regional(&f, 0);
    assert_string_equal(fixture_value(&f, 0, "tbl", "a"), "1");
    fixture_deinit(&f);
}

/* The dissolver's word reaches nobody, but its seals do; then its disk is lost. The others know it
 * by the seal, still have everything, and it gets the table after all. */
static void the_dissolver_loses_its_disk(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    make(&f, false);
    assert_int_equal(put(&f, 1, "a", "1"), API_OK);
    f.nodes[0].hold_disk = true;
    struct op *op = fixture_dissolve(&f, "tbl", EUROPE, JAPAN, NULL);
    fixture_send(&f, 0, op);
    fixture_run(&f);
    f.blocked = FIXTURE_CALLS | FIXTURE_LOGS;
    f.nodes[0].hold_disk = false;
    fixture_sync(&f, 0, UINT32_MAX);
    fixture_advance(&f, 1000);
    assert_int_equal(op->result.error, API_OK);
    assert_int_equal(describe(&f, 1)->status, TABLE_DELETING);
    assert_int_equal(describe(&f, 2)->status, TABLE_DELETING);
    assert_int_equal(describe(&f, 2)->replicas[0].status, REPLICA_ACTIVE);
    assert_int_equal(fixture_do(&f, 1, fixture_put(&f, "tbl", "a", "2")), API_RESOURCE_NOT_FOUND);
    fixture_kill(&f, 0);
    fixture_lose_disk(&f, 0);
    f.blocked = 0;
    fixture_advance(&f, 3000);
    fixture_start(&f, 0);
    fixture_advance(&f, 10000);
    expect_regional(&f, 0);
    assert_string_equal(fixture_value(&f, 0, "tbl", "a"), "1");
    fixture_deinit(&f);
}

/* Rows that the groups have left go when there is space to say so, and with the table if it goes.
 */
static void what_groups_leave_is_shed(void **state)
{
    (void)state;
    for (uint32_t how = 0; how < 3; how++) {
        struct fixture f;
        fixture_init(&f, 3);
        make(&f, false);
        for (uint32_t i = 0; i < 20; i++) {
            char pk[16];
            snprintf(pk, sizeof(pk), "k%u", i);
            assert_int_equal(put(&f, 0, pk, "1"), API_OK);
        }
        f.nodes[0].hold_disk = true;
        fixture_send(&f, 0, fixture_dissolve(&f, "tbl", EUROPE, JAPAN, NULL));
        uint32_t steps = 0;
        /* One batch after the other, until it is regional; then what follows is shedding. */
        while (fixture_table(&f, 0, "tbl")->mode != TABLE_REGIONAL) {
            assert_true(++steps < 100);
            fixture_run(&f);
            fixture_sync(&f, 0, 1);
            fixture_advance(&f, 50);
        }
        assert_true(rows(&f, 0, KEYSPACE_STRONG_LOG) > 0);
        if (how == 0) {
            fixture_fail(&f, 0);
        } else if (how == 1) {
            fixture_kill(&f, 0);
            fixture_start(&f, 0);
        }
        f.nodes[0].hold_disk = false;
        fixture_sync(&f, 0, UINT32_MAX);
        fixture_advance(&f, 3000);
        if (how == 2)
            accept(&f, 0, fixture_op(&f, OP_DELETE_TABLE, "tbl"));
        fixture_advance(&f, 3000);
        expect_no_strong_rows(&f, 0);
        assert_int_equal(rows(&f, 0, KEYSPACE_ITEM), how == 2 ? 0 : 20);
        assert_int_equal(rows(&f, 0, KEYSPACE_TABLE), how == 2 ? 0 : 1);
        fixture_deinit(&f);
    }
}

/* Writes that are acknowledged while the table is taken apart are with the one who keeps it. */
static void acknowledged_writes_are_kept(void **state)
{
    (void)state;
    for (uint32_t keeper = 0; keeper < 3; keeper++) {
        struct fixture f;
        struct op *writes[60];
        char pk[60][16];
        fixture_init(&f, 3);
        make(&f, false);
        const char *names[] = {"us-east-1", EUROPE, JAPAN};
        for (uint32_t i = 0; i < 60; i++) {
            snprintf(pk[i], sizeof(pk[i]), "k%u", i);
            writes[i] = fixture_put(&f, "tbl", pk[i], "1");
        }
        for (uint32_t i = 0; i < 30; i++)
            fixture_send(&f, i % 3, writes[i]);
        struct op *op =
            fixture_dissolve(&f, "tbl", names[(keeper + 1) % 3], names[(keeper + 2) % 3], NULL);
        fixture_send(&f, keeper, op);
        for (uint32_t i = 30; i < 60; i++) {
            fixture_send(&f, i % 3, writes[i]);
            if (i % 10 == 0)
                fixture_run(&f);
        }
        fixture_advance(&f, 5000);
        assert_int_equal(op->result.error, API_OK);
        expect_regional(&f, keeper);
        uint32_t acknowledged = 0;
        for (uint32_t i = 0; i < 60; i++) {
            assert_int_not_equal(fixture_replied(&f, writes[i]), 0);
            if (writes[i]->result.error != API_OK)
                continue;
            acknowledged++;
            assert_string_equal(fixture_value(&f, keeper, "tbl", pk[i]), "1");
        }
        assert_true(acknowledged >= 30);
        fixture_deinit(&f);
    }
}

/* Deletes of several replicas and of witnesses are for strong tables only. */
static void other_tables_are_not_dissolved(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    fixture_global(&f);
    expect_refusal(&f, 0, fixture_dissolve(&f, "tbl", EUROPE, JAPAN, NULL), API_VALIDATION,
                   "Update table operation with more than one create or delete replica actions not "
                   "allowed");
    expect_refusal(&f, 0, fixture_dissolve(&f, "tbl", EUROPE, NULL, JAPAN), API_VALIDATION,
                   "Update global table operation failed because one or more witnesses were not "
                   "part of the global table. Please retry the request without these witnesses: "
                   "[ap-northeast-1].");
    expect_refusal(&f, 0, fixture_strong(&f, "tbl", EUROPE, JAPAN, NULL), API_VALIDATION,
                   "MultiRegionConsistency parameter is unsupported on existing global table");
    fixture_deinit(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_tables_are_not_dissolved),
        cmocka_unit_test(a_table_is_dissolved),
        cmocka_unit_test(a_dissolved_table_becomes_global_again),
        cmocka_unit_test(the_dissolver_crashes_in_the_middle),
        cmocka_unit_test(a_leaver_crashes_in_the_middle),
        cmocka_unit_test(two_dissolve_at_once),
        cmocka_unit_test(the_dissolver_loses_its_disk),
        cmocka_unit_test(what_groups_leave_is_shed),
        cmocka_unit_test(acknowledged_writes_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
