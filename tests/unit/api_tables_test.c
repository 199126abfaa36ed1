/* SPDX-License-Identifier: Apache-2.0 */
/* The control plane as far as the language goes: what is refused by the request alone, what
 * control.c is handed, and how tables are described. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/lib/language_calls.h"

static int setup(void **state)
{
    struct language *language = language_new();
    struct key_schema hash = {.hash_name = "pk", .hash_type = VALUE_S};
    struct key_schema range = {.hash_name = "pk",
                               .hash_type = VALUE_S,
                               .has_range = true,
                               .range_name = "sk",
                               .range_type = VALUE_S};
    struct key_schema numbers = {.hash_name = "id",
                                 .hash_type = VALUE_N,
                                 .has_range = true,
                                 .range_name = "at",
                                 .range_type = VALUE_B};
    language_add_table(language, "hash", &hash);
    language_add_table(language, "range", &range);
    language_add_table(language, "numbers", &numbers);
    *state = language;
    return 0;
}

static int teardown(void **state)
{
    language_free(*state);
    return 0;
}

static void tables(void **state)
{
#define CREATE(rest) "{\"TableName\":\"fresh\"," rest "}"
#define DEFINE "\"AttributeDefinitions\":[{\"AttributeName\":\"a\",\"AttributeType\":\"S\"}],"
#define SCHEMA "\"KeySchema\":[{\"AttributeName\":\"a\",\"KeyType\":\"HASH\"}]"
#define ON_DEMAND ",\"BillingMode\":\"PAY_PER_REQUEST\""
    static const struct call calls[] = {
        {"CreateTable", CREATE(DEFINE SCHEMA),
         VALIDATION INVALID "ReadCapacityUnits and WriteCapacityUnits must both be specified when "
                            "BillingMode is PROVISIONED\"}"},
        {"CreateTable",
         CREATE(DEFINE SCHEMA ON_DEMAND
                ",\"ProvisionedThroughput\":{\"ReadCapacityUnits\":1,\"WriteCapacityUnits\":1}"),
         VALIDATION INVALID
         "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when "
         "BillingMode is PAY_PER_REQUEST\"}"},
        {"CreateTable",
         CREATE(DEFINE SCHEMA ",\"ProvisionedThroughput\":{\"ReadCapacityUnits\":1000000000001,"
                              "\"WriteCapacityUnits\":1}"),
         VALIDATION "Given value 1000000000001 for ReadCapacityUnits is out of bounds\"}"},
        {"CreateTable",
         CREATE(
             "\"AttributeDefinitions\":[{\"AttributeName\":\"b\",\"AttributeType\":\"S\"}]," SCHEMA
                 ON_DEMAND),
         VALIDATION INVALID "Some index key attributes are not defined in AttributeDefinitions. "
                            "Keys: [a], AttributeDefinitions: [b]\"}"},
        {"CreateTable", CREATE("\"AttributeDefinitions\":[]," SCHEMA ON_DEMAND),
         VALIDATION "Invalid KeySchema: Some index key attribute have no definition\"}"},
        {"CreateTable",
         CREATE("\"AttributeDefinitions\":[{\"AttributeName\":\"a\",\"AttributeType\":\"S\"},{"
                "\"AttributeName\":\"b\",\"AttributeType\":\"N\"}]," SCHEMA ON_DEMAND),
         VALIDATION INVALID "Number of attributes in KeySchema does not exactly match number of "
                            "attributes defined in AttributeDefinitions\"}"},
        {"CreateTable",
         CREATE(DEFINE "\"KeySchema\":[{\"AttributeName\":\"a\",\"KeyType\":\"RANGE\"}]" ON_DEMAND),
         VALIDATION "Invalid KeySchema: The first KeySchemaElement is not a HASH key type\"}"},
        {"CreateTable", CREATE(DEFINE "\"KeySchema\":[null]" ON_DEMAND),
         VALIDATION "Invalid KeySchema: an attribute has no proper name\"}"},
        {"CreateTable",
         CREATE(DEFINE SCHEMA ON_DEMAND
                ",\"GlobalSecondaryIndexes\":[{\"IndexName\":\"gsi\","
                "\"KeySchema\":[{\"AttributeName\":\"a\",\"KeyType\":\"HASH\"}],\"Projection\":{"
                "\"ProjectionType\":\"ALL\"}}]"),
         "~Secondary indexes are not available in this version of Tidemark"},
        {"CreateTable",
         CREATE(DEFINE SCHEMA ON_DEMAND
                ",\"Tags\":[{\"Key\":\"k\",\"Value\":\"v\"}],"
                "\"StreamSpecification\":{\"StreamEnabled\":true,\"StreamViewType\":"
                "\"NEW_AND_OLD_IMAGES\"}"),
         "{\"TableDescription\":{\"AttributeDefinitions\":[{\"AttributeName\":\"a\","
         "\"AttributeType\":\"S\"}],\"KeySchema\":[{\"AttributeName\":\"a\",\"KeyType\":\"HASH\"}],"
         "\"TableName\":\"fresh\",\"TableStatus\":\"ACTIVE\",\"CreationDateTime\":1700000000.123,"
         "\"ProvisionedThroughput\":{\"NumberOfDecreasesToday\":0,\"ReadCapacityUnits\":0,"
         "\"WriteCapacityUnits\":0},\"BillingModeSummary\":{\"BillingMode\":\"PAY_PER_REQUEST\","
         "\"LastUpdateToPayPerRequestDateTime\":1700000000.123},\"TableSizeBytes\":0,\"ItemCount\":"
         "0,\"TableArn\":\"arn:aws:dynamodb:us-east-1:000000000000:table/fresh\",\"TableId\":"
         "\"00112233-4455-6677-8899-aabbccddeeff\",\"StreamSpecification\":{\"StreamEnabled\":true,"
         "\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"},\"DeletionProtectionEnabled\":false,"
         "\"WarmThroughput\":{\"ReadUnitsPerSecond\":12000,\"WriteUnitsPerSecond\":4000,\"Status\":"
         "\"ACTIVE\"}}}"},
    };
    RUN(*state, calls);
}

static void table_calls(void **state)
{
    static const struct call calls[] = {
        {"DescribeTable", "{\"TableName\":\"nope\"}",
         "~Requested resource not found: Table: nope not found"},
        {"ListTables", "{}", "{\"TableNames\":[\"hash\",\"range\",\"numbers\"]}"},
        {"UpdateTable", "{\"TableName\":\"hash\"}",
         VALIDATION "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, "
                    "GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, "
                    "MultiAccountReplicaReady, ReplicaTransitRoleArn, MultiRegionConsistency, "
                    "DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass "
                    "is required\"}"},
        {"UpdateTable", "{\"TableName\":\"hash\",\"MultiRegionConsistency\":\"STRONG\"}",
         "~ReplicaTransitRoleArn, DeletionProtectionEnabled"},
        {"UpdateTable",
         "{\"TableName\":\"hash\",\"GlobalTableWitnessUpdates\":[{\"Delete\":{\"RegionName\":"
         "\"eu-west-2\"}}]}",
         "~At least one of ProvisionedThroughput"},
        {"DescribeLimits", "{}", "~\"TableMaxWriteCapacityUnits\":40000"},
        {"DescribeEndpoints", "{}",
         "{\"Endpoints\":[{\"Address\":\"localhost:8001\",\"CachePeriodInMinutes\":1440}]}"},
        {"CreateGlobalTable", "{\"GlobalTableName\":\"glob\",\"ReplicationGroup\":[]}",
         VALIDATION INVALID
         "DynamoDB global tables version 2017.11.29 is not supported. We recommend using DynamoDB "
         "global tables version 2019.11.21, instead of version 2017.11.29 (Legacy).\"}"},
        {"DescribeGlobalTable", "{\"GlobalTableName\":\"glob\"}",
         "{\"__type\":\"com.amazonaws.dynamodb.v20120810#GlobalTableNotFoundException\","
         "\"message\":"
         "\"Global table not found: Global table with name: 'glob' does not exist.\"}"},
        {"DescribeGlobalTableSettings", "{\"GlobalTableName\":\"glob\"}",
         "~\"message\":\"Global table with name: 'glob' does not exist.\""},
        {"ListGlobalTables", "{}", "{\"GlobalTables\":[]}"},
        {"TransactWriteItems", "{}",
         "{\"__type\":\"com.amazon.coral.service#UnknownOperationException\",\"message\":"
         "\"TransactWriteItems is not available in this version of Tidemark.\"}"},
        {"Frobnicate", "{}", "{\"__type\":\"com.amazon.coral.service#UnknownOperationException\"}"},
    };
    RUN(*state, calls);
}

static void constraints_are_reported_together(void **state)
{
    static const struct call calls[] = {
        {"PutItem", "{}",
         VALIDATION "2 validation errors detected: Value null at 'tableName' failed to satisfy "
                    "constraint: Member must not be null; Value null at 'item' failed to satisfy "
                    "constraint: Member must not be null\"}"},
        {"PutItem", "{\"TableName\":\"a;\"}",
         VALIDATION "3 validation errors detected: Value 'a;' at 'tableName' failed to satisfy "
                    "constraint: Member must satisfy regular expression pattern: "
                    "[a-zA-Z0-9_.-]+; Value 'a;' at 'tableName' failed to satisfy constraint: "
                    "Member must have length greater than or equal to 3; Value null at 'item' "
                    "failed to satisfy constraint: Member must not be null\"}"},
        {"PutItem",
         "{\"TableName\":\"abc;\",\"ReturnConsumedCapacity\":\"hi\","
         "\"ReturnItemCollectionMetrics\":"
         "\"hi\",\"ReturnValues\":\"hi\"}",
         VALIDATION
         "5 validation errors detected: Value 'hi' at 'returnConsumedCapacity' failed to satisfy "
         "constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]; Value 'abc;' at "
         "'tableName' failed to satisfy constraint: Member must satisfy regular expression "
         "pattern: [a-zA-Z0-9_.-]+; Value null at 'item' failed to satisfy constraint: Member must "
         "not be null; Value 'hi' at 'returnValues' failed to satisfy constraint: Member must "
         "satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]; Value 'hi' "
         "at 'returnItemCollectionMetrics' failed to satisfy constraint: Member must satisfy enum "
         "value set: [SIZE, NONE]\"}"},
        {"Query",
         "{\"TableName\":\"abc\",\"Limit\":-1,\"AttributesToGet\":[],\"KeyConditions\":{\"b\":{"
         "\"ComparisonOperator\":\"\"}}}",
         VALIDATION
         "3 validation errors detected: Value '-1' at 'limit' failed to satisfy constraint: Member "
         "must have value greater than or equal to 1; Value '' at "
         "'keyConditions.b.member.comparisonOperator' failed to satisfy constraint: Member must "
         "satisfy enum value set: [IN, NULL, BETWEEN, LT, NOT_CONTAINS, EQ, GT, NOT_NULL, NE, LE, "
         "BEGINS_WITH, GE, CONTAINS]; Value '[]' at 'attributesToGet' failed to satisfy "
         "constraint: Member must have length greater than or equal to 1\"}"},
    };
    RUN(*state, calls);
}

static void constraints_reach_into_lists_and_maps(void **state)
{
    static const struct call calls[] = {
        {"CreateTable",
         "{\"TableName\":\"abc\",\"AttributeDefinitions\":[{}],\"KeySchema\":[{\"AttributeName\":"
         "\"a\",\"KeyType\":\"Woop\"}],\"ProvisionedThroughput\":{\"ReadCapacityUnits\":-1,"
         "\"WriteCapacityUnits\":1}}",
         VALIDATION
         "4 validation errors detected: Value null at "
         "'attributeDefinitions.1.member.attributeName' "
         "failed to satisfy constraint: Member must not be null; Value null at "
         "'attributeDefinitions.1.member.attributeType' failed to satisfy constraint: Member must "
         "not be null; Value '-1' at 'provisionedThroughput.readCapacityUnits' failed to satisfy "
         "constraint: Member must have value greater than or equal to 1; Value 'Woop' at "
         "'keySchema.1.member.keyType' failed to satisfy constraint: Member must satisfy enum "
         "value set: [HASH, RANGE]\"}"},
        {"BatchGetItem", "{\"RequestItems\":{}}",
         VALIDATION "1 validation error detected: Value '{}' at 'requestItems' failed to satisfy "
                    "constraint: Member must have length greater than or equal to 1\"}"},
        {"BatchGetItem", "{\"RequestItems\":{\"a\":{\"Keys\":[]}}}",
         "~at 'requestItems' failed to satisfy constraint: Map keys must satisfy constraint: "
         "[Member must have length less than or equal to 255, Member must have length greater than "
         "or equal to 3, Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+]; Value "
         "'[]' at 'requestItems.a.member.keys' failed to satisfy constraint: Member must have "
         "length greater than or equal to 1"},
        {"BatchWriteItem", "{\"RequestItems\":{\"abc\":[]}}",
         VALIDATION
         "1 validation error detected: Value '{\\\"abc\\\":[]}' at 'requestItems' failed "
         "to satisfy constraint: Map value must satisfy constraint: [Member must have "
         "length less than or equal to 25, Member must have length greater than or "
         "equal to 1]\"}"},
        {"Scan", "{\"TableName\":\"abc\",\"TotalSegments\":1000001,\"Segment\":-1}",
         "~2 validation errors detected: Value '1000001' at 'totalSegments' failed to satisfy "
         "constraint: Member must have value less than or equal to 1000000; Value '-1' at "
         "'segment'"},
        {"UpdateTable",
         "{\"TableName\":\"abc\",\"GlobalTableWitnessUpdates\":[{\"Create\":{\"RegionName\":\"a\"}}"
         ","
         "{\"Create\":{\"RegionName\":\"b\"}}]}",
         "~'globalTableWitnessUpdates' failed to satisfy constraint: Member must have length less "
         "than or equal to 1"},
        {"UpdateTable", "{\"TableName\":\"abc\",\"GlobalTableWitnessUpdates\":[{\"Create\":{}}]}",
         "~Value null at 'globalTableWitnessUpdates.1.member.create.regionName' failed to satisfy "
         "constraint: Member must not be null"},
        {"UpdateTable", "{\"TableName\":\"abc\",\"MultiRegionConsistency\":\"WEAK\"}",
         "~Value 'WEAK' at 'multiRegionConsistency' failed to satisfy constraint: Member must "
         "satisfy enum value set: [EVENTUAL, STRONG]"},
    };
    RUN(*state, calls);
}

static void replica_updates_carry_what_control_needs(void **state)
{
    struct language *language = *state;
    language_call(language, "UpdateTable",
                  "{\"TableName\":\"hash\",\"DeletionProtectionEnabled\":true,\"ReplicaUpdates\":[{"
                  "\"Create\":{\"RegionName\":\"eu-west-1\"},\"Delete\":{\"RegionName\":\"x\"}},{"
                  "\"Update\":{\"RegionName\":\"y\"}},{\"Update\":{\"RegionName\":\"z\","
                  "\"TableClassOverride\":\"STANDARD\",\"ProvisionedThroughputOverride\":{}}},{}],"
                  "\"GlobalSecondaryIndexUpdates\":[{\"Delete\":{\"IndexName\":\"nope\"}}]}");
    const struct op_control *control = language->op->control;
    assert_true(control->replicas_given);
    assert_true(control->protection_given);
    assert_true(control->protection);
    assert_true(control->index_updates_given);
    assert_int_equal(control->replica_count, 4);
    assert_int_equal(control->replicas[0].kind, REPLICA_UPDATE_CREATE);
    assert_true(control->replicas[0].several_kinds);
    assert_true(bytes_is(control->replicas[0].region, "eu-west-1"));
    assert_true(control->replicas[1].only_region);
    assert_false(control->replicas[2].only_region);
    assert_true(control->replicas[2].throughput_override);
    assert_int_equal(control->replicas[3].kind, REPLICA_UPDATE_EMPTY);
    language_call(
        language, "UpdateTable",
        "{\"TableName\":\"hash\",\"MultiRegionConsistency\":\"STRONG\",\"ReplicaUpdates\":"
        "[{\"Create\":{\"RegionName\":\"eu-west-1\"}}],\"GlobalTableWitnessUpdates\":"
        "[{\"Create\":{\"RegionName\":\"eu-west-2\"}}]}");
    control = language->op->control;
    assert_true(control->consistency_given);
    assert_true(control->consistency_strong);
    assert_true(control->witnesses_given);
    assert_int_equal(control->witness_count, 1);
    assert_int_equal(control->witnesses[0].kind, REPLICA_UPDATE_CREATE);
    assert_true(bytes_is(control->witnesses[0].region, "eu-west-2"));
    language_call(language, "UpdateTable",
                  "{\"TableName\":\"hash\",\"ReplicaUpdates\":"
                  "[{\"Delete\":{\"RegionName\":\"eu-west-1\"}}],\"GlobalTableWitnessUpdates\":"
                  "[{\"Delete\":{\"RegionName\":\"eu-west-2\"}}]}");
    control = language->op->control;
    assert_false(control->consistency_given);
    assert_int_equal(control->witnesses[0].kind, REPLICA_UPDATE_DELETE);
}

static void global_tables_are_described(void **state)
{
    struct language *language = *state;
    struct table *table = language_find(language, bytes_literal("hash"));
    table->mode = TABLE_EVENTUAL;
    table->stream = STREAM_BOTH;
    table->stream_wall_ms = 1709210096789; /* a leap day: 29 February 2024, 12:34:56.789 */
    table->replicas[0] = (struct table_replica){9, REPLICA_CREATING};
    table->replicas[1] = (struct table_replica){17, REPLICA_ACTIVE};
    table->replica_count = 2;
    const char *answer = language_call(language, "DescribeTable", "{\"TableName\":\"hash\"}");
    assert_non_null(strstr(answer, "\"GlobalTableVersion\":\"2019.11.21\",\"Replicas\":[{"
                                   "\"RegionName\":\"eu-west-1\",\"ReplicaStatus\":\"CREATING\""));
    assert_non_null(
        strstr(answer, "\"RegionName\":\"ap-northeast-1\",\"ReplicaStatus\":\"ACTIVE\""));
    assert_non_null(strstr(answer, "table/hash/stream/2024-02-29T12:34:56.789\""));
    assert_null(strstr(answer, "us-east-1\",\"ReplicaStatus"));
    assert_null(strstr(answer, "MultiRegionConsistency"));
    table->mode = TABLE_STRONG;
    answer = language_call(language, "DescribeTable", "{\"TableName\":\"hash\"}");
    assert_non_null(strstr(answer, "\"MultiRegionConsistency\":\"STRONG\""));
    assert_null(strstr(answer, "GlobalTableWitnesses"));
    table->replica_count = 1;
    table->witness = 17;
    table->witness_status = REPLICA_ACTIVE;
    answer = language_call(language, "DescribeTable", "{\"TableName\":\"hash\"}");
    assert_non_null(strstr(answer, "\"GlobalTableWitnesses\":[{\"RegionName\":\"ap-northeast-1\","
                                   "\"WitnessStatus\":\"ACTIVE\"}]"));
    assert_null(strstr(answer, "\"RegionName\":\"ap-northeast-1\",\"ReplicaStatus\""));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(tables),
        TEST(table_calls),
        TEST(constraints_are_reported_together),
        TEST(constraints_reach_into_lists_and_maps),
        TEST(replica_updates_carry_what_control_needs),
        TEST(global_tables_are_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
