/* SPDX-License-Identifier: Apache-2.0 */
/* CreateTable, DescribeTable, ListTables, UpdateTable and DeleteTable. A change is written before
 * anybody sees it, and the client is answered when it is durable. States move at once: the answer
 * says CREATING, UPDATING or DELETING as AWS's does, and the next DescribeTable the final state,
 * unless other Regions have a part in it. */

#include "conflict/region_id.h"
#include "region/core/region_internal.h"

enum { LIST_TABLES_MAX = 100 };

/* As clients see it. The mode that requests go by is ahead of it while a table becomes strong and
 * that is not durable yet, and while the other members of a dissolved one are leaving. */
static struct table *shown_table(struct op *op, const struct table_state *table)
{
    struct table *shown = arena_copy(op->arena, &table->d.table, sizeof(*shown));
    bool others = shown->replica_count > 0 || shown->witness != 0;
    if (shown->mode == TABLE_STRONG && !strong_setup_runs(&table->d.strong))
        shown->mode = TABLE_REGIONAL;
    else if (shown->mode == TABLE_REGIONAL && others)
        shown->mode = TABLE_STRONG;
    return shown;
}

/* ---- Reading ---- */

static bool name_found(const struct region *region, struct op *op, struct table_state **ret)
{
    struct table_state *table = catalog_find(region, op->table_name);
    if (!table || table->hidden)
        return op_fail(op, API_RESOURCE_NOT_FOUND,
                       "Requested resource not found: Table: %.*s not found",
                       (int)op->table_name.len, (const char *)op->table_name.at);
    *ret = table;
    return true;
}

static void describe_table(struct region *region, struct op *op)
{
    struct table_state *table = NULL;
    if (name_found(region, op, &table))
        op->result.table = shown_table(op, table);
}

static void list_tables(struct region *region, struct op *op)
{
    struct bytes after = op->control ? op->control->start_table : BYTES_NONE;
    uint32_t limit = op->control && op->control->limit > 0 ? op->control->limit : LIST_TABLES_MAX;
    struct op_result *result = &op->result;
    result->names = arena_array(op->arena, struct bytes, limit);
    for (uint32_t i = 0; i < region->named_count; i++) {
        const struct table_state *table = region->tables[i];
        struct bytes name = bytes_text(table->d.table.name);
        if (table->hidden || (after.len > 0 && bytes_compare(name, after) <= 0))
            continue;
        if (result->name_count == limit) {
            result->names_more = true;
            return;
        }
        result->names[result->name_count++] = bytes_copy(op->arena, name);
    }
}

/* ---- CreateTable ---- */

static void describe_new(struct region *region, const struct op *op, struct description *d)
{
    const struct op_control *control = op->control;
    struct table *table = &d->table;
    memcpy(table->name, op->table_name.at, op->table_name.len);
    for (int i = 0; i < TABLE_ID_LEN; i++)
        table->group_id[i] = (uint8_t)rng_next(&region->rng);
    table->key = control->key;
    table->partition_count = region->config.partitions_per_table;
    table->billing = control->billing_given ? control->billing : BILLING_PROVISIONED;
    table->read_units = control->read_units;
    table->write_units = control->write_units;
    table->stream = control->stream_enabled ? control->stream : STREAM_NONE;
    table->sse_enabled = control->sse_enabled;
    d->settings_stamp = group_stamp(region, (struct stamp){0});
    table_prepare(region, d);
    table->deletion_protection = control->protection;
    table->table_class_infrequent = control->class_infrequent;
}

static bool may_create(const struct region *region, struct op *op)
{
    check(op->control != NULL);
    if (op->table_name.len < TABLE_NAME_MIN || op->table_name.len > TABLE_NAME_MAX)
        return op_fail(op, API_VALIDATION,
                       "TableName must be at least 3 characters long and at most 255 characters "
                       "long");
    if (catalog_find(region, op->table_name))
        return op_fail(op, API_RESOURCE_IN_USE, "Table already exists: %.*s",
                       (int)op->table_name.len, (const char *)op->table_name.at);
    if (region->named_count >= region->config.tables_max)
        return op_fail(op, API_LIMIT_EXCEEDED,
                       "Subscriber limit exceeded: There is a limit of %u tables per subscriber",
                       region->config.tables_max);
    return true;
}

static struct request *begin_change(struct region *region, struct op *op, uint64_t token)
{
    struct request *request = request_new(region, op, token, 0);
    request->pending = 1;
    return request;
}

static bool create_table(struct region *region, struct op *op, uint64_t token)
{
    if (!may_create(region, op))
        return false;
    struct description d = {0};
    describe_new(region, op, &d);
    struct table_state *table = catalog_add(region, &d);
    table->hidden = true;
    struct change_op *change = change_new(table);
    change->kind = CHANGE_CREATE;
    change->answer_status = TABLE_CREATING;
    change->request = begin_change(region, op, token);
    change_write(region, change);
    return true;
}

/* ---- UpdateTable ---- */

static bool check_throughput(struct op *op, const struct table *table)
{
    const struct op_control *control = op->control;
    enum billing_mode billing = control->billing_given ? control->billing : table->billing;
    if (billing == BILLING_PAY_PER_REQUEST) {
        if (control->throughput_given)
            return op_fail(op, API_VALIDATION,
                           "One or more parameter values were invalid: Neither ReadCapacityUnits "
                           "nor WriteCapacityUnits can be specified when BillingMode is "
                           "PAY_PER_REQUEST");
        return true;
    }
    if (!control->throughput_given) {
        if (table->billing == BILLING_PROVISIONED)
            return true;
        return op_fail(op, API_VALIDATION,
                       "One or more parameter values were invalid: ProvisionedThroughput must be "
                       "specified when BillingMode is PROVISIONED");
    }
    if (table->billing == BILLING_PROVISIONED && control->read_units == table->read_units &&
        control->write_units == table->write_units)
        return op_fail(
            op, API_VALIDATION,
            "The provisioned throughput for the table will not change. The requested value equals "
            "the current value. Current ReadCapacityUnits provisioned for the table: %llu. "
            "Requested ReadCapacityUnits: %llu. Current WriteCapacityUnits provisioned for the "
            "table: %llu. Requested WriteCapacityUnits: %llu. Refer to the Amazon DynamoDB "
            "Developer Guide for current limits and how to request higher limits.",
            (unsigned long long)table->read_units, (unsigned long long)control->read_units,
            (unsigned long long)table->write_units, (unsigned long long)control->write_units);
    return true;
}

static bool check_settings_mode(struct op *op, const struct table *table)
{
    if (!op->control->settings_overrides || table->replica_count > 0)
        return true;
    return op_fail(op, API_VALIDATION,
                   "One or more parameter values were invalid: Only ENABLED and DISABLED settings "
                   "replication are supported for a Regional Table.");
}

static bool check_stream(struct op *op, const struct table *table)
{
    const struct op_control *control = op->control;
    if (!control->stream_given)
        return true;
    if (control->stream_enabled && table->stream != STREAM_NONE)
        return op_fail(op, API_VALIDATION, "Table already has an enabled stream: TableName: %s",
                       table->name);
    if (control->stream_enabled)
        return true;
    if (table->mode == TABLE_EVENTUAL)
        return op_fail(op, API_VALIDATION,
                       "One or more parameter values were invalid: Disabling Stream is not allowed "
                       "for a Global Table replica.");
    if (table->stream == STREAM_NONE)
        return op_fail(op, API_VALIDATION, "Table already has a disabled stream: TableName: %s",
                       table->name);
    return true;
}

/* Writes the requested settings into the next description. */
static void set_settings(struct region *region, const struct op_control *control,
                         struct change_op *change)
{
    struct table *table = &change->next.table;
    bool shared = control->billing_given || control->throughput_given || control->sse_given ||
                  (control->stream_given && table->mode != TABLE_STRONG);
    if (control->billing_given)
        table->billing = control->billing;
    if (table->billing == BILLING_PAY_PER_REQUEST)
        table->read_units = table->write_units = 0;
    if (control->throughput_given) {
        table->read_units = control->read_units;
        table->write_units = control->write_units;
    }
    if (control->stream_given) {
        table->stream = control->stream_enabled ? control->stream : STREAM_NONE;
        if (control->stream_enabled)
            table->stream_wall_ms = region->wall_ms;
    }
    if (control->sse_given)
        table->sse_enabled = control->sse_enabled;
    if (control->protection_given)
        table->deletion_protection = control->protection;
    if (control->class_given)
        table->table_class_infrequent = control->class_infrequent;
    if (shared)
        change->next.settings_stamp = group_stamp(region, change->next.settings_stamp);
}

static bool changeable(const struct region *region, struct op *op, struct table_state *table)
{
    const struct table *shown = &table->d.table;
    if (shown->status == TABLE_CREATING && op->control && op->control->replicas_given)
        return op_fail(op, API_VALIDATION,
                       "Create/Update/Delete of replica is not allowed while the replica is being "
                       "added to table with name: ‘%s’ in region: ‘%s’.",
                       shown->name, region_id_name(region->config.region));
    if (shown->status == TABLE_CREATING)
        return op_fail(op, API_RESOURCE_NOT_FOUND,
                       "Requested resource not found: Table: %s not found", shown->name);
    bool busy = shown->status != TABLE_ACTIVE || (table->changing && table->change->request);
    for (uint32_t i = 0; i < shown->replica_count; i++)
        busy |= shown->replicas[i].status != REPLICA_ACTIVE;
    busy |= shown->witness != 0 && shown->witness_status != REPLICA_ACTIVE;
    if (busy)
        return op_fail(op, API_RESOURCE_IN_USE,
                       "The resource which you are attempting to change is in use.");
    return true;
}

/* A change that no client has asked for takes in what a peer said, and is over in a moment. */
static bool park(struct table_state *table, struct op *op, uint64_t token)
{
    if (!table->changing || table->change->request)
        return false;
    struct parked *parked = xcalloc(1, sizeof(*parked));
    parked->op = op;
    parked->token = token;
    list_append(&table->parked, &parked->link);
    return true;
}

void control_resume(struct region *region, struct table_state *table)
{
    while (!table->changing && !list_empty(&table->parked)) {
        struct parked *parked = container_of(list_take(&table->parked), struct parked, link);
        control_begin(region, parked->op, parked->token);
        free(parked);
    }
}

static bool update_table(struct region *region, struct op *op, uint64_t token)
{
    struct op_control *control = op->control;
    struct table_state *table = NULL;
    check(control != NULL);
    if (!replicas_check_shape(op) || !name_found(region, op, &table))
        return false;
    if (park(table, op, token))
        return true;
    if (!changeable(region, op, table))
        return false;
    if (control->index_updates_given)
        return op_fail(op, API_RESOURCE_NOT_FOUND, "Requested resource not found");
    if (!control->replicas_given &&
        (!check_throughput(op, &table->d.table) || !check_stream(op, &table->d.table) ||
         !check_settings_mode(op, &table->d.table)))
        return false;
    if (control->replicas_given)
        return replicas_begin(region, op, token, table);
    struct change_op *change = change_new(table);
    set_settings(region, control, change);
    bool protection_only = !control->billing_given && !control->throughput_given &&
                           !control->stream_given && !control->class_given && !control->sse_given;
    if (protection_only && table->d.table.replica_count == 0)
        change->answer_status = TABLE_ACTIVE;
    change->request = begin_change(region, op, token);
    change_write(region, change);
    return true;
}

/* ---- DeleteTable ---- */

static bool may_delete(struct region *region, struct op *op, struct table_state *table)
{
    const struct table *shown = &table->d.table;
    if (shown->status == TABLE_CREATING)
        return op_fail(op, API_RESOURCE_IN_USE,
                       "Attempt to change a resource which is still in use: Table is being "
                       "created: %s",
                       shown->name);
    if (shown->status == TABLE_DELETING)
        return op_fail(op, API_RESOURCE_IN_USE,
                       "Attempt to change a resource which is still in use: Table is being "
                       "deleted: %s",
                       shown->name);
    if (shown->status == TABLE_UPDATING || table->changing)
        return op_fail(op, API_RESOURCE_IN_USE,
                       "Attempt to change a resource which is still in use: Table is being "
                       "updated: %s",
                       shown->name);
    if (shown->mode == TABLE_STRONG)
        return op_fail(op, API_VALIDATION,
                       "Deletion of only one table replica is not supported for global tables with "
                       "MultiRegionConsistency set to STRONG.");
    if (shown->deletion_protection)
        return op_fail(op, API_VALIDATION,
                       "Resource cannot be deleted as it is currently protected against deletion. "
                       "Disable deletion protection first.");
    if (replicas_sourced_lately(region, table))
        return op_fail(op, API_VALIDATION, "%s", replicas_source_message);
    return true;
}

static bool delete_table(struct region *region, struct op *op, uint64_t token)
{
    struct table_state *table = NULL;
    if (!name_found(region, op, &table))
        return false;
    if (park(table, op, token))
        return true;
    if (!may_delete(region, op, table))
        return false;
    struct change_op *change = change_new(table);
    change->answer_status = TABLE_DELETING;
    change->request = begin_change(region, op, token);
    if (table->d.table.replica_count > 0) {
        replicas_leave(region, change);
        return true;
    }
    change->kind = CHANGE_DROP;
    change->next.dropped = true;
    if (change->next.member_count > 0)
        group_set_member(region, &change->next, region->config.region, MEMBER_REMOVED);
    change_write(region, change);
    return true;
}

/* ---- Beginning and end ---- */

/* False when there is nothing to wait for: the result is there. */
static bool begin(struct region *region, struct op *op, uint64_t token)
{
    switch (op->kind) {
    case OP_CREATE_TABLE:
        return create_table(region, op, token);
    case OP_UPDATE_TABLE:
        return update_table(region, op, token);
    case OP_DELETE_TABLE:
        return delete_table(region, op, token);
    case OP_DESCRIBE_TABLE:
        describe_table(region, op);
        return false;
    case OP_LIST_TABLES:
        list_tables(region, op);
        return false;
    /* The same answer whatever the tables: the API gives it (op.answered), or refuses it. */
    case OP_DESCRIBE_LIMITS:
    case OP_DESCRIBE_ENDPOINTS:
    case OP_CREATE_GLOBAL_TABLE:
    case OP_UPDATE_GLOBAL_TABLE:
    case OP_DESCRIBE_GLOBAL_TABLE:
    case OP_LIST_GLOBAL_TABLES:
        return false;
    case OP_GET_ITEM:
    case OP_PUT_ITEM:
    case OP_UPDATE_ITEM:
    case OP_DELETE_ITEM:
    case OP_QUERY:
    case OP_SCAN:
    case OP_BATCH_GET_ITEM:
    case OP_BATCH_WRITE_ITEM:
    case OP_KIND_COUNT:
        break;
    }
    unreachable();
}

void control_begin(struct region *region, struct op *op, uint64_t token)
{
    if (begin(region, op, token))
        return;
    struct region_effect *effect = effect_add(region, REGION_REPLY);
    effect->token = token;
    effect->op = op;
}

void control_answer_change(struct region *region, struct change_op *change)
{
    if (change->request) {
        struct op *op = change->request->op;
        struct table *shown = shown_table(op, change->table);
        shown->status = change->answer_status;
        op->result.table = shown;
        request_settle(region, change->request);
        change->request = NULL;
    }
    if (change->call) {
        call_answer(region, change->call_token, CALL_OK, &change->table->d);
        change->call = false;
    }
}
