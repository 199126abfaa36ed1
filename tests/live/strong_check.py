# SPDX-License-Identifier: Apache-2.0
"""What must hold of a strong table when its clients have stopped: every history has an order that explains it,
all members hold the same at the same index, what was acknowledged is there, what was refused is not."""

import os
import subprocess
import threading

from cluster import BUILD, wait_until
from strong_client import Worker, report

JUDGE = os.path.join(BUILD, "tests", "linear_main")


class Failed(AssertionError):
    pass


def judge(lines):
    """Failed, with the smallest window that no order explains."""
    done = subprocess.run([JUDGE], input="".join(line + "\n" for line in lines), text=True, capture_output=True,
                          check=False)
    if done.returncode:
        named = [int(line.split()[0]) for line in done.stdout.splitlines() if line.startswith("  ")]
        raise Failed(f"history (linear_main's status is {done.returncode}):\n{done.stdout}{done.stderr}" +
                     "\n".join(f"  {n}: {lines[n - 1]}" for n in named[:40]))


def items_of(cluster, region, table):
    """All items by key, read eventually: what this member itself holds."""
    items, members = {}, {}
    while True:
        page = cluster.client(region).call("Scan", TableName=table, **members)
        items.update((item["pk"]["S"], item) for item in page["Items"])
        if "LastEvaluatedKey" not in page:
            return items
        members["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def groups_of(cluster, table, region=None):
    return [g for g in cluster.status()["groups"] if g["table"] == table and region in (None, g["region"])]


def wait_full(cluster, table, region):
    """The member counts in every group: its log is whole and it is up to date."""
    wait_until(f"{region} is a full member", lambda: {
        g["standing"] for g in groups_of(cluster, table, region)} == {"full"})


def wait_same_index(cluster, table):
    def at_rest():
        applied = {}
        for group in groups_of(cluster, table):
            if not group["witness"]:
                applied.setdefault(group["partition"], set()).add((group["applied"], group["standing"]))
        uneven = {partition: found for partition, found in applied.items() if len(found) > 1}
        if uneven:
            raise AssertionError(f"applied and standing differ: {uneven}")
        return applied
    wait_until("all members have applied the same", at_rest)


def check_items(cluster, table, inserted, not_inserted):
    """Of a table at rest: equal everywhere, nothing lost, nothing that was refused."""
    wait_same_index(cluster, table)
    first = items_of(cluster, cluster.regions[0], table)
    for region in cluster.regions[1:]:
        other = items_of(cluster, region, table)
        differing = [key for key in other.keys() | first.keys() if other.get(key) != first.get(key)]
        if differing:
            raise Failed(f"{region} and {cluster.regions[0]} differ at {len(differing)} keys: " + str(
                [(key, other.get(key), first.get(key)) for key in differing[:5]]))
    lost = [name for name in inserted if name not in first]
    ghosts = [name for name in not_inserted if name in first]
    if lost or ghosts:
        raise Failed(f"acknowledged and not there: {lost}; refused and there: {ghosts}")


class Load:
    """Clients of all Regions that have the data, on threads, beside whatever the caller does to the members.
    Leaving the block stops them, and checks the table with all members present."""

    def __init__(self, cluster, table, threads=1, keys=4, seed=1):
        self.cluster, self.table, self.halt = cluster, table, threading.Event()
        self.keys = [f"{table}-k{n}" for n in range(keys)]
        self.workers = [Worker(region, cluster.port(region), table, self.keys, place * threads + n,
                               f"{seed} {place} {n}")
                        for place, region in enumerate(cluster.regions) for n in range(threads)]
        for worker in self.workers:
            worker.may_forget = True
        self.threads = [threading.Thread(target=worker.run, args=(self.halt,), daemon=True)
                        for worker in self.workers]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        self.wait_writes()
        return self

    def done(self, region=None):
        return sum(worker.count["ok"] for worker in self.workers
                   if region in (None, worker.region))

    def refused(self, region):
        return sum(worker.count["failed"] + worker.count["unknown"] for worker in self.workers
                   if worker.region == region)

    def wait_writes(self, *regions, count=100):
        """So many more operations have succeeded in each of these Regions (all: in none in particular)."""
        def reached():
            trouble = [worker.trouble for worker in self.workers if worker.trouble]
            if trouble:
                raise SystemError(trouble)
            return self.done(region) >= goal
        for region in regions or (None,):
            goal = self.done(region) + count
            wait_until(f"{region or 'some Region'} serves", reached)

    def stop(self):
        self.halt.set()
        for thread in self.threads:
            thread.join()
        self.halt = threading.Event()

    def __exit__(self, kind, *_):
        self.stop()
        if kind is None:
            self.check()

    def check(self):
        told = report(self.workers)
        if told["trouble"]:
            raise Failed(f"clients: {told['trouble']}")
        lines = told["lines"]
        for place, region in enumerate(self.cluster.regions):
            last = Worker(region, self.cluster.port(region), self.table, self.keys, 60 + place, "last")
            for key in self.keys:
                wait_until(f"{region} reads {key}", lambda: last.do_read(key))
            last.wire.close()
            lines += last.lines
        judge(lines)
        check_items(self.cluster, self.table, told["inserted"], told["not_inserted"])
        print(f"{self.table}: " + ", ".join(f"{n} {kind}" for kind, n in told["count"].items()) + "; all hold the "
              "same, nothing is lost, linearizable", flush=True)
