/* SPDX-License-Identifier: Apache-2.0 */
/* See drive.h and, for the parts, drive_internal.h. What is told to the owner is told by one task
 * at the end of the round, so never from within the call that began it. */

#include "chaos/drive/drive.h"

#include <stdio.h>

#include "chaos/drive/drive_internal.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

/* ---- Telling ---- */

static void tell_task(struct loop_task *task)
{
    struct drive *drive = container_of(task, struct drive, tell);
    struct chore *chore = &drive->chore;
    bool chore_over = chore->active && chore->ended;
    drive_done *stop_done = drive->stopped ? drive->stop_done : NULL;
    void *stop_context = drive->stop_context;
    drive->config.loop->again = true; /* the owner may have begun something */
    if (stop_done != NULL) {
        drive->stop_done = NULL;
        drive->stopping = drive->stopped = false;
    }
    /* The last thing told may free the drive, so nothing is looked at after it. */
    if (chore_over) {
        struct buf error = chore->error;
        drive_done *done = chore->done;
        void *context = chore->context;
        bool good = chore->good;
        buf_init(&chore->error);
        chore->active = false;
        buf_append_u8(&error, 0);
        done(context, good, good ? NULL : (const char *)error.at);
        buf_deinit(&error);
    }
    if (stop_done != NULL)
        stop_done(stop_context, true, NULL);
}

void drive_check_stopped(struct drive *drive)
{
    if (!drive->stopping || drive->under_way > 0 || drive->process_runs)
        return;
    drive->stopped = true;
    loop_soon(drive->config.loop, &drive->tell);
}

/* ---- Life ---- */

static uint8_t shape_of(uint8_t kind)
{
    return kind == SCENARIO_APPEND ? REQUEST_LIST
           : kind == SCENARIO_SET  ? REQUEST_SET
                                   : REQUEST_REGISTER;
}

static void make_filler(struct drive *drive)
{
    uint64_t len = request_filler_len(drive->workload->item_bytes);
    drive->filler = xmalloc(len + 1);
    for (uint64_t i = 0; i < len; i++)
        drive->filler[i] = (char)('a' + i % 26);
    drive->style.filler = bytes_make(drive->filler, len);
}

static void make_region(struct drive *drive, uint8_t place)
{
    struct drive_region *region = &drive->region[place];
    const char *address = drive->config.addresses[place];
    uint32_t clients = (uint32_t)drive->workload->clients_per_region;
    uint64_t timeout_ms = drive_timeout_ms(drive);
    snprintf(region->authorization, sizeof(region->authorization),
             "AWS4-HMAC-SHA256 Credential=tidemark/20260101/%s/dynamodb/aws4_request, "
             "SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature=%064d",
             drive->config.scenario->cluster.region[place].name, 0);
    list_init(&region->idle);
    const struct client_config net = {.address = address,
                                      .connections_max = clients > 0 ? clients : 1,
                                      .waiting_max = clients + 1,
                                      .connect_ms_max = timeout_ms < 2000 ? timeout_ms : 2000,
                                      .answer_bytes_max = DRIVE_ANSWER_BYTES_MAX};
    struct client_config admin = net;
    admin.connections_max = DRIVE_LANES;
    admin.waiting_max = 2 * DRIVE_LANES;
    region->net = client_new(drive->config.loop, &net);
    region->admin = client_new(drive->config.loop, &admin);
}

static void make_timer(struct drive *drive, uv_timer_t *timer)
{
    check(uv_timer_init(&drive->config.loop->uv, timer) == 0);
    timer->data = drive;
    drive->handles++;
}

struct drive *drive_new(const struct drive_config *config)
{
    struct drive *drive = xcalloc(1, sizeof(*drive));
    drive->config = *config;
    drive->workload = &config->scenario->workload;
    drive->data_count = config->scenario->cluster.data_count;
    drive->strong = config->scenario->cluster.mode == SCENARIO_STRONG;
    drive->style.shape = shape_of(drive->workload->kind);
    check(drive->data_count > 0);
    check(drive->data_count <= SCENARIO_REGIONS_MAX);
    list_init(&drive->resting);
    buf_init(&drive->body);
    buf_init(&drive->chore.error);
    loop_task_init(&drive->tell, tell_task);
    make_filler(drive);
    make_timer(drive, &drive->pace_timer);
    make_timer(drive, &drive->chore.timer);
    make_timer(drive, &drive->kill_timer);
    check(uv_signal_init(&config->loop->uv, &drive->child) == 0);
    drive->child.data = drive;
    drive->handles++;
    draw_init(&drive->draw, config->scenario, config->seed);
    for (uint8_t place = 0; place < drive->data_count; place++)
        make_region(drive, place);
    work_init(drive);
    return drive;
}

void drive_let_go(uv_handle_t *handle)
{
    struct drive *drive = handle->data;
    check(drive->handles > 0);
    if (--drive->handles == 0)
        free(drive);
}

void drive_free(struct drive *drive)
{
    drive->freeing = true;
    pace_stop(drive);
    loop_task_cancel(&drive->tell);
    for (uint8_t place = 0; place < drive->data_count; place++) {
        client_free(drive->region[place].net);
        client_free(drive->region[place].admin);
        free(drive->region[place].due);
    }
    chore_free_lanes(drive);
    work_deinit(drive);
    draw_deinit(&drive->draw);
    buf_deinit(&drive->body);
    buf_deinit(&drive->chore.error);
    free(drive->filler);
    scan_free(drive);
    exec_free(drive);
    uv_close((uv_handle_t *)&drive->pace_timer, drive_let_go);
    uv_close((uv_handle_t *)&drive->chore.timer, drive_let_go);
    uv_close((uv_handle_t *)&drive->kill_timer, drive_let_go);
    uv_close((uv_handle_t *)&drive->child, drive_let_go);
}

/* ---- Phases ---- */

void drive_phase(struct drive *drive, const struct scenario_phase *phase)
{
    check(!drive->stopping);
    drive->writers = phase->writers;
    if (drive->workload->kind == SCENARIO_EXEC) {
        if (!phase->idle)
            exec_start(drive);
    } else if (phase->idle) {
        pace_stop(drive);
    } else {
        pace_start(drive);
    }
}

void drive_stop(struct drive *drive, drive_done *done, void *context)
{
    check(drive->stop_done == NULL);
    drive->stopping = true;
    drive->stop_done = done;
    drive->stop_context = context;
    pace_stop(drive);
    exec_stop(drive);
    drive_check_stopped(drive);
}

/* ---- Figures ---- */

void drive_figures(struct drive *drive, struct drive_figures *ret)
{
    *ret = (struct drive_figures){.under_way = drive->under_way, .full = drive->full};
    for (uint8_t place = 0; place < drive->data_count; place++) {
        struct figures *figures = &drive->region[place].figures;
        ret->region[place].ok = figures->ok;
        ret->region[place].failed = figures->failed;
        ret->region[place].info = figures->info;
        ret->region[place].p50_ns = figures_quantile_ns(figures, 50);
        ret->region[place].p99_ns = figures_quantile_ns(figures, 99);
        *figures = (struct figures){0};
    }
}
