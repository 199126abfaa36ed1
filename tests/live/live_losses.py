#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Regions lost, by seeds: whatever is drawn, the RPO that the clients' histories come to is the one that the
Regions count in their own data, and under strong consistency it is 0. A seed draws which Region dies, when, how
and how far away the others are. Three of each mode, or as many as said:

    live_losses.py [--runs 50] [--at-once 4] [--seed 1] [--mode eventual|strong] [--keep DIR]

A run is a short region-loss-eventual or region-loss-strong. Of a write whose answer never came nobody but the
Regions can tell whether it was lost; so their count may be above the clients' by as many as the clients do not
know of, and by no more."""

import argparse
import concurrent.futures
import json
import os
import random
import re
import subprocess
import sys
import tempfile

from cluster import DEADLINE, ROOT, SANITIZED, TIDEMARK

NAME = "live_losses"
PASS = 0


def shipped(name):
    with open(os.path.join(ROOT, "chaos", "scenarios", name + ".yaml"), encoding="utf-8") as file:
        return file.read()


def replaced(text, pattern, by):
    """A shipped scenario that no longer has what is to be replaced is a failure, not the same run again."""
    text, count = re.subn(pattern, by, text, flags=re.M)
    if count != 1:
        raise AssertionError(f"the scenario has {pattern} {count} times")
    return text


def shortened(text, draw, loss):
    text = replaced(text, r"name: baseline, for: \w+", f"name: baseline, for: {draw.randrange(1500, 3000)}ms")
    text = replaced(text, r"(name: loss\n +)for: \w+", rf"\1for: {loss}")
    return replaced(text, r"do: heal-all, for: \w+", "do: heal-all, for: 1s")


def eventual(draw):
    dead = draw.choice(("us-east-1", "eu-west-1", "ap-northeast-1"))
    text = shipped("region-loss-eventual")
    text = replaced(text, r"(default: \{)rtt: \w+", rf"\1rtt: {draw.randrange(60, 400)}ms")
    text = replaced(text, r"rate: \w+/s", f"rate: {draw.randrange(150, 400)}/s")
    text = replaced(text, r"keys: \d+", f"keys: {draw.choice((5, 50, 500))}")
    text = shortened(text, draw, "2s")
    text = replaced(text, r"do: disk.wipe, region: \S+?,", f"do: disk.wipe, region: {dead},")
    # A seed may lose nothing, and latencies are not what is looked at.
    text = replaced(text, r"^  rpo_count: .*\n  rpo_seconds: .*\n  rto: .*\n", "")
    return replaced(text, r"^  converge: .*", "  converged: true")


def strong(draw):
    how = draw.choice(("do: process.kill, region: {}, signal: KILL, lose_unsynced: true", "do: disk.wipe, region: {}"))
    dead = draw.choice(("us-east-1", "us-east-2", "leader"))
    text = shipped("region-loss-strong")
    text = replaced(text, r"(default: \{)rtt: \w+", rf"\1rtt: {draw.randrange(10, 80)}ms")
    text = replaced(text, r"rate: \w+/s", f"rate: {draw.randrange(60, 160)}/s")
    text = replaced(text, r"keys: \d+", f"keys: {draw.choice((4, 32, 128))}")
    text = shortened(text, draw, "3s")
    text = replaced(text, r"do: process.kill, .*lose_unsynced: true", how.format(dead))
    return replaced(text, r"^  rto: .*\n", "")


SCENARIOS = {"eventual": eventual, "strong": strong}


def judge(mode, result):
    """What is wrong with a run that has passed by its own account; and a line about it."""
    rpo = result["rpo"]
    lost, by_regions = rpo["count"], rpo.get("count_by_regions")
    fault, = result["faults"]
    said = f"{fault['verb']} {fault['regions'][0]}: RPO {lost} writes"
    if not fault["effective"]:
        return "the fault has hit nothing", said
    if mode == "strong":
        return (f"{lost} writes lost" if lost != 0 else None), said
    unknown = next((check["figures"]["clients_unknown"] for check in result["checkers"]
                    if check["name"] == "recount"), None)
    said += f", the Regions' own count {by_regions}"
    if unknown:
        said += f" ({unknown} unanswered)"
    if unknown is None or by_regions is None or not lost <= by_regions <= lost + unknown:
        return "the counts differ", said
    return None, said


def lose(mode, seed, folder):
    """One run: what is wrong with it or None, a line, and whether the counts are the very same."""
    out = os.path.join(folder, f"{mode}-{seed}")
    path = out + ".yaml"
    with open(path, "w", encoding="utf-8") as file:
        file.write(SCENARIOS[mode](random.Random(f"{mode} {seed}")))
    run = subprocess.run([TIDEMARK, "chaos", "run", path, "--out", out, "--seed", str(seed), "--quiet"],
                         capture_output=True, text=True, timeout=6 * DEADLINE, check=False)
    if run.returncode != PASS or "Sanitizer" in run.stderr:
        return run.stdout + run.stderr[-4000:], f"exit code {run.returncode}", False, 0
    with open(os.path.join(out, "result.json"), encoding="utf-8") as file:
        result = json.load(file)
    wrong, said = judge(mode, result)
    return wrong, said, result["rpo"].get("count_by_regions") == result["rpo"]["count"], result["rpo"]["count"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--at-once", type=int, default=1 if SANITIZED else 3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mode", choices=SCENARIOS)
    parser.add_argument("--keep", help="leave the reports here")
    options = parser.parse_args()
    failed = passed = 0
    with tempfile.TemporaryDirectory(prefix="tidemark-losses-") as folder:
        folder = options.keep or folder
        os.makedirs(folder, exist_ok=True)
        for mode in [options.mode] if options.mode else SCENARIOS:
            seeds = range(options.seed, options.seed + options.runs)
            with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
                ends = list(pool.map(lambda seed, mode=mode: lose(mode, seed, folder), seeds))
            for seed, (wrong, said, _, _) in zip(seeds, ends):
                print(f"{mode} {seed}: {'ok' if wrong is None else 'FAILED: ' + wrong}: {said}")
            bad = sum(end[0] is not None for end in ends)
            lost = [end[3] for end in ends]
            print(f"{mode}: {len(ends)} losses, {sum(lost)} writes lost, {max(lost)} at most, none in {lost.count(0)}"
                  + (f"; counts the very same in {sum(end[2] for end in ends)}" if mode == "eventual" else ""))
            failed, passed = failed + bad, passed + len(ends) - bad
    print(f"{NAME}: {passed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
