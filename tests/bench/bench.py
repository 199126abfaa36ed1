#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How fast one Region answers, beside dynalite and nginx in the same run, and how replication keeps up.

Servers are pinned to core 0 and the load generator to core 1; 32 HTTP/1.1 connections, items of 200
bytes, the median of three runs each. All servers stay up and are measured in turn, so that a busy
machine disturbs all alike. nginx answers 200 fixed bytes: what HTTP alone costs on this machine.
dynalite keeps its data on disk, without syncing. Every figure is printed whatever it is, beside it the
target, and the ratio of the processor time that a request takes: other programs on the machine move that
one less. An error answer fails the run: it must not pass for speed.

Strong tables are measured on both cores, as all of it is one system: three Regions, the links' proxies and the
load; what each process takes of the processor for a write tells what the limit is.

    tests/bench/bench.py [--seconds N] [--runs N] [--only single,replication,strong] [--profile]

It needs a release build (./up makes one), wrk, h2load, nginx, and npm for dynalite."""

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "live"))
from cluster import (BUILD, EUROPE, REGIONS, ROOT, USA, Client, Cluster, authorization,  # noqa: E402
                     children_of, free_ports, item, wait_until)

WORK = os.path.join(ROOT, "build", "bench")
DYNALITE_VERSION = "4.0.0"
KEYS, CONNECTIONS = 10_000, 32
SERVER_CORE, LOAD_CORE = "0", "1"


def pinned(core, *command):
    return ["taskset", "-c", core, *command]


def run(command, **options):
    return subprocess.run(command, text=True, capture_output=True, check=True, **options).stdout


def wrk_command(port, operation, seconds, rate=None, region=USA, connections=CONNECTIONS, prefix="k"):
    return ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "20s",
            "-s", os.path.join(HERE, "request.lua"), f"http://127.0.0.1:{port}/", "--",
            operation, "bench", region, str(KEYS), str(rate / connections if rate else 0), prefix]


def wrk(port, operation, seconds, rate=None):
    return wrk_figures(operation, run(pinned(LOAD_CORE, *wrk_command(port, operation, seconds, rate))))


def wrk_figures(operation, output):
    """Requests a second, how many in all, and the latency's p50 and p99 in ms."""
    found = re.search(r"RESULT ([\d.]+) ([\d.]+) ([\d.]+) (\d+)", output)
    assert found and found[4] == "0", f"{operation}: errors among the answers:\n{output}"
    return float(found[1]), int(re.search(r"(\d+) requests in", output)[1]), float(found[2]), float(found[3])


def h2load(port, seconds, *protocol):
    """GetItem by h2load, which repeats one request: as wrk, but it tells no latency."""
    with tempfile.NamedTemporaryFile("w") as body:
        json.dump({"TableName": "bench", "Key": item(pk="k1", sk="00")}, body)
        body.flush()
        output = run(pinned(
            LOAD_CORE, "h2load", "-t1", f"-c{CONNECTIONS}", "-D", str(seconds), *protocol,
            "-d", body.name, "-H", "content-type: application/x-amz-json-1.0",
            "-H", "x-amz-target: DynamoDB_20120810.GetItem", "-H", "authorization: " + authorization(USA),
            f"http://127.0.0.1:{port}/"))
    counts = re.search(r"requests: .*?(\d+) succeeded, (\d+) failed, (\d+) errored", output)
    assert counts and counts[2] == counts[3] == "0", output
    assert re.search(r"status codes: (\d+) 2xx, 0 3xx, 0 4xx, 0 5xx", output), output
    return float(re.search(r"finished in .*?, ([\d.]+) req/s", output)[1]), int(counts[1]), None, None


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class DiskCluster(Cluster):
    """A cluster whose data is on the disk of the tree."""

    def start(self, tries=3):
        super().start(tries)
        self.own_data = True  # to be removed
        return self


class PinnedCluster(DiskCluster):
    """Every process of it is on the server's core."""

    def start(self, tries=3):
        super().start(tries)
        for pid in [self.process.pid, *children_of(self.process.pid)]:
            run(["taskset", "-a", "-c", "-p", SERVER_CORE, str(pid)])
        return self


class Bench:
    def __init__(self, options):
        self.options, self.runs, self.figures = options, {}, {}

    def measure(self, server, port, pid, operation):
        """One run. The figures: requests a second, microseconds of the processor for each, p50, p99."""
        seconds, before = self.options.seconds, processor_seconds(pid)
        if operation.startswith("HTTP/"):
            flags = ("--h1", "-m1") if operation == "HTTP/1.1" else ("-m32",)
            rate, count, *latency = h2load(port, seconds, *flags)
        else:
            rate, count, *latency = wrk(port, operation, seconds)
        cost = (processor_seconds(pid) - before) / count * 1e6
        self.runs.setdefault(f"{server} {operation}", []).append((rate, cost, *latency))

    def print_figures(self):
        print(f"{'':36}{'requests/s':>12}{'p50 ms':>9}{'p99 ms':>9}{'processor us':>14}")
        for name, runs in self.runs.items():
            figures = [statistics.median(column) if None not in column else None for column in zip(*runs)]
            self.figures[name] = figures[:2]
            latency = "".join(f"{f:>9.2f}" if f is not None else f"{'':>9}" for f in figures[2:])
            print(f"  {name:<34}{figures[0]:>12,.0f}{latency}{figures[1]:>14.1f}")

    def ratio(self, name, ours, other, target):
        """A row for verdicts: how many times as fast, and how many times as cheap."""
        (rate, cost), (other_rate, other_cost) = self.figures[ours], self.figures[other]
        return name, rate / other_rate, target, other_cost / cost

    def fill(self, client):
        client.create("bench", sort=True)
        pad = {"S": "x" * 160}
        images = [item(pk=f"k{n}", sk="00", n=1, pad=pad) for n in range(KEYS)]
        images += [item(pk=f"q{p}", sk=f"{n:02}", n=1, pad=pad) for p in range(100) for n in range(20)]
        for first in range(0, len(images), 25):
            answer = client.call("BatchWriteItem", RequestItems={
                "bench": [{"PutRequest": {"Item": image}} for image in images[first:first + 25]]})
            assert not answer["UnprocessedItems"]

    def profile(self, name, port, operation, pid):
        """Where the time goes: the functions that are on the processor, by perf."""
        if not self.options.profile or not shutil.which("perf"):
            return
        self.perf(f"{name} {operation}", pid, lambda: wrk(port, operation, self.options.seconds))

    @staticmethod
    def perf(what, pid, load):
        data = os.path.join(WORK, "perf.data")
        with subprocess.Popen(["perf", "record", "-q", "-o", data, "-p", str(pid)],
                              stderr=subprocess.DEVNULL) as recorder:
            load()
            recorder.send_signal(signal.SIGINT)
        print(f"\n  where {what} spends its time")
        report = run(["perf", "report", "-i", data, "--stdio", "--percent-limit", "1.5"], stderr=None)
        for line in [l for l in report.splitlines() if l.strip() and not l.startswith("#")][:18]:
            print("   ", line.strip())
        print()

    # ---- one Region beside the others; each of these gives port and process

    @contextlib.contextmanager
    def nginx(self):
        port = free_ports(1)
        configuration = os.path.join(WORK, "nginx.conf")
        with open(configuration, "w", encoding="ascii") as file:
            file.write(f"""daemon off; master_process off; pid {WORK}/nginx.pid; error_log {WORK}/nginx.log;
                events {{ worker_connections 1024; }}
                http {{ access_log off; keepalive_requests 100000000; client_body_temp_path {WORK}/body;
                server {{ listen 127.0.0.1:{port}; location / {{ return 200 "{'x' * 200}"; }} }} }}""")
        with subprocess.Popen(pinned(SERVER_CORE, "nginx", "-p", WORK, "-c", configuration),
                              stderr=subprocess.DEVNULL) as server:
            try:
                wait_until("nginx serves", lambda: Client(USA, port).http("GET", "/")[0] == 200)
                yield port, server.pid
            finally:
                server.terminate()

    @contextlib.contextmanager
    def dynalite(self):
        if not os.path.isdir(f"{WORK}/dynalite/node_modules/dynalite"):
            os.makedirs(f"{WORK}/dynalite", exist_ok=True)
            run(["npm", "install", "--no-package-lock", "--no-fund", "--no-audit", "--prefix",
                 f"{WORK}/dynalite", f"dynalite@{DYNALITE_VERSION}"])
        port = free_ports(1)
        with tempfile.TemporaryDirectory(dir=WORK) as data, subprocess.Popen(
                pinned(SERVER_CORE, "node", f"{WORK}/dynalite/node_modules/dynalite/cli.js",
                       "--port", str(port), "--path", data, "--createTableMs", "0"),
                stdout=subprocess.DEVNULL) as server:
            try:
                client = Client(USA, port)
                wait_until("dynalite serves", lambda: "TableNames" in client.call("ListTables"))
                self.fill(client)
                yield port, server.pid
            finally:
                server.terminate()
                server.wait()

    @contextlib.contextmanager
    def tidemark(self, durability):
        with self.cluster([USA], durability) as cluster:
            self.fill(cluster.client(USA))
            yield cluster.port(USA), cluster.pid(USA)

    def cluster(self, regions, durability):
        return PinnedCluster(regions, durability, tempfile.mkdtemp(dir=WORK))

    def single(self):
        all_of_it = ["get", "put", "update", "query"]
        with contextlib.ExitStack() as stack:
            servers = {"nginx": (stack.enter_context(self.nginx()), ["get"]),
                       "dynalite": (stack.enter_context(self.dynalite()), all_of_it),
                       "os": (stack.enter_context(self.tidemark("os")),
                              [*all_of_it, "HTTP/1.1", "HTTP/2"]),
                       "fsync": (stack.enter_context(self.tidemark("fsync")), ["put", "update"])}
            for _ in range(self.options.runs):
                for operation in [*all_of_it, "HTTP/1.1", "HTTP/2"]:
                    for name, ((port, pid), operations) in servers.items():
                        if operation in operations:
                            self.measure(name, port, pid, operation)
            print("One Region, `os` or `fsync`; HTTP/1.1 and HTTP/2 are GetItem by h2load:")
            self.print_figures()
            for name, operation in (("os", "get"), ("os", "put"), ("fsync", "put")):
                self.profile(name, servers[name][0][0], operation, servers[name][0][1])
        self.verdicts([
            self.ratio("GetItem / nginx", "os get", "nginx get", 0.6),
            self.ratio("GetItem / dynalite", "os get", "dynalite get", 8),
            self.ratio("PutItem os / nginx", "os put", "nginx get", 0.4),
            self.ratio("PutItem os / dynalite", "os put", "dynalite put", 10),
            self.ratio("PutItem fsync / dynalite", "fsync put", "dynalite put", 4),
            self.ratio("UpdateItem, condition / dynalite", "os update", "dynalite update", 10),
            self.ratio("Query of 20 / dynalite", "os query", "dynalite query", 15),
            self.ratio("GetItem HTTP/2 / HTTP/1.1, wrk", "os HTTP/2", "os get", 1.3),
            self.ratio("GetItem HTTP/2 / HTTP/1.1, h2load", "os HTTP/2", "os HTTP/1.1", 1.3)])

    # ---- three Regions

    def pipes(self, cluster):
        table = next(t for t in cluster.region_status(USA)["tables"] if t["name"] == "bench")
        return {pipe["to"]: pipe for pipe in table["replication"]}

    def replication(self):
        print("three Regions, writes in one, all on one core:")
        seconds = max(5, self.options.seconds)
        with self.cluster(REGIONS, "os") as cluster:
            self.fill(cluster.client(USA))
            cluster.make_global("bench", create=False)
            cluster.wait_converged("bench")
            start = time.monotonic()
            rate = wrk(cluster.port(USA), "put", seconds)[0]
            wait_until("nothing is pending", lambda: not any(
                p["pending"] for p in self.pipes(cluster).values()), deadline=300)
            sustained = rate * seconds / (time.monotonic() - start)
        print(f"  {'acknowledged while saturated':<34}{rate:>10,.0f}/s")
        print(f"  {'sustained, to the last replica':<34}{sustained:>10,.0f}/s")
        with self.cluster(REGIONS, "os") as cluster:
            self.fill(cluster.client(USA))
            cluster.make_global("bench", create=False)
            cluster.wait_converged("bench")
            achieved = wrk(cluster.port(USA), "put", seconds, rate=sustained / 2)[0]
            lags = self.pipes(cluster)
            for to, pipe in lags.items():
                print(f"  lag to {to:<27}{pipe['lag_p50_ms']:>10} ms p50, {pipe['lag_p99_ms']} ms p99"
                      f" at {achieved:,.0f}/s")
            drained = self.catch_up(cluster, sustained / 2)
        self.verdicts([
            ("lag p99 at half the rate, ms", max(p["lag_p99_ms"] for p in lags.values()), -10),
            ("drain rate / write rate", drained, 4)])

    def catch_up(self, cluster, rate):
        cut = 30
        cluster.cut(USA, EUROPE)
        achieved = wrk(cluster.port(USA), "put", cut, rate=rate)[0]
        backlog = self.pipes(cluster)[EUROPE]["pending"]
        start = time.monotonic()  # so the time to connect again counts
        cluster.heal(USA, EUROPE)
        wait_until("the backlog is gone", lambda: not self.pipes(cluster)[EUROPE]["pending"], deadline=300)
        took = time.monotonic() - start
        print(f"  {f'backlog after a {cut} s cut':<34}{backlog:>10,.0f} writes, gone in {took:.1f} s:"
              f" {backlog / took:,.0f}/s, written at {achieved:,.0f}/s")
        return backlog / took / achieved

    # ---- strong tables: three Regions, each write on two of them before its answer

    def strong(self):
        seconds = max(5, self.options.seconds)
        for durability, connections in (("os", 64), ("os", 256), ("fsync", 256)):
            print(f"strong writes, three Regions, no link delay, both cores, {durability}, {connections} "
                  f"connections:", flush=True)
            with DiskCluster(REGIONS, durability, tempfile.mkdtemp(dir=WORK)) as cluster:
                cluster.make_strong("bench", sort=True)
                rows = []
                for name, origins in (("from the leader's Region", [self.leader(cluster)]),
                                      ("spread over the three", list(REGIONS))):
                    runs = [self.strong_run(cluster, origins, connections, seconds)
                            for _ in range(self.options.runs)]
                    rate, p50, p99, cost = sorted(runs)[len(runs) // 2]
                    print(f"  {name:<34}{rate:>10,.0f}/s{p50:>9.2f} ms p50{p99:>9.2f} ms p99\n    {cost}",
                          flush=True)
                    if durability == "os":
                        rows.append((name, rate, 5000))
                    self.strong_profile(cluster, name, origins, connections)
            self.verdicts(rows)

    @staticmethod
    def leader(cluster):
        leads = [g["leader"] for g in cluster.status()["groups"] if g["table"] == "bench"]
        return max(REGIONS, key=leads.count)

    def strong_start(self, cluster, origins, connections, seconds):
        # Each origin has keys of its own, as writers of one application mostly do: otherwise some writes
        # would be refused as conflicts.
        return [subprocess.Popen(wrk_command(
            cluster.port(region), "put", seconds, None, region, connections // len(origins), f"k{n}-"),
            stdout=subprocess.PIPE, text=True) for n, region in enumerate(origins)]

    def strong_run(self, cluster, origins, connections, seconds):
        """Writes a second, the latency's p50 and p99, and what of the processor each process takes for one."""
        pids = {"links": cluster.process.pid, **{region: cluster.pid(region) for region in REGIONS}}
        before = {name: processor_seconds(pid) for name, pid in pids.items()}
        load = [process.communicate()[0] for process in self.strong_start(cluster, origins, connections, seconds)]
        took = {name: processor_seconds(pid) - before[name] for name, pid in pids.items()}
        figures = [wrk_figures("put", output) for output in load]
        writes, cores = sum(f[1] for f in figures), os.cpu_count()
        cost = [f"{name} {seconds_taken / writes * 1e6:.0f}" for name, seconds_taken in took.items()]
        total = sum(took.values())
        return (sum(f[0] for f in figures), max(f[2] for f in figures), max(f[3] for f in figures),
                f"{total / writes * 1e6:.0f} us of the processor a write ({', '.join(cost)}): "
                f"{total / seconds / cores:.0%} of {cores} cores; the rest is the load, others, and waiting")

    def strong_profile(self, cluster, name, origins, connections):
        if not self.options.profile or not shutil.which("perf"):
            return
        load = self.strong_start(cluster, origins, connections, self.options.seconds)
        leader = self.leader(cluster)
        self.perf(f"the leader, {leader}, writes {name}", cluster.pid(leader),
                  lambda: [process.communicate() for process in load])

    def verdicts(self, rows):
        print()
        for name, ratio, target, *cheaper in rows:
            met = ratio >= target if target > 0 else ratio <= -target
            sense = "at least" if target > 0 else "at most"
            beside = f"   (by processor time {cheaper[0]:.2f})" if cheaper else ""
            print(f"  {name:<34}{ratio:>10.2f}   {sense} {abs(target):g}: {'met' if met else 'NOT met'}{beside}")
        print(flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="single,replication")
    parser.add_argument("--profile", action="store_true", help="show where the time goes, by perf")
    options = parser.parse_args()
    os.makedirs(WORK, exist_ok=True)
    missing = [p for p in ("wrk", "h2load", "nginx", "npm", "taskset") if not shutil.which(p)]
    if missing or not os.access(f"{BUILD}/tidemark", os.X_OK):
        sys.exit(f"Missing: {', '.join(missing) or 'a release build'}. apt-get install wrk nghttp2-client "
                 "nginx-light util-linux nodejs npm; ./up builds.")
    for part in options.only.split(","):
        getattr(Bench(options), part)()


if __name__ == "__main__":
    main()
