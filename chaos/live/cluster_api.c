/* SPDX-License-Identifier: Apache-2.0 */
/* Our own routes under /v1/: regions and links by name, and what may be done to them. An answer
 * comes when the thing is done, not when it was asked for: a killed region has been reaped, a
 * restarted one serves, a cut names the instant from which nothing passes. */

#include <stdio.h>
#include <string.h>

#include "chaos/live/console.h"
#include "chaos/live/control.h"
#include "chaos/live/runs.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

#define DELAY_MS_MAX INT64_C(3600000)
enum { NEWEST_MAX = 1000 };

json_t *cluster_api_site(const struct site *site)
{
    json_t *pid = site->process == NULL ? json_null() : json_integer(process_pid(site->process));
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:b}", "name", site->name, "kind",
                     site->witness ? "witness" : "region", "state", site_state_name(site->state),
                     "address", site->dial, "pid", pid, "isolated", site->isolated);
}

json_t *cluster_api_link(const struct cluster_link *link)
{
    const struct proxy_counts *counts = &link->proxy->counts;
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "from", link->from->name, "to",
                     link->to->name, "state", link_is_up(link) ? "up" : "cut", "delay_ms",
                     (json_int_t)link_delay_ms(link), "connections",
                     (json_int_t)counts->connections, "passed_bytes",
                     (json_int_t)counts->passed_bytes[TOXIC_UPSTREAM], "blocked_bytes",
                     (json_int_t)counts->blocked_bytes, "blocked_connections",
                     (json_int_t)counts->blocked_connections);
}

static void fail_unknown(struct control_request *request, const char *region)
{
    struct buf names;
    buf_init(&names);
    cluster_names(request->control->cluster, true, &names);
    control_fail(request->control, request->exchange, 404,
                 "no region '%.64s' in this cluster: expected one of %.*s", region, (int)names.len,
                 (const char *)names.at);
    buf_deinit(&names);
}

static struct site *find(struct control_request *request, const char *name)
{
    struct site *site = cluster_find(request->control->cluster, bytes_text(name));
    if (site == NULL)
        fail_unknown(request, name);
    return site;
}

/* ---- Links ---- */

static bool read_ms(json_t *body, const char *field, int64_t *ret)
{
    json_t *value = json_object_get(body, field);
    if (value == NULL)
        return true;
    *ret = json_is_integer(value) ? json_integer_value(value) : -1;
    return *ret >= 0 && *ret <= DELAY_MS_MAX;
}

static bool set_delay(struct control_request *request, struct cluster_link *link)
{
    int64_t delay_ms = -1, jitter_ms = 0;
    if (!read_ms(request->body, "delay_ms", &delay_ms) || delay_ms < 0 ||
        !read_ms(request->body, "jitter_ms", &jitter_ms)) {
        control_fail(
            request->control, request->exchange, 400,
            "expected {\"delay_ms\": N, \"jitter_ms\": N} with whole numbers from 0 to %lld",
            (long long)DELAY_MS_MAX);
        return false;
    }
    link_delay(link, (uint64_t)delay_ms, (uint64_t)jitter_ms);
    return true;
}

static void serve_link(struct control_request *request)
{
    struct cluster *cluster = request->control->cluster;
    const char *verb = request->path[4];
    struct site *from = find(request, request->path[2]);
    struct site *to = from == NULL ? NULL : find(request, request->path[3]);
    if (to == NULL)
        return;
    struct cluster_link *link = cluster_find_link(cluster, from, to);
    if (link == NULL) {
        control_fail(request->control, request->exchange, 400,
                     "a link joins two regions, and %s was named twice", from->name);
        return;
    }
    if (strcmp(verb, "delay") == 0) {
        if (!set_delay(request, link))
            return;
    } else if (strcmp(verb, "cut") == 0 || strcmp(verb, "heal") == 0) {
        link_cut(link, verb[0] == 'c');
    } else {
        control_fail(request->control, request->exchange, 404,
                     "'%.32s' can't be done to a link: expected cut, heal or delay", verb);
        return;
    }
    json_t *told = cluster_api_link(link);
    json_object_set_new(told, "effective_ms", json_integer((json_int_t)link->since.wall_ms));
    json_object_set_new(told, "effective_mono_ns", json_integer((json_int_t)link->since.mono_ns));
    const struct site *isolated =
        link->from->isolated ? link->from : (link->to->isolated ? link->to : NULL);
    json_object_set_new(told, "held_by",
                        isolated == NULL ? json_null() : json_string(isolated->name));
    control_answer(request->control, request->exchange, 200, told);
}

/* ---- Regions ---- */

struct region_answer {
    struct cluster_wait wait;
    struct control *control;
    struct exchange *exchange;
    struct site *site;
};

static void on_reached(struct cluster_wait *wait, bool reached)
{
    struct region_answer *answer = container_of(wait, struct region_answer, wait);
    if (reached)
        control_answer(answer->control, answer->exchange, 200, cluster_api_site(answer->site));
    else
        control_fail(answer->control, answer->exchange, 500,
                     "region %s ended before it was ready: its own log says why",
                     answer->site->name);
    free(answer);
}

static void answer_when(struct control_request *request, struct site *site,
                        enum region_state wanted)
{
    struct region_answer *answer = xcalloc(1, sizeof(*answer));
    *answer = (struct region_answer){.wait = {.wanted = wanted, .done = on_reached},
                                     .control = request->control,
                                     .exchange = request->exchange,
                                     .site = site};
    site_wait(site, &answer->wait);
}

static void answer_isolated(struct control_request *request, struct site *site, bool isolated)
{
    site_isolate(site, isolated);
    struct loop *loop = site->cluster->loop;
    loop_update_time(loop);
    json_t *told = cluster_api_site(site);
    json_object_set_new(told, "effective_ms", json_integer((json_int_t)loop->wall_ms));
    json_object_set_new(told, "effective_mono_ns", json_integer((json_int_t)loop->mono_ns));
    control_answer(request->control, request->exchange, 200, told);
}

/* {"discard_damaged_store": true}, for a restart; nothing else goes with a verb. */
static bool read_discard(struct control_request *request, const char *verb, bool *ret)
{
    json_t *discard = json_object_get(request->body, "discard_damaged_store");
    *ret = json_is_true(discard);
    if (discard == NULL || (json_is_boolean(discard) && (!*ret || strcmp(verb, "restart") == 0)))
        return true;
    control_fail(request->control, request->exchange, 400,
                 "expected {\"discard_damaged_store\": true or false}, with restart only");
    return false;
}

static void serve_region(struct control_request *request)
{
    static const struct {
        const char *verb;
        bool (*act)(struct site *site, struct buf *error);
        enum region_state reaches; /* SITE_PAUSED: at once */
    } acts[] = {
        {"kill", site_kill, SITE_DEAD},
        {"restart", site_restart, SITE_RUNNING},
        {"pause", site_pause, SITE_PAUSED},
        {"resume", site_resume, SITE_PAUSED},
    };
    struct site *site = find(request, request->path[2]);
    if (site == NULL)
        return;
    const char *verb = request->path[3];
    if (strcmp(verb, "isolate") == 0 || strcmp(verb, "rejoin") == 0) {
        answer_isolated(request, site, verb[0] == 'i');
        return;
    }
    for (size_t i = 0; i < array_len(acts); i++) {
        if (strcmp(verb, acts[i].verb) != 0)
            continue;
        struct buf error;
        bool discard;
        if (!read_discard(request, verb, &discard))
            return;
        site->discard_damaged = discard;
        buf_init(&error);
        if (!acts[i].act(site, &error))
            control_fail(request->control, request->exchange, 409, "%.*s", (int)error.len,
                         (const char *)error.at);
        else if (acts[i].reaches == SITE_PAUSED)
            control_answer(request->control, request->exchange, 200, cluster_api_site(site));
        else
            answer_when(request, site, acts[i].reaches);
        buf_deinit(&error);
        return;
    }
    control_fail(
        request->control, request->exchange, 404,
        "'%.32s' can't be done to a region: expected kill, pause, resume, restart, isolate "
        "or rejoin",
        verb);
}

/* ---- Routes ---- */

static void serve_status(struct control_request *request)
{
    report_status(request->control, request->exchange);
}

static void serve_console(struct control_request *request)
{
    report_console(request->control, request->exchange);
}

static void serve_regions(struct control_request *request)
{
    struct cluster *cluster = request->control->cluster;
    json_t *all = json_array();
    for (uint32_t i = 0; i < cluster->site_count; i++)
        json_array_append_new(all, cluster_api_site(&cluster->sites[i]));
    control_answer(request->control, request->exchange, 200, all);
}

static void serve_links(struct control_request *request)
{
    struct cluster *cluster = request->control->cluster;
    json_t *all = json_array();
    for (uint32_t i = 0; i < cluster->link_count; i++)
        json_array_append_new(all, cluster_api_link(&cluster->links[i]));
    control_answer(request->control, request->exchange, 200, all);
}

/* ?newest=N, alone; absent: all. */
static bool read_newest(struct bytes path, uint32_t *ret)
{
    static const char name[] = "newest=";
    const uint8_t *query = memchr(path.at, '?', path.len);
    *ret = 0;
    if (query == NULL)
        return true;
    struct bytes text = bytes_make(query + 1, (size_t)(path.at + path.len - query) - 1);
    if (!bytes_starts_with(text, bytes_text(name)))
        return true; /* as before it meant anything */
    uint64_t value = 0;
    for (size_t i = sizeof(name) - 1; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9' || value > NEWEST_MAX)
            return false;
        value = value * 10 + (text.at[i] - '0');
    }
    *ret = (uint32_t)value;
    return value > 0 && value <= NEWEST_MAX;
}

static void serve_conflicts(struct control_request *request)
{
    uint32_t newest;
    if (read_newest(exchange_request(request->exchange)->path, &newest))
        report_conflicts(request->control, request->exchange, newest);
    else
        control_fail(request->control, request->exchange, 400,
                     "newest: expected a number from 1 to %d", NEWEST_MAX);
}

/* ---- Runs ---- */

static void serve_runs(struct control_request *request)
{
    control_answer(request->control, request->exchange, 200, runs_list(request->control->runs));
}

static void send_report(struct control_request *request, const char *name, const char *time)
{
    struct buf page cleanup(buf_deinit) = {0};
    if (runs_read_report(request->control->runs, name, time, &page))
        console_serve_report(buf_view(&page), request->exchange);
    else
        control_fail(request->control, request->exchange, 404,
                     "there is no such run here: /v1/runs lists them");
}

/* Of the newest run. */
static void serve_report(struct control_request *request)
{
    json_t *runs = runs_list(request->control->runs), *newest = json_array_get(runs, 0);
    if (newest == NULL)
        control_fail(request->control, request->exchange, 404,
                     "no run of `tidemark chaos` has left a report here");
    else
        send_report(request, json_string_value(json_object_get(newest, "name")),
                    json_string_value(json_object_get(newest, "time")));
    json_decref(runs);
}

/* ---- All routes ---- */

static const struct {
    const char *name;
    void (*serve)(struct control_request *request);
} shown[] = {
    {"status", serve_status},       {"console", serve_console}, {"report", serve_report},
    {"conflicts", serve_conflicts}, {"regions", serve_regions}, {"links", serve_links},
    {"runs", serve_runs},
};

bool cluster_api(struct control_request *request)
{
    uint32_t len = request->path_len;
    if (len < 2 || strcmp(request->path[0], "v1") != 0)
        return false;
    const char *what = request->path[1];
    size_t at = 0;
    while (at < array_len(shown) && (len != 2 || strcmp(what, shown[at].name) != 0))
        at++;
    bool region = len == 4 && strcmp(what, "regions") == 0;
    bool run = len == 4 && strcmp(what, "runs") == 0;
    bool link = len == 5 && strcmp(what, "links") == 0;
    if (at == array_len(shown) && !region && !link && !run)
        return false;
    const char *method = region || link ? "POST" : "GET";
    if (!bytes_is(request->method, method)) {
        control_fail(request->control, request->exchange, 405, "method not allowed: expected %s",
                     method);
        return true;
    }
    if (run)
        send_report(request, request->path[2], request->path[3]);
    else if (link)
        serve_link(request);
    else if (region)
        serve_region(request);
    else
        shown[at].serve(request);
    return true;
}
