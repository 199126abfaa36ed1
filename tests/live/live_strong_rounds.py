#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Strong tables on real processes under faults, in seeded rounds of about 3 seconds: clients in every Region
that has the data put, put under conditions, add, delete and read a few keys, while members are killed, paused,
cut off (both ways, one way, from everyone) and brought back. Even rounds have three data members, odd ones two
and a witness.

After each round: every key's history has an order that explains it (linear_main); what was acknowledged is
there and what was refused is not; the data members hold the same items at the same index; and within
RECOVERY_SECONDS of the last fault's end every Region served strong writes and reads again, on every key.

    live_strong_rounds.py [--seed S] [--rounds N] [--only ROUND,...]

A seed draws the schedule of faults and the clients' choices; how they meet is up to the machine. Without
--rounds it is TIDEMARK_STRONG_ROUNDS of them, by default 8. The history of a round that failed is kept."""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import traceback

from cluster import EUROPE, REGIONS, SANITIZED, USA, Cluster, wait_until
from strong_check import JUDGE, Failed, check_items, groups_of, judge
from strong_client import Worker

WITNESS = "us-west-2"
KEYS, THREADS, ROUNDS_PER_TABLE = 6, 3, 10
ROUND_SECONDS, FAULTS_FROM, FAULTS_TO = 3.0, 0.3, 2.2
RECOVERY_SECONDS = 5
PROBE_PLACE = 48  # of the workers that see whether a Region serves again; clients' places are below


class Clients:
    """The client processes of one cluster, one for each Region that has the data."""

    def __init__(self, cluster):
        self.cluster, self.processes = cluster, {}
        for region in cluster.regions:
            self.processes[region] = subprocess.Popen(
                [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "strong_client.py")],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def tell(self, region, command):
        self.processes[region].stdin.write(json.dumps(command) + "\n")
        self.processes[region].stdin.flush()

    def answers(self):
        return [json.loads(process.stdout.readline() or '{"trouble": ["the client process ended"]}')
                for process in self.processes.values()]

    def start(self, table, keys, seed):
        for place, region in enumerate(self.processes):
            self.tell(region, {"do": "start", "region": region, "port": self.cluster.port(region),
                               "table": table, "keys": keys, "place": place * THREADS, "threads": THREADS,
                               "seed": f"{seed} {region}"})
        self.answers()

    def stop(self):
        for region in self.processes:
            self.tell(region, {"do": "stop"})
        return self.answers()

    def close(self):
        for process in self.processes.values():
            process.stdin.close()
            process.wait()
            process.stdout.close()


# ---- Faults: each is a pair of commands, one that begins it and one that ends it

def fault_kill(rng, members):
    victim = rng.choice(members)
    return {victim}, [["region", "kill", victim]], [["region", "restart", victim]]


def fault_kill_all(_, members):
    return set(members), [["region", "kill", m] for m in members], [["region", "restart", m] for m in members]


def fault_pause(rng, members):
    victim = rng.choice(members)
    return {victim}, [["region", "pause", victim]], [["region", "resume", victim]]


def fault_cut(rng, members):
    a, b = rng.sample(members, 2)
    return {(a, b)}, [["link", "cut", a, b], ["link", "cut", b, a]], \
        [["link", "heal", a, b], ["link", "heal", b, a]]


def fault_cut_one_way(rng, members):
    a, b = rng.sample(members, 2)
    return {(a, b)}, [["link", "cut", a, b]], [["link", "heal", a, b]]


def fault_isolate(rng, members):
    victim = rng.choice(members)
    return {("isolated", victim)}, [["region", "isolate", victim]], [["region", "rejoin", victim]]


FAULTS = {fault_kill: 6, fault_pause: 4, fault_cut: 3, fault_cut_one_way: 3, fault_isolate: 4, fault_kill_all: 1}


def draw_schedule(rng, members):
    """[(second, command)], in order. A process suffers one fault in a round, so that no end undoes another's
    beginning; two members may well be away at once, and then nobody serves."""
    events, touched = [], set()
    for _ in range(rng.randrange(1, 4)):
        what, begin, end = rng.choices(list(FAULTS), list(FAULTS.values()))[0](rng, members)
        from_second = rng.uniform(FAULTS_FROM, FAULTS_TO - 0.5)
        to_second = rng.uniform(from_second + 0.1, FAULTS_TO)
        if what & touched:
            continue
        touched |= what
        events += [(from_second, command) for command in begin] + [(to_second, command) for command in end]
    return sorted(events, key=lambda event: event[0])


class Round:
    def __init__(self, number, seed, cluster, clients, table):
        self.number, self.cluster, self.clients, self.table = number, cluster, clients, table
        self.members = cluster.regions + cluster.witnesses
        self.rng = random.Random(f"{seed} {number}")
        self.seed = self.rng.randrange(1 << 31)
        self.schedule = draw_schedule(self.rng, self.members)
        self.keys = [f"r{number}-k{n}" for n in range(KEYS)]
        self.lines, self.inserted, self.not_inserted, self.count, self.recovery = [], [], [], {}, 0.0

    def terms(self):
        terms = {}
        for group in groups_of(self.cluster, self.table):
            terms[group["partition"]] = max(terms.get(group["partition"], 0), group["term"])
        return terms

    def run(self):
        terms = self.terms()
        self.clients.start(self.table, self.keys, self.seed)
        started = time.monotonic()
        for second, command in self.schedule:
            time.sleep(max(0, started + second - time.monotonic()))
            self.cluster.command(*command)
        healed = time.monotonic()
        self.probe(healed)
        time.sleep(max(0, started + ROUND_SECONDS - time.monotonic()))
        for answer in self.clients.stop():
            self.take(answer)
        self.elections = sum(self.terms().values()) - sum(terms.values())
        self.look_again()
        judge(self.lines)
        check_items(self.cluster, self.table, self.inserted, self.not_inserted)

    def take(self, answer):
        if answer["trouble"]:
            raise Failed(f"clients: {answer['trouble']}")
        self.lines += answer["lines"]
        self.inserted += answer["inserted"]
        self.not_inserted += answer["not_inserted"]
        for kind, number in answer["count"].items():
            self.count[kind] = self.count.get(kind, 0) + number

    def worker(self, region, place):
        return Worker(region, self.cluster.port(region), self.table, self.keys, place, f"{self.seed} probe")

    def collect(self, worker):
        worker.wire.close()
        self.lines += worker.lines

    def probe(self, healed):
        """Every Region writes and reads every key again; how long the last of them took."""
        probes = [(region, self.worker(region, PROBE_PLACE + n)) for n, region in enumerate(self.cluster.regions)]
        missing = {region: "has not tried" for region, _ in probes}

        def serve_all(region, worker):
            for key in self.keys:
                for step in (worker.do_put, worker.do_read):
                    missing[region] = f"{step.__name__} {key}"
                    while not step(key):
                        if time.monotonic() > healed + RECOVERY_SECONDS * (8 if SANITIZED else 1) + 10:
                            return
                        time.sleep(0.01)
            missing.pop(region)
            self.recovery = max(self.recovery, time.monotonic() - healed)
        threads = [threading.Thread(target=serve_all, args=probe) for probe in probes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for _, worker in probes:
            self.collect(worker)
        # A sanitized build on a busy machine is not held to seconds.
        if missing or (self.recovery > RECOVERY_SECONDS and not SANITIZED):
            raise Failed(f"not all serve {RECOVERY_SECONDS} s after healing: {missing or self.recovery}")

    def look_again(self):
        """When nobody writes any more: the last reads of the history."""
        for place, region in enumerate(self.cluster.regions):
            worker = self.worker(region, PROBE_PLACE + 8 + place)
            for key in self.keys:
                wait_until(f"{region} reads {key}", lambda: worker.do_read(key))
            self.collect(worker)

    def keep_history(self):
        with tempfile.NamedTemporaryFile("w", prefix=f"strong-round-{self.number}-", suffix=".txt",
                                         delete=False) as file:
            file.write("\n".join(self.lines) + "\n")
        return file.name


class Totals:
    def __init__(self):
        self.passed, self.failed, self.count, self.elections, self.slowest = 0, 0, {}, 0, 0.0

    def add(self, each):
        self.passed += 1
        self.elections += each.elections
        self.slowest = max(self.slowest, each.recovery)
        for kind, number in each.count.items():
            self.count[kind] = self.count.get(kind, 0) + number


def counts_text(count):
    return ", ".join(f"{number} {kind}" for kind, number in count.items())


def run_round(number, options, cluster, clients, table, totals):
    each = Round(number, options.seed, cluster, clients, table)
    started = time.monotonic()
    what = "; ".join(f"{second:.2f} {' '.join(command)}" for second, command in each.schedule)
    try:
        each.run()
    except Exception as error:  # pylint: disable=broad-except
        totals.failed += 1
        told = "" if isinstance(error, Failed) else traceback.format_exc()
        print(f"round {number} FAILED: {error}\n{told}  faults: {what}\n  history: {each.keep_history()}\n"
              f"  again: {sys.argv[0]} --seed {options.seed} --only {number}", flush=True)
        return False
    totals.add(each)
    print(f"round {number:3}: {counts_text(each.count)}; {each.elections} elections; linearizable; served again "
          f"after {each.recovery:.2f} s; {time.monotonic() - started:.1f} s [{what}]", flush=True)
    return True


def run_rounds(numbers, regions, witnesses, options, totals):
    if not numbers:
        return
    with Cluster(regions, options.durability, witnesses=witnesses) as cluster:
        clients, table = Clients(cluster), None
        try:
            for place, number in enumerate(numbers):
                if place % ROUNDS_PER_TABLE == 0:
                    if table:
                        dissolve(cluster, table)
                    table = cluster.make_strong(f"rounds-{number}")
                if not run_round(number, options, cluster, clients, table, totals):
                    break  # what it left behind would fail the others, too
        finally:
            clients.close()


def dissolve(cluster, table):
    home = cluster.client(cluster.regions[0])
    members = {"ReplicaUpdates": [{"Delete": {"RegionName": r}} for r in cluster.regions[1:]]}
    if cluster.witnesses:
        members["GlobalTableWitnessUpdates"] = [{"Delete": {"RegionName": cluster.witnesses[0]}}]
    home.call("UpdateTable", TableName=table, **members)
    wait_until(f"{table} is one Region's own", lambda: "Replicas" not in home.describe(table))
    home.call("DeleteTable", TableName=table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int, default=int(os.environ.get("TIDEMARK_SEED", "0")) or
                        random.SystemRandom().randrange(1, 1 << 31))
    parser.add_argument("--rounds", type=int, default=int(os.environ.get("TIDEMARK_STRONG_ROUNDS", "8")))
    parser.add_argument("--only", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--durability", default="os")
    options = parser.parse_args()
    numbers = options.only or list(range(options.rounds))
    print(f"seed {options.seed}, {len(numbers)} rounds", flush=True)
    if not os.access(JUDGE, os.X_OK):
        sys.exit(f"{JUDGE} is missing: build the target linear_main.")
    totals = Totals()
    run_rounds([n for n in numbers if n % 2 == 0], REGIONS, (), options, totals)
    run_rounds([n for n in numbers if n % 2], (USA, EUROPE), (WITNESS,), options, totals)
    print(f"in all: {counts_text(totals.count)}; {totals.elections} elections; slowest recovery "
          f"{totals.slowest:.2f} s")
    skipped = len(numbers) - totals.passed - totals.failed
    if skipped:
        print(f"live_strong_rounds: skipped {skipped} rounds behind a failed one")
    print(f"live_strong_rounds: {totals.passed} passed, {totals.failed} failed, {skipped} skipped")
    sys.exit(1 if totals.failed else 0)


if __name__ == "__main__":
    main()
