/* SPDX-License-Identifier: Apache-2.0 */
/* One round: what the storage thread finished and what the network brought is taken in the order in
 * which it came, up to a bound, so that the sockets are served in between. A read is answered in
 * the round that asked for it. The core's output is borrowed until its next step, so reads are
 * first copied out, then done one by one: each is followed by its own step, as the rows it returns
 * live only until the next read. */

#include "region/driver.h"

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "region/storage.h"

/* Whichever comes first ends a round: what is large to read is large to answer. */
enum { STEPS_PER_ROUND_MAX = 1024, READ_BYTES_PER_ROUND_MAX = 4 << 20 };
enum { ROUNDS_HELD_MAX = 16 };

struct queued_input {
    struct region_input in;
    uint64_t tag;
    uint8_t *owned; /* what in.bytes views; NULL when empty */
};

struct queued_read {
    uint64_t id;
    struct store_read read;
    struct buf keys; /* what read.begin and read.end view; kept when the slot is used again */
};

/* Both queues are rings whose capacity is a power of two and grows: what limits them are the limits
 * on connections, streams and operations in flight. */
struct driver {
    struct driver_config config;
    struct region *core;
    struct storage *storage;

    bool ready;
    uint32_t rounds_held;      /* since batches wait for others to join them */
    struct queued_input *held; /* what peers sent before: the core would refuse it */
    uint32_t held_cap, held_count;
    struct queued_input *inputs;
    uint32_t inputs_cap, inputs_first, input_count;
    struct queued_read *reads;
    uint32_t reads_cap, reads_first, read_count;
};

/* ---- Queues ---- */

/* A ring of twice the size, its elements moved to the front. */
static void *ring_grow(void *ring, size_t element, uint32_t cap, uint32_t first)
{
    char *grown = xcalloc((size_t)cap * 2, element);
    size_t tail = (size_t)(cap - first) * element;
    memcpy(grown, (char *)ring + (size_t)first * element, tail);
    memcpy(grown + tail, ring, (size_t)first * element);
    free(ring);
    return grown;
}

static struct queued_input *input_append(struct driver *driver)
{
    if (driver->input_count == driver->inputs_cap) {
        driver->inputs = ring_grow(driver->inputs, sizeof(*driver->inputs), driver->inputs_cap,
                                   driver->inputs_first);
        driver->inputs_first = 0;
        driver->inputs_cap *= 2;
    }
    uint32_t slot = (driver->inputs_first + driver->input_count++) & (driver->inputs_cap - 1);
    return &driver->inputs[slot];
}

static struct queued_read *read_append(struct driver *driver)
{
    if (driver->read_count == driver->reads_cap) {
        driver->reads = ring_grow(driver->reads, sizeof(*driver->reads), driver->reads_cap,
                                  driver->reads_first);
        driver->reads_first = 0;
        driver->reads_cap *= 2;
    }
    uint32_t slot = (driver->reads_first + driver->read_count++) & (driver->reads_cap - 1);
    return &driver->reads[slot];
}

static struct queued_input *held_append(struct driver *driver)
{
    if (driver->held_count == driver->held_cap) {
        driver->held_cap = driver->held_cap ? driver->held_cap * 2 : 16;
        driver->held = xrealloc(driver->held, driver->held_cap * sizeof(*driver->held));
    }
    return &driver->held[driver->held_count++];
}

static bool comes_from_peer(enum region_input_kind kind)
{
    return kind == REGION_PEER_UP || kind == REGION_PEER_DOWN || kind == REGION_PEER_FRAME ||
           kind == REGION_CALL;
}

void driver_push(struct driver *driver, const struct region_input *in, uint64_t tag)
{
    bool hold = !driver->ready && comes_from_peer(in->kind);
    struct queued_input *queued = hold ? held_append(driver) : input_append(driver);
    *queued = (struct queued_input){.in = *in, .tag = tag};
    if (in->bytes.len > 0) {
        queued->owned = xmalloc(in->bytes.len);
        memcpy(queued->owned, in->bytes.at, in->bytes.len);
        queued->in.bytes.at = queued->owned;
    }
}

static void release_held(struct driver *driver)
{
    driver->ready = true;
    for (uint32_t i = 0; i < driver->held_count; i++)
        *input_append(driver) = driver->held[i];
    driver->held_count = 0;
    free(steal(&driver->held));
}

static void queue_read(struct driver *driver, const struct region_effect *effect)
{
    struct queued_read *queued = read_append(driver);
    const struct store_read *read = &effect->read;
    queued->id = effect->id;
    queued->read = *read;
    buf_reset(&queued->keys);
    buf_append_bytes(&queued->keys, read->begin);
    if (read->range)
        buf_append_bytes(&queued->keys, read->end);
    queued->read.begin.at = queued->keys.at;
    queued->read.end = BYTES_NONE;
    if (read->range && read->end.len > 0)
        queued->read.end = bytes_make(queued->keys.at + read->begin.len, read->end.len);
}

/* ---- Steps ---- */

static void perform(struct driver *driver, const struct region_effect *effect)
{
    const struct driver_events *events = &driver->config.events;
    void *context = events->context;
    switch (effect->kind) {
    case REGION_READ:
        queue_read(driver, effect);
        return;
    case REGION_PERSIST:
        storage_add(driver->storage, effect->id, effect->bytes);
        return;
    case REGION_REPLY:
        events->reply(context, effect->token, effect->op);
        return;
    case REGION_SEND:
        events->send(context, effect->peer, effect->channel, effect->bytes);
        return;
    case REGION_CLOSE:
        events->close(context, effect->peer, effect->channel, effect->reason);
        return;
    case REGION_CALL_PEER:
        events->call_peer(context, effect->peer, effect->id, effect->bytes);
        return;
    case REGION_CALL_REPLY:
        events->call_reply(context, effect->token, effect->bytes);
        return;
    case REGION_READY:
        release_held(driver);
        events->ready(context);
        return;
    }
    unreachable();
}

static void step(struct driver *driver, struct region_input *in)
{
    const struct loop *loop = driver->config.loop;
    in->mono_ns = loop->mono_ns;
    in->wall_ms = clock_wall_ms(driver->config.clock, loop->mono_ns, loop->wall_ms);
    struct region_output out;
    region_step(driver->core, in, &out);
    for (uint32_t i = 0; i < out.count; i++)
        perform(driver, &out.at[i]);
}

/* Returns how many bytes were read. */
static size_t step_read(struct driver *driver)
{
    /* The slot may be used again, and the ring moved, by reads that the step asks for. */
    struct queued_read *queued = &driver->reads[driver->reads_first];
    struct store *store = driver->config.store;
    struct store_rows rows = {0};
    struct region_input in = {.kind = REGION_READ_DONE, .id = queued->id, .rows = &rows};
    in.outcome = store->ops->read(store, &queued->read, &rows);
    driver->reads_first = (driver->reads_first + 1) & (driver->reads_cap - 1);
    driver->read_count--;
    size_t bytes = 0;
    for (uint32_t i = 0; i < rows.count; i++)
        bytes += rows.at[i].value.len;
    step(driver, &in);
    return bytes;
}

static void step_input(struct driver *driver)
{
    struct queued_input queued = driver->inputs[driver->inputs_first];
    driver->inputs_first = (driver->inputs_first + 1) & (driver->inputs_cap - 1);
    driver->input_count--;
    switch (queued.in.kind) {
    case REGION_PEER_UP:
    case REGION_PEER_DOWN:
    case REGION_PEER_FRAME:
        driver->config.events.taken(driver->config.events.context, &queued.in, queued.tag);
        break;
    case REGION_PERSIST_FAILED:
        storage_resume(driver->storage);
        break;
    case REGION_START:
    case REGION_REQUEST:
    case REGION_READ_DONE:
    case REGION_PERSISTED:
    case REGION_CALL:
    case REGION_CALL_DONE:
    case REGION_TRANSFER:
    case REGION_TIMEOUT:
        break;
    }
    step(driver, &queued.in);
    free(queued.owned);
}

/* Without fsync the way to the storage thread costs more than the write, so a group goes down only
 * when the sockets have no more to add to it: when a round that did not wait for them brought
 * nothing. Groups before an fsync grow by themselves, while the one before them is written. */
static void flush(struct driver *driver, bool busy)
{
    if (busy && !driver->config.sync && driver->rounds_held < ROUNDS_HELD_MAX &&
        storage_can_flush(driver->storage)) {
        driver->rounds_held++;
        return;
    }
    driver->rounds_held = 0;
    storage_flush(driver->storage);
}

void driver_round(struct driver *driver)
{
    uint32_t steps = 0;
    size_t read_bytes = 0;
    if (region_deadline(driver->core) <= driver->config.loop->mono_ns) {
        struct region_input timeout = {.kind = REGION_TIMEOUT};
        step(driver, &timeout);
    }
    while (steps++ < STEPS_PER_ROUND_MAX && read_bytes < READ_BYTES_PER_ROUND_MAX &&
           driver->read_count + driver->input_count > 0) {
        if (driver->read_count > 0)
            read_bytes += step_read(driver);
        else
            step_input(driver);
    }
    flush(driver, steps > 1);
}

uint64_t driver_deadline(const struct driver *driver)
{
    if (driver->read_count + driver->input_count > 0 || driver->rounds_held > 0)
        return 0;
    return region_deadline(driver->core);
}

bool driver_idle(const struct driver *driver)
{
    return driver->read_count + driver->input_count == 0 && storage_idle(driver->storage);
}

const struct region *driver_core(const struct driver *driver)
{
    return driver->core;
}

/* ---- Storage ---- */

static void on_stored(void *context, enum store_outcome outcome, uint64_t id, uint64_t bytes,
                      uint64_t ns)
{
    struct driver *driver = context;
    bool written = outcome == STORE_OK;
    metrics_group(driver->config.metrics, bytes, ns, written);
    struct region_input in = {
        .kind = written ? REGION_PERSISTED : REGION_PERSIST_FAILED, .id = id, .outcome = outcome};
    driver_push(driver, &in, 0);
}

/* ---- Life ---- */

struct driver *driver_new(const struct driver_config *config)
{
    struct driver *driver = xcalloc(1, sizeof(*driver));
    driver->config = *config;
    driver->inputs_cap = driver->reads_cap = 64;
    driver->inputs = xcalloc(driver->inputs_cap, sizeof(*driver->inputs));
    driver->reads = xcalloc(driver->reads_cap, sizeof(*driver->reads));
    driver->core = region_new(config->core);
    driver->storage = storage_new(&(struct storage_config){
        .loop = config->loop,
        .store = config->store,
        .sync = config->sync,
        .group_bytes_max = config->group_bytes_max,
        .done = on_stored,
        .context = driver,
    });
    driver_push(driver, &(struct region_input){.kind = REGION_START}, 0);
    return driver;
}

void driver_free(struct driver *driver)
{
    if (!driver)
        return;
    storage_free(driver->storage);
    region_free(driver->core);
    for (uint32_t i = 0; i < driver->input_count; i++)
        free(driver->inputs[(driver->inputs_first + i) & (driver->inputs_cap - 1)].owned);
    for (uint32_t i = 0; i < driver->held_count; i++)
        free(driver->held[i].owned);
    free(driver->held);
    for (uint32_t i = 0; i < driver->reads_cap; i++)
        buf_deinit(&driver->reads[i].keys);
    free(driver->inputs);
    free(driver->reads);
    free(driver);
}
