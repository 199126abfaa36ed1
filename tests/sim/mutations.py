#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The mutation gate: every planted bug (conflict/base/plant.h) must be found within its budget.

    mutations.py --plants PLANT.H "KIND SEEDS PROGRAM BUG;BUG;..."...

KIND is a world of the simulator, whose PROGRAM looks for BUG in so many SEEDS (or FIRST+SEEDS, from that one on);
or `rules`, a test of schedules made by hand, which must fail. Prints a table, and fails when a bug is not caught, or
is nobody's to catch."""

import os
import re
import subprocess
import sys
import time


def run_world(program, bug, seeds):
    first, _, count = seeds.rpartition("+")
    done = subprocess.run([program, "--first", first or "1", "--seeds", count, "--plant", bug], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True)
    found = re.search(r"caught after (\d+) seeds?(, by a check)?", done.stdout)
    if done.returncode != 0 or not found or "NOT CAUGHT" in done.stdout:
        return False, f"not in {seeds} seeds"
    return True, f"seed {int(first or 1) + int(found[1]) - 1}" + (", by a core's own check" if found[2] else "")


def run_rules(program, bug, _seeds):
    done = subprocess.run([program, bug], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return done.returncode != 0, "by a schedule made by hand" if done.returncode else "not by any schedule"


def check_unbroken(program):
    """A test of the rules that fails without any bug would seem to catch them all."""
    return subprocess.run([program], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def main():
    arguments = sys.argv[1:]
    planted = []
    if arguments[:1] == ["--plants"]:
        with open(arguments[1], encoding="utf-8") as file:
            planted = re.findall(r'PLANT\([A-Z0-9_]+,\s*"([a-z0-9-]+)"\)', file.read())
        arguments = arguments[2:]
    caught, missed = set(), []
    print(f"{'bug':22} {'world':10} {'seconds':>7}  found")
    for group in arguments:
        kind, seeds, program, bugs = group.split(" ", 3)
        if kind == "rules" and not check_unbroken(program):
            missed.append(f"{program} fails without a bug")
        for bug in re.split(r"[ ;]+", bugs.strip()):
            begin = time.monotonic()
            good, how = (run_rules if kind == "rules" else run_world)(program, bug, seeds)
            took = time.monotonic() - begin
            print(f"{bug:22} {kind:10} {took:7.1f}  {'' if good else 'NOT FOUND: '}{how}", flush=True)
            caught.add(bug)
            if not good:
                missed.append(f"{bug} ({kind})")
    nobodys = [bug for bug in planted if bug not in caught]
    for bug in nobodys:
        print(f"{bug:22} nobody looks for it")
    print(f"{len(caught)} of {len(planted) or len(caught)} planted bugs are looked for, {len(missed)} not found")
    return 1 if missed or nobodys else 0


if __name__ == "__main__":
    os.environ["LC_ALL"] = "C"
    sys.exit(main())
