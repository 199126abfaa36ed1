#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Strong tables and disks, on real files: a member's disk is lost, bits turn in its files, it is full, or all
members die at once. Clients go on meanwhile, and in the end what they saw is judged as in
live_strong_rounds.py: nothing that was acknowledged may be lost, here or by a further loss that the table must
bear again.

TIDEMARK_FLIPS is how many turned bits are tried in each test of them (4), TIDEMARK_SEED where they are."""

import glob
import os
import random
import re
import resource
import shutil
import signal

from cluster import EUROPE, JAPAN, USA, ApiError, ClusterTest, main, wait_until
from strong_check import Load, groups_of, items_of, wait_full

WITNESS = "us-west-2"
FLIPS = int(os.environ.get("TIDEMARK_FLIPS", "4"))
SEED = int(os.environ.get("TIDEMARK_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)


class Disks(ClusterTest):
    """What is common: three members, of which each may be harmed."""

    def directory(self, region):
        return os.path.join(self.cluster.data, "regions", region)

    def kill(self, region):
        self.cluster.command("region", "kill", region)

    def restart(self, region, *options, status=0):
        self.cluster.command("region", "restart", region, *options, status=status)

    def others(self, region):
        return [other for other in self.regions if other != region]

    def survives_the_loss_of(self, load, *members):
        """The table goes on without each of them, one after the other: so the rest is whole and counts."""
        for member in members:
            self.kill(member)
            load.wait_writes(*self.others(member))
            self.restart(member)
            load.wait_writes(*self.regions)

    def sound(self, table, region):
        """What this member holds, read by itself; None if something of it cannot be read."""
        try:
            return items_of(self.cluster, region, table)
        except ApiError as error:
            self.assertEqual(error.status, 500, error)
            return None

    def turn_bits(self, victim):
        """Bits in a stopped member's files, one at a time, while the others serve. It starts, if what is
        damaged is not needed, or refuses and names the option; with that, it is filled again."""
        print(f"seed {SEED}: {FLIPS} bits in files of {victim}")
        rng = random.Random(f"{SEED} {victim}")
        table = self.cluster.make_strong(self.table)
        with Load(self.cluster, table, seed=SEED) as load:
            for number in range(FLIPS):
                pattern = ("*.log", "*.ldb")[number % 2]
                if pattern == "*.ldb":  # a start makes a table file of what was in the log
                    self.kill(victim)
                    self.restart(victim)
                    wait_full(self.cluster, table, victim)
                self.kill(victim)
                load.wait_writes(*self.others(victim))
                print("  " + self.turn_one(victim, pattern, rng), flush=True)
                self.start_damaged(table, victim)
                wait_full(self.cluster, table, victim)
                load.wait_writes(*self.regions)
                if number % 2:
                    self.survives_the_loss_of(load, self.others(victim)[number // 2 % len(self.others(victim))])

    def turn_one(self, victim, pattern, rng):
        path = rng.choice(sorted(path for path in glob.glob(os.path.join(self.directory(victim), pattern))
                                 if os.path.getsize(path) > 0))
        place, bit = rng.randrange(os.path.getsize(path)), rng.randrange(8)
        with open(path, "r+b") as file:
            file.seek(place)
            old = file.read(1)[0]
            file.seek(place)
            file.write(bytes([old ^ 1 << bit]))
        return f"{os.path.basename(path)}: byte {place} of {os.path.getsize(path)}, bit {bit}"


class DataMembers(Disks):
    def start_damaged(self, table, victim):
        told = len(self.cluster.log_tail(1 << 30))
        try:
            self.restart(victim)
        except AssertionError:
            said = self.cluster.log_tail(1 << 30)[told:]
            self.assertRegex(said, rf"the store is damaged: .*{victim}.*--discard-damaged-store")
            print("    refuses to start")
        else:
            sound = self.sound(table, victim) is not None
            print("    starts, and " + ("serves its items" if sound else "refuses to read it"))
            self.kill(victim)
        # A start reads what it needs; with the option all is read. (A bit may also lie where nobody reads.)
        self.restart(victim, "--discard-damaged-store")
        aside = re.search(r"set aside as \S+", self.cluster.log_tail(1 << 30)[told:])
        print("    " + (aside[0] if aside else "nothing of it matters"))

    def test_turned_bits(self):
        self.turn_bits(EUROPE)

    def test_lost_disk(self):
        table = self.cluster.make_strong(self.table)
        with Load(self.cluster, table) as load:
            self.kill(EUROPE)
            load.wait_writes(*self.others(EUROPE), count=300)
            shutil.rmtree(self.directory(EUROPE))
            # It must not be counted before it is whole: it does not know what it has promised. So with Japan
            # gone nobody serves, although two members are up and hear each other.
            self.kill(JAPAN)
            self.restart(EUROPE)
            wait_until("Europe is rebuilding", lambda: {
                g["standing"] for g in groups_of(self.cluster, table, EUROPE)} == {"rebuilding"})
            for _ in range(2):
                with self.assertRaises(ApiError) as caught:
                    self.client(USA).put(table, pk="not yet", v=1)
                self.assertEqual(caught.exception.status, 500)
            self.assertTrue(items_of(self.cluster, USA, table))  # an eventual read asks nobody
            self.restart(JAPAN)
            load.wait_writes(*self.regions)
            wait_full(self.cluster, table, EUROPE)
            self.survives_the_loss_of(load, USA, JAPAN)

    def test_full_disk(self):
        table = self.cluster.make_strong(self.table)
        with Load(self.cluster, table) as load:
            for victim in (EUROPE, USA):
                pid = self.cluster.pid(victim)
                # No file may grow any more. (A small file system would need root.)
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
                refused = load.refused(victim)
                wait_until("its clients are told", lambda: load.refused(victim) > refused)
                load.wait_writes(*self.others(victim))
                self.assertTrue(items_of(self.cluster, victim, table))
                self.assertEqual(self.cluster.pid(victim), pid, "it has not ended")
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
                load.wait_writes(*self.regions)
                wait_full(self.cluster, table, victim)


class WitnessMember(Disks):
    regions, witnesses = (USA, EUROPE), (WITNESS,)

    def start_damaged(self, table, victim):
        told = len(self.cluster.log_tail(1 << 30))
        self.restart(victim)
        aside = re.search(r"set aside as \S+", self.cluster.log_tail(1 << 30)[told:])
        print("    " + (aside[0] if aside else "starts with it"))

    def test_turned_bits(self):
        self.turn_bits(WITNESS)

    def test_lost_disk(self):
        table = self.cluster.make_strong(self.table)
        with Load(self.cluster, table) as load:
            for lost_later in self.regions:
                self.kill(WITNESS)
                load.wait_writes(*self.regions)
                shutil.rmtree(self.directory(WITNESS))
                self.restart(WITNESS)
                wait_full(self.cluster, table, WITNESS)
                self.survives_the_loss_of(load, lost_later)

    def test_lost_disk_of_a_data_member(self):
        table = self.cluster.make_strong(self.table)
        with Load(self.cluster, table) as load:
            self.kill(EUROPE)
            load.wait_writes(USA, count=300)
            shutil.rmtree(self.directory(EUROPE))
            self.restart(EUROPE)
            load.wait_writes(*self.regions)
            wait_full(self.cluster, table, EUROPE)
            # What was written while Europe was away has been on the other two; now Europe and the witness
            # must have it all.
            self.survives_the_loss_of(load, USA)


class AllAtOnce(Disks):
    durability = "fsync"

    def test_all_members_die(self):
        table = self.cluster.make_strong(self.table)
        with Load(self.cluster, table, threads=2) as load:
            for _ in range(3):
                load.wait_writes(count=300)
                for pid in [self.cluster.pid(region) for region in self.regions]:
                    os.kill(pid, signal.SIGKILL)
                for region in self.regions:
                    self.restart(region)
                load.wait_writes(*self.regions)


if __name__ == "__main__":
    main()
