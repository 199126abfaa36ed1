#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What no honest client sends: each gets a clear refusal or a closed connection, in bounded time; the
Region and the front door go on serving, and their memory stays where it was."""

import gzip
import json
import random
import socket
import struct
import threading

from cluster import SANITIZED, USA, Client, ClusterTest, authorization, item, main, wait_until

# Sanitizers keep freed memory and shadow it: there the bound only catches what grows without one.
GROWTH_KIB = 400_000 if SANITIZED else 60_000
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\0\0\0\4\0\0\0\0\0"


def head(length=None, extra=b"", target=b"DynamoDB_20120810.ListTables"):
    text = (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-amz-json-1.0\r\n"
            b"X-Amz-Target: " + target + b"\r\nAuthorization: " + authorization(USA).encode() + b"\r\n")
    if length is not None:
        text += b"Content-Length: %d\r\n" % length
    return text + extra + b"\r\n"


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


class Hostile(ClusterTest):
    regions = (USA, "eu-west-1")

    def setUp(self):
        super().setUp()
        self.ports = {"door": self.cluster.front, "region": self.cluster.port(USA)}

    def still_serves(self):
        for through_door in (False, True):
            client = self.cluster.client(USA, through_door=through_door, timeout=20)
            client.call("ListTables")
            client.close()
        self.assertEqual({r["state"] for r in self.cluster.status()["regions"]}, {"running"})

    def send(self, port, *chunks, half_close=False, timeout=60):
        """All that comes back until the other side closes or falls silent for a while."""
        with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
            try:
                for chunk in chunks:
                    connection.sendall(chunk)
                if half_close:
                    connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # closed in mid-sentence: what it said before is still to be read
            answer = b""
            try:
                while part := connection.recv(65536):
                    answer += part
                    if answer.startswith(b"HTTP/1.1 100"):
                        continue
                    if answer.startswith(b"HTTP/1") and complete(answer):
                        break
            except OSError:
                pass
            return answer

    def refused_with(self, statuses, *chunks, **options):
        for name, port in self.ports.items():
            answer = self.send(port, *chunks, **options)
            if answer == b"" and None in statuses:
                continue
            self.assertRegex(answer[:40], rb"^HTTP/1\.[01] \d\d\d", (name, chunks[0][:80]))
            self.assertIn(int(answer[9:12]), statuses, (name, chunks[0][:80], answer[:300]))
        self.still_serves()

    def test_malformed_http(self):
        for text in (b"\0\0\0\0\r\n\r\n", b"GARBAGE\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                     b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
                     b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
                     b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
                     b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
                     b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                     b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
                     b"POST / HTTP/1.1\r\nHost: x\r\nBad Header: y\r\n\r\n",
                     b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100)):
            with self.subTest(text=text):
                self.refused_with({400, 413, 501, 505, None}, text, half_close=True)

    def test_huge_heads(self):
        self.refused_with({431, 414, 400}, b"GET /" + b"a" * 300_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        self.refused_with({431, 400}, b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 300_000 + b"\r\n\r\n")
        self.refused_with({431, 400}, b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 50_000 + b"\r\n")

    def test_malformed_json(self):
        texts = [b"", b"{", b"[]", b"null", b'"text"', b"{]", b'{"TableName": }', b"\xff\xfe{}", b"{}{}",
                 b'{"a":"\\ud800"}', b'{"a":"\\u0000"}', b'{"TableName":"t", "TableName":"u"}',
                 b'{"Limit": 1e999}', b'{"Limit": ' + b"9" * 5000 + b"}", b'{"Limit": 1.5}',
                 b'{"Limit": "many"}', b'{"ExclusiveStartTableName": {"S": "x"}}', b"{'a': 1}"]
        for text in texts:
            with self.subTest(text=text[:40]):
                for client in (self.client(), self.cluster.client(USA, through_door=True)):
                    status, _, body = client.raw("ListTables", text)
                    if status != 200:  # some servers, AWS among them, take an empty body as {}
                        self.assertEqual(status, 400, body)
                        self.assertIn("__type", json.loads(body))
        self.still_serves()

    def test_deep_nesting(self):
        self.cluster.client(USA).create(self.table)
        for depth in (40, 5_000, 1_000_000):
            bodies = (b'{"a":' * depth + b"1" + b"}" * depth, b"[" * depth + b"]" * depth,
                      b'{"TableName":"%s","Item":{"pk":{"S":"x"},"l":' % self.table.encode() +
                      b'{"L":[' * depth + b"]}" * depth + b"}}", b"[" * depth)
            for body in bodies:
                status, _, answer = self.client().raw("PutItem", body)
                self.assertEqual(status, 400, answer[:200])
                self.assertIn("__type", json.loads(answer))
        for expression in ("(" * 2000 + "a = :v" + ")" * 2000, "NOT " * 1000 + "a = :v",
                           "a = :v AND " * 400 + "a = :v", "a" + ".b" * 1500 + " = :v",
                           "a" + "[0]" * 1000 + " = :v"):
            status, _, answer = self.client().raw("PutItem", {
                "TableName": self.table, "Item": item(pk="x"), "ConditionExpression": expression,
                "ExpressionAttributeValues": {":v": {"S": "x"}}})
            self.assertEqual(status, 400, answer[:200])
        self.still_serves()

    def test_huge_numbers(self):
        client = self.client()
        client.create(self.table)
        for number in ("9" * 100_000, "1e" + "9" * 100_000, "0." + "0" * 100_000 + "1", "-" * 1000,
                       "1E99999999999", "1e-99999999999999999999", "+", ".", "e", "\u0661"):
            self.refused("ValidationException", "", client.put, self.table, pk="n", n={"N": number})
        client.put(self.table, pk="n", n={"N": "0" * 10_000 + "7"})
        self.assertEqual(client.get(self.table, pk="n")["n"], {"N": "7"})

    def test_many_of_everything(self):
        client = self.client()
        client.create(self.table)
        many = {f"a{n}": {"N": str(n)} for n in range(100_000)}
        for members in ({"TableName": self.table, "Item": {"pk": {"S": "x"}, **many}},
                        {"TableName": self.table, "Item": item(pk="x"),
                         "ExpressionAttributeNames": {f"#n{n}": "x" for n in range(100_000)},
                         "ConditionExpression": "#n0 = #n1"},
                        {"TableName": self.table, "Item": item(pk="x"), "Junk": list(range(500_000))}):
            status, _, answer = client.raw("PutItem", members)
            self.assertIn(status, (200, 400), answer[:200])
        self.refused("ValidationException", "", client.call, "BatchWriteItem", RequestItems={
            self.table: [{"PutRequest": {"Item": item(pk=str(n))}} for n in range(26)]})
        self.refused("ValidationException", "", client.call, "BatchGetItem", RequestItems={
            self.table: {"Keys": [item(pk=str(n)) for n in range(101)]}})
        self.still_serves()

    def test_compressed_bomb(self):
        bomb = gzip.compress(b" " * 200_000_000, 9)
        status, _, _ = self.client().raw("ListTables", bomb, {"Content-Encoding": "gzip"})
        self.assertEqual(status, 413)
        for broken in (b"not gzip", gzip.compress(b"{}")[:-4], b""):
            status, _, _ = self.client().raw("ListTables", broken, {"Content-Encoding": "gzip"})
            self.assertEqual(status, 400)
        self.memory_stays()

    def test_oversized_body(self):
        for extra in (b"", b"Expect: 100-continue\r\n"):
            self.refused_with({413}, head(16 * 1024 * 1024 + 1, extra), timeout=20)
        chunked = head(extra=b"Transfer-Encoding: chunked\r\n")
        self.refused_with({413}, chunked, *[b"10000\r\n" + b" " * 65536 + b"\r\n"] * 257, timeout=60)
        self.memory_stays()

    def test_http2_garbage(self):
        rng = random.Random(7)
        attacks = {
            "garbage after the preface": PREFACE + rng.randbytes(4096),
            "half a preface": PREFACE[:10],
            "no settings": PREFACE + frame(6, 0, 0, bytes(8)),
            "huge frame": PREFACE + SETTINGS + b"\xff\xff\xff\0\0\0\0\0\1",
            "data on stream 0": PREFACE + SETTINGS + frame(0, 0, 0, b"x"),
            "headers on an even stream": PREFACE + SETTINGS + frame(1, 5, 2, b"\x82"),
            "broken hpack": PREFACE + SETTINGS + frame(1, 5, 1, b"\xff" * 64),
            "continuation flood": PREFACE + SETTINGS + frame(1, 0, 1, b"\x82") +
                                  frame(9, 0, 1, b"\x40\1a\1b" * 4000) * 100,
            "window overflow": PREFACE + SETTINGS + frame(8, 0, 0, b"\x7f\xff\xff\xff") * 2,
            "settings flood": PREFACE + SETTINGS * 20_000,
            "ping flood": PREFACE + SETTINGS + frame(6, 0, 0, bytes(8)) * 50_000,
            "rapid reset": PREFACE + SETTINGS + b"".join(
                frame(1, 5, s, b"\x83\x86\x84\x41\x01x") + frame(3, 0, s, b"\0\0\0\x08")
                for s in range(1, 20_001, 2)),
        }
        for name, attack in attacks.items():
            for port in self.ports.values():
                with self.subTest(name=name):
                    self.send(port, attack, half_close=True)
        self.still_serves()
        self.memory_stays()

    def test_grpc_garbage(self):
        # Literal header fields without indexing: no encoder is needed for a fixed handful of them.
        def literal(name, text):
            return bytes((0, len(name))) + name + bytes((len(text),)) + text
        fields = (b"\x83\x86" + literal(b":path", b"/tidemark.replication.v1.Replicator/Replicate") +
                  literal(b":authority", b"x") + literal(b"content-type", b"application/grpc") +
                  literal(b"te", b"trailers"))
        for region in (b"eu-west-1", b"nowhere", b""):
            opening = PREFACE + SETTINGS + frame(1, 4, 1, fields + literal(b"tidemark-region", region))
            for payload in (b"\0\xff\xff\xff\xff", b"\1\0\0\0\1x", b"\0\0\0\0\x08" + b"\xff" * 8,
                            b"\0\0\0\0\4\x0a\xff\xff\xff", random.Random(1).randbytes(5000), b""):
                self.send(self.ports["region"], opening + frame(0, 1, 1, payload), half_close=True)
        self.still_serves()
        table = self.cluster.make_global(self.table)
        self.client().put(table, pk="after", v=1)
        self.assertEqual(self.cluster.wait_converged(table), [item(pk="after", v=1)])

    def test_slow_and_silent_clients(self):
        connections = []
        try:
            for number in range(400):
                port = self.ports[("door", "region")[number % 2]]
                connection = socket.create_connection(("127.0.0.1", port), timeout=20)
                connections.append(connection)
                # Silent; stuck in the head; stuck in the body; stuck in a preface.
                connection.sendall((b"", head()[:40], head(100) + b"{", PREFACE[:12])[number // 2 % 4])
            for _ in range(5):
                for connection in connections[2::8]:
                    try:
                        connection.sendall(b"x")
                    except OSError:
                        pass
            self.still_serves()
        finally:
            for connection in connections:
                connection.close()
        self.still_serves()
        self.memory_stays()

    def test_clients_that_do_not_read(self):
        client = self.client()
        client.create(self.table)
        client.put(self.table, pk="big", pad="x" * 300_000)
        body = json.dumps({"TableName": self.table, "Key": item(pk="big")}).encode()
        request = head(len(body), target=b"DynamoDB_20120810.GetItem") + body
        connections = []
        try:
            for number in range(16):
                connection = socket.create_connection(
                    ("127.0.0.1", self.ports[("door", "region")[number % 2]]), timeout=20)
                connections.append(connection)
                connection.setblocking(False)
                try:
                    for _ in range(500):  # 150 MB of answers asked for, none of them read
                        connection.send(request)
                except OSError:
                    pass
            self.still_serves()
            # A connection may have 64 requests in progress, so eight of them that many answers.
            self.memory_stays(8 * 64 * 300 * 3 // 2)
        finally:
            for connection in connections:
                connection.close()
        if not SANITIZED:
            self.memory_stays()

    def test_resets_in_mid_request(self):
        def abuse(seed):
            rng = random.Random(seed)
            for _ in range(100):
                connection = socket.create_connection(
                    ("127.0.0.1", rng.choice(list(self.ports.values()))), timeout=20)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                text = head(2) + b"{}"
                connection.sendall(text[:rng.randrange(len(text) + 1)])
                connection.close()
        threads = [threading.Thread(target=abuse, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.still_serves()

    def test_browsers_cannot_cut_links(self):
        control = Client(USA, self.cluster.control_port)
        self.addCleanup(control.close)
        path = f"/v1/links/{USA}/eu-west-1/cut"
        for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"},
                        {"Origin": "null"}, {"Host": "evil.example"}):
            with self.subTest(headers=headers):
                status, _, body = control.http("POST", path, b"{}", headers)
                self.assertEqual(status, 403, body)
        status, _, body = self.client().http("PUT", "/tidemark/clock", b'{"offset_ms": 5000}',
                                             {"Origin": "https://evil.example"})
        self.assertEqual(status, 403, body)
        self.assertEqual({l["state"] for l in self.cluster.status()["links"]}, {"up"})

    def memory_stays(self, besides_kib=0):
        for region in self.regions:
            if region in self.memory:
                wait_until(f"the memory of {region} is bounded", lambda: (
                    self.cluster.resident_kib(region) < self.memory[region] + GROWTH_KIB + besides_kib))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.memory = {region: cls.cluster.resident_kib(region) for region in cls.regions}
        print("idle memory in KiB:", cls.memory)


def complete(answer):
    """Whether an HTTP/1 answer with a content-length is all there."""
    top, end, body = answer.partition(b"\r\n\r\n")
    if not end:
        return False
    for line in top.split(b"\r\n")[1:]:
        name, _, content = line.partition(b":")
        if name.lower() == b"content-length":
            return len(body) >= int(content)
    return False


if __name__ == "__main__":
    main()
