/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_REPLICATOR_NODE_H
#define TESTS_REPLICATOR_NODE_H

/* A node of the replicator's test cluster at rest: its rows and log in sorted arrays, and how a
 * frame is written down. What moves it is in replicator_cluster.h. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/hlc.h"
#include "conflict/region_id.h"
#include "conflict/resolve.h"
#include "replicator/replicator.h"
#include "replicator/replicator_wire.h"

enum { NODES = 3, QUEUE_MAX = 4096 };

struct row {
    struct buf key;
    struct buf body;
};

struct frame_queue {
    struct buf frames[QUEUE_MAX];
    uint32_t count;
};

struct task { /* what the owner was asked and has not answered */
    enum replicator_effect_kind kind;
    uint64_t id, seq, epoch;
    uint16_t peer;
    uint32_t rows_max;
    struct buf after, begin, end;
    struct vv vv;
    struct row *rows;
    uint32_t row_count;
};

struct node {
    struct cluster *cluster;
    uint16_t region;
    const char *name;
    struct replicator *replicator;
    struct replica *replica;
    struct replicator_config config;
    struct hlc clock;
    int64_t skew_ms;
    struct row *rows; /* by key */
    uint32_t row_count;
    struct row *log; /* first is log_first */
    uint32_t log_count;
    uint64_t log_first, log_bytes, epoch;
    struct vv vv, partial;
    uint16_t members[NODES];
    uint32_t member_count;
    struct task *tasks;
    uint32_t task_count;
    bool hold;       /* APPLYs stay undone */
    bool read_fails; /* answers reads with `failed` */
    bool up[NODES];  /* our stream to that node */
};

struct cluster {
    struct node nodes[NODES];
    struct frame_queue queues[NODES][NODES][2]; /* from, to, sender is the opener */
    uint64_t now_ms;
    struct buf *out; /* NULL: nobody reads */
    bool trace;
    bool exact_trim; /* no log is ever cut: what is trimmed must be durable everywhere */
    uint64_t effects[REPLICATOR_PEER_AHEAD + 1]; /* how many of each kind there were */
};

static inline void say(struct cluster *cluster, const char *format, ...)
{
    if (!cluster->out)
        return;
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    buf_append_text(cluster->out, line);
    buf_append_u8(cluster->out, '\n');
}

static inline struct node *node_of(struct cluster *cluster, uint16_t region)
{
    for (int i = 0; i < NODES; i++)
        if (cluster->nodes[i].region == region)
            return &cluster->nodes[i];
    return NULL;
}
static inline uint32_t node_index(const struct node *node)
{
    return (uint32_t)(node - node->cluster->nodes);
}

/* ---- Rows ---- */

static inline struct row row_make(struct bytes key, struct bytes body)
{
    struct row row = {0};
    buf_append_bytes(&row.key, key);
    buf_append_bytes(&row.body, body);
    return row;
}
static inline void row_deinit(struct row *row)
{
    buf_deinit(&row->key);
    buf_deinit(&row->body);
}
static inline void rows_deinit(struct row *rows, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        row_deinit(&rows[i]);
    free(rows);
}
static inline uint32_t row_place(const struct node *node, struct bytes key)
{
    uint32_t i = 0;
    while (i < node->row_count && bytes_compare(buf_view(&node->rows[i].key), key) < 0)
        i++;
    return i;
}
static inline struct row *row_find(const struct node *node, struct bytes key)
{
    uint32_t i = row_place(node, key);
    bool is = i < node->row_count && bytes_equal(buf_view(&node->rows[i].key), key);
    return is ? &node->rows[i] : NULL;
}
static inline void row_remove(struct node *node, uint32_t i)
{
    row_deinit(&node->rows[i]);
    node->row_count--;
    memmove(&node->rows[i], &node->rows[i + 1], (node->row_count - i) * sizeof(node->rows[0]));
}
static inline struct record row_record(const struct row *row)
{
    struct record record;
    check(record_decode_body(buf_view(&row->body), &record));
    return record;
}
/* Last writer wins. */
static inline void row_apply(struct node *node, struct bytes key, struct bytes body)
{
    struct record incoming, stored;
    check(record_decode_body(body, &incoming));
    struct row *row = row_find(node, key);
    if (row) {
        stored = row_record(row);
        if (resolve(&stored, &incoming).winner != RESOLVE_INCOMING)
            return;
        buf_reset(&row->body);
        buf_append_bytes(&row->body, body);
        return;
    }
    uint32_t i = row_place(node, key);
    node->rows = xrealloc(node->rows, (node->row_count + 1) * sizeof(node->rows[0]));
    memmove(&node->rows[i + 1], &node->rows[i], (node->row_count - i) * sizeof(node->rows[0]));
    node->rows[i] = row_make(key, body);
    node->row_count++;
}

/* ---- What a frame says ---- */

static inline void frame_say(struct cluster *cluster, const struct node *from,
                             const struct node *to, struct bytes bytes)
{
    if (!cluster->out)
        return;
    struct arena arena;
    arena_init(&arena);
    struct wire_message m;
    char line[800];
    size_t len = 0;
    check(wire_decode(bytes, 1 << 24, &arena, &m));
#define ADD(...) len += (size_t)snprintf(line + len, sizeof(line) - len, __VA_ARGS__)
    static const char *const names[] = {
        "Hello", "Tables",    "Offer",         "Resume",         "Batch",
        "Ack",   "Heartbeat", "SnapshotOffer", "SnapshotAccept", "SnapshotChunk"};
    ADD("%s -> %s %s", from->name, to->name, names[m.kind]);
    if (m.kind == WIRE_TABLES)
        ADD(" %.*s%s", (int)m.part.len, (const char *)m.part.at, m.more ? "..." : "");
    if (m.kind == WIRE_BATCH)
        ADD(" %llu..%llu", (unsigned long long)m.first_seq,
            (unsigned long long)(m.first_seq + m.record_count - 1));
    if (m.kind == WIRE_ACK)
        ADD(" consumed=%llu%s", (unsigned long long)m.consumed_bytes,
            m.want_tables ? " want tables" : "");
    if (m.kind == WIRE_SNAPSHOT_CHUNK)
        ADD(" %u (%.*s,%.*s] %u rows%s", m.index, (int)m.begin.len, (const char *)m.begin.at,
            (int)m.end.len, (const char *)m.end.at, m.record_count, m.last ? " last" : "");
    for (uint32_t i = 0; i < m.position_count; i++) {
        const struct wire_position *p = &m.positions[i];
        if (m.kind == WIRE_HEARTBEAT)
            ADD(" stamped=%llu sent=%llu", (unsigned long long)p->stamped,
                (unsigned long long)p->sent);
        if (p->snapshot_id && m.kind == WIRE_HEARTBEAT)
            ADD(" snapshot=%u", p->snapshot_chunks);
        else if (p->snapshot_id)
            ADD(" took-snapshot");
        if (m.kind == WIRE_RESUME)
            ADD(" have=%llu", (unsigned long long)p->have);
        for (uint32_t v = 0; v < p->vv.count; v++)
            ADD(" %s:%llu", node_of(cluster, p->vv.at[v].origin)->name,
                (unsigned long long)p->vv.at[v].seq);
    }
#undef ADD
    say(cluster, "%s", line);
    arena_deinit(&arena);
}

#endif
