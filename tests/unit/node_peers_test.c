/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of strong groups: what is one, and what becomes of those that a peer does not take. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <fcntl.h>
#include <unistd.h>

#include "conflict/base/alloc.h"
#include "conflict/base/check.h"
#include "conflict/base/crc32c.h"
#include "conflict/region_id.h"
#include "net/server.h"
#include "region/peers_internal.h"
#include "replicator/replicator.pb-c.h"

static void test_a_message_is_its_body(void **state)
{
    (void)state;
    struct bytes body;
    uint8_t large[300] = {0x0a, 0xa9, 0x02};
    assert_true(peers_take_groups(bytes_literal("\x0a\x03"
                                                "abc"),
                                  &body));
    assert_true(bytes_is(body, "abc"));
    assert_true(peers_take_groups(bytes_make(large, sizeof(large)), &body));
    assert_int_equal(body.len, 297);
    static const struct bytes bad[] = {
        {NULL, 0},
        {(const uint8_t *)"\x0a", 1},
        {(const uint8_t *)"\x0a\x00", 2},
        {(const uint8_t *)"\x0a\x03"
                          "ab",
         4},
        {(const uint8_t *)"\x0a\x03"
                          "abcd",
         6},
        {(const uint8_t *)"\x12\x03"
                          "abc",
         5},
        {(const uint8_t *)"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11},
    };
    for (size_t i = 0; i < array_len(bad); i++)
        assert_false(peers_take_groups(bad[i], &body));
}

/* Any bit that turns on its way is found out, that of the checksum as well. */
static void test_a_seal_shows_damage(void **state)
{
    (void)state;
    struct bytes body;
    for (size_t len = 0; len < 40; len++) {
        struct buf wire = {0};
        for (size_t i = 0; i < len; i++)
            buf_append_u8(&wire, (uint8_t)(i * 37));
        peers_seal(&wire);
        assert_int_equal(wire.len, len + PEERS_SEAL_LEN);
        assert_true(peers_unseal(buf_view(&wire), &body));
        assert_int_equal(body.len, len);
        assert_ptr_equal(body.at, wire.at);
        for (uint64_t bit = 0; bit < wire.len * 8; bit++) {
            peers_damage(&wire, bit + wire.len * 8 * 3);
            assert_false(peers_unseal(buf_view(&wire), &body));
            peers_damage(&wire, bit);
        }
        for (size_t cut = 0; cut < wire.len; cut++)
            assert_false(peers_unseal(bytes_make(wire.at, cut), &body));
        buf_deinit(&wire);
    }
}

/* To another gRPC client it is a field like any other. */
static void test_a_seal_is_a_field(void **state)
{
    (void)state;
    struct buf wire = {0};
    peers_wrap_groups(bytes_literal("abc"), &wire);
    uint32_t crc = crc32c(0, buf_view(&wire));
    peers_seal(&wire);
    Tidemark__Replication__V1__GroupsMessage *parsed =
        tidemark__replication__v1__groups_message__unpack(NULL, wire.len, wire.at);
    assert_non_null(parsed);
    assert_int_equal(parsed->crc32c, crc);
    assert_int_equal(parsed->body.len, 3);
    tidemark__replication__v1__groups_message__free_unpacked(parsed, NULL);
    buf_deinit(&wire);
}

/* ---- A peer that reads nothing ---- */

struct fixture {
    struct loop loop;
    struct server *server;
    struct grpc_link *link;
    struct config config;
    struct log log;
    struct peers peers;
    struct stream *out;
    bool up, consume;
    uint64_t heard; /* bytes */
    unsigned messages;
    uint8_t last; /* what the last message is filled with */
};

static void on_heard(void *context, struct grpc_call *call, struct bytes message)
{
    struct fixture *fixture = context;
    Tidemark__Replication__V1__GroupsMessage *parsed =
        tidemark__replication__v1__groups_message__unpack(NULL, message.len, message.at);
    assert_non_null(parsed); /* any gRPC client would read it so */
    fixture->last = parsed->body.data[parsed->body.len - 1];
    tidemark__replication__v1__groups_message__free_unpacked(parsed, NULL);
    fixture->heard += message.len;
    fixture->messages++;
    if (fixture->consume)
        grpc_call_consume(call, message.len);
}

static void on_closed(void *context, struct grpc_call *call, enum grpc_status status,
                      const char *reason)
{
    (void)context, (void)call, (void)status, (void)reason;
}

static bool on_grpc(void *context, struct grpc_call *call, struct bytes path)
{
    struct grpc_events events = {on_heard, NULL, on_closed, context};
    grpc_call_on(call, &events);
    return bytes_is(path, PATH_GROUPS);
}

static void on_request(void *context, struct exchange *exchange)
{
    (void)context;
    exchange_respond(exchange, 404, NULL, 0, BYTES_NONE);
}

static void on_refuse(void *context, int status, struct buf *body, const char **ret_content_type)
{
    (void)context, (void)status, (void)body;
    *ret_content_type = "text/plain";
}

static void on_up(void *context)
{
    ((struct fixture *)context)->up = true;
}

static void on_down(void *context, const char *reason)
{
    (void)context, (void)reason;
}

/* As peers_send_now does it. */
static void send_groups(struct fixture *fixture, const uint8_t *message, size_t len)
{
    struct buf wire = {0};
    peers_wrap_groups(bytes_make(message, len), &wire);
    peers_seal(&wire);
    peers_send_groups(fixture->out, buf_view(&wire));
    buf_deinit(&wire);
}

static void setup_peer(struct fixture *fixture)
{
    fixture->peers.config = &fixture->config;
    fixture->peers.log = &fixture->log;
    fixture->peers.loop = &fixture->loop;
    struct peer *peer = &fixture->peers.at[0];
    fixture->peers.count = 1;
    peer->peers = &fixture->peers;
    peer->region = region_id_find(bytes_text("eu-west-1"));
    fixture->out = &peer->streams[CHANNEL_GROUPS_OUT];
    *fixture->out = (struct stream){.peer = peer, .channel = CHANNEL_GROUPS_OUT};
    struct grpc_events events = {on_heard, NULL, on_closed, fixture};
    fixture->out->call = grpc_link_call(fixture->link, PATH_GROUPS, NULL, &events);
    assert_non_null(fixture->out->call);
}

static int setup(void **state)
{
    struct fixture *fixture = xcalloc(1, sizeof(*fixture));
    char error[256], address[32];
    loop_init(&fixture->loop);
    fixture->log = (struct log){open("/dev/null", O_WRONLY | O_CLOEXEC), TRACE_ERROR, "us-east-1"};
    fixture->config.server = server_limits_default();
    struct server_handler handler = {on_request, on_refuse, on_grpc, fixture};
    fixture->server = server_listen(&fixture->loop, "127.0.0.1:0", &fixture->config.server, NULL,
                                    &handler, error, sizeof(error));
    check(fixture->server != NULL);
    snprintf(address, sizeof(address), "127.0.0.1:%u", server_port(fixture->server));
    struct grpc_link_config link = {.address = address,
                                    .authority = address,
                                    .message_bytes_max = fixture->config.server.message_bytes_max,
                                    .seed = 1};
    struct grpc_link_events events = {on_up, on_down, fixture};
    fixture->link = grpc_link_open(&fixture->loop, &link, &events);
    while (!fixture->up)
        uv_run(&fixture->loop.uv, UV_RUN_ONCE);
    setup_peer(fixture);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    grpc_link_close(fixture->link);
    server_close(fixture->server);
    loop_deinit(&fixture->loop);
    buf_deinit(&fixture->peers.scratch);
    close(fixture->log.file);
    free(fixture);
    return 0;
}

static void test_what_is_not_taken_is_dropped(void **state)
{
    struct fixture *fixture = *state;
    struct peers *peers = &fixture->peers;
    uint16_t peer = peers->at[0].region;
    uint8_t *message = xcalloc(1, 1 << 20);
    enum { SENT = 64 };
    for (unsigned i = 0; i < SENT; i++) {
        memset(message, (int)i + 1, 1 << 20);
        send_groups(fixture, message, 1 << 20);
        assert_true(grpc_call_queued(fixture->out->call) <= GROUPS_QUEUED_BYTES_MAX + 100);
        for (int round = 0; round < 20; round++)
            uv_run(&fixture->loop.uv, UV_RUN_NOWAIT);
    }
    uint64_t dropped = peers_groups_dropped(peers, peer);
    assert_true(dropped > 20 && dropped < SENT);
    assert_true(fixture->out->dropping);

    /* It reads again: what waited arrives, and the next message with it. */
    fixture->consume = true;
    grpc_call_cancel(steal(&fixture->out->call), "anew");
    setup_peer(fixture);
    fixture->messages = 0;
    for (uint8_t i = 1; i <= 100; i++) {
        memset(message, i, 100);
        send_groups(fixture, message, 100);
    }
    while (fixture->messages < 100)
        uv_run(&fixture->loop.uv, UV_RUN_ONCE);
    assert_int_equal(fixture->last, 100);
    assert_false(fixture->out->dropping);
    free(message);
}

static void test_what_is_too_large_is_dropped(void **state)
{
    struct fixture *fixture = *state;
    uint64_t max = fixture->config.server.message_bytes_max;
    uint8_t *message = xcalloc(1, max);
    fixture->consume = true;
    send_groups(fixture, message, max);
    assert_int_equal(fixture->peers.at[0].groups_dropped, 1);
    memset(message, 7, max);
    send_groups(fixture, message, max - 16);
    while (fixture->messages == 0)
        uv_run(&fixture->loop.uv, UV_RUN_ONCE);
    assert_int_equal(fixture->last, 7);
    assert_int_equal(fixture->peers.at[0].groups_dropped, 1);
    free(message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_message_is_its_body),
        cmocka_unit_test(test_a_seal_shows_damage),
        cmocka_unit_test(test_a_seal_is_a_field),
        cmocka_unit_test_setup_teardown(test_what_is_not_taken_is_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_too_large_is_dropped, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
