#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Replication, conflicts and replicas on a real cluster of three Regions, with links cut and slowed.

The names C0nn are those of the cases that people reported about real global tables."""

import json
import time

from cluster import EUROPE, JAPAN, USA, ApiError, ClusterTest, item, main, wait_until


class Replication(ClusterTest):
    def make(self, *regions):
        return self.cluster.make_global(self.table, regions or self.regions)

    def conflicts_here(self):
        return [c for c in self.cluster.conflicts() if c["table"] == self.table]

    def replication(self, source, target):
        return next(r for r in self.cluster.status()["replication"]
                    if (r["table"], r["from"], r["to"]) == (self.table, source, target))

    def seen(self, region, **expected):
        wait_until(f"{region} shows {expected}",
                   lambda: self.client(region).get(self.table, pk=expected["pk"]) == item(**expected))

    def test_one_direction_cut(self):
        self.make()
        cut = self.cluster.command("link", "cut", USA, EUROPE, "--json")
        self.assertTrue(cut, "a cut tells the instant from which nothing passes")
        self.client(USA).put(self.table, pk="from-usa", v=1)
        self.assertEqual(self.client(USA).get(self.table, pk="from-usa"), item(pk="from-usa", v=1))
        self.seen(JAPAN, pk="from-usa", v=1)
        self.client(EUROPE).put(self.table, pk="from-europe", v=2)
        self.seen(USA, pk="from-europe", v=2)
        self.seen(JAPAN, pk="from-europe", v=2)
        # Japan has both; were there a way round the cut through it, Europe would have had the time.
        self.assertIsNone(self.client(EUROPE).get(self.table, pk="from-usa"))
        pipe = wait_until("the write is pending", lambda: [
            p for p in [self.replication(USA, EUROPE)] if p["pending"] == 1 and p["oldest_ms"] > 0])[0]
        self.assertEqual(pipe["pending"], 1)
        link = next(l for l in self.cluster.status()["links"]
                    if (l["from"], l["to"]) == (USA, EUROPE))
        self.assertEqual(link["state"], "cut")
        self.cluster.heal(USA, EUROPE)
        self.seen(EUROPE, pk="from-usa", v=1)
        self.cluster.wait_converged(self.table)
        self.assertEqual(self.conflicts_here(), [])

    def test_both_cut_later_wins_and_loser_is_named_once(self):
        self.make()
        self.client(USA).put(self.table, pk="k", v="before", only_old="x")
        self.cluster.wait_converged(self.table)
        self.cluster.cut_both(USA, EUROPE)
        self.client(USA).put(self.table, pk="k", v="loser", extra=1)
        self.later()
        self.client(EUROPE).put(self.table, pk="k", v="winner")
        self.cluster.heal_both(USA, EUROPE)
        self.assertEqual(self.cluster.wait_converged(self.table), [item(pk="k", v="winner")])
        # Byte for byte: the very text of the answer, not its meaning.
        bodies = {self.client(r).raw("GetItem", {"TableName": self.table, "Key": item(pk="k")})[2]
                  for r in self.regions}
        self.assertEqual(len(bodies), 1, bodies)
        found = wait_until("the loser is in the ledger", self.conflicts_here)
        self.assertEqual(len(found), 1, found)
        entry = found[0]
        self.assertEqual((entry["key"], entry["kind"]), (item(pk="k"), "concurrent"))
        self.assertEqual((entry["winner"]["region"], entry["winner"]["item"]),
                         (EUROPE, item(pk="k", v="winner")))
        self.assertEqual((entry["loser"]["region"], entry["loser"]["item"]),
                         (USA, item(pk="k", v="loser", extra=1)))
        self.assertIn(entry["detected_in"], self.regions)
        self.assertLess(abs(entry["detected_at_ms"] - time.time() * 1000), 600_000)
        self.assertNotEqual(entry["winner"]["version"], entry["loser"]["version"])

    def later(self):
        """Until the wall clock has moved, so that the next write is the later one beyond doubt."""
        start = int(time.time() * 1000)
        wait_until("the clock moves", lambda: int(time.time() * 1000) > start + 2, poll=0.001)

    def test_no_concurrent_writes_leave_the_ledger_empty(self):
        self.make()
        for round_number in range(30):
            region = self.regions[round_number % 3]
            self.client(region).update(self.table, {"pk": "baton"}, "SET holder = :h ADD n :one",
                                       {"h": region, "one": 1})
            for other in self.regions:
                wait_until("the baton is passed", lambda: (self.client(other).get(
                    self.table, pk="baton") or {}).get("n") == {"N": str(round_number + 1)})
        self.assertEqual(self.conflicts_here(), [])

    def test_delay_and_lag(self):
        self.make(USA, EUROPE)
        self.cluster.command("link", "delay", USA, EUROPE, "2000")
        link = next(l for l in self.cluster.status()["links"] if (l["from"], l["to"]) == (USA, EUROPE))
        self.assertEqual(link["delay_ms"], 2000)
        start = time.monotonic()
        self.client(USA).put(self.table, pk="slow", v=1)
        self.assertLess(time.monotonic() - start, 2, "a local write does not wait for the link")
        self.assertIsNone(self.client(EUROPE).get(self.table, pk="slow"))
        self.seen(EUROPE, pk="slow", v=1)
        self.assertGreaterEqual(time.monotonic() - start, 2)
        self.client(EUROPE).put(self.table, pk="quick", v=1)
        self.seen(USA, pk="quick", v=1)
        self.cluster.command("link", "delay", USA, EUROPE, "0")
        lag = wait_until("the lag is in the status", lambda: [
            p for p in [self.replication(USA, EUROPE)] if p["lag_p99_ms"] and p["lag_p99_ms"] >= 2000])
        self.assertLess(lag[0]["lag_p99_ms"], 60_000)

    def test_isolated_region_serves_and_rejoins(self):
        self.make()
        self.cluster.command("region", "isolate", EUROPE)
        self.client(EUROPE).put(self.table, pk="island", v=1)
        self.client(USA).put(self.table, pk="mainland", v=1)
        self.seen(JAPAN, pk="mainland", v=1)
        self.assertIsNone(self.client(EUROPE).get(self.table, pk="mainland"))
        self.assertIsNone(self.client(JAPAN).get(self.table, pk="island"))
        self.cluster.command("region", "rejoin", EUROPE)
        self.assertEqual(len(self.cluster.wait_converged(self.table)), 2)

    def test_paused_region_catches_up(self):
        self.make()
        self.cluster.command("region", "pause", EUROPE)
        for n in range(20):
            self.client(USA).put(self.table, pk=f"p{n}", v=n)
        self.seen(JAPAN, pk="p19", v=19)
        self.cluster.command("region", "resume", EUROPE)
        self.assertEqual(len(self.cluster.wait_converged(self.table)), 20)

    # ---- data cases

    def test_c026_conditions_are_local(self):
        self.make(USA, EUROPE)
        self.client(USA).put(self.table, pk="i", x=1, y=1)
        self.cluster.wait_converged(self.table, (USA, EUROPE))
        self.cluster.cut_both(USA, EUROPE)
        self.client(USA).update(self.table, {"pk": "i"}, "SET x = :v", {"v": 2, "o": 1},
                                ConditionExpression="x = :o")
        self.later()
        self.client(EUROPE).update(self.table, {"pk": "i"}, "SET y = :v", {"v": 3, "o": 1},
                                   ConditionExpression="y = :o")
        self.cluster.heal_both(USA, EUROPE)
        self.assertEqual(self.cluster.wait_converged(self.table, (USA, EUROPE)),
                         [item(pk="i", x=1, y=3)])

    def test_c028_whole_items_lose(self):
        self.make(USA, EUROPE)
        self.client(USA).put(self.table, pk="s1", addr="old")
        self.cluster.wait_converged(self.table, (USA, EUROPE))
        self.cluster.cut_both(USA, EUROPE)
        self.client(EUROPE).update(self.table, {"pk": "s1"}, "SET addr = :a, floor = :f",
                                   {"a": "new", "f": "3rd"})
        self.later()
        self.client(USA).update(self.table, {"pk": "s1"}, "SET seen = :t", {"t": "14:07"})
        self.cluster.heal_both(USA, EUROPE)
        self.assertEqual(self.cluster.wait_converged(self.table, (USA, EUROPE)),
                         [item(pk="s1", addr="old", seen="14:07")])
        lost = wait_until("one lost write is listed", self.conflicts_here)
        self.assertEqual([(c["key"], c["loser"]["item"]) for c in lost],
                         [(item(pk="s1"), item(pk="s1", addr="new", floor="3rd"))])

    def test_c029_deletes_take_part(self):
        self.make(USA, EUROPE)
        self.client(USA).put(self.table, pk="d", v=1)
        self.client(USA).put(self.table, pk="e", v=1)
        self.cluster.wait_converged(self.table, (USA, EUROPE))
        self.cluster.cut_both(USA, EUROPE)
        self.client(USA).delete(self.table, pk="d")
        self.later()
        self.client(EUROPE).update(self.table, {"pk": "d"}, "SET v = :v", {"v": 2})
        self.client(EUROPE).update(self.table, {"pk": "e"}, "SET v = :v", {"v": 2})
        self.later()
        self.client(USA).delete(self.table, pk="e")
        self.cluster.heal_both(USA, EUROPE)
        self.assertEqual(self.cluster.wait_converged(self.table, (USA, EUROPE)), [item(pk="d", v=2)])
        lost = wait_until("both losers are listed",
                          lambda: (c := self.conflicts_here()) and len(c) == 2 and c)
        images = {c["key"]["pk"]["S"]: (c["winner"]["item"], c["loser"]["item"]) for c in lost}
        self.assertEqual(images, {"d": (item(pk="d", v=2), None), "e": (None, item(pk="e", v=2))})

    def test_c031_lock_items(self):
        self.make(USA, EUROPE)
        self.cluster.cut_both(USA, EUROPE)
        for region, owner in ((USA, "A"), (EUROPE, "B")):
            self.client(region).call("PutItem", TableName=self.table, Item=item(pk="lock", owner=owner),
                                     ConditionExpression="attribute_not_exists(pk)")
            self.later()
        self.cluster.heal_both(USA, EUROPE)
        self.assertEqual(self.cluster.wait_converged(self.table, (USA, EUROPE)),
                         [item(pk="lock", owner="B")])

    def test_c032_pending_writes_are_the_rpo(self):
        self.make(USA, EUROPE)
        self.cluster.cut_both(USA, EUROPE)
        for n in range(1, 51):
            self.client(USA).put(self.table, pk=f"o-{n}")
        count = lambda: self.client(EUROPE).call("Scan", TableName=self.table, Select="COUNT")["Count"]
        self.assertEqual(count(), 0)
        self.assertEqual(self.replication(USA, EUROPE)["pending"], 50)
        self.assertGreater(self.replication(USA, EUROPE)["oldest_ms"], 0)
        self.cluster.heal_both(USA, EUROPE)
        wait_until("all 50 have arrived", lambda: count() == 50)
        wait_until("nothing is pending", lambda: self.replication(USA, EUROPE)["pending"] == 0)

    def test_c034_a_fast_clock_wins(self):
        self.make(USA, EUROPE)
        self.addCleanup(self.cluster.set_clock, EUROPE, 0)
        for skewed, winner in ((False, "late"), (True, "early")):
            self.cluster.cut_both(USA, EUROPE)
            if skewed:
                self.cluster.set_clock(EUROPE, 5000)
            key = f"k-{winner}"
            self.client(EUROPE).put(self.table, pk=key, w="early")
            self.later()
            self.client(USA).put(self.table, pk=key, w="late")
            self.cluster.heal_both(USA, EUROPE)
            self.cluster.wait_converged(self.table, (USA, EUROPE))
            for region in (USA, EUROPE):
                self.assertEqual(self.client(region).get(self.table, pk=key)["w"], {"S": winner})
        lost = wait_until("both are in the ledger",
                          lambda: (c := self.conflicts_here()) and len(c) == 2 and c)
        self.assertEqual({c["loser"]["item"]["w"]["S"] for c in lost}, {"early", "late"})

    def test_a_put_that_changes_nothing_is_a_write(self):
        """It was acknowledged, and it is the later one: the older write of the other side must lose."""
        self.make(USA, EUROPE)
        self.client(USA).put(self.table, pk="same", v=1)
        self.cluster.wait_converged(self.table, (USA, EUROPE))
        self.cluster.cut_both(USA, EUROPE)
        self.client(EUROPE).put(self.table, pk="same", v=2)
        self.later()
        self.client(USA).put(self.table, pk="same", v=1)
        self.cluster.heal_both(USA, EUROPE)
        self.assertEqual(self.cluster.wait_converged(self.table, (USA, EUROPE)), [item(pk="same", v=1)])
        lost = wait_until("the older one is in the ledger", self.conflicts_here)
        self.assertEqual([c["loser"]["item"] for c in lost], [item(pk="same", v=2)])

    def test_increments_on_both_sides_count_once(self):
        self.make(USA, EUROPE)
        self.client(USA).put(self.table, pk="n", n=0)
        self.cluster.wait_converged(self.table, (USA, EUROPE))
        self.cluster.cut_both(USA, EUROPE)
        for region in (USA, EUROPE):
            self.client(region).update(self.table, {"pk": "n"}, "ADD n :one", {"one": 1})
        self.cluster.heal_both(USA, EUROPE)
        self.assertEqual(self.cluster.wait_converged(self.table, (USA, EUROPE)), [item(pk="n", n=1)])

    # ---- replicas of a table that holds data

    def test_c019_data_before_and_during(self):
        usa = self.client(USA)
        usa.create(self.table)
        for n in range(500):
            usa.put(self.table, pk=f"before-{n}", pad="x" * 200)
        usa.call("UpdateTable", TableName=self.table,
                 ReplicaUpdates=[{"Create": {"RegionName": EUROPE}}])
        written, active = 0, False
        while not active or written < 100:
            usa.put(self.table, pk=f"during-{written}")
            written += 1
            active = active or any(r["ReplicaStatus"] == "ACTIVE"
                                   for r in usa.describe(self.table).get("Replicas", []))
            self.assertLess(written, 100_000, "the replica never became ACTIVE")
        self.cluster.wait_members(self.table, (USA, EUROPE))
        self.assertEqual(len(self.cluster.wait_converged(self.table, (USA, EUROPE))), 500 + written)
        # A third one, bootstrapped from the second's endpoint.
        self.client(EUROPE).call("UpdateTable", TableName=self.table,
                                 ReplicaUpdates=[{"Create": {"RegionName": JAPAN}}])
        self.cluster.wait_members(self.table, self.regions)
        self.assertEqual(len(self.cluster.wait_converged(self.table)), 500 + written)
        self.assertEqual(self.conflicts_here(), [])

    def test_c013_removed_replica(self):
        self.make(USA, EUROPE)
        usa = self.client(USA)
        usa.put(self.table, pk="kept", v=1)
        usa.call("UpdateTable", TableName=self.table,
                 ReplicaUpdates=[{"Delete": {"RegionName": EUROPE}}])

        def gone():
            try:
                self.client(EUROPE).describe(self.table)
            except ApiError as error:
                return error.type == "ResourceNotFoundException"
            return False
        wait_until("the replica is gone", gone)
        shown = wait_until("the table is regional again", lambda: (
            t := usa.describe(self.table)) and "Replicas" not in t and t["TableStatus"] == "ACTIVE" and t)
        self.assertNotIn("GlobalTableVersion", shown)
        self.assertTrue(shown["StreamSpecification"]["StreamEnabled"])
        self.assertEqual(usa.get(self.table, pk="kept"), item(pk="kept", v=1))
        usa.call("UpdateTable", TableName=self.table, StreamSpecification={"StreamEnabled": False})
        # The name is free there, and a new replica starts from what the table holds now.
        self.client(USA).put(self.table, pk="more", v=2)
        self.cluster.make_global(self.table, (USA, EUROPE), create=False)
        self.assertEqual(len(self.cluster.wait_converged(self.table, (USA, EUROPE))), 2)

    def test_c004_a_replica_is_a_full_table(self):
        self.make(USA, EUROPE)
        self.client(USA).put(self.table, pk="a", v=1)
        self.cluster.wait_converged(self.table, (USA, EUROPE))
        europe = self.client(EUROPE)
        for page in (europe.call("Query", TableName=self.table, KeyConditionExpression="pk = :p",
                                 ExpressionAttributeValues={":p": {"S": "a"}}),
                     europe.call("Scan", TableName=self.table)):
            self.assertEqual((page["Count"], page["Items"]), (1, [item(pk="a", v=1)]))

    def test_every_type_replicates_byte_for_byte(self):
        self.make()
        everything = {
            "pk": {"S": "types"}, "s": {"S": "h\u00e9llo \u2603 \U0001f30a"}, "empty": {"S": ""},
            "n": {"N": "-1.2345678901234567890123456789012345678E-100"}, "b": {"B": "AAECAw=="},
            "yes": {"BOOL": True}, "nil": {"NULL": True}, "ss": {"SS": ["a", "b"]},
            "ns": {"NS": ["1", "2.5"]}, "bs": {"BS": ["AA==", "AQ=="]},
            "l": {"L": [{"M": {"deep": {"L": [{"N": "0"}]}}}, {"S": ""}]}, "m": {"M": {}}}
        self.client(USA).call("PutItem", TableName=self.table, Item=everything)
        self.cluster.wait_converged(self.table)
        bodies = {self.client(r).raw("GetItem", {"TableName": self.table,
                                                 "Key": {"pk": {"S": "types"}}})[2]
                  for r in self.regions}
        self.assertEqual(len(bodies), 1)
        stored = json.loads(bodies.pop())["Item"]
        self.assertEqual({k: v for k, v in stored.items() if k not in ("n",)},
                         {k: v for k, v in everything.items() if k not in ("n",)})


if __name__ == "__main__":
    main()
