/* SPDX-License-Identifier: Apache-2.0 */
/* Each kind of toxic is a rule for entering its stage: it stamps, cuts, drops or marks. Leaving is
 * the same for all: the head of the queue leaves when its time has come, and stamps in one stage
 * never decrease, so the head is always the next. */

#include "chaos/live/chain.h"

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

enum {
    /* Without a delay, what a chain holds is only what the receiver is behind. */
    CHAIN_HELD_MAX = 256 * 1024,
    /* With one, the line must hold bandwidth times delay: 16 MB/s at two seconds. */
    CHAIN_HELD_DELAYED_MAX = 32 * 1024 * 1024,
    BANDWIDTH_PIECE_MS = 20,
    SLICES_MAX = 4096, /* of one read; what remains goes as one */
};
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_US UINT64_C(1000)

struct stage {
    struct list link;
    const struct toxic *toxic;
    bool applies;
    bool ended; /* lets nothing in any more */
    struct list queue;
    uint64_t free_ns;     /* no segment may leave before the one ahead of it */
    uint64_t expires_ns;  /* timeout, reset_peer: when it strikes; UINT64_MAX: never */
    uint64_t let_through; /* limit_data: bytes so far */
};

static uint64_t max64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void chain_init(struct chain *chain, struct rng *rng)
{
    *chain = (struct chain){.rng = rng};
    list_init(&chain->stages);
    list_init(&chain->out);
}

static struct segment *segment_new(struct chain *chain, enum segment_kind kind, struct bytes data)
{
    check(data.len <= UINT32_MAX);
    struct segment *segment = xmalloc(sizeof(*segment) + data.len);
    list_init(&segment->link);
    segment->arrived_ns = segment->due_ns = 0;
    segment->kind = kind;
    segment->len = (uint32_t)data.len;
    if (data.len > 0)
        memcpy(segment->data, data.at, data.len);
    chain->held += sizeof(*segment) + data.len;
    chain->data += data.len;
    return segment;
}

void chain_give_back(struct chain *chain, struct segment *segment)
{
    check(chain->held >= sizeof(*segment) + segment->len);
    chain->held -= sizeof(*segment) + segment->len;
    chain->data -= segment->len;
    list_remove(&segment->link);
    free(segment);
}

static void drop(struct chain *chain, struct segment *segment)
{
    chain->dropped += segment->len;
    chain_give_back(chain, segment);
}

static void empty(struct chain *chain, struct list *queue)
{
    for (struct list *link; (link = list_take(queue)) != NULL;)
        chain_give_back(chain, container_of(link, struct segment, link));
}

void chain_deinit(struct chain *chain)
{
    for (struct list *link; (link = list_take(&chain->stages)) != NULL;) {
        struct stage *stage = container_of(link, struct stage, link);
        empty(chain, &stage->queue);
        free(stage);
    }
    empty(chain, &chain->out);
}

/* ---- Entering a stage ---- */

static void stamp(struct stage *stage, struct segment *segment, uint64_t due_ns)
{
    stage->free_ns = segment->due_ns = max64(due_ns, stage->free_ns);
    list_append(&stage->queue, &segment->link);
}

static uint64_t draw_delay_ns(struct chain *chain, const struct toxic *toxic)
{
    uint64_t latency_ns = (uint64_t)toxic->value[TOXIC_LATENCY_MS] * NS_PER_MS;
    uint64_t jitter_ns = (uint64_t)toxic->value[TOXIC_JITTER_MS] * NS_PER_MS;
    return delay_draw(chain->rng, toxic->distribution,
                      latency_ns + toxic->rest_ns[TOXIC_LATENCY_MS],
                      jitter_ns + toxic->rest_ns[TOXIC_JITTER_MS]);
}

/* Cuts `len` bytes off the front as a segment of their own. */
static struct segment *split(struct chain *chain, struct segment *segment, uint32_t at,
                             uint32_t len)
{
    struct segment *piece = segment_new(chain, SEGMENT_DATA, bytes_make(segment->data + at, len));
    piece->arrived_ns = segment->arrived_ns;
    return piece;
}

/* A piece leaves when its last byte would have come over a wire of that rate. */
static void enter_bandwidth(struct chain *chain, struct stage *stage, struct segment *segment,
                            uint64_t now_ns)
{
    uint64_t bytes_per_ms = (uint64_t)stage->toxic->value[0];
    if (bytes_per_ms == 0) { /* no limit, as in Toxiproxy */
        stamp(stage, segment, now_ns);
        return;
    }
    uint64_t piece_max = bytes_per_ms * BANDWIDTH_PIECE_MS;
    stage->free_ns = max64(stage->free_ns, now_ns);
    uint32_t at = 0;
    while (segment->len - at > piece_max) {
        struct segment *piece = split(chain, segment, at, (uint32_t)piece_max);
        stamp(stage, piece, stage->free_ns + BANDWIDTH_PIECE_MS * NS_PER_MS);
        at += (uint32_t)piece_max;
    }
    if (at > 0) {
        struct segment *rest = split(chain, segment, at, segment->len - at);
        chain_give_back(chain, segment);
        segment = rest;
    }
    stamp(stage, segment, stage->free_ns + segment->len * NS_PER_MS / bytes_per_ms);
}

static void enter_slicer(struct chain *chain, struct stage *stage, struct segment *segment,
                         uint64_t now_ns)
{
    uint64_t average = (uint64_t)stage->toxic->value[TOXIC_AVERAGE_SIZE];
    uint64_t variation = (uint64_t)stage->toxic->value[TOXIC_SIZE_VARIATION];
    uint64_t delay_ns = (uint64_t)stage->toxic->value[TOXIC_SLICE_DELAY_US] * NS_PER_US;
    uint64_t due_ns = max64(stage->free_ns, now_ns);
    uint32_t at = 0;
    for (int i = 0; i < SLICES_MAX && average > 0; i++) {
        uint64_t len = average - variation + rng_between(chain->rng, 0, 2 * variation);
        len = max64(len, 1);
        if (segment->len - at <= len)
            break;
        stamp(stage, split(chain, segment, at, (uint32_t)len), due_ns);
        due_ns += delay_ns;
        at += (uint32_t)len;
    }
    if (at > 0) {
        struct segment *rest = split(chain, segment, at, segment->len - at);
        chain_give_back(chain, segment);
        segment = rest;
    }
    stamp(stage, segment, due_ns);
    stage->free_ns = due_ns + delay_ns;
}

static void end(struct chain *chain, struct stage *stage, uint64_t now_ns)
{
    stage->ended = true;
    stamp(stage, segment_new(chain, SEGMENT_CLOSE, BYTES_NONE), now_ns);
}

static void enter_limit(struct chain *chain, struct stage *stage, struct segment *segment,
                        uint64_t now_ns)
{
    uint64_t limit = (uint64_t)stage->toxic->value[0];
    uint64_t left = limit > stage->let_through ? limit - stage->let_through : 0;
    if (segment->kind != SEGMENT_DATA) {
        stamp(stage, segment, now_ns);
        return;
    }
    if (segment->len > left) {
        if (left > 0)
            stamp(stage, split(chain, segment, 0, (uint32_t)left), now_ns);
        chain->dropped += segment->len - left;
        chain_give_back(chain, segment);
        stage->let_through = limit;
        end(chain, stage, now_ns);
        return;
    }
    stage->let_through += segment->len;
    stamp(stage, segment, now_ns);
    if (stage->let_through == limit)
        end(chain, stage, now_ns);
}

static void enter(struct chain *chain, struct stage *stage, struct segment *segment,
                  uint64_t now_ns)
{
    const struct toxic *toxic = stage->toxic;
    if (stage->ended) {
        drop(chain, segment);
        return;
    }
    if (!stage->applies) {
        stamp(stage, segment, now_ns);
        return;
    }
    bool data = segment->kind == SEGMENT_DATA;
    switch (toxic->type) {
    case TOXIC_LATENCY:
        stamp(stage, segment, segment->arrived_ns + draw_delay_ns(chain, toxic));
        return;
    case TOXIC_BANDWIDTH:
        if (data)
            enter_bandwidth(chain, stage, segment, now_ns);
        else
            stamp(stage, segment, now_ns);
        return;
    case TOXIC_SLICER:
        if (data)
            enter_slicer(chain, stage, segment, now_ns);
        else
            stamp(stage, segment, now_ns);
        return;
    case TOXIC_SLOW_CLOSE:
        stamp(stage, segment,
              data ? now_ns : segment->arrived_ns + (uint64_t)toxic->value[0] * NS_PER_MS);
        return;
    case TOXIC_LIMIT_DATA:
        enter_limit(chain, stage, segment, now_ns);
        return;
    case TOXIC_RESET_PEER:
        if (stage->expires_ns == UINT64_MAX)
            stage->expires_ns = now_ns + (uint64_t)toxic->value[0] * NS_PER_MS;
        drop(chain, segment);
        return;
    case TOXIC_TIMEOUT:
        drop(chain, segment);
        return;
    case TOXIC_NOOP:
        stamp(stage, segment, now_ns);
        return;
    case TOXIC_HOLD:
        stamp(stage, segment, UINT64_MAX);
        return;
    case TOXIC_TYPE_COUNT:
        break;
    }
    unreachable();
}

/* Hands a segment to the stage at `link`, or to out when that is the end of the row. */
static void hand_on(struct chain *chain, struct list *link, struct segment *segment,
                    uint64_t now_ns)
{
    segment->arrived_ns = now_ns;
    if (link == &chain->stages)
        list_append(&chain->out, &segment->link);
    else
        enter(chain, container_of(link, struct stage, link), segment, now_ns);
}

void chain_push(struct chain *chain, struct bytes data, uint64_t now_ns)
{
    if (data.len > 0)
        hand_on(chain, chain->stages.next, segment_new(chain, SEGMENT_DATA, data), now_ns);
}

void chain_push_end(struct chain *chain, uint64_t now_ns)
{
    hand_on(chain, chain->stages.next, segment_new(chain, SEGMENT_EOF, BYTES_NONE), now_ns);
}

/* ---- Leaving a stage ---- */

static void pump_stage(struct chain *chain, struct stage *stage, uint64_t now_ns)
{
    if (stage->expires_ns <= now_ns) {
        stage->expires_ns = UINT64_MAX;
        if (stage->toxic->type == TOXIC_RESET_PEER)
            chain->reset = true;
        else
            end(chain, stage, now_ns);
    }
    while (!list_empty(&stage->queue)) {
        struct segment *head = container_of(stage->queue.next, struct segment, link);
        if (head->due_ns > now_ns)
            break;
        list_remove(&head->link);
        hand_on(chain, stage->link.next, head, now_ns);
    }
}

void chain_pump(struct chain *chain, uint64_t now_ns)
{
    list_each(link, spare, &chain->stages)
        pump_stage(chain, container_of(link, struct stage, link), now_ns);
}

uint64_t chain_deadline(const struct chain *chain)
{
    uint64_t soonest = UINT64_MAX;
    list_each(link, spare, &chain->stages)
    {
        const struct stage *stage = container_of(link, struct stage, link);
        if (stage->expires_ns < soonest)
            soonest = stage->expires_ns;
        if (list_empty(&stage->queue))
            continue;
        const struct segment *head = container_of(stage->queue.next, struct segment, link);
        if (head->due_ns < soonest)
            soonest = head->due_ns;
    }
    return soonest;
}

/* ---- Toxics come, change and go ---- */

static void start(struct chain *chain, struct stage *stage, uint64_t now_ns)
{
    const struct toxic *toxic = stage->toxic;
    stage->applies = rng_unit(chain->rng) < toxic->toxicity;
    stage->free_ns = 0;
    stage->expires_ns = UINT64_MAX;
    if (stage->applies && toxic->type == TOXIC_TIMEOUT && toxic->value[0] > 0)
        stage->expires_ns = now_ns + (uint64_t)toxic->value[0] * NS_PER_MS;
}

static struct stage *stage_get(struct chain *chain, const struct toxic *toxic)
{
    list_each(link, spare, &chain->stages)
    {
        struct stage *stage = container_of(link, struct stage, link);
        if (stage->toxic == toxic)
            return stage;
    }
    unreachable();
}

void chain_add(struct chain *chain, const struct toxic *toxic, uint64_t now_ns)
{
    struct stage *stage = xcalloc(1, sizeof(*stage));
    stage->toxic = toxic;
    list_init(&stage->queue);
    list_append(&chain->stages, &stage->link);
    start(chain, stage, now_ns);
}

void chain_update(struct chain *chain, const struct toxic *toxic, uint64_t now_ns)
{
    struct stage *stage = stage_get(chain, toxic);
    struct list waiting;
    list_init(&waiting);
    list_append_all(&waiting, &stage->queue);
    start(chain, stage, now_ns);
    /* What has been counted against a limit before is not counted twice: it only waits to leave. */
    bool counted = toxic->type == TOXIC_LIMIT_DATA;
    for (struct list *link; (link = list_take(&waiting)) != NULL;) {
        struct segment *segment = container_of(link, struct segment, link);
        if (counted || segment->kind == SEGMENT_CLOSE)
            stamp(stage, segment, now_ns);
        else
            enter(chain, stage, segment, now_ns);
    }
    chain_pump(chain, now_ns);
}

void chain_remove(struct chain *chain, const struct toxic *toxic, uint64_t now_ns)
{
    struct stage *stage = stage_get(chain, toxic);
    struct list *next = stage->link.next;
    for (struct list *link; (link = list_take(&stage->queue)) != NULL;)
        hand_on(chain, next, container_of(link, struct segment, link), now_ns);
    if (stage->applies && !stage->ended && toxic->type == TOXIC_TIMEOUT)
        hand_on(chain, next, segment_new(chain, SEGMENT_CLOSE, BYTES_NONE), now_ns);
    list_remove(&stage->link);
    free(stage);
    chain_pump(chain, now_ns);
}

bool chain_clear(const struct chain *chain)
{
    if (chain->held > 0)
        return false;
    list_each(link, spare, &chain->stages)
    {
        const struct stage *stage = container_of(link, struct stage, link);
        if (stage->applies || stage->ended)
            return false;
    }
    return true;
}

struct segment *chain_take(struct chain *chain)
{
    struct list *link = list_take(&chain->out);
    return link == NULL ? NULL : container_of(link, struct segment, link);
}

bool chain_full(const struct chain *chain)
{
    uint64_t limit = CHAIN_HELD_MAX;
    list_each(link, spare, &chain->stages)
    {
        const struct stage *stage = container_of(link, struct stage, link);
        if (stage->applies && stage->toxic->type == TOXIC_LATENCY)
            limit = CHAIN_HELD_DELAYED_MAX;
    }
    return chain->held >= limit;
}
