/* SPDX-License-Identifier: Apache-2.0 */
/* A write of a strong table, at both of its ends.
 *
 *      origin                                       leader
 *      strong_write: PROPOSE  ------------------->  EVALUATE: on what the key will hold once all
 *                                                   that is in the log is applied
 *      strong_execute, as the entry is applied <--  a post-image, in the log; or
 *      strong_reply: the same operation on the <--  the image on which nothing was to be written
 *      leader's image
 *
 * The origin executes the operation itself, on the same image as the leader, so all that a client
 * is told is made where the client is. */

#include "conflict/record.h"
#include "conflict/region_id.h"
#include "region/core/op_wire.h"
#include "region/core/strong_internal.h"

static const char NOT_SERVING[] =
    "The table is strongly consistent, and this Region cannot reach another one that has it, or is "
    "catching up with the others. Nothing was done. The request may be retried.";
static const char UNKNOWN[] =
    "The table is strongly consistent, and the other Regions did not answer in time. The write may "
    "have been done, or may yet be.";
static const char DISK_FULL[] =
    "The disk of this Region is full. Nothing was done. The request may be retried once there is "
    "space again.";
static const char NOT_FORMED[] =
    "The table is becoming strongly consistent, or is being dissolved. Nothing was done. The "
    "request may be retried.";
static const char CONFLICT[] =
    "One or more items in this request are being modified by a request in another Region.";

/* ---- Calls ---- */

struct strong_call *strong_call_new(struct region *region, struct strong *strong,
                                    enum strong_call_kind kind, struct request *request,
                                    uint32_t index)
{
    struct strong_call *call = xcalloc(1, sizeof(*call));
    call->token = ++region->strong->token_last;
    call->kind = kind;
    call->request = request;
    call->index = index;
    HASH_ADD(hh, region->strong->calls, token, sizeof(call->token), call);
    list_append(strong->state == STRONG_LOADING ? &strong->calls_new : &strong->calls_open,
                &call->link);
    return call;
}

struct strong_call *strong_call_find(struct region *region, uint64_t token)
{
    struct strong_call *call;
    HASH_FIND(hh, region->strong->calls, &token, sizeof(token), call);
    return call;
}

void strong_call_free(struct region *region, struct strong_call *call)
{
    HASH_DELETE(hh, region->strong->calls, call);
    list_remove(&call->link);
    free(call);
}

static void end_write(struct region *region, struct strong_call *call)
{
    struct request *request = call->request;
    strong_call_free(region, call);
    request_settle(region, request);
}

static void propose(struct region *region, struct strong *strong, struct strong_call *call)
{
    /* The consensus may answer at once, which frees the call. */
    struct consensus_input in = {.token = call->token};
    struct buf operation cleanup(buf_deinit);
    buf_init(&operation);
    switch (call->kind) {
    case STRONG_CALL_READ:
        in.kind = CONSENSUS_READ;
        in.strong = true;
        strong_input(region, strong, &in);
        return;
    case STRONG_CALL_SEAL:
        buf_append_u8(&operation, STRONG_PROPOSAL_SEAL);
        buf_append_be16(&operation, region->config.region);
        break;
    case STRONG_CALL_WRITE:
        buf_append_u8(&operation, STRONG_PROPOSAL_WRITE);
        if (!op_wire_encode(call->request->op, call->index, &operation)) {
            request_fail(call->request, API_VALIDATION,
                         "The item and the values of the expressions are larger together than what "
                         "one write of a strongly consistent table may carry between Regions.");
            end_write(region, call);
            return;
        }
        break;
    }
    in.kind = CONSENSUS_PROPOSE;
    in.bytes = buf_view(&operation);
    strong_input(region, strong, &in);
}

void strong_calls_begin(struct region *region, struct strong *strong)
{
    for (struct list *link; (link = list_take(&strong->calls_new));) {
        struct strong_call *call = container_of(link, struct strong_call, link);
        list_append(&strong->calls_open, &call->link);
        propose(region, strong, call);
    }
}

static void fail_call(struct region *region, struct strong_call *call, const char *why)
{
    switch (call->kind) {
    case STRONG_CALL_WRITE:
        if (!call->executed)
            request_fail_undone(call->request, why);
        end_write(region, call);
        return;
    case STRONG_CALL_READ:
        strong_read_end(region, call, why);
        return;
    case STRONG_CALL_SEAL:
        strong_call_free(region, call);
        return;
    }
    unreachable();
}

void strong_calls_fail(struct region *region, struct strong *strong)
{
    struct list *lists[] = {&strong->calls_new, &strong->calls_open, &strong->calls_read};
    for (size_t i = 0; i < array_len(lists); i++) {
        list_each(link, spare, lists[i])
        {
            fail_call(region, container_of(link, struct strong_call, link),
                      i == 0 ? NOT_FORMED : UNKNOWN);
        }
    }
}

/* ---- The origin ---- */

void strong_write(struct region *region, struct request *request, uint32_t index)
{
    const struct op_key *key = &request->op->keys[index];
    struct table_state *table = table_of(key->table);
    struct partition *partition =
        &table->partitions[key_partition(key->key, table->d.table.partition_count)];
    struct strong *strong = partition->strong;
    if (!strong) {
        region->counters.strong_refused++;
        request_fail_undone(request, NOT_FORMED);
        request_settle(region, request);
        return;
    }
    if (strong->retry_ns != UINT64_MAX) { /* it would only wait, and then not know */
        region->counters.strong_refused++;
        request_fail_undone(request, DISK_FULL);
        request_settle(region, request);
        return;
    }
    struct strong_call *call = strong_call_new(region, strong, STRONG_CALL_WRITE, request, index);
    if (strong->state == STRONG_RUNNING)
        propose(region, strong, call);
}

void strong_execute(struct region *region, struct strong_call *call, struct bytes item)
{
    (void)region;
    check(!call->executed);
    struct op_change change;
    op_execute_key(call->request->op, call->index, item, &change);
    call->executed = true;
}

/* Whether a part of a batch can be given back to the client as not done. */
static bool give_back(struct strong_call *call)
{
    struct op *op = call->request->op;
    if (op->kind != OP_BATCH_WRITE_ITEM)
        return false;
    op->keys[call->index].done = op->keys[call->index].unprocessed = true;
    return true;
}

static void nothing_written(struct region *region, struct strong_call *call, struct bytes answer)
{
    uint8_t tag;
    if (bytes_take_u8(&answer, &tag)) {
        if (tag == STRONG_ANSWER_IMAGE && (answer.len == 0 || item_check(answer))) {
            struct op_change change;
            op_execute_key(call->request->op, call->index, answer, &change);
            if (change.kind == OP_CHANGE_NONE) {
                region->counters.strong_committed++;
                return;
            }
        } else if (tag == STRONG_ANSWER_SEALED) {
            region->counters.strong_refused++;
            request_fail_undone(call->request, NOT_FORMED);
            return;
        }
    }
    trace_emit(&region->config.trace, TRACE_ERROR, "strong: leader and origin disagree table=%s",
               call->request->op->keys[call->index].table->name);
    region->counters.strong_refused++;
    request_fail(
        call->request, API_INTERNAL,
        "The leader of this item could not carry out the operation. See the Regions' logs.");
}

static void reply_write(struct region *region, struct strong_call *call,
                        const struct consensus_effect *effect)
{
    struct region_counters *counters = &region->counters;
    switch (effect->outcome) {
    case CONSENSUS_COMMITTED:
        if (call->executed) {
            counters->strong_committed++;
        } else {
            counters->strong_unknown++;
            request_fail(call->request, API_INTERNAL, UNKNOWN);
        }
        break;
    case CONSENSUS_FAILED:
        nothing_written(region, call, effect->bytes);
        break;
    case CONSENSUS_CONFLICT:
        counters->strong_conflicts++;
        if (!give_back(call))
            request_fail(call->request, API_REPLICATED_WRITE_CONFLICT, CONFLICT);
        break;
    case CONSENSUS_NOT_SERVING:
        counters->strong_refused++;
        request_fail_undone(call->request, NOT_SERVING);
        break;
    case CONSENSUS_UNKNOWN:
        counters->strong_unknown++;
        request_fail(call->request, API_INTERNAL, UNKNOWN);
        break;
    }
    end_write(region, call);
}

void strong_reply(struct region *region, struct strong *strong,
                  const struct consensus_effect *effect)
{
    struct strong_call *call = strong_call_find(region, effect->token);
    if (!call)
        return;
    switch (call->kind) {
    case STRONG_CALL_WRITE:
        reply_write(region, call, effect);
        return;
    case STRONG_CALL_READ:
        region->counters.strong_refused++;
        strong_read_end(region, call, NOT_SERVING);
        return;
    case STRONG_CALL_SEAL:
        strong_call_free(region, call);
        strong->seal_asked = false;
        if (effect->outcome != CONSENSUS_COMMITTED)
            strong->seal_after_ns = region->mono_ns + (uint64_t)STRONG_RETRY_MS * NS_PER_MS;
        strong_mark(region, strong);
        return;
    }
    unreachable();
}

/* ---- Sealing ---- */

static void seal_partition(struct region *region, struct strong *strong)
{
    if (!strong || strong->state != STRONG_RUNNING || strong->seal_asked ||
        strong->partition->meta.sealed || region->mono_ns < strong->seal_after_ns)
        return;
    strong->seal_asked = true;
    strong->seal_after_ns = 0;
    propose(region, strong, strong_call_new(region, strong, STRONG_CALL_SEAL, NULL, 0));
}

void strong_seal_retry(struct region *region, struct strong *strong)
{
    strong->seal_after_ns = 0;
    if (strong->table->d.strong.dissolver == region->config.region)
        strong_seal(region, strong->table);
}

void strong_seal(struct region *region, struct table_state *table)
{
    struct partition *first = &table->partitions[0];
    if (!first->meta.sealed) {
        seal_partition(region, first->strong);
        return;
    }
    if (first->meta.sealed != region->config.region)
        return;
    for (uint32_t i = 1; i < table->d.table.partition_count; i++)
        seal_partition(region, table->partitions[i].strong);
}

enum strong_sealed strong_sealed(const struct table_state *table, uint16_t *ret_region)
{
    *ret_region = table->partitions[0].meta.sealed;
    if (*ret_region && *ret_region != table->d.strong.dissolver)
        return STRONG_SEALED_OTHER;
    for (uint32_t i = 0; i < table->d.table.partition_count; i++) {
        const struct partition *partition = &table->partitions[i];
        const struct strong *strong = partition->strong;
        if (!partition->meta.sealed || (strong && strong->stable < partition->meta.applied_index))
            return STRONG_NOT_SEALED;
    }
    return STRONG_SEALED;
}
