/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 from arbitrary bytes. The first byte chooses how they are cut; the requests found must
 * not depend on it, so a second pass, byte by byte, must see the same ones. */

#include "net/h1.h"

#include <string.h>

#include "tests/lib/net_host.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void answer_held(struct net_host *net, struct h1 *h1)
{
    for (uint32_t i = 0; i < net->held_count; i++) /* the last one first */
        net_host_answer(net->held[net->held_count - 1 - i]);
    net->held_count = 0;
    h1_resume(h1);
}

static void parse(const uint8_t *data, size_t size, size_t step, bool hold, struct buf *ret_log)
{
    struct net_host net;
    struct h1 h1;
    net_host_init(&net);
    net.limits.body_bytes_max = 100000;
    net.limits.pipeline_max = 4;
    net.hold = hold;
    h1_init(&h1, &net.host);
    for (size_t at = 0; at < size && !h1.deaf;) {
        answer_held(&net, &h1);
        if (!h1_wants_input(&h1))
            continue;
        size_t room = 0;
        uint8_t *to = h1_space(&h1, &room);
        if (!to)
            break;
        size_t len = size - at < step ? size - at : step;
        len = len < room ? len : room;
        memcpy(to, data + at, len);
        at += len;
        h1_received(&h1, len, true);
    }
    while (net.held_count > 0) /* what stood in line behind them is in the block already */
        answer_held(&net, &h1);
    h1_ended(&h1);
    for (uint32_t i = 0; i < net.held_count; i++)
        net_host_answer(net.held[i]);
    check(h1.held_bytes == 0);
    h1_deinit(&h1);
    *ret_log = net.log;
    net.log = (struct buf){0};
    net_host_deinit(&net);
}

/* Of a head with two faults either may be met first, so only that it was refused must agree. */
static struct bytes without_status(const struct buf *log)
{
    static const char refused[] = "refused ";
    const uint8_t *at = log->len ? memmem(log->at, log->len, refused, sizeof(refused) - 1) : NULL;
    return bytes_make(log->at, at ? (size_t)(at - log->at) + sizeof(refused) - 1 : log->len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > 100000)
        return 0;
    struct buf whole, bytewise;
    parse(data + 1, size - 1, 1 + (size_t)data[0] * data[0], data[0] & 1, &whole);
    parse(data + 1, size - 1, 1, false, &bytewise);
    check(bytes_equal(without_status(&whole), without_status(&bytewise)));
    buf_deinit(&whole);
    buf_deinit(&bytewise);
    return 0;
}
