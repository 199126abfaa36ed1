# SPDX-License-Identifier: Apache-2.0
"""`tidemark` itself: regions that are killed, frozen and started again, links that are cut one way, the front
door, and everything that is refused, with the exit code and the words that a person gets.
"""

import http.client
import json
import os
import select
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from cluster import (DEADLINE, EUROPE, JAPAN, TIDEMARK, USA, ApiError, Client, Cluster, ClusterTest,
                     Unknown, authorization, children_of, free_ports, is_running, item, main, wait_until)


def run(*arguments, **environment):
    return subprocess.run([TIDEMARK, *arguments], capture_output=True, text=True, timeout=DEADLINE,
                          check=False, env={**os.environ, **environment})


def get_request(region, table="nothing-here"):
    body = json.dumps({"TableName": table}).encode()
    head = (f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
            "Content-Type: application/x-amz-json-1.0\r\nX-Amz-Target: DynamoDB_20120810.DescribeTable\r\n"
            f"X-Amz-Date: 20260101T000000Z\r\nAuthorization: {authorization(region)}\r\n\r\n")
    return head.encode() + body


class Regions(ClusterTest):
    def tearDown(self):
        for region in self.cluster.status()["regions"]:
            if region["state"] == "paused":
                self.cluster.command("region", "resume", region["name"])
            if region["state"] == "dead":
                self.cluster.command("region", "restart", region["name"])
            if region["isolated"]:
                self.cluster.command("region", "rejoin", region["name"])

    def region(self, name):
        return next(r for r in self.cluster.status()["regions"] if r["name"] == name)

    def links(self):
        return {(link["from"], link["to"]): link["state"] for link in self.cluster.status()["links"]}

    def test_kill_and_restart(self):
        self.client(EUROPE).create(self.table)
        self.client(EUROPE).put(self.table, pk="a", v=1)
        before = self.region(EUROPE)["pid"]
        told = self.cluster.command("region", "kill", EUROPE, "--json")
        self.assertEqual((told["state"], told["pid"]), ("dead", None))
        self.assertFalse(is_running(before))
        for through_door in (True, False):
            with self.assertRaises(Unknown):
                self.client(EUROPE, through_door=through_door, timeout=DEADLINE).describe(self.table)
        self.cluster.command("region", "kill", EUROPE, status=1)
        self.cluster.command("region", "pause", EUROPE, status=1)
        told = self.cluster.command("region", "restart", EUROPE, "--json")
        self.assertEqual(told["state"], "running")
        self.assertNotEqual(told["pid"], before)
        for through_door in (True, False):
            client = self.client(EUROPE, through_door=through_door, timeout=DEADLINE)
            self.assertEqual(client.get(self.table, pk="a"), item(pk="a", v=1))
        again = self.cluster.command("region", "restart", EUROPE, "--json")  # one that is running
        self.assertNotEqual(again["pid"], told["pid"])
        self.assertFalse(is_running(told["pid"]))

    def test_one_that_ends_by_itself_is_told_and_left_alone(self):
        pid = self.region(JAPAN)["pid"]
        os.kill(pid, signal.SIGKILL)
        wait_until("it is shown dead", lambda: self.region(JAPAN)["state"] == "dead")
        self.assertIn(f"region {JAPAN} was ended by signal 9", self.cluster.log_tail())
        self.assertEqual(self.region(JAPAN)["pid"], None)

    def test_pause_hangs_and_resume_answers(self):
        for port in (self.cluster.front, self.cluster.port(EUROPE)):
            self.cluster.command("region", "pause", EUROPE)
            self.cluster.command("region", "pause", EUROPE)  # twice is once
            with socket.create_connection(("127.0.0.1", port), DEADLINE) as connection:
                connection.sendall(get_request(EUROPE))
                self.assertEqual(select.select([connection], [], [], 0.2)[0], [])
                self.assertEqual(self.region(EUROPE)["state"], "paused")
                self.assertIsNone(self.region(EUROPE)["conflicts"])
                self.assertEqual(self.cluster.command("region", "resume", EUROPE, "--json")["state"],
                                 "running")
                self.assertTrue(connection.recv(100).startswith(b"HTTP/1.1 400"))

    def test_a_paused_one_can_be_killed(self):
        self.cluster.command("region", "pause", EUROPE)
        self.assertEqual(self.cluster.command("region", "kill", EUROPE, "--json")["state"], "dead")

    def test_a_silent_one_is_shown_and_holds_nobody_up(self):
        pid = self.region(JAPAN)["pid"]
        os.kill(pid, signal.SIGSTOP)
        try:
            shown = {r["name"]: r for r in self.cluster.status()["regions"]}
            self.assertEqual(shown[JAPAN]["state"], "running")
            self.assertIsNone(shown[JAPAN]["conflicts"])
            self.assertIsNotNone(shown[USA]["conflicts"])
            self.assertIn("gives no answer", self.cluster.command("status"))
        finally:
            os.kill(pid, signal.SIGCONT)

    def test_isolate_cuts_all_links_and_no_client(self):
        table = self.cluster.make_global(self.table)
        self.cluster.cut(USA, JAPAN)
        self.assertTrue(self.cluster.command("region", "isolate", EUROPE, "--json")["isolated"])
        cut = {pair for pair, state in self.links().items() if state == "cut"}
        self.assertEqual(cut, {(USA, JAPAN), (USA, EUROPE), (EUROPE, USA), (EUROPE, JAPAN), (JAPAN, EUROPE)})
        self.client(EUROPE).put(table, pk="a", v=1)
        self.assertIn(f"tidemark region rejoin {EUROPE}", self.cluster.command("link", "heal", USA, EUROPE))
        self.client(JAPAN).put(table, pk="b", v=2)
        wait_until("b is in the USA", lambda: self.client(USA).get(table, pk="b"))
        self.assertIsNone(self.client(USA).get(table, pk="a"))
        self.assertFalse(self.cluster.command("region", "rejoin", EUROPE, "--json")["isolated"])
        self.assertEqual({pair for pair, state in self.links().items() if state == "cut"}, {(USA, JAPAN)})
        wait_until("a is in the USA", lambda: self.client(USA).get(table, pk="a"))

    def test_a_cut_names_its_instant_and_acts_one_way(self):
        table = self.cluster.make_global(self.table)
        before = time.time() * 1000
        told = self.cluster.command("link", "cut", USA, EUROPE, "--json")
        self.assertTrue(before - 1 <= told["effective_ms"] <= time.time() * 1000)
        self.assertEqual((told["from"], told["to"], told["state"]), (USA, EUROPE, "cut"))
        self.client(USA).put(table, pk="a", v=1)
        self.client(EUROPE).put(table, pk="b", v=1)
        wait_until("a is in Japan", lambda: self.client(JAPAN).get(table, pk="a"))
        wait_until("b is in the USA", lambda: self.client(USA).get(table, pk="b"))
        self.assertIsNone(self.client(EUROPE).get(table, pk="a"))
        shown = [line for line in self.cluster.status()["replication"]
                 if (line["table"], line["from"], line["to"]) == (table, USA, EUROPE)]
        self.assertEqual([line["pending"] for line in shown], [1])
        self.cluster.heal(USA, EUROPE)
        wait_until("a is in Europe", lambda: self.client(EUROPE).get(table, pk="a"))

    def test_a_delay_is_one_way_too(self):
        table = self.cluster.make_global(self.table)
        self.cluster.command("link", "delay", USA, EUROPE, "400")
        started = time.monotonic()
        self.client(USA).put(table, pk="a", v=1)
        self.client(EUROPE).put(table, pk="b", v=1)
        wait_until("a is in Europe", lambda: self.client(EUROPE).get(table, pk="a"))
        self.assertGreaterEqual(time.monotonic() - started, 0.4)
        self.cluster.command("link", "delay", USA, EUROPE, "3600000")
        self.client(USA).put(table, pk="c", v=1)
        self.client(EUROPE).put(table, pk="d", v=1)
        wait_until("d is in the USA", lambda: self.client(USA).get(table, pk="d"))
        self.assertIsNone(self.client(EUROPE).get(table, pk="c"))
        self.cluster.command("link", "delay", USA, EUROPE, "0")
        wait_until("c is in Europe", lambda: self.client(EUROPE).get(table, pk="c"))

    def test_shape_of_status(self):
        self.cluster.make_global(self.table)
        status = self.cluster.status()
        self.assertEqual(set(status), {"regions", "links", "replication", "groups"})
        for region in status["regions"]:
            self.assertEqual(set(region), {"name", "kind", "state", "address", "pid", "isolated",
                                           "conflicts"})
            self.assertEqual(region["kind"], "region")
        self.assertEqual(len(status["links"]), 6)
        for line in status["replication"]:
            self.assertEqual(set(line), {"table", "from", "to", "pending", "oldest_ms", "lag_p50_ms",
                                         "lag_p99_ms"})
        pairs = {(line["from"], line["to"]) for line in status["replication"]
                 if line["table"] == self.table}
        self.assertEqual(len(pairs), 6)

    def test_unknown_words(self):
        control = ("--control", self.cluster.control)
        for words, code, told in (
                (("region", "kill", "eu-west-9"), 1, f"expected one of {USA}, {EUROPE}, {JAPAN}"),
                (("link", "cut", USA, "eu-west-9"), 1, "no region 'eu-west-9'"),
                (("link", "cut", USA, USA), 1, "two regions"),
                (("link", "sever", USA, EUROPE), 2, "came 'sever'"),
                (("link", "cut", USA), 2, "too few words"),
                (("link", "delay", USA, EUROPE), 2, "no delay"),
                (("link", "delay", USA, EUROPE, "soon"), 2, "came 'soon'"),
                (("region", "stop", USA), 2, "came 'stop'"),
                (("region", "kill"), 2, "no region"),
                (("region", "kill", "../x"), 2, "name of a region"),
                (("status", "now"), 2, "came 'now'"),
                (("region", "kill", USA, "--discard-damaged-store"), 2, "up or tidemark region restart"),
                (("status", "--discard-damaged-store"), 2, "up or tidemark region restart"),
                (("frobnicate",), 2, "came 'frobnicate'"),
                ((), 2, "Usage")):
            done = run(*words, *control)
            self.assertEqual(done.returncode, code, done)
            self.assertIn(told, done.stderr)
            self.assertEqual(done.stdout, "")
        self.assertEqual(run("status", TIDEMARK_CONTROL=self.cluster.control).returncode, 0)
        self.assertEqual(run("status", TIDEMARK_CONTROL=self.cluster.control[7:]).returncode, 0)

    # ---- The front door ----

    def through_door(self, region, host=None, body=b'{"TableName":"nothing-here"}'):
        headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Date": "20260101T000000Z",
                   "X-Amz-Target": "DynamoDB_20120810.DescribeTable"}
        if region:
            headers["Authorization"] = authorization(region)
        if host:
            headers["Host"] = host
        connection = http.client.HTTPConnection("127.0.0.1", self.cluster.front, timeout=DEADLINE)
        try:
            connection.request("POST", "/", body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), answer.getheader("x-tidemark-region")
        finally:
            connection.close()

    def test_the_door_picks_the_region(self):
        for region in self.regions:
            self.client(region).create(f"{self.table}-{region}")
        for region in self.regions:
            tables = self.client(region, through_door=True).call("ListTables")["TableNames"]
            self.assertIn(f"{self.table}-{region}", tables)
            body = json.dumps({"TableName": f"{self.table}-{region}"}).encode()
            for host in (f"dynamodb.{region}.amazonaws.com", f"123456789012.ddb.{region}.amazonaws.com",
                         f"{region}.localhost:{self.cluster.front}"):
                status, answer, header = self.through_door(None, host, body)
                self.assertEqual((status, header), (200, None), answer)
                self.assertEqual(self.through_door(region, host, body)[0], 200)
        status, _, header = self.through_door(None, None, body=json.dumps(
            {"TableName": f"{self.table}-{USA}"}).encode())
        self.assertEqual((status, header), (200, f"{USA} (assumed)"))

    def test_the_door_refuses_in_words(self):
        status, answer, _ = self.through_door(EUROPE, f"dynamodb.{USA}.amazonaws.com")
        self.assertEqual(status, 400)
        for word in ("InvalidSignatureException", EUROPE, USA):
            self.assertIn(word, answer)
        for unknown in ("sa-east-1", "localhost"):
            status, answer, _ = self.through_door(unknown)
            self.assertEqual(status, 400)
            for word in ("UnrecognizedClientException", unknown, *self.regions):
                self.assertIn(word, answer)

    def test_large_bodies_pass(self):
        table = self.client(USA, through_door=True).create(self.table)
        client = self.client(USA, through_door=True)
        text = "x" * 390000
        client.put(table, pk="a", v=text)
        self.assertEqual(client.get(table, pk="a"), item(pk="a", v=text))
        many = [{"PutRequest": {"Item": item(pk=str(i), v=text)}} for i in range(25)]
        self.assertEqual(client.call("BatchWriteItem", RequestItems={table: many})["UnprocessedItems"], {})

    def test_requests_of_clients_that_left_are_given_up(self):
        self.cluster.command("region", "pause", EUROPE)
        for _ in range(300):  # more than the door's connections to a region
            with socket.create_connection(("127.0.0.1", self.cluster.front), DEADLINE) as connection:
                connection.sendall(get_request(EUROPE))
        self.cluster.command("region", "resume", EUROPE)
        with self.assertRaises(ApiError):
            self.client(EUROPE, through_door=True).describe("nothing-here")


class Starting(unittest.TestCase):
    def refused(self, code, told, *options):
        done = run("up", *options)
        self.assertEqual(done.returncode, code, done)
        self.assertIn(told, done.stderr)
        self.assertNotIn("ready", done.stdout)

    def test_what_is_refused_before_anything_starts(self):
        self.refused(2, "us-east-9", "--regions", "us-east-9")
        self.refused(2, "twice", "--regions", f"{USA},{USA}")
        self.refused(2, "under regions only", "--witness", EUROPE)
        self.refused(2, "0 to 65535", "--port", "70000")
        self.refused(2, "fsync", "--durability", "never")
        self.refused(2, "hybrid", "--clock", "sundial")
        self.refused(2, "IP:PORT", "--control", "here")
        self.refused(2, "/nonexistent/file", "--config", "/nonexistent/file")
        self.refused(2, "--bogus", "--bogus")
        self.refused(2, "options only", "now")
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
            config.write("port: 8000\nregion: [us-east-1]\n")
            config.flush()
            self.refused(2, "line: 2", "--config", config.name)
        self.refused(1, "can't be made", "--data", "/proc/nothing/here")

    def test_ports_in_use_are_named(self):
        first = free_ports(4)
        for taken in range(3):
            with socket.create_server(("127.0.0.1", first + taken)):
                self.refused(1, str(first + taken), "--regions", f"{USA},{EUROPE}", "--port", str(first),
                             "--control", f"127.0.0.1:{first + 3}")
        with socket.create_server(("127.0.0.1", first + 3)):
            self.refused(1, str(first + 3), "--regions", USA, "--port", str(first), "--control",
                         f"127.0.0.1:{first + 3}")

    def test_one_data_directory_one_cluster(self):
        with Cluster([USA]) as cluster:
            first = free_ports(3)
            self.refused(1, "in use by another", "--regions", USA, "--port", str(first), "--control",
                         f"127.0.0.1:{first + 2}", "--data", os.path.join(cluster.data, "regions"))

    def test_data_outlives_the_cluster_only_when_asked(self):
        with tempfile.TemporaryDirectory() as data:
            cluster = Cluster([USA], data=data)
            with cluster:
                cluster.client(USA).create("kept")
                cluster.client(USA).put("kept", pk="a", v=1)
            again = Cluster([USA], data=data)
            with again:
                self.assertEqual(again.client(USA).get("kept", pk="a"), item(pk="a", v=1))
        with tempfile.TemporaryDirectory() as parent:
            process, told = self.start_bare("--json", TMPDIR=parent)
            self.assertTrue(told["data"].startswith(parent))
            self.assertTrue(os.path.isdir(told["data"]))
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(DEADLINE), 0)
            self.assertEqual(os.listdir(parent), [])
            process.stdout.close()

    def start_bare(self, *options, **environment):
        """With free ports of the system's choice; gives the process and its first screen as JSON."""
        process = subprocess.Popen(
            [TIDEMARK, "up", "--port", "0", "--control", "127.0.0.1:0", "--durability", "os", *options],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, **environment})
        told = json.loads(process.stdout.readline())
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process, told

    def test_free_ports_and_settings_from_a_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
            config.write(f"regions: [{EUROPE}, {USA}]\nport: 1\nlinks:\n"
                         f"  - {{from: {EUROPE}, to: {USA}, delay_ms: 30, jitter_ms: 2}}\n")
            config.flush()
            process, told = self.start_bare("--json", "--config", config.name)
        try:
            self.assertEqual([region["name"] for region in told["regions"]], [EUROPE, USA])
            port = int(told["endpoint"].rpartition(":")[2])
            self.assertEqual(Client(USA, port).call("ListTables"), {"TableNames": []})
            done = run("status", "--json", "--control", told["control"])
            delays = {(link["from"], link["to"]): link["delay_ms"]
                      for link in json.loads(done.stdout)["links"]}
            self.assertEqual(delays, {(EUROPE, USA): 30, (USA, EUROPE): 0})
        finally:
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(DEADLINE), 0)
            process.stdout.close()

    def test_nothing_outlives_a_killed_harness(self):
        with tempfile.TemporaryDirectory() as parent:
            process, _ = self.start_bare("--json", TMPDIR=parent)
            children = children_of(process.pid)
            self.assertEqual(len(children), 3)
            process.kill()
            process.wait()
            process.stdout.close()
            wait_until("all are gone", lambda: not any(is_running(child) for child in children))

    def test_a_paused_region_is_stopped_too(self):
        process, told = self.start_bare("--json")
        self.assertEqual(run("region", "pause", USA, "--control", told["control"]).returncode, 0)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(DEADLINE), 0)
        process.stdout.close()

    def test_no_cluster_answers(self):
        port = free_ports(1)
        done = run("status", "--control", f"127.0.0.1:{port}")
        self.assertEqual(done.returncode, 1)
        self.assertIn("tidemark up", done.stderr)
        self.assertEqual(run("status", "--control", "nonsense").returncode, 2)

    def test_version_and_help(self):
        self.assertRegex(run("version").stdout, r"^tidemark \d+\.\d+\.\d+\n$")
        self.assertIn("version", json.loads(run("version", "--json").stdout))
        for words in (("help",), ("--help",)):
            done = run(*words)
            self.assertEqual(done.returncode, 0)
            self.assertIn("region isolate|rejoin", done.stdout)


if __name__ == "__main__":
    main()
