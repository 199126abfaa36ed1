/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_OP_H
#define REGION_OP_H

/* One API request, parsed and validated as far as that goes without the table, and its result. It
 * lives in the arena of its request, is lent to the region core from REGION_REQUEST until
 * REGION_REPLY, and is written into JSON by region/api.
 *
 * The language (plan.c, execute.c, query.c) reads and fills it; the region core (region.c) carries
 * it between the store and the language; only control.c reads the control members. */

#include <stdbool.h>
#include <stdint.h>

#include "conflict/base/arena.h"
#include "conflict/base/bytes.h"
#include "region/core/error.h"
#include "region/core/expr.h"
#include "region/core/item.h"
#include "region/core/table.h"

/* OP(enumerator, name) */
#define OP_MAP(OP)                                                                                 \
    OP(GET_ITEM, "GetItem")                                                                        \
    OP(PUT_ITEM, "PutItem")                                                                        \
    OP(UPDATE_ITEM, "UpdateItem")                                                                  \
    OP(DELETE_ITEM, "DeleteItem")                                                                  \
    OP(QUERY, "Query")                                                                             \
    OP(SCAN, "Scan")                                                                               \
    OP(BATCH_GET_ITEM, "BatchGetItem")                                                             \
    OP(BATCH_WRITE_ITEM, "BatchWriteItem")                                                         \
    OP(CREATE_TABLE, "CreateTable")                                                                \
    OP(DESCRIBE_TABLE, "DescribeTable")                                                            \
    OP(LIST_TABLES, "ListTables")                                                                  \
    OP(UPDATE_TABLE, "UpdateTable")                                                                \
    OP(DELETE_TABLE, "DeleteTable")                                                                \
    OP(DESCRIBE_LIMITS, "DescribeLimits")                                                          \
    OP(DESCRIBE_ENDPOINTS, "DescribeEndpoints")                                                    \
    OP(CREATE_GLOBAL_TABLE, "CreateGlobalTable")                                                   \
    OP(UPDATE_GLOBAL_TABLE, "UpdateGlobalTable")                                                   \
    OP(DESCRIBE_GLOBAL_TABLE, "DescribeGlobalTable")                                               \
    OP(LIST_GLOBAL_TABLES, "ListGlobalTables")

enum op_kind {
#define OP(enumerator, name) OP_##enumerator,
    OP_MAP(OP)
#undef OP
        OP_KIND_COUNT
};

const char *op_name(enum op_kind kind);

enum return_values {
    RETURN_NONE,
    RETURN_ALL_OLD,
    RETURN_UPDATED_OLD,
    RETURN_ALL_NEW,
    RETURN_UPDATED_NEW
};
enum return_capacity { CAPACITY_NONE, CAPACITY_TOTAL, CAPACITY_INDEXES };
enum op_select { SELECT_ALL, SELECT_COUNT, SELECT_SPECIFIC };

enum {
    BATCH_GET_MAX = 100,
    BATCH_WRITE_MAX = 25,
    PAGE_BYTES_MAX = 1024 * 1024,           /* of items examined, as item_size counts */
    BATCH_GET_BYTES_MAX = 16 * 1024 * 1024, /* of items returned */
    REQUEST_BYTES_MAX = 16 * 1024 * 1024
};

/* One key that an operation names: one for the single-item operations, many in a batch. */
struct op_key {
    struct bytes table_name;
    struct bytes attributes; /* an item of just the key attributes, as the request gave them; for a
                                put, the whole item */
    bool put;                /* BatchWriteItem: put, else delete */
    /* Filled by op_plan: */
    const struct table *table;
    struct bytes key; /* row key, key.h; in the arena */
    uint32_t group;   /* batches: of op.groups, else 0 */
    /* Filled by op_execute_key: */
    bool done;
    bool unprocessed;
    struct bytes item; /* read or returned; empty for none */
};

/* One table of a batch operation: keys[first] up to keys[first + count - 1]. */
struct op_group {
    struct bytes table_name;
    uint32_t first, count;
    bool consistent_read;               /* BatchGetItem */
    struct expr_projection *projection; /* BatchGetItem; may be NULL */
    struct bytes members; /* BatchGetItem: its JSON members but Keys, each led by a comma, to be
                             repeated in UnprocessedKeys */
};

/* Query and Scan: what is left to read. Filled by op_plan, moved on by op_page_rows. */
struct op_range {
    struct bytes begin; /* row keys; inclusive */
    struct bytes end;   /* exclusive; an empty run: to the end of the table */
    bool reverse;
    uint32_t rows_max; /* worth reading at once */
    uint64_t bytes_max;
};

/* To op_page_rows, an empty item stands for a deleted one, which only moves the range. */
struct op_row {
    struct bytes key;
    struct bytes item;
};

/* Members of CreateTable and UpdateTable. */
struct op_replica_update {
    enum {
        REPLICA_UPDATE_EMPTY,
        REPLICA_UPDATE_CREATE,
        REPLICA_UPDATE_UPDATE,
        REPLICA_UPDATE_DELETE
    } kind;
    bool several_kinds; /* Create and Delete in one element */
    bool only_region;   /* Update with nothing but a RegionName */
    bool throughput_override;
    struct bytes region;
};
struct op_control {
    struct key_schema key; /* CreateTable, validated */
    bool billing_given;
    enum billing_mode billing;
    bool throughput_given;
    uint64_t read_units, write_units;
    bool stream_given, stream_enabled;
    enum stream_view stream;
    bool protection_given, protection;
    bool class_given, class_infrequent;
    bool sse_given, sse_enabled;
    bool index_updates_given; /* GlobalSecondaryIndexUpdates, of updates and deletes only: no table
                                 has an index, so they find none (ResourceNotFoundException) */
    bool settings_overrides;  /* GlobalTableSettingsReplicationMode: ENABLED_WITH_OVERRIDES */
    bool other_given; /* any further mutating member of UpdateTable; accepted, no state is kept */
    bool replicas_given;
    struct op_replica_update *replicas;
    uint32_t replica_count;
    bool witnesses_given;
    struct op_replica_update *witnesses;
    uint32_t witness_count;
    bool consistency_given, consistency_strong;
    struct bytes start_table; /* ListTables: ExclusiveStartTableName */
    uint32_t limit;           /* ListTables */
};

struct op_result {
    enum api_error error;
    const char *message;     /* of the error; in the arena or static */
    struct bytes error_item; /* ReturnValuesOnConditionCheckFailure; empty for none */

    struct bytes attributes; /* ReturnValues or GetItem's item; empty for none */
    struct op_row *rows;     /* Query and Scan: projected items */
    uint32_t row_count;      /* of rows */
    uint32_t count, scanned_count;
    bool last_key_given;
    struct bytes last_key; /* an item of the key attributes: LastEvaluatedKey */

    /* Half units, so that an eventually consistent read is a whole number. One per table named. */
    struct op_capacity {
        struct bytes table_name;
        uint64_t half_units;
        bool read;
    } * capacity;
    uint32_t capacity_count;

    const struct table *table; /* a copy in the arena: CreateTable and friends, DescribeTable */
    struct bytes *names;       /* ListTables */
    uint32_t name_count;
    bool names_more;
};

struct op {
    enum op_kind kind; /* OP_KIND_COUNT: refused before its kind was known */
    struct arena *arena;
    uint16_t region;   /* this Region, for ARNs */
    struct bytes host; /* as the client called it, for DescribeEndpoints */
    bool answered; /* by the parser alone: the result is complete, the core is not asked. Set also
                      when the parser refused it, with result.error */
    struct op_key *keys;
    uint32_t key_count;
    struct op_group *groups; /* batch operations */
    uint32_t group_count;
    uint64_t batch_bytes;    /* BatchGetItem: returned so far */
    struct bytes table_name; /* all but the batch operations and those that name no table */

    struct expr_scope scope;
    struct expr_condition *condition;
    struct expr_condition *filter;
    struct expr_key_condition *key_condition;
    struct expr_projection *projection; /* BatchGetItem: see its groups */
    struct expr_update *update;
    bool consistent_read;
    enum return_values return_values;
    bool return_old_on_failure;
    enum return_capacity return_capacity;
    bool return_collection_metrics;

    enum op_select select;
    bool scan_forward;
    uint32_t limit; /* 0: none */
    bool start_key_given;
    struct bytes start_key; /* an item of the key attributes: ExclusiveStartKey */
    bool index_given;
    struct bytes index_name;
    bool segments_given;
    uint32_t segment, segment_count;
    uint64_t page_bytes; /* examined so far */
    uint32_t rows_cap;   /* of result.rows */

    struct op_range range;
    /* A copy in the arena, as a page may outlive its table. */
    const struct key_schema *range_schema;
    struct op_control *control; /* CreateTable, UpdateTable, ListTables; else NULL */
    struct op_result result;
};

/* Sets result.error and a formatted message. Always returns false, to be returned. */
bool op_fail(struct op *op, enum api_error error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* How the region core handles an operation. */
enum op_shape {
    OP_SHAPE_READ,    /* keys, each read on its own */
    OP_SHAPE_WRITE,   /* keys, each read and perhaps written */
    OP_SHAPE_RANGE,   /* one range, in order, until a page is full */
    OP_SHAPE_CONTROL, /* the control plane */
};
enum op_shape op_shape(enum op_kind kind);

/* The table of that name that item operations may use, or NULL (unknown, or not yet usable). */
typedef const struct table *op_find_table(void *context, struct bytes name);

/* First half: finds the tables, checks keys and everything else against the schema, fills each
 * key's row key or the range. False: result holds the error, nothing may be executed. */
bool op_plan(struct op *op, op_find_table *find, void *context);

enum op_change_kind { OP_CHANGE_NONE, OP_CHANGE_PUT, OP_CHANGE_DELETE };
struct op_change {
    enum op_change_kind kind;
    struct bytes item; /* OP_CHANGE_PUT: the new item, in the arena */
};

/* Second half, for keys[index]: `item` is what the key holds now, writes in flight included (an
 * empty run for nothing). Evaluates condition and update, fills the result's part and *ret. A
 * failed condition is result.error and OP_CHANGE_NONE. A delete of what is not there is
 * OP_CHANGE_NONE, as is a put or update that changes nothing on a table with streams (no record is
 * written). */
void op_execute_key(struct op *op, uint32_t index, struct bytes item, struct op_change *ret);

/* Second half, for a range: takes the next rows in order. `more`: the store has further rows in the
 * range. True: the page is complete and the result is filled. False: read on from range.begin (or,
 * in reverse, down from range.end), which has been moved past these rows. */
bool op_page_rows(struct op *op, const struct op_row *rows, uint32_t count, bool more);

#endif
