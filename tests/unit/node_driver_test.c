/* SPDX-License-Identifier: Apache-2.0 */
/* The driver with the real core on a store that fails when the test says so. */

#include "region/driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/region_id.h"
#include "region/api/api.h"

/* The store in memory, behind a lock, with faults. */
struct faulty_store {
    struct store store;
    struct store *memory;
    uv_mutex_t mutex;
    atomic_int write_outcome;
    enum store_outcome read_outcome;
    unsigned reads;
};

enum { TOKENS_MAX = 4000 };

struct fixture {
    struct loop loop;
    struct clock clock;
    struct metrics metrics;
    struct faulty_store faulty;
    struct region_config core;
    struct driver *driver;
    bool ready;
    unsigned replies, rounds;
    enum api_error error; /* of the last reply */
    struct buf body;      /* likewise */
    struct buf order;     /* of tokens, a byte each, when there are few */
    unsigned ups_taken, closes;
    struct arena arenas[TOKENS_MAX];
};

static enum store_outcome faulty_read(struct store *store, const struct store_read *read,
                                      struct store_rows *ret)
{
    struct faulty_store *faulty = container_of(store, struct faulty_store, store);
    faulty->reads++;
    if (faulty->read_outcome != STORE_OK)
        return faulty->read_outcome;
    uv_mutex_lock(&faulty->mutex);
    enum store_outcome outcome = faulty->memory->ops->read(faulty->memory, read, ret);
    uv_mutex_unlock(&faulty->mutex);
    return outcome;
}

static enum store_outcome faulty_write(struct store *store, struct bytes batch, bool sync)
{
    struct faulty_store *faulty = container_of(store, struct faulty_store, store);
    enum store_outcome planned = (enum store_outcome)atomic_load(&faulty->write_outcome);
    if (planned != STORE_OK)
        return planned;
    uv_mutex_lock(&faulty->mutex);
    enum store_outcome outcome = faulty->memory->ops->write(faulty->memory, batch, sync);
    uv_mutex_unlock(&faulty->mutex);
    return outcome;
}

static const struct store_ops faulty_ops = {faulty_read, faulty_write, NULL};

/* ---- Events ---- */

static void on_ready(void *context)
{
    ((struct fixture *)context)->ready = true;
}

static void on_reply(void *context, uint64_t token, struct op *op)
{
    struct fixture *fixture = context;
    fixture->replies++;
    fixture->error = op->result.error;
    buf_reset(&fixture->body);
    api_respond(op, &fixture->body);
    buf_append_u8(&fixture->body, 0);
    buf_append_u8(&fixture->order, (uint8_t)token);
    arena_reset(&fixture->arenas[token]);
}

static void on_send(void *context, uint16_t peer, enum region_channel channel, struct bytes message)
{
    (void)context;
    (void)peer;
    (void)channel;
    (void)message;
}

static void on_close(void *context, uint16_t peer, enum region_channel channel, const char *reason)
{
    (void)peer;
    (void)channel;
    (void)reason;
    ((struct fixture *)context)->closes++;
}

static void on_call_peer(void *context, uint16_t peer, uint64_t id, struct bytes body)
{
    (void)peer;
    (void)body;
    struct region_input in = {.kind = REGION_CALL_DONE, .id = id, .failed = true};
    driver_push(((struct fixture *)context)->driver, &in, 0);
}

static void on_call_reply(void *context, uint64_t token, struct bytes body)
{
    (void)context;
    (void)token;
    (void)body;
}

static void on_taken(void *context, const struct region_input *in, uint64_t tag)
{
    struct fixture *fixture = context;
    assert_int_equal(tag, 77);
    assert_true(fixture->ready);
    fixture->ups_taken += in->kind == REGION_PEER_UP;
}

static void on_round(void *context)
{
    struct fixture *fixture = context;
    fixture->rounds++;
    driver_round(fixture->driver);
    loop_wake_at(&fixture->loop, driver_deadline(fixture->driver));
}

static int setup(void **state)
{
    struct fixture *fixture = xcalloc(1, sizeof(*fixture));
    loop_init(&fixture->loop);
    fixture->faulty.store.ops = &faulty_ops;
    fixture->faulty.memory = store_mem_new();
    uv_mutex_init(&fixture->faulty.mutex);
    buf_init(&fixture->body);
    buf_init(&fixture->order);
    for (unsigned i = 0; i < TOKENS_MAX; i++)
        arena_init(&fixture->arenas[i]);
    uint16_t here = region_id_find(bytes_literal("us-east-1"));
    uint16_t there = region_id_find(bytes_literal("eu-west-1"));
    fixture->core = (struct region_config){
        .region = here,
        .peers = {there},
        .peer_count = 1,
        .seed = 1,
        .clock_ahead_ms_max = 500,
        .partitions_per_table = 2,
        .tables_max = 10,
        .operations_in_flight_max = 10000,
        .persist_bytes_max = 1 << 26,
        .call_timeout_ms = 1000,
        .ledger_rows_max = 1000,
        .replication = {.window_bytes_max = 1 << 20,
                        .batch_bytes_max = 1 << 18,
                        .batch_records_max = 100,
                        .frame_bytes_max = 1 << 20,
                        .heartbeat_ms = 100000,
                        .silence_ms_max = 1000000,
                        .log_bytes_max = 1 << 20,
                        .tombstone_grace_ms = 1000,
                        .apply_bytes_max = 1 << 20},
    };
    fixture->driver = driver_new(&(struct driver_config){
        .loop = &fixture->loop,
        .core = &fixture->core,
        .store = &fixture->faulty.store,
        .clock = &fixture->clock,
        .metrics = &fixture->metrics,
        .sync = true,
        .group_bytes_max = 1 << 20,
        .events = {on_ready, on_reply, on_send, on_close, on_call_peer, on_call_reply, on_taken,
                   fixture},
    });
    loop_on_round(&fixture->loop, on_round, fixture);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    driver_free(fixture->driver);
    loop_deinit(&fixture->loop);
    fixture->faulty.memory->ops->free(fixture->faulty.memory);
    uv_mutex_destroy(&fixture->faulty.mutex);
    buf_deinit(&fixture->body);
    buf_deinit(&fixture->order);
    for (unsigned i = 0; i < TOKENS_MAX; i++)
        arena_deinit(&fixture->arenas[i]);
    free(fixture);
    return 0;
}

/* ---- Asking ---- */

static void push(struct fixture *fixture, uint64_t token, const char *operation, const char *body)
{
    static const struct api_config config = {.region = 1};
    struct arena *arena = &fixture->arenas[token];
    char target[64];
    snprintf(target, sizeof(target), "DynamoDB_20120810.%s", operation);
    struct api_request request = {
        .method = bytes_literal("POST"),
        .path = bytes_literal("/"),
        .target = bytes_text(target),
        .content_type = bytes_literal("application/x-amz-json-1.0"),
        .body = bytes_copy(arena, bytes_text(body)),
    };
    struct op *op = api_parse(&config, &request, arena);
    assert_int_equal(op->result.error, API_OK);
    struct region_input in = {.kind = REGION_REQUEST, .token = token, .op = op};
    driver_push(fixture->driver, &in, 0);
}

static void await_replies(struct fixture *fixture, unsigned count)
{
    while (fixture->replies < count) {
        loop_wake_at(&fixture->loop, 0);
        uv_run(&fixture->loop.uv, UV_RUN_NOWAIT);
    }
}

/* The error, API_OK for none. */
static enum api_error ask(struct fixture *fixture, const char *operation, const char *body)
{
    push(fixture, 0, operation, body);
    await_replies(fixture, fixture->replies + 1);
    return fixture->error;
}

static void begin(struct fixture *fixture)
{
    while (!fixture->ready)
        uv_run(&fixture->loop.uv, UV_RUN_NOWAIT);
    assert_int_equal(
        ask(fixture, "CreateTable",
            "{\"TableName\":\"orders\",\"KeySchema\":[{\"AttributeName\":\"pk\",\"KeyType\":"
            "\"HASH\"}],\"AttributeDefinitions\":[{\"AttributeName\":\"pk\","
            "\"AttributeType\":\"S\"}],\"BillingMode\":\"PAY_PER_REQUEST\"}"),
        API_OK);
    do
        assert_int_equal(ask(fixture, "DescribeTable", "{\"TableName\":\"orders\"}"), API_OK);
    while (!strstr((const char *)fixture->body.at, "\"ACTIVE\""));
}

#define PUT(key) "{\"TableName\":\"orders\",\"Item\":{\"pk\":{\"S\":\"" key "\"}}}"
#define GET(key) "{\"TableName\":\"orders\",\"Key\":{\"pk\":{\"S\":\"" key "\"}}}"

static bool holds(struct fixture *fixture, const char *get)
{
    assert_int_equal(ask(fixture, "GetItem", get), API_OK);
    return strstr((const char *)fixture->body.at, "Item") != NULL;
}

/* ---- Tests ---- */

static void test_full_disk(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    assert_int_equal(ask(fixture, "PutItem", PUT("a")), API_OK);
    atomic_store(&fixture->faulty.write_outcome, STORE_FULL);
    assert_int_equal(ask(fixture, "PutItem", PUT("b")), API_INTERNAL);
    assert_int_equal(ask(fixture, "PutItem", PUT("c")), API_INTERNAL);
    assert_true(holds(fixture, GET("a")));
    assert_false(holds(fixture, GET("b")));
    /* Several at once share their fate. */
    unsigned before = fixture->replies;
    push(fixture, 1, "PutItem", PUT("b"));
    push(fixture, 2, "PutItem", PUT("b"));
    push(fixture, 3, "PutItem", PUT("d"));
    await_replies(fixture, before + 3);
    assert_int_equal(fixture->error, API_INTERNAL);
    assert_true(fixture->metrics.groups_refused >= 3);
    atomic_store(&fixture->faulty.write_outcome, STORE_OK);
    assert_int_equal(ask(fixture, "PutItem", PUT("b")), API_OK);
    assert_true(holds(fixture, GET("b")));
    assert_false(holds(fixture, GET("d")));
    while (!driver_idle(fixture->driver))
        uv_run(&fixture->loop.uv, UV_RUN_NOWAIT);
}

static void test_damaged_read(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    assert_int_equal(ask(fixture, "PutItem", PUT("a")), API_OK);
    fixture->faulty.read_outcome = STORE_CORRUPT;
    assert_int_equal(ask(fixture, "GetItem", GET("a")), API_INTERNAL);
    assert_int_equal(ask(fixture, "PutItem", PUT("a")), API_INTERNAL);
    fixture->faulty.read_outcome = STORE_OK;
    assert_true(holds(fixture, GET("a")));
}

/* One round takes a bounded number of steps; the rest waits for the next, which is due at once. */
static void test_rounds_are_bounded(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    unsigned before = fixture->replies;
    for (unsigned i = 0; i < TOKENS_MAX; i++)
        push(fixture, i, "GetItem", GET("a"));
    unsigned first_round = fixture->rounds;
    uv_run(&fixture->loop.uv, UV_RUN_NOWAIT);
    assert_int_equal(fixture->rounds, first_round + 1);
    assert_true(fixture->replies - before < TOKENS_MAX);
    assert_true(fixture->replies > before);
    assert_int_equal(driver_deadline(fixture->driver), 0);
    await_replies(fixture, before + TOKENS_MAX);
    assert_true(driver_idle(fixture->driver));
}

/* Large reads end a round sooner. */
static void test_large_reads_are_few_a_round(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    struct buf put = {0};
    buf_append_text(&put,
                    "{\"TableName\":\"orders\",\"Item\":{\"pk\":{\"S\":\"big\"},\"v\":{\"S\":\"");
    memset(buf_reserve(&put, 400000), 'v', 400000);
    put.len += 400000;
    buf_append_text(&put, "\"}}}");
    buf_append_u8(&put, 0);
    assert_int_equal(ask(fixture, "PutItem", (char *)put.at), API_OK);
    buf_deinit(&put);
    unsigned before = fixture->replies;
    for (unsigned i = 0; i < 100; i++)
        push(fixture, i, "GetItem", GET("big"));
    uv_run(&fixture->loop.uv, UV_RUN_NOWAIT);
    assert_in_range(fixture->replies - before, 1, 20);
    await_replies(fixture, before + 100);
}

static void test_answers_in_the_order_of_asking(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    unsigned before = fixture->replies;
    buf_reset(&fixture->order);
    for (uint8_t i = 1; i <= 100; i++)
        push(fixture, i, "GetItem", GET("a"));
    await_replies(fixture, before + 100);
    for (uint8_t i = 0; i < 100; i++)
        assert_int_equal(fixture->order.at[i], i + 1);
}

/* What a peer sends before the core is ready waits until it is. */
static void test_peers_wait_for_readiness(void **state)
{
    struct fixture *fixture = *state;
    struct region_input up = {
        .kind = REGION_PEER_UP, .peer = fixture->core.peers[0], .channel = CHANNEL_INBOUND};
    struct region_input frame = up;
    frame.kind = REGION_PEER_FRAME;
    frame.bytes = bytes_literal("\xff\xff nonsense");
    driver_push(fixture->driver, &up, 77);
    driver_push(fixture->driver, &frame, 77);
    while (fixture->closes == 0)
        uv_run(&fixture->loop.uv, UV_RUN_NOWAIT);
    assert_true(fixture->ready);
    assert_int_equal(fixture->ups_taken, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_full_disk, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damaged_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rounds_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_large_reads_are_few_a_round, setup, teardown),
        cmocka_unit_test_setup_teardown(test_answers_in_the_order_of_asking, setup, teardown),
        cmocka_unit_test_setup_teardown(test_peers_wait_for_readiness, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
