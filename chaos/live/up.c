/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a start: directory and lock, ports and links, front door and control API, processes.
 * Nothing is started before everything that can be refused has been. The end is the same whichever
 * way it comes: all processes first, then the rest. */

#include "chaos/live/up.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chaos/live/cluster.h"
#include "chaos/live/command.h"
#include "chaos/live/control.h"
#include "chaos/live/door.h"
#include "chaos/live/paths.h"
#include "chaos/live/signals.h"
#include "chaos/live/text.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

struct up {
    const struct config *config;
    bool json;
    struct loop loop;
    struct signals signals;
    struct cluster cluster;
    struct door *door;
    struct control *control;
    char *data;
    bool data_is_ours; /* temporary: removed at the end */
    int lock_fd;
    bool ready;
    int exit_code;
};

static int fail(struct up *up, const struct buf *error)
{
    fprintf(stderr, "tidemark: %.*s\n", (int)error->len, (const char *)error->at);
    up->exit_code = EXIT_FAILED;
    return EXIT_FAILED;
}

/* ---- The data directory ---- */

static bool lock_data(struct up *up, struct buf *error)
{
    char path[4200], holder[32] = "";
    snprintf(path, sizeof(path), "%s/tidemark.lock", up->data);
    up->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (up->lock_fd < 0) {
        buf_printf(error, "data directory %s can't be written: %s", up->data, strerror(errno));
        return false;
    }
    if (flock(up->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        ssize_t len = read(up->lock_fd, holder, sizeof(holder) - 1);
        buf_printf(error,
                   "data directory %s is in use by another `tidemark up` (process %.*s): stop that "
                   "one, or choose another --data",
                   up->data, len > 0 ? (int)strcspn(holder, "\n") : 1, len > 0 ? holder : "?");
        return false;
    }
    int len = snprintf(holder, sizeof(holder), "%d\n", (int)getpid());
    if (ftruncate(up->lock_fd, 0) != 0 || write(up->lock_fd, holder, (size_t)len) != len) {
        buf_printf(error, "data directory %s can't be written: %s", up->data, strerror(errno));
        return false;
    }
    return true;
}

static bool make_data(struct up *up, const uint16_t *regions, uint32_t count, struct buf *error)
{
    for (uint32_t i = 0; i < count; i++) {
        char path[4200];
        snprintf(path, sizeof(path), "%s/%s", up->data, region_id_name(regions[i]));
        if (mkdir(path, 0700) != 0 && errno != EEXIST) {
            buf_printf(error, "directory %s can't be made: %s", path, strerror(errno));
            return false;
        }
    }
    return true;
}

static bool open_data(struct up *up, struct buf *error)
{
    const char *temporary = getenv("TMPDIR");
    if (up->config->data != NULL) {
        up->data = xstrdup(up->config->data);
        if (!paths_make(up->data, 0700)) {
            buf_printf(error, "data directory %s can't be made: %s", up->data, strerror(errno));
            return false;
        }
    } else {
        if (temporary == NULL || *temporary == 0)
            temporary = "/tmp";
        up->data = text_new("%s/tidemark-XXXXXX", temporary);
        if (mkdtemp(up->data) == NULL) {
            buf_printf(error,
                       "no temporary directory %s: %s; set TMPDIR, or choose one with --data",
                       up->data, strerror(errno));
            return false;
        }
        up->data_is_ours = true;
    }
    if (!lock_data(up, error))
        return false;
    return make_data(up, up->config->regions, up->config->region_count, error) &&
           make_data(up, up->config->witnesses, up->config->witness_count, error);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status, (void)type, (void)where;
    return remove(path);
}

static void close_data(struct up *up)
{
    if (up->data_is_ours && nftw(up->data, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
        fprintf(stderr, "tidemark: the temporary directory %s could not be removed: %s\n", up->data,
                strerror(errno));
    if (up->lock_fd >= 0)
        close(up->lock_fd);
    free(up->data);
}

/* ---- The first screen ---- */

static void print_json(struct up *up, const char *door, const char *control)
{
    json_t *regions = json_array();
    for (uint32_t i = 0; i < up->cluster.site_count; i++)
        json_array_append_new(regions, cluster_api_site(&up->cluster.sites[i]));
    json_t *all = json_pack("{s:s, s:s, s:s, s:o}", "endpoint", door, "control", control, "data",
                            up->data, "regions", regions);
    json_dumpf(all, stdout, JSON_COMPACT);
    fputc('\n', stdout);
    json_decref(all);
}

static void print_screen(struct up *up, const char *door, const char *control)
{
    const struct cluster *cluster = &up->cluster;
    const char *first = cluster->sites[0].name;
    char option[ADDRESS_MAX + 16] = "";
    if (strcmp(control, "127.0.0.1:8474") != 0)
        snprintf(option, sizeof(option), " --control %s", control);
    char witnesses[32] = "";
    uint32_t count = up->config->region_count;
    if (up->config->witness_count > 0)
        snprintf(witnesses, sizeof(witnesses), ", %u witness%s", up->config->witness_count,
                 up->config->witness_count == 1 ? "" : "es");
    printf("Tidemark %s: %u region%s%s, durability %s, clock %s\n\n", TIDEMARK_VERSION, count,
           count == 1 ? "" : "s", witnesses,
           up->config->durability == DURABILITY_FSYNC ? "fsync" : "os",
           up->config->clock == CLOCK_HYBRID ? "hybrid" : "wall");
    printf("  %-16s http://%s   picks the region that a request is signed for\n", "front door",
           door);
    for (uint32_t i = 0; i < cluster->site_count; i++)
        printf("  %-16s http://%s%s\n", cluster->sites[i].name, cluster->sites[i].dial,
               cluster->sites[i].witness ? "   witness: takes no requests" : "");
    printf("  %-16s http://%s   a page for your browser, and the control API\n", "console",
           control);
    printf("  %-16s %s%s\n\n", "data", up->data,
           up->data_is_ours ? "   removed at the end; keep it with --data DIR" : "");
    printf("Try next, in another terminal:\n");
    printf("  aws dynamodb list-tables --region %s --endpoint-url http://%s\n", first, door);
    printf("  tidemark status%s\n", option);
    if (count > 1)
        printf("  tidemark link cut %s %s%s\n\n", first, cluster->sites[1].name, option);
    else
        printf("  tidemark region restart %s%s\n\n", first, option);
}

static void announce(struct up *up)
{
    struct address door; /* as a client reaches it: not 0.0.0.0 */
    check(address_parse(bytes_text(up->cluster.sites[0].dial), &door));
    char door_text[ADDRESS_MAX], control_text[ADDRESS_MAX];
    door.port = door_port(up->door);
    address_print(&door, door_text);
    struct address control = up->control->address;
    address_make_dialled(&control);
    address_print(&control, control_text);
    up->ready = true;
    if (up->json)
        print_json(up, door_text, control_text);
    else
        print_screen(up, door_text, control_text);
    printf("ready\n");
    fflush(stdout);
}

/* ---- The life of the cluster ---- */

static void on_changed(void *context, struct site *site, const char *line)
{
    struct up *up = context;
    if (line != NULL)
        fprintf(stderr, "tidemark: %s\n", line);
    if (up->cluster.stopping) {
        if (cluster_stopped(&up->cluster))
            loop_stop(&up->loop);
        return;
    }
    if (up->ready)
        return;
    if (site->state == SITE_DEAD) { /* its own log has said why */
        up->exit_code = EXIT_FAILED;
        cluster_stop(&up->cluster);
        if (cluster_stopped(&up->cluster))
            loop_stop(&up->loop);
        return;
    }
    for (uint32_t i = 0; i < up->cluster.site_count; i++)
        if (up->cluster.sites[i].state != SITE_RUNNING)
            return;
    announce(up);
}

static void on_signal(void *context, int signal)
{
    struct up *up = context;
    if (signal == SIGINT && !up->json && !up->cluster.stopping)
        printf("\nstopping; Ctrl-C again ends the regions at once\n");
    cluster_stop(&up->cluster);
    if (cluster_stopped(&up->cluster))
        loop_stop(&up->loop);
}

static bool start(struct up *up, struct buf *error)
{
    char *programs = paths_programs();
    bool good = cluster_init(&up->cluster, &up->loop, up->config, programs, up->data, on_changed,
                             up, error);
    free(programs);
    if (!good)
        return false;
    struct address address = up->cluster.sites[0].address;
    char door[ADDRESS_MAX];
    address.port = up->config->port;
    address_print(&address, door);
    up->door = door_open(&up->cluster, door, error);
    if (up->door == NULL)
        return false;
    up->control = control_open(&up->cluster, up->config->control, error);
    if (up->control == NULL)
        return false;
    return cluster_start(&up->cluster, error);
}

/* Every pair of regions costs a few descriptors, and the usual soft limit is far below the hard
 * one. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int up_run(const struct config *config, bool json)
{
    struct up up = {.config = config, .json = json, .lock_fd = -1};
    struct buf error;
    buf_init(&error);
    setvbuf(stdout, NULL, _IOLBF, 0);
    raise_descriptor_limit();
    if (!open_data(&up, &error)) {
        fail(&up, &error);
    } else {
        loop_init(&up.loop);
        signals_init(&up.signals, &up.loop, on_signal, &up);
        if (!start(&up, &error)) {
            fail(&up, &error);
            cluster_stop(&up.cluster);
        }
        if (!up.cluster.stopping || !cluster_stopped(&up.cluster))
            loop_run(&up.loop);
        cluster_deinit(&up.cluster);
        if (up.door != NULL)
            door_close(up.door);
        if (up.control != NULL)
            control_close(up.control);
        signals_close(&up.signals);
        loop_deinit(&up.loop);
    }
    close_data(&up);
    buf_deinit(&error);
    return up.exit_code;
}
