#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of any Region at any time under mixed writes: what was acknowledged is there, nothing is half
applied, replication goes on without gap or double effect.

Every key is written by one worker in one Region, so what a key may hold is known exactly: the last
acknowledged write, or one that was attempted after it and got no answer. (A write without an answer is
unknown, not failed.) Since no key is written in two Regions, the ledger must stay empty too: a Region
that reused sequence numbers or versions after its crash would show up there.

TIDEMARK_KILL_ROUNDS and TIDEMARK_KILL_WRITES set the size, TIDEMARK_SEED the choice of victims and
writes; the whole run is 50 rounds of 20,000 writes."""

import hashlib
import os
import random
import shutil
import tempfile
import threading
import time

from cluster import ApiError, Client, Cluster, ClusterTest, Unknown, item, main, wait_until

ROUNDS = int(os.environ.get("TIDEMARK_KILL_ROUNDS", "10"))
WRITES = int(os.environ.get("TIDEMARK_KILL_WRITES", "2000"))
SEED = int(os.environ.get("TIDEMARK_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
WORKERS_PER_REGION, KEYS = 2, 12


def checksummed(key, number):
    """An item whose attributes prove each other: a half of it, or of two, cannot pass."""
    parts = {f"part{i}": hashlib.sha256(f"{key} {number} {i}".encode()).hexdigest() for i in range(4)}
    return item(pk=key, number=number, **parts)


class Key:
    def __init__(self, name):
        self.name = name
        self.attempts = [None]  # the image after each attempt that may be the state now; first: certain
        self.number = 0

    def attempt(self, image):
        self.attempts.append(image)

    def acknowledged(self):
        del self.attempts[:-1]


class Worker(threading.Thread):
    """Writes its own keys in one Region until told to stop, through restarts of that Region."""

    def __init__(self, table, region, port, name, seed):
        super().__init__(name=name, daemon=True)
        self.table, self.region, self.port = table, region, port
        self.rng = random.Random(seed)
        self.keys = [Key(f"{name}-{i}") for i in range(KEYS)]
        self.counter, self.added, self.unknown = f"{name}-counter", 0, 0
        self.acknowledged_writes, self.unanswered_writes = 0, 0
        self.may_run, self.over, self.trouble = threading.Event(), False, None
        self.lock = threading.Lock()

    def run(self):
        client = Client(self.region, self.port, timeout=20)
        try:
            while self.may_run.wait() and not self.over:
                with self.lock:
                    self.write(client)
                if not client.connection:
                    time.sleep(0.005)  # the Region is down: do not spin on refused connections
        except Exception as error:  # pylint: disable=broad-except
            self.trouble = error
        finally:
            client.close()

    def write(self, client):
        kind = self.rng.choices(("put", "delete", "update", "add", "batch"), (5, 1, 3, 3, 1))[0]
        if kind == "add":
            return self.add(client)
        count = self.rng.randrange(2, 6) if kind == "batch" else 1
        keys = self.rng.sample(self.keys, count)
        for key in keys:
            key.number += 1
            key.attempt(None if kind == "delete" else checksummed(key.name, key.number))
        self.answered(client, getattr(self, kind), keys)

    def answered(self, client, send, keys):
        try:
            send(client, keys)
        except Unknown:
            self.unanswered_writes += 1
            return
        except ApiError as error:
            if error.status < 500:
                raise
            self.unanswered_writes += 1  # a retryable answer promises nothing either way
            return
        self.acknowledged_writes += len(keys)
        for key in keys:
            key.acknowledged()

    def put(self, client, keys):
        client.call("PutItem", TableName=self.table, Item=keys[0].attempts[-1])

    def delete(self, client, keys):
        client.delete(self.table, pk=keys[0].name)

    def update(self, client, keys):
        image = keys[0].attempts[-1]
        names = [n for n in image if n != "pk"]
        client.update(self.table, {"pk": keys[0].name},
                      "SET " + ", ".join(f"#{n} = :{n}" for n in names), {n: image[n] for n in names},
                      ExpressionAttributeNames={f"#{n}": n for n in names})

    def batch(self, client, keys):
        answer = client.call("BatchWriteItem", RequestItems={
            self.table: [{"PutRequest": {"Item": key.attempts[-1]}} for key in keys]})
        if answer["UnprocessedItems"]:
            raise Unknown("some were not processed")

    def add(self, client):
        self.unknown += 1
        try:
            client.update(self.table, {"pk": self.counter}, "ADD n :one", {"one": 1})
        except Unknown:
            self.unanswered_writes += 1
            return
        except ApiError as error:
            if error.status < 500:
                raise
            self.unanswered_writes += 1
            return
        self.unknown -= 1
        self.added += 1
        self.acknowledged_writes += 1

    def check(self, items, test):
        """items: all that a Region holds, by key. What is found becomes what is certain."""
        for key in self.keys:
            found = items.get(key.name)
            test.assertIn(found, key.attempts, f"{key.name} in {self.region}")
            key.attempts = [found]
        count = int(items.get(self.counter, {"n": {"N": "0"}})["n"]["N"])
        test.assertGreaterEqual(count, self.added, f"{self.counter}: acknowledged increments are gone")
        test.assertLessEqual(count, self.added + self.unknown, f"{self.counter}: counted twice")
        self.added, self.unknown = count, 0


class Kill(ClusterTest):
    def kill_rounds(self, rounds, writes):
        print(f"seed {SEED}: {rounds} rounds, {writes} writes")
        rng = random.Random(SEED)
        cluster, table = self.cluster, self.cluster.make_global(self.table)
        workers = [Worker(table, region, cluster.port(region), f"{region}-{n}", rng.random())
                   for region in self.regions for n in range(WORKERS_PER_REGION)]
        for worker in workers:
            worker.start()
        try:
            for round_number in range(rounds):
                self.one_round(workers, rng.choice(self.regions), rng,
                               writes * (round_number + 1) // rounds)
        finally:
            for worker in workers:
                worker.over = True
                worker.may_run.set()
                worker.join(60)
        images = {i["pk"]["S"]: i for i in cluster.wait_converged(table)}
        for worker in workers:
            worker.check(images, self)
        self.assertEqual([c for c in cluster.conflicts() if c["table"] == table], [])
        total = sum(w.acknowledged_writes for w in workers)
        print(f"{total} acknowledged writes, {sum(w.unanswered_writes for w in workers)} unanswered")
        self.assertGreaterEqual(total, writes)

    def one_round(self, workers, victim, rng, goal):
        done = lambda: sum(w.acknowledged_writes for w in workers)
        # The kill falls somewhere in the round, at a count of writes and not at a time of the clock.
        kill_at = done() + rng.randrange(max(1, goal - done()))
        for worker in workers:
            worker.may_run.set()
        self.progress(workers, lambda: done() >= kill_at)
        self.cluster.command("region", "kill", victim)
        self.cluster.command("region", "restart", victim)
        wait_until(f"{victim} serves", lambda: self.cluster.region_status(victim)["ready"])
        self.progress(workers, lambda: done() >= goal)
        for worker in workers:
            worker.may_run.clear()
        own = [w for w in workers if w.region == victim]
        for worker in own:
            worker.lock.acquire()  # the write under way has ended
        try:
            images = {i["pk"]["S"]: i for i in self.client(victim).scan(own[0].table)}
            for worker in own:
                worker.check(images, self)
        finally:
            for worker in own:
                worker.lock.release()

    def progress(self, workers, condition):
        def met():
            for worker in workers:
                if worker.trouble:
                    self.fail(f"{worker.name}: {worker.trouble!r}")
            return condition()
        wait_until("the workers have written enough", met, deadline=300, poll=0.001)

    def test_kill_any_region_at_any_time(self):
        self.kill_rounds(ROUNDS, WRITES)

    def test_killed_region_is_shown_and_the_others_serve(self):
        self.cluster.make_global(self.table)
        victim, other = self.regions[1], self.regions[0]
        self.cluster.command("region", "kill", victim)
        state = lambda: {r["name"]: r["state"] for r in self.cluster.status()["regions"]}[victim]
        wait_until("it is shown dead", lambda: state() == "dead")
        with self.assertRaises(Unknown):
            Client(victim, self.cluster.port(victim)).call("ListTables")
        self.client(other).put(self.table, pk="a", v=1)
        self.cluster.command("region", "restart", victim)
        wait_until("it runs", lambda: state() == "running")
        self.assertEqual(self.cluster.wait_converged(self.table), [item(pk="a", v=1)])

    def test_whole_cluster_restarts_on_its_data(self):
        data = tempfile.mkdtemp(prefix="tidemark-live-")
        self.addCleanup(shutil.rmtree, data, True)
        with Cluster(self.regions, "fsync", data) as first:
            first.make_global("kept")
            first.cut(*self.regions[:2])
            first.client(self.regions[0]).put("kept", pk="a", v=1)
        with Cluster(self.regions, "fsync", data) as second:
            second.client(self.regions[1]).put("kept", pk="b", v=2)
            self.assertEqual(second.wait_converged("kept"), [item(pk="a", v=1), item(pk="b", v=2)])
            self.assertEqual(second.conflicts(), [])


class KillFsync(Kill):
    durability = "fsync"

    def test_kill_any_region_at_any_time(self):
        self.kill_rounds(max(2, ROUNDS // 4), WRITES // 4)

    test_killed_region_is_shown_and_the_others_serve = None
    test_whole_cluster_restarts_on_its_data = None


if __name__ == "__main__":
    main()
