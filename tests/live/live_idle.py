#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a cluster costs that does nothing: ready within two seconds, under 40 MB and a few wake-ups a
second for each Region. Only for a build without sanitizers, which keep memory of their own."""

import re
import time

from cluster import SANITIZED, ClusterTest, main


class Idle(ClusterTest):
    durability = "fsync"

    def setUp(self):
        super().setUp()
        if SANITIZED:
            self.skipTest("a sanitized build is slower and larger by design")

    def test_ready_within_two_seconds(self):
        self.assertLess(self.cluster.seconds_to_ready, 2)

    def test_memory(self):
        self.cluster.make_global(self.table)
        for region in self.regions:
            self.assertLess(self.cluster.resident_kib(region), 40 * 1024, region)

    def test_wake_ups(self):
        def switches(pid):
            total = 0
            with open(f"/proc/{pid}/status") as status:
                total += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status.read(), re.M).group(1))
            return total
        pids = {region: self.cluster.pid(region) for region in self.regions}
        before = {region: switches(pid) for region, pid in pids.items()}
        time.sleep(2)  # the span that is measured
        for region, pid in pids.items():
            # Heartbeats of two peers, five a second each way, are the most of it.
            self.assertLess((switches(pid) - before[region]) / 2, 40, region)


if __name__ == "__main__":
    main()
