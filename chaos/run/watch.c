/* SPDX-License-Identifier: Apache-2.0 */
/* A Region that is dead or paused is not asked; one that is silent keeps its one question, whose
 * time runs out by itself. Answers are JSON of our own making, and are still read as if they were
 * not: a Region under test may say anything. */

#include "chaos/run/watch.h"

#include <jansson.h>
#include <string.h>

#include "chaos/run/watch_process.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum {
    ASK_MS = 1000,
    PROCESS_TICKS = 10, /* memory and descriptors are read every so often */
    SETTLED_ANSWERS = 2
};
#define FRESH_NS UINT64_C(500000000) /* an older answer says nothing of now */

struct watched {
    struct watch *watch;
    struct site *site;
    struct client_request *asking; /* NULL: no question is out */
    uint64_t asked_ns;             /* the question that is out */
    uint64_t start;                /* of its processes, the one that what is here is of */
    uint64_t asked_start;          /* the question that is out went to this one */
    uint64_t said_asked_ns;        /* when the answer was asked for; 0: there is none */
    json_t *said;
    bool had_tables;  /* some answer told of a table */
    uint32_t settled; /* answers in a row with nothing to send */
    uint64_t resident_bytes;
    uint32_t descriptors;
};

struct watch {
    /* [dead][other]: what the other said while the one was dead. */
    json_t *while_dead[SCENARIO_REGIONS_MAX][SCENARIO_REGIONS_MAX];
    struct cluster *cluster;
    struct outcome *outcome;
    uint64_t ticks;
    uint64_t leaders; /* bits, as last told */
    struct watched regions[SCENARIO_REGIONS_MAX];
    uint32_t count;
};

/* ---- Reading a status ---- */

static uint64_t whole(const json_t *object, const char *field)
{
    json_int_t value = json_integer_value(json_object_get(object, field));
    return value < 0 ? 0 : (uint64_t)value;
}

static const char *text(const json_t *object, const char *field)
{
    const char *value = json_string_value(json_object_get(object, field));
    return value == NULL ? "" : value;
}

/* Over all tables and peers: writes that some Region lacks, and the age of the oldest. */
static void read_lag(const json_t *said, uint64_t *ret_pending, uint64_t *ret_ms)
{
    size_t i, j;
    json_t *table, *peer;
    uint64_t pending = 0, oldest = 0;
    json_array_foreach(json_object_get(said, "tables"), i, table)
    {
        uint64_t most = 0;
        json_array_foreach(json_object_get(table, "replication"), j, peer)
        {
            uint64_t ms = whole(peer, "oldest_ms"), count = whole(peer, "pending");
            oldest = ms > oldest ? ms : oldest;
            most = count > most ? count : most;
        }
        pending += most;
    }
    *ret_pending = pending;
    *ret_ms = oldest;
}

static uint32_t read_leads(const json_t *said)
{
    uint32_t count = 0;
    size_t i;
    json_t *group;
    json_array_foreach(json_object_get(said, "groups"), i, group) count +=
        json_is_true(json_object_get(group, "leads"));
    return count;
}

/* A strong table has groups in place of peers. */
static bool has_groups(const json_t *said, const json_t *table)
{
    size_t i;
    json_t *group;
    json_array_foreach(json_object_get(said, "groups"), i,
                       group) if (strcmp(text(group, "table"), text(table, "name")) ==
                                  0) return true;
    return false;
}

/* Every table is ACTIVE, connected to all its peers, and has nothing for them. */
static bool is_settled(const json_t *said)
{
    size_t i, j;
    json_t *table, *peer, *tables = json_object_get(said, "tables");
    json_array_foreach(tables, i, table)
    {
        json_t *peers = json_object_get(table, "replication");
        size_t replicas = json_array_size(json_object_get(table, "replicas"));
        if (strcmp(text(table, "status"), "ACTIVE") != 0 ||
            (replicas > 1 && json_array_size(peers) + 1 < replicas && !has_groups(said, table)))
            return false;
        json_array_foreach(
            peers, j, peer) if (whole(peer, "pending") != 0 ||
                                !json_is_true(json_object_get(peer, "connected"))) return false;
    }
    return true;
}

/* ---- Asking ---- */

/* What arrives of a dead Region's log arrives soon; what is known last is what there is. */
static void remember(struct watched *region)
{
    struct watch *watch = region->watch;
    for (uint32_t i = 0; i < watch->count; i++) {
        if (watch->regions[i].site->state != SITE_DEAD)
            continue;
        json_t **slot = &watch->while_dead[i][region - watch->regions];
        json_decref(*slot);
        *slot = json_incref(region->said);
    }
}

static void on_answer(void *context, const struct http_answer *answer)
{
    struct watched *region = context;
    json_t *said = NULL;
    region->asking = NULL;
    if (answer->status == 200)
        said = json_loadb((const char *)answer->body.at, answer->body.len, 0, NULL);
    if (!json_is_object(said) || region->asked_start != region->start) {
        json_decref(said);
        region->settled = 0;
        return;
    }
    json_decref(region->said);
    region->said = said;
    region->said_asked_ns = region->asked_ns;
    region->had_tables |= json_array_size(json_object_get(said, "tables")) > 0;
    remember(region);
    region->settled = is_settled(said) ? region->settled + 1 : 0;
}

static void ask(struct watched *region, uint64_t now_ns)
{
    const struct http_header headers[] = {
        {bytes_literal("host"), bytes_text(region->site->dial)},
        {bytes_literal("accept"), bytes_literal("application/json")},
    };
    const struct client_call call = {.method = bytes_literal("GET"),
                                     .path = bytes_literal("/tidemark/status"),
                                     .headers = headers,
                                     .header_count = array_len(headers),
                                     .timeout_ms = ASK_MS};
    region->asked_ns = now_ns;
    region->asked_start = region->start;
    region->asking = client_send(region->site->admin, &call, on_answer, region);
}

/* What a process has said is of no worth for the next one, nor once it is dead. */
static void forget_former(struct watched *region)
{
    if (region->start == region->site->starts && region->site->state != SITE_DEAD)
        return;
    region->start = region->site->starts;
    region->settled = 0;
    region->said_asked_ns = 0;
    json_decref(region->said);
    region->said = NULL;
}

static bool is_up(const struct watched *region, uint64_t now_ns)
{
    return region->site->state == SITE_RUNNING && region->said != NULL &&
           region->said_asked_ns + FRESH_NS > now_ns;
}

/* ---- Samples ---- */

static void tell_leaders(struct watch *watch, uint64_t now_ns)
{
    uint64_t leaders = watch_leaders(watch);
    for (uint32_t i = 0; i < watch->count; i++) {
        uint32_t leads = read_leads(watch->regions[i].said);
        if ((leaders & ~watch->leaders) >> i & 1)
            outcome_event(watch->outcome, now_ns, (uint8_t)i, "leader", "leads %u group%s", leads,
                          leads == 1 ? "" : "s");
    }
    watch->leaders = leaders;
}

static void note(struct watch *watch, uint64_t now_ns)
{
    struct outcome_sample *sample = outcome_sample(watch->outcome, now_ns);
    for (uint32_t i = 0; i < watch->count; i++) {
        struct watched *region = &watch->regions[i];
        uint64_t pending, oldest_ms;
        sample->region[i].paused = region->site->state == SITE_PAUSED;
        sample->region[i].resident_bytes = region->resident_bytes;
        sample->region[i].descriptors = region->descriptors;
        if (!is_up(region, now_ns))
            continue;
        const json_t *clock = json_object_get(region->said, "clock");
        read_lag(region->said, &pending, &oldest_ms);
        sample->region[i].up = true;
        sample->region[i].leads = read_leads(region->said);
        sample->region[i].pending = pending;
        sample->region[i].lag_ns =
            oldest_ms > UINT64_MAX / 1000000 ? UINT64_MAX : oldest_ms * 1000000;
        sample->region[i].clock_offset_ns =
            json_integer_value(json_object_get(clock, "offset_ms")) * 1000000;
        sample->region[i].conflicts = whole(json_object_get(region->said, "conflicts"), "rows");
    }
}

void watch_tick(struct watch *watch, uint64_t now_ns)
{
    for (uint32_t i = 0; i < watch->count; i++) {
        struct watched *region = &watch->regions[i];
        forget_former(region);
        if (watch->ticks % PROCESS_TICKS == 0)
            watch_process(region->site->process, &region->resident_bytes, &region->descriptors);
        if (region->site->state != SITE_RUNNING)
            region->settled = 0;
        else if (region->asking == NULL)
            ask(region, now_ns);
    }
    watch->ticks++;
    note(watch, now_ns);
    tell_leaders(watch, now_ns);
}

struct watch *watch_new(struct cluster *cluster, struct outcome *outcome)
{
    struct watch *watch = xcalloc(1, sizeof(*watch));
    watch->cluster = cluster;
    watch->outcome = outcome;
    watch->count = cluster->site_count;
    check(watch->count <= SCENARIO_REGIONS_MAX);
    for (uint32_t i = 0; i < watch->count; i++)
        watch->regions[i] = (struct watched){.watch = watch, .site = &cluster->sites[i]};
    return watch;
}

void watch_free(struct watch *watch)
{
    if (watch == NULL)
        return;
    for (uint32_t i = 0; i < watch->count; i++) {
        if (watch->regions[i].asking != NULL)
            client_cancel(watch->regions[i].asking);
        json_decref(watch->regions[i].said);
        for (uint32_t j = 0; j < watch->count; j++)
            json_decref(watch->while_dead[i][j]);
    }
    free(watch);
}

/* ---- What holds ---- */

static bool is_known(const struct watched *region, uint64_t since_ns)
{
    return region->site->state == SITE_RUNNING && region->said != NULL &&
           region->said_asked_ns >= since_ns;
}

static bool all_known(const struct watch *watch, uint64_t since_ns)
{
    for (uint32_t i = 0; i < watch->count; i++)
        if (!is_known(&watch->regions[i], since_ns))
            return false;
    return true;
}

static const json_t *find_table(const json_t *said, const char *name)
{
    size_t i;
    json_t *table;
    json_array_foreach(json_object_get(said, "tables"), i,
                       table) if (strcmp(text(table, "name"), name) == 0) return table;
    return NULL;
}

uint64_t watch_gone(const struct watch *watch, uint64_t since_ns)
{
    uint64_t gone = 0;
    for (uint32_t i = 0; i < watch->count; i++) {
        const struct watched *region = &watch->regions[i];
        bool has = json_array_size(json_object_get(region->said, "tables")) > 0;
        if (!region->site->witness && region->had_tables && is_known(region, since_ns) && !has)
            gone |= UINT64_C(1) << i;
    }
    return gone;
}

uint64_t watch_tombstones(const struct watch *watch, uint64_t since_ns)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < watch->count; i++) {
        const struct watched *region = &watch->regions[i];
        size_t j;
        json_t *table;
        if (region->site->witness || region->site->state == SITE_DEAD)
            continue;
        if (!is_known(region, since_ns))
            return UINT64_MAX;
        json_array_foreach(json_object_get(region->said, "tables"), j, table) count +=
            whole(table, "tombstones");
    }
    return count;
}

/* The member's own view of a group; NULL if it has none. */
static const json_t *find_group(const struct watched *region, const json_t *group)
{
    size_t i;
    json_t *own;
    json_array_foreach(json_object_get(region->said, "groups"), i,
                       own) if (strcmp(text(own, "table"), text(group, "table")) == 0 &&
                                whole(own, "partition") == whole(group, "partition")) return own;
    return NULL;
}

/* A data member has applied what anyone has, and follows a leader or is it. */
static bool member_caught_up(const struct watched *region, const json_t *own, uint64_t last)
{
    if (own == NULL)
        return region->site->witness;
    if (strcmp(text(own, "standing"), "full") != 0)
        return false;
    return json_is_true(json_object_get(own, "witness")) ||
           (whole(own, "applied") == last && *text(own, "leader") != 0);
}

static bool group_caught_up(const struct watch *watch, const json_t *group)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < watch->count; i++) {
        const json_t *own = find_group(&watch->regions[i], group);
        if (own != NULL && whole(own, "last") > last)
            last = whole(own, "last");
    }
    for (uint32_t i = 0; i < watch->count; i++)
        if (!member_caught_up(&watch->regions[i], find_group(&watch->regions[i], group), last))
            return false;
    return true;
}

static bool group_led(const struct watch *watch, const json_t *group)
{
    uint32_t leaders = 0;
    for (uint32_t i = 0; i < watch->count; i++) {
        const json_t *own = find_group(&watch->regions[i], group);
        leaders += own != NULL && json_is_true(json_object_get(own, "leads")) &&
                   json_is_true(json_object_get(own, "serving"));
    }
    return leaders == 1;
}

/* Of every group that some member knows. */
static bool all_groups(const struct watch *watch, uint64_t since_ns,
                       bool (*holds)(const struct watch *watch, const json_t *group))
{
    size_t j;
    json_t *group;
    if (!all_known(watch, since_ns))
        return false;
    for (uint32_t i = 0; i < watch->count; i++)
        json_array_foreach(json_object_get(watch->regions[i].said, "groups"), j, group)
        {
            if (!holds(watch, group))
                return false;
        }
    return true;
}

bool watch_caught_up(const struct watch *watch, uint64_t since_ns)
{
    return all_groups(watch, since_ns, group_caught_up);
}

bool watch_led(const struct watch *watch, uint64_t since_ns)
{
    return all_groups(watch, since_ns, group_led);
}

/* Strong tables are the same when all members have applied the same. */
bool watch_converged(const struct watch *watch, uint64_t since_ns)
{
    const struct watched *first = &watch->regions[0];
    const json_t *tables = json_object_get(first->said, "tables");
    size_t j;
    json_t *table;
    for (uint32_t i = 0; i < watch->count; i++) {
        const struct watched *region = &watch->regions[i];
        if (region->site->witness)
            continue;
        if (!is_known(region, since_ns) || region->settled < SETTLED_ANSWERS)
            return false;
        if (json_array_size(json_object_get(region->said, "tables")) != json_array_size(tables))
            return false;
        json_array_foreach(tables, j, table)
        {
            const json_t *other = find_table(region->said, text(table, "name"));
            if (other == NULL || whole(other, "items") != whole(table, "items"))
                return false;
        }
    }
    return watch_caught_up(watch, since_ns) && watch_led(watch, since_ns);
}

/* ---- What the others have of a dead one ---- */

uint64_t watch_known_of(const struct watch *watch, uint8_t dead, const char *table,
                        uint64_t partition)
{
    const char *name = watch->regions[dead].site->name;
    uint64_t most = 0;
    for (uint32_t i = 0; i < watch->count; i++) {
        size_t j;
        json_t *log;
        const json_t *found = i == dead ? NULL : find_table(watch->while_dead[dead][i], table);
        json_array_foreach(json_object_get(found, "logs"), j, log)
        {
            uint64_t known = whole(json_object_get(log, "of"), name);
            if (whole(log, "partition") == partition && known > most)
                most = known;
        }
    }
    return most;
}

/* ---- Leaders ---- */

static bool may_lead(const struct watched *region)
{
    return region->site->process != NULL && region->said != NULL;
}

uint64_t watch_leaders(const struct watch *watch)
{
    uint64_t leaders = 0;
    for (uint32_t i = 0; i < watch->count; i++)
        if (may_lead(&watch->regions[i]) && read_leads(watch->regions[i].said) > 0)
            leaders |= UINT64_C(1) << i;
    return leaders;
}

uint8_t watch_leader_of(const struct watch *watch, const char *table)
{
    uint8_t best = SCENARIO_REGION_NONE;
    uint32_t most = 0;
    for (uint32_t i = 0; i < watch->count; i++) {
        uint32_t leads = 0;
        size_t j;
        json_t *group;
        if (!may_lead(&watch->regions[i]))
            continue;
        json_array_foreach(json_object_get(watch->regions[i].said, "groups"), j, group) leads +=
            json_is_true(json_object_get(group, "leads")) &&
            (table == NULL || strcmp(text(group, "table"), table) == 0);
        if (leads > most) {
            most = leads;
            best = (uint8_t)i;
        }
    }
    return best;
}
