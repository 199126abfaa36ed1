/* SPDX-License-Identifier: Apache-2.0 */
/* When the next operation is due.
 *
 * Open loop: the rate alone decides. What is due goes to a free client of the Region that it was
 * drawn for, or waits for one; its intended time stays, so waiting counts. A client that waits
 * longer than an operation may take gives up without having sent a thing.
 *
 * Closed loop: each client sends its next when it has the answer to its last, at its share of the
 * rate at most. Without an answer it rests a moment first. */

#include "chaos/drive/drive_internal.h"

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

/* ---- Open loop ---- */

static uint64_t next_due_ns(const struct drive *drive)
{
    return drive->pace_base_ns +
           (uint64_t)((double)drive->pace_count * 1e9 / drive->workload->rate);
}

static struct drive_due take_due(struct drive_region *region)
{
    struct drive_due due = region->due[region->due_first];
    region->due_first = (region->due_first + 1) & (region->due_cap - 1);
    region->due_count--;
    return due;
}

static void push_due(struct drive *drive, uint8_t place, struct drive_due due)
{
    struct drive_region *region = &drive->region[place];
    if (region->due_count == DRIVE_QUEUE_MAX) {
        struct drive_due oldest = take_due(region);
        work_turn_away(drive, place, oldest.class, oldest.intended_ns);
    }
    if (region->due_count == region->due_cap) {
        uint32_t cap = region->due_cap > 0 ? 2 * region->due_cap : 64;
        struct drive_due *ring = xmalloc(cap * sizeof(*ring));
        for (uint32_t i = 0; i < region->due_count; i++)
            ring[i] = region->due[(region->due_first + i) & (region->due_cap - 1)];
        free(region->due);
        region->due = ring;
        region->due_first = 0;
        region->due_cap = cap;
    }
    region->due[(region->due_first + region->due_count++) & (region->due_cap - 1)] = due;
}

/* Gives what waits to whom is free, and turns away what has waited too long. */
static void serve(struct drive *drive, uint8_t place, uint64_t now)
{
    struct drive_region *region = &drive->region[place];
    struct drive_client *client;
    while (region->due_count > 0 &&
           now - region->due[region->due_first].intended_ns >= drive->workload->timeout_ns) {
        struct drive_due due = take_due(region);
        work_turn_away(drive, place, due.class, due.intended_ns);
    }
    while (region->due_count > 0 && (client = work_idle(drive, place)) != NULL &&
           work_has_room(drive)) {
        struct drive_due due = take_due(region);
        work_begin(client, due.class, due.intended_ns);
        drive->load.begun++;
    }
}

static void open_loop(struct drive *drive, uint64_t now)
{
    uint8_t all = (uint8_t)((1u << drive->data_count) - 1);
    uint8_t writers = drive->writers & all;
    for (; next_due_ns(drive) <= now; drive->pace_count++) {
        struct drive_due due = {.intended_ns = next_due_ns(drive)};
        if (!draw_class(&drive->draw, writers != 0, &due.class))
            continue;
        uint8_t place = draw_region(&drive->draw, draw_class_writes(due.class) ? writers : all);
        push_due(drive, place, due);
        drive->load.due++;
    }
    for (uint8_t place = 0; place < drive->data_count; place++)
        serve(drive, place, now);
}

/* ---- Closed loop ---- */

/* A client that may do nothing waits in idle for the next phase. */
static void begin_next(struct drive_client *client)
{
    struct drive *drive = client->drive;
    enum draw_class class;
    list_remove(&client->link);
    list_append(&drive->region[client->place].idle, &client->link);
    if (work_has_room(drive) &&
        draw_class(&drive->draw, drive->writers >> client->place & 1, &class)) {
        work_begin(client, class, UINT64_MAX);
        drive->load.due++;
        drive->load.begun++;
    }
}

static void closed_loop(struct drive *drive, uint64_t now)
{
    list_each(link, spare, &drive->resting)
    {
        struct drive_client *client = container_of(link, struct drive_client, link);
        if (client->rest_ns <= now)
            begin_next(client);
    }
}

static uint64_t first_rest_ns(const struct drive *drive)
{
    uint64_t first = UINT64_MAX;
    for (const struct list *at = drive->resting.next; at != &drive->resting; at = at->next) {
        uint64_t rest = container_of(at, struct drive_client, link)->rest_ns;
        if (rest < first)
            first = rest;
    }
    return first;
}

/* ---- Both ---- */

static void arm(struct drive *drive)
{
    uint64_t now = uv_hrtime();
    uint64_t due = drive->workload->open_loop ? next_due_ns(drive) : first_rest_ns(drive);
    if (!drive->running || drive->full || due == UINT64_MAX) {
        uv_timer_stop(&drive->pace_timer);
        return;
    }
    uint64_t delay_ms = due <= now ? 0 : (due - now + 999999) / 1000000;
    /* libuv counts from the beginning of the round. */
    uv_update_time(drive->pace_timer.loop);
    check(uv_timer_start(&drive->pace_timer, pace_on_timer, delay_ms, 0) == 0);
}

void pace_on_timer(uv_timer_t *timer)
{
    struct drive *drive = timer->data;
    uint64_t now = uv_hrtime();
    if (!drive->running)
        return;
    if (drive->workload->open_loop)
        open_loop(drive, now);
    else
        closed_loop(drive, now);
    arm(drive);
}

/* Closed loop: all start within one period, one after the other. */
static void rouse(struct drive *drive, uint64_t now)
{
    double rate = drive->workload->rate;
    for (uint32_t i = 0; i < drive->client_count; i++) {
        struct drive_client *client = &drive->clients[i];
        if (client->busy)
            continue;
        client->rest_ns = rate > 0 ? now + (uint64_t)(i * 1e9 / rate) : now;
        list_remove(&client->link);
        list_append(&drive->resting, &client->link);
    }
}

void pace_start(struct drive *drive)
{
    uint64_t now = uv_hrtime();
    if (!drive->running) {
        drive->pace_base_ns = now;
        drive->pace_count = 0;
        drive->load_since_ns = now;
    }
    drive->running = true;
    if (!drive->workload->open_loop)
        rouse(drive, now);
    arm(drive);
}

void drive_load(const struct drive *drive, struct drive_load *ret)
{
    *ret = drive->load;
    if (drive->running)
        ret->running_ns += uv_hrtime() - drive->load_since_ns;
}

void pace_stop(struct drive *drive)
{
    drive_load(drive, &drive->load);
    drive->running = false;
    uv_timer_stop(&drive->pace_timer);
    for (uint8_t place = 0; place < drive->data_count; place++)
        drive->region[place].due_count = 0;
    list_each(link, spare, &drive->resting)
    {
        struct drive_client *client = container_of(link, struct drive_client, link);
        list_remove(&client->link);
        list_append(&drive->region[client->place].idle, &client->link);
    }
}

void pace_next(struct drive_client *client, bool failed)
{
    struct drive *drive = client->drive;
    if (!drive->running)
        return;
    uint64_t now = uv_hrtime();
    if (drive->workload->open_loop) {
        serve(drive, client->place, now);
        return;
    }
    double rate = drive->workload->rate;
    uint64_t period = rate > 0 ? (uint64_t)(drive->client_count * 1e9 / rate) : 0;
    /* From when the last was meant to begin, or the timer's lateness would add up; but what an
     * outage has cost is not made good. */
    uint64_t next = client->rest_ns + period;
    if (next + period < now) {
        drive->load.due += period > 0 ? (now - next) / period : 0;
        next = now;
    }
    if (failed && next < now + DRIVE_REST_MS * 1000000u)
        next = now + DRIVE_REST_MS * 1000000u;
    client->rest_ns = next;
    if (next <= now) {
        begin_next(client);
        return;
    }
    list_remove(&client->link);
    list_append(&drive->resting, &client->link);
    arm(drive);
}
