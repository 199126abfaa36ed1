/* SPDX-License-Identifier: Apache-2.0 */
/* Clients, and the judgement of what they saw: once exactly, by the chain of versions (a version is
 * an index of the log), and once by search, which knows nothing of indexes. */

#include "chaos/sim/consensus_world.h"

#include <stdio.h>

#include "conflict/base/plant.h"

enum { STEPS_MAX = 200000 };

static void client_again(struct world *world, const struct client *client)
{
    struct sim_event event = {.kind = EVENT_CLIENT, .id = (uint64_t)(client - world->clients)};
    sim_schedule(&world->sim, world->sim.now_ns + draw(world, 0, world->options.think_ns_max),
                 &event);
}

static struct call draw_call(struct world *world)
{
    struct call call = {.key = (uint8_t)draw(world, 0, KEYS - 1),
                        .argument = (int64_t)world->operation_count + 1};
    switch (draw(world, 0, 9)) {
    case 0:
    case 1:
    case 2:
    case 3:
        call.kind = CALL_READ;
        break;
    case 4:
    case 5:
        call.kind = CALL_PUT;
        break;
    case 6:
    case 7: { /* if it is what some member, perhaps far behind, believes */
        const struct item *item = &world->members[draw(world, 0, MEMBERS - 1)].items.at[call.key];
        call.kind = CALL_IF;
        call.expected_present = item->present;
        call.expected = item->value;
        break;
    }
    case 8:
        call.kind = CALL_ADD;
        break;
    default:
        call.kind = CALL_DELETE;
        call.argument = 0;
    }
    return call;
}

uint64_t client_call(struct world *world, uint8_t at, uint8_t client, const struct call *call)
{
    if (world->operation_count == world->operation_cap) {
        world->operation_cap = world->operation_cap ? world->operation_cap * 2 : 256;
        world->operations =
            xrealloc(world->operations, world->operation_cap * sizeof(*world->operations));
    }
    uint64_t place = world->operation_count++;
    struct operation *operation = &world->operations[place];
    *operation = (struct operation){.call = *call,
                                    .member = at,
                                    .client = client,
                                    .called = ++world->clock,
                                    .floor = world->acknowledged[call->key],
                                    .term = consensus_status(world->members[at].core).term};
    operation->call.name = place + 1;
    struct consensus_input in = {.kind =
                                     call->kind == CALL_READ ? CONSENSUS_READ : CONSENSUS_PROPOSE,
                                 .token = place + 1,
                                 .strong = true};
    static const char *const names[] = {[CALL_READ] = "read",
                                        [CALL_PUT] = "put",
                                        [CALL_IF] = "put-if",
                                        [CALL_ADD] = "add",
                                        [CALL_DELETE] = "delete"};
    sim_log_mark(world->sim.log, world->sim.now_ns, at, "%llu: %s key %u",
                 (unsigned long long)place + 1, names[call->kind], call->key);
    struct call copy = operation->call;
    if (call->kind != CALL_READ)
        in.bytes = bytes_make(&copy, sizeof(copy));
    member_step(world, &world->members[at], &in);
    return place;
}

void client_event(struct world *world, uint64_t index)
{
    struct client *client = &world->clients[index];
    struct member *member = &world->members[client->member];
    if (world->clients_stopped || world->operation_count >= world->replay->operations_max)
        return;
    if (!member->core || member->resume_ns > world->sim.now_ns) {
        client_again(world, client);
        return;
    }
    struct call call = draw_call(world);
    client->token = world->operation_count + 1;
    client_call(world, client->member, (uint8_t)index, &call);
}

static struct operation *returned(struct world *world, uint64_t token, enum fate fate)
{
    check(token >= 1 && token <= world->operation_count);
    struct operation *operation = &world->operations[token - 1];
    check(operation->fate == OP_OPEN);
    operation->fate = fate;
    operation->returned = ++world->clock;
    static const char *const fates[] = {[OP_OPEN] = "",
                                        [OP_OK] = "done",
                                        [OP_FAILED] = "condition failed",
                                        [OP_NOTHING] = "refused",
                                        [OP_UNKNOWN] = "unknown"};
    sim_log_mark(world->sim.log, world->sim.now_ns, operation->member, "%llu: %s",
                 (unsigned long long)token, fates[fate]);
    if (operation->client < CLIENTS_MAX) {
        struct client *client = &world->clients[operation->client];
        check(client->token == token);
        client->token = 0;
        client_again(world, client);
    }
    return operation;
}

static void acknowledge(struct world *world, struct operation *operation)
{
    uint64_t *floor = &world->acknowledged[operation->call.key];
    bool write = operation->fate == OP_OK && operation->call.kind != CALL_READ;
    if (operation->version < operation->floor || (write && operation->version == operation->floor))
        violate(world, "an operation did not see what was acknowledged before it",
                "call %llu on key %u: version %llu, acknowledged %llu",
                (unsigned long long)operation->call.name, operation->call.key,
                (unsigned long long)operation->version, (unsigned long long)operation->floor);
    if (operation->version > *floor)
        *floor = operation->version;
}

void client_reply(struct world *world, struct member *member, const struct consensus_effect *effect)
{
    struct sim_consensus_verdict *verdict = world->verdict;
    struct operation *operation;
    switch (effect->outcome) {
    case CONSENSUS_COMMITTED:
        operation = returned(world, effect->token, OP_OK);
        operation->version = effect->index;
        acknowledge(world, operation);
        verdict->committed++;
        break;
    case CONSENSUS_FAILED: {
        operation = returned(world, effect->token, OP_FAILED);
        check(effect->bytes.len == sizeof(operation->result));
        memcpy(&operation->result, effect->bytes.at, sizeof(operation->result));
        operation->version = operation->result.index;
        acknowledge(world, operation);
        ghost_fate(world, operation->call.name, FATE_REFUSED);
        verdict->failed++;
        break;
    }
    case CONSENSUS_CONFLICT:
    case CONSENSUS_NOT_SERVING:
        operation = returned(world, effect->token, OP_NOTHING);
        if (operation->call.kind != CALL_READ)
            ghost_fate(world, operation->call.name, FATE_REFUSED);
        if (effect->outcome == CONSENSUS_CONFLICT)
            verdict->conflicts++;
        else
            verdict->refused++;
        break;
    case CONSENSUS_UNKNOWN:
        returned(world, effect->token, OP_UNKNOWN);
        verdict->unknown++;
        break;
    }
    (void)member;
}

void client_read(struct world *world, struct member *member, const struct consensus_effect *effect)
{
    if (member->applied < effect->index)
        violate(world, "a read was let through before its index was applied", "member %u",
                member->index);
    struct operation *operation = returned(world, effect->token, OP_OK);
    SOMETIMES_IF(&world->sim, READ_OVER_TERMS,
                 operation->term > 0 && consensus_status(member->core).term > operation->term);
    operation->result = member->items.at[operation->call.key];
    operation->version = operation->result.index;
    acknowledge(world, operation);
    world->verdict->reads++;
}

void clients_crashed(struct world *world, struct member *member)
{
    for (uint64_t i = 0; i < world->operation_count; i++) {
        struct operation *operation = &world->operations[i];
        if (operation->member == member->index && operation->fate == OP_OPEN) {
            returned(world, i + 1, OP_UNKNOWN);
            world->verdict->unknown++;
        }
    }
}

/* ---- Judgement ---- */

static struct linear_op linear_of(const struct operation *operation)
{
    static const enum linear_kind kinds[] = {[CALL_READ] = LINEAR_READ,
                                             [CALL_PUT] = LINEAR_PUT,
                                             [CALL_IF] = LINEAR_IF,
                                             [CALL_ADD] = LINEAR_ADD,
                                             [CALL_DELETE] = LINEAR_DELETE};
    bool known = operation->fate == OP_OK || operation->fate == OP_FAILED;
    return (struct linear_op){.kind = kinds[operation->call.kind],
                              .call = operation->called,
                              .ret = known ? operation->returned : UINT64_MAX,
                              .argument = operation->call.argument,
                              .expected = operation->call.expected,
                              .expected_present = operation->call.expected_present,
                              .value = operation->result.value,
                              .present = operation->result.present,
                              .ok = operation->fate == OP_OK,
                              .name = operation->call.name};
}

/* A failed write was refused on the items as they were at some committed index. */
static void judge_failed(struct world *world, const struct operation *operation)
{
    const struct item *item = &operation->result;
    bool holds = item->present == operation->call.expected_present &&
                 (!item->present || item->value == operation->call.expected);
    bool was =
        item->index == 0 || (item->index <= world->ghost.count &&
                             memcmp(&world->ghost.at[item->index - 1].items.at[operation->call.key],
                                    item, sizeof(*item)) == 0);
    if (holds || !was)
        violate(world, "a condition failed on an item that never was so", "call %llu",
                (unsigned long long)operation->call.name);
}

static void judge_key(struct world *world, uint8_t key)
{
    struct linear_op *ops = xcalloc(world->operation_count, sizeof(*ops));
    uint32_t count = 0;
    for (uint64_t i = 0; i < world->operation_count; i++) {
        const struct operation *operation = &world->operations[i];
        if (operation->call.key != key || operation->fate == OP_NOTHING ||
            (operation->call.kind == CALL_READ && operation->fate != OP_OK))
            continue;
        ops[count++] = linear_of(operation);
        if (operation->fate == OP_FAILED)
            judge_failed(world, operation);
    }
    struct linear_window window;
    switch (linear_check(ops, count, STEPS_MAX, &window)) {
    case LINEAR_OK:
        break;
    case LINEAR_UNKNOWN:
        world->verdict->checker_unknown++;
        break;
    case LINEAR_VIOLATED:
        violate(world, "a key's history is not linearizable", "key %u", key);
        linear_print(ops, count, window, &world->verdict->detail);
        break;
    }
    free(ops);
}

void clients_judge(struct world *world)
{
    for (uint8_t key = 0; key < KEYS; key++)
        judge_key(world, key);
}
