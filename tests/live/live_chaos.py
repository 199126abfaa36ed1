#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`tidemark chaos` on real clusters: two shipped scenarios, short ones for every exit code, what is
left behind after SIGINT and after kill -9, a program of the user's as workload, and that a run judged
again from its files is judged the same."""

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

from cluster import DEADLINE, ROOT, TIDEMARK, children_of, is_running, main, wait_until

PASS, WRONG, HARNESS, UNKNOWN, SLOW = range(5)

QUICK = """
name: quick
cluster:
  {{mode: {mode}, durability: os, regions: [us-east-1, eu-west-1, ap-northeast-1], links: {{default: {{rtt: 4ms}}}}}}
workload: {workload}
phases:
  - {{name: before, for: 500ms}}
  - name: trouble
    for: {length}
    faults: [{faults}]
  - {{name: heal, do: heal-all, for: 200ms, until: {{{until}, timeout: 60s}}}}
expect: {{{expect}}}
"""
LWW = "{kind: lww-conflict, keys: 10, rate: 150/s, clients_per_region: 3, mix: {write: 0.9, read_eventual: 0.1}}"
SWAP = "{kind: swap-register, keys: 10, rate: 150/s, clients_per_region: 3}"
# A program that will not end, with a child in a session of its own that will not either.
DEAF = "{kind: exec, exec: [sh, -c, \"trap '' TERM HUP INT; (setsid sleep 1000 &); while :; do sleep 1000; done\"]}"
CUT = "{at: 0s, for: 1s, do: partition, shape: halves, id: split}"


def scenario(mode="eventual", workload=LWW, length="1s", faults="", expect="lost_other: 0"):
    until = "converged: true" if mode == "eventual" else "caught_up: true, leaders: true"
    return QUICK.format(**locals())


class Chaos(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tidemark-chaos-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def command(self, *words, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True,
                   "cwd": self.folder, **options}
        before = options.pop("before", ())
        return subprocess.Popen([*before, TIDEMARK, "chaos", *words], **options)

    def chaos(self, *words, code=0):
        process = self.command(*words)
        out, errors = process.communicate(timeout=6 * DEADLINE)
        self.assertEqual(process.returncode, code, out + errors)
        self.assertNotIn("Sanitizer", errors)
        return out, errors

    def write(self, text, name="quick.yaml"):
        with open(self.path(name), "w") as file:
            file.write(text)
        return name

    def result(self, out="out"):
        with open(self.path(out, "result.json")) as file:
            return json.load(file)

    def run_one(self, text, code, out="out"):
        """Runs a scenario; gives the sentence of its verdict, having judged it again."""
        said = self.chaos("run", self.write(text), "--out", out, "--quiet", code=code)[0]
        sentence = said.splitlines()[0]
        self.assertIn(f"report: {out}/report.html", said)
        self.assertEqual(self.chaos("recheck", out, code=code)[0].splitlines()[0], sentence)
        self.assertFalse(os.path.exists(self.path(out, "data")))
        self.assertFalse(os.path.exists(self.path(out, ".undo")))
        return sentence

    # ---- Words

    def test_texts(self):
        listed = self.chaos("list")[0].splitlines()
        shipped = sorted(name[:-5] for name in os.listdir(os.path.join(ROOT, "chaos", "scenarios")))
        self.assertEqual([line.split()[0] for line in listed], shipped)
        self.assertIn("region-loss-eventual: region-loss-eventual, 3 phases",
                      self.chaos("check", *shipped)[0])
        with open(os.path.join(ROOT, "chaos", "scenarios", "disk-full.yaml")) as file:
            self.assertEqual(self.chaos("show", "disk-full")[0], file.read())
        with open(os.path.join(ROOT, "chaos", "scenario", "scenario.schema.json")) as file:
            self.assertEqual(self.chaos("schema")[0], file.read())

    def test_mistakes(self):
        wrong = self.write(scenario().replace("keys: 10", "kees: 10"))
        self.assertIn("quick.yaml:5: workload.kees: there is no such key: did you mean 'keys'?",
                      self.chaos("check", wrong, code=1)[1])
        self.assertIn("quick.yaml:5: ", self.chaos("run", wrong, code=HARNESS)[1])
        self.assertIn("no scenario 'region-los'; built in are clock-ahead,",
                      self.chaos("run", "region-los", code=HARNESS)[1])
        for words in ([], ["runn"], ["run"], ["recheck", "a", "b"], ["import", "other", "x"],
                      ["run", "disk-full", "--seed", "x"], ["run", "disk-full", "--repeat", "0"]):
            self.assertIn("tidemark chaos", self.chaos(*words, code=2)[1])
        self.assertIn("nowhere", self.chaos("recheck", "nowhere", code=HARNESS)[1])

    def test_imports(self):
        for kind, sample in ("fis", "fis_pause.json"), ("chaos-mesh", "mesh.yaml"):
            path = os.path.join(ROOT, "tests", "scenario", sample)
            options = ["--map", "db-west=eu-west-1", "--stop-if", "error_rate: '>0.5 for 30s'"]
            self.write(self.chaos("import", kind, path, *options)[0], kind + ".yaml")
            self.chaos("check", kind + ".yaml")
        errors = self.chaos("import", "fis", path, code=1)[1]
        self.assertIn("mesh.yaml:", errors)

    # ---- What runs come to

    def test_region_loss_eventual(self):
        self.chaos("run", "region-loss-eventual", "--out", "out")
        result = self.result()
        checks = {check["name"]: check for check in result["checkers"]}
        clients = checks["rpo"]["figures"]["rpo_count"]
        self.assertGreater(clients, 0)
        # The Regions count for themselves, from the data that was lost.
        self.assertIn("recount", checks)
        self.assertEqual(checks["recount"]["verdict"], "ok", checks["recount"])
        with gzip.open(self.path("out", "history.ndjson.gz")) as history:
            self.assertGreater(sum(1 for _ in history), 1000)
        with open(self.path("out", "report.html")) as page:
            self.assertIn("RPO", page.read())
        suite = xml.etree.ElementTree.parse(self.path("out", "junit.xml")).getroot()
        self.assertEqual(list(suite.iter("failure")), [])
        self.chaos("recheck", "out")

    def test_region_loss_strong(self):
        said = self.chaos("run", "region-loss-strong", "--out", "out")[0]
        self.assertIn("pass: RPO 0 writes", said)
        self.assertIn(", linearizable", said)

    def test_wrong(self):
        sentence = self.run_one(scenario(faults=CUT, expect="lost_updates: 0"), WRONG)
        self.assertIn("wrong: expected lost_updates 0, ", sentence)
        suite = xml.etree.ElementTree.parse(self.path("out", "junit.xml")).getroot()
        self.assertEqual(len(list(suite.iter("failure"))), 1)
        # The same, expected; and every one of them is in the Regions' ledgers.
        self.run_one(scenario(faults=CUT, expect="lost_updates: '>0', ledger_complete: true"), PASS)

    def test_slow_and_stopped(self):
        sentence = self.run_one(scenario(faults=CUT, expect="converge: '<=1ms'"), SLOW)
        self.assertIn("too slow: expected converge <=1ms", sentence)
        text = scenario(length="60s", faults="{at: 0s, do: client.block, region: us-east-1, id: b}")
        sentence = self.run_one(text + "stop_if: {error_rate: '>0.9 for 1s'}\n", SLOW)
        self.assertIn("stopped early: stop_if error_rate >0.9 for 1s", sentence)

    def test_harness(self):
        # There is no table file yet that could be read.
        text = scenario(faults="{at: 0s, for: 500ms, do: disk.io_error, region: us-east-1, "
                               "files: tables, calls: read, id: nothing}")
        sentence = self.run_one(text, HARNESS)
        self.assertIn("harness error: fault nothing (disk.io_error us-east-1) hit nothing", sentence)

    def test_unknown(self):
        sentence = self.run_one(scenario(faults="", expect="catch_up: '<1s'"), UNKNOWN)
        self.assertIn("unknown: expected catch_up <1s, and there was nothing", sentence)

    def test_strong_leader_lost(self):
        text = scenario("strong", SWAP, "3s", "{at: 0s, for: 1500ms, do: leader.kill, id: kill}",
                        "linearizable: true, rpo_count: 0, converged: true, catch_up: '<10s'")
        self.assertIn(", linearizable", self.run_one(text, PASS))

    def test_seeds(self):
        text = scenario(faults=CUT, expect="lost_updates: '>0'")
        said = self.chaos("run", self.write(text), "--seed", "5", "--repeat", "2", "--quiet")[0]
        self.assertIn("2 of 2 runs passed", said)
        folders = [self.path("runs", "quick", name) for name in
                   os.listdir(self.path("runs", "quick")) if not name.startswith(".")]
        self.assertEqual(len(folders), 2)
        seeds = [open(os.path.join(folder, "seed")).read().strip() for folder in folders]
        self.assertEqual(sorted(seeds), ["5", "6"])

    def test_program_as_workload(self):
        ask = ("import os, sys, urllib.request as u; e = os.environ; print('asked'); "
               "u.urlopen(e['AWS_ENDPOINT_URL_DYNAMODB']); "
               "u.urlopen(u.Request(e['TIDEMARK_CONTROL'] + '/v1/status')); "
               "sys.exit(7 if 'eu-west-1' in e['TIDEMARK_REGIONS'] else 1)")
        text = scenario(workload='{kind: exec, exec: [%s, "-c", "%s"]}' % (sys.executable, ask),
                        faults="", expect="exit_code: 7, converged: true")
        self.run_one(text, PASS)
        with open(self.path("out", "exec.log")) as log:
            self.assertEqual(log.read(), "asked\n")

    def test_program_that_gives_up(self):
        for program, said in ("[sh, -c, 'echo why; exit 3']", "why"), ("[/nonexistent/program]", "No such file"):
            text = scenario(workload="{kind: exec, exec: %s}" % program, faults="", expect="converged: true",
                            length="60s")
            out, errors = self.chaos("run", self.write(text), "--out", "out", "--quiet", code=HARNESS)
            self.assertIn("output: out/exec.log", out)
            self.assertIn(said, errors)

    def test_program_that_ends_early(self):
        """The phases go on without it. Its report can't be written: then standard output has it all."""
        text = scenario(workload="{kind: exec, exec: [sh, -c, exit 0]}", expect="converged: true",
                        faults="{at: 500ms, for: 300ms, do: link.cut, from: us-east-1, to: eu-west-1, id: late}")
        os.makedirs(self.path("out", "result.json.part"))
        open(self.path("out", ".tidemark"), "w").close()
        said, errors = self.chaos("run", self.write(text), "--out", "out", code=HARNESS)
        self.assertIn("program has ended with exit code 0; 1 fault is still to begin without it", said)
        self.assertIn("phase heal", said)
        self.assertIn("harness error: the report could not be written", said)
        self.assertIn("(pass: ", said)
        self.assertIn("result.json: cannot be written", errors)

    # ---- What is said, and where

    def test_output_that_is_lost(self):
        for words in ["schema"], ["list"], ["show", "disk-full"], ["check", "disk-full"], ["--help"]:
            with open("/dev/full", "w") as full:
                process = self.command(*words, stdout=full)
                self.assertIn("standard output could not be written", process.communicate()[1])
                self.assertEqual(process.returncode, 2, words)

    def test_reader_that_leaves(self):
        process, children = self.begin_long("1s")
        process.stdout.close()
        self.assertEqual(process.wait(6 * DEADLINE), PASS, process.stderr.read())
        self.gone(children)
        self.assertEqual(self.result()["result"], "pass")

    def test_places(self):
        os.mkdir(self.path("mine"))
        with open(self.path("mine", "result.json"), "w") as file:
            file.write("{}")
        text = self.write(scenario())
        for words in ("run", text, "--out", "mine"), ("run", text, "--out", "quick.yaml"):
            self.assertIn("directory", self.chaos(*words, code=HARNESS)[1])
        self.assertEqual(os.listdir(self.path("mine")), ["result.json"])

    # ---- Ends before their time

    def begin_long(self, length="60s", workload=LWW, before=()):
        """A run with a Region that is paused for a minute; waits until it is."""
        text = scenario(length=length, workload=workload, expect="converged: true",
                        faults="{at: 0s, do: process.pause, region: us-east-1, id: p}")
        process = self.command("run", self.write(text), "--out", "out", before=before)
        for line in process.stdout:
            if "paused us-east-1" in line:
                break
        children = children_of(process.pid)
        self.assertGreaterEqual(len(children), 3)
        return process, children

    def gone(self, children):
        wait_until("every process is gone", lambda: not any(map(is_running, children)))

    def test_interrupted(self):
        process, children = self.begin_long()
        process.send_signal(signal.SIGHUP)
        out, errors = process.communicate(timeout=DEADLINE)
        self.assertEqual(process.returncode, HARNESS, out + errors)
        self.assertIn("harness error: interrupted by SIGHUP", out)
        self.assertIn("heal: all faults undone", out)
        self.gone(children)
        fault = self.result()["faults"][0]
        self.assertTrue(fault["effective"], fault)
        self.assertFalse(os.path.exists(self.path("out", "data")))

    def test_interrupted_twice(self):
        process, children = self.begin_long(workload=DEAF, before=["nohup"])
        process.send_signal(signal.SIGHUP)  # stays ignored
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=DEADLINE)
        self.assertEqual(process.returncode, HARNESS)
        self.assertIn("interrupted by SIGINT", out + errors)
        self.gone(children)

    def test_killed(self):
        process, children = self.begin_long(workload=DEAF)
        self.assertIn("another run is under way here (process",
                      self.chaos("run", "quick.yaml", "--out", "out", code=HARNESS)[1])
        process.kill()
        process.communicate(timeout=DEADLINE)
        self.gone(children)
        self.assertTrue(os.path.exists(self.path("out", "data")))
        # The next one clears away what it has left.
        self.run_one(scenario(faults=CUT, expect="lost_updates: '>0'"), PASS)


if __name__ == "__main__":
    main()
