/* SPDX-License-Identifier: Apache-2.0 */
/* The store in memory: a skip list (Pugh 1990), ordered by key, with a link back on the bottom
 * level for reading downwards. Heights come from a generator of its own with a fixed seed, so that
 * equal histories build equal lists. */

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/base/rng.h"
#include "region/core/store.h"

enum { HEIGHT_MAX = 20 };

struct node {
    struct bytes key;    /* owned, behind next[] */
    struct bytes value;  /* owned */
    struct node *before; /* on the bottom level; NULL: the first */
    uint32_t height;
    struct node *next[];
};

struct store_mem {
    struct store store;
    struct rng rng;
    struct node *head; /* no key, full height */
    /* What the last read returned. */
    struct buf held;
    struct store_row *rows;
    uint32_t rows_cap;
};

static struct node *node_new(struct bytes key, uint32_t height)
{
    size_t links = sizeof(struct node *) * height;
    struct node *node = xmalloc(sizeof(*node) + links + key.len);
    uint8_t *copy = (uint8_t *)node->next + links;
    if (key.len > 0)
        memcpy(copy, key.at, key.len);
    *node = (struct node){.key = bytes_make(copy, key.len), .height = height};
    memset(node->next, 0, links);
    return node;
}

static void node_set_value(struct node *node, struct bytes value)
{
    uint8_t *copy = xmalloc(value.len);
    if (value.len > 0)
        memcpy(copy, value.at, value.len);
    free((void *)(uintptr_t)node->value.at);
    node->value = bytes_make(copy, value.len);
}

static void node_free(struct node *node)
{
    free((void *)(uintptr_t)node->value.at);
    free(node);
}

/* The first node whose key is not below `key`; on every level the last node before it, if asked. */
static struct node *seek(struct store_mem *mem, struct bytes key, struct node *ret_path[HEIGHT_MAX])
{
    struct node *at = mem->head;
    for (uint32_t level = HEIGHT_MAX; level-- > 0;) {
        while (at->next[level] && bytes_compare(at->next[level]->key, key) < 0)
            at = at->next[level];
        if (ret_path)
            ret_path[level] = at;
    }
    return at->next[0];
}

static uint32_t draw_height(struct store_mem *mem)
{
    uint64_t bits = rng_next(&mem->rng);
    uint32_t height = 1;
    while (height < HEIGHT_MAX && (bits & 3) == 0) {
        height++;
        bits >>= 2;
    }
    return height;
}

static void put(struct store_mem *mem, struct bytes key, struct bytes value)
{
    struct node *path[HEIGHT_MAX];
    struct node *node = seek(mem, key, path);
    if (!node || !bytes_equal(node->key, key)) {
        struct node *after = node;
        node = node_new(key, draw_height(mem));
        for (uint32_t level = 0; level < node->height; level++) {
            node->next[level] = path[level]->next[level];
            path[level]->next[level] = node;
        }
        node->before = path[0] == mem->head ? NULL : path[0];
        if (after)
            after->before = node;
    }
    node_set_value(node, value);
}

static void remove_key(struct store_mem *mem, struct bytes key)
{
    struct node *path[HEIGHT_MAX];
    struct node *node = seek(mem, key, path);
    if (!node || !bytes_equal(node->key, key))
        return;
    for (uint32_t level = 0; level < node->height; level++)
        path[level]->next[level] = node->next[level];
    if (node->next[0])
        node->next[0]->before = node->before;
    node_free(node);
}

static enum store_outcome mem_write(struct store *store, struct bytes batch, bool sync)
{
    struct store_mem *mem = container_of(store, struct store_mem, store);
    (void)sync;
    enum store_operation operation;
    struct bytes key, value;
    while (store_batch_take(&batch, &operation, &key, &value)) {
        if (operation != STORE_DELETE)
            put(mem, key, value);
        else
            remove_key(mem, key);
    }
    return STORE_OK;
}

/* Rows first hold offsets into `held`, which moves while it grows. */
static void hold(struct store_mem *mem, uint32_t index, const struct node *node)
{
    if (index == mem->rows_cap) {
        mem->rows_cap = mem->rows_cap ? mem->rows_cap * 2 : 16;
        mem->rows = xrealloc(mem->rows, sizeof(*mem->rows) * mem->rows_cap);
    }
    buf_append_bytes(&mem->held, node->key);
    buf_append_bytes(&mem->held, node->value);
    mem->rows[index] = (struct store_row){{NULL, node->key.len}, {NULL, node->value.len}};
}

static void settle(struct store_mem *mem, uint32_t count)
{
    size_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct store_row *row = &mem->rows[i];
        row->key.at = mem->held.at + at;
        row->value.at = mem->held.at + at + row->key.len;
        at += row->key.len + row->value.len;
    }
    check(at == mem->held.len);
}

static struct node *last_below(struct store_mem *mem, struct bytes end)
{
    struct node *path[HEIGHT_MAX];
    seek(mem, end, path);
    return path[0] == mem->head ? NULL : path[0];
}

static bool in_range(const struct node *node, const struct store_read *read)
{
    if (!node)
        return false;
    return read->reverse ? bytes_compare(node->key, read->begin) >= 0
                         : bytes_compare(node->key, read->end) < 0;
}

static enum store_outcome mem_read(struct store *store, const struct store_read *read,
                                   struct store_rows *ret)
{
    struct store_mem *mem = container_of(store, struct store_mem, store);
    buf_reset(&mem->held);
    uint32_t count = 0;
    bool more = false;
    if (!read->range) {
        struct node *node = seek(mem, read->begin, NULL);
        if (node && bytes_equal(node->key, read->begin))
            hold(mem, count++, node);
    } else {
        check(read->rows_max > 0);
        check(read->bytes_max > 0);
        struct node *node =
            read->reverse ? last_below(mem, read->end) : seek(mem, read->begin, NULL);
        while (in_range(node, read)) {
            if (count == read->rows_max || mem->held.len >= read->bytes_max) {
                more = true;
                break;
            }
            hold(mem, count++, node);
            node = read->reverse ? node->before : node->next[0];
        }
    }
    settle(mem, count);
    *ret = (struct store_rows){.at = mem->rows, .count = count, .more = more};
    return STORE_OK;
}

static void mem_free(struct store *store)
{
    struct store_mem *mem = container_of(store, struct store_mem, store);
    struct node *node = mem->head;
    while (node) {
        struct node *next = node->next[0];
        node_free(node);
        node = next;
    }
    buf_deinit(&mem->held);
    free(mem->rows);
    free(mem);
}

static const struct store_ops mem_ops = {.read = mem_read, .write = mem_write, .free = mem_free};

struct store *store_mem_new(void)
{
    struct store_mem *mem = xcalloc(1, sizeof(*mem));
    mem->store.ops = &mem_ops;
    rng_init(&mem->rng, 1);
    mem->head = node_new(BYTES_NONE, HEIGHT_MAX);
    buf_init(&mem->held);
    return &mem->store;
}
