#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`tidemark sim` as a user has it: what it prints, its exit codes, its JSON and diagrams; and, in the build with
planted bugs, that a failure comes smaller, and comes again by the command that is printed with it."""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as tree

BUILD = os.environ.get("TIDEMARK_BUILD", "build/release")
TOOL = os.path.join(BUILD, "tidemark")
PLANTED = os.path.join(BUILD, "tests/sim/sim_tool_planted")
SVG = "{http://www.w3.org/2000/svg}"

SCENARIO = """
name: lost
cluster: {mode: %s, regions: [us-east-1, eu-west-1, ap-northeast-1], links: {default: {rtt: 40ms}}}
workload: {kind: swap-register, keys: 20, rate: 100/s, clients_per_region: 3}
phases:
  - {name: before, for: 2s}
  - name: faults
    for: 3s
    faults:
      - {at: 100ms, for: 500ms, do: link.delay, from: all, to: eu-west-1, delay: 5ms, id: harmless}
      - {at: 500ms, do: disk.wipe, region: us-east-1, id: loss}
      - {at: 1s, for: 1s, do: clock.offset, region: eu-west-1, offset: 5ms, id: harmless-too}
  - {name: after, do: heal-all, for: 1s, until: {%s: true, timeout: 60s}}
expect: {rpo_count: 0}
"""


def run(*arguments, tool=None):
    command = [tool] if tool else [TOOL, "sim"]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=300, check=False)


def again(line, tool):
    """Runs a printed command once more."""
    words = shlex.split(line)
    assert words[:2] == ["tidemark", "sim"], line
    return run(*words[2:], tool=tool)


class Sim(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def path(self, name, text=None):
        path = os.path.join(self.directory.name, name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return path

    def test_all_worlds_print_their_speed_and_what_they_came_by(self):
        done = run("--seeds", "4")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for world in ("mrec", "mrsc", "consensus"):
            self.assertRegex(done.stdout, rf"(?m)^{world}: 4 seeds, 0 failed; \d+ events in [\d.]+ s of processor "
                                          r"time: [\d.]+ seeds/s, \d+ events/s")
        self.assertRegex(done.stdout, r"(?m)^ +\d+  origin-commits-first ")

    def test_one_world_as_json(self):
        done = run("--mode", "consensus", "--seeds", "3", "--first", "5", "--json")
        self.assertEqual(done.returncode, 0)
        (world,) = json.loads(done.stdout)
        self.assertEqual((world["name"], world["seeds"], world["first"], world["failed"]), ("consensus", 3, 5, 0))
        self.assertGreater(world["events_per_second"], 0)
        self.assertIn("relayed", world["came_by"])

    def test_a_diagram_of_a_seed(self):
        path = self.path("seed.svg")
        self.assertEqual(run("--mode", "mrsc", "--seeds", "1", "--diagram", path).returncode, 0)
        root = tree.parse(path).getroot()
        self.assertEqual(root.tag, SVG + "svg")
        self.assertGreater(len(root.findall(SVG + "path")), 20)

    def test_a_diagram_that_cannot_be_written(self):
        done = run("--mode", "consensus", "--seeds", "1", "--diagram", "/nowhere/x.svg")
        self.assertEqual(done.returncode, 2)
        self.assertIn("/nowhere/x.svg can't be written", done.stderr)

    def test_what_is_not_understood(self):
        for arguments in (["--mode", "x"], ["--seeds", "-1"], ["--faults", "64"], ["word"],
                          ["--mode", "mrec", "--scenario", "slow-link"], ["--scenario", self.path("none.yaml")]):
            done = run(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertTrue(done.stderr)

    def test_shipped_scenarios_pass(self):
        for name in ("region-loss-strong", "region-loss-eventual", "random-eventual", "random-strong"):
            done = run("--scenario", name, "--twice")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertRegex(done.stdout, rf"^{name}, seed \d+: pass: ")

    def test_a_scenario_that_cannot_be_simulated(self):
        text = SCENARIO % ("eventual", "converged")
        path = self.path("flip.yaml", text.replace("do: disk.wipe", "do: disk.bitflip"))
        done = run("--scenario", path)
        self.assertEqual(done.returncode, 2)
        self.assertIn("disk.bitflip can't be simulated", done.stderr)

    def test_a_scenario_that_fails_comes_smaller_and_again(self):
        path = self.path("lost.yaml", SCENARIO % ("eventual", "converged"))
        svg = self.path("lost.svg")
        done = run("--scenario", path, "--first", "3", "--diagram", svg)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("NO   rpo_count 0", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^1 fault needed, \d+ operations:$")
        self.assertIn("disk.wipe", done.stdout)
        self.assertNotIn("clock.offset", done.stdout)
        command = re.search(r"(?m)^run it again: (.*) --trace$", done.stdout)[1]
        repeated = run(*shlex.split(command)[2:])
        self.assertEqual(repeated.returncode, 1)
        self.assertIn("NO   rpo_count 0", repeated.stdout)
        tree.parse(svg)
        strong = self.path("kept.yaml", SCENARIO % ("strong", "caught_up"))
        self.assertEqual(run("--scenario", strong).returncode, 0)

    def check_planted(self, world, bug):
        if not os.path.exists(PLANTED):
            self.skipTest("no build with planted bugs")
        svg = self.path("bug.svg")
        done = run("--mode", world, "--plant", bug, "--seeds", "3000", "--diagram", svg, "--json", tool=PLANTED)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        (found,) = json.loads(done.stdout)
        failure = found["failures"][0]
        repeated = again(failure["again"] + f" --plant {bug}", PLANTED)
        self.assertEqual(repeated.returncode, 1)
        self.assertIn(failure["violation"].split(" (")[0], repeated.stdout)
        text = "".join(tree.parse(svg).getroot().itertext())
        self.assertIn(failure["violation"], text)
        return failure

    def test_a_planted_bug_that_needs_no_fault(self):
        failure = self.check_planted("consensus", "claim-unsynced")
        self.assertEqual(failure["faults"], [])
        self.assertLess(failure["operations"], 5)

    def test_a_planted_bug_that_needs_few(self):
        failure = self.check_planted("consensus", "read-own-term")
        self.assertLessEqual(len(failure["faults"]), 4)

    def test_a_planted_bug_in_whole_regions(self):
        self.check_planted("mrsc", "stable-early")
        self.check_planted("mrec", "ack-early")


if __name__ == "__main__":
    program = unittest.main(exit=False, verbosity=0)
    result = program.result
    bad = len(result.failures) + len(result.errors)
    skips = len(result.skipped)
    for _, reason in result.skipped:
        print(f"sim_tool: skipped {reason}")
    print(f"sim_tool: {result.testsRun - bad - skips} passed, {bad} failed, {skips} skipped")
    sys.exit(bad > 0)
