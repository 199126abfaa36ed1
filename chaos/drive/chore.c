/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked beside the load: to make tables and to look at the end. A chore tries until it has
 * what it wants or its time is over; a Region may be down meanwhile, so every failure only means
 * another try. */

#include "chaos/drive/drive_internal.h"

#include <stdio.h>

#include "conflict/base/check.h"

uint64_t drive_timeout_ms(const struct drive *drive)
{
    uint64_t ms = drive->workload->timeout_ns / 1000000u;
    return ms > 0 ? ms : 1;
}

struct client_request *drive_ask(struct drive *drive, struct client *client, uint8_t place,
                                 const char *operation, struct bytes body, uint64_t timeout_ms,
                                 void (*done)(void *context, const struct http_answer *answer),
                                 void *context)
{
    char target[64];
    int len = snprintf(target, sizeof(target), REQUEST_PROTOCOL "%s", operation);
    const struct http_header headers[] = {
        {bytes_literal("content-type"), bytes_literal("application/x-amz-json-1.0")},
        {bytes_literal("x-amz-target"), bytes_make(target, (size_t)len)},
        {bytes_literal("x-amz-date"), bytes_literal("20260101T000000Z")},
        {bytes_literal("authorization"), bytes_text(drive->region[place].authorization)},
    };
    const struct client_call call = {.method = bytes_literal("POST"),
                                     .path = bytes_literal("/"),
                                     .headers = headers,
                                     .header_count = array_len(headers),
                                     .body = body,
                                     .timeout_ms = timeout_ms,
                                     .once = true};
    return client_send(client, &call, done, context);
}

void chore_begin(struct drive *drive, uint64_t timeout_ns, void (*tick)(struct drive *drive),
                 drive_done *done, void *context)
{
    struct chore *chore = &drive->chore;
    check(!chore->active);
    chore->active = true;
    chore->ended = chore->good = false;
    chore->deadline_ns = uv_hrtime() + timeout_ns;
    chore->tick = tick;
    chore->done = done;
    chore->context = context;
    buf_reset(&chore->error);
    check(uv_timer_start(&chore->timer, chore_on_timer, 0, DRIVE_RETRY_MS) == 0);
}

void chore_on_timer(uv_timer_t *timer)
{
    struct drive *drive = timer->data;
    struct chore *chore = &drive->chore;
    if (!chore->active || chore->ended)
        return;
    if (uv_hrtime() >= chore->deadline_ns)
        chore_end(drive, false);
    else
        chore->tick(drive);
}

static void cancel(struct client_request **request)
{
    if (*request != NULL)
        client_cancel(*request);
    *request = NULL;
}

void chore_end(struct drive *drive, bool good)
{
    struct chore *chore = &drive->chore;
    if (chore->ended)
        return;
    chore->ended = true;
    chore->good = good;
    uv_timer_stop(&chore->timer);
    cancel(&chore->request);
    for (uint32_t i = 0; i < drive->lane_count; i++)
        cancel(&drive->lanes[i].request);
    loop_soon(drive->config.loop, &drive->tell);
}

void chore_trouble(struct drive *drive, uint8_t place, const char *doing,
                   const struct http_answer *answer)
{
    struct buf *error = &drive->chore.error;
    buf_reset(error);
    buf_printf(error, "%s: %s", drive->config.scenario->cluster.region[place].name, doing);
    if (answer == NULL)
        return;
    buf_append_text(error, ": ");
    answer_print(answer, error);
}

void chore_free_lanes(struct drive *drive)
{
    for (uint32_t i = 0; i < drive->lane_count; i++) {
        answer_list_deinit(&drive->lanes[i].list);
        json_decref(drive->lanes[i].next);
    }
    free(drive->lanes);
    drive->lanes = NULL;
    drive->lane_count = 0;
}
