/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LANGUAGE_H
#define TESTS_LANGUAGE_H

/* A DynamoDB of one Region without its core: requests go through the API's parser, the plan and
 * execute halves and the answer's writer, over a sorted array for a store. For tests of the
 * language alone; a header, as only programs of the api room can link it. */

#include <stdio.h>
#include <string.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "region/api/api.h"
#include "region/api/json.h"
#include "region/core/op.h"

enum { LANGUAGE_TABLES_MAX = 8, LANGUAGE_ROWS_MAX = 4096 };

struct language_row {
    const struct table *table;
    struct buf key, item;
};

struct language {
    struct arena arena;
    struct api_config config;
    struct table tables[LANGUAGE_TABLES_MAX];
    uint32_t table_count;
    struct language_row rows[LANGUAGE_ROWS_MAX];
    uint32_t row_count;
    uint32_t rows_per_read; /* how much the store gives at once; 0: as much as asked */
    struct buf answer;      /* of the last request; NUL-terminated, the NUL not counted */
    struct op *op;          /* the last */
    uint32_t writes;        /* since the start */
};

static inline struct language *language_new(void)
{
    struct language *language = xcalloc(1, sizeof(*language));
    arena_init(&language->arena);
    buf_init(&language->answer);
    language->config.region = 1; /* us-east-1 */
    language->config.json = json_reader_new();
    return language;
}

static inline void language_free(struct language *language)
{
    for (uint32_t i = 0; i < language->row_count; i++) {
        buf_deinit(&language->rows[i].key);
        buf_deinit(&language->rows[i].item);
    }
    json_reader_free(language->config.json);
    buf_deinit(&language->answer);
    arena_deinit(&language->arena);
    free(language);
}

static inline struct table *language_find(struct language *language, struct bytes name)
{
    for (uint32_t i = 0; i < language->table_count; i++) {
        if (bytes_is(name, language->tables[i].name))
            return &language->tables[i];
    }
    return NULL;
}

static inline const struct table *language_find_usable(void *context, struct bytes name)
{
    return language_find(context, name);
}

static inline struct table *language_add_table(struct language *language, const char *name,
                                               const struct key_schema *key)
{
    check(language->table_count < LANGUAGE_TABLES_MAX);
    struct table *table = &language->tables[language->table_count++];
    check(strlen(name) <= TABLE_NAME_MAX);
    memcpy(table->name, name, strlen(name) + 1);
    table->key = *key;
    table->status = TABLE_ACTIVE;
    table->billing = BILLING_PAY_PER_REQUEST;
    table->created_wall_ms = 1700000000123;
    for (int i = 0; i < TABLE_ID_LEN; i++)
        table->id[i] = (uint8_t)(i * 17);
    return table;
}

/* Where the key is, or is to go. */
static inline uint32_t language_place(const struct language *language, const struct table *table,
                                      struct bytes key)
{
    uint32_t at = 0;
    while (at < language->row_count &&
           (language->rows[at].table < table ||
            (language->rows[at].table == table &&
             bytes_compare(buf_view(&language->rows[at].key), key) < 0)))
        at++;
    return at;
}

static inline struct language_row *language_row(struct language *language,
                                                const struct table *table, struct bytes key)
{
    uint32_t at = language_place(language, table, key);
    struct language_row *row = &language->rows[at];
    return at < language->row_count && row->table == table && bytes_equal(buf_view(&row->key), key)
               ? row
               : NULL;
}

static inline void language_apply(struct language *language, const struct op_key *key,
                                  const struct op_change *change)
{
    if (change->kind == OP_CHANGE_NONE)
        return;
    language->writes++;
    struct language_row *row = language_row(language, key->table, key->key);
    if (!row) {
        check(language->row_count < LANGUAGE_ROWS_MAX);
        uint32_t at = language_place(language, key->table, key->key);
        row = &language->rows[at];
        memmove(row + 1, row, sizeof(*row) * (language->row_count - at));
        language->row_count++;
        row->table = key->table;
        buf_init(&row->key);
        buf_init(&row->item);
        buf_append_bytes(&row->key, key->key);
    }
    buf_reset(&row->item); /* a delete leaves a tombstone: a row without an item */
    if (change->kind == OP_CHANGE_PUT)
        buf_append_bytes(&row->item, change->item);
}

static inline void language_run_keys(struct language *language, struct op *op)
{
    for (uint32_t i = 0; i < op->key_count && op->result.error == API_OK; i++) {
        struct language_row *row = language_row(language, op->keys[i].table, op->keys[i].key);
        struct op_change change;
        op_execute_key(op, i, row ? buf_view(&row->item) : BYTES_NONE, &change);
        check(change.kind == OP_CHANGE_NONE || op->result.error == API_OK);
        language_apply(language, &op->keys[i], &change);
    }
}

static inline bool language_read(struct language *language, struct op *op,
                                 const struct table *table)
{
    struct op_row rows[LANGUAGE_ROWS_MAX];
    uint32_t count = 0;
    uint32_t max = language->rows_per_read ? language->rows_per_read : op->range.rows_max;
    bool more = false;
    for (uint32_t i = 0; i < language->row_count; i++) {
        uint32_t at = op->range.reverse ? language->row_count - 1 - i : i;
        const struct language_row *row = &language->rows[at];
        struct bytes key = buf_view(&row->key);
        if (row->table != table || bytes_compare(key, op->range.begin) < 0 ||
            (op->range.end.len > 0 && bytes_compare(key, op->range.end) >= 0))
            continue;
        if (count == max) {
            more = true;
            break;
        }
        rows[count++] = (struct op_row){key, buf_view(&row->item)};
    }
    return op_page_rows(op, rows, count, more);
}

static inline void language_run_control(struct language *language, struct op *op)
{
    struct table *table = language_find(language, op->table_name);
    if (op->kind == OP_CREATE_TABLE) {
        char name[TABLE_NAME_MAX + 1] = {0};
        memcpy(name, op->table_name.at, op->table_name.len);
        table = language_add_table(language, name, &op->control->key);
        table->stream = op->control->stream_enabled ? op->control->stream : STREAM_NONE;
    }
    if (op->kind == OP_LIST_TABLES) {
        op->result.names = arena_array(op->arena, struct bytes, LANGUAGE_TABLES_MAX);
        for (uint32_t i = 0; i < language->table_count; i++)
            op->result.names[op->result.name_count++] = bytes_text(language->tables[i].name);
    } else if (!table) {
        op_fail(op, API_RESOURCE_NOT_FOUND, "Requested resource not found: Table: %.*s not found",
                (int)op->table_name.len, (const char *)op->table_name.at);
    }
    op->result.table = table;
}

/* Runs a request made of these parts; the answer's body is returned and kept until the next. */
static inline const char *language_send(struct language *language,
                                        const struct api_request *request)
{
    arena_reset(&language->arena);
    struct op *op = language->op = api_parse(&language->config, request, &language->arena);
    if (!op->answered) {
        switch (op_shape(op->kind)) {
        case OP_SHAPE_READ:
        case OP_SHAPE_WRITE:
            if (op_plan(op, language_find_usable, language))
                language_run_keys(language, op);
            break;
        case OP_SHAPE_RANGE:
            if (op_plan(op, language_find_usable, language)) {
                const struct table *table = language_find(language, op->table_name);
                while (!language_read(language, op, table))
                    continue;
            }
            break;
        case OP_SHAPE_CONTROL:
            language_run_control(language, op);
            break;
        }
    }
    buf_reset(&language->answer);
    api_respond(op, &language->answer);
    buf_append_u8(&language->answer, 0);
    language->answer.len--;
    return (const char *)language->answer.at;
}

static inline struct api_request language_request(const char *operation, struct bytes body,
                                                  char target[64])
{
    snprintf(target, 64, "DynamoDB_20120810.%s", operation);
    return (struct api_request){
        .method = bytes_literal("POST"),
        .path = bytes_literal("/"),
        .target = bytes_text(target),
        .content_type = bytes_literal("application/x-amz-json-1.0"),
        .host = bytes_literal("localhost:8001"),
        .body = body,
    };
}

static inline const char *language_call(struct language *language, const char *operation,
                                        const char *body)
{
    char target[64];
    struct api_request request = language_request(operation, bytes_text(body), target);
    return language_send(language, &request);
}

#endif
