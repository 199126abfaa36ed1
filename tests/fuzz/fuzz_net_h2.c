/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/2 server's session from arbitrary bytes behind an honest preface, cut as the first byte
 * says. */

#include "tests/lib/net_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool on_call(struct http_host *host, struct grpc_call *call, struct bytes path)
{
    (void)host;
    (void)call;
    return path.len % 2 == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    if (size < 1 || size > 100000)
        return 0;
    struct wire wire;
    wire_init(&wire);
    wire.net.limits.body_bytes_max = 10000;
    wire.net.host.grpc = on_call;
    wire.net.hold = data[0] & 1;
    size_t step = 1 + (size_t)data[0] * data[0];
    h2_receive(&wire.server, bytes_make(preface, sizeof(preface) - 1), wire.now_ms);
    for (size_t at = 1; at < size; at += step) {
        size_t len = size - at < step ? size - at : step;
        h2_receive(&wire.server, bytes_make(data + at, len), wire.now_ms++);
        h2_fill(&wire.server, &wire.to_client, 1 << 16);
        buf_reset(&wire.to_client);
        for (uint32_t i = 0; i < wire.net.held_count; i++)
            net_host_answer(wire.net.held[i]);
        wire.net.held_count = 0;
    }
    wire_deinit(&wire);
    return 0;
}
