#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs README.md: every ```sh block, in order, in one shell, against the cluster that its first block
starts.

A comment before a block, which no reader of the page sees, may say more: `<!-- starts: ./up ... -->` is
the block that starts the cluster, `<!-- expect: REGEX -->` must match the block's output, and
`<!-- not run: REASON -->` says why a block cannot be run here. Ports in the text are those of a default
cluster and are replaced by the test's."""

import os
import re
import shlex
import subprocess
import tempfile
import unittest

from cluster import BUILD, REGIONS, ROOT, TIDEMARK, Cluster, main

with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
    README = file.read()
BLOCK = re.compile(r"((?:<!--.*?-->\s*\n)*)^```(\w+)\n(.*?)^```$", re.M | re.S)
MARK = re.compile(r"<!--\s*(starts|expect|not run):?\s*(.*?)\s*-->", re.S)


class Readme(unittest.TestCase):
    def test_every_block_runs(self):
        blocks = [(MARK.findall(marks), text) for marks, language, text in BLOCK.findall(README)
                  if language == "sh"]
        self.assertGreater(len(blocks), 4)
        cluster, ran = None, 0
        try:
            for marks, text in blocks:
                names = [name for name, _ in marks]
                if "not run" in names:
                    continue
                if "starts" in names:
                    self.assertIsNone(cluster, "README starts one cluster")
                    cluster = self.start(dict(marks)["starts"], text)
                    continue
                self.assertIsNotNone(cluster, "the first block that runs starts the cluster")
                self.run_block(cluster, marks, text)
                ran += 1
        finally:
            if cluster:
                cluster.stop()
        self.assertGreater(ran, 3)

    def start(self, command, text):
        self.assertIn(command, text)
        words = shlex.split(command)
        self.assertEqual(words[0], "./up")
        options = dict(zip(words[1::2], words[2::2]))
        regions = options.pop("--regions", ",".join(REGIONS)).split(",")
        self.state = ""
        return Cluster(regions, options.pop("--durability", "fsync"), options=sum(options.items(), ())).start()

    def run_block(self, cluster, marks, text):
        ports = {str(8000 + n): str(cluster.front + n) for n in range(len(cluster.regions) + 1)}
        ports["8474"] = str(cluster.control_port)
        text = re.sub(r"(localhost|127\.0\.0\.1):(\d+)",
                      lambda m: f"{m[1]}:{ports.get(m[2], m[2])}", text)
        # One shell in effect: functions and variables of earlier blocks are declared again.
        script = f"set -euo pipefail\n{self.state}\n{text}\n"
        done = subprocess.run(["bash", "-c", script], cwd=ROOT, text=True, capture_output=True,
                              timeout=300, check=False, env={
                                  **os.environ, "PATH": f"{BUILD}:/usr/bin:{os.environ['PATH']}",
                                  "TIDEMARK_CONTROL": cluster.control})
        self.assertEqual(done.returncode, 0, f"{text}\n{done.stdout}\n{done.stderr}")
        for name, pattern in marks:
            if name == "expect":
                self.assertRegex(done.stdout, re.compile(pattern, re.S), text)
        self.state += "".join(re.findall(r"^\w+\(\) \{.*\}$\n|^export .*$\n", text, re.M))

    def test_the_configuration_file_is_one(self):
        text = next(text for _, language, text in BLOCK.findall(README) if language == "yaml")
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text)
            file.flush()
            # The test's own options win over the file's, as the page says.
            witnesses = re.search(r"^witness: \[(.*)\]$", text, re.M)[1].split(", ")
            with Cluster(REGIONS[:2], witnesses=witnesses, options=("--config", file.name)) as cluster:
                delays = {(l["from"], l["to"]): l["delay_ms"] for l in cluster.status()["links"]}
        self.assertEqual(delays[REGIONS[:2]], 40)
        self.assertEqual(sum(delays.values()), 40)
        self.assertIn((REGIONS[0], witnesses[0]), delays)

    def test_help_names_what_readme_names(self):
        told = subprocess.run([TIDEMARK, "help"], capture_output=True, text=True, check=True).stdout
        for command in ("up", "status", "conflicts", "link", "region"):
            self.assertIn(command, told)
            self.assertIn(f"`tidemark {command}", README)

    def test_options_in_readme_exist(self):
        told = subprocess.run([TIDEMARK, "up", "--help"], capture_output=True, text=True, check=True).stdout
        table = README[README.index("### Options of `up`"):]
        named = re.findall(r"^\| `(--[a-z-]+)", table[:table.index("\n#", 10)], re.M)
        self.assertGreater(len(named), 5)
        for option in named:
            self.assertIn(option, told)
        for option in re.findall(r"(--[a-z][a-z-]+)", told):
            if option not in ("--help", "--usage", "--version", "--json"):
                self.assertIn(option, named, "README leaves it out")


if __name__ == "__main__":
    main()
