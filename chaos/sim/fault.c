/* SPDX-License-Identifier: Apache-2.0 */
/* Draws, performs and undoes faults. Overlapping faults of one kind on one place end together, with
 * the last. */

#include "chaos/sim/fault.h"

#include <inttypes.h>
#include <stdio.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "region/core/keyspace.h"

static const uint64_t ms = 1000000;

const char *sim_fault_name(enum sim_fault_kind kind)
{
    static const char *const names[] = {
#define FAULT(enumerator, name) [SIM_FAULT_##enumerator] = name,
        SIM_FAULT_MAP(FAULT)
#undef FAULT
    };
    check((unsigned)kind < array_len(names));
    return names[kind];
}

static int64_t draw_amount(struct rng *rng, enum sim_fault_kind kind)
{
    int64_t sign = rng_one_in(rng, 2) ? 1 : -1;
    switch (kind) {
    case SIM_FAULT_DELAY:
        return (int64_t)rng_between(rng, 1 * ms, 800 * ms);
    case SIM_FAULT_CLOCK_OFFSET:
        /* Mostly within the clock's own limit, sometimes an hour. */
        return sign * (int64_t)(rng_one_in(rng, 8) ? 3600000 : rng_between(rng, 1, 2000));
    case SIM_FAULT_CLOCK_RATE:
        return sign * (int64_t)rng_between(rng, 100, 200000);
    case SIM_FAULT_DISK_SLOW:
        return (int64_t)rng_between(rng, 2, 100);
    case SIM_FAULT_CRASH:
    case SIM_FAULT_CUT:
    case SIM_FAULT_PARTITION:
    case SIM_FAULT_ISOLATE:
    case SIM_FAULT_DISK_FULL:
    case SIM_FAULT_PAUSE:
    case SIM_FAULT_LOSE_DISK:
    case SIM_FAULT_DAMAGE:
    case SIM_FAULT_KIND_COUNT:
        break;
    }
    return 0;
}

void sim_plan_draw(struct sim_plan *plan, struct rng *rng, uint32_t nodes, uint64_t from_ns,
                   uint64_t to_ns, uint32_t allowed)
{
    *plan = (struct sim_plan){0};
    enum sim_fault_kind kinds[SIM_FAULT_KIND_COUNT];
    uint32_t kind_count = 0;
    for (enum sim_fault_kind kind = 0; kind < SIM_FAULT_KIND_COUNT; kind++)
        if (allowed >> kind & 1 && rng_one_in(rng, 2))
            kinds[kind_count++] = kind;
    if (kind_count == 0)
        return;
    uint32_t count = (uint32_t)rng_between(rng, 1, SIM_FAULTS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        struct sim_fault *fault = &plan->faults[plan->count++];
        fault->number = (uint8_t)i;
        fault->kind = kinds[rng_below(rng, kind_count)];
        fault->at_ns = rng_between(rng, from_ns, to_ns - 1);
        uint64_t left = to_ns - fault->at_ns;
        fault->until_ns = fault->at_ns + rng_between(rng, 1, left < 4000 * ms ? left : 4000 * ms);
        fault->a = (uint32_t)rng_below(rng, nodes);
        fault->b = (fault->a + 1 + (uint32_t)rng_below(rng, nodes - 1)) % nodes;
        fault->amount = draw_amount(rng, fault->kind);
    }
}

void sim_plan_add(struct sim_plan *plan, struct sim_fault fault)
{
    check(plan->count < array_len(plan->faults));
    fault.number = (uint8_t)plan->count;
    plan->faults[plan->count++] = fault;
}

void sim_plan_keep(struct sim_plan *plan, uint64_t numbers)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->count; i++)
        if (numbers >> plan->faults[i].number & 1)
            plan->faults[count++] = plan->faults[i];
    plan->count = count;
}

/* One row of some group's log, where there is one, changes in one bit. */
static void damage_log(struct sim_cluster *cluster, uint32_t node)
{
    static const uint8_t begin = KEYSPACE_STRONG_LOG, end = KEYSPACE_STRONG_LOG + 1;
    struct store_read read = {.range = true,
                              .begin = bytes_make(&begin, 1),
                              .end = bytes_make(&end, 1),
                              .rows_max = UINT32_MAX,
                              .bytes_max = UINT64_MAX};
    struct store *store = cluster->nodes[node].store;
    struct store_rows rows;
    check(store->ops->read(store, &read, &rows) == STORE_OK);
    if (rows.count == 0)
        return;
    const struct store_row *row = &rows.at[rng_below(&cluster->sim.rng, rows.count)];
    cleanup(buf_deinit) struct buf value;
    cleanup(buf_deinit) struct buf batch;
    buf_init(&value);
    buf_init(&batch);
    buf_append_bytes(&value, row->value);
    uint64_t bit = rng_below(&cluster->sim.rng, value.len * 8);
    value.at[bit / 8] ^= (uint8_t)(1 << bit % 8);
    store_batch_put(&batch, row->key, buf_view(&value));
    check(store->ops->write(store, buf_view(&batch), true) == STORE_OK);
}

void sim_fault_begin(struct sim_cluster *cluster, const struct sim_fault *fault)
{
    switch (fault->kind) {
    case SIM_FAULT_CRASH:
        if (cluster->nodes[fault->a].core)
            sim_cluster_crash(cluster, fault->a);
        break;
    case SIM_FAULT_LOSE_DISK:
    case SIM_FAULT_DAMAGE:
        if (cluster->nodes[fault->a].core)
            sim_cluster_crash(cluster, fault->a);
        if (fault->kind == SIM_FAULT_DAMAGE)
            damage_log(cluster, fault->a);
        else
            sim_cluster_lose_disk(cluster, fault->a);
        break;
    case SIM_FAULT_CUT:
        sim_cluster_cut(cluster, fault->a, fault->b, true);
        break;
    case SIM_FAULT_PARTITION:
        sim_cluster_cut(cluster, fault->a, fault->b, true);
        sim_cluster_cut(cluster, fault->b, fault->a, true);
        break;
    case SIM_FAULT_ISOLATE:
        for (uint32_t i = 0; i < cluster->node_count; i++) {
            if (i == fault->a)
                continue;
            sim_cluster_cut(cluster, fault->a, i, true);
            sim_cluster_cut(cluster, i, fault->a, true);
        }
        break;
    case SIM_FAULT_DELAY:
        cluster->streams[fault->a][fault->b].extra_delay_ns = (uint64_t)fault->amount;
        break;
    case SIM_FAULT_CLOCK_OFFSET:
        cluster->nodes[fault->a].clock.offset_ms = fault->amount;
        break;
    case SIM_FAULT_CLOCK_RATE:
        cluster->nodes[fault->a].clock.rate_ppm = fault->amount;
        break;
    case SIM_FAULT_DISK_FULL:
        cluster->nodes[fault->a].disk_full = true;
        break;
    case SIM_FAULT_DISK_SLOW:
        cluster->nodes[fault->a].sync_slow = (uint64_t)fault->amount;
        break;
    case SIM_FAULT_PAUSE:
        if (fault->until_ns > cluster->nodes[fault->a].resume_ns)
            cluster->nodes[fault->a].resume_ns = fault->until_ns;
        break;
    case SIM_FAULT_KIND_COUNT:
        unreachable();
    }
}

static bool cuts(const struct sim_fault *fault, uint32_t from, uint32_t to)
{
    return (fault->kind == SIM_FAULT_CUT && fault->a == from && fault->b == to) ||
           (fault->kind == SIM_FAULT_PARTITION &&
            ((fault->a == from && fault->b == to) || (fault->a == to && fault->b == from))) ||
           (fault->kind == SIM_FAULT_ISOLATE && (fault->a == from || fault->a == to));
}

static bool active(const struct sim_cluster *cluster, const struct sim_fault *fault)
{
    return fault->at_ns <= cluster->sim.now_ns && cluster->sim.now_ns < fault->until_ns;
}

static bool held_by_another(const struct sim_cluster *cluster, const struct sim_plan *plan,
                            const struct sim_fault *fault)
{
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct sim_fault *other = &plan->faults[i];
        if (other != fault && other->kind == fault->kind && other->a == fault->a &&
            active(cluster, other))
            return true;
    }
    return false;
}

static void heal_links(struct sim_cluster *cluster, const struct sim_plan *plan)
{
    for (uint32_t from = 0; from < cluster->node_count; from++) {
        for (uint32_t to = 0; to < cluster->node_count; to++) {
            bool held = from == to;
            for (uint32_t i = 0; i < plan->count; i++)
                held |= active(cluster, &plan->faults[i]) && cuts(&plan->faults[i], from, to);
            if (!held && cluster->streams[from][to].cut)
                sim_cluster_cut(cluster, from, to, false);
        }
    }
}

void sim_fault_end(struct sim_cluster *cluster, const struct sim_plan *plan,
                   const struct sim_fault *fault)
{
    struct sim_node *node = &cluster->nodes[fault->a];
    switch (fault->kind) {
    case SIM_FAULT_CRASH:
    case SIM_FAULT_LOSE_DISK:
    case SIM_FAULT_DAMAGE:
        if (!node->core && !held_by_another(cluster, plan, fault))
            sim_cluster_start(cluster, fault->a);
        break;
    case SIM_FAULT_CUT:
    case SIM_FAULT_PARTITION:
    case SIM_FAULT_ISOLATE:
        heal_links(cluster, plan);
        break;
    case SIM_FAULT_DELAY:
        cluster->streams[fault->a][fault->b].extra_delay_ns = 0;
        break;
    case SIM_FAULT_CLOCK_OFFSET:
        node->clock.offset_ms = 0;
        break;
    case SIM_FAULT_CLOCK_RATE:
        /* The time it gained or lost stays: a clock set right by a step is the other fault. */
        node->clock.offset_ms +=
            (int64_t)(cluster->sim.now_ns / ms) * node->clock.rate_ppm / 1000000;
        node->clock.rate_ppm = 0;
        break;
    case SIM_FAULT_DISK_FULL:
        if (!held_by_another(cluster, plan, fault))
            node->disk_full = false;
        break;
    case SIM_FAULT_DISK_SLOW:
        node->sync_slow = 0;
        break;
    case SIM_FAULT_PAUSE: /* it goes on by itself */
        break;
    case SIM_FAULT_KIND_COUNT:
        unreachable();
    }
}

static void describe(const struct sim_fault *fault, struct buf *to)
{
    buf_printf(to, "%-12s node %u", sim_fault_name(fault->kind), fault->a);
    if (fault->kind == SIM_FAULT_CUT || fault->kind == SIM_FAULT_PARTITION ||
        fault->kind == SIM_FAULT_DELAY)
        buf_printf(to, " and %u", fault->b);
    if (fault->amount)
        buf_printf(to, "  %+" PRId64, fault->amount);
}

void sim_plan_print(const struct sim_plan *plan, struct buf *to)
{
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct sim_fault *fault = &plan->faults[i];
        buf_printf(to, "  %6.3fs to %6.3fs  ", (double)fault->at_ns / 1e9,
                   (double)fault->until_ns / 1e9);
        describe(fault, to);
        buf_append_text(to, "\n");
    }
}

void sim_plan_tell(const struct sim_plan *plan, struct sim_told *told)
{
    struct buf text = {0};
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct sim_fault *fault = &plan->faults[i];
        struct sim_told_fault *to = &told->faults[told->fault_count++];
        *to = (struct sim_told_fault){.from_ns = fault->at_ns,
                                      .to_ns = fault->until_ns,
                                      .number = fault->number,
                                      .node = (uint8_t)fault->a};
        buf_reset(&text);
        describe(fault, &text);
        snprintf(to->text, sizeof(to->text), "%.*s", (int)text.len, (const char *)text.at);
    }
    buf_deinit(&text);
}
