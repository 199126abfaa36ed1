#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A gRPC client that is not ours (grpcio) against net/: unary calls, a bidirectional stream, large messages,
errors with their texts, and a call cut short. tests/unit/net_link_test.c starts the server and this with its
port. Exits with 77 when grpcio is not installed."""

import sys

try:
    import grpc
except ImportError:
    sys.exit(77)


def main(port):
    channel = grpc.insecure_channel(f"127.0.0.1:{port}")
    unary = channel.unary_unary("/test.Echo/Echo")
    stream = channel.stream_stream("/test.Echo/Echo")

    assert unary(b"hello", timeout=20) == b"hello"
    assert unary(b"", timeout=20) == b""
    large = bytes(range(256)) * 7000
    assert unary(large, timeout=20) == large

    messages = [b"%d" % i * (i * 37 % 5000) for i in range(500)]
    assert list(stream(iter(messages), timeout=60)) == messages

    many = [unary.future(b"%d" % i, timeout=60) for i in range(300)]  # more than the streams allowed at once
    assert [future.result() for future in many] == [b"%d" % i for i in range(300)]

    def status_of(call, code, text):
        try:
            call()
        except grpc.RpcError as error:
            assert error.code() == code, error.code()
            assert text in error.details(), error.details()
            return
        raise AssertionError(f"{code} expected")

    status_of(lambda: channel.unary_unary("/test.Echo/None")(b"", timeout=20),
              grpc.StatusCode.UNIMPLEMENTED, "no such method: /test.Echo/None")
    status_of(lambda: unary(b"fail", timeout=20), grpc.StatusCode.FAILED_PRECONDITION, "as asked: \u00e4 % \n")
    status_of(lambda: unary(bytes(5 << 20), timeout=20), grpc.StatusCode.RESOURCE_EXHAUSTED, "larger than")
    status_of(lambda: unary(b"silence", timeout=0.2), grpc.StatusCode.DEADLINE_EXCEEDED, "")
    compressed = grpc.insecure_channel(f"127.0.0.1:{port}", compression=grpc.Compression.Gzip)
    status_of(lambda: compressed.unary_unary("/test.Echo/Echo")(b"x" * 10000, timeout=20),
              grpc.StatusCode.UNIMPLEMENTED, "compressed")

    forever = stream(iter(lambda: b"tick", None))
    assert next(forever) == b"tick"
    forever.cancel()
    assert unary(b"still here", timeout=20) == b"still here"
    channel.close()


main(int(sys.argv[1]))
