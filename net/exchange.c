/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges and blocks, recycled; see exchange.h. */

#include "net/exchange.h"

#include <string.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"

static const struct lifecycle_state exchange_states[] = {
    [EXCHANGE_RECEIVING] = {"receiving",
                            lifecycle_bit(EXCHANGE_HANDED) | lifecycle_bit(EXCHANGE_ANSWERED)},
    [EXCHANGE_HANDED] = {"handed", lifecycle_bit(EXCHANGE_ANSWERED)},
    [EXCHANGE_ANSWERED] = {"answered", 0},
};
static const struct lifecycle_table exchange_table = {"exchange", exchange_states,
                                                      array_len(exchange_states)};

void pool_init(struct pool *pool, uint64_t charge_max)
{
    *pool = (struct pool){.charge_max = charge_max, .date_s = UINT64_MAX};
    list_init(&pool->blocks);
    list_init(&pool->exchanges);
    pool_set_time(pool, 0);
}

static void exchange_free(struct exchange *exchange)
{
    head_deinit(&exchange->head);
    buf_deinit(&exchange->body);
    buf_deinit(&exchange->answer);
    free(exchange);
}

void pool_deinit(struct pool *pool)
{
    struct list *link;
    while ((link = list_take(&pool->blocks)) != NULL)
        free(container_of(link, struct block, link));
    while ((link = list_take(&pool->exchanges)) != NULL)
        exchange_free(container_of(link, struct exchange, link));
    check(pool->charged == 0);
}

void pool_set_time(struct pool *pool, uint64_t wall_ms)
{
    if (pool->date_s == wall_ms / 1000)
        return;
    pool->date_s = wall_ms / 1000;
    http_date(wall_ms, pool->date);
}

bool pool_charge(struct pool *pool, uint64_t bytes)
{
    if (bytes > pool->charge_max - pool->charged)
        return false;
    pool->charged += bytes;
    return true;
}

void pool_discharge(struct pool *pool, uint64_t bytes)
{
    check(bytes <= pool->charged);
    pool->charged -= bytes;
}

struct block *pool_take_block(struct pool *pool, size_t cap)
{
    struct block *block;
    struct list *spare = cap <= BLOCK_BYTES ? list_take(&pool->blocks) : NULL;
    if (spare) {
        block = container_of(spare, struct block, link);
        pool->block_count--;
    } else {
        if (cap <= BLOCK_BYTES)
            cap = BLOCK_BYTES;
        else if (!pool_charge(pool, cap))
            return NULL;
        block = xmalloc(sizeof(*block) + cap);
        block->cap = cap;
        list_init(&block->link);
    }
    block->refs = 1;
    block->len = 0;
    return block;
}

struct block *block_ref(struct block *block)
{
    check(block->refs > 0);
    block->refs++;
    return block;
}

struct block *block_unref(struct pool *pool, struct block *block)
{
    if (!block)
        return NULL;
    check(block->refs > 0);
    if (--block->refs > 0)
        return NULL;
    if (block->cap == BLOCK_BYTES && pool->block_count < POOL_BLOCKS_MAX) {
        /* Last in, first out: the next reader finds it in the cache. */
        list_append(pool->blocks.next, &block->link);
        pool->block_count++;
        return NULL;
    }
    if (block->cap > BLOCK_BYTES)
        pool_discharge(pool, block->cap);
    free(block);
    return NULL;
}

struct exchange *exchange_take(struct http_host *host)
{
    struct pool *pool = host->pool;
    struct exchange *exchange;
    struct list *spare = list_take(&pool->exchanges);
    if (spare) {
        exchange = container_of(spare, struct exchange, link);
        pool->exchange_count--;
    } else {
        exchange = xcalloc(1, sizeof(*exchange));
        list_init(&exchange->link);
    }
    lifecycle_init(&exchange->life, &exchange_table, NULL);
    exchange->host = host;
    host->exchanges++;
    return exchange;
}

/* Keeps the memory of the parts, clears all else. */
static void exchange_clear(struct exchange *exchange)
{
    struct head head = exchange->head;
    struct buf body = exchange->body, answer = exchange->answer;
    head_reset(&head);
    buf_reset(&body);
    buf_reset(&answer);
    if (body.cap > BLOCK_BYTES)
        buf_deinit(&body);
    if (answer.cap > BLOCK_BYTES)
        buf_deinit(&answer);
    *exchange = (struct exchange){.head = head, .body = body, .answer = answer};
    list_init(&exchange->link);
}

void exchange_release(struct exchange *exchange)
{
    struct http_host *host = exchange->host;
    struct pool *pool = host->pool;
    check(exchange->life.state != EXCHANGE_HANDED);
    list_remove(&exchange->link);
    exchange->block = block_unref(pool, exchange->block);
    pool_discharge(pool, exchange->body_charged);
    exchange_clear(exchange);
    if (pool->exchange_count < POOL_EXCHANGES_MAX) {
        list_append(pool->exchanges.next, &exchange->link);
        pool->exchange_count++;
    } else {
        exchange_free(exchange);
    }
    check(host->exchanges > 0);
    host->exchanges--;
    host->released(host);
}

void exchange_lose(struct exchange *exchange)
{
    exchange->h1 = NULL;
    exchange->stream = NULL;
    list_remove(&exchange->link);
    if (exchange->life.state != EXCHANGE_HANDED)
        exchange_release(exchange);
}

/* Makes the pool pay for memory that the body's buffer has or is about to have. */
static bool charge_body(struct exchange *exchange, uint64_t bytes)
{
    if (bytes <= exchange->body_charged)
        return true;
    if (!pool_charge(exchange->host->pool, bytes - exchange->body_charged))
        return false;
    exchange->body_charged = bytes;
    return true;
}

enum exchange_body exchange_append_body(struct exchange *exchange, struct bytes piece)
{
    uint64_t len = exchange->body.len + piece.len;
    if (len > exchange->host->limits->body_bytes_max)
        return EXCHANGE_BODY_TOO_LONG;
    /* Growth doubles, so twice the length bounds the memory. */
    if (len > BLOCK_BYTES && !charge_body(exchange, len * 2))
        return EXCHANGE_BODY_NO_ROOM;
    buf_append_bytes(&exchange->body, piece);
    return EXCHANGE_BODY_READY;
}

static enum exchange_body inflate_body(struct exchange *exchange)
{
    size_t len_max = (size_t)exchange->host->limits->body_bytes_max;
    struct pool *pool = exchange->host->pool;
    struct buf inflated;
    buf_init(&inflated);
    enum http_inflate_outcome outcome = http_inflate(exchange->request.body, len_max, &inflated);
    if (outcome != HTTP_INFLATED) {
        buf_deinit(&inflated);
        return outcome == HTTP_INFLATE_TOO_LONG ? EXCHANGE_BODY_TOO_LONG : EXCHANGE_BODY_BROKEN;
    }
    buf_deinit(&exchange->body);
    pool_discharge(pool, exchange->body_charged);
    exchange->body_charged = 0;
    exchange->body = inflated;
    exchange->request.body = buf_view(&exchange->body);
    if (inflated.cap > 4 * BLOCK_BYTES && !charge_body(exchange, inflated.cap))
        return EXCHANGE_BODY_NO_ROOM;
    return EXCHANGE_BODY_READY;
}

enum exchange_body exchange_decode_body(struct exchange *exchange)
{
    struct bytes encoding = BYTES_NONE;
    for (uint32_t i = 0; i < exchange->request.header_count; i++) {
        const struct http_header *header = &exchange->request.headers[i];
        if (header->name.len != 16 || memcmp(header->name.at, "content-encoding", 16) != 0)
            continue;
        if (encoding.len) /* one over another: nobody sends that, and it multiplies the bomb */
            return EXCHANGE_BODY_BROKEN;
        encoding = header->value;
    }
    if (encoding.len == 0 || exchange->request.body.len == 0)
        return EXCHANGE_BODY_READY;
    if (http_equal_nocase(encoding, "gzip") || http_equal_nocase(encoding, "x-gzip") ||
        http_equal_nocase(encoding, "deflate"))
        return inflate_body(exchange);
    return EXCHANGE_BODY_READY;
}

int exchange_body_status(enum exchange_body outcome)
{
    switch (outcome) {
    case EXCHANGE_BODY_READY:
        return 0;
    case EXCHANGE_BODY_BROKEN:
        return 400;
    case EXCHANGE_BODY_TOO_LONG:
        return 413;
    case EXCHANGE_BODY_NO_ROOM:
        return 503;
    }
    unreachable();
}
