/* SPDX-License-Identifier: Apache-2.0 */
/* A finished operation to JSON, in one pass over the encoded items: no tree, and no allocation but
 * the growth of the answer's buffer. */

#include <inttypes.h>

#include "conflict/base/check.h"
#include "conflict/region_id.h"
#include "region/api/api_internal.h"
#include "region/core/item_json.h"

/* Members of an object, with the commas between them. */
struct writer {
    struct buf *to;
    bool any;
};

static struct buf *member(struct writer *writer, const char *name)
{
    buf_append_text(writer->to, writer->any ? ",\"" : "\"");
    buf_append_text(writer->to, name);
    buf_append_text(writer->to, "\":");
    writer->any = true;
    return writer->to;
}

static void write_units(struct buf *to, uint64_t half_units)
{
    buf_printf(to, "%" PRIu64 ".%c", half_units / 2, half_units % 2 ? '5' : '0');
}

static void write_capacity(struct buf *to, const struct op *op, const struct op_capacity *capacity)
{
    buf_append_text(to, "{\"TableName\":");
    json_write_string(to, capacity->table_name);
    buf_append_text(to, ",\"CapacityUnits\":");
    write_units(to, capacity->half_units);
    if (op->return_capacity == CAPACITY_INDEXES) {
        buf_append_text(to, ",\"Table\":{\"CapacityUnits\":");
        write_units(to, capacity->half_units);
        buf_append_text(to, "}");
    }
    buf_append_text(to, "}");
}

static void respond_capacity(struct writer *writer, const struct op *op)
{
    if (op->return_capacity == CAPACITY_NONE || op->result.capacity_count == 0)
        return;
    struct buf *to = member(writer, "ConsumedCapacity");
    if (op->group_count == 0) {
        write_capacity(to, op, op->result.capacity);
        return;
    }
    buf_append_text(to, "[");
    for (uint32_t i = 0; i < op->result.capacity_count; i++) {
        if (i > 0)
            buf_append_text(to, ",");
        write_capacity(to, op, &op->result.capacity[i]);
    }
    buf_append_text(to, "]");
}

static void respond_item(struct writer *writer, const struct op *op, const char *name)
{
    if (op->result.attributes.len > 0)
        item_write_json(member(writer, name), op->result.attributes);
    respond_capacity(writer, op);
}

static void respond_page(struct writer *writer, const struct op *op)
{
    const struct op_result *result = &op->result;
    if (op->select != SELECT_COUNT) {
        struct buf *to = member(writer, "Items");
        buf_append_text(to, "[");
        for (uint32_t i = 0; i < result->row_count; i++) {
            if (i > 0)
                buf_append_text(to, ",");
            item_write_json(to, result->rows[i].item);
        }
        buf_append_text(to, "]");
    }
    buf_printf(member(writer, "Count"), "%u", result->count);
    buf_printf(member(writer, "ScannedCount"), "%u", result->scanned_count);
    if (result->last_key_given)
        item_write_json(member(writer, "LastEvaluatedKey"), result->last_key);
    respond_capacity(writer, op);
}

static void write_responses(struct buf *to, const struct op *op)
{
    buf_append_text(to, "{");
    for (uint32_t g = 0; g < op->group_count; g++) {
        const struct op_group *group = &op->groups[g];
        if (g > 0)
            buf_append_text(to, ",");
        json_write_string(to, group->table_name);
        buf_append_text(to, ":[");
        bool any = false;
        for (uint32_t i = group->first; i < group->first + group->count; i++) {
            if (op->keys[i].item.len == 0)
                continue;
            if (any)
                buf_append_text(to, ",");
            item_write_json(to, op->keys[i].item);
            any = true;
        }
        buf_append_text(to, "]");
    }
    buf_append_text(to, "}");
}

/* UnprocessedKeys or UnprocessedItems: a request of its own, to be sent again as it is. A table of
 * which all was processed must not appear, or clients' retry loops never end. */
static void write_unprocessed(struct buf *to, const struct op *op)
{
    bool get = op->kind == OP_BATCH_GET_ITEM;
    bool any_group = false;
    buf_append_text(to, "{");
    for (uint32_t g = 0; g < op->group_count; g++) {
        const struct op_group *group = &op->groups[g];
        bool any = false;
        for (uint32_t i = group->first; i < group->first + group->count; i++) {
            const struct op_key *key = &op->keys[i];
            if (!key->unprocessed)
                continue;
            if (any) {
                buf_append_text(to, ",");
            } else {
                if (any_group)
                    buf_append_text(to, ",");
                json_write_string(to, group->table_name);
                buf_append_text(to, get ? ":{\"Keys\":[" : ":[");
            }
            any = any_group = true;
            if (!get)
                buf_append_text(to, key->put ? "{\"PutRequest\":{\"Item\":"
                                             : "{\"DeleteRequest\":{\"Key\":");
            item_write_json(to, key->attributes);
            if (!get)
                buf_append_text(to, "}}");
        }
        if (!any)
            continue;
        buf_append_text(to, "]");
        if (get) {
            buf_append_bytes(to, group->members);
            buf_append_text(to, "}");
        }
    }
    buf_append_text(to, "}");
}

static void respond_tables(struct writer *writer, const struct op *op)
{
    const struct op_result *result = &op->result;
    struct buf *to = member(writer, "TableNames");
    buf_append_text(to, "[");
    for (uint32_t i = 0; i < result->name_count; i++) {
        if (i > 0)
            buf_append_text(to, ",");
        json_write_string(to, result->names[i]);
    }
    buf_append_text(to, "]");
    if (result->names_more && result->name_count > 0)
        json_write_string(member(writer, "LastEvaluatedTableName"),
                          result->names[result->name_count - 1]);
}

static void respond_endpoints(struct writer *writer, const struct op *op)
{
    struct buf *to = member(writer, "Endpoints");
    buf_append_text(to, "[{\"Address\":");
    /* A client that discovers endpoints goes where this says, so it must lead back here. */
    if (op->host.len > 0) {
        json_write_string(to, op->host);
    } else {
        buf_printf(to, "\"dynamodb.%s.amazonaws.com\"", region_id_name(op->region));
    }
    buf_append_text(to, ",\"CachePeriodInMinutes\":1440}]");
}

static void respond_result(struct writer *writer, const struct op *op)
{
    switch (op->kind) {
    case OP_GET_ITEM:
        respond_item(writer, op, "Item");
        return;
    case OP_PUT_ITEM:
    case OP_UPDATE_ITEM:
    case OP_DELETE_ITEM:
        respond_item(writer, op, "Attributes");
        return;
    case OP_QUERY:
    case OP_SCAN:
        respond_page(writer, op);
        return;
    case OP_BATCH_GET_ITEM:
        write_responses(member(writer, "Responses"), op);
        write_unprocessed(member(writer, "UnprocessedKeys"), op);
        respond_capacity(writer, op);
        return;
    case OP_BATCH_WRITE_ITEM:
        write_unprocessed(member(writer, "UnprocessedItems"), op);
        respond_capacity(writer, op);
        return;
    case OP_DESCRIBE_TABLE:
        table_write_json(member(writer, "Table"), op->result.table, op->region);
        return;
    case OP_CREATE_TABLE:
    case OP_UPDATE_TABLE:
    case OP_DELETE_TABLE:
        table_write_json(member(writer, "TableDescription"), op->result.table, op->region);
        return;
    case OP_LIST_TABLES:
        respond_tables(writer, op);
        return;
    case OP_DESCRIBE_LIMITS:
        buf_append_text(member(writer, "AccountMaxReadCapacityUnits"), "80000");
        buf_append_text(member(writer, "AccountMaxWriteCapacityUnits"), "80000");
        buf_append_text(member(writer, "TableMaxReadCapacityUnits"), "40000");
        buf_append_text(member(writer, "TableMaxWriteCapacityUnits"), "40000");
        return;
    case OP_DESCRIBE_ENDPOINTS:
        respond_endpoints(writer, op);
        return;
    case OP_LIST_GLOBAL_TABLES:
        buf_append_text(member(writer, "GlobalTables"), "[]");
        return;
    case OP_CREATE_GLOBAL_TABLE:
    case OP_UPDATE_GLOBAL_TABLE:
    case OP_DESCRIBE_GLOBAL_TABLE:
    case OP_KIND_COUNT:
        break; /* these only ever fail */
    }
    unreachable();
}

static void write_error_start(struct buf *to, enum api_error error)
{
    buf_append_text(to, "{\"__type\":\"");
    buf_append_text(to, api_error_prefix(error));
    buf_append_text(to, api_error_name(error));
    buf_append_text(to, "\"");
}

static void write_error_message(struct buf *to, enum api_error error, const char *message)
{
    if (message) {
        /* The older of AWS's layers spell it with a capital; SDKs read both. */
        bool capital = error == API_SERIALIZATION || error == API_ACCESS_DENIED;
        buf_append_text(to, capital ? ",\"Message\":" : ",\"message\":");
        json_write_string(to, bytes_text(message));
    }
    buf_append_text(to, "}");
}

void api_respond_error(enum api_error error, const char *message, struct buf *body)
{
    write_error_start(body, error);
    write_error_message(body, error, message);
}

void api_respond(const struct op *op, struct buf *body)
{
    const struct op_result *result = &op->result;
    if (result->error == API_OK) {
        struct writer writer = {.to = body};
        buf_append_text(body, "{");
        respond_result(&writer, op);
        buf_append_text(body, "}");
        return;
    }
    write_error_start(body, result->error);
    if (result->error_item.len > 0) {
        buf_append_text(body, ",\"Item\":");
        item_write_json(body, result->error_item);
    }
    write_error_message(body, result->error, result->message);
}
