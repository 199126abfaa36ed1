/* SPDX-License-Identifier: Apache-2.0 */
/* One Region as the faults want it. A Region forgets its clock's offset and its faults when its
 * process ends, so what it was told belongs to one process; the next is told anew (its clock by its
 * command line, so that it never serves with the right time in between). One question at a time
 * goes to it, and what fails is asked again. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "chaos/inject/inject_internal.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { ASK_MS_MAX = 2000, RETRY_MS = 100, START_AGAIN_MS = 1000 };

/* A Region gives what it sets aside the first free name (region/store_open.c). */
static bool was_set_aside(const struct place *place)
{
    char path[DISK_PATH_MAX + 32];
    snprintf(path, sizeof(path), "%s/%s.damaged-%u", place->inject->config.cluster->data,
             place->site->name, place->asides + 1);
    return access(path, F_OK) == 0;
}

void place_init(struct place *place, struct inject *inject, uint8_t index)
{
    *place = (struct place){
        .inject = inject, .index = index, .site = &inject->config.cluster->sites[index]};
    while (was_set_aside(place))
        place->asides++;
}

void place_deinit(struct place *place)
{
    if (place->request != NULL)
        client_cancel(steal(&place->request));
    place->site->environment = NULL;
    disk_free(place->disk);
    for (int i = 0; i < 3; i++)
        free(place->variables[i]);
}

bool place_running(const struct place *place)
{
    return place->site->state == SITE_RUNNING;
}

bool place_dead(const struct place *place)
{
    return place->site->state == SITE_DEAD && place->site->process == NULL;
}

bool place_settled(const struct place *place)
{
    return !place_running(place) ||
           (place->starts == place->site->starts && place->told == place->version &&
            place->clock_told == place->clock_version && place->request == NULL);
}

void place_changed(struct place *place)
{
    place->version++;
    place->retry_ns = 0;
    inject_wake(place->inject);
}

void place_clock_changed(struct place *place)
{
    place->clock_version++;
    place->retry_ns = 0;
    place_clock(place, inject_now(place->inject), &place->site->clock_offset_ms,
                &place->site->clock_rate_ppm);
    inject_wake(place->inject);
}

void place_start(struct place *place)
{
    struct inject *inject = place->inject;
    struct buf error;
    if (place->downs > 0 || !place_dead(place) || inject->leaving ||
        inject->config.cluster->stopping)
        return;
    uint64_t now_ns = inject_now(inject);
    bool failed = place->starts != place->site->starts; /* the last one was never seen to run */
    if (failed && now_ns < place->start_ns)
        return;
    place->start_ns = now_ns + START_AGAIN_MS * NS_PER_MS;
    buf_init(&error);
    place_clock(place, now_ns, &place->site->clock_offset_ms, &place->site->clock_rate_ppm);
    /* One that has not come up, or broke down by itself, may have met what is damaged: then it
     * begins empty, as its owner would have it do, and the others fill it. What that loses is told.
     */
    place->site->discard_damaged = place->flipped && (failed || !place->site->end_expected);
    (void)site_restart(place->site, &error); /* what fails is tried again at the next tick */
    buf_deinit(&error);
}

/* ---- What a Region comes back with ---- */

void place_damage(struct place *place, const char *directory)
{
    char aside[DISK_PATH_MAX + sizeof(DISK_ASIDE)];
    snprintf(aside, sizeof(aside), "%s%s", directory, DISK_ASIDE);
    /* One that runs writes on, so that a copy of now says little of what it will have lost. */
    if (!place->damaged)
        place->kept = place_dead(place) && disk_copy(directory, aside);
    place->flipped = place->damaged = true;
}

static void note_loss(struct place *place, enum outcome_loss_why why)
{
    struct outcome *outcome = place->inject->config.outcome;
    uint64_t now_ns = inject_now(place->inject);
    outcome_lost(outcome, outcome_death_ns(outcome, place->index, now_ns), place->index, why,
                 place->kept);
    outcome_event(outcome, now_ns, place->index, "lost", "%s", outcome_loss_text(why));
}

void place_serves(struct place *place)
{
    if (place->served == place->site->starts) /* it was paused */
        return;
    place->served = place->site->starts;
    bool discarded = was_set_aside(place);
    while (was_set_aside(place))
        place->asides++;
    if (discarded)
        note_loss(place, OUTCOME_LOSS_DISCARDED);
    else if (place->damaged)
        note_loss(place, OUTCOME_LOSS_DAMAGED);
    place->damaged = place->kept = false;
}

/* ---- Answers ---- */

/* [{"id", "kind", "hits"}]: what each of ours has hit in this process. */
static void take_hits(struct place *place, const json_t *list)
{
    const json_t *entry;
    size_t i;
    json_array_foreach(list, i, entry)
    {
        const char *id = json_string_value(json_object_get(entry, "id"));
        json_int_t hits = json_integer_value(json_object_get(entry, "hits"));
        json_int_t closed = json_integer_value(json_object_get(entry, "closed"));
        list_each(link, spare, &place->inject->faults)
        {
            struct fault *fault = container_of(link, struct fault, link);
            if (fault->verb != &verb_rule || id == NULL || hits <= 0 ||
                strcmp(fault->spec->id, id) != 0)
                continue;
            fault->hits[place->index].now = (uint64_t)hits;
            fault->hits[place->index].closed_now = closed > 0 ? (uint64_t)closed : 0;
        }
    }
}

static void take_clock(struct place *place, const json_t *body)
{
    const json_t *offset = json_object_get(body, "offset_ms");
    const json_t *rate = json_object_get(body, "rate_ppm");
    if (json_integer_value(offset) != place->asked_offset_ms ||
        json_integer_value(rate) != place->asked_rate_ppm)
        return;
    uint8_t bit = (uint8_t)(1u << place->index);
    list_each(link, spare, &place->inject->faults)
    {
        struct fault *fault = container_of(link, struct fault, link);
        if ((fault->asked & bit) == 0)
            continue;
        if (!fault->seen) {
            fault->clock_ms[0] = place->read_offset_ms;
            fault->clock_ms[1] = place->asked_offset_ms;
        }
        fault->asked &= (uint8_t)~bit;
        fault->seen = true;
        fault->times++;
    }
    place->read_offset_ms = place->asked_offset_ms;
    place->clock_told = place->asked_version;
}

static void on_answer(void *context, const struct http_answer *answer)
{
    struct place *place = context;
    enum asked asked = place->asked;
    place->request = NULL;
    place->asked = ASKED_NOTHING;
    if (answer->status != 200) {
        place->retry_ns = inject_now(place->inject) + RETRY_MS * NS_PER_MS;
        return;
    }
    json_t *body = json_loadb((const char *)answer->body.at, answer->body.len, 0, NULL);
    if (asked == ASKED_CLOCK) {
        take_clock(place, body);
    } else if (asked == ASKED_FAULTS) {
        take_hits(place, json_object_get(body, "faults"));
        take_hits(place, json_object_get(body, "ended"));
        place->told = place->asked_version;
        place->poll_ns = inject_now(place->inject) + POLL_MS * NS_PER_MS;
    } else if (place->asking != NULL) {
        uint64_t groups = (uint64_t)json_integer_value(json_object_get(body, "groups"));
        struct fault *fault = steal(&place->asking);
        if (groups > fault->hits[place->index].now)
            fault->hits[place->index].now = groups;
        if (groups == 0)
            fault->seen_down |= (uint8_t)(1u << place->index);
    }
    json_decref(body);
    inject_wake(place->inject);
}

/* ---- Asking ---- */

static void ask(struct place *place, enum asked asked, const char *method, const char *path,
                json_t *body)
{
    const struct http_header headers[] = {
        {bytes_literal("content-type"), bytes_literal("application/json")}};
    char *text = body == NULL ? NULL : json_dumps(body, JSON_COMPACT);
    struct client_call call = {.method = bytes_text(method),
                               .path = bytes_text(path),
                               .headers = headers,
                               .header_count = 1,
                               .body = text == NULL ? BYTES_NONE : bytes_text(text),
                               .timeout_ms = ASK_MS_MAX};
    place->asked = asked;
    place->asked_version = asked == ASKED_CLOCK ? place->clock_version : place->version;
    place->request = client_send(place->site->admin, &call, on_answer, place);
    free(text);
    json_decref(body);
}

static void ask_clock(struct place *place, uint64_t now_ns)
{
    uint8_t bit = (uint8_t)(1u << place->index);
    place_clock(place, now_ns, &place->asked_offset_ms, &place->asked_rate_ppm);
    list_each(link, spare, &place->inject->faults)
    {
        struct fault *fault = container_of(link, struct fault, link);
        fault->asked &= (uint8_t)~bit;
        if (place_clock_shares(place, fault))
            fault->asked |= bit;
    }
    ask(place, ASKED_CLOCK, "PUT", "/tidemark/clock",
        json_pack("{s:I, s:I}", "offset_ms", (json_int_t)place->asked_offset_ms, "rate_ppm",
                  (json_int_t)place->asked_rate_ppm));
}

void place_ask_transfer(struct place *place, struct fault *fault)
{
    if (place->request != NULL || !place_running(place))
        return;
    json_t *body = json_pack("{s:s}", "to", inject_name(place->inject, fault->to));
    if (fault->spec->table != NULL)
        json_object_set_new(body, "table", json_string(fault->spec->table));
    place->asking = fault;
    ask(place, ASKED_TRANSFER, "PUT", "/tidemark/transfer", body);
}

/* A new process knows nothing of faults; its clock is as it was started. */
static void meet_process(struct place *place)
{
    place->starts = place->site->starts;
    place->start_ns = 0;
    place->read_offset_ms = 0;
    place->told = place->version == 0 ? 0 : UINT64_MAX; /* 0: nothing was ever asked of it */
    place->clock_told = place->clock_version == 0 ? 0 : UINT64_MAX;
    list_each(link, spare, &place->inject->faults)
    {
        struct fault *fault = container_of(link, struct fault, link);
        fault->hits[place->index].before += fault->hits[place->index].now;
        fault->hits[place->index].now = 0;
        fault->hits[place->index].closed_before += fault->hits[place->index].closed_now;
        fault->hits[place->index].closed_now = 0;
    }
}

void place_tick(struct place *place, uint64_t now_ns)
{
    if (!place_running(place) || place->request != NULL || now_ns < place->retry_ns)
        return;
    if (place->starts != place->site->starts)
        meet_process(place);
    json_t *faults = region_faults(place);
    bool any = json_array_size(json_object_get(faults, "faults")) > 0;
    if (place->clock_told != place->clock_version)
        ask_clock(place, now_ns);
    else if (place->told != place->version)
        ask(place, ASKED_FAULTS, "PUT", "/tidemark/faults", json_incref(faults));
    else if (any && now_ns >= place->poll_ns)
        ask(place, ASKED_FAULTS, "GET", "/tidemark/faults", NULL);
    json_decref(faults);
}
