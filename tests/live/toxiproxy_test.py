# SPDX-License-Identifier: Apache-2.0
"""The control API as a Toxiproxy client meets it: routes, status codes, error bodies, and that each toxic does
to a real connection what its name says. Times are only ever lower bounds: a delay that was asked for must
have passed, and how much longer a loaded machine takes is not our concern.
"""

import http.client
import json
import socket
import threading
import time
import unittest
from urllib.parse import quote

from cluster import DEADLINE, EUROPE, JAPAN, USA, Cluster, main, wait_until

LINK = f"{USA}->{EUROPE}"


class Echo:
    """A server that sends back what it gets, and says `bye` once the client has sent all."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    @staticmethod
    def _serve(connection):
        with connection:
            try:
                while data := connection.recv(65536):
                    connection.sendall(data)
                connection.sendall(b"bye")
            except OSError:
                pass


def dial(listen):
    host, _, port = listen.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=DEADLINE)


def read_all(connection):
    """All bytes up to the end, and whether that was a reset."""
    data = b""
    try:
        while more := connection.recv(65536):
            data += more
    except ConnectionResetError:
        return data, True
    return data, False


class Control:
    def __init__(self, port):
        self.port = port

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)
        try:
            if body is not None and not isinstance(body, (str, bytes)):
                body = json.dumps(body)
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            content = answer.read()
            self.headers = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, json.loads(content) if content else None
        finally:
            connection.close()


class ToxiproxyTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster().start()
        cls.control = Control(cls.cluster.control_port)
        cls.echo = Echo()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()

    def tearDown(self):
        for name, proxy in self.ask("GET", "/proxies")[1].items():
            if "->" not in name:
                self.ask("DELETE", f"/proxies/{quote(name, '')}")
        self.ask("POST", "/reset")

    def ask(self, *arguments, **options):
        return self.control.ask(*arguments, **options)

    def refused(self, status, error, *arguments, **options):
        got, body = self.ask(*arguments, **options)
        self.assertEqual((got, body["status"]), (status, status), body)
        self.assertIn(error, body["error"])

    def proxy(self, name="p", **fields):
        status, made = self.ask("POST", "/proxies", {"name": name, "listen": "127.0.0.1:0",
                                                     "upstream": self.echo.address, **fields})
        self.assertEqual(status, 201, made)
        return made

    def toxic(self, kind, stream="downstream", proxy="p", toxicity=1.0, **attributes):
        status, made = self.ask("POST", f"/proxies/{proxy}/toxics",
                                {"type": kind, "stream": stream, "toxicity": toxicity,
                                 "attributes": attributes})
        self.assertEqual(status, 200, made)
        return made

    # ---- Routes and shapes ----

    def test_version(self):
        status, body = self.ask("GET", "/version")
        self.assertEqual(status, 200)
        self.assertRegex(body["version"], r"^\d+\.\d+\.\d+")

    def test_every_link_is_a_proxy(self):
        status, proxies = self.ask("GET", "/proxies")
        self.assertEqual(status, 200)
        self.assertEqual(set(proxies), {f"{a}->{b}" for a in (USA, EUROPE, JAPAN)
                                        for b in (USA, EUROPE, JAPAN) if a != b})
        for name, proxy in proxies.items():
            self.assertEqual(set(proxy), {"name", "listen", "upstream", "enabled", "toxics"})
            self.assertEqual(proxy["name"], name)
            self.assertTrue(proxy["enabled"])
            self.assertEqual(proxy["toxics"], [])
            to = name.partition("->")[2]
            self.assertEqual(proxy["upstream"], f"127.0.0.1:{self.cluster.port(to)}")
            self.assertEqual(self.ask("GET", "/proxies/" + quote(name, ""))[1], proxy)

    def test_a_proxys_life(self):
        made = self.proxy("a/b c")
        self.assertTrue(made["listen"].startswith("127.0.0.1:"))
        self.assertFalse(made["listen"].endswith(":0"))
        path = "/proxies/a%2Fb%20c"
        self.assertEqual(self.ask("GET", path), (200, made))
        self.refused(409, "proxy already exists", "POST", "/proxies", made)
        with dial(made["listen"]) as connection:
            connection.sendall(b"hi")
            self.assertEqual(connection.recv(2), b"hi")
            for method in ("PATCH", "POST"):
                status, changed = self.ask(method, path, {"enabled": False})
                self.assertEqual((status, changed), (200, {**made, "enabled": False}))
            self.assertEqual(read_all(connection)[0], b"")
        with self.assertRaises(ConnectionRefusedError):
            dial(made["listen"])
        self.assertEqual(self.ask("PATCH", path, {"enabled": True}), (200, made))
        with dial(made["listen"]) as connection:
            connection.sendall(b"hi")
            self.assertEqual(connection.recv(2), b"hi")
            other = Echo()
            status, moved = self.ask("PATCH", path, {"upstream": other.address})
            self.assertEqual((status, moved["upstream"]), (200, other.address))
            self.assertEqual(read_all(connection)[0], b"")
        self.assertEqual(self.ask("DELETE", path), (204, None))
        self.refused(404, "proxy not found", "GET", path)
        self.refused(404, "proxy not found", "DELETE", path)

    def test_refusals_of_proxies(self):
        self.refused(400, "missing required field: name", "POST", "/proxies", {"upstream": "a:1"})
        self.refused(400, "missing required field: upstream", "POST", "/proxies", {"name": "a"})
        self.refused(400, "bad request body", "POST", "/proxies", "{")
        self.refused(400, "bad request body", "POST", "/proxies", "")
        self.refused(400, "bad request body", "POST", "/proxies", [1])
        self.refused(400, "bad request body", "POST", "/proxies", {"name": 1, "upstream": "a:1"})
        self.refused(400, "bad request body", "POST", "/proxies",
                     {"name": "a", "upstream": "a:1", "enabled": "yes"})
        self.refused(400, "listen", "POST", "/proxies",
                     {"name": "a", "listen": "127.0.0.1:99999", "upstream": "a:1"})
        self.refused(400, "bad request body", "POST", "/proxies", "[" * 100000)
        self.refused(500, "in use", "POST", "/proxies",
                     {"name": "a", "upstream": "a:1", "listen": self.echo.address})
        self.refused(404, "proxy not found", "GET", "/proxies/a")
        self.refused(405, "method not allowed", "PUT", "/proxies")
        self.refused(404, "no such route", "GET", "/nothing")
        self.refused(404, "", "GET", "/proxies/%")
        self.refused(404, "", "GET", "/proxies/%00")
        self.refused(404, "", "GET", "/proxies/" + "x" * 5000)
        self.refused(404, "", "GET", "/" + "a/" * 100)

    def test_a_link_stays(self):
        path = "/proxies/" + quote(LINK, "")
        self.refused(403, "link of this cluster", "DELETE", path)
        self.refused(403, "link of this cluster", "PATCH", path, {"upstream": "127.0.0.1:1"})
        status, changed = self.ask("PATCH", path, {"enabled": False})
        self.assertEqual((status, changed["enabled"]), (200, False))
        links = {(link["from"], link["to"]): link for link in self.cluster.status()["links"]}
        self.assertEqual(links[USA, EUROPE]["state"], "cut")
        self.assertEqual(links[EUROPE, USA]["state"], "up")
        self.assertEqual(self.ask("POST", "/reset"), (204, None))
        self.assertEqual({link["state"] for link in self.cluster.status()["links"]}, {"up"})

    def test_a_toxics_life(self):
        self.proxy()
        path = "/proxies/p/toxics"
        self.assertEqual(self.ask("GET", path), (200, []))
        made = self.toxic("latency", latency=5)
        self.assertEqual(made, {"name": "latency_downstream", "type": "latency", "stream": "downstream",
                                "toxicity": 1, "attributes": {"latency": 5, "jitter": 0}})
        self.refused(409, "toxic already exists", "POST", path, {"type": "latency"})
        self.refused(400, "stream was invalid, can be either upstream or downstream", "POST", path,
                     {"type": "latency", "stream": "sideways"})
        self.refused(400, "invalid toxic type", "POST", path, {"type": "laser"})
        self.refused(400, "bad request body", "POST", path, {"type": "latency", "attributes": 1})
        up = self.toxic("slicer", "upstream", average_size=3, size_variation=1, delay=1)
        self.assertEqual(self.ask("GET", path), (200, [up, made]))
        self.assertEqual(self.ask("GET", "/proxies/p")[1]["toxics"], [up, made])
        for method, jitter in (("PATCH", 2), ("POST", 3)):
            status, changed = self.ask(method, path + "/latency_downstream",
                                       {"attributes": {"jitter": jitter}, "toxicity": 0.5})
            self.assertEqual((status, changed["attributes"], changed["toxicity"]),
                             (200, {"latency": 5, "jitter": jitter}, 0.5))
        self.assertEqual(self.ask("GET", path + "/latency_downstream"), (200, changed))
        self.assertEqual(self.ask("DELETE", path + "/latency_downstream"), (204, None))
        for method in ("GET", "DELETE"):
            self.refused(404, "toxic not found", method, path + "/latency_downstream")
        self.refused(404, "toxic not found", "PATCH", path + "/latency_downstream", {})
        self.refused(404, "proxy not found", "GET", "/proxies/q/toxics")

    def test_populate(self):
        kept, moved = self.proxy("kept"), self.proxy("moved")
        self.toxic("latency", proxy="kept", latency=1)
        self.toxic("latency", proxy="moved", latency=1)
        other = Echo()
        status, body = self.ask("POST", "/populate", [
            {"name": "kept", "listen": kept["listen"], "upstream": kept["upstream"]},
            {"name": "moved", "listen": moved["listen"], "upstream": other.address},
            {"name": "new", "upstream": other.address, "enabled": False}])
        self.assertEqual(status, 201)
        first, second, third = body["proxies"]
        self.assertEqual(len(first["toxics"]), 1)
        self.assertEqual((second["toxics"], second["upstream"]), ([], other.address))
        self.assertEqual((third["name"], third["enabled"]), ("new", False))
        for bad, error in (
                ([{"upstream": "a:1"}], "missing required field: name at proxy 1"),
                ([{"name": "x", "upstream": "a:1"}, {"name": "y"}],
                 "missing required field: upstream at proxy 2"),
                ([{"name": "x", "upstream": "a:1"}, {"name": "x", "upstream": "a:1"}], "duplicate"),
                ({}, "bad request body")):
            self.refused(400, error, "POST", "/populate", bad)
            self.assertNotIn("x", self.ask("GET", "/proxies")[1])

    def test_reset_enables_all_and_removes_every_toxic(self):
        made = self.proxy(enabled=False)
        self.toxic("timeout", timeout=0)
        self.cluster.command("link", "delay", USA, EUROPE, "5")
        self.cluster.command("region", "isolate", JAPAN)
        self.assertEqual(self.ask("POST", "/reset"), (204, None))
        for proxy in self.ask("GET", "/proxies")[1].values():
            self.assertTrue(proxy["enabled"])
            self.assertEqual(proxy["toxics"], [])
        self.assertTrue(made["name"] in self.ask("GET", "/proxies")[1])
        self.assertFalse(any(region["isolated"] for region in self.cluster.status()["regions"]))

    def test_web_pages_are_refused_and_answers_are_numbered(self):
        ids = set()
        for _ in range(3):
            self.ask("GET", "/proxies")
            ids.add(self.control.headers["x-toxiproxy-request-id"])
        self.assertEqual(len(ids), 3)
        for headers in ({"User-Agent": "Mozilla/5.0 (X11)"}, {"Origin": "http://evil.example"},
                        {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
                        {"Host": "evil.example:8474"}):
            for method, path in (("GET", "/proxies"), ("POST", "/reset"), ("GET", "/v1/status"),
                                 ("POST", f"/v1/regions/{USA}/kill")):
                if path != "/v1/status" or "User-Agent" not in headers:  # the console is a browser, too
                    self.refused(403, "", method, path, headers=headers)

    # ---- What toxics do ----

    def test_latency_delays_and_loses_nothing(self):
        listen = self.proxy()["listen"]
        self.toxic("latency", latency=300)
        with dial(listen) as connection:
            started = time.monotonic()
            connection.sendall(b"x" * 1000)
            connection.shutdown(socket.SHUT_WR)
            data, reset = read_all(connection)
            self.assertGreaterEqual(time.monotonic() - started, 0.3)
            self.assertEqual((data, reset), (b"x" * 1000 + b"bye", False))

    def test_bandwidth_limits(self):
        listen = self.proxy()["listen"]
        self.toxic("bandwidth", rate=100)
        with dial(listen) as connection:
            started = time.monotonic()
            connection.sendall(b"x" * 50000)
            connection.shutdown(socket.SHUT_WR)
            data, _ = read_all(connection)
            self.assertGreaterEqual(time.monotonic() - started, 0.49)
            self.assertEqual(len(data), 50003)

    def test_limit_data_closes(self):
        listen = self.proxy()["listen"]
        self.toxic("limit_data", bytes=7)
        with dial(listen) as connection:
            connection.sendall(b"0123456789")
            self.assertEqual(read_all(connection)[0], b"0123456")

    def test_timeout_swallows(self):
        listen = self.proxy()["listen"]
        self.toxic("timeout", "upstream", timeout=200)
        with dial(listen) as connection:
            connection.sendall(b"x")
            started = time.monotonic()
            self.assertEqual(read_all(connection)[0], b"")
            self.assertGreaterEqual(time.monotonic() - started, 0.1)
        self.ask("PATCH", "/proxies/p/toxics/timeout_upstream", {"attributes": {"timeout": 0}})
        with dial(listen) as connection:
            connection.sendall(b"x")
            self.ask("DELETE", "/proxies/p/toxics/timeout_upstream")  # ends the connection
            self.assertEqual(read_all(connection)[0], b"")

    def test_reset_peer_resets(self):
        listen = self.proxy()["listen"]
        self.toxic("reset_peer", "upstream", timeout=0)
        with dial(listen) as connection:
            connection.sendall(b"x")
            self.assertEqual(read_all(connection), (b"", True))

    def test_slow_close_and_slicer(self):
        listen = self.proxy()["listen"]
        self.toxic("slicer", average_size=10, size_variation=4, delay=10)
        self.toxic("slow_close", delay=250)
        with dial(listen) as connection:
            data = bytes(range(256)) * 4
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            started = time.monotonic()
            self.assertEqual(read_all(connection), (data + b"bye", False))
            self.assertGreaterEqual(time.monotonic() - started, 0.25)

    def test_toxics_reach_open_connections_and_leave_them(self):
        listen = self.proxy()["listen"]
        with dial(listen) as connection:
            connection.sendall(b"a")
            self.assertEqual(connection.recv(1), b"a")
            self.toxic("latency", latency=3600000)
            connection.sendall(b"b")
            self.assertEqual(self.ask("DELETE", "/proxies/p/toxics/latency_downstream")[0], 204)
            self.assertEqual(connection.recv(1), b"b")

    def test_toxicity_is_a_share_of_connections(self):
        listen = self.proxy()["listen"]
        self.toxic("limit_data", "downstream", toxicity=0.5, bytes=1)
        hit = 0
        for _ in range(200):
            with dial(listen) as connection:
                connection.sendall(b"xy")
                connection.shutdown(socket.SHUT_WR)
                hit += read_all(connection)[0] != b"xybye"
        self.assertTrue(50 < hit < 150, hit)  # seven standard deviations

    def test_links_carry_toxics(self):
        path = f"/proxies/{quote(LINK, '')}/toxics"
        self.cluster.command("link", "delay", USA, EUROPE, "120")
        self.assertEqual(self.ask("GET", path)[1],
                         [{"name": "delay", "type": "latency", "stream": "upstream", "toxicity": 1,
                           "attributes": {"latency": 120, "jitter": 0}}])
        links = {(link["from"], link["to"]): link for link in self.cluster.status()["links"]}
        self.assertEqual(links[USA, EUROPE]["delay_ms"], 120)
        self.assertEqual(links[EUROPE, USA]["delay_ms"], 0)
        self.cluster.command("link", "delay", USA, EUROPE, "0")
        self.assertEqual(self.ask("GET", path)[1], [])

    def test_a_cut_link_counts_what_it_refuses(self):
        self.cluster.cut(USA, EUROPE)
        listen = self.ask("GET", "/proxies/" + quote(LINK, ""))[1]["listen"]

        def refused():
            links = self.cluster.status()["links"]
            return next(link["blocked_connections"] for link in links
                        if (link["from"], link["to"]) == (USA, EUROPE))
        before = refused()
        try:
            with dial(listen) as connection:
                self.assertEqual(read_all(connection)[0], b"")
        except ConnectionResetError:
            pass
        wait_until("the refusal is counted", lambda: refused() > before)


if __name__ == "__main__":
    main()
