/* SPDX-License-Identifier: Apache-2.0 */
/* The door of the region core: takes an input apart, hands it to the file that knows its kind, and
 * collects effects. Everything an effect points to lives in one arena that is emptied when the next
 * step begins, or in batches and tables that outlive the step. */

#include "region/core/region.h"

#include "conflict/base/plant.h"
#include "conflict/region_id.h"
#include "region/core/region_internal.h"
#include "region/core/strong.h"

struct region *region_new(const struct region_config *config)
{
    check(region_id_valid(config->region));
    check(config->peer_count < VV_MAX);
    check(config->partitions_per_table >= 1);
    check(config->partitions_per_table <= TABLE_PARTITIONS_MAX);
    struct region *region = xcalloc(1, sizeof(*region));
    region->config = *config;
    region->config.replication.region = config->region;
    region->config.replication.peer_count = config->peer_count;
    region->config.replication.seed = config->seed;
    memcpy(region->config.replication.peers, config->peers, sizeof(config->peers));
    rng_init(&region->rng, config->seed);
    arena_init(&region->out);
    list_init(&region->erasing);
    list_init(&region->graves);
    list_init(&region->batches);
    list_init(&region->kept_lanes);
    list_init(&region->spare_batches);
    list_init(&region->requests);
    list_init(&region->calls);
    list_init(&region->dirty);
    buf_init(&region->key_scratch);
    buf_init(&region->end_scratch);
    buf_init(&region->body_scratch);
    buf_init(&region->log_scratch);
    region->read_free = UINT32_MAX;
    region->retry_at_ns = UINT64_MAX;
    region->replicator = replicator_new(&region->config.replication);
    strong_new(region);
    return region;
}

static void free_lists(struct region *region)
{
    list_each(link, spare, &region->spare_batches)
    {
        struct batch *batch = container_of(link, struct batch, link);
        buf_deinit(&batch->bytes);
        free(batch);
    }
    list_each(link, spare, &region->requests)
    {
        free(container_of(link, struct request, link));
    }
    list_each(link, spare, &region->calls)
    {
        free(container_of(link, struct call, link));
    }
    list_each(link, spare, &region->graves)
    {
        free(container_of(link, struct grave, link));
    }
    while (region->spare_changes) {
        struct change *next = region->spare_changes->next;
        free(region->spare_changes);
        region->spare_changes = next;
    }
}

/* What works on a table holds lanes, and lanes count themselves with their table. */
static void free_work(struct region *region, struct table_state *table)
{
    for (uint32_t i = 0; i < table->d.table.partition_count; i++) {
        apply_free_all(region, &table->partitions[i]);
        if (table->partitions[i].collect)
            purge_free(region, table->partitions[i].collect);
    }
}

static void free_tables(struct region *region)
{
    for (uint32_t i = 0; i < region->table_count; i++)
        free_work(region, region->tables[i]);
    list_each(link, spare, &region->erasing)
    {
        free_work(region, container_of(link, struct table_state, link));
    }
    lanes_free(region);
    for (uint32_t i = 0; i < region->table_count; i++)
        table_free(region->tables[i]);
    list_each(link, spare, &region->erasing)
    {
        table_free(container_of(link, struct table_state, link));
    }
    while (region->freed) {
        struct table_state *table = region->freed;
        region->freed = table->free_next;
        table_free(table);
    }
}

struct region *region_free(struct region *region)
{
    if (!region)
        return NULL;
    strong_free(region);
    /* Changes under way are owned by their batch or by the calls that they wait for. */
    change_free_all(region);
    /* Before the tables, which they count themselves with. */
    list_each(link, spare, &region->batches)
    {
        batch_drop(region, container_of(link, struct batch, link));
    }
    free_tables(region);
    free_lists(region);
    replicator_free(region->replicator);
    arena_deinit(&region->out);
    buf_deinit(&region->key_scratch);
    buf_deinit(&region->end_scratch);
    buf_deinit(&region->body_scratch);
    buf_deinit(&region->log_scratch);
    free(region->effects);
    free(region->tables);
    free(region->reads);
    free(region->reports);
    free(region->rows);
    free(region->replicator_rows);
    free(region);
    return NULL;
}

struct region_effect *effect_add(struct region *region, enum region_effect_kind kind)
{
    if (region->effect_count == region->effect_cap) {
        region->effect_cap = region->effect_cap ? region->effect_cap * 2 : 64;
        region->effects = xrealloc(region->effects, sizeof(*region->effects) * region->effect_cap);
    }
    struct region_effect *effect = &region->effects[region->effect_count++];
    *effect = (struct region_effect){.kind = kind};
    return effect;
}

struct bytes out_copy(struct region *region, struct bytes from)
{
    if (from.len == 0)
        return BYTES_NONE;
    return bytes_copy(&region->out, from);
}

uint32_t peer_index(const struct region *region, uint16_t peer)
{
    for (uint32_t i = 0; i < region->config.peer_count; i++) {
        if (region->config.peers[i] == peer)
            return i;
    }
    return VV_MAX;
}

/* ---- Requests ---- */

struct request *request_new(struct region *region, struct op *op, uint64_t token,
                            uint32_t wait_count)
{
    struct request *request = xmalloc(sizeof(*request) + sizeof(request->waits[0]) * wait_count);
    *request = (struct request){.op = op, .token = token};
    for (uint32_t i = 0; i < wait_count; i++) {
        request->waits[i] = (struct wait){.kind = WAIT_REQUEST, .index = i, .owner = request};
        list_init(&request->waits[i].link);
    }
    list_append(&region->requests, &request->link);
    region->request_count++;
    return request;
}

void request_fail(struct request *request, enum api_error error, const char *message)
{
    struct op_result *result = &request->op->result;
    if (result->error == API_OK)
        op_fail(request->op, error, "%s", message);
}

void request_fail_undone(struct request *request, const char *message)
{
    /* Of a batch, other parts may have been done. */
    bool whole = request->op->key_count == 1 || planted(PLANT_BATCH_UNDONE);
    request_fail(request, API_INTERNAL,
                 whole ? message
                       : "At least one part of the batch could not be carried out; others may have "
                         "been. The request may be retried.");
}

static void release_tables(struct region *region, struct request *request)
{
    if (request->table)
        table_release(region, request->table);
    for (uint32_t i = 0; i < request->user_count; i++)
        table_release(region, table_of(request->op->keys[i].table));
}

void request_finish(struct region *region, struct request *request)
{
    check(request->pending == 0);
    check(region->request_count > 0);
    release_tables(region, request);
    struct region_effect *effect = effect_add(region, REGION_REPLY);
    effect->token = request->token;
    effect->op = request->op;
    list_remove(&request->link);
    region->request_count--;
    free(request);
}

void request_settle(struct region *region, struct request *request)
{
    check(request->pending > 0);
    if (--request->pending == 0)
        request_finish(region, request);
}

static void reply_now(struct region *region, struct op *op, uint64_t token)
{
    struct region_effect *effect = effect_add(region, REGION_REPLY);
    effect->token = token;
    effect->op = op;
}

static bool refuse_early(struct region *region, struct op *op)
{
    if (!region->ready) {
        op_fail(op, API_UNAVAILABLE, "The Region is still starting. Please try again shortly.");
        return true;
    }
    bool full = region->request_count >= region->config.operations_in_flight_max ||
                (op_shape(op->kind) == OP_SHAPE_WRITE &&
                 region->persist_bytes >= region->config.persist_bytes_max);
    if (!full)
        return false;
    region->counters.throttled++;
    op_fail(op, API_THROTTLING,
            "Throughput exceeds the current capacity of your table or index. DynamoDB is "
            "automatically scaling your table or index so please try again shortly.");
    return true;
}

static void take_request(struct region *region, const struct region_input *in)
{
    struct op *op = in->op;
    if (op->result.error != API_OK || op->answered || refuse_early(region, op)) {
        reply_now(region, op, in->token);
        return;
    }
    enum op_shape shape = op_shape(op->kind);
    if (shape == OP_SHAPE_CONTROL) {
        control_begin(region, op, in->token);
        return;
    }
    if (!op_plan(op, catalog_find_usable, region)) {
        reply_now(region, op, in->token);
        return;
    }
    if (shape == OP_SHAPE_WRITE)
        write_begin(region, op, in->token);
    else
        read_begin(region, op, in->token);
}

/* ---- Peers ---- */

static void take_peer(struct region *region, const struct region_input *in)
{
    if (in->channel == CHANNEL_GROUPS_OUT || in->channel == CHANNEL_GROUPS_IN) {
        strong_peer(region, in);
        return;
    }
    uint32_t index = peer_index(region, in->peer);
    bool outbound = in->channel == CHANNEL_OUTBOUND;
    if (index == VV_MAX)
        return; /* not of this cluster: the driver accepts none such */
    if (!region->ready) {
        if (in->kind == REGION_PEER_FRAME && region->peer_up[index][outbound]) {
            /* What it says could not be kept: it shall say it again. */
            struct region_effect *effect = effect_add(region, REGION_CLOSE);
            effect->peer = in->peer;
            effect->channel = in->channel;
            effect->reason = "starting";
        }
        region->peer_up[index][outbound] = in->kind == REGION_PEER_UP;
        return;
    }
    struct replicator_input to = {.peer = in->peer, .outbound = outbound, .bytes = in->bytes};
    to.kind = in->kind == REGION_PEER_UP     ? REPLICATOR_PEER_UP
              : in->kind == REGION_PEER_DOWN ? REPLICATOR_PEER_DOWN
                                             : REPLICATOR_FRAME;
    replicate(region, &to);
    if (in->kind == REGION_PEER_UP)
        group_advance_all(region);
}

static bool any_tombstone_shared(const struct region *region)
{
    for (uint32_t i = 0; i < region->table_count; i++) {
        const struct table_state *table = region->tables[i];
        for (uint32_t j = 0; j < table->d.table.partition_count; j++)
            if (table->partitions[j].replica && table->partitions[j].meta.tombstones > 0)
                return true;
    }
    return false;
}

/* Tombstones go only when every member promises to write nothing older any more, and a promise is
 * never above the durable reservation (hlc.h). A Region that takes no writes renews it for that
 * reason alone, now and then, and only while there are tombstones. */
static void keep_promise(struct region *region)
{
    enum { INTERVALS_PER_GRACE = 4, INTERVAL_MS_MIN = 1000 };
    if (region->mono_ns < region->promise_after_ns)
        return;
    uint64_t interval_ms = region->config.replication.tombstone_grace_ms / INTERVALS_PER_GRACE;
    if (interval_ms < INTERVAL_MS_MIN)
        interval_ms = INTERVAL_MS_MIN;
    region->promise_after_ns = region->mono_ns + interval_ms * NS_PER_MS;
    if (region->hlc.reserved < hlc_make(region->wall_ms, 0) && any_tombstone_shared(region))
        batch_emit(region, batch_begin(region, NULL, OWNER_NONE, NULL));
}

static void take_timeout(struct region *region)
{
    if (!region->ready) {
        start_retry(region);
        return;
    }
    keep_promise(region);
    strong_timeout(region);
    struct replicator_input to = {.kind = REPLICATOR_TIMEOUT};
    replicate(region, &to);
    if (region->mono_ns < region->retry_at_ns)
        return;
    region->retry_at_ns = UINT64_MAX;
    group_advance_all(region);
    list_each(link, spare, &region->erasing)
    {
        table_erase(region, container_of(link, struct table_state, link));
    }
}

void retry_at(struct region *region, uint64_t mono_ns)
{
    if (mono_ns < region->retry_at_ns)
        region->retry_at_ns = mono_ns;
}

static void dispatch(struct region *region, const struct region_input *in)
{
    switch (in->kind) {
    case REGION_START:
        check(!region->started);
        region->started = true;
        start_begin(region);
        return;
    case REGION_REQUEST:
        take_request(region, in);
        return;
    case REGION_READ_DONE:
        read_done(region, in);
        return;
    case REGION_PERSISTED:
        batches_durable(region, in->id);
        return;
    case REGION_PERSIST_FAILED:
        check(in->outcome == STORE_FULL);
        batches_failed(region, in->id);
        return;
    case REGION_PEER_UP:
    case REGION_PEER_DOWN:
    case REGION_PEER_FRAME:
        take_peer(region, in);
        return;
    case REGION_CALL:
        call_serve(region, in);
        return;
    case REGION_CALL_DONE:
        call_answered(region, in);
        return;
    case REGION_TRANSFER:
        strong_transfer(region, in->peer, in->bytes);
        return;
    case REGION_TIMEOUT:
        take_timeout(region);
        return;
    }
    unreachable();
}

void region_step(struct region *region, const struct region_input *in, struct region_output *out)
{
    check(region->started || in->kind == REGION_START || in->kind == REGION_PEER_UP ||
          in->kind == REGION_PEER_DOWN || in->kind == REGION_TIMEOUT);
    arena_reset(&region->out);
    region->effect_count = 0;
    while (region->freed) {
        struct table_state *table = region->freed;
        region->freed = table->free_next;
        table_free(table);
    }
    region->mono_ns = in->mono_ns;
    region->wall_ms = in->wall_ms;
    dispatch(region, in);
    if (region->ready) {
        strong_flush(region);
        replicate_dirty(region);
        group_tell_peers(region);
    }
    *out = (struct region_output){.at = region->effects, .count = region->effect_count};
}

uint64_t region_deadline(const struct region *region)
{
    if (!region->ready)
        return region->retry_at_ns;
    uint64_t deadline = replicator_deadline(region->replicator);
    uint64_t strong = strong_deadline(region);
    if (strong < deadline)
        deadline = strong;
    return deadline < region->retry_at_ns ? deadline : region->retry_at_ns;
}

/* ---- Figures ---- */

uint32_t region_table_count(const struct region *region)
{
    return region->named_count;
}

const struct table *region_table_at(const struct region *region, uint32_t index)
{
    check(index < region->named_count);
    return &region->tables[index]->d.table;
}

const struct table *region_table_find(const struct region *region, struct bytes name)
{
    struct table_state *table = catalog_find(region, name);
    return table && !table->hidden ? &table->d.table : NULL;
}

bool region_lag(const struct region *region, const struct table *table, uint16_t peer,
                uint64_t mono_ns, struct replication_lag *ret)
{
    uint32_t index = peer_index(region, peer);
    struct table_state *state = table_of(table);
    if (index == VV_MAX || !state->joins[index].joined)
        return false;
    struct replication_lag lag = {0};
    for (uint32_t i = 0; i < table->partition_count; i++) {
        if (state->partitions[i].replica)
            replica_lag(state->partitions[i].replica, peer, mono_ns, &lag);
    }
    *ret = lag;
    return true;
}

bool region_log_at(const struct region *region, const struct table *table, uint32_t partition,
                   struct region_log *ret)
{
    (void)region;
    check(partition < table->partition_count);
    const struct partition *at = &table_of(table)->partitions[partition];
    if (!at->replica)
        return false;
    *ret =
        (struct region_log){at->seq_durable, replica_vv_durable(at->replica), at->meta.tombstones};
    return true;
}

struct region_counters region_counters(const struct region *region)
{
    struct region_counters counters = region->counters;
    counters.conflicts_concurrent = region->ledger.concurrent;
    counters.conflicts_late = region->ledger.late;
    counters.ledger_rows = region->ledger.rows;
    counters.clock_ahead = region->hlc.ahead_count;
    counters.operations_in_flight = region->request_count;
    return counters;
}
