/* SPDX-License-Identifier: Apache-2.0 */
/* The clients, as chaos/drive has them: in open loop an operation is due by the rate, and waits for
 * a client of its Region; in closed loop each client rests for its share of the rate. */

#include <math.h>

#include "chaos/drive/request.h"
#include "chaos/simulate/play_internal.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum { QUEUE_MAX = 1 << 15 };
#define REST_NS UINT64_C(50000000) /* of a client of a closed loop after no answer */

static bool may_begin(const struct play *play)
{
    return play->running && !play_history_full(play) &&
           play->operations < play->replay->operations_max;
}

void play_load_init(struct play *play)
{
    const struct scenario_workload *workload = &play->scenario->workload;
    draw_init(&play->draw, play->scenario, play->replay->seed);
    play->client_count = (uint32_t)workload->clients_per_region * play->data_count;
    play->clients = xcalloc(play->client_count, sizeof(*play->clients));
    for (uint32_t i = 0; i < play->client_count; i++)
        play->clients[i] = (struct play_client){.place = (uint8_t)(i % play->data_count),
                                                .number = draw_client(&play->draw)};
    play->filler_len = request_filler_len(workload->item_bytes);
    play->filler = xmalloc(play->filler_len + 1);
    memset(play->filler, 'x', play->filler_len);
}

void play_load_deinit(struct play *play)
{
    play_requests_free(play);
    draw_deinit(&play->draw);
    free(play->clients);
    free(play->filler);
    free(play->look_again);
    for (uint32_t i = 0; i < SCENARIO_REGIONS_MAX; i++)
        free(play->due[i].at);
}

static void begin(struct play *play, uint32_t index, enum draw_class class, uint64_t intended_ns)
{
    struct play_client *client = &play->clients[index];
    struct draw_op drawn;
    client->busy = true;
    draw_op(&play->draw, class, draw_value(client->number, ++client->values), &drawn);
    play_request_begin(play, index, client->place, &drawn, intended_ns);
}

/* ---- Open loop ---- */

static uint64_t due_ns(const struct play *play, uint64_t count)
{
    return play->base_ns + (uint64_t)((double)count * 1e9 / play->scenario->workload.rate);
}

static void push(struct play_queue *queue, struct play_due due)
{
    if (queue->count == QUEUE_MAX) /* an outage that outlasts this is seen all the same */
        return;
    if (queue->count == queue->cap) {
        uint32_t cap = queue->cap ? queue->cap * 2 : 64;
        struct play_due *at = xcalloc(cap, sizeof(*at));
        for (uint32_t i = 0; i < queue->count; i++)
            at[i] = queue->at[(queue->first + i) % queue->cap];
        free(queue->at);
        *queue = (struct play_queue){at, 0, queue->count, cap};
    }
    queue->at[(queue->first + queue->count++) % queue->cap] = due;
}

static uint32_t idle_client(const struct play *play, uint8_t place)
{
    for (uint32_t i = place; i < play->client_count; i += play->data_count)
        if (!play->clients[i].busy)
            return i;
    return UINT32_MAX;
}

static void serve(struct play *play, uint8_t place)
{
    struct play_queue *queue = &play->due[place];
    while (queue->count > 0 && may_begin(play)) {
        uint32_t client = idle_client(play, place);
        if (client == UINT32_MAX)
            return;
        struct play_due due = queue->at[queue->first];
        queue->first = (queue->first + 1) % queue->cap;
        queue->count--;
        begin(play, client, due.class, due.intended_ns);
    }
}

static void due_later(struct play *play)
{
    if (play->due_scheduled)
        return;
    play->due_scheduled = true;
    uint64_t at = due_ns(play, play->due_count);
    play_later(play, at > now_of(play) ? at : now_of(play), EVENT_DUE, 0, 0);
}

void play_load_due(struct play *play)
{
    uint8_t all = (uint8_t)((1u << play->data_count) - 1), writers = play->writers & all;
    struct play_due due = {.intended_ns = due_ns(play, play->due_count++)};
    play->due_scheduled = false;
    if (!may_begin(play))
        return;
    if (draw_class(&play->draw, writers != 0, &due.class)) {
        uint8_t place = draw_region(&play->draw, draw_class_writes(due.class) ? writers : all);
        push(&play->due[place], due);
        serve(play, place);
    }
    due_later(play);
}

/* ---- Closed loop ---- */

void play_load_client(struct play *play, uint32_t index)
{
    struct play_client *client = &play->clients[index];
    enum draw_class class;
    if (client->busy || !may_begin(play))
        return;
    client->idle = !draw_class(&play->draw, play->writers >> client->place & 1, &class);
    if (!client->idle)
        begin(play, index, class, now_of(play));
}

void play_load_next(struct play *play, uint32_t index, bool failed)
{
    struct play_client *client = &play->clients[index];
    const struct scenario_workload *workload = &play->scenario->workload;
    if (!play->running)
        return;
    if (workload->open_loop) {
        serve(play, client->place);
        return;
    }
    uint64_t now = now_of(play);
    uint64_t period =
        workload->rate > 0 ? (uint64_t)(play->client_count * 1e9 / workload->rate) : 0;
    uint64_t next = client->rest_ns + period;
    if (next + period < now)
        next = now;
    if (failed && next < now + REST_NS)
        next = now + REST_NS;
    if (next < now + 100000) /* its answer has yet to reach it */
        next = now + 100000;
    client->rest_ns = next;
    play_later(play, next, EVENT_CLIENT, index, 0);
}

/* ---- Phases ---- */

static void rouse(struct play *play)
{
    double rate = play->scenario->workload.rate;
    for (uint32_t i = 0; i < play->client_count; i++) {
        struct play_client *client = &play->clients[i];
        if (client->busy)
            continue;
        client->rest_ns = now_of(play) + (rate > 0 ? (uint64_t)(i * 1e9 / rate) : 0);
        play_later(play, client->rest_ns, EVENT_CLIENT, i, 0);
    }
}

void play_load_phase(struct play *play, const struct scenario_phase *phase)
{
    play->writers = phase->writers;
    if (phase->idle) {
        play_load_stop(play);
        return;
    }
    bool was = play->running;
    play->running = true;
    if (play->scenario->workload.open_loop) {
        if (!was) {
            play->base_ns = now_of(play);
            play->due_count = 0;
        }
        due_later(play);
    } else if (!was) {
        rouse(play);
    } else {
        for (uint32_t i = 0; i < play->client_count; i++)
            if (play->clients[i].idle)
                play_later(play, now_of(play), EVENT_CLIENT, i, 0);
    }
}

void play_load_stop(struct play *play)
{
    play->running = false;
    for (uint32_t i = 0; i < SCENARIO_REGIONS_MAX; i++)
        play->due[i].count = 0;
}
