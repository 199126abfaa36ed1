/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of items, which see what is durable and nothing else, from the store or a quiet lane. Keys
 * are asked for all at once and executed in the order of the request, as the limits of a batch
 * count in that order, whatever order a store answers in. A range is read piece by piece until the
 * language says that the page is full. */

#include "conflict/record.h"
#include "region/core/region_internal.h"
#include "region/core/strong.h"

enum { AT_ONCE_BYTES_MAX = 4096 };

const char *read_failure(enum store_outcome outcome)
{
    return outcome == STORE_CORRUPT
               ? "Stored data failed its checksum and is not served. See this Region's log."
               : "The store of this Region could not be read. See this Region's log.";
}

/* The live item of a record body; an empty run for a tombstone or no row. False: damaged. */
static bool live_item(struct bytes body, struct bytes *ret)
{
    struct record record;
    *ret = BYTES_NONE;
    if (body.len == 0)
        return true;
    if (!record_decode_body(body, &record))
        return false;
    *ret = record.item;
    return true;
}

static void execute(struct request *request, uint32_t index, struct bytes body)
{
    struct op *op = request->op;
    struct bytes item;
    if (!live_item(body, &item)) {
        request_fail(request, API_INTERNAL, read_failure(STORE_CORRUPT));
        return;
    }
    struct op_change change;
    op_execute_key(op, index, item, &change);
    check(change.kind == OP_CHANGE_NONE);
}

/* The one key of a request, if it need not be read. What is large, and what is much, goes by way of
 * the store all the same: whoever performs the reads sees to it that a round of them is bounded. */
static bool answer_at_once(struct region *region, struct request *request)
{
    const struct op_key *key = &request->op->keys[0];
    struct bytes body;
    if (request->op->key_count > 1 ||
        !lane_durable(region, table_of(key->table), key->key, &body) ||
        body.len > AT_ONCE_BYTES_MAX)
        return false;
    execute(request, 0, body);
    request_settle(region, request);
    return true;
}

static void begin_keys(struct region *region, struct request *request)
{
    struct op *op = request->op;
    request->pending = op->key_count;
    if (answer_at_once(region, request))
        return;
    for (uint32_t i = 0; i < op->key_count; i++) {
        struct table_state *table = table_of(op->keys[i].table);
        uint64_t id;
        struct read *read = read_new(region, READ_KEY, request, table, &id);
        read->index = i;
        read_emit_key(region, id,
                      keyspace_item(&region->key_scratch, table->d.table.number, op->keys[i].key));
    }
}

static void read_page(struct region *region, struct request *request)
{
    struct op_range *range = &request->op->range;
    uint32_t number = request->table->d.table.number;
    struct bytes begin = keyspace_item(&region->key_scratch, number, range->begin);
    struct bytes end = range->end.len > 0
                           ? keyspace_item(&region->end_scratch, number, range->end)
                           : keyspace_item(&region->end_scratch, number + 1, BYTES_NONE);
    uint64_t id;
    read_new(region, READ_PAGE, request, request->table, &id);
    read_emit_range(region, id, begin, end, range->reverse, range->rows_max, range->bytes_max);
}

void read_begin(struct region *region, struct op *op, uint64_t token)
{
    struct request *request = request_new(region, op, token, 0);
    if (op_shape(op->kind) == OP_SHAPE_READ) {
        request->user_count = op->key_count;
        for (uint32_t i = 0; i < op->key_count; i++)
            table_of(op->keys[i].table)->users++;
    } else {
        request->table = catalog_find(region, op->table_name);
        check(request->table != NULL);
        request->table->users++;
    }
    if (!strong_read(region, request))
        read_continue(region, request);
}

void read_continue(struct region *region, struct request *request)
{
    if (op_shape(request->op->kind) == OP_SHAPE_READ) {
        begin_keys(region, request);
        return;
    }
    request->pending = 1;
    read_page(region, request);
}

/* Executes what has come out of order, as far as nothing is missing in front of it. */
static void execute_arrived(struct request *request)
{
    const struct op *op = request->op;
    while (request->arrived && request->executed < op->key_count &&
           request->arrived[request->executed]) {
        uint32_t index = request->executed++;
        execute(request, index, request->bodies[index]);
    }
}

void read_key_rows(struct region *region, struct request *request, uint32_t index,
                   const struct region_input *in)
{
    struct op *op = request->op;
    struct bytes body = BYTES_NONE;
    if (in->outcome != STORE_OK)
        request_fail(request, API_INTERNAL, read_failure(in->outcome));
    else if (in->rows->count > 0)
        body = in->rows->at[0].value;
    if (index == request->executed) {
        request->executed++;
        execute(request, index, body);
        execute_arrived(request);
    } else {
        if (!request->arrived) {
            request->arrived = arena_array(op->arena, bool, op->key_count);
            request->bodies = arena_array(op->arena, struct bytes, op->key_count);
        }
        request->arrived[index] = true;
        request->bodies[index] = bytes_copy(op->arena, body);
    }
    request_settle(region, request);
}

/* The rows of a page as the language sees them: tombstones as rows without an item. */
static bool collect_rows(struct region *region, const struct store_rows *from)
{
    if (from->count > region->rows_cap) {
        region->rows_cap = from->count;
        region->rows = xrealloc(region->rows, sizeof(*region->rows) * region->rows_cap);
    }
    for (uint32_t i = 0; i < from->count; i++) {
        struct bytes key = from->at[i].key;
        check(key.len > KEYSPACE_ITEM_PREFIX);
        region->rows[i].key =
            bytes_make(key.at + KEYSPACE_ITEM_PREFIX, key.len - KEYSPACE_ITEM_PREFIX);
        if (!live_item(from->at[i].value, &region->rows[i].item))
            return false;
    }
    return true;
}

void read_page_rows(struct region *region, struct request *request, const struct region_input *in)
{
    struct op *op = request->op;
    if (request->table->d.dropped) {
        request_fail(request, API_RESOURCE_NOT_FOUND, "Requested resource not found");
    } else if (in->outcome != STORE_OK) {
        request_fail(request, API_INTERNAL, read_failure(in->outcome));
    } else if (!collect_rows(region, in->rows)) {
        request_fail(request, API_INTERNAL, read_failure(STORE_CORRUPT));
    } else if (!op_page_rows(op, region->rows, in->rows->count, in->rows->more)) {
        read_page(region, request);
        return;
    }
    request_settle(region, request);
}
