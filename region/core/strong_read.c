/* SPDX-License-Identifier: Apache-2.0 */
/* Strongly consistent reads: each group whose items are to be read is asked for a barrier, an index
 * such that items which have it show all that was acknowledged, or read, before the read began.
 * Once the store holds that much, the read is an ordinary one. */

#include "region/core/strong_internal.h"

static const char NOT_FORMED[] =
    "The table is becoming strongly consistent, or is being dissolved. The request may be retried.";

static const char STORE_LATE[] =
    "The disk of this Region is too full or too slow to show what the other Regions have. The "
    "request may be retried.";

static void end_barrier(struct region *region, struct request *request)
{
    if (--request->barriers > 0)
        return;
    if (request->op->result.error == API_OK) {
        read_continue(region, request);
        return;
    }
    request->pending = 1;
    request_settle(region, request);
}

void strong_read_end(struct region *region, struct strong_call *call, const char *failure)
{
    struct request *request = call->request;
    if (failure)
        request_fail(request, API_INTERNAL, failure);
    strong_call_free(region, call);
    end_barrier(region, request);
}

static void ask(struct region *region, struct request *request, struct partition *partition)
{
    struct strong *strong = partition->strong;
    if (!strong) {
        region->counters.strong_refused++;
        request_fail(request, API_INTERNAL, NOT_FORMED);
        return;
    }
    request->barriers++;
    struct strong_call *call = strong_call_new(region, strong, STRONG_CALL_READ, request, 0);
    if (strong->state == STRONG_RUNNING)
        strong_input(region, strong,
                     &(struct consensus_input){
                         .kind = CONSENSUS_READ, .token = call->token, .strong = true});
}

static struct partition *partition_of(const struct op_key *key)
{
    struct table_state *table = table_of(key->table);
    return &table->partitions[key_partition(key->key, table->d.table.partition_count)];
}

static bool wants(const struct op *op, const struct op_key *key)
{
    bool consistent = op->kind == OP_BATCH_GET_ITEM ? op->groups[key->group].consistent_read
                                                    : op->consistent_read;
    return consistent && key->table->mode == TABLE_STRONG;
}

static bool ask_keys(struct region *region, struct request *request)
{
    const struct op *op = request->op;
    bool any = false;
    for (uint32_t i = 0; i < op->key_count; i++) {
        const struct op_key *key = &op->keys[i];
        if (!wants(op, key))
            continue;
        any = true;
        struct partition *partition = partition_of(key);
        bool asked = false;
        for (uint32_t j = 0; j < i && !asked; j++)
            asked = wants(op, &op->keys[j]) && partition_of(&op->keys[j]) == partition;
        if (!asked)
            ask(region, request, partition);
    }
    return any;
}

static uint32_t partition_at(const struct table *table, struct bytes key, uint32_t without)
{
    return key.len >= KEYSPACE_ROW_KEY_MIN ? key_partition(key, table->partition_count) : without;
}

static bool ask_range(struct region *region, struct request *request)
{
    const struct op *op = request->op;
    struct table_state *table = request->table;
    if (!op->consistent_read || table->d.table.mode != TABLE_STRONG)
        return false;
    uint32_t first = partition_at(&table->d.table, op->range.begin, 0);
    uint32_t last =
        partition_at(&table->d.table, op->range.end, table->d.table.partition_count - 1);
    for (uint32_t i = first; i <= last; i++)
        ask(region, request, &table->partitions[i]);
    return true;
}

bool strong_read(struct region *region, struct request *request)
{
    request->barriers = 1; /* none of the answers shall be the last before all are asked */
    bool any = op_shape(request->op->kind) == OP_SHAPE_READ ? ask_keys(region, request)
                                                            : ask_range(region, request);
    if (any)
        end_barrier(region, request);
    return any;
}

void strong_read_ok(struct region *region, struct strong *strong, uint64_t token, uint64_t index)
{
    struct strong_call *call = strong_call_find(region, token);
    if (!call)
        return;
    check(call->kind == STRONG_CALL_READ);
    if (index <= strong->stable || planted(PLANT_READ_UNSTABLE)) {
        strong_read_end(region, call, NULL);
        return;
    }
    call->read_index = index;
    call->deadline_ns =
        region->mono_ns + region->config.strong.request_timeout_ms * (uint64_t)NS_PER_MS;
    list_remove(&call->link);
    list_append(&strong->calls_read, &call->link);
}

void strong_reads_settle(struct region *region, struct strong *strong)
{
    list_each(link, spare, &strong->calls_read)
    {
        struct strong_call *call = container_of(link, struct strong_call, link);
        if (call->read_index <= strong->stable)
            strong_read_end(region, call, NULL);
    }
}

void strong_reads_expire(struct region *region, struct strong *strong)
{
    while (strong_reads_deadline(strong) <= region->mono_ns) {
        region->counters.strong_refused++;
        strong_read_end(region, container_of(strong->calls_read.next, struct strong_call, link),
                        STORE_LATE);
    }
}

/* They came in this order, and wait equally long. */
uint64_t strong_reads_deadline(const struct strong *strong)
{
    if (list_empty(&strong->calls_read))
        return UINT64_MAX;
    return container_of(strong->calls_read.next, struct strong_call, link)->deadline_ns;
}
