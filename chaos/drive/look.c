/* SPDX-License-Identifier: Apache-2.0 */
/* The last look: every item that the load has touched, read in every Region that is asked for. Each
 * lane has one item at a time and stays with it until it is read. */

#include "chaos/drive/drive_internal.h"

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

static void lane_ask(struct lane *lane, struct bytes start);

/* The next item for this lane; false: there is none. */
static bool take_key(struct lane *lane)
{
    struct drive *drive = lane->drive;
    uint32_t *next = &drive->look_key[lane->place];
    while (*next < drive->draw.key_count && !draw_used(&drive->draw, *next))
        (*next)++;
    if (*next == drive->draw.key_count)
        return false;
    lane->key = (*next)++;
    return true;
}

static void lane_begin(struct lane *lane)
{
    struct drive *drive = lane->drive;
    lane->op = (struct history_op){
        .kind = draw_is_set(&drive->draw) ? HISTORY_SCAN : HISTORY_READ,
        .key = lane->key,
        .client = lane->number,
        .region = lane->place,
        .strong = drive->strong,
        .final = true,
    };
    lane->list.count = 0;
    lane->op.invoke_ns = lane->op.intended_ns = uv_hrtime();
    lane_ask(lane, BYTES_NONE);
}

static void end_if_done(struct drive *drive)
{
    for (uint32_t i = 0; i < drive->lane_count; i++)
        if (!drive->lanes[i].done)
            return;
    chore_end(drive, true);
}

static bool keep(struct lane *lane)
{
    struct drive *drive = lane->drive;
    lane->op.return_ns = uv_hrtime();
    if (history_append(drive->config.history, &lane->op, lane->list.at) != HISTORY_FULL)
        return true;
    buf_reset(&drive->chore.error);
    buf_append_text(&drive->chore.error, "the history has no room for the last look: raise "
                                         "budgets.operations or lower the rate");
    chore_end(drive, false);
    return false;
}

static void on_answer(void *context, const struct http_answer *answer)
{
    struct lane *lane = context;
    struct drive *drive = lane->drive;
    json_t *next;
    lane->request = NULL;
    if (drive->freeing)
        return;
    answer_read(answer, &lane->op, &lane->list, &next);
    if (next != NULL) {
        char *start = json_dumps(next, JSON_COMPACT);
        json_decref(next);
        check(start != NULL);
        lane_ask(lane, bytes_text(start));
        free(start);
    } else if (lane->op.outcome != HISTORY_OK) {
        chore_trouble(drive, lane->place, "the last look", answer); /* again at the next tick */
    } else if (keep(lane)) {
        lane->done = !take_key(lane);
        if (lane->done)
            end_if_done(drive);
        else
            lane_begin(lane);
    }
}

static void lane_ask(struct lane *lane, struct bytes start)
{
    struct drive *drive = lane->drive;
    buf_reset(&drive->body);
    const char *operation = request_write(&drive->style, &lane->op, start, &drive->body);
    lane->request = drive_ask(drive, drive->region[lane->place].admin, lane->place, operation,
                              buf_view(&drive->body), drive_timeout_ms(drive), on_answer, lane);
}

static void look_tick(struct drive *drive)
{
    for (uint32_t i = 0; i < drive->lane_count; i++)
        if (!drive->lanes[i].done && drive->lanes[i].request == NULL)
            lane_begin(&drive->lanes[i]);
    end_if_done(drive); /* there may be nothing to look at */
}

void drive_look(struct drive *drive, uint64_t regions, uint64_t timeout_ns, drive_done *done,
                void *context)
{
    chore_free_lanes(drive);
    drive->lanes = xcalloc((size_t)DRIVE_LANES * drive->data_count, sizeof(*drive->lanes));
    for (uint8_t place = 0; place < drive->data_count; place++) {
        drive->look_key[place] = 0;
        for (uint32_t i = 0; i < DRIVE_LANES && (regions >> place & 1) != 0; i++) {
            struct lane lane = {
                .drive = drive, .place = place, .number = draw_client(&drive->draw)};
            if (take_key(&lane))
                drive->lanes[drive->lane_count++] = lane;
        }
    }
    chore_begin(drive, timeout_ns, look_tick, done, context);
}
