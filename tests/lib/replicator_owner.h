/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_REPLICATOR_OWNER_H
#define TESTS_REPLICATOR_OWNER_H

/* The owner of a replicator in the test cluster: steps it, writes down and performs its effects,
 * and answers, at once or when the test lets it. */

#include "tests/lib/replicator_node.h"

/* ---- Steps ---- */

static inline void node_step(struct node *node, struct replicator_input *in);

static inline struct replicator_input node_input(struct node *node, enum replicator_input_kind kind)
{
    uint64_t wall = node->cluster->now_ms + (uint64_t)node->skew_ms;
    return (struct replicator_input){.kind = kind,
                                     .mono_ns = node->cluster->now_ms * 1000000,
                                     .wall_ms = wall,
                                     .hlc_now = hlc_now(&node->clock, wall),
                                     .replica = node->replica};
}

static inline void queue_clear(struct frame_queue *queue)
{
    for (uint32_t i = 0; i < queue->count; i++)
        buf_deinit(&queue->frames[i]);
    queue->count = 0;
}

/* The stream that `from` opened to `to` is gone, for both. */
static inline void stream_down(struct node *from, struct node *to, bool tell_from, bool tell_to)
{
    struct cluster *cluster = from->cluster;
    if (!from->up[node_index(to)])
        return;
    from->up[node_index(to)] = false;
    queue_clear(&cluster->queues[node_index(from)][node_index(to)][1]);
    queue_clear(&cluster->queues[node_index(to)][node_index(from)][0]);
    struct replicator_input in;
    if (tell_from && from->replicator) {
        in = node_input(from, REPLICATOR_PEER_DOWN);
        in.peer = to->region;
        in.outbound = true;
        node_step(from, &in);
    }
    if (tell_to && to->replicator) {
        in = node_input(to, REPLICATOR_PEER_DOWN);
        in.peer = from->region;
        node_step(to, &in);
    }
}

static inline void stream_up(struct node *from, struct node *to)
{
    if (from->up[node_index(to)] || !from->replicator || !to->replicator)
        return;
    from->up[node_index(to)] = true;
    struct replicator_input in = node_input(to, REPLICATOR_PEER_UP);
    in.peer = from->region;
    node_step(to, &in);
    in = node_input(from, REPLICATOR_PEER_UP);
    in.peer = to->region;
    in.outbound = true;
    node_step(from, &in);
}

static inline void task_add(struct node *node, const struct replicator_effect *e)
{
    node->tasks = xrealloc(node->tasks, (node->task_count + 1) * sizeof(node->tasks[0]));
    struct task *task = &node->tasks[node->task_count++];
    bool read = e->kind == REPLICATOR_READ_LOG || e->kind == REPLICATOR_READ_SNAPSHOT;
    *task = (struct task){.kind = e->kind,
                          .id = read ? e->id : e->apply_id,
                          .seq = e->seq,
                          .peer = e->peer,
                          .epoch = e->epoch,
                          .rows_max = e->rows_max};
    buf_append_bytes(&task->after, e->after);
    buf_append_bytes(&task->begin, e->begin);
    buf_append_bytes(&task->end, e->end);
    if (e->vv)
        task->vv = *e->vv;
    task->rows = xcalloc(e->row_count, sizeof(task->rows[0]));
    for (uint32_t i = 0; i < e->row_count; i++)
        task->rows[task->row_count++] = row_make(e->rows[i].key, e->rows[i].body);
}
static inline void task_deinit(struct task *task)
{
    buf_deinit(&task->after);
    buf_deinit(&task->begin);
    buf_deinit(&task->end);
    rows_deinit(task->rows, task->row_count);
}

static inline void node_trim(struct node *node, uint64_t seq)
{
    const struct cluster *cluster = node->cluster;
    for (int i = 0; i < NODES && cluster->exact_trim; i++) {
        const struct node *other = &cluster->nodes[i];
        if (vv_get(&other->vv, node->region) < seq)
            fail_msg("%s trims %llu, which %s does not have", node->name, (unsigned long long)seq,
                     other->name);
    }
    uint32_t drop = 0;
    while (drop < node->log_count && node->log_first + drop <= seq)
        row_deinit(&node->log[drop++]);
    node->log_count -= drop;
    memmove(node->log, node->log + drop, node->log_count * sizeof(node->log[0]));
    node->log_first = node->log_count ? node->log_first + drop : 0;
}

static inline void node_collect(struct node *node, const struct vv *vv, uint64_t hlc)
{
    for (uint32_t i = 0; i < node->row_count;) {
        struct record record = row_record(&node->rows[i]);
        if (record_is_tombstone(&record) && record.version.hlc < hlc &&
            vv_knows(vv, record.version.origin, record.version.seq))
            row_remove(node, i);
        else
            i++;
    }
}

static inline void node_whole(struct node *node, const struct vv *vv)
{
    say(node->cluster, "%s: orphans shared", node->name);
    for (uint32_t i = 0; i < vv->count; i++)
        vv_drop(&node->partial, vv->at[i].origin, version_epoch(vv->at[i].seq));
}

static inline void effect_do(struct node *node, const struct replicator_effect *e)
{
    struct cluster *cluster = node->cluster;
    struct node *peer = e->peer ? node_of(cluster, e->peer) : NULL;
    const char *name = node->name;
    unsigned long long seq = e->seq;
    cluster->effects[e->kind]++;
    switch (e->kind) {
    case REPLICATOR_SEND: {
        frame_say(cluster, node, peer, e->bytes);
        struct frame_queue *queue =
            &cluster->queues[node_index(node)][node_index(peer)][e->outbound];
        check(queue->count < QUEUE_MAX);
        queue->frames[queue->count] = (struct buf){0};
        buf_append_bytes(&queue->frames[queue->count++], e->bytes);
        return;
    }
    case REPLICATOR_CLOSE:
        say(cluster, "%s: close stream %s %s: %s", name, e->outbound ? "to" : "from", peer->name,
            e->reason);
        return;
    case REPLICATOR_READ_LOG:
    case REPLICATOR_READ_SNAPSHOT:
        task_add(node, e);
        return;
    case REPLICATOR_APPLY:
        say(cluster, "%s: apply %u of %s up to %llu", name, e->row_count, peer->name, seq);
        task_add(node, e);
        return;
    case REPLICATOR_APPLY_SNAPSHOT:
        say(cluster, "%s: apply snapshot %u", name, e->row_count);
        task_add(node, e);
        return;
    case REPLICATOR_SWEEP_SNAPSHOT:
        say(cluster, "%s: sweep (%.*s,%.*s]", name, (int)e->begin.len,
            e->begin.len ? (const char *)e->begin.at : "", (int)e->end.len,
            e->end.len ? (const char *)e->end.at : "");
        task_add(node, e);
        return;
    case REPLICATOR_FINISH_SNAPSHOT:
        say(cluster, "%s: finish snapshot", name);
        task_add(node, e);
        return;
    case REPLICATOR_TRIM:
        say(cluster, "%s: trim %llu", name, seq);
        node_trim(node, e->seq);
        return;
    case REPLICATOR_COLLECT:
        say(cluster, "%s: collect", name);
        node_collect(node, e->vv, e->hlc);
        return;
    case REPLICATOR_OBSERVE:
        hlc_observe(&node->clock, cluster->now_ms + (uint64_t)node->skew_ms, e->hlc);
        return;
    case REPLICATOR_PEER_TABLES:
        say(cluster, "%s: tables of %s: %.*s", name, peer->name, (int)e->bytes.len,
            (const char *)e->bytes.at);
        return;
    case REPLICATOR_CAUGHT_UP:
        say(cluster, "%s: %s has caught up", name, peer->name);
        return;
    case REPLICATOR_ACKED:
        say(cluster, "%s: %s acknowledged %llu", name, peer->name, seq);
        return;
    case REPLICATOR_ORPHANS_SHARED:
        node_whole(node, e->vv);
        return;
    case REPLICATOR_PEER_AHEAD:
        say(cluster, "%s: %s is ahead with %llu", name, peer->name, seq);
        return;
    }
    unreachable();
}

static inline void node_step(struct node *node, struct replicator_input *in)
{
    struct replicator_output out;
    replicator_step(node->replicator, in, &out);
    bool close_out[NODES] = {0}, close_in[NODES] = {0};
    for (uint32_t i = 0; i < out.count; i++) {
        effect_do(node, &out.at[i]);
        if (out.at[i].kind == REPLICATOR_CLOSE) {
            uint32_t peer = node_index(node_of(node->cluster, out.at[i].peer));
            *(out.at[i].outbound ? &close_out[peer] : &close_in[peer]) = true;
        }
    }
    for (uint32_t i = 0; i < NODES; i++) {
        if (close_out[i])
            stream_down(node, &node->cluster->nodes[i], false, true);
        if (close_in[i])
            stream_down(&node->cluster->nodes[i], node, true, false);
    }
}

/* ---- The owner's answers ---- */

static inline void answer_read(struct node *node, const struct task *task)
{
    struct replicator_input in = node_input(node, REPLICATOR_ROWS);
    struct replicator_row rows[64];
    uint32_t max = task->rows_max < 64 ? task->rows_max : 64;
    in.id = task->id;
    in.rows = rows;
    in.failed = node->read_fails;
    if (task->kind == REPLICATOR_READ_LOG) {
        uint32_t at = task->seq > node->log_first ? (uint32_t)(task->seq - node->log_first) : 0;
        for (; at < node->log_count && in.row_count < max; at++)
            rows[in.row_count++] = (struct replicator_row){.key = buf_view(&node->log[at].key),
                                                           .body = buf_view(&node->log[at].body),
                                                           .seq = node->log_first + at};
        in.more = at < node->log_count;
    } else {
        uint32_t at = row_place(node, buf_view(&task->after));
        if (task->after.len && at < node->row_count &&
            bytes_equal(buf_view(&node->rows[at].key), buf_view(&task->after)))
            at++;
        for (; at < node->row_count && in.row_count < max; at++)
            rows[in.row_count++] = (struct replicator_row){.key = buf_view(&node->rows[at].key),
                                                           .body = buf_view(&node->rows[at].body)};
        in.more = at < node->row_count;
    }
    node_step(node, &in);
}

static inline bool task_names(const struct task *task, struct bytes key)
{
    for (uint32_t i = 0; i < task->row_count; i++)
        if (bytes_equal(buf_view(&task->rows[i].key), key))
            return true;
    return false;
}

static inline void answer_apply(struct node *node, const struct task *task)
{
    if (task->kind == REPLICATOR_APPLY || task->kind == REPLICATOR_APPLY_SNAPSHOT)
        for (uint32_t i = 0; i < task->row_count; i++)
            row_apply(node, buf_view(&task->rows[i].key), buf_view(&task->rows[i].body));
    if (task->kind == REPLICATOR_APPLY)
        check(vv_raise(&node->vv, task->peer, task->seq));
    if (task->kind == REPLICATOR_FINISH_SNAPSHOT)
        check(vv_join(&node->vv, &task->vv));
    if (task->kind == REPLICATOR_APPLY_SNAPSHOT)
        check(vv_raise(&node->partial, task->peer, version_epoch_base(task->epoch) + 1));
    if (task->kind == REPLICATOR_FINISH_SNAPSHOT)
        vv_drop(&node->partial, task->peer, task->epoch);
    replica_note_partial(node->replica, &node->partial);
    for (uint32_t i = 0; task->kind == REPLICATOR_SWEEP_SNAPSHOT && i < node->row_count;) {
        struct record record = row_record(&node->rows[i]);
        struct bytes key = buf_view(&node->rows[i].key);
        bool inside = bytes_compare(key, buf_view(&task->begin)) > 0 &&
                      (!task->end.len || bytes_compare(key, buf_view(&task->end)) <= 0);
        if (inside && !task_names(task, key) &&
            vv_knows(&task->vv, record.version.origin, record.version.seq))
            row_remove(node, i);
        else
            i++;
    }
    uint64_t wall = node->cluster->now_ms + (uint64_t)node->skew_ms, reserved;
    if (hlc_reservation_due(&node->clock, wall, hlc_make(wall, 0), &reserved))
        hlc_reservation_kept(&node->clock, reserved);
    struct replicator_input in = node_input(node, REPLICATOR_APPLIED);
    in.peer = task->peer;
    in.apply_id = task->id;
    if (task->kind == REPLICATOR_APPLY)
        in.seq = task->seq;
    if (task->kind == REPLICATOR_FINISH_SNAPSHOT)
        in.vv = &task->vv;
    node_step(node, &in);
}

/* Does what the owner was asked to; applies only unless held. */
static inline void node_work(struct node *node)
{
    for (uint32_t i = 0; i < node->task_count;) {
        bool read = node->tasks[i].kind == REPLICATOR_READ_LOG ||
                    node->tasks[i].kind == REPLICATOR_READ_SNAPSHOT;
        if (!read && node->hold) {
            i++;
            continue;
        }
        struct task task = node->tasks[i];
        node->task_count--;
        memmove(&node->tasks[i], &node->tasks[i + 1],
                (node->task_count - i) * sizeof(node->tasks[0]));
        if (read)
            answer_read(node, &task);
        else
            answer_apply(node, &task);
        task_deinit(&task);
        i = 0;
    }
}

static inline void tasks_drop(struct node *node)
{
    for (uint32_t i = 0; i < node->task_count; i++)
        task_deinit(&node->tasks[i]);
    node->task_count = 0;
}

/* The disk is full: what is held fails. */
static inline void node_fail_applies(struct node *node)
{
    for (uint32_t i = 0; i < node->task_count;) {
        struct task task = node->tasks[i];
        if (task.kind == REPLICATOR_READ_LOG || task.kind == REPLICATOR_READ_SNAPSHOT) {
            i++;
            continue;
        }
        node->task_count--;
        memmove(&node->tasks[i], &node->tasks[i + 1],
                (node->task_count - i) * sizeof(node->tasks[0]));
        struct replicator_input in = node_input(node, REPLICATOR_APPLY_FAILED);
        in.peer = task.peer;
        in.apply_id = task.id;
        node_step(node, &in);
        task_deinit(&task);
    }
}

static inline uint64_t node_last(const struct node *node)
{
    return vv_get(&node->vv, node->region);
}

/* value NULL deletes. */
static inline struct version node_write(struct node *node, const char *key, const char *value)
{
    struct row *row = row_find(node, bytes_text(key));
    struct record record = {.key = bytes_text(key),
                            .kind = value ? RECORD_PUT : RECORD_DELETE,
                            .dep = node->vv,
                            .item = value ? bytes_text(value) : BYTES_NONE};
    uint64_t after = 0;
    if (row) {
        struct record stored = row_record(row);
        after = stored.version.hlc;
        check(vv_join(&record.dep, &stored.dep));
        check(vv_raise(&record.dep, stored.version.origin, stored.version.seq));
    }
    uint64_t base = version_epoch_base(node->epoch), last = node_last(node);
    uint64_t seq = (last > base ? last : base) + 1;
    uint64_t wall = node->cluster->now_ms + (uint64_t)node->skew_ms;
    record.version = (struct version){hlc_tick(&node->clock, wall, after), node->region, seq};
    uint64_t reserved;
    if (hlc_reservation_due(&node->clock, wall, record.version.hlc, &reserved))
        hlc_reservation_kept(&node->clock, reserved);
    cleanup(buf_deinit) struct buf body = {0};
    record_encode_body(&record, &body);
    row_apply(node, record.key, buf_view(&body));
    node->log = xrealloc(node->log, (node->log_count + 1) * sizeof(node->log[0]));
    node->log[node->log_count++] = row_make(record.key, buf_view(&body));
    if (!node->log_first)
        node->log_first = seq;
    check(vv_raise(&node->vv, node->region, seq));
    if (!node->replicator)
        return record.version;
    replica_note_stamped(node->replica, seq);
    replica_note_tombstones(node->replica, true);
    struct replicator_input in = node_input(node, REPLICATOR_COMMITTED);
    in.seq = seq;
    in.hlc = record.version.hlc;
    in.log_bytes = body.len + record.key.len;
    node_step(node, &in);
    return record.version;
}

#endif
