/* SPDX-License-Identifier: Apache-2.0 */
/* More than 500 lines, as every step of a membership change is crashed once. The control plane:
 * tables come, change and go; replicas join and leave, whoever crashes or cannot be reached
 * meanwhile. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/base/rng.h"
#include "conflict/region_id.h"
#include "region/core/keyspace.h"
#include "tests/lib/core/fixture.h"

static void create(struct fixture *f, uint32_t node, const char *name)
{
    assert_int_equal(fixture_do(f, node, fixture_create(f, name)), API_OK);
}

static void expect_refusal(struct fixture *f, uint32_t node, struct op *op, enum api_error error,
                           const char *message)
{
    assert_int_equal(fixture_do(f, node, op), error);
    assert_string_equal(op->result.message, message);
}

static struct op *update(struct fixture *f, const char *name)
{
    struct op *op = fixture_op(f, OP_UPDATE_TABLE, name);
    op->control = arena_new(op->arena, struct op_control);
    return op;
}

static struct op *protect(struct fixture *f, const char *name, bool on)
{
    struct op *op = update(f, name);
    op->control->protection_given = true;
    op->control->protection = on;
    return op;
}

static struct op *stream(struct fixture *f, const char *name, bool on)
{
    struct op *op = update(f, name);
    op->control->stream_given = true;
    op->control->stream_enabled = on;
    op->control->stream = on ? STREAM_KEYS_ONLY : STREAM_NONE;
    return op;
}

static struct op *describe(struct fixture *f, const char *name)
{
    return fixture_op(f, OP_DESCRIBE_TABLE, name);
}

/* ---- One Region ---- */

static void a_table_comes_and_goes(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    struct op *op = fixture_create(&f, "music");
    assert_int_equal(fixture_do(&f, 0, op), API_OK);
    assert_int_equal(op->result.table->status, TABLE_CREATING);
    op = describe(&f, "music");
    assert_int_equal(fixture_do(&f, 0, op), API_OK);
    assert_int_equal(op->result.table->status, TABLE_ACTIVE);
    assert_int_equal(op->result.table->mode, TABLE_REGIONAL);
    uint8_t id[TABLE_ID_LEN];
    memcpy(id, op->result.table->id, sizeof(id));
    expect_refusal(&f, 0, fixture_create(&f, "music"), API_RESOURCE_IN_USE,
                   "Table already exists: music");
    fixture_restart(&f, 0);
    assert_memory_equal(fixture_table(&f, 0, "music")->id, id, sizeof(id));
    assert_int_equal(fixture_do(&f, 0, fixture_op(&f, OP_DELETE_TABLE, "music")), API_OK);
    expect_refusal(&f, 0, describe(&f, "music"), API_RESOURCE_NOT_FOUND,
                   "Requested resource not found: Table: music not found");
    expect_refusal(&f, 0, fixture_op(&f, OP_DELETE_TABLE, "music"), API_RESOURCE_NOT_FOUND,
                   "Requested resource not found: Table: music not found");
    create(&f, 0, "music");
    assert_memory_not_equal(fixture_table(&f, 0, "music")->id, id, sizeof(id));
    fixture_deinit(&f);
}

static void names_are_listed_in_order(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    const char *names[] = {"delta", "alpha", "charlie", "bravo"};
    for (uint32_t i = 0; i < array_len(names); i++)
        create(&f, 0, names[i]);
    struct op *op = fixture_op(&f, OP_LIST_TABLES, "");
    op->control = arena_new(op->arena, struct op_control);
    op->control->limit = 2;
    op->control->start_table = bytes_literal("alpha");
    assert_int_equal(fixture_do(&f, 0, op), API_OK);
    assert_int_equal(op->result.name_count, 2);
    assert_true(bytes_is(op->result.names[0], "bravo"));
    assert_true(bytes_is(op->result.names[1], "charlie"));
    assert_true(op->result.names_more);
    fixture_deinit(&f);
}

static void settings_change_and_last(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    create(&f, 0, "tbl");
    assert_int_equal(fixture_do(&f, 0, protect(&f, "tbl", true)), API_OK);
    expect_refusal(&f, 0, fixture_op(&f, OP_DELETE_TABLE, "tbl"), API_VALIDATION,
                   "Resource cannot be deleted as it is currently protected against deletion. "
                   "Disable deletion protection first.");
    struct op *op = update(&f, "tbl");
    op->control->throughput_given = true;
    op->control->read_units = op->control->write_units = 5;
    expect_refusal(&f, 0, op, API_VALIDATION,
                   "One or more parameter values were invalid: Neither ReadCapacityUnits nor "
                   "WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST");
    op = update(&f, "tbl");
    op->control->billing_given = op->control->throughput_given = true;
    op->control->billing = BILLING_PROVISIONED;
    op->control->read_units = op->control->write_units = 5;
    assert_int_equal(fixture_do(&f, 0, op), API_OK);
    assert_int_equal(fixture_do(&f, 0, stream(&f, "tbl", true)), API_OK);
    expect_refusal(&f, 0, stream(&f, "tbl", true), API_VALIDATION,
                   "Table already has an enabled stream: TableName: tbl");
    fixture_restart(&f, 0);
    const struct table *table = fixture_table(&f, 0, "tbl");
    assert_true(table->deletion_protection);
    assert_int_equal(table->read_units, 5);
    assert_int_equal(table->stream, STREAM_KEYS_ONLY);
    fixture_deinit(&f);
}

static void the_number_of_tables_is_limited(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    char name[24];
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof(name), "table%d", i);
        create(&f, 0, name);
    }
    assert_int_equal(fixture_do(&f, 0, fixture_create(&f, "more")), API_LIMIT_EXCEEDED);
    fixture_restart(&f, 0);
    assert_int_equal(region_table_count(f.nodes[0].core), 50);
    fixture_deinit(&f);
}

/* ---- Joining and leaving ---- */

/* Cuts everything after so many events: whatever the coordinator had done by then, it is finished
 * after a crash, or nothing has happened anywhere. */
static void a_coordinator_crashes_in_the_middle(void **state)
{
    (void)state;
    for (uint32_t durable = 0; durable < 6; durable++) {
        struct fixture f;
        fixture_init(&f, 3);
        create(&f, 0, "tbl");
        assert_int_equal(fixture_do(&f, 0, fixture_replica(&f, "tbl", true, "eu-west-1")), API_OK);
        fixture_advance(&f, 1000);
        assert_int_equal(fixture_do(&f, 0, fixture_put(&f, "tbl", "a", "1")), API_OK);
        f.nodes[0].hold_disk = true;
        struct op *op = fixture_replica(&f, "tbl", true, "ap-northeast-1");
        fixture_send(&f, 0, op);
        for (uint32_t i = 0; i < durable; i++) {
            fixture_run(&f);
            fixture_sync(&f, 0, 1);
        }
        fixture_run(&f);
        bool acknowledged = fixture_replied(&f, op) != 0;
        f.nodes[0].hold_disk = false;
        fixture_restart(&f, 0);
        fixture_advance(&f, 3000);
        if (acknowledged)
            assert_non_null(fixture_table(&f, 2, "tbl"));
        for (uint32_t i = 0; i < 3; i++) {
            const struct table *table = fixture_table(&f, i, "tbl");
            if (i == 2 && durable == 0) {
                assert_null(table);
                continue;
            }
            assert_int_equal(table->status, TABLE_ACTIVE);
            assert_int_equal(table->replica_count, durable == 0 ? 1 : 2);
            for (uint32_t j = 0; j < table->replica_count; j++)
                assert_int_equal(table->replicas[j].status, REPLICA_ACTIVE);
            assert_string_equal(fixture_value(&f, i, "tbl", "a"), "1");
        }
        fixture_deinit(&f);
    }
}

static void a_target_crashes_in_the_middle(void **state)
{
    (void)state;
    for (uint32_t durable = 0; durable < 5; durable++) {
        struct fixture f;
        fixture_init(&f, 2);
        create(&f, 0, "tbl");
        assert_int_equal(fixture_do(&f, 0, fixture_put(&f, "tbl", "a", "1")), API_OK);
        f.nodes[1].hold_disk = true;
        assert_int_equal(fixture_do(&f, 0, fixture_replica(&f, "tbl", true, "eu-west-1")), API_OK);
        for (uint32_t i = 0; i < durable; i++) {
            fixture_sync(&f, 1, 1);
            fixture_run(&f);
        }
        f.nodes[1].hold_disk = false;
        fixture_restart(&f, 1);
        fixture_advance(&f, 3000);
        assert_int_equal(fixture_table(&f, 0, "tbl")->status, TABLE_ACTIVE);
        assert_int_equal(fixture_table(&f, 1, "tbl")->status, TABLE_ACTIVE);
        assert_string_equal(fixture_value(&f, 1, "tbl", "a"), "1");
        fixture_deinit(&f);
    }
}

static void an_unreachable_region_changes_nothing(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    create(&f, 0, "tbl");
    fixture_kill(&f, 1);
    struct op *op = fixture_replica(&f, "tbl", true, "eu-west-1");
    expect_refusal(
        &f, 0, op, API_INTERNAL,
        "Region eu-west-1 cannot be reached, so nothing was changed. Retry once it can.");
    assert_int_equal(fixture_table(&f, 0, "tbl")->status, TABLE_ACTIVE);
    assert_int_equal(fixture_table(&f, 0, "tbl")->stream, STREAM_NONE);
    fixture_start(&f, 1);
    fixture_run(&f);
    assert_int_equal(fixture_do(&f, 0, fixture_replica(&f, "tbl", true, "eu-west-1")), API_OK);
    fixture_advance(&f, 1000);
    /* A member that is away holds up a third one. */
    fixture_kill(&f, 1);
    assert_int_equal(fixture_do(&f, 0, fixture_replica(&f, "tbl", true, "ap-northeast-1")),
                     API_INTERNAL);
    assert_null(fixture_table(&f, 2, "tbl"));
    fixture_start(&f, 1);
    fixture_advance(&f, 500);
    assert_int_equal(fixture_do(&f, 0, fixture_replica(&f, "tbl", true, "ap-northeast-1")), API_OK);
    fixture_advance(&f, 1000);
    assert_int_equal(fixture_table(&f, 1, "tbl")->replica_count, 2);
    fixture_deinit(&f);
}

/* While a replica is being made, its own Region knows it by DescribeTable only. */
static void a_replica_in_creation_is_not_usable(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 2);
    create(&f, 0, "tbl");
    fixture_do(&f, 0, fixture_put(&f, "tbl", "a", "1"));
    fixture_cut(&f, 0, 1, true); /* the log's stream only: calls would be cut as well */
    f.cut[0][1] = false;
    f.up[0][1] = true; /* so that it is not connected again */
    assert_int_equal(fixture_do(&f, 0, fixture_replica(&f, "tbl", true, "eu-west-1")), API_OK);
    struct op *op = describe(&f, "tbl");
    assert_int_equal(fixture_do(&f, 1, op), API_OK);
    assert_int_equal(op->result.table->status, TABLE_CREATING);
    assert_int_equal(op->result.table->replica_count, 1);
    assert_int_equal(op->result.table->replicas[0].region, 1);
    assert_int_equal(op->result.table->replicas[0].status, REPLICA_ACTIVE);
    expect_refusal(&f, 1, fixture_get(&f, "tbl", "a"), API_RESOURCE_NOT_FOUND,
                   "Requested resource not found");
    expect_refusal(&f, 1, protect(&f, "tbl", true), API_RESOURCE_NOT_FOUND,
                   "Requested resource not found: Table: tbl not found");
    assert_int_equal(fixture_do(&f, 1, fixture_op(&f, OP_DELETE_TABLE, "tbl")),
                     API_RESOURCE_IN_USE);
    expect_refusal(
        &f, 1, fixture_replica(&f, "tbl", false, "us-east-1"), API_VALIDATION,
        "Create/Update/Delete of replica is not allowed while the replica is being added "
        "to table with name: ‘tbl’ in region: ‘eu-west-1’.");
    expect_refusal(&f, 0, protect(&f, "tbl", true), API_RESOURCE_IN_USE,
                   "The resource which you are attempting to change is in use.");
    assert_int_equal(fixture_do(&f, 0, fixture_put(&f, "tbl", "b", "2")), API_OK);
    f.up[0][1] = false;
    fixture_advance(&f, 1000);
    assert_string_equal(fixture_value(&f, 1, "tbl", "a"), "1");
    assert_string_equal(fixture_value(&f, 1, "tbl", "b"), "2");
    fixture_deinit(&f);
}

/* C013, and a second life: old writes of the first must not be taken for the new one's. */
static void a_replica_leaves_and_comes_back(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    fixture_global(&f);
    for (int i = 0; i < 5; i++) {
        char pk[16];
        snprintf(pk, sizeof(pk), "k%d", i);
        fixture_do(&f, 1, fixture_put(&f, "tbl", pk, "first life"));
    }
    fixture_advance(&f, 500);
    struct op *op = fixture_replica(&f, "tbl", false, "eu-west-1");
    assert_int_equal(fixture_do(&f, 2, op), API_OK); /* from any member */
    fixture_advance(&f, 1000);
    assert_null(fixture_table(&f, 1, "tbl"));
    assert_int_equal(fixture_table(&f, 0, "tbl")->replica_count, 1);
    assert_int_equal(fixture_table(&f, 2, "tbl")->replica_count, 1);
    assert_string_equal(fixture_value(&f, 2, "tbl", "k1"), "first life");
    struct buf rows;
    buf_init(&rows);
    fixture_dump(&f, 1, KEYSPACE_ITEM, &rows);
    fixture_dump(&f, 1, KEYSPACE_LOG, &rows);
    assert_int_equal(rows.len, 0);
    buf_deinit(&rows);

    assert_int_equal(fixture_do(&f, 0, fixture_replica(&f, "tbl", true, "eu-west-1")), API_OK);
    fixture_advance(&f, 2000);
    assert_string_equal(fixture_value(&f, 1, "tbl", "k1"), "first life");
    fixture_do(&f, 1, fixture_put(&f, "tbl", "k1", "second life"));
    fixture_do(&f, 1, fixture_put(&f, "tbl", "k9", "second life"));
    fixture_advance(&f, 2000);
    for (uint32_t i = 0; i < 3; i++) {
        assert_string_equal(fixture_value(&f, i, "tbl", "k1"), "second life");
        assert_string_equal(fixture_value(&f, i, "tbl", "k9"), "second life");
        assert_string_equal(fixture_value(&f, i, "tbl", "k2"), "first life");
        assert_int_equal(fixture_table(&f, i, "tbl")->item_count, 6);
        assert_int_equal(region_counters(f.nodes[i].core).ledger_rows, 0);
    }
    /* Seen from node 0, eu-west-1 is now the last to have joined. */
    assert_int_equal(fixture_table(&f, 0, "tbl")->replicas[1].region, 9);
    fixture_deinit(&f);
}

static void the_last_replica_goes(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 2);
    fixture_global(&f);
    fixture_do(&f, 0, fixture_put(&f, "tbl", "a", "1"));
    fixture_do(&f, 0, fixture_put(&f, "tbl", "b", "1"));
    fixture_do(&f, 0, fixture_delete(&f, "tbl", "b"));
    fixture_advance(&f, 500);
    assert_int_equal(fixture_do(&f, 1, fixture_op(&f, OP_DELETE_TABLE, "tbl")), API_OK);
    fixture_advance(&f, 1000);
    assert_null(fixture_table(&f, 1, "tbl"));
    const struct table *table = fixture_table(&f, 0, "tbl");
    assert_int_equal(table->mode, TABLE_REGIONAL);
    assert_int_equal(table->replica_count, 0);
    assert_int_equal(table->status, TABLE_ACTIVE);
    assert_int_equal(table->stream, STREAM_BOTH);
    assert_int_equal(fixture_do(&f, 0, stream(&f, "tbl", false)), API_OK);
    assert_string_equal(fixture_value(&f, 0, "tbl", "a"), "1");
    struct buf rows;
    buf_init(&rows);
    fixture_dump(&f, 0, KEYSPACE_LOG, &rows);
    assert_int_equal(rows.len, 0); /* nobody needs the log */
    fixture_dump(&f, 0, KEYSPACE_ITEM, &rows);
    struct bytes rest = buf_view(&rows), one;
    uint32_t count = 0;
    while (bytes_take_prefixed(&rest, &one))
        count++;
    assert_int_equal(count, 2); /* nor the tombstone */
    buf_deinit(&rows);
    create(&f, 1, "tbl");
    assert_int_equal(fixture_do(&f, 0, fixture_op(&f, OP_DELETE_TABLE, "tbl")), API_OK);
    fixture_restart(&f, 0);
    fixture_advance(&f, 500);
    assert_null(fixture_table(&f, 0, "tbl"));
    assert_int_equal(fixture_table(&f, 1, "tbl")->replica_count, 0);
    fixture_deinit(&f);
}

/* A member was down when a replica left and when settings changed: it hears of it when it is back.
 */
static void who_was_down_converges(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    fixture_global(&f);
    f.nodes[2].hold_disk = true; /* it is told, and forgets */
    assert_int_equal(fixture_do(&f, 0, fixture_replica(&f, "tbl", false, "eu-west-1")), API_OK);
    fixture_kill(&f, 2);
    fixture_advance(&f, 2000);
    f.nodes[2].hold_disk = false;
    struct op *op = update(&f, "tbl");
    op->control->billing_given = op->control->throughput_given = true;
    op->control->billing = BILLING_PROVISIONED;
    op->control->read_units = op->control->write_units = 7;
    fixture_start(&f, 2);
    fixture_advance(&f, 2000);
    assert_null(fixture_table(&f, 1, "tbl"));
    assert_int_equal(fixture_table(&f, 2, "tbl")->replica_count, 1);
    assert_int_equal(fixture_table(&f, 0, "tbl")->status, TABLE_ACTIVE);
    fixture_kill(&f, 2);
    assert_int_equal(fixture_do(&f, 0, op), API_OK);
    fixture_start(&f, 2);
    fixture_advance(&f, 2000);
    assert_int_equal(fixture_table(&f, 2, "tbl")->read_units, 7);
    fixture_deinit(&f);
}

/* A member comes back with an empty disk: it is filled again, and its new writes count. */
static void a_lost_disk_is_filled_again(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    fixture_global(&f);
    fixture_do(&f, 0, fixture_put(&f, "tbl", "a", "1"));
    fixture_do(&f, 1, fixture_put(&f, "tbl", "b", "2"));
    fixture_advance(&f, 1500);
    fixture_kill(&f, 1);
    f.nodes[1].store->ops->free(f.nodes[1].store);
    f.nodes[1].store = store_mem_new();
    fixture_advance(&f, 1500);
    fixture_start(&f, 1);
    fixture_advance(&f, 4000);
    assert_non_null(fixture_table(&f, 1, "tbl"));
    assert_int_equal(fixture_table(&f, 1, "tbl")->status, TABLE_ACTIVE);
    assert_string_equal(fixture_value(&f, 1, "tbl", "a"), "1");
    assert_string_equal(fixture_value(&f, 1, "tbl", "b"), "2");
    fixture_do(&f, 1, fixture_put(&f, "tbl", "c", "3"));
    fixture_advance(&f, 2000);
    for (uint32_t i = 0; i < 3; i++)
        assert_string_equal(fixture_value(&f, i, "tbl", "c"), "3");
    fixture_deinit(&f);
}

/* Who refills a member is no source of a new replica, and may be deleted as before. */
static void who_refills_a_lost_disk_may_leave(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    fixture_global(&f);
    fixture_kill(&f, 1);
    f.nodes[1].store->ops->free(f.nodes[1].store);
    f.nodes[1].store = store_mem_new();
    fixture_cut(&f, 0, 1, true);
    fixture_start(&f, 1);
    fixture_advance(&f, 4000); /* node 2 tells it of the table */
    fixture_cut(&f, 0, 1, false);
    fixture_advance(&f, 4000);
    assert_int_equal(fixture_table(&f, 1, "tbl")->status, TABLE_ACTIVE);
    struct op *op = fixture_replica(&f, "tbl", false, region_id_name(f.nodes[2].region));
    assert_int_equal(fixture_do(&f, 0, op), API_OK);
    fixture_advance(&f, 4000);
    assert_null(fixture_table(&f, 2, "tbl"));
    fixture_deinit(&f);
}

/* Bytes that nobody would send: answered or closed, never believed. */
static void garbage_is_refused(void **state)
{
    (void)state;
    struct fixture f;
    struct rng rng;
    fixture_init(&f, 2);
    fixture_global(&f);
    rng_init(&rng, 11);
    for (int round = 0; round < 500; round++) {
        uint8_t bytes[64];
        size_t len = (size_t)rng_below(&rng, sizeof(bytes));
        for (size_t i = 0; i < len; i++)
            bytes[i] = (uint8_t)rng_next(&rng);
        struct region_input in = {.kind = REGION_PEER_FRAME,
                                  .peer = rng_one_in(&rng, 5) ? 33 : 9,
                                  .channel =
                                      rng_one_in(&rng, 2) ? CHANNEL_INBOUND : CHANNEL_OUTBOUND,
                                  .bytes = bytes_make(bytes, len)};
        fixture_step(&f, 0, &in);
        in = (struct region_input){
            .kind = REGION_CALL_DONE, .id = rng_below(&rng, 100), .bytes = bytes_make(bytes, len)};
        fixture_step(&f, 0, &in);
        struct store_rows none = {0};
        in = (struct region_input){.kind = REGION_READ_DONE, .id = rng_next(&rng), .rows = &none};
        fixture_step(&f, 0, &in);
        if (round % 50 == 0)
            fixture_advance(&f, 200);
    }
    fixture_advance(&f, 2000);
    assert_int_equal(fixture_do(&f, 0, fixture_put(&f, "tbl", "a", "1")), API_OK);
    fixture_advance(&f, 500);
    assert_string_equal(fixture_value(&f, 1, "tbl", "a"), "1");
    fixture_deinit(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_comes_and_goes),
        cmocka_unit_test(names_are_listed_in_order),
        cmocka_unit_test(settings_change_and_last),
        cmocka_unit_test(the_number_of_tables_is_limited),
        cmocka_unit_test(a_coordinator_crashes_in_the_middle),
        cmocka_unit_test(a_target_crashes_in_the_middle),
        cmocka_unit_test(an_unreachable_region_changes_nothing),
        cmocka_unit_test(a_replica_in_creation_is_not_usable),
        cmocka_unit_test(a_replica_leaves_and_comes_back),
        cmocka_unit_test(the_last_replica_goes),
        cmocka_unit_test(who_was_down_converges),
        cmocka_unit_test(a_lost_disk_is_filled_again),
        cmocka_unit_test(who_refills_a_lost_disk_may_leave),
        cmocka_unit_test(garbage_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
