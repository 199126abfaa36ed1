/* SPDX-License-Identifier: Apache-2.0 */
/* One operation: drawn, sent, answered, recorded. The clock is read here and not taken from the
 * loop, whose time is that of the round: an answer must not be dated before it came, nor a request
 * after it went, or the checkers would see an order that never was. */

#include "chaos/drive/drive_internal.h"

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

static void send_page(struct drive_client *client, struct bytes start);

static void client_init(struct drive *drive, struct drive_client *client, uint8_t place)
{
    client->drive = drive;
    client->place = place;
    client->number = draw_client(&drive->draw);
    list_init(&client->link);
}

void work_init(struct drive *drive)
{
    uint32_t each = (uint32_t)drive->workload->clients_per_region;
    drive->client_count = each * drive->data_count;
    drive->clients = xcalloc(drive->client_count, sizeof(*drive->clients));
    for (uint32_t i = 0; i < drive->client_count; i++) {
        uint8_t place = (uint8_t)(i % drive->data_count);
        client_init(drive, &drive->clients[i], place);
        list_append(&drive->region[place].idle, &drive->clients[i].link);
    }
    for (uint8_t place = 0; place < drive->data_count; place++)
        client_init(drive, &drive->region[place].away, place);
}

void work_deinit(struct drive *drive)
{
    for (uint32_t i = 0; i < drive->client_count; i++)
        answer_list_deinit(&drive->clients[i].list);
    for (uint8_t place = 0; place < drive->data_count; place++)
        answer_list_deinit(&drive->region[place].away.list);
    free(drive->clients);
}

struct drive_client *work_idle(struct drive *drive, uint8_t place)
{
    struct list *idle = &drive->region[place].idle;
    return list_empty(idle) ? NULL : container_of(idle->next, struct drive_client, link);
}

bool work_has_room(struct drive *drive)
{
    const struct history *history = drive->config.history;
    /* A write that goes unrecorded would look like a phantom, so what is under way is counted in,
     * twice for the write after a read. */
    uint64_t needed = 2 * ((uint64_t)drive->under_way + 1) +
                      (uint64_t)(drive->draw.used_count + 1) * drive->data_count;
    if (!drive->full && history->count + needed > history->count_max)
        drive->full = true;
    return !drive->full;
}

/* ---- Recording ---- */

/* A quarter of the room for lists is the last look's: beyond, a read forgets what it saw. */
static bool list_fits(const struct history *history, const struct history_op *op)
{
    return op->list_count == 0 ||
           history->value_count + op->list_count <= history->value_max - history->value_max / 4;
}

void work_record(struct drive *drive, const struct history_op *op, const uint64_t *list)
{
    struct history_op kept = *op;
    if (!list_fits(drive->config.history, op)) {
        kept.saw = HISTORY_SAW_NOTHING;
        kept.list_count = 0;
    }
    if (history_append(drive->config.history, &kept, list) == HISTORY_FULL)
        drive->full = true;
    figures_add(&drive->region[op->region].figures, op);
}

static void begin_op(struct drive_client *client, const struct draw_op *drawn, uint64_t intended_ns)
{
    client->drawn = *drawn;
    client->op = drawn->op;
    client->op.region = client->place;
    client->op.client = client->number;
    client->op.invoke_ns = uv_hrtime();
    client->op.intended_ns =
        intended_ns < client->op.invoke_ns ? intended_ns : client->op.invoke_ns;
    client->list.count = 0;
}

static void record(struct drive_client *client)
{
    struct drive *drive = client->drive;
    client->op.return_ns = uv_hrtime();
    work_record(drive, &client->op, client->list.at);
    draw_note(&drive->draw, &client->drawn, &client->op);
    if (client->op.outcome != HISTORY_INFO)
        return;
    /* It may still happen, so whoever goes on is another: a client does one thing at a time. */
    client->number = draw_client(&drive->draw);
    client->values = 0;
}

void work_turn_away(struct drive *drive, uint8_t place, enum draw_class class, uint64_t intended_ns)
{
    struct drive_client *away = &drive->region[place].away;
    struct draw_op drawn;
    if (!work_has_room(drive))
        return;
    draw_op(&drive->draw, class, draw_value(away->number, ++away->values), &drawn);
    begin_op(away, &drawn, intended_ns);
    away->op.outcome = HISTORY_FAILED;
    away->op.reason = HISTORY_REASON_REFUSED;
    record(away);
}

/* ---- Sending ---- */

static void finish(struct drive_client *client)
{
    struct drive *drive = client->drive;
    record(client);
    bool failed = !history_answered(&client->op);
    if (client->drawn.modify && !failed && !drive->stopping &&
        drive->writers >> client->place & 1) {
        struct draw_op drawn;
        uint64_t value = draw_value(client->number, ++client->values);
        draw_modify(&drive->draw, &client->drawn, value, &drawn);
        begin_op(client, &drawn, UINT64_MAX);
        send_page(client, BYTES_NONE);
        return;
    }
    client->busy = false;
    drive->under_way--;
    list_append(&drive->region[client->place].idle, &client->link);
    pace_next(client, failed);
    drive_check_stopped(drive);
}

static void on_answer(void *context, const struct http_answer *answer)
{
    struct drive_client *client = context;
    struct drive *drive = client->drive;
    json_t *next;
    if (drive->freeing) {
        bool writes = history_kind_writes((enum history_kind)client->op.kind);
        client->op.outcome = writes ? HISTORY_INFO : HISTORY_FAILED;
        client->op.reason = HISTORY_REASON_UNFINISHED;
        client->op.saw = HISTORY_SAW_NOTHING;
        client->op.list_count = 0;
        record(client);
        return;
    }
    answer_read(answer, &client->op, &client->list, &next);
    if (next == NULL) {
        finish(client);
        return;
    }
    char *start = json_dumps(next, JSON_COMPACT);
    json_decref(next);
    check(start != NULL);
    send_page(client, bytes_text(start));
    free(start);
}

/* Also the pages after the first: all of them within one timeout. */
static void send_page(struct drive_client *client, struct bytes start)
{
    struct drive *drive = client->drive;
    uint64_t spent_ms = (uv_hrtime() - client->op.invoke_ns) / 1000000u;
    uint64_t timeout_ms = drive_timeout_ms(drive);
    buf_reset(&drive->body);
    const char *operation = request_write(&drive->style, &client->op, start, &drive->body);
    drive_ask(drive, drive->region[client->place].net, client->place, operation,
              buf_view(&drive->body), spent_ms < timeout_ms ? timeout_ms - spent_ms : 1, on_answer,
              client);
}

void work_begin(struct drive_client *client, enum draw_class class, uint64_t intended_ns)
{
    struct drive *drive = client->drive;
    struct draw_op drawn;
    check(!client->busy);
    list_remove(&client->link);
    client->busy = true;
    drive->under_way++;
    draw_op(&drive->draw, class, draw_value(client->number, ++client->values), &drawn);
    begin_op(client, &drawn, intended_ns);
    send_page(client, BYTES_NONE);
}
