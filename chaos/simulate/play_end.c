/* SPDX-License-Identifier: Apache-2.0 */
/* What is looked at: samples while the run goes on; at its end every item by every Region, as its
 * clients are shown it, the ledgers, and all rows of the stores, once more after the tombstones
 * have gone. */

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "chaos/drive/request.h"
#include "chaos/run/measure.h"
#include "chaos/simulate/play_internal.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "region/core/keyspace.h"

enum { LOOK_AT_ONCE = 64, LOOK_TRIES = 100 };
#define SETTLE_NS (60 * second)
#define GONE_NS (3 * second)  /* as chaos/run/stages.c has it */
#define AGE_OFFSET_MS 7200000 /* twice the grace of tombstones */

/* ---- Samples ---- */

static void sample_region(struct play *play, struct outcome_sample *sample, uint32_t i)
{
    const struct sim_node *node = &play->cluster.nodes[i];
    const struct table *table = play_table(play, i);
    sample->region[i].paused = sim_cluster_paused(&play->cluster, i);
    if (!play_node_up(play, i))
        return;
    sample->region[i].up = true;
    sample->region[i].clock_offset_ns = ((int64_t)sim_cluster_wall_ms(&play->cluster, i) -
                                         (int64_t)(SIM_CLOCK_EPOCH_MS + now_of(play) / ms)) *
                                        (int64_t)ms;
    sample->region[i].conflicts = region_counters(node->core).ledger_rows;
    for (uint32_t j = 0; j < region_group_count(node->core); j++)
        sample->region[i].leads += region_group_at(node->core, j).leads;
    for (uint32_t j = 0; table && j < play->data_count; j++) {
        struct replication_lag lag = {0};
        if (j == i ||
            !region_lag(node->core, table, play->cluster.nodes[j].region, now_of(play), &lag))
            continue;
        if (lag.pending > sample->region[i].pending)
            sample->region[i].pending = lag.pending;
        if (lag.oldest_ms * ms > sample->region[i].lag_ns)
            sample->region[i].lag_ns = lag.oldest_ms * ms;
    }
}

static void guard(struct play *play)
{
    const struct scenario_expects *limits = &play->scenario->stop_if;
    for (uint32_t i = 0; i < limits->count && !play->stopped; i++) {
        const struct scenario_expect *limit = &limits->at[i];
        struct measure_span span = {.to_ns = now_of(play)};
        uint64_t window = limit->for_ns > second ? limit->for_ns : second;
        span.from_ns = now_of(play) > window ? now_of(play) - window : 0;
        double actual;
        if (!measure_is_live((enum scenario_metric)limit->metric) ||
            !measure_live(play->outcome, limit, span, &actual) ||
            !scenario_expect_holds(limit, actual)) {
            play->since_ns[i] = 0;
            continue;
        }
        if (play->since_ns[i] == 0)
            play->since_ns[i] = now_of(play);
        if (now_of(play) - play->since_ns[i] < limit->for_ns)
            continue;
        play->outcome->stopped = outcome_text(play->outcome, "stop_if %s", limit->text);
        play->stopped = true;
    }
}

void play_sample(struct play *play)
{
    struct outcome_sample *sample = outcome_sample(play->outcome, now_of(play));
    for (uint32_t i = 0; i < play->cluster.node_count; i++)
        sample_region(play, sample, i);
    uint64_t leaders = play_leaders(play);
    for (uint8_t i = 0; i < play->cluster.node_count; i++)
        if ((leaders & ~play->leaders) >> i & 1)
            outcome_event(play->outcome, now_of(play), i, "leader", "leads %u group%s",
                          sample->region[i].leads, plural(sample->region[i].leads));
    play->leaders = leaders;
    if (play->running)
        guard(play);
}

/* ---- Settling ---- */

/* Those that run and have no table: what is gone from all of them is gone for good. */
static uint64_t without_table(const struct play *play)
{
    uint64_t gone = 0;
    for (uint32_t i = 0; i < play->data_count; i++)
        if (play_node_up(play, i) && !play_table(play, i))
            gone |= UINT64_C(1) << i;
    return gone;
}

static bool is_readable(const struct play *play, uint32_t node)
{
    return play_node_up(play, node) && !(play->outcome->gone_regions >> node & 1);
}

static void settle(struct play *play)
{
    struct outcome *outcome = play->outcome;
    uint64_t from = now_of(play), all = (UINT64_C(1) << play->data_count) - 1;
    bool equal = false, lost = false;
    while (!equal && !lost && now_of(play) < from + SETTLE_NS) {
        play_run(play, now_of(play) + 100 * ms);
        equal = play_equal(play);
        lost = without_table(play) == all && now_of(play) >= from + GONE_NS;
    }
    outcome->gone_regions = without_table(play);
    for (uint8_t i = 0; i < play->data_count; i++)
        if (outcome->gone_regions >> i & 1)
            outcome_event(outcome, now_of(play), i, "note", "the table itself is gone");
    if (equal)
        outcome->converged_ns = now_of(play);
    else if (!lost)
        outcome_event(outcome, now_of(play), SCENARIO_REGION_NONE, "note",
                      "the Regions did not become equal within a minute");
    for (uint32_t i = 0; i < play->cluster.node_count; i++) {
        if (play->cluster.nodes[i].core)
            continue;
        outcome->down_regions |= UINT64_C(1) << i;
        outcome_lost(outcome, outcome_death_ns(outcome, (uint8_t)i, now_of(play)), (uint8_t)i,
                     OUTCOME_LOSS_DOWN, false);
    }
}

/* ---- The last look ---- */

static void look_at(struct play *play, uint8_t place, uint32_t key, uint32_t client)
{
    struct draw_op drawn = {.op = {.kind = HISTORY_READ,
                                   .key = key,
                                   .client = client,
                                   .strong = play->strong,
                                   .final = true}};
    play->looking++;
    play_request_begin(play, UINT32_MAX, place, &drawn, now_of(play));
}

static void look_wait(struct play *play)
{
    while (play->looking > 0)
        play_run(play, now_of(play) + 5 * ms);
}

/* Of `count` keys, so many at a time; those that failed are the next round's. */
static void look_round(struct play *play, uint8_t place, const uint32_t *keys, uint32_t count)
{
    uint32_t clients[LOOK_AT_ONCE];
    for (uint32_t i = 0; i < LOOK_AT_ONCE; i++)
        clients[i] = draw_client(&play->draw);
    for (uint32_t i = 0; i < count; i++) {
        look_at(play, place, keys[i], clients[i % LOOK_AT_ONCE]);
        if ((i + 1) % LOOK_AT_ONCE == 0)
            look_wait(play);
    }
    look_wait(play);
}

static void look(struct play *play)
{
    uint32_t count = 0;
    uint32_t *keys = xcalloc(play->draw.key_count + 1, sizeof(*keys));
    uint32_t *again = xcalloc(play->draw.key_count + 1, sizeof(*again));
    play->look_again = xcalloc(play->draw.key_count + 1, sizeof(*play->look_again));
    for (uint32_t key = 0; key < play->draw.key_count; key++)
        if (draw_used(&play->draw, key))
            keys[count++] = key;
    for (uint8_t place = 0; place < play->data_count; place++) {
        if (!is_readable(play, place))
            continue;
        look_round(play, place, keys, count);
        for (uint32_t i = 0; i < LOOK_TRIES && play->look_again_count > 0; i++) {
            uint32_t left = play->look_again_count;
            memcpy(again, play->look_again, left * sizeof(*again));
            play->look_again_count = 0;
            play_run(play, now_of(play) + 100 * ms);
            look_round(play, place, again, left);
        }
        play->look_again_count = 0;
    }
    free(keys);
    free(again);
}

/* ---- Rows ---- */

static struct store_rows item_rows(struct play *play, uint32_t node)
{
    static const uint8_t begin = KEYSPACE_ITEM, end = KEYSPACE_ITEM + 1;
    struct store_read read = {.range = true,
                              .begin = bytes_make(&begin, 1),
                              .end = bytes_make(&end, 1),
                              .rows_max = UINT32_MAX,
                              .bytes_max = UINT64_MAX};
    struct store *store = play->cluster.nodes[node].store;
    struct store_rows rows;
    check(store->ops->read(store, &read, &rows) == STORE_OK);
    return rows;
}

static uint32_t item_key(struct bytes item)
{
    struct value value;
    uint32_t key = UINT32_MAX;
    if (item.len == 0 || !item_find(item, bytes_literal("pk"), &value) ||
        !request_read_key(value.payload, &key))
        return UINT32_MAX;
    return key;
}

static void scan_node(struct play *play, uint32_t node, struct converge_scan *ret)
{
    struct store_rows rows = item_rows(play, node);
    struct converge_item *items =
        arena_array(&play->outcome->arena, struct converge_item, rows.count + 1);
    bool counter = play->scenario->workload.kind == SCENARIO_COUNTER;
    uint32_t count = 0;
    for (uint32_t i = 0; i < rows.count; i++) {
        struct record record;
        if (!record_decode_body(rows.at[i].value, &record) || record_is_tombstone(&record))
            continue;
        items[count++] =
            (struct converge_item){.digest = XXH3_64bits(record.item.at, record.item.len),
                                   .value = counter ? 0 : play_item_value(record.item),
                                   .key = item_key(record.item)};
    }
    *ret = (struct converge_scan){.items = items, .count = count, .region = (uint8_t)node};
}

static struct converge_scan *scan(struct play *play, uint32_t *ret_count)
{
    struct converge_scan *scans =
        arena_array(&play->outcome->arena, struct converge_scan, SCENARIO_REGIONS_MAX);
    *ret_count = 0;
    for (uint32_t i = 0; i < play->data_count; i++)
        if (is_readable(play, i))
            scan_node(play, i, &scans[(*ret_count)++]);
    return scans;
}

/* ---- Ledgers ---- */

/* Of a row key (region/core/key.h): eight bytes of hash, then the text of the partition key, which
 * has no byte that needs an escape, up to a zero. */
static uint32_t row_key(struct bytes key)
{
    uint32_t ret;
    const uint8_t *end = key.len > 8 ? memchr(key.at + 8, 0, key.len - 8) : NULL;
    if (!end || !request_read_key(bytes_make(key.at + 8, (size_t)(end - key.at) - 8), &ret))
        return UINT32_MAX;
    return ret;
}

static struct ledgers_row ledger_row(const struct ledger_entry *entry, uint32_t node)
{
    return (struct ledgers_row){.winner = play_item_value(entry->winner.item),
                                .loser = play_item_value(entry->loser.item),
                                .regions = UINT64_C(1) << node,
                                .key = row_key(entry->key),
                                .late = entry->relation == RESOLVE_LATE};
}

static void read_ledger(struct play *play, uint32_t node)
{
    struct sim_node *at = &play->cluster.nodes[node];
    struct outcome *outcome = play->outcome;
    struct buf scratch = {0};
    struct store_read read;
    region_ledger_read(at->core, BYTES_NONE, UINT32_MAX, &scratch, &read);
    read.bytes_max = UINT64_MAX;
    struct store_rows rows;
    check(at->store->ops->read(at->store, &read, &rows) == STORE_OK);
    struct ledgers_row *all =
        arena_array(&outcome->arena, struct ledgers_row, outcome->ledger_count + rows.count + 1);
    if (outcome->ledger_count > 0)
        memcpy(all, outcome->ledger, outcome->ledger_count * sizeof(*all));
    outcome->ledger = all;
    for (uint32_t i = 0; i < rows.count; i++) {
        const struct table *table;
        struct bytes name;
        struct ledger_entry entry;
        if (region_ledger_row(at->core, &rows.at[i], &table, &name, &entry))
            all[outcome->ledger_count++] = ledger_row(&entry, node);
    }
    buf_deinit(&scratch);
}

/* ---- Age ---- */

static uint64_t tombstones(struct play *play)
{
    uint64_t count = 0;
    for (uint32_t node = 0; node < play->data_count; node++) {
        struct store_rows rows = item_rows(play, node);
        for (uint32_t i = 0; i < rows.count; i++) {
            struct record record;
            count += record_decode_body(rows.at[i].value, &record) && record_is_tombstone(&record);
        }
    }
    return count;
}

static bool age_is_wanted(const struct play *play)
{
    bool asked = play->scenario->workload.mix.erase > 0;
    for (uint32_t i = 0; i < play->scenario->expect.count; i++)
        asked |= play->scenario->expect.at[i].metric == METRIC_ZOMBIES;
    return asked && !play->strong;
}

static void age(struct play *play)
{
    uint64_t until = now_of(play) + SETTLE_NS;
    for (uint32_t i = 0; i < play->data_count; i++)
        play->cluster.nodes[i].clock.offset_ms = AGE_OFFSET_MS;
    while (tombstones(play) > 0 && now_of(play) < until)
        play_run(play, now_of(play) + second);
    if (tombstones(play) == 0)
        play->outcome->rescans = scan(play, &play->outcome->rescan_count);
    else
        outcome_event(play->outcome, now_of(play), SCENARIO_REGION_NONE, "note",
                      "some tombstones have not gone, so zombies were not looked for");
}

/* ---- The end ---- */

static bool workload_is_known(const struct play *play)
{
    uint8_t kind = play->scenario->workload.kind;
    return kind != SCENARIO_YCSB_A && kind != SCENARIO_YCSB_B && kind != SCENARIO_YCSB_F;
}

void play_end(struct play *play)
{
    struct outcome *outcome = play->outcome;
    play_load_stop(play);
    while (play->under_way > 0)
        play_run(play, now_of(play) + 20 * ms);
    play_heal(play);
    settle(play);
    if (workload_is_known(play))
        look(play);
    for (uint32_t i = 0; !play->strong && i < play->data_count; i++)
        if (is_readable(play, i))
            read_ledger(play, i);
    outcome->scans = scan(play, &outcome->scan_count);
    if (age_is_wanted(play))
        age(play);
    outcome->ended_ns = now_of(play);
}
