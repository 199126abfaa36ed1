/* SPDX-License-Identifier: Apache-2.0 */
/* The control plane's requests. What can be refused without looking at any table is refused here;
 * what depends on the table, its replicas or this Region is control.c's to refuse. */

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "region/api/api_internal.h"

#define INVALID "One or more parameter values were invalid: "
#define NO_INDEXES                                                                                 \
    INVALID "Secondary indexes are not available in this version of Tidemark. Create the table "   \
            "without "

static const uint64_t UNITS_MAX = 1000000000000;

static uint64_t read_units(const json_t *throughput, const char *name)
{
    double real = json_number_value(json_member(throughput, name));
    return real >= 1e18 ? (uint64_t)1e18 : real < 0 ? 0 : (uint64_t)real;
}

static bool read_throughput(struct request *request, bool creates)
{
    struct op *op = request->op;
    struct op_control *control = op->control;
    json_t *mode = json_member(request->body, "BillingMode");
    json_t *throughput = json_member(request->body, "ProvisionedThroughput");
    control->billing_given = mode != NULL;
    control->billing = request_is(request, "BillingMode", "PAY_PER_REQUEST")
                           ? BILLING_PAY_PER_REQUEST
                           : BILLING_PROVISIONED;
    control->throughput_given = throughput != NULL;
    if (mode && control->billing == BILLING_PAY_PER_REQUEST && throughput)
        return request_refuse(request,
                              INVALID "Neither ReadCapacityUnits nor WriteCapacityUnits can be "
                                      "specified when BillingMode is PAY_PER_REQUEST");
    if ((creates || mode) && control->billing == BILLING_PROVISIONED && !throughput)
        return request_refuse(request,
                              INVALID "ReadCapacityUnits and WriteCapacityUnits must both be "
                                      "specified when BillingMode is PROVISIONED");
    if (!throughput)
        return true;
    control->read_units = read_units(throughput, "ReadCapacityUnits");
    control->write_units = read_units(throughput, "WriteCapacityUnits");
    if (control->read_units > UNITS_MAX)
        return op_fail(op, API_VALIDATION,
                       "Given value %llu for ReadCapacityUnits is out of bounds",
                       (unsigned long long)control->read_units);
    if (control->write_units > UNITS_MAX)
        return op_fail(op, API_VALIDATION,
                       "Given value %llu for WriteCapacityUnits is out of bounds",
                       (unsigned long long)control->write_units);
    return true;
}

static enum stream_view stream_view_of(const json_t *specification)
{
    json_t *view = json_member(specification, "StreamViewType");
    if (!view)
        return STREAM_NONE;
    struct bytes text = json_text(view);
    return bytes_is(text, "KEYS_ONLY")   ? STREAM_KEYS_ONLY
           : bytes_is(text, "NEW_IMAGE") ? STREAM_NEW_IMAGE
           : bytes_is(text, "OLD_IMAGE") ? STREAM_OLD_IMAGE
                                         : STREAM_BOTH;
}

static bool read_stream(struct request *request)
{
    struct op_control *control = request->op->control;
    json_t *stream = json_member(request->body, "StreamSpecification");
    if (!stream)
        return true;
    control->stream_given = true;
    control->stream_enabled = json_is_true(json_member(stream, "StreamEnabled"));
    control->stream = stream_view_of(stream);
    if (control->stream_enabled && control->stream == STREAM_NONE)
        return request_refuse(request, INVALID
                              "StreamViewType must be specified when StreamEnabled is true");
    if (!control->stream_enabled && control->stream != STREAM_NONE)
        return request_refuse(request, INVALID
                              "StreamViewType cannot be specified when StreamEnabled is false");
    return true;
}

static void read_settings(struct request *request)
{
    struct op_control *control = request->op->control;
    control->protection_given = json_member(request->body, "DeletionProtectionEnabled");
    control->protection = request_flag(request, "DeletionProtectionEnabled", false);
    control->class_given = json_member(request->body, "TableClass");
    control->class_infrequent = request_is(request, "TableClass", "STANDARD_INFREQUENT_ACCESS");
    json_t *sse = json_member(request->body, "SSESpecification");
    control->sse_given = sse != NULL;
    /* The default of Enabled is true once a specification names a key or a type. */
    json_t *enabled = json_member(sse, "Enabled");
    control->sse_enabled = sse && (enabled ? json_is_true(enabled) : json_object_size(sse) > 0);
}

/* AttributeDefinitions and KeySchema of a CreateTable, by name. */
struct key_members {
    json_t *definitions;
    json_t *schema;
};

static struct bytes member_text(const json_t *object, const char *name)
{
    json_t *member = json_member(object, name);
    return member ? json_text(member) : BYTES_NONE;
}

static const json_t *find_definition(const json_t *definitions, struct bytes name)
{
    size_t i;
    json_t *definition;
    json_array_foreach(definitions, i, definition)
    {
        if (bytes_equal(member_text(definition, "AttributeName"), name))
            return definition;
    }
    return NULL;
}

static void list_names(struct buf *to, const json_t *list)
{
    size_t i;
    json_t *element;
    json_array_foreach(list, i, element)
    {
        if (i > 0)
            buf_append_text(to, ", ");
        if (i == 16) {
            buf_append_text(to, "...");
            return;
        }
        buf_append_bytes(to, member_text(element, "AttributeName"));
    }
}

static bool refuse_undefined(struct request *request, const struct key_members *members)
{
    struct buf message cleanup(buf_deinit);
    buf_init(&message);
    buf_append_text(&message, INVALID "Some index key attributes are not defined in "
                                      "AttributeDefinitions. Keys: [");
    list_names(&message, members->schema);
    buf_append_text(&message, "], AttributeDefinitions: [");
    list_names(&message, members->definitions);
    buf_append_text(&message, "]");
    return request_refuse(request, bytes_copy_text(request->arena, buf_view(&message)));
}

static bool check_schema(struct request *request, const struct key_members *members)
{
    size_t count = json_array_size(members->schema);
    json_t *first = json_array_get(members->schema, 0);
    json_t *second = json_array_get(members->schema, 1);
    if (count > json_array_size(members->definitions))
        return request_refuse(request,
                              "Invalid KeySchema: Some index key attribute have no definition");
    if (!find_definition(members->definitions, member_text(first, "AttributeName")) ||
        (second && !find_definition(members->definitions, member_text(second, "AttributeName"))))
        return refuse_undefined(request, members);
    if (second &&
        bytes_equal(member_text(first, "AttributeName"), member_text(second, "AttributeName")))
        return request_refuse(
            request,
            "Both the Hash Key and the Range Key element in the KeySchema have the same name");
    if (!bytes_is(member_text(first, "KeyType"), "HASH"))
        return request_refuse(
            request, "Invalid KeySchema: The first KeySchemaElement is not a HASH key type");
    if (second && !bytes_is(member_text(second, "KeyType"), "RANGE"))
        return request_refuse(
            request, "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type");
    return true;
}

static void read_key_attribute(const struct key_members *members, size_t index, char *name,
                               enum value_type *ret)
{
    struct bytes text = member_text(json_array_get(members->schema, index), "AttributeName");
    check(text.len <= TABLE_KEY_NAME_MAX); /* the table of shapes bounds it */
    memcpy(name, text.at, text.len);
    name[text.len] = 0;
    struct bytes type = member_text(find_definition(members->definitions, text), "AttributeType");
    *ret = bytes_is(type, "N") ? VALUE_N : bytes_is(type, "B") ? VALUE_B : VALUE_S;
}

static bool read_schema(struct request *request)
{
    struct key_schema *key = &request->op->control->key;
    struct key_members members = {json_member(request->body, "AttributeDefinitions"),
                                  json_member(request->body, "KeySchema")};
    size_t i;
    json_t *element;
    json_array_foreach(members.schema, i, element)
    {
        struct bytes name = member_text(element, "AttributeName");
        if (name.len == 0 || memchr(name.at, 0, name.len))
            return request_refuse(request, "Invalid KeySchema: an attribute has no proper name");
    }
    if (!check_schema(request, &members))
        return false;
    read_key_attribute(&members, 0, key->hash_name, &key->hash_type);
    key->has_range = json_array_size(members.schema) == 2;
    if (key->has_range)
        read_key_attribute(&members, 1, key->range_name, &key->range_type);
    return true;
}

static bool parse_create_table(struct request *request)
{
    struct op_control *control = request->op->control;
    if (!read_throughput(request, true) || !read_schema(request))
        return false;
    if (json_member(request->body, "LocalSecondaryIndexes"))
        return request_refuse(request, NO_INDEXES "LocalSecondaryIndexes.");
    if (json_member(request->body, "GlobalSecondaryIndexes"))
        return request_refuse(request, NO_INDEXES "GlobalSecondaryIndexes.");
    if (json_array_size(json_member(request->body, "AttributeDefinitions")) !=
        (control->key.has_range ? 2U : 1U))
        return request_refuse(request,
                              INVALID "Number of attributes in KeySchema does not exactly match "
                                      "number of attributes defined in AttributeDefinitions");
    if (json_member(request->body, "GlobalTableSourceArn"))
        return request_refuse(request, INVALID "Global tables of several accounts are not "
                                               "available in this version of Tidemark.");
    if (!read_stream(request))
        return false;
    read_settings(request);
    return true;
}

static void parse_replica_update(struct request *request, const json_t *json,
                                 struct op_replica_update *ret)
{
    json_t *create = json_member(json, "Create");
    json_t *update = json_member(json, "Update");
    json_t *delete = json_member(json, "Delete");
    *ret = (struct op_replica_update){.kind = create   ? REPLICA_UPDATE_CREATE
                                              : update ? REPLICA_UPDATE_UPDATE
                                              : delete ? REPLICA_UPDATE_DELETE
                                                       : REPLICA_UPDATE_EMPTY};
    ret->several_kinds = (create != NULL) + (update != NULL) + (delete != NULL) > 1;
    const json_t *action = create ? create : update ? update : delete;
    if (!action)
        return;
    ret->region = json_copy_text(request->arena, json_member(action, "RegionName"));
    ret->throughput_override = json_member(action, "ProvisionedThroughputOverride");
    uint32_t others = 0;
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)(uintptr_t)action, name, member) others +=
        !json_is_null(member) && strcmp(name, "RegionName") != 0;
    ret->only_region = update && others == 0;
}

static struct op_replica_update *read_replica_updates(struct request *request, const char *name,
                                                      bool *given, uint32_t *count)
{
    json_t *list = json_member(request->body, name);
    *given = list != NULL;
    *count = (uint32_t)json_array_size(list);
    if (*count == 0)
        return NULL;
    struct op_replica_update *updates =
        arena_array(request->arena, struct op_replica_update, *count);
    for (uint32_t i = 0; i < *count; i++)
        parse_replica_update(request, json_array_get(list, i), &updates[i]);
    return updates;
}

/* Creations are refused; the rest names indexes that no table has, which control.c answers. */
static bool read_index_updates(struct request *request)
{
    json_t *list = json_member(request->body, "GlobalSecondaryIndexUpdates");
    request->op->control->index_updates_given = json_array_size(list) > 0;
    size_t i;
    json_t *update;
    json_array_foreach(list, i, update)
    {
        if (json_member(update, "Create"))
            return request_refuse(request, INVALID "Secondary indexes are not available in this "
                                                   "version of Tidemark.");
        if (!json_member(update, "Update") && !json_member(update, "Delete"))
            return request_refuse(request,
                                  INVALID "One of GlobalSecondaryIndexUpdate.Update, "
                                          "GlobalSecondaryIndexUpdate.Create, "
                                          "GlobalSecondaryIndexUpdate.Delete must not be null");
    }
    return true;
}

/* Members that AWS lists when an UpdateTable changes nothing; those that are there drop out. */
static bool refuse_no_change(struct request *request)
{
    static const struct {
        const char *listed, *member;
    } changes[] = {{"ProvisionedThroughput", NULL},
                   {"BillingMode", NULL},
                   {"UpdateStreamEnabled", NULL},
                   {"GlobalSecondaryIndexUpdates", "GlobalSecondaryIndexUpdates"},
                   {"SSESpecification", NULL},
                   {"ReplicaUpdates", NULL},
                   {"MultiAccountReplicaReady", NULL},
                   {"ReplicaTransitRoleArn", NULL},
                   {"MultiRegionConsistency", "MultiRegionConsistency"},
                   {"DeletionProtectionEnabled", NULL},
                   {"OnDemandThroughput", NULL},
                   {"WarmThroughput", NULL}};
    struct buf message cleanup(buf_deinit);
    buf_init(&message);
    buf_append_text(&message, "At least one of ");
    bool first = true;
    for (size_t i = 0; i < array_len(changes); i++) {
        if (changes[i].member && json_member(request->body, changes[i].member))
            continue;
        if (!first)
            buf_append_text(&message, ", ");
        buf_append_text(&message, changes[i].listed);
        first = false;
    }
    buf_append_text(&message, " or TableClass is required");
    return request_refuse(request, bytes_copy_text(request->arena, buf_view(&message)));
}

static bool parse_update_table(struct request *request)
{
    struct op_control *control = request->op->control;
    if (!read_throughput(request, false) || !read_stream(request) || !read_index_updates(request))
        return false;
    read_settings(request);
    control->other_given = json_member(request->body, "OnDemandThroughput") ||
                           json_member(request->body, "WarmThroughput") ||
                           json_member(request->body, "GlobalTableSettingsReplicationMode") ||
                           json_member(request->body, "DisassociationProtectionEnabled");
    control->settings_overrides =
        request_is(request, "GlobalTableSettingsReplicationMode", "ENABLED_WITH_OVERRIDES");
    control->consistency_given = json_member(request->body, "MultiRegionConsistency");
    control->consistency_strong = request_is(request, "MultiRegionConsistency", "STRONG");
    control->replicas = read_replica_updates(request, "ReplicaUpdates", &control->replicas_given,
                                             &control->replica_count);
    control->witnesses = read_replica_updates(request, "GlobalTableWitnessUpdates",
                                              &control->witnesses_given, &control->witness_count);
    if (!control->billing_given && !control->throughput_given && !control->stream_given &&
        !control->protection_given && !control->class_given && !control->sse_given &&
        !control->index_updates_given && !control->other_given && !control->replicas_given)
        return refuse_no_change(request);
    return true;
}

static bool parse_list_tables(struct request *request)
{
    struct op_control *control = request->op->control;
    json_t *start = json_member(request->body, "ExclusiveStartTableName");
    if (start)
        control->start_table = json_copy_text(request->arena, start);
    json_t *limit = json_member(request->body, "Limit");
    control->limit = limit ? (uint32_t)json_number_value(limit) : 100;
    return true;
}

/* The version of 2017 is refused by AWS today, for every name; so its operations have fixed
 * answers. */
static bool answer_legacy_global(struct request *request)
{
    struct op *op = request->op;
    json_t *name_member = json_member(request->body, "GlobalTableName");
    struct bytes name = name_member ? json_text(name_member) : BYTES_NONE;
    bool creates = op->kind == OP_CREATE_GLOBAL_TABLE;
    size_t i;
    json_t *update;
    json_array_foreach(json_member(request->body, "ReplicaUpdates"), i, update) creates =
        creates || json_member(update, "Create");
    if (creates)
        return request_refuse(request,
                              INVALID "DynamoDB global tables version 2017.11.29 is not supported. "
                                      "We recommend using DynamoDB global tables version "
                                      "2019.11.21, instead of version 2017.11.29 (Legacy).");
    return op_fail(op, API_GLOBAL_TABLE_NOT_FOUND,
                   "Global table not found: Global table with name: '%.*s' does not exist.",
                   (int)name.len, (const char *)name.at);
}

bool parse_control(struct request *request)
{
    struct op *op = request->op;
    op->control = arena_new(request->arena, struct op_control);
    switch ((int)op->kind) {
    case OP_CREATE_TABLE:
        return request_read_table(request) && parse_create_table(request);
    case OP_UPDATE_TABLE:
        return request_read_table(request) && parse_update_table(request);
    case OP_DESCRIBE_TABLE:
    case OP_DELETE_TABLE:
        return request_read_table(request);
    case OP_LIST_TABLES:
        return parse_list_tables(request);
    case OP_DESCRIBE_LIMITS:
    case OP_DESCRIBE_ENDPOINTS:
    case OP_LIST_GLOBAL_TABLES:
        op->answered = true;
        return true;
    case OP_CREATE_GLOBAL_TABLE:
    case OP_UPDATE_GLOBAL_TABLE:
    case OP_DESCRIBE_GLOBAL_TABLE:
        return answer_legacy_global(request);
    default:
        unreachable();
    }
}
