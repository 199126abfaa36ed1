#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The witness process in a cluster, and damaged stores: who takes requests, what status shows, which verbs
work, and what a Region does that finds a turned bit in its files.
"""

import glob
import json
import os
import re
import signal
import subprocess
import tempfile

from cluster import (DEADLINE, EUROPE, TIDEMARK, USA, ApiError, Client, Cluster, ClusterTest, item, main,
                     wait_until)

WITNESS = "us-west-2"


class Witness(ClusterTest):
    regions, witnesses = (USA, EUROPE), (WITNESS,)

    def site(self, name=WITNESS):
        return next(r for r in self.cluster.status()["regions"] if r["name"] == name)

    def get(self, path):
        status, _, content = Client(WITNESS, self.cluster.port(WITNESS)).http("GET", path)
        self.assertEqual(status, 200, content)
        return content.decode()

    def test_it_takes_no_requests(self):
        for through_door in (True, False):
            client = self.client(WITNESS, through_door=through_door, timeout=DEADLINE)
            error = self.refused("UnknownOperationException", "witness", client.call, "ListTables")
            self.assertIn("has a replica", error.message)
            self.refused("UnknownOperationException", "witness", client.call, "GetItem",
                         TableName="orders", Key=item(pk="a"))
        self.assertIn(f"{USA}, {EUROPE}", self.refused(
            "UnknownOperationException", "no items", self.client(WITNESS, through_door=True,
                                                                 timeout=DEADLINE).call, "ListTables").message)
        # Nobody is sent there by mistake: the door names the Regions that serve.
        error = self.refused("UnrecognizedClientException", "not in this cluster", self.client(
            "sa-east-1", through_door=True, timeout=DEADLINE).call, "ListTables")
        self.assertNotIn(WITNESS, error.message)

    def client(self, region=USA, **options):
        if region == "sa-east-1":
            return Client(region, self.cluster.front)
        return super().client(region, **options)

    def test_it_tells_of_itself(self):
        self.assertEqual(self.get("/"), f"healthy: witness in {WITNESS}")
        self.assertIn("tidemark_strong_groups ", self.get("/metrics"))
        told = json.loads(self.get("/tidemark/status"))
        self.assertEqual((told["kind"], told["tables"]), ("witness", []))
        self.assertEqual(self.cluster.region_status(USA)["kind"], "region")

    def test_status_shows_it(self):
        status = self.cluster.status()
        self.assertEqual({r["name"]: r["kind"] for r in status["regions"]},
                         {USA: "region", EUROPE: "region", WITNESS: "witness"})
        self.assertEqual(len(status["links"]), 6)
        self.assertIn((EUROPE, WITNESS), {(link["from"], link["to"]) for link in status["links"]})
        self.assertRegex(self.cluster.command("status"), rf"{WITNESS} +witness +running")
        self.assertTrue(any(re.search(rf"{WITNESS} .*witness", line) for line in self.cluster.output))

    def groups(self, table):
        return {(g["region"], g["partition"]): g for g in self.cluster.status()["groups"]
                if g["table"] == table}

    def test_status_of_a_strong_table(self):
        table = self.cluster.make_strong(self.table)
        for i in range(20):
            self.client(USA).put(table, pk=str(i), v=i)
            self.assertEqual(self.client(EUROPE).get(table, pk=str(i)), item(pk=str(i), v=i))
        groups = self.groups(table)
        self.assertEqual(set(groups), {(r, p) for r in (USA, EUROPE, WITNESS) for p in range(4)})
        for (region, partition), group in groups.items():
            self.assertEqual(set(group), {"table", "partition", "region", "leader", "leads", "term", "commit",
                                          "applied", "last", "standing", "witness", "pending", "members"})
            self.assertEqual((group["standing"], group["witness"]), ("full", region == WITNESS))
            self.assertIn(group["leader"], (USA, EUROPE))
            self.assertEqual(group["leads"], group["leader"] == region)
            self.assertEqual(group["leader"], groups[USA, partition]["leader"])
        shown = self.cluster.command("status")
        self.assertRegex(shown, rf"{table} .* {USA}, {EUROPE}, {WITNESS} \(witness\)")
        for region in (USA, WITNESS):
            _, _, metrics = Client(region, self.cluster.port(region)).http("GET", "/metrics")
            self.assertRegex(metrics.decode(),
                             rf'tidemark_strong_leader_known{{TableName="{table}",Partition="3"}} 1\n')
        self.assertRegex(Client(USA, self.cluster.port(USA)).http("GET", "/metrics")[2].decode(),
                         r'tidemark_strong_requests_total{outcome="committed"} [1-9]')

    def test_who_is_behind(self):
        table = self.cluster.make_strong(self.table)
        self.cluster.command("region", "isolate", EUROPE)
        for i in range(20):
            wait_until("the other two serve", lambda: self.client(USA).put(table, pk=str(i), v=i) or True)
        shown = self.cluster.command("status")
        self.assertRegex(shown, rf"{table} +{USA} 4 .* {EUROPE} by \d+")
        self.cluster.command("region", "rejoin", EUROPE)
        wait_until("Europe has caught up", lambda: self.client(EUROPE).get(table, pk="19"))

    def test_verbs_work_on_it(self):
        self.assertEqual(self.cluster.command("region", "kill", WITNESS, "--json")["state"], "dead")
        self.refused("UnknownOperationException", "witness",
                     self.client(WITNESS, through_door=True, timeout=DEADLINE).call, "ListTables")
        self.assertEqual(self.cluster.command("region", "restart", WITNESS, "--json")["state"], "running")
        self.cluster.command("region", "pause", WITNESS)
        self.assertEqual(self.site()["state"], "paused")
        self.cluster.command("region", "resume", WITNESS)
        self.cluster.command("region", "isolate", WITNESS)
        cut = {(link["from"], link["to"]) for link in self.cluster.status()["links"] if link["state"] == "cut"}
        self.assertEqual(cut, {(USA, WITNESS), (WITNESS, USA), (EUROPE, WITNESS), (WITNESS, EUROPE)})
        self.cluster.command("region", "rejoin", WITNESS)
        self.cluster.command("link", "cut", USA, WITNESS)
        self.cluster.command("link", "heal", USA, WITNESS)

    def test_eventual_tables_have_no_use_for_it(self):
        table = self.cluster.make_global(self.table)
        self.client(USA).put(table, pk="a", v=1)
        wait_until("a is in Europe", lambda: self.client(EUROPE).get(table, pk="a"))
        with self.assertRaises(ApiError):
            self.client(USA).call("UpdateTable", TableName=table,
                                  ReplicaUpdates=[{"Create": {"RegionName": WITNESS}}])
        self.assertEqual(self.client(USA).get(table, pk="a"), item(pk="a", v=1))


def turn_bit(path):
    with open(path, "r+b") as file:
        content = file.read()
        file.seek(len(content) // 4)
        file.write(bytes([content[len(content) // 4] ^ 0x10]))


class Damage(ClusterTest):
    regions, witnesses = (USA, EUROPE), (WITNESS,)

    def files(self, region, pattern):
        return sorted(f for f in glob.glob(os.path.join(self.cluster.data, "regions", region, pattern))
                      if os.path.getsize(f) > 20)

    def log(self):
        return self.cluster.log_tail(10000)

    def test_a_region_refuses_until_it_may_discard(self):
        table = self.cluster.make_global(self.table)
        alone = self.client(EUROPE).create(self.table + "-alone")
        for i in range(50):
            self.client(EUROPE).put(table, pk=str(i), v=i)
        self.cluster.wait_converged(table)
        # First its log; then, as that start turned the log into a table and wrote a new one, its tables.
        for pattern in ("*.log", "*.ldb"):
            if pattern == "*.ldb":
                self.client(EUROPE).put(table, pk="one more", v=1)
                self.cluster.command("region", "restart", EUROPE)
            self.cluster.command("region", "kill", EUROPE)
            damaged = self.files(EUROPE, pattern)
            self.assertTrue(damaged)
            for path in damaged:
                turn_bit(path)
            if pattern == "*.log":
                self.cluster.command("region", "restart", EUROPE, status=1)
                wait_until("the log says what to do", lambda: re.search(
                    rf"the store is damaged: .*{EUROPE}.*--discard-damaged-store", self.log()))
            told = self.cluster.command("region", "restart", EUROPE, "--discard-damaged-store", "--json")
            self.assertEqual(told["state"], "running")
            count = 1 if pattern == "*.log" else 2
            self.assertTrue(os.path.isdir(os.path.join(self.cluster.data, "regions",
                                                       f"{EUROPE}.damaged-{count}")))
            wait_until("the USA has sent its items again", lambda: len(
                self.client(EUROPE).scan(table)) >= 50)
            with self.assertRaises(ApiError):
                self.client(EUROPE).describe(alone)
        # Not asked for any more: it starts on what it has.
        self.cluster.command("region", "restart", EUROPE)
        self.cluster.wait_converged(table)

    def test_a_strong_table_is_rebuilt(self):
        table = self.cluster.make_strong(self.table)
        for i in range(50):
            self.client(EUROPE).put(table, pk=str(i), v=i)
        self.cluster.command("region", "kill", EUROPE)
        for path in self.files(EUROPE, "*.log"):
            turn_bit(path)
        self.cluster.command("region", "restart", EUROPE, "--discard-damaged-store")
        self.client(USA).put(table, pk="50", v=50)
        for i in range(51):
            wait_until(f"{i} is there again", lambda: self.client(EUROPE).get(table, pk=str(i)))

    def test_a_witness_discards_by_itself(self):
        table = self.cluster.make_strong(self.table)
        self.client(USA).put(table, pk="a", v=1)
        self.cluster.command("region", "kill", WITNESS)
        for path in self.files(WITNESS, "*.log"):
            turn_bit(path)
        self.assertEqual(self.cluster.command("region", "restart", WITNESS, "--json")["state"], "running")
        self.assertIn("set aside as", self.log())
        self.assertTrue(os.path.isdir(os.path.join(self.cluster.data, "regions", f"{WITNESS}.damaged-1")))
        wait_until("it is a full member again", lambda: [
            group["standing"] for group in self.cluster.status()["groups"]
            if group["region"] == WITNESS and group["table"] == table] == ["full"] * 4)
        # It counts again: with Europe gone, the other two go on.
        self.cluster.command("region", "kill", EUROPE)
        wait_until("the USA and the witness serve", lambda: self.client(USA).put(table, pk="b", v=2) or True)
        self.assertEqual(self.client(USA).get(table, pk="a"), item(pk="a", v=1))
        self.cluster.command("region", "restart", EUROPE)


class DamageAtRest(ClusterTest):
    regions = (USA,)

    def test_up_refuses_until_it_may_discard(self):
        with tempfile.TemporaryDirectory() as data:
            with Cluster([USA], data=data) as cluster:
                cluster.client(USA).create("alone")
            for path in glob.glob(os.path.join(data, "regions", USA, "MANIFEST-*")):
                turn_bit(path)
            with self.assertRaisesRegex(AssertionError, "the store is damaged.*--discard-damaged-store"):
                Cluster([USA], data=data).start(tries=1)
            with Cluster([USA], data=data, options=["--discard-damaged-store"]) as cluster:
                self.assertEqual(cluster.client(USA).call("ListTables"), {"TableNames": []})
            self.assertTrue(os.path.isdir(os.path.join(data, "regions", f"{USA}.damaged-1")))


class Refusals(ClusterTest):
    regions = (USA,)

    def refuse(self, told, *options):
        done = subprocess.run([TIDEMARK, "up", "--port", "0", "--control", "127.0.0.1:0", *options],
                              capture_output=True, text=True, timeout=DEADLINE, check=False)
        self.assertEqual(done.returncode, 2, done)
        self.assertIn(told, done.stderr)

    def test_what_up_refuses(self):
        self.refuse("under regions only", "--regions", f"{USA},{EUROPE}", "--witness", USA)
        self.refuse("twice", "--regions", USA, "--witness", f"{EUROPE},{EUROPE}")
        self.refuse("no AWS Region", "--witness", "moon-north-1")
        self.refuse("serialize", "--mrsc-conflict", "sometimes")

    def test_a_file_says_it_too(self):
        path = os.path.join(self.cluster.data, "up.yaml")
        with open(path, "w") as file:
            file.write(f"regions: [{USA}]\nwitness: [{WITNESS}]\nport: 0\ncontrol: 127.0.0.1:0\n"
                       "durability: os\nmrsc:\n  conflict: serialize\n  heartbeat_ms: 50\n")
        process = subprocess.Popen([TIDEMARK, "up", "--config", path, "--json"], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            told = json.loads(process.stdout.readline())
            self.assertEqual([(r["name"], r["kind"]) for r in told["regions"]],
                             [(USA, "region"), (WITNESS, "witness")])
            self.assertEqual(process.stdout.readline(), "ready\n")
            with open(f"/proc/{told['regions'][1]['pid']}/cmdline") as file:
                arguments = file.read().split("\0")
            self.assertTrue(arguments[0].endswith("tidemark-witness"))
            self.assertIn("mrsc.heartbeat-ms=50", arguments)
            self.assertIn("serialize", arguments)
        finally:
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(DEADLINE), 0)
            process.stdout.close()


if __name__ == "__main__":
    main()
