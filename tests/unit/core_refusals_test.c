/* SPDX-License-Identifier: Apache-2.0 */
/* The refusals of replica steps, in the words that AWS was seen to use. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
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

static struct op *overrides(struct fixture *f, const char *name)
{
    struct op *op = update(f, name);
    op->control->other_given = op->control->settings_overrides = true;
    return op;
}

static struct op *replicas(struct fixture *f, const char *name, uint32_t count)
{
    struct op *op = update(f, name);
    op->control->replicas_given = true;
    op->control->replica_count = count;
    op->control->replicas = arena_array(op->arena, struct op_replica_update, count);
    return op;
}

static void refusals_of_shape(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 2);
    create(&f, 0, "tbl");

    struct op *op = fixture_replica(&f, "tbl", true, "eu-west-1");
    op->control->stream_given = op->control->stream_enabled = true;
    expect_refusal(&f, 0, op, API_VALIDATION,
                   "One or more parameter values were invalid: Replica modification must be the "
                   "only operation in the request");
    expect_refusal(&f, 0, update(&f, "tbl"), API_VALIDATION,
                   "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, "
                   "GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, "
                   "MultiAccountReplicaReady, ReplicaTransitRoleArn, MultiRegionConsistency, "
                   "DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is "
                   "required");
    op = replicas(&f, "tbl", 2);
    op->control->replicas[0] = (struct op_replica_update){.kind = REPLICA_UPDATE_CREATE,
                                                          .region = bytes_literal("eu-west-1")};
    op->control->replicas[1] = (struct op_replica_update){.kind = REPLICA_UPDATE_CREATE,
                                                          .region = bytes_literal("us-west-2")};
    expect_refusal(&f, 0, op, API_VALIDATION,
                   "Update table operation with more than one create or delete replica actions not "
                   "allowed");
    op = replicas(&f, "tbl", 1);
    op->control->replicas[0].several_kinds = true;
    expect_refusal(
        &f, 0, op, API_VALIDATION,
        "Update table operation with more than one type of replica actions not allowed.");
    op = replicas(&f, "tbl", 1);
    expect_refusal(&f, 0, op, API_VALIDATION,
                   "There are no actions specified in the Replica Update Action of the request.");
    assert_int_equal(fixture_table(&f, 0, "tbl")->mode, TABLE_REGIONAL);
    fixture_deinit(&f);
}

static void refusals_of_regions(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 2);
    create(&f, 0, "tbl");
    create(&f, 1, "tbl");
    expect_refusal(&f, 0, fixture_replica(&f, "tbl", true, "us-east-1"), API_VALIDATION,
                   "Cannot add or delete the local region through ReplicaUpdates. Use CreateTable, "
                   "DeleteTable, or UpdateTable as required.");
    expect_refusal(
        &f, 0, fixture_replica(&f, "tbl", true, "EU-WEST-1"), API_VALIDATION,
        "Region EU-WEST-1 is not supported. The latest version of global tables are only "
        "supported in the following regions: [us-east-1, eu-west-1]");
    expect_refusal(
        &f, 0, fixture_replica(&f, "tbl", true, "us-west-2"), API_VALIDATION,
        "Region us-west-2 is not supported. The latest version of global tables are only "
        "supported in the following regions: [us-east-1, eu-west-1]");
    expect_refusal(
        &f, 0, fixture_replica(&f, "tbl", false, "ca-central-1"), API_VALIDATION,
        "Update global table operation failed because one or more replicas were not part "
        "of the global table. Please retry the request without these replicas: "
        "[ca-central-1].");
    expect_refusal(&f, 0, fixture_replica(&f, "none", true, "eu-west-1"), API_RESOURCE_NOT_FOUND,
                   "Requested resource not found: Table: none not found");
    /* Two tables of one name stay two: C008, C020. */
    assert_int_equal(fixture_do(&f, 1, fixture_put(&f, "tbl", "mine", "1")), API_OK);
    expect_refusal(
        &f, 0, fixture_replica(&f, "tbl", true, "eu-west-1"), API_VALIDATION,
        "Failed to create a the new replica of table with name: ‘tbl’ because one or more "
        "replicas already existed as tables.");
    assert_string_equal(fixture_value(&f, 1, "tbl", "mine"), "1");
    assert_null(fixture_value(&f, 0, "tbl", "mine"));
    struct op *op = update(&f, "tbl");
    op->control->billing_given = op->control->throughput_given = true;
    op->control->billing = BILLING_PROVISIONED;
    op->control->read_units = op->control->write_units = 5;
    assert_int_equal(fixture_do(&f, 0, op), API_OK);
    expect_refusal(&f, 0, fixture_replica(&f, "tbl", true, "eu-west-1"), API_VALIDATION,
                   "Table write capacity should either be Pay-Per-Request or AutoScaled.");
    fixture_deinit(&f);
}

static struct op *strong(struct fixture *f, const char *first, const char *second,
                         const char *witness)
{
    struct op *op = replicas(f, "tbl", second ? 2 : 1);
    struct op_control *control = op->control;
    control->consistency_given = control->consistency_strong = true;
    control->replicas[0] =
        (struct op_replica_update){.kind = REPLICA_UPDATE_CREATE, .region = bytes_text(first)};
    if (second)
        control->replicas[1] =
            (struct op_replica_update){.kind = REPLICA_UPDATE_CREATE, .region = bytes_text(second)};
    if (witness) {
        control->witnesses_given = true;
        control->witness_count = 1;
        control->witnesses = arena_array(op->arena, struct op_replica_update, 1);
        control->witnesses[0] = (struct op_replica_update){.kind = REPLICA_UPDATE_CREATE,
                                                           .region = bytes_text(witness)};
    }
    return op;
}

static void refusals_of_strong_forms(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    create(&f, 0, "tbl");
    struct op *op = strong(&f, "eu-west-1", NULL, "ap-northeast-1");
    op->control->consistency_given = op->control->consistency_strong = false;
    expect_refusal(&f, 0, op, API_VALIDATION,
                   "MultiRegionConsistency must be set as STRONG when GlobalTableWitnessUpdates "
                   "parameter is present.");
    expect_refusal(&f, 0, strong(&f, "eu-west-1", NULL, NULL), API_VALIDATION,
                   "Unsupported replica count for global tables with MultiRegionConsistency set to "
                   "STRONG.");
    expect_refusal(&f, 0, strong(&f, "eu-west-1", NULL, "eu-west-1"), API_VALIDATION,
                   "Cannot target multiple regions with the same action");
    expect_refusal(
        &f, 0, strong(&f, "eu-west-1", "us-west-1", NULL), API_VALIDATION,
        "Unsupported Region(s) specified for global tables with MultiRegionConsistency set "
        "to STRONG: [us-west-1].");
    op = update(&f, "tbl");
    op->control->consistency_given = op->control->consistency_strong = true;
    assert_int_equal(fixture_do(&f, 0, op), API_VALIDATION);
    assert_int_equal(strncmp(op->result.message, "At least one of", 15), 0);
    op = strong(&f, "eu-west-1", "ap-northeast-1", NULL);
    op->control->stream_given = true;
    expect_refusal(&f, 0, op, API_VALIDATION,
                   "Requests that modify replicas or witnesses must not also modify other fields");
    op = strong(&f, "eu-west-1", NULL, NULL);
    op->control->replicas[0].kind = REPLICA_UPDATE_DELETE;
    expect_refusal(
        &f, 0, op, API_VALIDATION,
        "Only Replica Create actions are supported when MultiRegionConsistency parameter "
        "is provided.");
    assert_int_equal(fixture_table(&f, 0, "tbl")->mode, TABLE_REGIONAL);
    fixture_deinit(&f);
}

static void refusals_of_members(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    create(&f, 0, "tbl");
    expect_refusal(&f, 0, overrides(&f, "tbl"), API_VALIDATION,
                   "One or more parameter values were invalid: Only ENABLED and DISABLED settings "
                   "replication are supported for a Regional Table.");
    assert_int_equal(fixture_do(&f, 0, fixture_replica(&f, "tbl", true, "eu-west-1")), API_OK);
    fixture_advance(&f, 1000);
    assert_int_equal(fixture_do(&f, 0, overrides(&f, "tbl")), API_OK);
    fixture_advance(&f, 500);
    expect_refusal(
        &f, 0, stream(&f, "tbl", false), API_VALIDATION,
        "One or more parameter values were invalid: Disabling Stream is not allowed for a "
        "Global Table replica.");
    expect_refusal(&f, 1, stream(&f, "tbl", true), API_VALIDATION,
                   "Table already has an enabled stream: TableName: tbl");
    expect_refusal(
        &f, 0, fixture_replica(&f, "tbl", true, "eu-west-1"), API_VALIDATION,
        "Failed to create a the new replica of table with name: ‘tbl’ because one or more "
        "replicas already existed as tables.");
    expect_refusal(
        &f, 0, fixture_replica(&f, "tbl", false, "ap-northeast-1"), API_VALIDATION,
        "Update global table operation failed because one or more replicas were not part "
        "of the global table. Please retry the request without these replicas: "
        "[ap-northeast-1].");
    /* C025: a protected replica stays, from both sides. C017: protection is each Region's own. */
    assert_int_equal(fixture_do(&f, 1, protect(&f, "tbl", true)), API_OK);
    fixture_advance(&f, 500);
    assert_false(fixture_table(&f, 0, "tbl")->deletion_protection);
    expect_refusal(&f, 0, fixture_replica(&f, "tbl", false, "eu-west-1"), API_VALIDATION,
                   "Cannot delete table tbl in region eu-west-1 because it has deletion protection "
                   "enabled. Disable deletion protection first.");
    assert_int_equal(fixture_do(&f, 1, fixture_op(&f, OP_DELETE_TABLE, "tbl")), API_VALIDATION);
    /* The source of a young replica stays, from both sides, until a day has passed. */
    static const char source[] =
        "Replica cannot be deleted because it has acted as a source region "
        "for new replica(s) being added to the table in the last 24 hours.";
    expect_refusal(&f, 0, fixture_op(&f, OP_DELETE_TABLE, "tbl"), API_VALIDATION, source);
    expect_refusal(&f, 1, fixture_replica(&f, "tbl", false, "us-east-1"), API_VALIDATION, source);
    f.wall_ms += (uint64_t)24 * 3600 * 1000;
    assert_int_equal(fixture_do(&f, 1, fixture_replica(&f, "tbl", false, "us-east-1")), API_OK);
    fixture_advance(&f, 1000);
    assert_null(fixture_table(&f, 0, "tbl"));
    assert_int_equal(fixture_table(&f, 1, "tbl")->replica_count, 0);
    fixture_deinit(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_of_shape),
        cmocka_unit_test(refusals_of_regions),
        cmocka_unit_test(refusals_of_strong_forms),
        cmocka_unit_test(refusals_of_members),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
