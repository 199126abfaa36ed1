/* SPDX-License-Identifier: Apache-2.0 */
/* See request.h. All that goes into a body is ours, numbers and letters, so it is written as text;
 * a start key is JSON that a parser has written. */

#include "chaos/drive/request.h"

#include <inttypes.h>

#include "conflict/base/check.h"

enum { OTHER_BYTES = 20 }; /* of an item's names, key and value, as DynamoDB counts them */

uint64_t request_filler_len(uint64_t item_bytes)
{
    return item_bytes > OTHER_BYTES ? item_bytes - OTHER_BYTES : 0;
}

void request_write_key(uint32_t key, struct buf *to)
{
    buf_printf(to, "k%" PRIu32, key);
}

bool request_read_key(struct bytes text, uint32_t *ret)
{
    uint64_t key = 0;
    if (text.len < 2 || text.len > 11 || text.at[0] != 'k' || (text.at[1] == '0' && text.len > 2))
        return false;
    for (size_t i = 1; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
        key = key * 10 + (uint64_t)(text.at[i] - '0');
    }
    if (key > UINT32_MAX)
        return false;
    *ret = (uint32_t)key;
    return true;
}

static void begin(struct buf *to)
{
    buf_append_text(to, "{\"TableName\":\"" REQUEST_TABLE "\"");
}

static void write_key_member(uint32_t key, struct buf *to)
{
    buf_printf(to, ",\"Key\":{\"pk\":{\"S\":\"k%" PRIu32 "\"}}", key);
}

static void write_item(const struct request_style *style, struct history_op *op, struct buf *to)
{
    const char *name = style->shape == REQUEST_SET ? "sk" : "v";
    buf_printf(to,
               ",\"Item\":{\"pk\":{\"S\":\"k%" PRIu32 "\"},\"%s\":{\"N\":\"%" PRIu64
               "\"},\"f\":{\"S\":\"",
               op->key, name, op->written);
    buf_append_bytes(to, style->filler);
    buf_append_text(to, "\"}}");
    op->bytes = (uint32_t)(style->filler.len + OTHER_BYTES);
}

static const char *write_put(const struct request_style *style, struct history_op *op,
                             struct buf *to)
{
    begin(to);
    write_item(style, op, to);
    if (op->kind == HISTORY_PUT_IF && op->expected == 0)
        buf_append_text(to, ",\"ConditionExpression\":\"attribute_not_exists(pk)\"");
    else if (op->kind == HISTORY_PUT_IF)
        buf_printf(to,
                   ",\"ConditionExpression\":\"v = :e\",\"ExpressionAttributeValues\":{\":e\":{"
                   "\"N\":\"%" PRIu64 "\"}}",
                   op->expected);
    if (op->kind == HISTORY_PUT_IF)
        buf_append_text(to, ",\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"");
    if (op->kind != HISTORY_INSERT)
        buf_append_text(to, ",\"ReturnValues\":\"ALL_OLD\"");
    buf_append_u8(to, '}');
    return "PutItem";
}

static const char *write_update(struct history_op *op, struct buf *to)
{
    begin(to);
    write_key_member(op->key, to);
    if (op->kind == HISTORY_ADD)
        buf_printf(to,
                   ",\"UpdateExpression\":\"ADD v :a\",\"ExpressionAttributeValues\":{\":a\":{"
                   "\"N\":\"%" PRIu64 "\"}},\"ReturnValues\":\"UPDATED_NEW\"}",
                   op->written);
    else
        buf_printf(
            to,
            ",\"UpdateExpression\":\"SET l = list_append(if_not_exists(l, :none), :a)\","
            "\"ExpressionAttributeValues\":{\":none\":{\"L\":[]},\":a\":{\"L\":[{\"N\":\"%" PRIu64
            "\"}]}}}",
            op->written);
    op->bytes = OTHER_BYTES;
    return "UpdateItem";
}

static const char *write_read(struct history_op *op, struct bytes start, struct buf *to)
{
    bool scan = op->kind == HISTORY_SCAN;
    begin(to);
    if (scan)
        buf_printf(to,
                   ",\"KeyConditionExpression\":\"pk = :k\",\"ProjectionExpression\":\"sk\","
                   "\"ExpressionAttributeValues\":{\":k\":{\"S\":\"k%" PRIu32 "\"}}",
                   op->key);
    else
        write_key_member(op->key, to);
    if (start.len > 0) {
        buf_append_text(to, ",\"ExclusiveStartKey\":");
        buf_append_bytes(to, start);
    }
    buf_append_text(to, op->strong ? ",\"ConsistentRead\":true}" : "}");
    return scan ? "Query" : "GetItem";
}

const char *request_write(const struct request_style *style, struct history_op *op,
                          struct bytes start, struct buf *to)
{
    switch ((enum history_kind)op->kind) {
    case HISTORY_PUT:
    case HISTORY_PUT_IF:
    case HISTORY_INSERT:
        return write_put(style, op, to);
    case HISTORY_ADD:
    case HISTORY_APPEND:
        return write_update(op, to);
    case HISTORY_READ:
    case HISTORY_SCAN:
        return write_read(op, start, to);
    case HISTORY_DELETE:
        begin(to);
        write_key_member(op->key, to);
        buf_append_text(to, ",\"ReturnValues\":\"ALL_OLD\"}");
        return "DeleteItem";
    case HISTORY_KIND_COUNT:
        break;
    }
    unreachable();
}

void request_write_scan(struct bytes table, struct bytes start, struct buf *to)
{
    buf_append_text(to, "{\"TableName\":\"");
    buf_append_bytes(to, table);
    buf_append_u8(to, '"');
    if (start.len > 0) {
        buf_append_text(to, ",\"ExclusiveStartKey\":");
        buf_append_bytes(to, start);
    }
    buf_append_u8(to, '}');
}

void request_write_create(const struct request_style *style, struct buf *to)
{
    bool set = style->shape == REQUEST_SET;
    begin(to);
    buf_append_text(to, ",\"BillingMode\":\"PAY_PER_REQUEST\",\"KeySchema\":[{\"AttributeName\":"
                        "\"pk\",\"KeyType\":\"HASH\"}");
    if (set)
        buf_append_text(to, ",{\"AttributeName\":\"sk\",\"KeyType\":\"RANGE\"}");
    buf_append_text(to, "],\"AttributeDefinitions\":[{\"AttributeName\":\"pk\",\"AttributeType\":"
                        "\"S\"}");
    if (set)
        buf_append_text(to, ",{\"AttributeName\":\"sk\",\"AttributeType\":\"N\"}");
    /* Global tables of the current version need one; asked for at once, it costs no later step. */
    buf_append_text(to, "],\"StreamSpecification\":{\"StreamEnabled\":true,\"StreamViewType\":"
                        "\"NEW_AND_OLD_IMAGES\"}}");
}
