/* SPDX-License-Identifier: Apache-2.0 */
/* The life of faults, and of the whole. One timer carries everything: it comes at the next time
 * that any fault has named, and every 50 ms while there is something to watch. Undoing never waits
 * for anybody: what a Region must still be told is left to its place. */

#include "chaos/inject/inject.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "chaos/inject/inject_internal.h"
#include "chaos/live/text.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

#define SHIM_NAME "tidemark-disk.so"

static const struct verb *const verbs[SCENARIO_VERB_COUNT] = {
    [VERB_LINK_CUT] = &verb_cut,
    [VERB_LINK_BLACKHOLE] = &verb_blackhole,
    [VERB_LINK_RESET] = &verb_reset,
    [VERB_LINK_DELAY] = &verb_delay,
    [VERB_LINK_JITTER] = &verb_delay,
    [VERB_LINK_BANDWIDTH] = &verb_bandwidth,
    [VERB_LINK_FLAP] = &verb_flap,
    [VERB_LINK_LOSS] = &verb_rule,
    [VERB_LINK_DUPLICATE] = &verb_rule,
    [VERB_LINK_CORRUPT] = &verb_rule,
    [VERB_LINK_REORDER] = &verb_rule,
    [VERB_PARTITION] = &verb_partition,
    [VERB_REPLICATION_PAUSE] = &verb_pause_replication,
    [VERB_CLIENT_BLOCK] = &verb_rule,
    [VERB_PROCESS_KILL] = &verb_kill,
    [VERB_PROCESS_START] = &verb_start,
    [VERB_PROCESS_RESTART] = &verb_restart,
    [VERB_PROCESS_RESTART_LOOP] = &verb_restart_loop,
    [VERB_PROCESS_PAUSE] = &verb_pause,
    [VERB_PROCESS_HICCUP] = &verb_hiccup,
    [VERB_PROCESS_RESUME] = &verb_resume,
    [VERB_CLOCK_OFFSET] = &verb_clock,
    [VERB_CLOCK_RATE] = &verb_clock,
    [VERB_CLOCK_STEP] = &verb_clock,
    [VERB_CLOCK_STROBE] = &verb_clock,
    [VERB_CLOCK_RESET] = &verb_clock_reset,
    [VERB_DISK_FULL] = &verb_disk,
    [VERB_DISK_SLOW] = &verb_disk,
    [VERB_DISK_FSYNC_ERROR] = &verb_disk,
    [VERB_DISK_IO_ERROR] = &verb_disk,
    [VERB_DISK_BITFLIP] = &verb_bitflip,
    [VERB_DISK_TRUNCATE] = &verb_truncate,
    [VERB_DISK_TORN_WRITE] = &verb_disk,
    [VERB_DISK_WIPE] = &verb_wipe,
    [VERB_LEADER_KILL] = &verb_kill,
    [VERB_LEADER_TRANSFER] = &verb_transfer,
    [VERB_API_ERROR] = &verb_rule,
    [VERB_API_THROTTLE] = &verb_rule,
    [VERB_UNDO] = &verb_undo,
    [VERB_HEAL_ALL] = &verb_heal,
};

/* ---- Small things ---- */

uint64_t inject_now(struct inject *inject)
{
    loop_update_time(inject->config.loop);
    return inject->config.loop->mono_ns;
}

struct place *inject_place(struct inject *inject, uint8_t region)
{
    check(region < inject->place_count);
    return &inject->places[region];
}

const char *inject_name(const struct inject *inject, uint8_t region)
{
    return scenario_region_name(&inject->config.scenario->cluster, region);
}

struct cluster_link *inject_link(struct inject *inject, uint32_t from, uint32_t to)
{
    struct cluster_link *link = cluster_find_link(inject->config.cluster, inject->places[from].site,
                                                  inject->places[to].site);
    check(link != NULL);
    return link;
}

bool fault_refuse(struct fault *fault, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    buf_reset(&fault->note);
    buf_append_text(&fault->note, text);
    return false;
}

void fault_note(struct fault *fault, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    buf_printf(&fault->note, "%s%s", fault->note.len == 0 ? "" : ", ", text);
}

static const char *keep(struct inject *inject, const struct buf *text)
{
    return bytes_copy_text(&inject->config.outcome->arena, buf_view(text));
}

/* ---- The life of a fault ---- */

static struct outcome_fault *tell(struct fault *fault)
{
    struct inject *inject = fault->inject;
    struct outcome *outcome = inject->config.outcome;
    if (outcome->faults == NULL)
        outcome->faults = arena_array(&outcome->arena, struct outcome_fault, SCENARIO_FAULTS_MAX);
    struct outcome_fault *told = &outcome->faults[outcome->fault_count++];
    struct buf target;
    buf_init(&target);
    target_print(fault, &target);
    *told = (struct outcome_fault){.id = fault->spec->id,
                                   .verb = fault->spec->verb,
                                   .target = keep(inject, &target),
                                   .regions = fault->regions,
                                   .from_ns = fault->began_ns,
                                   .evidence = ""};
    buf_deinit(&target);
    return told;
}

static void free_fault(struct fault *fault)
{
    list_remove(&fault->link);
    for (uint32_t i = 0; i < fault->inject->place_count; i++)
        if (fault->inject->places[i].asking == fault)
            fault->inject->places[i].asking = NULL;
    buf_deinit(&fault->note);
    free(fault);
}

static void refuse(struct fault *fault)
{
    fault->told->refused = true;
    fault->told->to_ns = fault->began_ns;
    fault->told->evidence = keep(fault->inject, &fault->note);
    free_fault(fault);
}

void inject_begin(struct inject *inject, const struct scenario_fault *spec)
{
    /* Where there is no room to tell of it, it does not happen. */
    if (inject->config.outcome->fault_count == SCENARIO_FAULTS_MAX)
        return;
    struct fault *fault = xcalloc(1, sizeof(*fault));
    list_init(&fault->link);
    buf_init(&fault->note);
    fault->inject = inject;
    fault->spec = spec;
    fault->verb = verbs[spec->verb];
    fault->began_ns = inject_now(inject);
    fault->ends_ns = fault->next_ns = NEVER;
    for (uint32_t i = 0; i < PLACES_MAX; i++)
        fault->rule[i] = -1;
    bool good = target_resolve(fault);
    list_append(&inject->faults, &fault->link);
    good = good && fault->verb->begin(fault);
    fault->told = tell(fault);
    if (!good) {
        refuse(fault);
        return;
    }
    enum scenario_lasting lasting = scenario_verb_info(spec->verb)->lasting;
    if (spec->for_ns > 0)
        fault->ends_ns = fault->began_ns + spec->for_ns;
    else if (lasting != VERB_HOLDS)
        fault_end(fault);
    inject_wake(inject);
}

void fault_end(struct fault *fault)
{
    if (fault->state != FAULT_HOLDS)
        return;
    uint64_t now_ns = inject_now(fault->inject);
    fault->state = FAULT_ENDING;
    fault->ended_ns = now_ns;
    if (fault->patience_ns == 0)
        fault->patience_ns = ENDING_MS_MAX * NS_PER_MS;
    if (fault->verb->end != NULL)
        fault->verb->end(fault);
    inject_wake(fault->inject);
}

void fault_alternate(struct fault *fault, uint64_t now_ns)
{
    const struct scenario_fault *spec = fault->spec;
    uint64_t held_ns = fault->phase ? spec->period_ns - spec->down_ns : spec->down_ns;
    /* From when it was due, so that late ticks do not add up; from now if it is far behind. */
    uint64_t from_ns = fault->next_ns + spec->period_ns < now_ns ? now_ns : fault->next_ns;
    fault->next_ns = from_ns + held_ns;
    fault->times += !fault->phase;
    fault->phase = !fault->phase;
}

static void finish(struct fault *fault)
{
    fault->state = FAULT_OVER;
    fault->verb->evidence(fault);
    /* What was over at once by the scenario took until now in truth. */
    if (fault->verb == &verb_restart || fault->verb == &verb_start || fault->verb == &verb_transfer)
        fault->ended_ns = inject_now(fault->inject);
    fault->told->to_ns = fault->ended_ns;
    fault->told->evidence = keep(fault->inject, &fault->note);
    fault->told->effective = fault->seen;
    free_fault(fault);
}

static void step_fault(struct fault *fault, uint64_t now_ns)
{
    if (fault->next_ns <= now_ns && fault->verb->step != NULL)
        fault->verb->step(fault, now_ns);
    if (fault->state == FAULT_HOLDS && fault->ends_ns <= now_ns)
        fault_end(fault);
    if (fault->state != FAULT_ENDING)
        return;
    bool late = now_ns >= fault->ended_ns + fault->patience_ns;
    if (fault->verb->settled == NULL || fault->verb->settled(fault) || late)
        finish(fault);
}

uint32_t inject_active(struct inject *inject)
{
    uint32_t count = foreign_count(inject);
    list_each(link, spare, &inject->faults)
    {
        count += container_of(link, struct fault, link)->state == FAULT_HOLDS;
    }
    return count;
}

void inject_undo(struct inject *inject, const char *id)
{
    list_each(link, spare, &inject->faults)
    {
        struct fault *fault = container_of(link, struct fault, link);
        if (strcmp(fault->spec->id, id) == 0)
            fault_end(fault);
    }
}

void inject_serves(struct inject *inject, uint8_t region)
{
    place_serves(inject_place(inject, region));
}

/* ---- Time ---- */

static void heal_step(struct inject *inject, uint64_t now_ns)
{
    bool whole = list_empty(&inject->faults);
    struct buf waits;
    buf_init(&waits);
    for (uint32_t i = 0; i < inject->place_count; i++) {
        struct place *place = &inject->places[i];
        if (place_running(place) && place_settled(place))
            continue;
        whole = false;
        buf_printf(&waits, "%s%s is %s", waits.len == 0 ? "" : ", ", place->site->name,
                   place_running(place) ? "not yet told" : site_state_name(place->site->state));
        place_start(place);
    }
    if (whole || now_ns >= inject->heal_until_ns) {
        inject->healing = false;
        if (!whole && waits.len == 0)
            buf_append_text(&waits, "faults are still being undone");
        buf_append_u8(&waits, 0);
        inject->healed(inject->heal_context, whole, whole ? NULL : (const char *)waits.at);
    }
    buf_deinit(&waits);
}

static void tick(struct inject *inject)
{
    uint64_t now_ns = inject_now(inject);
    for (uint32_t i = 0; i < inject->place_count; i++)
        place_tick(&inject->places[i], now_ns);
    list_each(link, spare, &inject->faults)
    {
        step_fault(container_of(link, struct fault, link), now_ns);
    }
    if (inject->healing && list_empty(&inject->faults))
        foreign_heal(inject);
    if (inject->healing)
        heal_step(inject, now_ns);
}

/* Whole milliseconds, rounded up: never before its time. */
static uint64_t next_tick_ms(struct inject *inject)
{
    uint64_t now_ns = inject_now(inject), next_ns = now_ns + TICK_MS * NS_PER_MS;
    list_each(link, spare, &inject->faults)
    {
        const struct fault *fault = container_of(link, struct fault, link);
        next_ns = fault->next_ns < next_ns ? fault->next_ns : next_ns;
        if (fault->state == FAULT_HOLDS && fault->ends_ns < next_ns)
            next_ns = fault->ends_ns;
    }
    return next_ns <= now_ns ? 0 : (next_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
}

static void on_timer(uv_timer_t *timer)
{
    struct inject *inject = timer->data;
    if (inject == NULL)
        return;
    inject->ticking = true;
    tick(inject);
    inject->ticking = false;
    inject_wake(inject);
}

void inject_wake(struct inject *inject)
{
    if (!inject->ticking)
        uv_timer_start(inject->timer, on_timer, next_tick_ms(inject), 0);
}

void inject_heal(struct inject *inject, uint64_t timeout_ns,
                 void (*done)(void *context, bool good, const char *error), void *context)
{
    check(!inject->healing);
    list_each(link, spare, &inject->faults)
    {
        fault_end(container_of(link, struct fault, link));
    }
    inject->healing = true;
    inject->heal_until_ns = inject_now(inject) + timeout_ns;
    inject->healed = done;
    inject->heal_context = context;
    inject_wake(inject);
}

/* ---- The whole ---- */

static bool needs_shim(const struct scenario_fault *fault)
{
    return (fault->verb >= VERB_DISK_FULL && fault->verb <= VERB_DISK_WIPE &&
            fault->verb != VERB_DISK_BITFLIP && fault->verb != VERB_DISK_TRUNCATE) ||
           fault->lose_unsynced;
}

bool inject_needs_disk(const struct scenario *scenario)
{
    for (uint32_t i = 0; i < scenario->phase_count; i++) {
        const struct scenario_phase *phase = &scenario->phases[i];
        for (uint32_t j = 0; j < phase->fault_count; j++)
            if (needs_shim(&phase->faults[j]))
                return true;
        for (int verb = VERB_DISK_FULL; phase->random.count > 0 && verb <= VERB_DISK_WIPE; verb++)
            if (phase->random.weight[verb] > 0)
                return true;
    }
    return false;
}

/* Each Region gets a control file, and its next process the shim. */
static void arm_disks(struct inject *inject)
{
    const struct cluster *cluster = inject->config.cluster;
    char *shim = text_new("%s%s", cluster->programs, SHIM_NAME);
    if (access(shim, R_OK) != 0)
        snprintf(inject->disk_trouble, sizeof(inject->disk_trouble),
                 "%s, which belongs beside the program tidemark, cannot be read", SHIM_NAME);
    for (uint32_t i = 0; i < inject->place_count && inject->disk_trouble[0] == 0; i++) {
        struct place *place = &inject->places[i];
        const char *loaded = getenv("LD_PRELOAD"), *asan = getenv("ASAN_OPTIONS");
        char *path = text_new("%s/%s.disk", cluster->data, place->site->name);
        char *directory = text_new("%s/%s", cluster->data, place->site->name);
        journal_add_file(inject->journal, path);
        place->disk = disk_new(path, directory, rng_next(&inject->rng));
        if (place->disk == NULL)
            snprintf(inject->disk_trouble, sizeof(inject->disk_trouble),
                     "a control file cannot be made: %s", strerror(errno));
        place->variables[0] = text_new("LD_PRELOAD=%s%s%s", shim, loaded == NULL ? "" : ":",
                                       loaded == NULL ? "" : loaded);
        place->variables[1] = text_new("%s=%s", DISK_VARIABLE, path);
        /* AddressSanitizer insists on being first, and need not be. */
        place->variables[2] = text_new("ASAN_OPTIONS=%s%sverify_asan_link_order=0",
                                       asan == NULL ? "" : asan, asan == NULL ? "" : ":");
        for (int j = 0; j < 3; j++)
            place->environment[j] = place->variables[j];
        if (place->disk != NULL)
            place->site->environment = place->environment;
        free(path);
        free(directory);
    }
    free(shim);
}

/* The links as the scenario has them, before any fault. */
static void shape_links(struct inject *inject)
{
    const struct scenario_cluster *cluster = &inject->config.scenario->cluster;
    for (uint32_t i = 0; i < inject->place_count; i++) {
        for (uint32_t j = 0; j < inject->place_count; j++) {
            const struct scenario_link *shape = &cluster->link[i][j];
            if (i == j)
                continue;
            struct cluster_link *link = inject_link(inject, i, j);
            link_shape(link, shape->delay_ns, shape->jitter_ns,
                       (enum delay_distribution)shape->distribution);
            link_limit(link, shape->rate_bytes);
        }
    }
}

struct inject *inject_new(const struct inject_config *config)
{
    struct inject *inject = xcalloc(1, sizeof(*inject));
    inject->config = *config;
    inject->place_count = config->scenario->cluster.region_count;
    check(inject->place_count == config->cluster->site_count);
    list_init(&inject->faults);
    rng_init(&inject->rng, config->seed);
    inject->journal = config->journal == NULL ? NULL : journal_open(config->journal);
    for (uint8_t i = 0; i < inject->place_count; i++)
        place_init(&inject->places[i], inject, i);
    if (inject_needs_disk(config->scenario))
        arm_disks(inject);
    else
        snprintf(
            inject->disk_trouble, sizeof(inject->disk_trouble),
            "the cluster was started without the disk shim, as the scenario has no disk fault");
    shape_links(inject);
    inject->timer = xcalloc(1, sizeof(*inject->timer));
    check(uv_timer_init(&config->loop->uv, inject->timer) == 0);
    inject->timer->data = inject;
    return inject;
}

static void on_timer_closed(uv_handle_t *handle)
{
    free(handle);
}

void inject_free(struct inject *inject)
{
    if (inject == NULL)
        return;
    inject->ticking = inject->leaving = true; /* what ends now wakes and starts nobody */
    list_each(link, spare, &inject->faults)
    {
        struct fault *fault = container_of(link, struct fault, link);
        fault_end(fault);
        if (fault->state == FAULT_ENDING)
            finish(fault);
    }
    inject->timer->data = NULL;
    uv_timer_stop(inject->timer);
    uv_close((uv_handle_t *)inject->timer, on_timer_closed);
    for (uint32_t i = 0; i < inject->place_count; i++)
        place_deinit(&inject->places[i]);
    journal_close(inject->journal);
    free(inject);
}

int inject_recover(const char *journal, struct buf *error)
{
    return journal_recover(journal, error);
}
