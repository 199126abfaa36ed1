/* SPDX-License-Identifier: Apache-2.0 */
/* One operation: built as the API's parser would, lent to a Region's core, and recorded by what its
 * client can know, with the rules of history.h. A Region that died or stands still keeps what it
 * was lent only as long as it lives; the client may have given up long before. */

#include <inttypes.h>
#include <stdio.h>

#include "chaos/drive/request.h"
#include "chaos/simulate/play_internal.h"
#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "region/core/number.h"

enum { SERIAL_SHIFT = 16 };
#define STRANGE UINT64_MAX /* nobody wrote that */

/* ---- Building ---- */

static struct bytes key_text(struct arena *arena, uint32_t key)
{
    char text[16];
    int len = snprintf(text, sizeof(text), "k%" PRIu32, key);
    return bytes_copy(arena, bytes_make(text, (size_t)len));
}

static void build_put(struct play *play, struct op *op, struct history_op *noted)
{
    op->return_values = RETURN_ALL_OLD;
    noted->bytes = (uint32_t)play->filler_len + 20;
    if (noted->kind != HISTORY_PUT_IF)
        return;
    const char *condition = "attribute_not_exists(pk)";
    op->return_old_on_failure = true;
    if (noted->expected) {
        workload_give_value(op, ":e", workload_number(op->arena, noted->expected));
        condition = "v = :e";
    }
    const char *problem = expr_parse_condition(&op->scope, "ConditionExpression",
                                               bytes_text(condition), &op->condition);
    check(problem == NULL);
}

static enum op_kind op_kind_of(enum history_kind kind)
{
    switch (kind) {
    case HISTORY_PUT:
    case HISTORY_PUT_IF:
        return OP_PUT_ITEM;
    case HISTORY_ADD:
        return OP_UPDATE_ITEM;
    case HISTORY_READ:
        return OP_GET_ITEM;
    case HISTORY_DELETE:
        return OP_DELETE_ITEM;
    case HISTORY_APPEND:
    case HISTORY_INSERT:
    case HISTORY_SCAN:
    case HISTORY_KIND_COUNT:
        break; /* play_accepts lets no such workload in */
    }
    unreachable();
}

static struct op *build(struct play *play, struct arena *arena, struct history_op *noted)
{
    struct op *op = workload_op_new(arena, op_kind_of((enum history_kind)noted->kind));
    bool put = op->kind == OP_PUT_ITEM;
    struct attribute attributes[3] = {
        {bytes_literal("pk"), workload_value(arena, VALUE_S, key_text(arena, noted->key))},
        {bytes_literal("v"), put ? workload_number(arena, noted->written) : (struct value){0}},
        {bytes_literal("f"),
         put ? workload_value(arena, VALUE_S, bytes_make(play->filler, play->filler_len))
             : (struct value){0}}};
    op->keys = arena_new(arena, struct op_key);
    op->key_count = 1;
    op->keys[0].table_name = op->table_name;
    op->keys[0].put = put;
    op->keys[0].attributes = workload_item(arena, attributes, put ? 3 : 1);
    op->consistent_read = noted->strong;
    if (put) {
        build_put(play, op, noted);
    } else if (op->kind == OP_UPDATE_ITEM) {
        op->return_values = RETURN_UPDATED_NEW;
        workload_give_value(op, ":a", workload_number(arena, noted->written));
        const char *problem = expr_parse_update(&op->scope, bytes_literal("ADD v :a"), &op->update);
        check(problem == NULL);
    } else if (op->kind == OP_DELETE_ITEM) {
        op->return_values = RETURN_ALL_OLD;
    }
    return op;
}

/* ---- The array of requests ---- */

static uint32_t take_free(struct play *play)
{
    if (play->free_count > 0)
        return play->free_requests[--play->free_count];
    check(play->request_count < REQUESTS_MAX);
    uint32_t cap = play->request_count + 1;
    if ((cap & play->request_count) == 0) { /* the next power of two */
        play->requests = xrealloc(play->requests, 2 * cap * sizeof(struct play_request *));
        play->free_requests = xrealloc(play->free_requests, 2 * cap * sizeof(uint32_t));
    }
    struct play_request *request = xcalloc(1, sizeof(*request));
    arena_init(&request->arena);
    play->requests[play->request_count] = request;
    return play->request_count++;
}

static void let_go(struct play *play, uint32_t index)
{
    struct play_request *request = play->requests[index];
    request->serial = 0;
    request->op = NULL;
    arena_reset(&request->arena);
    play->free_requests[play->free_count++] = index;
}

void play_requests_free(struct play *play)
{
    for (uint32_t i = 0; i < play->request_count; i++) {
        arena_deinit(&play->requests[i]->arena);
        free(play->requests[i]);
    }
    free(play->requests);
    free(play->free_requests);
}

/* ---- Its end ---- */

/* The client knows now, or gives up. */
static void conclude(struct play *play, uint32_t index)
{
    struct play_request *request = play->requests[index];
    struct history_op *noted = &request->noted;
    check(!request->over);
    request->over = true;
    /* The way to the client takes a little, so nothing is over as it begins. */
    noted->return_ns = now_of(play) + rng_between(&play->cluster.sim.rng, 20000, 100000);
    struct draw_op drawn = request->drawn;
    struct history_op told = *noted;
    sim_log_mark(
        play->cluster.sim.log, now_of(play), request->place, "%" PRIu64 ": %s", request->serial,
        noted->outcome == HISTORY_OK ? "done"
                                     : history_reason_text((enum history_reason)noted->reason));
    uint32_t client = request->client;
    uint8_t place = request->place;
    if (!request->submitted)
        let_go(play, index);
    play->under_way--;
    if (told.final) {
        play->looking--;
        if (told.outcome == HISTORY_OK)
            history_append(&play->outcome->history, &told, NULL);
        else
            play->look_again[play->look_again_count++] = told.key;
        return;
    }
    history_append(&play->outcome->history, &told, NULL);
    draw_note(&play->draw, &drawn, &told);
    struct play_client *own = &play->clients[client];
    own->free_ns = told.return_ns;
    if (drawn.modify && told.outcome == HISTORY_OK && play->running) {
        struct draw_op next;
        draw_modify(&play->draw, &drawn, draw_value(own->number, ++own->values), &next);
        play_request_begin(play, client, place, &next, told.return_ns);
        return;
    }
    own->busy = false;
    play_load_next(play, client, told.outcome != HISTORY_OK);
}

static void refuse(struct play *play, uint32_t index, enum history_reason reason, bool certain)
{
    struct history_op *noted = &play->requests[index]->noted;
    bool writes = history_kind_writes((enum history_kind)noted->kind);
    noted->reason = (uint8_t)reason;
    noted->outcome = certain || !writes ? HISTORY_FAILED : HISTORY_INFO;
    conclude(play, index);
}

uint64_t play_item_value(struct bytes item)
{
    struct value value;
    struct number number;
    uint64_t ret = 0;
    if (item.len == 0)
        return 0;
    if (!item_find(item, bytes_literal("v"), &value) || value.type != VALUE_N ||
        !number_decode(value.payload, &number) || !number_to_u64(&number, &ret) || ret == 0)
        return STRANGE;
    return ret;
}

static void see(struct history_op *noted, struct bytes item)
{
    noted->value = play_item_value(item);
    noted->saw = noted->value ? HISTORY_SAW_VALUE : HISTORY_SAW_ABSENT;
}

static void take_error(struct play *play, uint32_t index, enum api_error error, struct bytes found)
{
    struct history_op *noted = &play->requests[index]->noted;
    switch ((int)error) {
    case API_CONDITION_FAILED:
        if (noted->kind == HISTORY_PUT_IF) {
            see(noted, found);
            refuse(play, index, HISTORY_REASON_CONDITION, true);
            return;
        }
        refuse(play, index, HISTORY_REASON_REJECTED, true);
        return;
    case API_REPLICATED_WRITE_CONFLICT:
        refuse(play, index, HISTORY_REASON_CONFLICT, true);
        return;
    case API_THROTTLED:
    case API_THROTTLING:
    case API_LIMIT_EXCEEDED:
        refuse(play, index, HISTORY_REASON_THROTTLED, true);
        return;
    default: /* by its status alone, as for any client */
        if (api_error_status(error) < 500)
            refuse(play, index, HISTORY_REASON_REJECTED, true);
        else
            refuse(play, index, HISTORY_REASON_SERVER, false);
    }
}

void play_request_replied(struct play *play, uint64_t token, struct op *op)
{
    uint32_t index = (uint32_t)(token & (REQUESTS_MAX - 1));
    struct play_request *request = play->requests[index];
    check(request->serial == token >> SERIAL_SHIFT);
    check(request->op == op);
    request->submitted = false;
    if (request->over) {
        let_go(play, index);
        return;
    }
    if (op->result.error != API_OK) {
        take_error(play, index, op->result.error, op->result.error_item);
        return;
    }
    struct history_op *noted = &request->noted;
    noted->outcome = HISTORY_OK;
    see(noted, op->result.attributes);
    if (noted->kind == HISTORY_READ)
        noted->bytes = (uint32_t)op->result.attributes.len;
    conclude(play, index);
}

void play_requests_died(struct play *play, uint32_t node)
{
    for (uint32_t i = 0; i < play->request_count; i++) {
        struct play_request *request = play->requests[i];
        if (request->serial == 0 || request->place != node || !request->submitted)
            continue;
        request->submitted = false;
        if (request->over)
            let_go(play, i);
        else
            refuse(play, i, HISTORY_REASON_DISCONNECTED, false);
    }
}

void play_requests_cut(struct play *play, uint8_t regions)
{
    for (uint32_t i = 0; i < play->request_count; i++) {
        const struct play_request *request = play->requests[i];
        if (request->serial && request->submitted && !request->over &&
            regions >> request->place & 1)
            refuse(play, i, HISTORY_REASON_DISCONNECTED, false);
    }
}

void play_request_timeout(struct play *play, uint32_t index, uint64_t serial)
{
    struct play_request *request = play->requests[index];
    if (request->serial == serial && !request->over)
        refuse(play, index, HISTORY_REASON_TIMEOUT, false);
}

/* ---- Its beginning ---- */

void play_request_begin(struct play *play, uint32_t client, uint8_t place,
                        const struct draw_op *drawn, uint64_t intended_ns)
{
    uint32_t index = take_free(play);
    struct play_request *request = play->requests[index];
    request->serial = ++play->next_serial;
    request->client = client;
    request->place = place;
    request->submitted = request->over = false;
    request->drawn = *drawn;
    request->noted = drawn->op;
    uint64_t at = intended_ns > now_of(play) ? intended_ns : now_of(play);
    if (client != UINT32_MAX && at < play->clients[client].free_ns)
        at = play->clients[client].free_ns;
    request->noted.intended_ns = intended_ns;
    request->noted.invoke_ns = at;
    request->noted.region = place;
    if (client != UINT32_MAX)
        request->noted.client = play->clients[client].number;
    request->op = build(play, &request->arena, &request->noted);
    play->under_way++;
    play->operations++;
    play_later(play, at, EVENT_SUBMIT, index, request->serial);
    play_later(play, at + play->scenario->workload.timeout_ns, EVENT_TIMEOUT, index,
               request->serial);
}

void play_request_submit(struct play *play, uint32_t index)
{
    struct play_request *request = play->requests[index];
    enum scenario_how how;
    if (play_client_blocked(play, request->place, &how)) {
        if (how != SCENARIO_BLACKHOLE)
            refuse(play, index, HISTORY_REASON_REFUSED, true);
        return; /* sent, and never answered */
    }
    if (!play_node_up(play, request->place)) {
        refuse(play, index, HISTORY_REASON_REFUSED, true);
        return;
    }
    if (sim_cluster_paused(&play->cluster, request->place)) { /* it waits in the kernel */
        play_later(play, now_of(play) + 10 * ms, EVENT_SUBMIT, index, request->serial);
        return;
    }
    enum api_error error = play_api_fault(play, request->place, request->op->kind);
    if (error != API_OK) {
        take_error(play, index, error, BYTES_NONE);
        return;
    }
    request->submitted = true;
    sim_log_mark(play->cluster.sim.log, now_of(play), request->place, "%" PRIu64 ": %s k%" PRIu32,
                 request->serial, history_kind_text((enum history_kind)request->noted.kind),
                 request->noted.key);
    uint64_t token = request->serial << SERIAL_SHIFT | index;
    sim_cluster_request(&play->cluster, request->place, token, request->op);
}
