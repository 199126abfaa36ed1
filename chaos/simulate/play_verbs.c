/* SPDX-License-Identifier: Apache-2.0 */
/* Faults on nodes: processes, clocks, disks, the API; those of links are handed on. One that holds
 * is active from its beginning to its end, and what several active ones come to is worked out anew
 * whenever one begins or ends, so they may overlap as they like. */

#include <inttypes.h>

#include "chaos/simulate/play_internal.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/region_id.h"

/* A paused process is paused for so long at a time, as nobody knows yet when it will go on. */
#define PAUSE_NS UINT64_C(20000000)

const char *play_verb_refusal(const struct scenario_fault *fault)
{
    switch (fault->verb) {
    case VERB_DISK_IO_ERROR:
    case VERB_DISK_BITFLIP:
    case VERB_DISK_TRUNCATE:
    case VERB_DISK_TORN_WRITE:
        return "a simulated disk holds rows, and no files or blocks to damage";
    case VERB_DISK_SLOW:
        return fault->calls == SCENARIO_CALLS_READ ? "a simulated disk is slow to sync only"
               : fault->share < 1                  ? "a simulated disk is slow at every sync"
                                                   : NULL;
    default:
        return NULL;
    }
}

/* ---- Numbers ---- */

static bool only_undoes(enum scenario_verb verb)
{
    switch ((int)verb) {
    case VERB_UNDO:
    case VERB_HEAL_ALL:
    case VERB_PROCESS_START:
    case VERB_PROCESS_RESUME:
    case VERB_CLOCK_RESET:
        return true;
    default:
        return false;
    }
}

void play_faults_init(struct play *play)
{
    const struct scenario *scenario = play->scenario;
    uint32_t count = 0, number = 0;
    for (uint32_t i = 0; i < scenario->phase_count; i++)
        count += scenario->phases[i].fault_count;
    play->faults = xcalloc(count + 1, sizeof(*play->faults));
    for (uint32_t i = 0; i < scenario->phase_count; i++) {
        for (uint32_t j = 0; j < scenario->phases[i].fault_count; j++) {
            struct play_fault *fault = &play->faults[play->fault_count++];
            fault->spec = &scenario->phases[i].faults[j];
            fault->number = 64;
            if (!only_undoes((enum scenario_verb)fault->spec->verb))
                fault->number = (uint8_t)(number < 63 ? number++ : 63);
        }
    }
}

/* ---- Processes ---- */

static void kill(struct play *play, uint32_t node, bool lose_unsynced)
{
    outcome_event(play->outcome, now_of(play), (uint8_t)node, "down", "its process has ended");
    if (lose_unsynced)
        sim_cluster_crash(&play->cluster, node);
    else
        sim_cluster_end(&play->cluster, node);
    play_requests_died(play, node);
}

static bool each_kill(struct play *play, struct play_fault *fault)
{
    bool any = false;
    for (uint32_t i = 0; i < play->cluster.node_count; i++) {
        if (!(fault->regions >> i & 1) || !play->cluster.nodes[i].core)
            continue;
        any = true;
        kill(play, i, fault->spec->lose_unsynced || fault->spec->verb == VERB_DISK_WIPE);
        if (fault->spec->verb == VERB_DISK_WIPE) {
            sim_cluster_lose_disk(&play->cluster, i);
            outcome_lost(play->outcome, now_of(play), (uint8_t)i, OUTCOME_LOSS_WIPED, false);
        }
        if (fault->spec->verb == VERB_PROCESS_RESTART ||
            fault->spec->verb == VERB_PROCESS_RESTART_LOOP)
            play_later(play, now_of(play) + fault->spec->down_ns, EVENT_START, i, 0);
    }
    return any;
}

static bool each_start(struct play *play, uint8_t regions)
{
    bool any = false;
    for (uint32_t i = 0; i < play->cluster.node_count; i++) {
        if (!(regions >> i & 1) || play->cluster.nodes[i].core)
            continue;
        any = true;
        outcome_event(play->outcome, now_of(play), (uint8_t)i, "up", "it serves");
        sim_cluster_start(&play->cluster, i);
    }
    return any;
}

bool play_sync_failed(struct play *play, uint32_t node)
{
    for (uint32_t i = 0; i < play->fault_count; i++) {
        struct play_fault *fault = &play->faults[i];
        if (!fault->active || fault->spec->verb != VERB_DISK_FSYNC_ERROR ||
            !(fault->regions >> node & 1) || rng_unit(&play->cluster.sim.rng) >= fault->spec->share)
            continue;
        fault->hits++;
        kill(play, node, true);
        return true;
    }
    return false;
}

/* ---- State of nodes ---- */

static void node_apply(struct play *play, uint32_t node)
{
    struct sim_node *at = &play->cluster.nodes[node];
    at->disk_full = at->sync_fails = false;
    at->sync_extra_ns = at->sync_jitter_ns = 0;
    for (uint32_t i = 0; i < play->fault_count; i++) {
        const struct play_fault *fault = &play->faults[i];
        if (!fault->active || !(fault->regions >> node & 1))
            continue;
        at->disk_full |= fault->spec->verb == VERB_DISK_FULL;
        at->sync_fails |= fault->spec->verb == VERB_DISK_FSYNC_ERROR;
        if (fault->spec->verb == VERB_DISK_SLOW) {
            at->sync_extra_ns += fault->spec->delay_ns;
            at->sync_jitter_ns += fault->spec->jitter_ns;
        }
    }
}

static void apply(struct play *play)
{
    for (uint32_t i = 0; i < play->cluster.node_count; i++)
        node_apply(play, i);
    play_clocks_apply(play);
    play_links_apply(play);
}

/* False: none of them runs. */
static bool pause(struct play *play, const struct play_fault *fault)
{
    bool any = false;
    uint64_t held_ns =
        fault->spec->verb == VERB_PROCESS_HICCUP ? fault->spec->down_ns : PAUSE_NS + 1;
    for (uint32_t i = 0; i < play->cluster.node_count; i++) {
        if (!(fault->regions >> i & 1) || !play->cluster.nodes[i].core)
            continue;
        any = true;
        play->cluster.nodes[i].resume_ns = now_of(play) + held_ns;
    }
    return any;
}

/* From the leader of most groups to the next that runs, or to the one that is named. */
static bool transfer(struct play *play, struct play_fault *fault)
{
    uint8_t leader = play_leader(play), to = fault->spec->to;
    for (uint8_t i = 1; to == SCENARIO_REGION_NONE && i < play->data_count; i++)
        if (leader < play->data_count && play_node_up(play, (leader + i) % play->data_count))
            to = (uint8_t)((leader + i) % play->data_count);
    if (leader >= play->cluster.node_count || to >= play->data_count)
        return false;
    fault->regions = (uint8_t)(1u << leader | 1u << to);
    struct region_input in = {.kind = REGION_TRANSFER, .peer = play->cluster.nodes[to].region};
    for (uint32_t i = 0; i < play->cluster.node_count; i++)
        if (i != to && play_node_up(play, i))
            sim_cluster_input(&play->cluster, i, &in);
    return true;
}

/* ---- Beginning ---- */

static bool is_of_links(enum scenario_verb verb)
{
    return verb <= VERB_REPLICATION_PAUSE;
}

static bool aim(struct play *play, struct play_fault *fault)
{
    const struct scenario_fault *spec = fault->spec;
    uint8_t region = spec->region;
    if (is_of_links((enum scenario_verb)spec->verb))
        return play_links_resolve(play, fault);
    if (spec->verb == VERB_LEADER_KILL || region == SCENARIO_REGION_LEADER)
        region = play_leader(play);
    if (region == SCENARIO_REGION_ALL)
        fault->regions = (uint8_t)((1u << play->cluster.node_count) - 1);
    else if (region < play->cluster.node_count)
        fault->regions = (uint8_t)(1u << region);
    bool needs_region = spec->verb != VERB_LEADER_TRANSFER && spec->verb != VERB_UNDO &&
                        spec->verb != VERB_HEAL_ALL;
    return fault->regions != 0 || !needs_region;
}

/* False: there was nothing to end. */
static bool undo(struct play *play, const char *id)
{
    bool any = false;
    for (uint32_t i = 0; i < play->fault_count; i++) {
        if (!play->faults[i].active || strcmp(play->faults[i].spec->id, id) != 0)
            continue;
        any = true;
        play_fault_end(play, i, play->faults[i].generation);
    }
    return any;
}

/* Ends what holds a process or clock of these Regions: the verb was asked for by itself. */
static bool undo_verb(struct play *play, enum scenario_verb undoes, uint8_t regions)
{
    bool any = false;
    for (uint32_t i = 0; i < play->fault_count; i++) {
        if (!play->faults[i].active || !(play->faults[i].regions & regions) ||
            scenario_verb_info((enum scenario_verb)play->faults[i].spec->verb)->undo != undoes)
            continue;
        any = true;
        play_fault_end(play, i, play->faults[i].generation);
    }
    return any;
}

static bool start(struct play *play, uint8_t regions)
{
    bool down = false;
    for (uint32_t i = 0; i < play->cluster.node_count; i++)
        down |= regions >> i & 1 && !play->cluster.nodes[i].core;
    undo_verb(play, VERB_PROCESS_START, regions);
    each_start(play, regions);
    return down;
}

static void reset_links(struct play *play, const struct play_fault *fault)
{
    for (uint32_t i = 0; i < play->cluster.node_count; i++)
        for (uint32_t j = 0; j < play->cluster.node_count; j++)
            if (fault->pairs[i] >> j & 1)
                sim_cluster_reset(&play->cluster, i, j);
}

/* False: it hit nothing. */
static bool perform(struct play *play, struct play_fault *fault)
{
    const struct scenario_fault *spec = fault->spec;
    switch (spec->verb) {
    case VERB_PROCESS_KILL:
    case VERB_PROCESS_RESTART:
    case VERB_PROCESS_RESTART_LOOP:
    case VERB_LEADER_KILL:
    case VERB_DISK_WIPE:
        return each_kill(play, fault);
    case VERB_PROCESS_START:
        return start(play, fault->regions);
    case VERB_PROCESS_RESUME:
        return undo_verb(play, VERB_PROCESS_RESUME, fault->regions);
    case VERB_PROCESS_PAUSE:
    case VERB_PROCESS_HICCUP:
        return pause(play, fault);
    case VERB_CLOCK_RESET:
        return undo_verb(play, VERB_CLOCK_RESET, fault->regions);
    case VERB_LEADER_TRANSFER:
        return transfer(play, fault);
    case VERB_LINK_RESET:
        reset_links(play, fault);
        return true;
    case VERB_PARTITION:
        if (spec->how == SCENARIO_RESET)
            reset_links(play, fault);
        return true;
    case VERB_CLIENT_BLOCK:
        if (spec->how == SCENARIO_CUT || spec->how == SCENARIO_RESET)
            play_requests_cut(play, fault->regions);
        return true;
    case VERB_UNDO:
        return undo(play, spec->fault);
    case VERB_HEAL_ALL:
        play_heal(play);
        return true;
    default: /* it is enough that it is active */
        return true;
    }
}

/* What happens again and again while it holds, and how soon; 0: nothing. */
static uint64_t step_ns(const struct play *play, const struct play_fault *fault)
{
    uint64_t nodes = play->cluster.node_count;
    const struct scenario_fault *spec = fault->spec;
    switch (spec->verb) {
    case VERB_PROCESS_PAUSE:
        return PAUSE_NS;
    case VERB_CLOCK_STROBE:
        return spec->period_ns / 2 > 0 ? spec->period_ns / 2 : 1;
    case VERB_LINK_FLAP:
        return fault->odd ? spec->down_ns : spec->period_ns - spec->down_ns;
    case VERB_PROCESS_HICCUP:
    case VERB_PROCESS_RESTART_LOOP:
        return spec->period_ns;
    case VERB_PARTITION:
        return spec->shape == SCENARIO_SWIZZLE ? spec->for_ns / (2 * nodes) + 1 : 0;
    case VERB_LINK_RESET:
        return spec->for_ns > 0 ? spec->period_ns : 0;
    default:
        return 0;
    }
}

static void tell(struct play *play, struct play_fault *fault)
{
    struct buf text = {0};
    fault->told = outcome_fault(play->outcome);
    if (!fault->told)
        return;
    scenario_fault_print(&play->scenario->cluster, fault->spec, &text);
    *fault->told = (struct outcome_fault){
        .id = fault->spec->id,
        .verb = fault->spec->verb,
        .target = outcome_text(play->outcome, "%.*s", (int)text.len, (const char *)text.at),
        .regions = fault->regions,
        .from_ns = now_of(play),
        .evidence = "in virtual time"};
    buf_deinit(&text);
    sim_log_mark(play->cluster.sim.log, now_of(play),
                 fault->regions ? (uint32_t)__builtin_ctz(fault->regions) : 0, "%s",
                 scenario_verb_info((enum scenario_verb)fault->spec->verb)->name);
}

void play_fault_begin(struct play *play, uint32_t index)
{
    struct play_fault *fault = &play->faults[index];
    const struct scenario_fault *spec = fault->spec;
    enum scenario_lasting lasting = scenario_verb_info((enum scenario_verb)spec->verb)->lasting;
    if (fault->number < 64 && !(play->replay->faults >> fault->number & 1))
        return;
    fault->regions = 0;
    bool found = aim(play, fault);
    tell(play, fault);
    if (!fault->told)
        return;
    fault->active = lasting == VERB_HOLDS || (lasting == VERB_REPEATS && spec->for_ns > 0);
    fault->odd = true;
    fault->steps = 1;
    fault->hits = 0;
    if (spec->verb == VERB_PARTITION && spec->shape == SCENARIO_SWIZZLE)
        fault->luck = rng_next(&play->cluster.sim.rng);
    fault->generation++;
    fault->told->effective = found && perform(play, fault);
    fault->told->refused = !found;
    if (!found)
        fault->told->evidence = "nobody was there to hit";
    else if (!fault->told->effective)
        fault->told->evidence = only_undoes((enum scenario_verb)spec->verb)
                                    ? "there was nothing to end"
                                    : "it was not running any more";
    fault->told->regions = fault->regions;
    if (!found || !fault->active) {
        fault->active = false;
        fault->told->to_ns = now_of(play);
    }
    apply(play);
    if (fault->active)
        play_fault_strike(play, fault);
    if (fault->active && step_ns(play, fault) > 0)
        play_later(play, now_of(play) + step_ns(play, fault), EVENT_FAULT_STEP, index,
                   fault->generation);
    if (fault->active && spec->for_ns > 0)
        play_later(play, now_of(play) + spec->for_ns, EVENT_FAULT_END, index, fault->generation);
}

void play_fault_step(struct play *play, uint32_t index, uint64_t generation)
{
    struct play_fault *fault = &play->faults[index];
    if (!fault->active || fault->generation != generation)
        return;
    fault->odd = !fault->odd;
    fault->steps++;
    if (fault->spec->verb == VERB_PROCESS_PAUSE || fault->spec->verb == VERB_PROCESS_HICCUP)
        pause(play, fault);
    else if (fault->spec->verb == VERB_PROCESS_RESTART_LOOP)
        each_kill(play, fault);
    else if (fault->spec->verb == VERB_CLOCK_STROBE)
        play_clocks_apply(play);
    else if (fault->spec->verb == VERB_LINK_RESET)
        reset_links(play, fault);
    else
        play_links_apply(play);
    play_fault_strike(play, fault);
    play_later(play, now_of(play) + step_ns(play, fault), EVENT_FAULT_STEP, index, generation);
}

/* ---- Ending ---- */

void play_fault_end(struct play *play, uint32_t index, uint64_t generation)
{
    struct play_fault *fault = &play->faults[index];
    if (!fault->active || fault->generation != generation)
        return;
    play_fault_strike(play, fault);
    if (fault->hits == 0 && fault->told->effective && play_fault_counts(fault->spec)) {
        fault->told->effective = false;
        fault->told->evidence = "nothing met it while it held";
    }
    fault->active = false;
    fault->told->to_ns = now_of(play);
    switch ((int)scenario_verb_info((enum scenario_verb)fault->spec->verb)->undo) {
    case VERB_PROCESS_START:
        each_start(play, fault->regions);
        break;
    case VERB_PROCESS_RESUME:
        for (uint32_t i = 0; i < play->cluster.node_count; i++)
            if (fault->regions >> i & 1)
                play->cluster.nodes[i].resume_ns = now_of(play);
        break;
    default:
        break;
    }
    apply(play);
}

void play_heal(struct play *play)
{
    for (uint32_t i = 0; i < play->fault_count; i++)
        play_fault_end(play, i, play->faults[i].generation);
    each_start(play, UINT8_MAX);
    play->outcome->healed_ns = now_of(play);
    play->outcome->converged_ns = 0;
    play->equal_looks = 0;
    outcome_event(play->outcome, now_of(play), SCENARIO_REGION_NONE, "heal", "all faults undone");
}
