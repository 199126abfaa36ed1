/* SPDX-License-Identifier: Apache-2.0 */
/* The relay: direct while both hear each other, by the third as well when one is deaf, back again
 * when the link heals; one hop and no more; and nothing from malformed envelopes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "witness/relay.h"

enum { SILENCE = 100 };

struct net {
    struct relay relays[CONSENSUS_MEMBERS];
    bool cut[CONSENSUS_MEMBERS][CONSENSUS_MEMBERS];
    int delivered[CONSENSUS_MEMBERS]; /* copies of the frame just sent */
};

static void arrive(struct net *net, uint8_t from, uint8_t to, struct bytes envelope, uint64_t now)
{
    uint8_t peer = 9;
    struct bytes frame = BYTES_NONE;
    struct buf onward = {0};
    if (net->cut[from][to])
        return;
    switch (relay_receive(&net->relays[to], from, envelope, now, &peer, &frame, &onward)) {
    case RELAY_DELIVER:
        assert_true(bytes_is(frame, "frame"));
        net->delivered[to]++;
        break;
    case RELAY_FORWARD:
        arrive(net, to, peer, buf_view(&onward), now);
        break;
    case RELAY_DROP:
        fail();
    }
    buf_deinit(&onward);
}

static int send_frame(struct net *net, uint8_t from, uint8_t to, uint64_t now)
{
    memset(net->delivered, 0, sizeof(net->delivered));
    struct relay_route route = relay_route(&net->relays[from], to, now);
    struct buf envelope = {0};
    relay_wrap(&net->relays[from], to, &route, bytes_literal("frame"), &envelope);
    for (int i = 0; i < route.count; i++)
        arrive(net, from, route.via[i], buf_view(&envelope), now);
    buf_deinit(&envelope);
    return net->delivered[to];
}

static void chatter(struct net *net, uint64_t now)
{
    for (uint8_t from = 0; from < CONSENSUS_MEMBERS; from++)
        for (uint8_t to = 0; to < CONSENSUS_MEMBERS; to++)
            if (from != to)
                send_frame(net, from, to, now);
}

static void test_one_way_cut(void **state)
{
    (void)state;
    struct net net = {0};
    for (uint8_t i = 0; i < CONSENSUS_MEMBERS; i++)
        relay_init(&net.relays[i], i, SILENCE, 0);
    chatter(&net, 10);
    assert_int_equal(send_frame(&net, 0, 1, 20), 1);
    net.cut[0][1] = true;
    assert_int_equal(send_frame(&net, 0, 1, 30), 0);
    /* 0 hears 1 all the while; only 1 can know, and tells. */
    for (uint64_t now = 40; now < 200; now += 10)
        chatter(&net, now);
    assert_int_equal(send_frame(&net, 0, 1, 200), 1);
    assert_int_equal(send_frame(&net, 1, 0, 200), 2); /* direct, and by 2, as it is deaf */
    assert_int_equal(send_frame(&net, 0, 2, 200), 1);
    net.cut[0][1] = false;
    chatter(&net, 210);
    chatter(&net, 220);
    assert_int_equal(send_frame(&net, 0, 1, 230), 1);
    assert_int_equal(send_frame(&net, 1, 0, 230), 1);
}

static void expect_drop(uint8_t self, uint8_t from, const char *envelope, size_t len)
{
    struct relay relay;
    uint8_t peer;
    struct bytes frame;
    struct buf onward = {0};
    relay_init(&relay, self, SILENCE, 0);
    assert_int_equal(
        relay_receive(&relay, from, bytes_make(envelope, len), 500, &peer, &frame, &onward),
        RELAY_DROP);
    assert_int_equal(onward.len, 0);
    assert_int_equal(relay.heard_ns[1], 0);
    assert_int_equal(relay.heard_ns[2], 0);
}

static void test_malformed(void **state)
{
    (void)state;
    expect_drop(0, 1, "", 0);
    expect_drop(0, 1, "\1\0", 2);
    expect_drop(0, 1, "\3\0\0f", 4); /* no such source */
    expect_drop(0, 1, "\1\3\0f", 4); /* no such destination */
    expect_drop(0, 1, "\1\1\0f", 4); /* to itself */
    expect_drop(0, 1, "\1\0\4f", 4); /* unknown flag */
    expect_drop(0, 1, "\0\1\0f", 4); /* from us */
    expect_drop(0, 1, "\2\0\0f", 4); /* of another, and says that it has not hopped */
    expect_drop(0, 1, "\1\0\2f", 4); /* its own, and says that it has */
    expect_drop(0, 0, "\1\0\0f", 4);
    expect_drop(0, 3, "\1\0\0f", 4);
}

static void test_one_hop(void **state)
{
    (void)state;
    struct relay relay;
    uint8_t peer;
    struct bytes frame;
    struct buf onward = {0};
    relay_init(&relay, 2, SILENCE, 0);
    assert_int_equal(relay_receive(&relay, 0, bytes_make("\0\1\0f", 4), 5, &peer, &frame, &onward),
                     RELAY_FORWARD);
    assert_int_equal(peer, 1);
    /* What has hopped is not carried on, whoever sends it. */
    struct buf again = {0};
    assert_int_equal(relay_receive(&relay, 1, bytes_make("\0\1\2f", 4), 6, &peer, &frame, &again),
                     RELAY_DROP);
    assert_int_equal(again.len, 0);
    buf_deinit(&onward);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_way_cut),
                                       cmocka_unit_test(test_malformed),
                                       cmocka_unit_test(test_one_hop)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
