/* SPDX-License-Identifier: Apache-2.0 */
/* A table becomes strong whole, by one Region's word, whoever crashes, cannot be reached or loses
 * its disk meanwhile; and it stays what it is. How it ends: core_strong_dissolve_test.c. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/region_id.h"
#include "tests/lib/core/fixture_strong.h"

/* ---- Making ---- */

static void a_table_becomes_strong(void **state)
{
    for (uint32_t witness = 0; witness < 2; witness++) {
        struct fixture f;
        (void)state;
        fixture_init(&f, 3);
        create(&f, 0, "tbl");
        struct op *op = witness ? fixture_strong(&f, "tbl", EUROPE, NULL, JAPAN)
                                : fixture_strong(&f, "tbl", EUROPE, JAPAN, NULL);
        accept(&f, 0, op);
        assert_int_equal(op->result.table->status, TABLE_UPDATING);
        assert_int_equal(op->result.table->mode, TABLE_STRONG);
        assert_int_equal(op->result.table->stream, STREAM_NONE);
        const struct table *table = describe(&f, 0);
        assert_int_equal(table->status, TABLE_UPDATING);
        assert_int_equal(table->replicas[0].status, REPLICA_CREATING);
        if (witness)
            assert_int_equal(table->witness_status, REPLICA_CREATING);
        assert_int_equal(describe(&f, 1)->status, TABLE_CREATING);
        fixture_advance(&f, 3000);
        expect_strong(&f, witness != 0);
        for (uint32_t i = 0; i < 2; i++)
            assert_int_equal(put(&f, i, i ? "one" : "zero", "1"), API_OK);
        for (uint32_t i = 0; i < 2; i++) {
            assert_string_equal(strong_value(&f, i, "zero"), "1");
            assert_string_equal(strong_value(&f, i, "one"), "1");
        }
        for (uint32_t i = 0; i < 3; i++)
            fixture_restart(&f, i);
        fixture_advance(&f, 3000);
        expect_strong(&f, witness != 0);
        assert_int_equal(put(&f, 1, "one", "2"), API_OK);
        assert_string_equal(strong_value(&f, 0, "one"), "2");
        fixture_deinit(&f);
    }
}

/* The maker's calls are enough: when it says ACTIVE, everybody has confirmed what is needed. */
static void calls_alone_make_it(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    f.blocked = FIXTURE_LOGS;
    create(&f, 0, "tbl");
    accept(&f, 0, fixture_strong(&f, "tbl", EUROPE, JAPAN, NULL));
    for (uint32_t i = 0; i < 100 && describe(&f, 0)->status != TABLE_ACTIVE; i++) {
        fixture_advance(&f, 50);
    }
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(region_group_count(f.nodes[i].core), 2);
    fixture_advance(&f, 50);
    expect_strong(&f, false);
    fixture_deinit(&f);
}

static void making_is_refused(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 4);
    create(&f, 0, "tbl");
    static const char count[] = "Unsupported replica count for global tables with "
                                "MultiRegionConsistency set to STRONG.";
    expect_refusal(&f, 0, fixture_strong(&f, "tbl", EUROPE, EUROPE, NULL), API_VALIDATION, count);
    expect_refusal(&f, 0, fixture_strong(&f, "tbl", EUROPE, JAPAN, OREGON), API_VALIDATION, count);
    expect_refusal(&f, 0, fixture_strong(&f, "tbl", EUROPE, "us-east-1", NULL), API_VALIDATION,
                   "Cannot add or delete the local region through ReplicaUpdates. Use "
                   "CreateTable, DeleteTable, or UpdateTable as required.");
    expect_refusal(&f, 0, fixture_strong(&f, "tbl", EUROPE, NULL, "us-east-1"), API_VALIDATION,
                   "Cannot add a witness in the same region as an existing replica when "
                   "creating a global table with MultiRegionConsistency set to STRONG.");
    expect_refusal(&f, 0, fixture_strong(&f, "tbl", EUROPE, "eu-west-2", NULL), API_VALIDATION,
                   "Region eu-west-2 is not supported. The latest version of global tables are "
                   "only supported in the following regions: [us-east-1, eu-west-1, "
                   "ap-northeast-1, us-west-2]");
    struct op *op = fixture_create(&f, "paid");
    op->control->billing = BILLING_PROVISIONED;
    op->control->read_units = op->control->write_units = 5;
    accept(&f, 0, op);
    expect_refusal(&f, 0, fixture_strong(&f, "paid", EUROPE, JAPAN, NULL), API_VALIDATION,
                   "Table write capacity should either be Pay-Per-Request or AutoScaled.");
    expect_refusal(&f, 0, fixture_strong(&f, "none", EUROPE, JAPAN, NULL), API_RESOURCE_NOT_FOUND,
                   "Requested resource not found: Table: none not found");
    create(&f, 2, "tbl");
    expect_refusal(
        &f, 0, fixture_strong(&f, "tbl", EUROPE, JAPAN, NULL), API_VALIDATION,
        "Failed to create a the new replica of table with name: ‘tbl’ because one or more "
        "replicas already existed as tables.");
    fixture_kill(&f, 3);
    expect_refusal(
        &f, 0, fixture_strong(&f, "tbl", EUROPE, OREGON, NULL), API_INTERNAL,
        "Region us-west-2 cannot be reached, so nothing was changed. Retry once it can.");
    f.nodes[3].witness_only = true;
    fixture_start(&f, 3);
    fixture_advance(&f, 100);
    expect_refusal(&f, 0, fixture_strong(&f, "tbl", EUROPE, OREGON, NULL), API_VALIDATION,
                   "Unsupported Region(s) specified for global tables with "
                   "MultiRegionConsistency set to STRONG: [us-west-2].");
    expect_refusal(&f, 0, fixture_replica(&f, "tbl", true, OREGON), API_VALIDATION,
                   "Region us-west-2 is not supported: it holds witnesses of global tables with "
                   "MultiRegionConsistency set to STRONG, and nothing else.");
    assert_int_equal(describe(&f, 0)->mode, TABLE_REGIONAL);
    assert_int_equal(describe(&f, 0)->status, TABLE_ACTIVE);
    assert_null(fixture_table(&f, 1, "tbl"));
    /* The name that was taken is no matter for a witness. */
    accept(&f, 0, fixture_strong(&f, "tbl", EUROPE, NULL, JAPAN));
    fixture_deinit(&f);
}

static const char not_empty[] =
    "One or more parameter values were invalid: Only an empty table to which nothing is being "
    "written can become a global table with MultiRegionConsistency set to STRONG. Delete its items "
    "and pause its writers, or use a new table.";

static void only_an_empty_table_becomes_strong(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    create(&f, 0, "tbl");
    accept(&f, 0, fixture_put(&f, "tbl", "a", "1"));
    expect_refusal(&f, 0, fixture_strong(&f, "tbl", EUROPE, JAPAN, NULL), API_VALIDATION,
                   not_empty);
    accept(&f, 0, fixture_delete(&f, "tbl", "a"));
    /* A write that waits for its key to be read. */
    f.nodes[0].hold_reads = true;
    struct op *write = fixture_put(&f, "tbl", "a", "1");
    fixture_send(&f, 0, write);
    expect_refusal(&f, 0, fixture_strong(&f, "tbl", EUROPE, JAPAN, NULL), API_VALIDATION,
                   not_empty);
    fixture_release_reads(&f, 0);
    f.nodes[0].hold_reads = false;
    fixture_run(&f);
    assert_int_equal(write->result.error, API_OK);
    accept(&f, 0, fixture_delete(&f, "tbl", "a"));
    /* One that comes while the others are asked. */
    struct op *op = fixture_strong(&f, "tbl", EUROPE, JAPAN, NULL);
    fixture_send(&f, 0, op);
    write = fixture_put(&f, "tbl", "a", "1");
    fixture_send(&f, 0, write);
    fixture_run(&f);
    assert_int_equal(write->result.error, API_OK);
    assert_int_equal(op->result.error, API_VALIDATION);
    assert_string_equal(op->result.message, not_empty);
    accept(&f, 0, fixture_delete(&f, "tbl", "a"));
    /* One that comes after the change has been written and before it is durable must not pass. */
    f.nodes[0].hold_disk = true;
    op = fixture_strong(&f, "tbl", EUROPE, JAPAN, NULL);
    fixture_send(&f, 0, op);
    fixture_run(&f);
    assert_int_equal(fixture_replied(&f, op), 0);
    assert_int_equal(describe(&f, 0)->mode, TABLE_REGIONAL);
    write = fixture_put(&f, "tbl", "a", "1");
    fixture_send(&f, 0, write);
    fixture_fail(&f, 0);
    fixture_run(&f);
    assert_int_equal(op->result.error, API_INTERNAL);
    f.nodes[0].hold_disk = false;
    fixture_advance(&f, 3000);
    assert_int_not_equal(fixture_replied(&f, write), 0);
    assert_int_not_equal(write->result.error, API_OK);
    assert_int_equal(describe(&f, 0)->mode, TABLE_REGIONAL);
    assert_int_equal(put(&f, 0, "a", "1"), API_OK);
    accept(&f, 0, fixture_delete(&f, "tbl", "a"));
    accept(&f, 0, fixture_strong(&f, "tbl", EUROPE, JAPAN, NULL));
    fixture_advance(&f, 3000);
    expect_strong(&f, false);
    fixture_deinit(&f);
}

/* Whatever S had done by then, it is finished after a crash, or nothing has happened anywhere. */
static void the_maker_crashes_in_the_middle(void **state)
{
    (void)state;
    for (uint32_t durable = 0; durable < 8; durable++) {
        struct fixture f;
        fixture_init(&f, 3);
        create(&f, 0, "tbl");
        f.nodes[0].hold_disk = true;
        struct op *op = fixture_strong(&f, "tbl", EUROPE, NULL, JAPAN);
        fixture_send(&f, 0, op);
        for (uint32_t i = 0; i < durable; i++) {
            fixture_run(&f);
            fixture_sync(&f, 0, 1);
        }
        fixture_run(&f);
        bool acknowledged = fixture_replied(&f, op) != 0;
        f.nodes[0].hold_disk = false;
        fixture_restart(&f, 0);
        fixture_advance(&f, 5000);
        if (durable == 0) {
            assert_false(acknowledged);
            assert_int_equal(describe(&f, 0)->mode, TABLE_REGIONAL);
            assert_null(fixture_table(&f, 1, "tbl"));
        } else {
            expect_strong(&f, true);
            assert_int_equal(put(&f, 1, "a", "1"), API_OK);
            assert_string_equal(strong_value(&f, 0, "a"), "1");
        }
        fixture_deinit(&f);
    }
}

static void another_member_crashes_in_the_middle(void **state)
{
    (void)state;
    for (uint32_t durable = 0; durable < 12; durable++) {
        struct fixture f;
        uint32_t node = durable % 2 ? 1 : 2;
        fixture_init(&f, 3);
        create(&f, 0, "tbl");
        f.nodes[node].hold_disk = true;
        accept(&f, 0, fixture_strong(&f, "tbl", EUROPE, NULL, JAPAN));
        for (uint32_t i = 0; i < durable / 2; i++) {
            fixture_sync(&f, node, 1);
            fixture_run(&f);
        }
        f.nodes[node].hold_disk = false;
        fixture_restart(&f, node);
        fixture_advance(&f, 5000);
        expect_strong(&f, true);
        assert_int_equal(put(&f, 1, "a", "1"), API_OK);
        assert_string_equal(strong_value(&f, 0, "a"), "1");
        fixture_deinit(&f);
    }
}

/* A member's incarnation reaches others through the maker alone, or not before the group is formed;
 * so a disk that is lost before the maker knew it cannot have voted. */
static void a_disk_is_lost_while_the_table_is_made(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    create(&f, 0, "tbl");
    f.nodes[0].hold_disk = true;
    fixture_send(&f, 0, fixture_strong(&f, "tbl", EUROPE, JAPAN, NULL));
    fixture_run(&f);
    fixture_sync(&f, 0, 1);
    fixture_run(&f); /* the others have made their parts; that is not durable at the maker */
    fixture_advance(&f, 1000);
    assert_int_equal(region_group_count(f.nodes[1].core), 0);
    assert_int_equal(region_group_count(f.nodes[2].core), 0);
    fixture_kill(&f, 1);
    fixture_lose_disk(&f, 1);
    f.nodes[0].hold_disk = false;
    fixture_restart(&f, 0);
    fixture_start(&f, 1);
    fixture_advance(&f, 6000);
    expect_strong(&f, false);
    for (uint32_t i = 0; i < region_group_count(f.nodes[1].core); i++)
        assert_int_equal(region_group_at(f.nodes[1].core, i).standing, CONSENSUS_FULL);
    fixture_deinit(&f);
}

/* ---- Being strong ---- */

static void a_witness_is_not_seen(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    make(&f, true);
    expect_strong(&f, true);
    assert_int_equal(region_table_count(f.nodes[2].core), 0);
    assert_int_equal(region_group_count(f.nodes[2].core), 2);
    struct op *op = fixture_op(&f, OP_LIST_TABLES, "");
    accept(&f, 2, op);
    assert_int_equal(op->result.name_count, 0);
    assert_int_equal(fixture_do(&f, 2, fixture_put(&f, "tbl", "a", "1")), API_RESOURCE_NOT_FOUND);
    assert_int_equal(fixture_do(&f, 2, fixture_op(&f, OP_DELETE_TABLE, "tbl")),
                     API_RESOURCE_NOT_FOUND);
    /* Its name is free, before a restart and after. */
    create(&f, 2, "tbl");
    create(&f, 2, "aaa");
    create(&f, 2, "zzz");
    accept(&f, 2, fixture_put(&f, "tbl", "mine", "1"));
    fixture_restart(&f, 2);
    fixture_advance(&f, 2000);
    assert_int_equal(region_table_count(f.nodes[2].core), 3);
    assert_string_equal(fixture_value(&f, 2, "tbl", "mine"), "1");
    fixture_kill(&f, 0);
    fixture_advance(&f, 3000);
    assert_int_equal(put(&f, 1, "theirs", "1"), API_OK); /* the witness is the second copy */
    fixture_start(&f, 0);
    fixture_advance(&f, 3000);
    assert_string_equal(strong_value(&f, 0, "theirs"), "1");
    assert_null(fixture_value(&f, 2, "tbl", "theirs"));
    accept(&f, 2, fixture_op(&f, OP_DELETE_TABLE, "tbl"));
    fixture_advance(&f, 1000);
    assert_int_equal(put(&f, 1, "theirs", "2"), API_OK);
    fixture_deinit(&f);
}

static void a_process_may_hold_witnesses_only(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    fixture_kill(&f, 2);
    f.nodes[2].witness_only = true;
    fixture_start(&f, 2);
    fixture_run(&f);
    make(&f, true);
    expect_strong(&f, true);
    fixture_kill(&f, 2);
    fixture_lose_disk(&f, 2);
    fixture_start(&f, 2);
    fixture_advance(&f, 5000);
    assert_int_equal(region_group_count(f.nodes[2].core), 2);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(region_group_at(f.nodes[2].core, i).standing, CONSENSUS_FULL);
    fixture_deinit(&f);
}

static void a_lost_disk_is_rebuilt(void **state)
{
    (void)state;
    for (uint32_t lost = 0; lost < 3; lost++) {
        struct fixture f;
        fixture_init(&f, 3);
        make(&f, false);
        assert_int_equal(put(&f, 0, "a", "1"), API_OK);
        assert_int_equal(put(&f, 1, "b", "2"), API_OK);
        fixture_kill(&f, lost);
        fixture_lose_disk(&f, lost);
        fixture_advance(&f, 3000);
        uint32_t other = (lost + 1) % 3;
        assert_int_equal(put(&f, other, "c", "3"), API_OK);
        fixture_start(&f, lost);
        f.blocked = FIXTURE_GROUPS;
        fixture_advance(&f, 1000);
        /* It knows of the table, and that it has forgotten its votes. */
        assert_int_equal(region_group_count(f.nodes[lost].core), 2);
        for (uint32_t i = 0; i < 2; i++)
            assert_int_equal(region_group_at(f.nodes[lost].core, i).standing, CONSENSUS_REBUILDING);
        f.blocked = 0;
        fixture_advance(&f, 8000);
        expect_strong(&f, false);
        assert_string_equal(strong_value(&f, lost, "a"), "1");
        assert_string_equal(strong_value(&f, lost, "b"), "2");
        assert_string_equal(strong_value(&f, lost, "c"), "3");
        assert_int_equal(put(&f, lost, "d", "4"), API_OK);
        assert_string_equal(strong_value(&f, other, "d"), "4");
        fixture_deinit(&f);
    }
}

static struct op *stream(struct fixture *f, bool on)
{
    struct op *op = fixture_op(f, OP_UPDATE_TABLE, "tbl");
    op->control = arena_new(op->arena, struct op_control);
    op->control->stream_given = true;
    op->control->stream_enabled = on;
    op->control->stream = on ? STREAM_KEYS_ONLY : STREAM_NONE;
    return op;
}

/* Each replica's stream is its own; billing is everybody's. */
static void settings_of_a_strong_table(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    make(&f, false);
    accept(&f, 1, stream(&f, true));
    struct op *op = fixture_op(&f, OP_UPDATE_TABLE, "tbl");
    op->control = arena_new(op->arena, struct op_control);
    op->control->billing_given = op->control->throughput_given = true;
    op->control->billing = BILLING_PROVISIONED;
    op->control->read_units = op->control->write_units = 7;
    accept(&f, 2, op);
    fixture_advance(&f, 1000);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(describe(&f, i)->stream, i == 1 ? STREAM_KEYS_ONLY : STREAM_NONE);
        assert_int_equal(describe(&f, i)->read_units, 7);
    }
    accept(&f, 1, stream(&f, false));
    assert_int_equal(describe(&f, 1)->stream, STREAM_NONE);
    fixture_deinit(&f);
}

static void changes_of_a_strong_table_are_refused(void **state)
{
    (void)state;
    static const char one[] = "Deletion of only one table replica is not supported for global "
                              "tables with MultiRegionConsistency set to STRONG.";
    struct fixture f;
    fixture_init(&f, 4);
    make(&f, false);
    expect_refusal(&f, 0, fixture_replica(&f, "tbl", true, OREGON), API_VALIDATION,
                   "Cannot add replicas to a global table with strong MultiRegionConsistency");
    expect_refusal(&f, 1, fixture_strong(&f, "tbl", OREGON, JAPAN, NULL), API_VALIDATION,
                   "MultiRegionConsistency parameter is unsupported on existing global table");
    struct op *op = fixture_replica(&f, "tbl", true, OREGON);
    op->control->consistency_given = true;
    expect_refusal(&f, 1, op, API_VALIDATION,
                   "MultiRegionConsistency parameter is unsupported on existing global table");
    op = fixture_dissolve(&f, "tbl", EUROPE, JAPAN, NULL);
    op->control->consistency_given = op->control->consistency_strong = true;
    expect_refusal(&f, 0, op, API_VALIDATION,
                   "Only Replica Create actions are supported when MultiRegionConsistency "
                   "parameter is provided.");
    expect_refusal(&f, 0, fixture_replica(&f, "tbl", false, EUROPE), API_VALIDATION, one);
    expect_refusal(&f, 0, fixture_dissolve(&f, "tbl", EUROPE, EUROPE, NULL), API_VALIDATION, one);
    expect_refusal(&f, 2, fixture_op(&f, OP_DELETE_TABLE, "tbl"), API_VALIDATION, one);
    expect_refusal(&f, 0, fixture_dissolve(&f, "tbl", EUROPE, "us-east-1", NULL), API_VALIDATION,
                   "Cannot add or delete the local region through ReplicaUpdates. Use "
                   "CreateTable, DeleteTable, or UpdateTable as required.");
    expect_refusal(&f, 0, fixture_dissolve(&f, "tbl", EUROPE, OREGON, NULL), API_VALIDATION,
                   "Update global table operation failed because one or more replicas were not "
                   "part of the global table. Please retry the request without these replicas: "
                   "[us-west-2].");
    expect_refusal(&f, 0, fixture_dissolve(&f, "tbl", EUROPE, JAPAN, OREGON), API_VALIDATION,
                   "Update global table operation failed because one or more witnesses were not "
                   "part of the global table. Please retry the request without these witnesses: "
                   "[us-west-2].");
    op = fixture_replica(&f, "tbl", false, EUROPE);
    op->control->replicas[0].kind = REPLICA_UPDATE_UPDATE;
    accept(&f, 0, op); /* no override is kept */
    op = fixture_replica(&f, "tbl", false, OREGON);
    op->control->replicas[0].kind = REPLICA_UPDATE_UPDATE;
    assert_int_equal(fixture_do(&f, 0, op), API_VALIDATION);
    fixture_advance(&f, 500);
    fixture_kill(&f, 2);
    expect_refusal(
        &f, 0, fixture_dissolve(&f, "tbl", EUROPE, JAPAN, NULL), API_INTERNAL,
        "Region ap-northeast-1 cannot be reached, so nothing was changed. Retry once it can.");
    fixture_start(&f, 2);
    fixture_advance(&f, 2000);
    expect_strong(&f, false);
    fixture_deinit(&f);

    fixture_init(&f, 3);
    make(&f, true);
    expect_refusal(&f, 0, fixture_replica(&f, "tbl", false, EUROPE), API_VALIDATION,
                   "Update table delete operation does not include all witnesses.");
    expect_refusal(&f, 1, fixture_dissolve(&f, "tbl", "us-east-1", JAPAN, JAPAN), API_VALIDATION,
                   "Update global table operation failed because one or more replicas were not "
                   "part of the global table. Please retry the request without these replicas: "
                   "[ap-northeast-1].");
    op = fixture_op(&f, OP_UPDATE_TABLE, "tbl");
    op->control = arena_new(op->arena, struct op_control);
    op->control->protection_given = op->control->protection = true;
    accept(&f, 1, op);
    expect_refusal(&f, 0, fixture_dissolve(&f, "tbl", EUROPE, NULL, JAPAN), API_VALIDATION,
                   "Cannot delete table tbl in region eu-west-1 because it has deletion protection "
                   "enabled. Disable deletion protection first.");
    expect_strong(&f, true);
    fixture_deinit(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_becomes_strong),
        cmocka_unit_test(calls_alone_make_it),
        cmocka_unit_test(making_is_refused),
        cmocka_unit_test(only_an_empty_table_becomes_strong),
        cmocka_unit_test(the_maker_crashes_in_the_middle),
        cmocka_unit_test(another_member_crashes_in_the_middle),
        cmocka_unit_test(a_disk_is_lost_while_the_table_is_made),
        cmocka_unit_test(a_witness_is_not_seen),
        cmocka_unit_test(a_process_may_hold_witnesses_only),
        cmocka_unit_test(a_lost_disk_is_rebuilt),
        cmocka_unit_test(settings_of_a_strong_table),
        cmocka_unit_test(changes_of_a_strong_table_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
