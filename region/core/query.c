/* SPDX-License-Identifier: Apache-2.0 */
/* Query and Scan: one range of row keys, read in order until a page is full. A page ends at Limit
 * items or 1 MB of items examined, both counted before the filter, so a page may be empty and yet
 * have a LastEvaluatedKey. */

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "region/core/key.h"
#include "region/core/op_internal.h"

enum { ROWS_PER_READ = 1024 };

static void set_read_limits(struct op *op)
{
    uint64_t rows = ROWS_PER_READ;
    if (op->limit > 0 && op->limit - op->result.scanned_count < rows)
        rows = op->limit - op->result.scanned_count;
    op->range.rows_max = (uint32_t)rows;
    op->range.bytes_max = PAGE_BYTES_MAX - op->page_bytes;
}

/* The smallest key that is greater than this one. */
static struct bytes key_successor(struct op *op, struct bytes key)
{
    uint8_t *at = arena_alloc(op->arena, key.len + 1);
    memcpy(at, key.at, key.len);
    at[key.len] = 0;
    return bytes_make(at, key.len + 1);
}

static struct bytes hash_start(struct op *op, uint32_t segment, uint32_t count)
{
    uint8_t start[8];
    be64_encode(start, key_partition_start(segment, count));
    return bytes_copy(op->arena, bytes_make(start, sizeof(start)));
}

static bool start_scan_at(struct op *op, const struct key_schema *schema)
{
    struct buf row_key cleanup(buf_deinit);
    buf_init(&row_key);
    const char *problem = op_key_check(op, schema, op->start_key, &row_key);
    if (problem)
        return op_fail(op, API_VALIDATION, "The provided starting key is invalid: %s", problem);
    struct bytes start = buf_view(&row_key);
    if (op->segments_given && key_partition(start, op->segment_count) != op->segment)
        return op_fail(
            op, API_VALIDATION,
            "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use "
            "ExclusiveStartKey with correct Segment. TotalSegments: %u Segment: %u",
            op->segment_count, op->segment);
    op->range.begin = key_successor(op, start);
    return true;
}

static bool plan_scan(struct op *op, const struct key_schema *schema)
{
    if (op->segments_given) {
        op->range.begin = hash_start(op, op->segment, op->segment_count);
        if (op->segment + 1 < op->segment_count)
            op->range.end = hash_start(op, op->segment + 1, op->segment_count);
    }
    return !op->start_key_given || start_scan_at(op, schema);
}

static bool start_query_at(struct op *op, const struct key_schema *schema, struct value hash)
{
    struct value start_hash;
    struct buf row_key cleanup(buf_deinit);
    buf_init(&row_key);
    if (op_key_check(op, schema, op->start_key, &row_key) ||
        !item_find(op->start_key, bytes_text(schema->hash_name), &start_hash))
        return op_fail(op, API_VALIDATION, "The provided starting key is invalid");
    if (!bytes_equal(start_hash.whole, hash.whole))
        return op_fail(op, API_VALIDATION,
                       "The provided starting key is outside query boundaries based on provided "
                       "conditions");
    struct bytes start = buf_view(&row_key);
    struct op_range *range = &op->range;
    if (bytes_compare(start, range->begin) < 0 ||
        (range->end.len > 0 && bytes_compare(start, range->end) >= 0))
        return op_fail(op, API_VALIDATION,
                       "The provided starting key does not match the range key predicate");
    if (range->reverse)
        range->end = bytes_copy(op->arena, start);
    else
        range->begin = key_successor(op, start);
    return true;
}

static bool plan_query(struct op *op, const struct key_schema *schema)
{
    struct key_range bound = {0};
    const char *problem = expr_key_condition_bind(op->key_condition, schema, op->arena, &bound);
    if (!problem && op->filter)
        problem = expr_filter_check_key(op->filter, schema, op->arena);
    if (problem)
        return op_fail(op, API_VALIDATION, "%s", problem);
    op->range.begin = bound.begin;
    op->range.end = bound.end;
    op->range.reverse = !op->scan_forward;
    return !op->start_key_given || start_query_at(op, schema, bound.hash);
}

bool op_plan_range(struct op *op, const struct table *table)
{
    if (op->index_given)
        return op_fail(op, API_VALIDATION, "The table does not have the specified index: %.*s",
                       (int)op->index_name.len, (const char *)op->index_name.at);
    op->range = (struct op_range){0};
    op->range_schema = arena_copy(op->arena, &table->key, sizeof(table->key));
    if (op->kind == OP_QUERY ? !plan_query(op, op->range_schema) : !plan_scan(op, op->range_schema))
        return false;
    set_read_limits(op);
    return true;
}

static void keep_row(struct op *op, struct bytes item)
{
    struct op_result *result = &op->result;
    result->count++;
    if (op->select == SELECT_COUNT)
        return;
    if (result->row_count == op->rows_cap) {
        uint32_t cap = op->rows_cap ? 2 * op->rows_cap : 16;
        struct op_row *rows = arena_array(op->arena, struct op_row, cap);
        if (result->row_count > 0)
            memcpy(rows, result->rows, sizeof(*rows) * result->row_count);
        result->rows = rows;
        op->rows_cap = cap;
    }
    struct op_row *row = &result->rows[result->row_count++];
    if (!op->projection) {
        row->item = bytes_copy(op->arena, item);
        return;
    }
    struct buf to cleanup(buf_deinit);
    buf_init(&to);
    expr_project(op->projection, item, &to);
    row->item = bytes_copy(op->arena, buf_view(&to));
}

static bool finish_page(struct op *op, struct bytes last_item)
{
    struct op_result *result = &op->result;
    if (last_item.len > 0) {
        result->last_key_given = true;
        result->last_key = op_key_of_item(op, op->range_schema, last_item);
    }
    capacity_add(op, 0, capacity_read(op->page_bytes, op->consistent_read));
    return true;
}

bool op_page_rows(struct op *op, const struct op_row *rows, uint32_t count, bool more)
{
    check(op_shape(op->kind) == OP_SHAPE_RANGE);
    struct op_result *result = &op->result;
    for (uint32_t i = 0; i < count; i++) {
        struct bytes item = rows[i].item;
        if (item.len == 0)
            continue;
        result->scanned_count++;
        op->page_bytes += item_size(item);
        if (!op->filter || expr_condition_holds(op->filter, item))
            keep_row(op, item);
        /* At the limit AWS gives a last key even if nothing follows. */
        if (op->limit > 0 && result->scanned_count == op->limit)
            return finish_page(op, item);
        if (op->page_bytes >= PAGE_BYTES_MAX)
            return finish_page(op, i + 1 < count || more ? item : BYTES_NONE);
    }
    if (!more)
        return finish_page(op, BYTES_NONE);
    if (count > 0) {
        if (op->range.reverse)
            op->range.end = bytes_copy(op->arena, rows[count - 1].key);
        else
            op->range.begin = key_successor(op, rows[count - 1].key);
    }
    set_read_limits(op);
    return false;
}
