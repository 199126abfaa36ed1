/* SPDX-License-Identifier: Apache-2.0 */
/* Proposals at the leader, each evaluated on what its key will hold once all that is in the log is
 * applied: an image of one that was evaluated before it, or what the key's lane says. What one
 * reign evaluated means nothing to another. */

#include "conflict/record.h"
#include "conflict/region_id.h"
#include "region/core/op_wire.h"
#include "region/core/strong_internal.h"

static struct strong_image *find_image(const struct strong *strong, struct bytes key)
{
    struct strong_image *image;
    HASH_FIND(hh, strong->images, key.at, (unsigned)key.len, image);
    return image;
}

static void free_image(struct strong *strong, struct strong_image *image)
{
    HASH_DELETE(hh, strong->images, image);
    buf_deinit(&image->item);
    free(image);
}

static void put_image(struct strong *strong, struct bytes key, const struct strong_evaluation *by,
                      const struct op_change *change)
{
    struct strong_image *image = find_image(strong, key);
    if (!image) {
        image = xmalloc(sizeof(*image) + key.len);
        *image = (struct strong_image){.key_len = (uint32_t)key.len};
        memcpy(image->key, key.at, key.len);
        HASH_ADD_KEYPTR(hh, strong->images, image->key, image->key_len, image);
    }
    image->id = by->id;
    image->index = 0;
    image->origin = by->origin;
    image->present = change->kind == OP_CHANGE_PUT;
    buf_reset(&image->item);
    if (image->present)
        buf_append_bytes(&image->item, change->item);
}

void strong_appended(struct strong *strong, uint64_t id, uint64_t index)
{
    /* It is the answer that is being stepped. A later one for the same key may have come since. */
    struct strong_payload payload;
    if (!strong_payload_decode(strong->stepped, &payload) || payload.kind == STRONG_SEAL)
        return;
    struct strong_image *image = find_image(strong, payload.key);
    if (image && image->id == id)
        image->index = index;
}

void strong_image_applied(struct strong *strong, struct bytes key, uint64_t index)
{
    struct strong_image *image = strong->images ? find_image(strong, key) : NULL;
    if (image && image->index == index)
        free_image(strong, image);
}

/* Later, as the reign may end with it, and every evaluation then goes. */
static void answer(struct region *region, struct strong *strong, uint64_t id,
                   enum consensus_verdict verdict, struct bytes bytes)
{
    strong_input_later(
        region, strong,
        &(struct consensus_input){
            .kind = CONSENSUS_EVALUATED, .id = id, .verdict = verdict, .bytes = bytes});
}

static void answer_tag(struct region *region, struct strong *strong, uint64_t id,
                       enum strong_answer tag, struct bytes item)
{
    struct buf *bytes = &region->strong->payload;
    buf_reset(bytes);
    buf_append_u8(bytes, (uint8_t)tag);
    buf_append_bytes(bytes, item);
    answer(region, strong, id, CONSENSUS_EVALUATED_FAILED, buf_view(bytes));
}

static void free_evaluation(struct region *region, struct strong_evaluation *evaluation)
{
    list_remove(&evaluation->link);
    list_remove(&evaluation->wait.link);
    if (evaluation->lane)
        lane_unpin(region, evaluation->lane);
    free(evaluation);
}

/* What a key will hold, and who made it so. */
struct held {
    bool present;
    struct bytes item;
    uint8_t origin; /* CONSENSUS_NOBODY: not known */
    uint64_t index; /* 0: in flight */
    bool in_flight;
};

/* Another Region's write of the item that the origin had not seen when it proposed (the rule is
 * ours: AWS only says "already being modified in another Region"). */
static bool conflicts(const struct region *region, const struct strong_evaluation *evaluation,
                      const struct held *held)
{
    return region->config.strong.conflict == STRONG_CONFLICT_AWS &&
           held->origin != CONSENSUS_NOBODY && held->origin != evaluation->origin &&
           (held->in_flight || held->index > evaluation->origin_applied);
}

static void judge(struct region *region, struct strong *strong,
                  const struct strong_evaluation *evaluation, const struct held *held)
{
    struct arena *arena = &region->strong->arena;
    arena_reset(arena);
    struct op op;
    struct bytes operation = bytes_make(evaluation->operation, evaluation->operation_len);
    if ((strong->sealing || strong->partition->meta.sealed) && !planted(PLANT_SEAL_IGNORED)) {
        answer_tag(region, strong, evaluation->id, STRONG_ANSWER_SEALED, BYTES_NONE);
        return;
    }
    if (!op_wire_decode(operation, &strong->table->d.table, arena, &op)) {
        trace_emit(&region->config.trace, TRACE_WARN,
                   "strong: a proposal cannot be read table=%s from=%s",
                   strong->table->d.table.name,
                   region_id_name(strong_region_of(strong, evaluation->origin)));
        answer_tag(region, strong, evaluation->id, STRONG_ANSWER_REFUSED, BYTES_NONE);
        return;
    }
    if (conflicts(region, evaluation, held)) {
        answer(region, strong, evaluation->id, CONSENSUS_EVALUATED_CONFLICT, BYTES_NONE);
        return;
    }
    struct bytes item = held->present ? held->item : BYTES_NONE;
    struct op_change change;
    op_execute_key(&op, 0, item, &change);
    if (change.kind == OP_CHANGE_NONE) {
        answer_tag(region, strong, evaluation->id, STRONG_ANSWER_IMAGE, item);
        return;
    }
    struct strong_payload payload = {
        .kind = change.kind == OP_CHANGE_PUT ? STRONG_PUT : STRONG_DELETE,
        .key = op.keys[0].key,
        .item = change.kind == OP_CHANGE_PUT ? change.item : BYTES_NONE};
    put_image(strong, payload.key, evaluation, &change);
    struct buf *bytes = &region->strong->payload;
    buf_reset(bytes);
    strong_payload_encode(&payload, bytes);
    answer(region, strong, evaluation->id, CONSENSUS_EVALUATED_WRITE, buf_view(bytes));
}

/* What the key holds, from an image that is not applied yet or from its lane. False: its row cannot
 * be read. */
static bool hold(const struct strong *strong, const struct strong_image *image,
                 const struct lane *lane, struct held *ret)
{
    *ret = (struct held){.origin = CONSENSUS_NOBODY};
    if (image) {
        *ret = (struct held){.present = image->present,
                             .item = buf_view(&image->item),
                             .origin = image->origin,
                             .in_flight = true};
        return true;
    }
    struct bytes body;
    struct record record;
    if (!lane_image(lane, &body))
        return false;
    if (body.len == 0)
        return true;
    if (!record_decode_body(body, &record))
        return false;
    *ret =
        (struct held){.present = record.kind == RECORD_PUT,
                      .item = record.item,
                      .index = record.version.seq,
                      .origin = strong_member_of(&strong->table->d.strong, record.version.origin)};
    return true;
}

static void evaluate_now(struct region *region, struct strong *strong,
                         struct strong_evaluation *evaluation, const struct strong_image *image)
{
    struct held held;
    if (hold(strong, image, evaluation->lane, &held))
        judge(region, strong, evaluation, &held);
    else
        answer_tag(region, strong, evaluation->id, STRONG_ANSWER_REFUSED, BYTES_NONE);
    free_evaluation(region, evaluation);
}

static void evaluate_begin(struct region *region, struct strong *strong,
                           struct strong_evaluation *evaluation)
{
    struct bytes key;
    bool fits =
        op_wire_key(bytes_make(evaluation->operation, evaluation->operation_len), &key) &&
        key.len >= KEYSPACE_ROW_KEY_MIN && key.len <= KEYSPACE_ROW_KEY_MAX &&
        key_partition(key, strong->table->d.table.partition_count) == strong->partition->index;
    if (!fits) {
        answer_tag(region, strong, evaluation->id, STRONG_ANSWER_REFUSED, BYTES_NONE);
        free_evaluation(region, evaluation);
        return;
    }
    const struct strong_image *image =
        planted(PLANT_EVALUATE_ON_LANE) ? NULL : find_image(strong, key);
    if (image) {
        evaluate_now(region, strong, evaluation, image);
        return;
    }
    evaluation->lane = lane_get(region, strong->table, key);
    lane_pin(evaluation->lane);
    lane_wait(region, evaluation->lane, &evaluation->wait);
}

void strong_evaluation_known(struct region *region, struct strong_evaluation *evaluation,
                             bool broken)
{
    struct strong *strong = evaluation->wait.owner;
    if (broken) {
        answer_tag(region, strong, evaluation->id, STRONG_ANSWER_REFUSED, BYTES_NONE);
        free_evaluation(region, evaluation);
        return;
    }
    /* One that came before may have been evaluated in the same moment. */
    struct bytes key = lane_key(evaluation->lane);
    evaluate_now(region, strong, evaluation,
                 planted(PLANT_EVALUATE_ON_LANE) ? NULL : find_image(strong, key));
}

static void seal(struct region *region, struct strong *strong, uint64_t id, struct bytes operation)
{
    uint16_t dissolver;
    const struct strong_setup *setup = &strong->table->d.strong;
    if (!bytes_take_be16(&operation, &dissolver) || operation.len > 0 ||
        strong_member_of(setup, dissolver) == CONSENSUS_NOBODY || strong->sealing ||
        strong->partition->meta.sealed) {
        answer_tag(region, strong, id, STRONG_ANSWER_SEALED, BYTES_NONE);
        return;
    }
    strong->sealing = dissolver;
    struct strong_payload payload = {.kind = STRONG_SEAL, .dissolver = dissolver};
    struct buf *bytes = &region->strong->payload;
    buf_reset(bytes);
    strong_payload_encode(&payload, bytes);
    answer(region, strong, id, CONSENSUS_EVALUATED_WRITE, buf_view(bytes));
}

/* What was evaluated while another reign began, or none, is void. A reign may have begun in the
 * same step as its first EVALUATE, which then comes before ROLE_CHANGED. */
static void follow_reign(struct region *region, struct strong *strong,
                         const struct consensus_status *status)
{
    if (!(strong->serving && status->serving && strong->serving_term == status->term))
        strong_evaluations_drop(region, strong);
    strong->serving = status->serving;
    strong->serving_term = status->term;
}

void strong_evaluate(struct region *region, struct strong *strong,
                     const struct consensus_effect *effect)
{
    struct consensus_status status = consensus_status(strong->core);
    follow_reign(region, strong, &status);
    struct bytes operation = effect->bytes;
    uint8_t proposal = 0;
    bytes_take_u8(&operation, &proposal);
    if (proposal == STRONG_PROPOSAL_SEAL) {
        seal(region, strong, effect->id, operation);
        return;
    }
    if (proposal != STRONG_PROPOSAL_WRITE) {
        answer_tag(region, strong, effect->id, STRONG_ANSWER_REFUSED, BYTES_NONE);
        return;
    }
    struct strong_evaluation *evaluation = xmalloc(sizeof(*evaluation) + operation.len);
    *evaluation = (struct strong_evaluation){.id = effect->id,
                                             .origin = effect->origin,
                                             .origin_applied = effect->index,
                                             .operation_len = operation.len};
    evaluation->wait =
        (struct wait){.kind = WAIT_STRONG, .index = STRONG_WAIT_EVALUATION, .owner = strong};
    list_init(&evaluation->wait.link);
    if (operation.len > 0)
        memcpy(evaluation->operation, operation.at, operation.len);
    list_append(&strong->evaluations, &evaluation->link);
    if (strong->behind == STRONG_UP_TO_DATE)
        evaluate_begin(region, strong, evaluation);
}

/* The items have all they should again. */
void strong_evaluations_wake(struct region *region, struct strong *strong)
{
    list_each(link, spare, &strong->evaluations)
    {
        struct strong_evaluation *evaluation = container_of(link, struct strong_evaluation, link);
        if (!evaluation->lane)
            evaluate_begin(region, strong, evaluation);
    }
}

void strong_evaluations_drop(struct region *region, struct strong *strong)
{
    list_each(link, spare, &strong->evaluations)
    {
        free_evaluation(region, container_of(link, struct strong_evaluation, link));
    }
    struct strong_image *image, *next;
    HASH_ITER(hh, strong->images, image, next)
    {
        free_image(strong, image);
    }
    strong->sealing = 0;
}

void strong_role(struct region *region, struct strong *strong)
{
    struct consensus_status status = consensus_status(strong->core);
    follow_reign(region, strong, &status);
    trace_emit(
        &region->config.trace, TRACE_INFO,
        "strong: table=%s partition=%u term=%llu leader=%s standing=%d",
        strong->table->d.table.name, strong->partition->index, (unsigned long long)status.term,
        status.leader == CONSENSUS_NOBODY ? "none"
                                          : region_id_name(strong_region_of(strong, status.leader)),
        (int)status.standing);
}
