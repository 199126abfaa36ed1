/* SPDX-License-Identifier: Apache-2.0 */
/* BatchGetItem and BatchWriteItem: many keys, grouped by table. What a BatchGetItem says of a table
 * beside its keys is kept as JSON, to be given back with the keys that were left unprocessed. */

#include "conflict/base/alloc.h"
#include "region/api/api_internal.h"

/* Gathers the groups; the keys are counted first, so that they lie in one array. */
static bool begin_groups(struct request *request, json_t *items, uint32_t keys_max,
                         const char *too_many)
{
    struct op *op = request->op;
    size_t count = 0;
    const char *name;
    json_t *group;
    json_object_foreach(items, name, group)
    {
        json_t *list = op->kind == OP_BATCH_GET_ITEM ? json_member(group, "Keys") : group;
        count += json_array_size(list);
    }
    if (count > keys_max)
        return request_refuse(request, too_many);
    op->groups = arena_array(request->arena, struct op_group, json_object_size(items));
    op->keys = arena_array(request->arena, struct op_key, count ? count : 1);
    return true;
}

static struct op_group *next_group(struct request *request, const char *name, size_t len)
{
    struct op *op = request->op;
    struct op_group *group = &op->groups[op->group_count];
    if (!request_table_name(request, bytes_make(name, len), &group->table_name))
        return NULL;
    for (uint32_t i = 0; i < op->group_count; i++) {
        /* Possible by an ARN and a name of the same table. */
        if (bytes_equal(op->groups[i].table_name, group->table_name)) {
            request_refuse(request, "Provided list of item keys contains duplicates");
            return NULL;
        }
    }
    group->first = op->key_count;
    op->group_count++;
    return group;
}

static struct op_key *next_key(struct op *op, struct op_group *group)
{
    struct op_key *key = &op->keys[op->key_count++];
    key->table_name = group->table_name;
    key->group = op->group_count - 1;
    group->count++;
    return key;
}

static int append_text(const char *text, size_t len, void *to)
{
    buf_append(to, text, len);
    return 0;
}

static struct bytes other_members(struct request *request, json_t *json)
{
    struct buf to cleanup(buf_deinit);
    buf_init(&to);
    static const char *const members[] = {"ConsistentRead", "ProjectionExpression",
                                          "ExpressionAttributeNames", "AttributesToGet"};
    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
        json_t *member = json_member(json, members[i]);
        if (!member)
            continue;
        buf_printf(&to, ",\"%s\":", members[i]);
        json_dump_callback(member, append_text, &to, JSON_COMPACT | JSON_ENCODE_ANY);
    }
    return bytes_copy(request->arena, buf_view(&to));
}

static bool parse_get_group(struct request *request, json_t *json, struct op_group *group)
{
    static const char *const expressions[] = {"ProjectionExpression", NULL};
    static const char *const legacy[] = {"AttributesToGet", NULL};
    struct op *op = request->op;
    struct expr_scope *scope = arena_new(request->arena, struct expr_scope);
    json_t *consistent = json_member(json, "ConsistentRead");
    group->consistent_read = json_is_true(consistent);
    if (!request_check_styles(request, json, expressions, legacy) ||
        !legacy_read_projection(request, json, &group->projection) ||
        !request_read_scope(request, json, scope) ||
        !request_read_projection(request, json, scope, &group->projection) ||
        !request_check_unused(request, scope))
        return false;
    size_t i;
    json_t *key;
    json_array_foreach(json_member(json, "Keys"), i, key)
    {
        if (!request_read_item(request, key, &next_key(op, group)->attributes))
            return false;
    }
    group->members = other_members(request, json);
    return true;
}

/* Of a table: the walkers take a null for an absent member and pass it by. */
static bool refuse_null(struct request *request)
{
    return request_refuse(request,
                          "1 validation error detected: Value null at 'requestItems.member' "
                          "failed to satisfy constraint: Member must not be null");
}

static bool parse_batch_get(struct request *request)
{
    json_t *items = json_member(request->body, "RequestItems");
    if (!begin_groups(request, items, BATCH_GET_MAX,
                      "Too many items requested for the BatchGetItem call"))
        return false;
    const char *name;
    size_t len;
    json_t *json;
    json_object_keylen_foreach(items, name, len, json)
    {
        if (!json_is_object(json))
            return refuse_null(request);
        struct op_group *group = next_group(request, name, len);
        if (!group || !parse_get_group(request, json, group))
            return false;
    }
    return true;
}

static bool parse_write(struct request *request, const json_t *json, struct op_key *key)
{
    json_t *put = json_member(json, "PutRequest");
    json_t *delete = json_member(json, "DeleteRequest");
    /* AWS reuses the words of an AttributeValue for this union too. */
    if (put && delete)
        return request_refuse(request,
                              "Supplied AttributeValue has more than one datatypes set, must "
                              "contain exactly one of the supported datatypes");
    if (!put && !delete)
        return request_refuse(request, "Supplied AttributeValue is empty, must contain exactly one "
                                       "of the supported datatypes");
    key->put = put != NULL;
    if (!request_read_item(request, json_member(put ? put : delete, put ? "Item" : "Key"),
                           &key->attributes))
        return false;
    if (put && item_size(key->attributes) > ITEM_SIZE_MAX)
        return request_refuse(request, "Item size has exceeded the maximum allowed size");
    return true;
}

static bool parse_batch_write(struct request *request)
{
    struct op *op = request->op;
    json_t *items = json_member(request->body, "RequestItems");
    if (!begin_groups(request, items, BATCH_WRITE_MAX,
                      "Too many items requested for the BatchWriteItem call"))
        return false;
    const char *name;
    size_t len;
    json_t *list;
    json_object_keylen_foreach(items, name, len, list)
    {
        if (!json_is_array(list))
            return refuse_null(request);
        struct op_group *group = next_group(request, name, len);
        if (!group)
            return false;
        size_t i;
        json_t *json;
        json_array_foreach(list, i, json)
        {
            if (!parse_write(request, json, next_key(op, group)))
                return false;
        }
    }
    return true;
}

bool parse_batch(struct request *request)
{
    request_read_returns(request);
    return request->op->kind == OP_BATCH_GET_ITEM ? parse_batch_get(request)
                                                  : parse_batch_write(request);
}
