/* SPDX-License-Identifier: Apache-2.0 */
/* Every operation's request, in the order in which AWS reports the faults of its members. Data
 * only; shapes.h says how it is read. */

#include "conflict/base/check.h"
#include "region/api/shapes.h"

#define MEMBERS(name) static const struct shape_member name[]
#define STRUCT(name, class, list)                                                                  \
    static const struct shape name = {.kind = SHAPE_STRUCT, .class_name = class, .members = list}
#define LIST(name, of) static const struct shape name = {.kind = SHAPE_LIST, .element = &(of)}
#define LIST_BOUNDED(name, of, low, high)                                                          \
    static const struct shape name = {.kind = SHAPE_LIST,                                          \
                                      .element = &(of),                                            \
                                      .min_given = true,                                           \
                                      .min = low,                                                  \
                                      .max_given = (high) > 0,                                     \
                                      .max = high}
#define MAP(name, class, of)                                                                       \
    static const struct shape name = {.kind = SHAPE_MAP, .class_name = class, .element = &(of)}
#define ENUMERATION(name, ...)                                                                     \
    static const char *const name##_values[] = {__VA_ARGS__, NULL};                                \
    static const struct shape name = {.kind = SHAPE_STRING, .values = name##_values}
#define MODEL "com.amazonaws.dynamodb.v20120810."
#define END                                                                                        \
    {                                                                                              \
        NULL, NULL, false                                                                          \
    }

static const struct shape string = {.kind = SHAPE_STRING};
static const struct shape boolean = {.kind = SHAPE_BOOLEAN};
static const struct shape blob = {.kind = SHAPE_BLOB};
static const struct shape units = {.kind = SHAPE_LONG, .min_given = true, .min = 1};
static const struct shape whole_long = {.kind = SHAPE_LONG};
static const struct shape limit = {.kind = SHAPE_INTEGER, .min_given = true, .min = 1};
static const struct shape list_limit = {
    .kind = SHAPE_INTEGER, .min_given = true, .min = 1, .max_given = true, .max = 100};
static const struct shape segment = {
    .kind = SHAPE_INTEGER, .min_given = true, .min = 0, .max_given = true, .max = 999999};
static const struct shape segments = {
    .kind = SHAPE_INTEGER, .min_given = true, .min = 1, .max_given = true, .max = 1000000};
static const struct shape table_name = {.kind = SHAPE_STRING,
                                        .pattern = PATTERN_NAME_OR_ARN,
                                        .min_given = true,
                                        .min = TABLE_NAME_MIN,
                                        .max_given = true,
                                        .max = TABLE_NAME_MAX};
static const struct shape plain_name = {.kind = SHAPE_STRING,
                                        .pattern = PATTERN_NAME,
                                        .min_given = true,
                                        .min = TABLE_NAME_MIN,
                                        .max_given = true,
                                        .max = TABLE_NAME_MAX};
static const struct shape key_name = {.kind = SHAPE_STRING,
                                      .min_given = true,
                                      .min = 1,
                                      .max_given = true,
                                      .max = TABLE_KEY_NAME_MAX};

ENUMERATION(return_capacity, "INDEXES", "TOTAL", "NONE");
ENUMERATION(return_metrics, "SIZE", "NONE");
ENUMERATION(return_values, "ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW");
ENUMERATION(return_on_failure, "ALL_OLD", "NONE");
ENUMERATION(conditional_operator, "OR", "AND");
ENUMERATION(comparison, "IN", "NULL", "BETWEEN", "LT", "NOT_CONTAINS", "EQ", "GT", "NOT_NULL", "NE",
            "LE", "BEGINS_WITH", "GE", "CONTAINS");
ENUMERATION(selection, "SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES",
            "ALL_PROJECTED_ATTRIBUTES");
ENUMERATION(update_action, "ADD", "PUT", "DELETE");
ENUMERATION(attribute_type, "B", "N", "S");
ENUMERATION(key_type, "HASH", "RANGE");
ENUMERATION(billing_mode, "PROVISIONED", "PAY_PER_REQUEST");
ENUMERATION(stream_view, "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES", "KEYS_ONLY");
ENUMERATION(table_class, "STANDARD", "STANDARD_INFREQUENT_ACCESS");
ENUMERATION(consistency, "EVENTUAL", "STRONG");
ENUMERATION(sse_type, "AES256", "KMS");
ENUMERATION(settings_mode, "ENABLED", "DISABLED", "ENABLED_WITH_OVERRIDES");
ENUMERATION(projection_type, "ALL", "INCLUDE", "KEYS_ONLY");

/* AttributeValue. A list and a map of values lead back to it. */
extern const struct shape api_shape_value;
LIST(value_list, api_shape_value);
MAP(value_map, MODEL "AttributeValue", api_shape_value);
LIST(string_list, string);
LIST(blob_list, blob);
MEMBERS(value_members) = {{"S", &string, false},
                          {"N", &string, false},
                          {"B", &blob, false},
                          {"SS", &string_list, false},
                          {"NS", &string_list, false},
                          {"BS", &blob_list, false},
                          {"M", &value_map, false},
                          {"L", &value_list, false},
                          {"NULL", &boolean, false},
                          {"BOOL", &boolean, false},
                          END};
const struct shape api_shape_value = {
    .kind = SHAPE_VALUE, .class_name = "AttributeValue", .members = value_members};

LIST_BOUNDED(attribute_names, string, 1, 255);
MAP(name_map, "java.lang.String", string);

MEMBERS(expected_members) = {{"AttributeValueList", &value_list, false},
                             {"ComparisonOperator", &comparison, false},
                             {"Exists", &boolean, false},
                             {"Value", &api_shape_value, false},
                             END};
STRUCT(expected_value, "ExpectedAttributeValue", expected_members);
MAP(expected, MODEL "ExpectedAttributeValue", expected_value);

MEMBERS(condition_members) = {
    {"AttributeValueList", &value_list, false}, {"ComparisonOperator", &comparison, true}, END};
STRUCT(condition, "Condition", condition_members);
MAP(conditions, MODEL "Condition", condition);

MEMBERS(attribute_update_members) = {
    {"Action", &update_action, false}, {"Value", &api_shape_value, false}, END};
STRUCT(attribute_update, "AttributeValueUpdate", attribute_update_members);
MAP(attribute_updates, MODEL "AttributeValueUpdate", attribute_update);

MEMBERS(get_item_members) = {{"ReturnConsumedCapacity", &return_capacity, false},
                             {"AttributesToGet", &attribute_names, false},
                             {"TableName", &table_name, true},
                             {"Key", &value_map, true},
                             {"ConsistentRead", &boolean, false},
                             {"ProjectionExpression", &string, false},
                             {"ExpressionAttributeNames", &name_map, false},
                             END};
STRUCT(get_item, "GetItemInput", get_item_members);

MEMBERS(put_item_members) = {{"ReturnConsumedCapacity", &return_capacity, false},
                             {"TableName", &table_name, true},
                             {"Item", &value_map, true},
                             {"Expected", &expected, false},
                             {"ConditionalOperator", &conditional_operator, false},
                             {"ReturnValues", &return_values, false},
                             {"ReturnItemCollectionMetrics", &return_metrics, false},
                             {"ReturnValuesOnConditionCheckFailure", &return_on_failure, false},
                             {"ConditionExpression", &string, false},
                             {"ExpressionAttributeNames", &name_map, false},
                             {"ExpressionAttributeValues", &value_map, false},
                             END};
STRUCT(put_item, "PutItemInput", put_item_members);

MEMBERS(delete_item_members) = {{"ReturnConsumedCapacity", &return_capacity, false},
                                {"TableName", &table_name, true},
                                {"Key", &value_map, true},
                                {"Expected", &expected, false},
                                {"ConditionalOperator", &conditional_operator, false},
                                {"ReturnValues", &return_values, false},
                                {"ReturnItemCollectionMetrics", &return_metrics, false},
                                {"ReturnValuesOnConditionCheckFailure", &return_on_failure, false},
                                {"ConditionExpression", &string, false},
                                {"ExpressionAttributeNames", &name_map, false},
                                {"ExpressionAttributeValues", &value_map, false},
                                END};
STRUCT(delete_item, "DeleteItemInput", delete_item_members);

MEMBERS(update_item_members) = {{"ReturnConsumedCapacity", &return_capacity, false},
                                {"TableName", &table_name, true},
                                {"ReturnItemCollectionMetrics", &return_metrics, false},
                                {"ReturnValues", &return_values, false},
                                {"Key", &value_map, true},
                                {"ConditionalOperator", &conditional_operator, false},
                                {"Expected", &expected, false},
                                {"AttributeUpdates", &attribute_updates, false},
                                {"ReturnValuesOnConditionCheckFailure", &return_on_failure, false},
                                {"ConditionExpression", &string, false},
                                {"UpdateExpression", &string, false},
                                {"ExpressionAttributeValues", &value_map, false},
                                {"ExpressionAttributeNames", &name_map, false},
                                END};
STRUCT(update_item, "UpdateItemInput", update_item_members);

MEMBERS(query_members) = {{"Limit", &limit, false},
                          {"ExclusiveStartKey", &value_map, false},
                          {"KeyConditions", &conditions, false},
                          {"ReturnConsumedCapacity", &return_capacity, false},
                          {"QueryFilter", &conditions, false},
                          {"AttributesToGet", &attribute_names, false},
                          {"TableName", &table_name, true},
                          {"Select", &selection, false},
                          {"ConditionalOperator", &conditional_operator, false},
                          {"IndexName", &plain_name, false},
                          {"ConsistentRead", &boolean, false},
                          {"ScanIndexForward", &boolean, false},
                          {"FilterExpression", &string, false},
                          {"KeyConditionExpression", &string, false},
                          {"ProjectionExpression", &string, false},
                          {"ExpressionAttributeValues", &value_map, false},
                          {"ExpressionAttributeNames", &name_map, false},
                          END};
STRUCT(query, "QueryInput", query_members);

MEMBERS(scan_members) = {{"Limit", &limit, false},
                         {"TotalSegments", &segments, false},
                         {"ReturnConsumedCapacity", &return_capacity, false},
                         {"AttributesToGet", &attribute_names, false},
                         {"Select", &selection, false},
                         {"TableName", &table_name, true},
                         {"ExclusiveStartKey", &value_map, false},
                         {"Segment", &segment, false},
                         {"ScanFilter", &conditions, false},
                         {"ConditionalOperator", &conditional_operator, false},
                         {"IndexName", &plain_name, false},
                         {"ConsistentRead", &boolean, false},
                         {"FilterExpression", &string, false},
                         {"ProjectionExpression", &string, false},
                         {"ExpressionAttributeValues", &value_map, false},
                         {"ExpressionAttributeNames", &name_map, false},
                         END};
STRUCT(scan, "ScanInput", scan_members);

LIST_BOUNDED(batch_keys, value_map, 1, BATCH_GET_MAX);
MEMBERS(keys_members) = {{"Keys", &batch_keys, true},
                         {"AttributesToGet", &attribute_names, false},
                         {"ConsistentRead", &boolean, false},
                         {"ProjectionExpression", &string, false},
                         {"ExpressionAttributeNames", &name_map, false},
                         END};
STRUCT(keys_and_attributes, "KeysAndAttributes", keys_members);
static const struct shape batch_get_map = {.kind = SHAPE_MAP,
                                           .class_name = MODEL "KeysAndAttributes",
                                           .element = &keys_and_attributes,
                                           .key = &table_name,
                                           .min_given = true,
                                           .min = 1};
MEMBERS(batch_get_members) = {{"ReturnConsumedCapacity", &return_capacity, false},
                              {"RequestItems", &batch_get_map, true},
                              END};
STRUCT(batch_get, "BatchGetItemInput", batch_get_members);

MEMBERS(put_request_members) = {{"Item", &value_map, true}, END};
MEMBERS(delete_request_members) = {{"Key", &value_map, true}, END};
STRUCT(put_request, "PutRequest", put_request_members);
STRUCT(delete_request, "DeleteRequest", delete_request_members);
MEMBERS(write_members) = {
    {"DeleteRequest", &delete_request, false}, {"PutRequest", &put_request, false}, END};
STRUCT(write_request, "WriteRequest", write_members);
LIST_BOUNDED(write_requests, write_request, 1, BATCH_WRITE_MAX);
static const struct shape batch_write_map = {
    .kind = SHAPE_MAP,
    .class_name = "java.util.List<com.amazonaws.dynamodb.v20120810.WriteRequest>",
    .element = &write_requests,
    .element_together = true,
    .key = &table_name,
    .min_given = true,
    .min = 1};
MEMBERS(batch_write_members) = {{"ReturnConsumedCapacity", &return_capacity, false},
                                {"ReturnItemCollectionMetrics", &return_metrics, false},
                                {"RequestItems", &batch_write_map, true},
                                END};
STRUCT(batch_write, "BatchWriteItemInput", batch_write_members);

MEMBERS(definition_members) = {
    {"AttributeName", &key_name, true}, {"AttributeType", &attribute_type, true}, END};
STRUCT(definition, "AttributeDefinition", definition_members);
LIST(definitions, definition);
MEMBERS(throughput_members) = {
    {"WriteCapacityUnits", &units, true}, {"ReadCapacityUnits", &units, true}, END};
STRUCT(throughput, "ProvisionedThroughput", throughput_members);
MEMBERS(key_element_members) = {
    {"AttributeName", &key_name, true}, {"KeyType", &key_type, true}, END};
STRUCT(key_element, "KeySchemaElement", key_element_members);
LIST_BOUNDED(key_schema, key_element, 1, 2);
MEMBERS(projection_members) = {{"ProjectionType", &projection_type, false},
                               {"NonKeyAttributes", &attribute_names, false},
                               END};
STRUCT(projection, "Projection", projection_members);
MEMBERS(index_members) = {{"IndexName", &plain_name, true},
                          {"KeySchema", &key_schema, true},
                          {"Projection", &projection, true},
                          {"ProvisionedThroughput", &throughput, false},
                          END};
STRUCT(local_index, "LocalSecondaryIndex", index_members);
STRUCT(global_index, "GlobalSecondaryIndex", index_members);
LIST(local_indexes, local_index);
LIST(global_indexes, global_index);
MEMBERS(stream_members) = {
    {"StreamEnabled", &boolean, true}, {"StreamViewType", &stream_view, false}, END};
STRUCT(stream, "StreamSpecification", stream_members);
MEMBERS(sse_members) = {{"Enabled", &boolean, false},
                        {"SSEType", &sse_type, false},
                        {"KMSMasterKeyId", &string, false},
                        END};
STRUCT(sse, "SSESpecification", sse_members);
static const struct shape tag_key = {
    .kind = SHAPE_STRING, .min_given = true, .min = 1, .max_given = true, .max = 128};
static const struct shape tag_value = {
    .kind = SHAPE_STRING, .min_given = true, .min = 0, .max_given = true, .max = 256};
MEMBERS(tag_members) = {{"Key", &tag_key, true}, {"Value", &tag_value, true}, END};
STRUCT(tag, "Tag", tag_members);
LIST(tags, tag);
MEMBERS(on_demand_members) = {
    {"MaxReadRequestUnits", &whole_long, false}, {"MaxWriteRequestUnits", &whole_long, false}, END};
STRUCT(on_demand, "OnDemandThroughput", on_demand_members);
MEMBERS(warm_members) = {
    {"ReadUnitsPerSecond", &units, false}, {"WriteUnitsPerSecond", &units, false}, END};
STRUCT(warm, "WarmThroughput", warm_members);

MEMBERS(create_table_members) = {{"AttributeDefinitions", &definitions, true},
                                 {"TableName", &table_name, true},
                                 {"BillingMode", &billing_mode, false},
                                 {"ProvisionedThroughput", &throughput, false},
                                 {"KeySchema", &key_schema, true},
                                 {"LocalSecondaryIndexes", &local_indexes, false},
                                 {"GlobalSecondaryIndexes", &global_indexes, false},
                                 {"StreamSpecification", &stream, false},
                                 {"SSESpecification", &sse, false},
                                 {"Tags", &tags, false},
                                 {"TableClass", &table_class, false},
                                 {"DeletionProtectionEnabled", &boolean, false},
                                 {"WarmThroughput", &warm, false},
                                 {"ResourcePolicy", &string, false},
                                 {"OnDemandThroughput", &on_demand, false},
                                 {"GlobalTableSourceArn", &string, false},
                                 {"GlobalTableSettingsReplicationMode", &settings_mode, false},
                                 END};
STRUCT(create_table, "CreateTableInput", create_table_members);

MEMBERS(create_index_members) = {{"IndexName", &plain_name, true},
                                 {"KeySchema", &key_schema, true},
                                 {"Projection", &projection, true},
                                 {"ProvisionedThroughput", &throughput, false},
                                 END};
MEMBERS(update_index_members) = {
    {"IndexName", &plain_name, true}, {"ProvisionedThroughput", &throughput, false}, END};
MEMBERS(delete_index_members) = {{"IndexName", &plain_name, true}, END};
STRUCT(create_index, "CreateGlobalSecondaryIndexAction", create_index_members);
STRUCT(update_index, "UpdateGlobalSecondaryIndexAction", update_index_members);
STRUCT(delete_index, "DeleteGlobalSecondaryIndexAction", delete_index_members);
MEMBERS(index_update_members) = {{"Update", &update_index, false},
                                 {"Create", &create_index, false},
                                 {"Delete", &delete_index, false},
                                 END};
STRUCT(index_update, "GlobalSecondaryIndexUpdate", index_update_members);
LIST(index_updates, index_update);

MEMBERS(read_override_members) = {{"ReadCapacityUnits", &units, false}, END};
STRUCT(read_override, "ProvisionedThroughputOverride", read_override_members);
STRUCT(on_demand_override, "OnDemandThroughputOverride", on_demand_members);
MEMBERS(replica_index_members) = {{"IndexName", &plain_name, true},
                                  {"ProvisionedThroughputOverride", &read_override, false},
                                  {"OnDemandThroughputOverride", &on_demand_override, false},
                                  END};
STRUCT(replica_index, "ReplicaGlobalSecondaryIndex", replica_index_members);
LIST_BOUNDED(replica_indexes, replica_index, 1, 0);
MEMBERS(replica_change_members) = {{"RegionName", &string, true},
                                   {"KMSMasterKeyId", &string, false},
                                   {"ProvisionedThroughputOverride", &read_override, false},
                                   {"OnDemandThroughputOverride", &on_demand_override, false},
                                   {"GlobalSecondaryIndexes", &replica_indexes, false},
                                   {"TableClassOverride", &table_class, false},
                                   END};
MEMBERS(region_members) = {{"RegionName", &string, true}, END};
STRUCT(create_replica, "CreateReplicationGroupMemberAction", replica_change_members);
STRUCT(update_replica, "UpdateReplicationGroupMemberAction", replica_change_members);
STRUCT(delete_replica, "DeleteReplicationGroupMemberAction", region_members);
MEMBERS(replica_update_members) = {{"Create", &create_replica, false},
                                   {"Update", &update_replica, false},
                                   {"Delete", &delete_replica, false},
                                   END};
STRUCT(replica_update, "ReplicationGroupUpdate", replica_update_members);
LIST_BOUNDED(replica_updates, replica_update, 1, 0);
STRUCT(create_witness, "CreateGlobalTableWitnessGroupMemberAction", region_members);
STRUCT(delete_witness, "DeleteGlobalTableWitnessGroupMemberAction", region_members);
MEMBERS(witness_update_members) = {
    {"Create", &create_witness, false}, {"Delete", &delete_witness, false}, END};
STRUCT(witness_update, "GlobalTableWitnessGroupUpdate", witness_update_members);
LIST_BOUNDED(witness_updates, witness_update, 1, 1);

MEMBERS(update_table_members) = {{"AttributeDefinitions", &definitions, false},
                                 {"TableName", &table_name, true},
                                 {"BillingMode", &billing_mode, false},
                                 {"ProvisionedThroughput", &throughput, false},
                                 {"GlobalSecondaryIndexUpdates", &index_updates, false},
                                 {"StreamSpecification", &stream, false},
                                 {"SSESpecification", &sse, false},
                                 {"ReplicaUpdates", &replica_updates, false},
                                 {"TableClass", &table_class, false},
                                 {"DeletionProtectionEnabled", &boolean, false},
                                 {"MultiRegionConsistency", &consistency, false},
                                 {"GlobalTableWitnessUpdates", &witness_updates, false},
                                 {"OnDemandThroughput", &on_demand, false},
                                 {"WarmThroughput", &warm, false},
                                 {"GlobalTableSettingsReplicationMode", &settings_mode, false},
                                 {"DisassociationProtectionEnabled", &boolean, false},
                                 END};
STRUCT(update_table, "UpdateTableInput", update_table_members);

MEMBERS(one_table_members) = {{"TableName", &table_name, true}, END};
STRUCT(describe_table, "DescribeTableInput", one_table_members);
STRUCT(delete_table, "DeleteTableInput", one_table_members);
MEMBERS(list_tables_members) = {
    {"ExclusiveStartTableName", &plain_name, false}, {"Limit", &list_limit, false}, END};
STRUCT(list_tables, "ListTablesInput", list_tables_members);
MEMBERS(no_members) = {END};
STRUCT(describe_limits, "DescribeLimitsInput", no_members);
STRUCT(describe_endpoints, "DescribeEndpointsRequest", no_members);

/* The legacy global tables of 2017. Their answers are fixed, so only names are looked at. */
MEMBERS(one_global_table_members) = {{"GlobalTableName", &plain_name, true}, END};
STRUCT(one_global_table, "GlobalTableInput", one_global_table_members);
MEMBERS(list_global_tables_members) = {{"ExclusiveStartGlobalTableName", &plain_name, false},
                                       {"Limit", &limit, false},
                                       {"RegionName", &string, false},
                                       END};
STRUCT(list_global_tables, "ListGlobalTablesInput", list_global_tables_members);

const struct shape *shape_of_request(enum op_kind kind)
{
    switch (kind) {
    case OP_GET_ITEM:
        return &get_item;
    case OP_PUT_ITEM:
        return &put_item;
    case OP_UPDATE_ITEM:
        return &update_item;
    case OP_DELETE_ITEM:
        return &delete_item;
    case OP_QUERY:
        return &query;
    case OP_SCAN:
        return &scan;
    case OP_BATCH_GET_ITEM:
        return &batch_get;
    case OP_BATCH_WRITE_ITEM:
        return &batch_write;
    case OP_CREATE_TABLE:
        return &create_table;
    case OP_DESCRIBE_TABLE:
        return &describe_table;
    case OP_LIST_TABLES:
        return &list_tables;
    case OP_UPDATE_TABLE:
        return &update_table;
    case OP_DELETE_TABLE:
        return &delete_table;
    case OP_DESCRIBE_LIMITS:
        return &describe_limits;
    case OP_DESCRIBE_ENDPOINTS:
        return &describe_endpoints;
    case OP_CREATE_GLOBAL_TABLE:
    case OP_UPDATE_GLOBAL_TABLE:
    case OP_DESCRIBE_GLOBAL_TABLE:
        return &one_global_table;
    case OP_LIST_GLOBAL_TABLES:
        return &list_global_tables;
    case OP_KIND_COUNT:
        break;
    }
    unreachable();
}
