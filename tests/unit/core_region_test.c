/* SPDX-License-Identifier: Apache-2.0 */
/* One Region: what a client sees of its writes, whatever the disk and the process do. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"
#include "region/core/keyspace.h"
#include "tests/lib/core/fixture.h"

static void create(struct fixture *f, const char *name)
{
    assert_int_equal(fixture_do(f, 0, fixture_create(f, name)), API_OK);
}

static void writes_and_reads(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    create(&f, "tbl");
    assert_int_equal(fixture_do(&f, 0, fixture_put(&f, "tbl", "a", "1")), API_OK);
    assert_int_equal(fixture_do(&f, 0, fixture_put(&f, "tbl", "a", "2")), API_OK);
    assert_int_equal(fixture_do(&f, 0, fixture_put(&f, "tbl", "b", "3")), API_OK);
    assert_string_equal(fixture_value(&f, 0, "tbl", "a"), "2");
    assert_int_equal(fixture_table(&f, 0, "tbl")->item_count, 2);
    assert_int_equal(fixture_table(&f, 0, "tbl")->size_bytes, 2 * 5);
    assert_int_equal(fixture_do(&f, 0, fixture_delete(&f, "tbl", "a")), API_OK);
    assert_null(fixture_value(&f, 0, "tbl", "a"));
    struct op *scan = fixture_scan(&f, "tbl");
    assert_int_equal(fixture_do(&f, 0, scan), API_OK);
    assert_int_equal(scan->result.count, 1);
    assert_int_equal(fixture_table(&f, 0, "tbl")->item_count, 1);
    assert_int_equal(fixture_do(&f, 0, fixture_put(&f, "none", "a", "1")), API_RESOURCE_NOT_FOUND);
    fixture_deinit(&f);
}

/* A regional table keeps no tombstones: nobody else has to hear of a delete. */
static void regional_delete_leaves_nothing(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    create(&f, "tbl");
    fixture_do(&f, 0, fixture_put(&f, "tbl", "a", "1"));
    fixture_do(&f, 0, fixture_delete(&f, "tbl", "a"));
    struct buf rows;
    buf_init(&rows);
    fixture_dump(&f, 0, KEYSPACE_ITEM, &rows);
    fixture_dump(&f, 0, KEYSPACE_LOG, &rows);
    assert_int_equal(rows.len, 0);
    buf_deinit(&rows);
    fixture_deinit(&f);
}

static void replies_wait_for_the_disk(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    create(&f, "tbl");
    f.nodes[0].hold_disk = true;
    struct op *first = fixture_put(&f, "tbl", "a", "1");
    struct op *second = fixture_put(&f, "tbl", "b", "2");
    struct op *third = fixture_put(&f, "tbl", "a", "3");
    fixture_send(&f, 0, first);
    fixture_send(&f, 0, second);
    fixture_send(&f, 0, third);
    fixture_run(&f);
    assert_int_equal(f.replies, 1);                /* CreateTable's */
    assert_null(fixture_value(&f, 0, "tbl", "a")); /* a read sees what is durable */
    fixture_sync(&f, 0, 1);
    assert_int_not_equal(fixture_replied(&f, first), 0);
    assert_int_equal(fixture_replied(&f, second), 0);
    assert_string_equal(fixture_value(&f, 0, "tbl", "a"), "1");
    fixture_sync(&f, 0, UINT32_MAX);
    assert_true(fixture_replied(&f, first) < fixture_replied(&f, third)); /* of one key */
    assert_int_not_equal(fixture_replied(&f, second), 0);
    assert_string_equal(fixture_value(&f, 0, "tbl", "a"), "3");
    fixture_deinit(&f);
}

static void a_condition_sees_writes_in_flight(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    create(&f, "tbl");
    f.nodes[0].hold_disk = true;
    struct op *first = fixture_put(&f, "tbl", "a", "1");
    struct op *second = fixture_put(&f, "tbl", "a", "2");
    fixture_condition(second, "attribute_not_exists(pk)");
    fixture_send(&f, 0, first);
    fixture_run(&f);
    fixture_send(&f, 0, second);
    fixture_run(&f);
    /* It has failed, but that tells of a write that is not durable yet. */
    assert_int_equal(fixture_replied(&f, second), 0);
    fixture_sync(&f, 0, UINT32_MAX);
    assert_int_equal(second->result.error, API_CONDITION_FAILED);
    assert_int_not_equal(fixture_replied(&f, second), 0);
    fixture_deinit(&f);
}

/* Many writers of one key: one READ, and each sees the one before it. */
static void a_hot_key_runs_in_order(void **state)
{
    (void)state;
    enum { WRITERS = 50 };
    struct fixture f;
    struct op *ops[WRITERS];
    fixture_init(&f, 1);
    create(&f, "tbl");
    f.nodes[0].hold_disk = f.nodes[0].hold_reads = true;
    uint64_t reads = f.reads;
    for (int i = 0; i < WRITERS; i++) {
        ops[i] = fixture_put(&f, "tbl", "hot", "v");
        /* Only the first, the third, ... find the item absent. */
        if (i % 2 == 0)
            fixture_condition(ops[i], "attribute_not_exists(pk)");
        else
            ops[i] = fixture_delete(&f, "tbl", "hot");
        fixture_send(&f, 0, ops[i]);
    }
    fixture_run(&f);
    assert_int_equal(f.reads - reads, 1);
    fixture_release_reads(&f, 0);
    fixture_run(&f);
    fixture_sync(&f, 0, UINT32_MAX);
    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(ops[i]->result.error, API_OK);
        assert_int_equal(fixture_replied(&f, ops[i]), i + 2);
    }
    f.nodes[0].hold_reads = false;
    assert_null(fixture_value(&f, 0, "tbl", "hot"));
    assert_int_equal(fixture_table(&f, 0, "tbl")->item_count, 0);
    fixture_deinit(&f);
}

/* A full disk: everything is as it was, and the next write works. */
static void a_full_disk_is_undone(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    create(&f, "tbl");
    fixture_do(&f, 0, fixture_put(&f, "tbl", "a", "before"));
    f.nodes[0].hold_disk = true;
    struct op *first = fixture_put(&f, "tbl", "a", "one");
    struct op *second = fixture_put(&f, "tbl", "a", "two");
    struct op *third = fixture_put(&f, "tbl", "b", "x");
    struct op *batch = fixture_batch(&f, "tbl", 5, "y");
    fixture_send(&f, 0, first);
    fixture_run(&f);
    fixture_sync(&f, 0, 1); /* this one is safe */
    fixture_send(&f, 0, second);
    fixture_send(&f, 0, third);
    fixture_send(&f, 0, batch);
    fixture_run(&f);
    fixture_fail(&f, 0);
    assert_int_equal(first->result.error, API_OK);
    assert_int_equal(second->result.error, API_INTERNAL);
    assert_int_equal(third->result.error, API_INTERNAL);
    assert_int_equal(batch->result.error, API_INTERNAL);
    assert_int_equal(f.replies, 6);
    assert_string_equal(fixture_value(&f, 0, "tbl", "a"), "one");
    assert_int_equal(region_counters(f.nodes[0].core).batches_in_flight, 0);
    assert_int_equal(region_counters(f.nodes[0].core).operations_in_flight, 0);
    f.nodes[0].hold_disk = false;
    struct op *again = fixture_put(&f, "tbl", "a", "three");
    fixture_condition(again, "attribute_exists(pk)");
    assert_int_equal(fixture_do(&f, 0, again), API_OK);
    struct op *fresh = fixture_put(&f, "tbl", "b", "z");
    fixture_condition(fresh, "attribute_not_exists(pk)");
    assert_int_equal(fixture_do(&f, 0, fresh), API_OK);
    assert_int_equal(fixture_table(&f, 0, "tbl")->item_count, 2);
    fixture_restart(&f, 0);
    assert_int_equal(fixture_table(&f, 0, "tbl")->item_count, 2);
    assert_string_equal(fixture_value(&f, 0, "tbl", "a"), "three");
    fixture_deinit(&f);
}

static void a_full_disk_refuses_a_table(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    f.nodes[0].hold_disk = true;
    struct op *op = fixture_create(&f, "tbl");
    struct op *twin = fixture_create(&f, "tbl");
    fixture_send(&f, 0, op);
    fixture_send(&f, 0, twin);
    fixture_run(&f);
    assert_int_equal(twin->result.error, API_RESOURCE_IN_USE);
    assert_null(fixture_table(&f, 0, "tbl"));
    fixture_fail(&f, 0);
    assert_int_equal(op->result.error, API_INTERNAL);
    f.nodes[0].hold_disk = false;
    create(&f, "tbl");
    assert_int_equal(fixture_do(&f, 0, fixture_put(&f, "tbl", "a", "1")), API_OK);
    fixture_deinit(&f);
}

/* A write crashes after each number of its effects: acknowledged means kept, and nothing is half
 * there: count, item and log agree. */
static void a_crash_keeps_what_was_acknowledged(void **state)
{
    (void)state;
    enum { WRITES = 6 };
    for (uint32_t durable = 0; durable <= WRITES; durable++) {
        struct fixture f;
        struct op *ops[WRITES];
        fixture_init(&f, 1);
        create(&f, "tbl");
        f.nodes[0].hold_disk = true;
        for (int i = 0; i < WRITES; i++) {
            char pk[16];
            snprintf(pk, sizeof(pk), "k%d", i);
            ops[i] = fixture_put(&f, "tbl", pk, "v");
            fixture_send(&f, 0, ops[i]);
        }
        fixture_run(&f);
        fixture_sync(&f, 0, durable);
        f.nodes[0].hold_disk = false;
        fixture_restart(&f, 0);
        uint64_t found = 0;
        for (int i = 0; i < WRITES; i++) {
            char pk[16];
            snprintf(pk, sizeof(pk), "k%d", i);
            bool there = fixture_value(&f, 0, "tbl", pk) != NULL;
            assert_int_equal(there, fixture_replied(&f, ops[i]) != 0);
            found += there;
        }
        assert_int_equal(found, durable);
        assert_int_equal(fixture_table(&f, 0, "tbl")->item_count, found);
        assert_int_equal(fixture_do(&f, 0, fixture_put(&f, "tbl", "after", "v")), API_OK);
        fixture_deinit(&f);
    }
}

/* A crash while reads are out, or with nothing durable at all. */
static void a_crash_before_the_disk(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    create(&f, "tbl");
    f.nodes[0].hold_reads = true;
    struct op *put = fixture_put(&f, "tbl", "a", "1");
    fixture_send(&f, 0, put);
    fixture_send(&f, 0, fixture_get(&f, "tbl", "a"));
    fixture_send(&f, 0, fixture_scan(&f, "tbl"));
    fixture_run(&f);
    f.nodes[0].hold_reads = false;
    fixture_restart(&f, 0);
    assert_int_equal(fixture_replied(&f, put), 0);
    assert_null(fixture_value(&f, 0, "tbl", "a"));
    fixture_deinit(&f);
}

static void a_batch_replies_once(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    create(&f, "tbl");
    f.nodes[0].hold_disk = true;
    struct op *batch = fixture_batch(&f, "tbl", 25, "v");
    fixture_send(&f, 0, batch);
    fixture_run(&f);
    fixture_sync(&f, 0, 24);
    assert_int_equal(fixture_replied(&f, batch), 0);
    fixture_sync(&f, 0, 1);
    assert_int_not_equal(fixture_replied(&f, batch), 0);
    assert_int_equal(fixture_table(&f, 0, "tbl")->item_count, 25);
    fixture_deinit(&f);
}

static void too_much_is_throttled(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    create(&f, "tbl");
    f.nodes[0].hold_disk = true;
    for (int i = 0; i < 1000; i++)
        fixture_send(&f, 0, fixture_put(&f, "tbl", "a", "1"));
    struct op *late = fixture_put(&f, "tbl", "a", "1");
    fixture_send(&f, 0, late);
    assert_int_equal(late->result.error, API_THROTTLING);
    fixture_run(&f);
    fixture_sync(&f, 0, UINT32_MAX);
    f.nodes[0].hold_disk = false;
    assert_int_equal(fixture_do(&f, 0, fixture_put(&f, "tbl", "a", "2")), API_OK);
    assert_int_equal(region_counters(f.nodes[0].core).throttled, 1);
    fixture_deinit(&f);
}

/* Enough items for several pages, among many that were deleted. */
static void a_scan_reads_page_by_page(void **state)
{
    (void)state;
    enum { ITEMS = 900 };
    struct fixture f;
    fixture_init(&f, 1);
    create(&f, "tbl");
    for (int i = 0; i < ITEMS; i++) {
        char pk[16];
        snprintf(pk, sizeof(pk), "k%d", i);
        fixture_do(&f, 0, fixture_put(&f, "tbl", pk, "v"));
    }
    struct op *scan = fixture_scan(&f, "tbl");
    assert_int_equal(fixture_do(&f, 0, scan), API_OK);
    assert_int_equal(scan->result.count, ITEMS);
    fixture_deinit(&f);
}

static void a_dropped_table_is_erased(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    create(&f, "tbl");
    for (int i = 0; i < 700; i++) {
        char pk[16];
        snprintf(pk, sizeof(pk), "k%d", i);
        fixture_do(&f, 0, fixture_put(&f, "tbl", pk, "v"));
    }
    /* A request on its way when the table goes. */
    f.nodes[0].hold_reads = true;
    struct op *late = fixture_put(&f, "tbl", "late", "v");
    struct op *scan = fixture_scan(&f, "tbl");
    fixture_send(&f, 0, late);
    fixture_send(&f, 0, scan);
    struct op *drop = fixture_op(&f, OP_DELETE_TABLE, "tbl");
    assert_int_equal(fixture_do(&f, 0, drop), API_OK);
    assert_int_equal(drop->result.table->status, TABLE_DELETING);
    assert_null(fixture_table(&f, 0, "tbl"));
    create(&f, "tbl"); /* the name is free at once */
    fixture_release_reads(&f, 0);
    fixture_run(&f);
    assert_int_equal(late->result.error, API_RESOURCE_NOT_FOUND);
    assert_int_equal(scan->result.error, API_RESOURCE_NOT_FOUND);
    /* The erasing has begun; a crash interrupts it. */
    f.nodes[0].hold_reads = false;
    fixture_restart(&f, 0);
    struct buf rows;
    buf_init(&rows);
    fixture_dump(&f, 0, KEYSPACE_ITEM, &rows);
    assert_int_equal(rows.len, 0);
    assert_int_equal(region_table_count(f.nodes[0].core), 1);
    assert_int_equal(fixture_table(&f, 0, "tbl")->item_count, 0);
    fixture_dump(&f, 0, KEYSPACE_TABLE, &rows);
    struct bytes rest = buf_view(&rows), one;
    uint32_t tables = 0;
    while (bytes_take_prefixed(&rest, &one) && bytes_take_prefixed(&rest, &one))
        tables++;
    assert_int_equal(tables, 1);
    buf_deinit(&rows);
    fixture_deinit(&f);
}

/* The clock never repeats itself, and numbers go on, whatever the wall clock does. */
static void time_goes_on_after_a_crash(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 2);
    fixture_global(&f);
    for (int i = 0; i < 5; i++)
        fixture_do(&f, 0, fixture_put(&f, "tbl", "a", "1"));
    f.wall_ms -= 3600 * 1000;
    fixture_restart(&f, 0);
    fixture_do(&f, 0, fixture_put(&f, "tbl", "a", "2"));
    fixture_advance(&f, 1000);
    assert_string_equal(fixture_value(&f, 1, "tbl", "a"), "2");
    assert_int_equal(region_counters(f.nodes[1].core).ledger_rows, 0);
    fixture_deinit(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_and_reads),
        cmocka_unit_test(regional_delete_leaves_nothing),
        cmocka_unit_test(replies_wait_for_the_disk),
        cmocka_unit_test(a_condition_sees_writes_in_flight),
        cmocka_unit_test(a_hot_key_runs_in_order),
        cmocka_unit_test(a_full_disk_is_undone),
        cmocka_unit_test(a_full_disk_refuses_a_table),
        cmocka_unit_test(a_crash_keeps_what_was_acknowledged),
        cmocka_unit_test(a_crash_before_the_disk),
        cmocka_unit_test(a_batch_replies_once),
        cmocka_unit_test(too_much_is_throttled),
        cmocka_unit_test(a_scan_reads_page_by_page),
        cmocka_unit_test(a_dropped_table_is_erased),
        cmocka_unit_test(time_goes_on_after_a_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
