#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A long run of each mode under random faults, both at once, watched from outside: what the processes hold must
not grow. Ten minutes, or as many seconds as said: soak.py [--seconds 600] [--seed 1] [--keep DIR]

The scenarios are random-eventual and random-strong with one long storm. Every second each process is looked at in
/proc. Regions are killed and started anew all the time, so they are compared by their calm: the median of what a
Region holds in the second quarter of the time and in the last. The harness keeps the history of every operation,
so it may grow by that, and by nothing else. A child that has ended must have been reaped when it is seen next."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from cluster import DEADLINE, TIDEMARK, children_of
from live_losses import replaced, shipped

NAME = "soak"
MODES = ("eventual", "strong")
# A fault every 2.5 s, each for 0.5 to 2 s; a random phase draws 256 at most.
FAULT_EVERY_S = 2.5
FAULTS_MAX = 256
GROWTH_KIB_MAX = 16 << 10  # of a Region, beside 1/4 of what it had; LevelDB alone keeps two buffers of 4 MiB
HISTORY_BYTES_MAX = 1024   # of the harness, per operation
DESCRIPTORS_MAX = 12       # more than before: a table file or a connection under way, but no row of them
REPORT_BYTES_MAX = 5_000_000


def look(pid):
    """Resident KiB, descriptors and whether it is a zombie; None: it is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as status:
            told = dict(line.split(":", 1) for line in status if ":" in line)
        zombie = told["State"].split()[0] == "Z"
        return int(told.get("VmRSS", "0").split()[0]), 0 if zombie else len(os.listdir(f"/proc/{pid}/fd")), zombie
    except (OSError, ValueError):
        return None


def region_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8") as line:
            words = line.read().split("\0")
        return words[words.index("--region") + 1]
    except (OSError, ValueError):
        return None


class Soak(threading.Thread):
    def __init__(self, mode, options, folder):
        super().__init__()
        self.mode, self.seconds, self.seed = mode, options.seconds, options.seed
        self.out = os.path.join(folder, mode)
        self.samples = {}  # by Region, "harness" for the harness: (second, KiB, descriptors)
        self.zombies, self.wrong, self.said = [], [], []

    def scenario(self):
        text = shipped(f"random-{self.mode}")
        text = replaced(text, r"(name: storm\n +for: )\w+", rf"\g<1>{self.seconds}s")
        text += f"budgets: {{wall: {self.seconds + 120}s}}\n"
        return replaced(text, r"(^ +count: )\w+", rf"\g<1>{max(4, min(FAULTS_MAX, int(self.seconds / FAULT_EVERY_S)))}")

    def watch(self, harness, began):
        ended = set()
        while harness.poll() is None:
            now = time.monotonic() - began
            dead = set()
            for pid in [harness.pid] + children_of(harness.pid):
                name = "harness" if pid == harness.pid else region_of(pid)
                seen = look(pid)
                if seen and seen[2] and pid != harness.pid:
                    dead.add(pid)
                elif seen and name:
                    self.samples.setdefault(name, []).append((now, *seen[:2]))
            self.zombies += dead & ended
            ended = dead
            time.sleep(1)  # the pace of the samples

    def run(self):
        path = self.out + ".yaml"
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.scenario())
        with open(self.out + ".log", "w", encoding="utf-8") as log:
            command = [TIDEMARK, "chaos", "run", path, "--out", self.out, "--seed", str(self.seed)]
            with subprocess.Popen(command, stdout=log, stderr=log) as harness:
                overdue = threading.Timer(self.seconds + 6 * DEADLINE, harness.kill)
                overdue.start()
                self.watch(harness, time.monotonic())
                overdue.cancel()
        if harness.returncode != 0:
            with open(self.out + ".log", encoding="utf-8") as log:
                self.wrong.append(f"exit code {harness.returncode}: " + "".join(log.readlines()[-6:]))
        if os.path.exists(os.path.join(self.out, "result.json")):
            self.judge()

    def quarter(self, name, which, column):
        """The median over one quarter of the storm."""
        part = self.seconds / 4
        values = [sample[column] for sample in self.samples.get(name, [])
                  if which * part <= sample[0] < (which + 1) * part]
        return statistics.median(values) if values else 0

    def judge(self):
        with open(os.path.join(self.out, "result.json"), encoding="utf-8") as file:
            result = json.load(file)
        operations = sum(line["ok"] + line["failed"] + line["info"] for line in result["operations"])
        between = operations / 2  # of the middles of the second quarter and the last
        for name in sorted(self.samples):
            memory, descriptors = ([self.quarter(name, which, column) for which in (1, 3)] for column in (1, 2))
            self.said.append(f"{name}: {memory[0] / 1024:.1f} -> {memory[1] / 1024:.1f} MiB, "
                             f"{descriptors[0]:.0f} -> {descriptors[1]:.0f} descriptors")
            allowed = (HISTORY_BYTES_MAX * between / 1024 if name == "harness" else memory[0] / 4) + GROWTH_KIB_MAX
            if memory[1] - memory[0] > allowed:
                self.wrong.append(f"{name}: memory grows")
            if descriptors[1] - descriptors[0] > DESCRIPTORS_MAX:
                self.wrong.append(f"{name}: descriptors grow")
        if self.zombies:
            self.wrong.append(f"zombies: {self.zombies}")
        sizes = {name: os.path.getsize(os.path.join(self.out, name)) for name in sorted(os.listdir(self.out))}
        if sizes["report.html"] > REPORT_BYTES_MAX:
            self.wrong.append("the report is too large")
        self.said.append(f"{operations} operations, {len(result['faults'])} faults, verdict: {result['verdict']}")
        self.said.append("bytes: " + ", ".join(f"{name} {size}" for name, size in sizes.items() if size > 10000))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mode", choices=MODES)
    parser.add_argument("--keep", help="leave the reports here")
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="tidemark-soak-") as folder:
        folder = options.keep or folder
        os.makedirs(folder, exist_ok=True)
        soaks = [Soak(mode, options, folder) for mode in ([options.mode] if options.mode else MODES)]
        for soak in soaks:
            soak.start()
        for soak in soaks:
            soak.join()
            for line in soak.said:
                print(f"{soak.mode}: {line}")
            for line in soak.wrong:
                print(f"{soak.mode}: FAILED: {line}")
            failed += bool(soak.wrong) or not soak.said
    print(f"{NAME}: {len(soaks) - failed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
