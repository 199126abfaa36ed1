# SPDX-License-Identifier: Apache-2.0
"""Runs tests/live/toxiproxy_js, Toxiproxy's own client for Node, against a cluster's control API."""

import os
import re
import shutil
import subprocess
import unittest

from cluster import DEADLINE, ClusterTest, main

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "toxiproxy_js")


@unittest.skipUnless(shutil.which("node"), "node is not installed")
@unittest.skipUnless(os.path.isdir(os.path.join(HERE, "node_modules")),
                     "the client is not installed (npm ci in tests/live/toxiproxy_js)")
class Node(ClusterTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        done = subprocess.run(
            ["node", "--test", "--test-reporter=tap", "toxiproxy.test.mjs"], cwd=HERE, text=True,
            capture_output=True, timeout=5 * DEADLINE, check=False,
            env={**os.environ, "TIDEMARK_CONTROL": cls.cluster.control})
        cls.output = done.stdout + done.stderr
        cls.results = {name: ok for ok, name in re.findall(
            r"^\s*(not ok|ok) \d+ - (.*?)(?: #.*)?$", cls.output, re.M)}

    def passed(self, name):
        self.assertEqual(self.results.get(name), "ok", self.output)

    def test_own_proxy(self):
        self.passed("a proxy of one's own")

    def test_populate(self):
        self.passed("populate")

    def test_links(self):
        self.passed("the links of the cluster")


if __name__ == "__main__":
    main()
