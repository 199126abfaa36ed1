/* SPDX-License-Identifier: Apache-2.0 */
/* Ports first, then links, then processes: each region is told its peers' addresses when it starts,
 * so every port must be ours before the first process runs. Ports are held for the cluster's whole
 * life: a dead region's port refuses connections and comes back with it. */

#include "chaos/live/cluster.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chaos/live/text.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/base/plant.h"

enum { STOP_GRACE_MS = 5000, NAME_MAX_LEN = 96 };

static const char *const state_names[] = {"starting", "running", "paused", "dead"};

const char *site_state_name(enum region_state state)
{
    return state_names[state];
}

/* ---- Processes ---- */

static void site_changed(struct site *site, enum region_state state, const char *line)
{
    site->state = state;
    list_each(link, spare, &site->waits)
    {
        struct cluster_wait *wait = container_of(link, struct cluster_wait, link);
        bool reached = state == wait->wanted;
        if (!reached && (state != SITE_DEAD || site->restarting))
            continue;
        list_remove(&wait->link);
        wait->done(wait, reached);
    }
    site->cluster->changed(site->cluster->changed_context, site, line);
}

static void on_ready(void *context)
{
    struct site *site = context;
    /* Paused before it was ready: it can't have printed since, but its line may come late. */
    if (site->state == SITE_STARTING)
        site_changed(site, SITE_RUNNING, NULL);
}

static bool site_start(struct site *site);

static void on_exited(void *context, int code, int signal)
{
    struct site *site = context;
    char line[200];
    site->process = NULL;
    if (signal != 0)
        snprintf(
            line, sizeof(line),
            "region %s was ended by signal %d (%s); `tidemark region restart %s` starts it again",
            site->name, signal, strsignal(signal), site->name);
    else
        snprintf(line, sizeof(line),
                 "region %s ended by itself with exit code %d; `tidemark region restart %s` starts "
                 "it again",
                 site->name, code, site->name);
    site_changed(site, SITE_DEAD, site->end_expected ? NULL : line);
    if (site->restarting && !site->cluster->stopping) {
        site->restarting = false;
        if (!site_start(site))
            site_changed(site, SITE_DEAD, "a region could not be started again");
    }
}

static bool site_start(struct site *site)
{
    struct cluster *cluster = site->cluster;
    const struct config *config = cluster->config;
    char listen[ADDRESS_MAX];
    char *argv[26 + 2 * (REGION_ID_MAX + STRONG_LIMIT_COUNT)];
    size_t count = 0, owned = 0;
    char *own[6 + REGION_ID_MAX + STRONG_LIMIT_COUNT];
    address_print(&site->address, listen);
    argv[count++] = own[owned++] =
        text_new("%stidemark-%s", cluster->programs, site->witness ? "witness" : "region");
    argv[count++] = "--region";
    argv[count++] = own[owned++] = xstrdup(site->name);
    argv[count++] = "--listen";
    argv[count++] = listen;
    argv[count++] = "--data";
    argv[count++] = own[owned++] = text_new("%s/%s", cluster->data, site->name);
    argv[count++] = "--durability";
    argv[count++] = config->durability == DURABILITY_FSYNC ? "fsync" : "os";
    argv[count++] = "--log-level";
    argv[count++] = (char *)config->log_level;
    argv[count++] = "--clock";
    argv[count++] = config->clock == CLOCK_HYBRID ? "hybrid" : "wall";
    for (uint32_t i = 0; i < cluster->link_count; i++) {
        const struct cluster_link *link = &cluster->links[i];
        char address[ADDRESS_MAX];
        if (link->from != site)
            continue;
        address_print(&link->proxy->listen, address);
        argv[count++] = "--peer";
        argv[count++] = own[owned++] = text_new("%s=%s", link->to->name, address);
    }
    if (site->discard_damaged)
        argv[count++] = "--discard-damaged-store";
    site->discard_damaged = false;
    argv[count++] = "--mrsc.conflict";
    argv[count++] = config->mrsc_serialize ? "serialize" : "aws";
    for (uint32_t i = 0; i < STRONG_LIMIT_COUNT; i++) {
        if (!config->mrsc[i].set)
            continue;
        argv[count++] = "--set";
        argv[count++] = own[owned++] =
            text_new("%s=%llu", config_mrsc_name(i), (unsigned long long)config->mrsc[i].value);
    }
    if (site->clock_offset_ms != 0 || site->clock_rate_ppm != 0) {
        argv[count++] = own[owned++] =
            text_new("--clock-offset-ms=%lld", (long long)site->clock_offset_ms);
        argv[count++] = own[owned++] =
            text_new("--clock-rate-ppm=%lld", (long long)site->clock_rate_ppm);
    }
#ifdef TIDEMARK_PLANTED
    if (plant_active != PLANT_NONE) {
        argv[count++] = "--plant";
        argv[count++] = own[owned++] = xstrdup(plant_name());
    }
#endif
    argv[count] = NULL;
    const struct process_events events = {on_ready, on_exited, site, cluster->log_fd};
    site->end_expected = false;
    site->starts++;
    site->process = process_start_with(cluster->loop, argv, site->environment, &events);
    while (owned > 0)
        free(own[--owned]);
    site->state = site->process == NULL ? SITE_DEAD : SITE_STARTING;
    return site->process != NULL;
}

void site_wait(struct site *site, struct cluster_wait *wait)
{
    if (site->state == wait->wanted && !site->restarting) {
        list_init(&wait->link);
        wait->done(wait, true);
        return;
    }
    list_append(&site->waits, &wait->link);
}

static bool refuse_dead(struct site *site, const char *verb, struct buf *error)
{
    buf_printf(error, "region %s is dead: it can't be %s; `tidemark region restart %s` starts it",
               site->name, verb, site->name);
    return false;
}

bool site_kill(struct site *site, struct buf *error)
{
    return site_signal(site, SIGKILL, error);
}

bool site_signal(struct site *site, int signal, struct buf *error)
{
    if (site->process == NULL)
        return refuse_dead(site, "killed", error);
    site->end_expected = true;
    process_signal(site->process, signal);
    return true;
}

bool site_pause(struct site *site, struct buf *error)
{
    if (site->process == NULL)
        return refuse_dead(site, "paused", error);
    if (site->state == SITE_STARTING) {
        buf_printf(error, "region %s is still starting: pause it once it is running", site->name);
        return false;
    }
    process_pause(site->process);
    site_changed(site, SITE_PAUSED, NULL);
    return true;
}

bool site_resume(struct site *site, struct buf *error)
{
    if (site->process == NULL)
        return refuse_dead(site, "resumed", error);
    process_signal(site->process, SIGCONT);
    if (site->state == SITE_PAUSED)
        site_changed(site, SITE_RUNNING, NULL);
    return true;
}

bool site_restart(struct site *site, struct buf *error)
{
    if (site->process != NULL) {
        site->restarting = true;
        return site_kill(site, error);
    }
    if (site_start(site))
        return true;
    buf_printf(error, "region %s could not be started: %s", site->name, strerror(errno));
    return false;
}

/* ---- The whole ---- */

struct site *cluster_find(struct cluster *cluster, struct bytes name)
{
    for (uint32_t i = 0; i < cluster->site_count; i++)
        if (bytes_is(name, cluster->sites[i].name))
            return &cluster->sites[i];
    return NULL;
}

struct cluster_link *cluster_find_link(struct cluster *cluster, const struct site *from,
                                       const struct site *to)
{
    for (uint32_t i = 0; i < cluster->link_count; i++)
        if (cluster->links[i].from == from && cluster->links[i].to == to)
            return &cluster->links[i];
    return NULL;
}

void cluster_names(const struct cluster *cluster, bool witnesses, struct buf *ret)
{
    for (uint32_t i = 0; i < cluster->site_count; i++)
        if (witnesses || !cluster->sites[i].witness)
            buf_printf(ret, "%s%s", i == 0 ? "" : ", ", cluster->sites[i].name);
}

static bool site_init(struct site *site, struct buf *error)
{
    struct cluster *cluster = site->cluster;
    const struct config *config = cluster->config;
    list_init(&site->waits);
    site->state = SITE_DEAD;
    site->discard_damaged = config->discard_damaged_store;
    site->hold_fd = -1;
    site->witness = site->index >= config->region_count;
    site->name =
        region_id_name(site->witness ? config->witnesses[site->index - config->region_count]
                                     : config->regions[site->index]);
    snprintf(site->address.host, sizeof(site->address.host), "%s", config->listen);
    site->address.port = config->port == 0 ? 0 : (uint16_t)(config->port + 1 + site->index);
    site->hold_fd = address_hold(&site->address);
    if (site->hold_fd < 0) {
        buf_printf(error,
                   "port %u, which region %s is to have, can't be taken: %s; choose another --port "
                   "(the regions take the ports that follow it)",
                   site->address.port, site->name, strerror(-site->hold_fd));
        site->hold_fd = -1;
        return false;
    }
    struct address dial = site->address;
    address_make_dialled(&dial);
    address_print(&dial, site->dial);
    struct client_config client = {.address = site->dial,
                                   .connections_max = 256,
                                   .waiting_max = 10000,
                                   .connect_ms_max = 2000,
                                   .answer_bytes_max = 32 * 1024 * 1024};
    site->door = client_new(cluster->loop, &client);
    client.connections_max = 16;
    client.answer_bytes_max = 64 * 1024 * 1024;
    site->admin = client_new(cluster->loop, &client);
    return true;
}

static bool link_init(struct cluster *cluster, struct site *from, struct site *to,
                      struct buf *error)
{
    struct cluster_link *link = &cluster->links[cluster->link_count++];
    char name[NAME_MAX_LEN];
    struct address listen = {.host = "127.0.0.1"}, upstream;
    snprintf(name, sizeof(name), "%s->%s", from->name, to->name);
    check(address_parse(bytes_text(to->dial), &upstream));
    link->from = from;
    link->to = to;
    link->proxy = proxy_new(&cluster->proxies, name, &listen, &upstream, true);
    int failed = proxy_enable(link->proxy);
    if (failed == 0)
        return true;
    buf_printf(error, "no port for the link %s: %s", name, strerror(-failed));
    return false;
}

bool cluster_init(struct cluster *cluster, struct loop *loop, const struct config *config,
                  const char *programs, const char *data,
                  void (*changed)(void *context, struct site *site, const char *line),
                  void *changed_context, struct buf *error)
{
    *cluster = (struct cluster){.loop = loop,
                                .config = config,
                                .programs = xstrdup(programs),
                                .data = xstrdup(data),
                                .changed = changed,
                                .changed_context = changed_context};
    uint32_t count = config->region_count + config->witness_count;
    check(config->region_count > 0);
    check(uv_timer_init(&loop->uv, &cluster->stop_timer) == 0);
    cluster->stop_timer.data = cluster;
    proxy_set_init(&cluster->proxies, loop, config->seed);
    cluster->sites = xcalloc(count, sizeof(*cluster->sites));
    cluster->links = xcalloc((size_t)count * count, sizeof(*cluster->links));
    for (uint32_t i = 0; i < count; i++) {
        cluster->sites[i].cluster = cluster;
        cluster->sites[i].index = i;
        cluster->site_count++;
        if (!site_init(&cluster->sites[i], error))
            return false;
    }
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < count; j++)
            if (i != j && !link_init(cluster, &cluster->sites[i], &cluster->sites[j], error))
                return false;
    for (uint32_t i = 0; i < config->link_count; i++) {
        const struct link_config *from = &config->links[i];
        struct cluster_link *link = cluster_find_link(
            cluster, cluster_find(cluster, bytes_text(region_id_name(from->from))),
            cluster_find(cluster, bytes_text(region_id_name(from->to))));
        link_delay(link, from->delay_ms, from->jitter_ms);
    }
    return true;
}

bool cluster_start(struct cluster *cluster, struct buf *error)
{
    for (uint32_t i = 0; i < cluster->site_count; i++) {
        if (site_start(&cluster->sites[i]))
            continue;
        buf_printf(error, "%stidemark-%s can't be run: %s; it belongs beside the program tidemark",
                   cluster->programs, cluster->sites[i].witness ? "witness" : "region",
                   strerror(errno));
        return false;
    }
    return true;
}

bool cluster_stopped(const struct cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->site_count; i++)
        if (cluster->sites[i].process != NULL)
            return false;
    return true;
}

static void signal_all(struct cluster *cluster, int signal)
{
    for (uint32_t i = 0; i < cluster->site_count; i++) {
        struct site *site = &cluster->sites[i];
        site->end_expected = true;
        if (site->process != NULL)
            process_signal(site->process, signal);
    }
}

static void on_grace_over(uv_timer_t *timer)
{
    signal_all(timer->data, SIGKILL);
}

void cluster_stop(struct cluster *cluster)
{
    if (cluster->stopping) {
        signal_all(cluster, SIGKILL);
        return;
    }
    cluster->stopping = true;
    signal_all(cluster, SIGTERM);
    signal_all(cluster, SIGCONT); /* a paused one must run to end */
    uv_timer_start(&cluster->stop_timer, on_grace_over, STOP_GRACE_MS, 0);
}

void cluster_deinit(struct cluster *cluster)
{
    check(cluster_stopped(cluster));
    for (uint32_t i = 0; i < cluster->site_count; i++) {
        struct site *site = &cluster->sites[i];
        if (site->door != NULL) {
            client_free(site->door);
            client_free(site->admin);
        }
        if (site->hold_fd >= 0)
            close(site->hold_fd);
    }
    proxy_set_deinit(&cluster->proxies);
    uv_close((uv_handle_t *)&cluster->stop_timer, NULL);
    free(cluster->sites);
    free(cluster->links);
    free(cluster->data);
    free(cluster->programs);
}
