/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC's framing from arbitrary bytes: they are the body of a call, towards the server or, if the
 * first byte is odd, towards the client; it also says how they are cut. */

#include "tests/lib/net_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fixture {
    struct wire wire;
    uint32_t open;
    uint64_t bytes;
};

static void on_message(void *context, struct grpc_call *call, struct bytes message)
{
    struct fixture *f = context;
    check(message.len <= f->wire.net.limits.message_bytes_max);
    f->bytes += message.len;
    if (message.len % 3 != 1) /* some stay unconsumed */
        grpc_call_consume(call, message.len);
    if (message.len == 7)
        grpc_call_cancel(call, "seven");
}
static void on_closed(void *context, struct grpc_call *call, enum grpc_status status,
                      const char *reason)
{
    struct fixture *f = context;
    (void)call;
    (void)status;
    check(strlen(reason) < 1000);
    check(f->open-- > 0);
}
static bool on_call(struct http_host *host, struct grpc_call *call, struct bytes path)
{
    struct fixture *f = container_of(host, struct fixture, wire.net.host);
    struct grpc_events events = {on_message, NULL, on_closed, f};
    (void)path;
    f->open++;
    grpc_call_on(call, &events);
    grpc_call_send(call, bytes_literal("hello")); /* so that the answer has begun */
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > 100000)
        return 0;
    struct fixture f = {0};
    wire_init(&f.wire);
    f.wire.net.limits.message_bytes_max = 5000;
    f.wire.net.host.grpc = on_call;
    f.wire.step = 1 + (size_t)data[0] * data[0];
    struct grpc_events events = {on_message, NULL, on_closed, &f};
    f.open++;
    check(grpc_open(&f.wire.client, "peer", "/s/M", NULL, 5000, &events) != NULL);
    wire_run(&f.wire);
    struct h2 *from = data[0] & 1 ? &f.wire.server : &f.wire.client;
    check(!list_empty(&from->streams));
    struct h2_stream *stream = container_of(from->streams.next, struct h2_stream, link);
    h2_stream_write(stream, bytes_make(data + 1, size - 1));
    h2_stream_end(stream, NULL, 0);
    wire_run(&f.wire);
    wire_deinit(&f.wire);
    check(f.open == 0);
    check(f.bytes <= size + 10);
    return 0;
}
