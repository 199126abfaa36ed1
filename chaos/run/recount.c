/* SPDX-License-Identifier: Apache-2.0 */
/* A start, one question, and an end. */

#include "chaos/run/recount.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "chaos/inject/disk.h"
#include "chaos/live/text.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/version.h"

enum { ASK_MS = 10000, READY_MS = 20000 };
#define NOWHERE "127.0.0.1:1" /* where no peer listens */

struct recount {
    struct cluster *cluster;
    const struct watch *watch;
    uint8_t dead;
    recount_done *done;
    void *context;
    struct address address;
    char dial[ADDRESS_MAX];
    int hold_fd;
    struct process *process;
    struct client *client;
    struct client_request *asking;
    uv_timer_t *timer; /* READY_MS are over */
    uint64_t count;
    char error[200];
};

void recount_stop(struct recount *recount)
{
    if (recount != NULL && recount->process != NULL)
        process_signal(recount->process, SIGKILL);
}

bool recount_is_over(const struct recount *recount)
{
    return recount == NULL || recount->process == NULL;
}

/* The process has been reaped: whatever is to be told is known. */
static void on_exited(void *context, int code, int signal)
{
    struct recount *recount = context;
    recount->process = NULL;
    if (recount->count == UINT64_MAX && recount->error[0] == 0)
        snprintf(recount->error, sizeof(recount->error),
                 "the lost data could not be opened (exit code %d, signal %d)", code, signal);
    recount->done(recount->context, recount->count, recount->error);
}

static uint64_t whole(const json_t *object, const char *field)
{
    json_int_t value = json_integer_value(json_object_get(object, field));
    return value < 0 ? 0 : (uint64_t)value;
}

/* What is beyond the others, of all partitions; UINT64_MAX: nobody has told how far they are. */
static uint64_t count_beyond(const struct recount *recount, const json_t *said)
{
    uint64_t count = 0;
    size_t i, j;
    json_t *table, *log;
    json_array_foreach(json_object_get(said, "tables"), i, table)
    {
        const char *name = json_string_value(json_object_get(table, "name"));
        json_array_foreach(json_object_get(table, "logs"), j, log)
        {
            uint64_t last = whole(log, "last");
            uint64_t known = watch_known_of(recount->watch, recount->dead, name == NULL ? "" : name,
                                            whole(log, "partition"));
            uint64_t base = version_epoch_base(version_epoch(last));
            if (known == 0)
                known = base; /* nothing of it had come to anyone */
            if (version_epoch(known) != version_epoch(last) || known > last)
                return UINT64_MAX;
            count += last - known;
        }
    }
    return count;
}

static void on_answer(void *context, const struct http_answer *answer)
{
    struct recount *recount = context;
    json_t *said = NULL;
    recount->asking = NULL;
    if (answer->status == 200)
        said = json_loadb((const char *)answer->body.at, answer->body.len, 0, NULL);
    if (json_is_object(said))
        recount->count = count_beyond(recount, said);
    if (recount->count == UINT64_MAX)
        snprintf(recount->error, sizeof(recount->error), "the logs cannot be compared");
    json_decref(said);
    recount_stop(recount);
}

static void on_ready(void *context)
{
    struct recount *recount = context;
    const struct http_header headers[] = {{bytes_literal("host"), bytes_text(recount->dial)}};
    const struct client_call call = {.method = bytes_literal("GET"),
                                     .path = bytes_literal("/tidemark/status"),
                                     .headers = headers,
                                     .header_count = array_len(headers),
                                     .timeout_ms = ASK_MS};
    recount->asking = client_send(recount->client, &call, on_answer, recount);
}

static void on_timer(uv_timer_t *timer)
{
    struct recount *recount = timer->data;
    if (recount_is_over(recount))
        return;
    snprintf(recount->error, sizeof(recount->error), "the lost data was not opened in time");
    recount_stop(recount);
}

static bool start(struct recount *recount)
{
    struct cluster *cluster = recount->cluster;
    const struct site *site = &cluster->sites[recount->dead];
    char *argv[16 + 2 * REGION_ID_MAX], *own[3 + REGION_ID_MAX];
    size_t count = 0, owned = 0;
    argv[count++] = own[owned++] = text_new("%stidemark-region", cluster->programs);
    argv[count++] = "--region";
    argv[count++] = (char *)site->name;
    argv[count++] = "--listen";
    argv[count++] = recount->dial;
    argv[count++] = "--data";
    argv[count++] = own[owned++] = text_new("%s/%s" DISK_ASIDE, cluster->data, site->name);
    argv[count++] = "--log-level";
    argv[count++] = "error";
    for (uint32_t i = 0; i < cluster->site_count; i++) {
        if (i == recount->dead)
            continue;
        argv[count++] = "--peer";
        argv[count++] = own[owned++] = text_new("%s=" NOWHERE, cluster->sites[i].name);
    }
    argv[count] = NULL;
    const struct process_events events = {on_ready, on_exited, recount, cluster->log_fd};
    recount->process = process_start(cluster->loop, argv, &events);
    while (owned > 0)
        free(own[--owned]);
    return recount->process != NULL;
}

struct recount *recount_begin(struct cluster *cluster, const struct watch *watch, uint8_t dead,
                              recount_done *done, void *context)
{
    struct recount *recount = xcalloc(1, sizeof(*recount));
    *recount = (struct recount){.cluster = cluster,
                                .watch = watch,
                                .dead = dead,
                                .done = done,
                                .context = context,
                                .address = {.host = "127.0.0.1"},
                                .count = UINT64_MAX};
    recount->hold_fd = address_hold(&recount->address);
    address_print(&recount->address, recount->dial);
    if (recount->hold_fd < 0 || !start(recount)) {
        if (recount->hold_fd >= 0)
            close(recount->hold_fd);
        free(recount);
        return NULL;
    }
    const struct client_config client = {.address = recount->dial,
                                         .connections_max = 1,
                                         .waiting_max = 16,
                                         .connect_ms_max = 2000,
                                         .answer_bytes_max = 64 * 1024 * 1024};
    recount->client = client_new(cluster->loop, &client);
    recount->timer = xcalloc(1, sizeof(*recount->timer));
    check(uv_timer_init(&cluster->loop->uv, recount->timer) == 0);
    recount->timer->data = recount;
    uv_timer_start(recount->timer, on_timer, READY_MS, 0);
    return recount;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle);
}

void recount_free(struct recount *recount)
{
    if (recount == NULL)
        return;
    check(recount_is_over(recount));
    if (recount->asking != NULL)
        client_cancel(recount->asking);
    client_free(recount->client);
    uv_close((uv_handle_t *)recount->timer, on_closed);
    close(recount->hold_fd);
    free(recount);
}
