/* SPDX-License-Identifier: Apache-2.0 */
/* See regions.h. */

#include "tests/lib/drive/regions.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "tests/lib/scratch.h"

static const char *const names[REGIONS] = {"us-east-1", "eu-west-1", "ap-northeast-1"};

static void on_ready(void *context)
{
    ((struct region_host *)context)->ready = true;
}

static void on_drained(void *context)
{
    (void)context;
}

static void on_round(void *context)
{
    struct regions *regions = context;
    uint64_t next_ns = UINT64_MAX;
    for (int i = 0; i < REGIONS; i++) {
        uint64_t due_ns = regions->at[i].node ? node_round(regions->at[i].node) : UINT64_MAX;
        next_ns = due_ns < next_ns ? due_ns : next_ns;
    }
    loop_wake_at(&regions->loop, next_ns);
}

void regions_run_until(struct regions *regions, const bool *done)
{
    while (!*done)
        uv_run(&regions->loop.uv, UV_RUN_ONCE);
}

/* Ports that were free a moment ago, held all at once so that no two are the same. */
static void choose_ports(struct regions *regions)
{
    int probes[REGIONS];
    for (int i = 0; i < REGIONS; i++) {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t len = sizeof(at);
        probes[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        check(probes[i] >= 0);
        check(bind(probes[i], (struct sockaddr *)&at, sizeof(at)) == 0);
        check(getsockname(probes[i], (struct sockaddr *)&at, &len) == 0);
        snprintf(regions->at[i].address, sizeof(regions->at[i].address), "127.0.0.1:%u",
                 ntohs(at.sin_port));
        regions->addresses[i] = regions->at[i].address;
    }
    for (int i = 0; i < REGIONS; i++)
        close(probes[i]);
}

static void configure(struct region_host *host, const struct regions *regions)
{
    char arguments[3 + REGIONS][128];
    char *argv[8 + REGIONS] = {(char *)"test"};
    int argc = 1;
    long self = host - regions->at;
    snprintf(arguments[0], sizeof(arguments[0]), "--region=%s", names[self]);
    snprintf(arguments[1], sizeof(arguments[1]), "--listen=%s", host->address);
    snprintf(arguments[2], sizeof(arguments[2]), "--data=%s", host->directory);
    for (int i = 0; i < 3; i++)
        argv[argc++] = arguments[i];
    for (int i = 0; i < REGIONS; i++) {
        if (i == self)
            continue;
        snprintf(arguments[3 + i], sizeof(arguments[0]), "--peer=%s=%s", names[i],
                 regions->at[i].address);
        argv[argc++] = arguments[3 + i];
    }
    argv[argc++] = (char *)"--durability=os";
    argv[argc++] = (char *)"--set=heartbeat-ms=20";
    argv[argc++] = (char *)"--log-level=error";
    char error[512] = "";
    if (!config_load(argc, argv, &host->config, error, sizeof(error)))
        fail_msg("%s", error);
    host->log = (struct log){STDERR_FILENO, TRACE_ERROR, names[self]};
}

void region_start(struct region_host *host)
{
    char error[512] = "";
    struct node_events events = {on_ready, on_drained, host};
    host->ready = false;
    host->node =
        node_open(&host->regions->loop, &host->config, &host->log, &events, error, sizeof(error));
    if (!host->node)
        fail_msg("%s", error);
    regions_run_until(host->regions, &host->ready);
}

void region_stop(struct region_host *host)
{
    if (!host->node)
        return;
    struct node *node = host->node;
    host->node = NULL;
    node_close(node);
    for (int i = 0; i < 20; i++) /* sockets are closed in later rounds */
        uv_run(&host->regions->loop.uv, UV_RUN_NOWAIT);
    node_free(node);
}

int regions_setup_bare(void **state)
{
    struct regions *regions = xcalloc(1, sizeof(*regions));
    loop_init(&regions->loop);
    scenario_init(&regions->scenario);
    history_init(&regions->history, 1 << 20, 1 << 22);
    choose_ports(regions);
    for (int i = 0; i < REGIONS; i++)
        regions->at[i].regions = regions;
    *state = regions;
    return 0;
}

int regions_setup(void **state)
{
    regions_setup_bare(state);
    struct regions *regions = *state;
    loop_on_round(&regions->loop, on_round, regions);
    for (int i = 0; i < REGIONS; i++) {
        struct region_host *host = &regions->at[i];
        snprintf(host->directory, sizeof(host->directory), "/tmp/tidemark-drive-XXXXXX");
        check(mkdtemp(host->directory) != NULL);
        configure(host, regions);
    }
    for (int i = 0; i < REGIONS; i++)
        region_start(&regions->at[i]);
    return 0;
}

int regions_teardown(void **state)
{
    struct regions *regions = *state;
    if (regions->drive)
        drive_free(regions->drive);
    for (int i = 0; i < REGIONS; i++)
        region_stop(&regions->at[i]);
    loop_deinit(&regions->loop);
    for (int i = 0; i < REGIONS; i++) {
        if (regions->at[i].directory[0] == '\0')
            continue;
        config_deinit(&regions->at[i].config);
        remove_directory(regions->at[i].directory);
    }
    scenario_deinit(&regions->scenario);
    history_deinit(&regions->history);
    free(regions);
    return 0;
}

/* ---- The drive ---- */

void regions_on_done(void *context, bool good, const char *error)
{
    struct regions *regions = context;
    regions->done = true;
    regions->good = good;
    snprintf(regions->error, sizeof(regions->error), "%s", error ? error : "");
}

void regions_await(struct regions *regions)
{
    regions_run_until(regions, &regions->done);
    regions->done = false;
    if (!regions->good)
        fail_msg("%s", regions->error);
}

void regions_drive(struct regions *regions, const char *mode, const char *workload)
{
    struct buf text cleanup(buf_deinit);
    struct buf error cleanup(buf_deinit);
    if (regions->drive) {
        drive_free(regions->drive);
        scenario_deinit(&regions->scenario);
        scenario_init(&regions->scenario);
    }
    buf_init(&text);
    buf_init(&error);
    buf_printf(&text,
               "name: test\ncluster: {mode: %s, regions: [us-east-1, eu-west-1, ap-northeast-1]}\n"
               "workload: %s\nphases:\n  - {name: all, for: 1s}\n",
               mode, workload);
    if (!scenario_read(&regions->scenario, "test", buf_view(&text), &error))
        fail_msg("%.*s", (int)error.len, (const char *)error.at);
    const struct drive_config config = {.loop = &regions->loop,
                                        .scenario = &regions->scenario,
                                        .addresses = regions->addresses,
                                        .door = "127.0.0.1:1",
                                        .control = "127.0.0.1:2",
                                        .history = &regions->history,
                                        .seed = 7};
    regions->drive = drive_new(&config);
}

void regions_work(struct regions *regions, uint32_t count)
{
    uint32_t until = regions->history.count + count;
    drive_phase(regions->drive, &regions->scenario.phases[0]);
    while (regions->history.count < until)
        uv_run(&regions->loop.uv, UV_RUN_ONCE);
    drive_stop(regions->drive, regions_on_done, regions);
    regions_await(regions);
}
