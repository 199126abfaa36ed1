#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Deliberately broken builds, on real processes: each bug is failed by a shipped scenario, by the checker whose
matter it is, and the same programs without the bug pass the scenario. Wants programs that have the bugs in them
(conflict/base/plant.h): the target planted_programs, in build/sim/planted.

    live_broken.py [--all] [--at-once 4] [--keep DIR]        without --all: the two that are the quickest to show"""

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

NAME = "live_broken"
BUILD = os.environ.get("TIDEMARK_BUILD", os.path.join("build", "sim", "planted"))
TIDEMARK = os.path.join(BUILD, "tidemark")
PASS, WRONG, SLOW = 0, 1, 4
DEADLINE_S = 360
# What is broken, the bug's name, the scenario, and the checkers that may be the ones to say so.
BUGS = (
    ("one batch is dropped on reconnecting", "drop-batch", "flapping-link", ("ledgers", "rpo", "converge")),
    ("strong reads are stale", "read-unstable", "slow-disk-strong", ("chain", "linear")),
    ("writes are acknowledged before they are durable", "reply-early", "power-cut", ("rpo", "ledgers")),
    ("equal times are not decided", "skip-tie-break", "equal-times", ("ledgers", "converge")),
)
QUICK = 2


def run(job):
    """None and a line, or what is wrong and a line. Without a bug a slow machine is no matter here."""
    folder, scenario, bug, checkers = job
    out = os.path.join(folder, f"{scenario}-{bug or 'sound'}")
    command = [TIDEMARK, "chaos", "run", scenario, "--out", out, "--quiet"] + (["--plant", bug] if bug else [])
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    said = f"{bug or 'no bug'}: {done.stdout.splitlines()[0] if done.stdout else done.stderr[-2000:]}"
    if bug is None:
        return (None if done.returncode in (PASS, SLOW) else f"exit code {done.returncode}"), said
    if done.returncode != WRONG:
        return f"exit code {done.returncode}, not {WRONG}", said
    with open(os.path.join(out, "result.json"), encoding="utf-8") as file:
        wrong = [check["name"] for check in json.load(file)["checkers"] if check["verdict"] == "wrong"]
    return (None if set(wrong) & set(checkers) else f"not by {' or '.join(checkers)}, but by {wrong}"), said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--keep", help="leave the reports here")
    options = parser.parse_args()
    if not os.path.exists(TIDEMARK):
        print(f"{NAME}: skipped: no {TIDEMARK}; build the target planted_programs")
        sys.exit(77)
    bugs = BUGS if options.all else BUGS[:QUICK]
    with tempfile.TemporaryDirectory(prefix="tidemark-broken-") as folder:
        folder = options.keep or folder
        os.makedirs(folder, exist_ok=True)
        jobs = [(folder, scenario, bug, checkers) for _, name, scenario, checkers in bugs for bug in (name, None)]
        with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
            ends = list(pool.map(run, jobs))
    unknown = subprocess.run([TIDEMARK, "chaos", "list", "--plant", "no-such"], capture_output=True, check=False)
    failed = unknown.returncode != 2
    print(f"a bug that there is not: {'FAILED: taken' if failed else 'refused'}")
    for (_, scenario, bug, _), (wrong, said) in zip(jobs, ends):
        what = next(text for text, _, of, _ in bugs if of == scenario) if bug else "sound"
        print(f"{what}: {'FAILED: ' + wrong + ': ' if wrong else ''}{said}")
        failed += wrong is not None
    print(f"{NAME}: {len(ends) + 1 - failed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
