/* SPDX-License-Identifier: Apache-2.0 */
/* Clients: what they ask, what they are told, and what that means for the history of each key. An
 * error that says that nothing was done is taken at its word: the write is left out of the history,
 * and must be nowhere. */

#include <inttypes.h>

#include "chaos/sim/strong_internal.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { STEPS_MAX = 300000 };

void strong_client_later(struct strong_run *run, uint32_t index)
{
    struct sim *sim = &run->cluster.sim;
    struct sim_event event = {.kind = EVENT_CLIENT, .id = index};
    sim_schedule(sim, sim->now_ns + rng_between(&sim->rng, 1, run->think_ns_max), &event);
}

/* Whether a client of this node may speak to the table: strong, or what is left of a strong one. */
static bool usable(const struct strong_run *run, uint32_t node)
{
    const struct sim_node *at = &run->cluster.nodes[node];
    if (!at->core || !at->ready || sim_cluster_paused(&run->cluster, node))
        return false;
    const struct table *table = strong_table(run, node);
    if (!table)
        return false;
    return table->mode == TABLE_STRONG || run->phase == PHASE_REGIONAL ||
           run->phase == PHASE_EMPTY ||
           (run->phase == PHASE_DISSOLVE && table->mode == TABLE_REGIONAL);
}

static void send(struct strong_run *run, struct strong_client *client)
{
    uint32_t index = (uint32_t)(client - run->clients);
    client->busy = true;
    client->waited_ns = 0;
    client->token = ++run->next_token << 8 | index;
    client->called = ++run->clock;
    run->operation_count++;
    for (uint32_t i = 0; i < client->request.part_count; i++) {
        const struct sim_strong_part *part = &client->request.parts[i];
        if (part->writer)
            *strong_writer_at(run, part->writer) = (struct strong_writer){
                .number = part->linear.argument, .removes = part->linear.kind == LINEAR_DELETE};
    }
    const struct sim_strong_part *first = &client->request.parts[0];
    trace_emit(&run->cluster.config.trace, TRACE_DEBUG,
               "client %u at node %u: %s key=%u writer=%llu argument=%lld expected=%lld", index,
               client->node, sim_strong_kind_name(client->request.kind), first->key,
               (unsigned long long)first->writer, (long long)first->linear.argument,
               (long long)first->linear.expected);
    sim_log_mark(run->cluster.sim.log, run->cluster.sim.now_ns, client->node, "%llu: %s key %u",
                 (unsigned long long)client->called, sim_strong_kind_name(client->request.kind),
                 first->key);
    sim_cluster_request(&run->cluster, client->node, client->token, client->request.op);
}

void strong_client_event(struct strong_run *run, uint32_t index)
{
    struct strong_client *client = &run->clients[index];
    if (run->clients_stopped || client->busy)
        return;
    if (!usable(run, client->node) || run->operation_count >= OPERATIONS_MAX ||
        run->operation_count >= run->replay->operations_max) {
        strong_client_later(run, index);
        return;
    }
    arena_reset(&client->arena);
    sim_strong_draw(&run->workload, &run->cluster.sim.rng, &client->arena, &client->request);
    send(run, client);
}

void strong_client_ask(struct strong_run *run, uint32_t index, enum sim_strong_kind kind,
                       uint32_t key)
{
    struct strong_client *client = &run->clients[index];
    check(!client->busy);
    arena_reset(&client->arena);
    sim_strong_make(&run->workload, &run->cluster.sim.rng, &client->arena, kind, key,
                    &client->request);
    send(run, client);
}

/* ---- Answers ---- */

static void record(struct strong_run *run, const struct strong_client *client,
                   const struct sim_strong_part *part, const struct linear_op *linear, bool known)
{
    if (!known && linear->kind == LINEAR_READ)
        return;
    if (run->record_count == run->record_cap) {
        run->record_cap = run->record_cap ? run->record_cap * 2 : 256;
        run->records = xrealloc(run->records, run->record_cap * sizeof(*run->records));
    }
    struct strong_record *to = &run->records[run->record_count++];
    *to = (struct strong_record){.key = part->key, .linear = *linear};
    to->linear.call = client->called;
    to->linear.ret = known ? run->clock : UINT64_MAX;
    if (!to->linear.name)
        to->linear.name = client->called;
}

static void learn(struct strong_run *run, uint32_t key, bool present, int64_t number)
{
    run->workload.seen_present[key] = present;
    run->workload.seen[key] = number;
}

/* A client is told that this is not done, and never will be. */
static void refuse(struct strong_run *run, const struct sim_strong_part *part)
{
    struct strong_writer *writer = strong_writer_at(run, part->writer);
    writer->refused = true;
    if (writer->applied)
        strong_violate(run, "a write was refused although it is done", "writer %" PRIu64,
                       part->writer);
}

/* An item that a client is shown: whole, and by a writer that is done. */
static bool shown(struct strong_run *run, struct bytes item, bool *ret_present, int64_t *ret_number)
{
    *ret_present = item.len > 0;
    *ret_number = 0;
    if (item.len == 0)
        return true;
    uint64_t writer;
    if (!sim_strong_item(item, ret_number, &writer) || writer > run->workload.next_writer) {
        strong_violate(run, "a client is shown an item that nobody wrote", " ");
        return false;
    }
    const struct strong_writer *by = strong_writer_at(run, writer);
    if (by->refused)
        strong_violate(run, "a client is shown what a refused request wrote", "writer %" PRIu64,
                       writer);
    if (by->applied && by->number != *ret_number)
        strong_violate(run, "a client is shown an item that never was so", "writer %" PRIu64,
                       writer);
    return true;
}

/* The old item that came back with a write of a number that does not depend on it. */
static void judge_old(struct strong_run *run, const struct op *op, struct linear_op *linear)
{
    if (op->return_values != RETURN_ALL_OLD)
        return;
    bool present;
    int64_t number;
    if (!shown(run, op->result.attributes, &present, &number))
        return;
    if (linear->kind == LINEAR_PUT) {
        /* Such a put is one on the condition that the item is the one returned. */
        linear->kind = LINEAR_IF;
        linear->ok = true;
    } else if (linear->kind == LINEAR_IF) {
        if (present != linear->expected_present || (present && number != linear->expected))
            strong_violate(run, "a write's condition held on an item for which it does not hold",
                           "writer %" PRIu64, linear->name);
        return;
    }
    linear->observed = linear->kind == LINEAR_DELETE;
    linear->expected_present = present;
    linear->expected = number;
}

static void judge_sum(struct strong_run *run, const struct op *op,
                      const struct sim_strong_part *part, struct linear_op *linear)
{
    bool present;
    int64_t number;
    uint64_t writer = 0;
    if (op->return_values == RETURN_NONE || !shown(run, op->result.attributes, &present, &number))
        return;
    bool new = op->return_values == RETURN_ALL_NEW || op->return_values == RETURN_UPDATED_NEW;
    linear->observed = true;
    linear->value = new ? number : number + linear->argument;
    if (new && (!sim_strong_item(op->result.attributes, NULL, &writer) || writer != part->writer))
        strong_violate(run, "an update returns what another one wrote", "writer %" PRIu64,
                       part->writer);
}

static void done_write(struct strong_run *run, struct strong_client *client,
                       const struct sim_strong_part *part)
{
    const struct op *op = client->request.op;
    struct linear_op linear = part->linear;
    linear.ok = true;
    run->verdict->writes++;
    const struct table *table = strong_table(run, client->node);
    if (table && table->mode == TABLE_STRONG)
        strong_check_done(run, part);
    if (linear.kind == LINEAR_ADD)
        judge_sum(run, op, part, &linear);
    else
        judge_old(run, op, &linear);
    if (linear.kind != LINEAR_ADD)
        learn(run, part->key, linear.kind != LINEAR_DELETE, linear.argument);
    else if (linear.observed)
        learn(run, part->key, true, linear.value);
    record(run, client, part, &linear, true);
}

static void done_read(struct strong_run *run, struct strong_client *client,
                      const struct sim_strong_part *part, struct bytes item)
{
    struct linear_op linear = part->linear;
    run->verdict->reads++;
    if (!shown(run, item, &linear.present, &linear.value))
        return;
    if (item.len > 0 && sim_strong_key(item) != part->key)
        strong_violate(run, "a read shows another key's item", "key %u", part->key);
    learn(run, part->key, linear.present, linear.value);
    if (client->request.kind != SIM_STRONG_PEEK)
        record(run, client, part, &linear, true);
}

static void done_query(struct strong_run *run, struct strong_client *client)
{
    const struct op_result *result = &client->request.op->result;
    uint32_t matched = 0;
    for (uint32_t i = 0; i < client->request.part_count; i++) {
        struct bytes item = BYTES_NONE;
        for (uint32_t j = 0; j < result->row_count; j++) {
            if (sim_strong_key(result->rows[j].item) == client->request.parts[i].key) {
                item = result->rows[j].item;
                matched++;
            }
        }
        done_read(run, client, &client->request.parts[i], item);
    }
    if (matched != result->row_count)
        strong_violate(run, "a query shows an item twice, or of another partition key", " ");
}

static void done(struct strong_run *run, struct strong_client *client)
{
    const struct op *op = client->request.op;
    if (client->request.kind == SIM_STRONG_QUERY) {
        done_query(run, client);
        return;
    }
    for (uint32_t i = 0; i < client->request.part_count; i++) {
        const struct sim_strong_part *part = &client->request.parts[i];
        if (part->linear.kind == LINEAR_READ) {
            done_read(run, client, part, op->result.attributes);
        } else if (op->keys[i].unprocessed) {
            run->verdict->refused++;
            refuse(run, part);
        } else {
            done_write(run, client, part);
        }
    }
}

static void condition_failed(struct strong_run *run, struct strong_client *client)
{
    const struct sim_strong_part *part = &client->request.parts[0];
    const struct op *op = client->request.op;
    struct linear_op linear = part->linear;
    run->verdict->failed++;
    refuse(run, part);
    if (client->request.kind != SIM_STRONG_PUT_IF) {
        strong_violate(run, "a condition failed where there is none", "writer %" PRIu64,
                       part->writer);
        return;
    }
    linear.ok = false;
    if (op->return_old_on_failure) {
        bool present;
        int64_t number;
        if (!shown(run, op->result.error_item, &present, &number))
            return;
        if (present == linear.expected_present && (!present || number == linear.expected))
            strong_violate(run, "a condition failed on an item for which it holds",
                           "writer %" PRIu64, part->writer);
        linear = (struct linear_op){
            .kind = LINEAR_READ, .present = present, .value = number, .name = linear.name};
        learn(run, part->key, present, number);
    }
    record(run, client, part, &linear, true);
}

/* Whether an error says that nothing was done. */
static bool definite(const struct op_result *result)
{
    switch ((int)result->error) {
    case API_REPLICATED_WRITE_CONFLICT:
    case API_THROTTLING:
    case API_THROTTLED:
    case API_RESOURCE_NOT_FOUND:
    case API_RESOURCE_IN_USE:
        return true;
    default:
        return result->message && (strstr(result->message, "Nothing was done") ||
                                   strstr(result->message, "nothing was written"));
    }
}

static void not_done(struct strong_run *run, struct strong_client *client, bool known)
{
    for (uint32_t i = 0; i < client->request.part_count; i++) {
        const struct sim_strong_part *part = &client->request.parts[i];
        if (known && part->writer)
            refuse(run, part);
        else if (!known)
            record(run, client, part, &part->linear, false);
    }
}

static void refused(struct strong_run *run, struct strong_client *client, struct op *op)
{
    const struct op_result *result = &op->result;
    bool known = definite(result);
    /* A batch of several parts may have been refused in one of them. */
    if (result->error == API_REPLICATED_WRITE_CONFLICT)
        run->verdict->conflicts++;
    else if (known)
        run->verdict->refused++;
    else
        run->verdict->unknown++;
    if (!known && result->error != API_INTERNAL)
        strong_violate(run, "an operation was answered with an error it cannot have", "%s: %s: %s",
                       sim_strong_kind_name(client->request.kind), api_error_name(result->error),
                       result->message ? result->message : "");
    not_done(run, client, known);
}

void strong_client_replied(struct strong_run *run, uint32_t index, struct op *op)
{
    struct strong_client *client = &run->clients[index];
    check(op == client->request.op);
    client->busy = false;
    run->clock++;
    int64_t shown_number = -1;
    sim_strong_item(op->result.attributes, &shown_number, NULL);
    trace_emit(&run->cluster.config.trace, TRACE_DEBUG,
               "client %u at node %u: answer to %s key=%u writer=%llu: %s %s shown=%lld", index,
               client->node, sim_strong_kind_name(client->request.kind),
               client->request.parts[0].key, (unsigned long long)client->request.parts[0].writer,
               op->result.error ? api_error_name(op->result.error) : "ok",
               op->result.message ? op->result.message : "", (long long)shown_number);
    sim_log_mark(run->cluster.sim.log, run->cluster.sim.now_ns, client->node, "%llu: %s",
                 (unsigned long long)client->called,
                 op->result.error ? api_error_name(op->result.error) : "done");
    if (op->result.error == API_OK)
        done(run, client);
    else if (op->result.error == API_CONDITION_FAILED)
        condition_failed(run, client);
    else
        refused(run, client, op);
    strong_client_later(run, index);
}

void strong_clients_died(struct strong_run *run, uint32_t node)
{
    for (uint32_t i = 0; i < run->client_count; i++) {
        struct strong_client *client = &run->clients[i];
        if (client->node != node || !client->busy)
            continue;
        client->busy = false;
        run->clock++;
        run->verdict->unknown++;
        not_done(run, client, false);
        strong_client_later(run, i);
    }
}

/* ---- Judgement ---- */

bool strong_clients_idle(const struct strong_run *run)
{
    for (uint32_t i = 0; i < run->client_count; i++) {
        if (run->clients[i].busy)
            return false;
    }
    return true;
}

void strong_clients_watch(struct strong_run *run, uint64_t passed_ns)
{
    uint64_t bound = run->cluster.config.strong.request_timeout_ms * ms + 3 * second;
    for (uint32_t i = 0; i < run->client_count; i++) {
        struct strong_client *client = &run->clients[i];
        const struct sim_node *node = &run->cluster.nodes[client->node];
        bool fit = client->busy && !node->disk_full && !node->sync_slow &&
                   !sim_cluster_paused(&run->cluster, client->node);
        client->waited_ns = fit ? client->waited_ns + passed_ns : 0;
        if (client->waited_ns > bound)
            strong_violate(run, "a request is not answered", "%s at node %u, key %u",
                           sim_strong_kind_name(client->request.kind), client->node,
                           client->request.parts[0].key);
    }
}

void strong_clients_judge(struct strong_run *run)
{
    struct linear_op *ops = xcalloc(run->record_count + 1, sizeof(*ops));
    for (uint32_t key = 0; key < STRONG_KEYS_MAX; key++) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < run->record_count; i++) {
            if (run->records[i].key == key)
                ops[count++] = run->records[i].linear;
        }
        struct linear_window window;
        switch (linear_check(ops, count, STEPS_MAX, &window)) {
        case LINEAR_OK:
            break;
        case LINEAR_UNKNOWN:
            run->verdict->checker_unknown++;
            break;
        case LINEAR_VIOLATED:
            strong_violate(run, "a key's history is not linearizable", "key %u", key);
            linear_print(ops, count, window, &run->verdict->detail);
            break;
        }
    }
    free(ops);
}
