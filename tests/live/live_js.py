#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs tests/live/js, the AWS SDK for JavaScript v3, against a cluster; each of its tests is one here."""

import os
import re
import shutil
import subprocess
import unittest

from cluster import DEADLINE, REGIONS, ClusterTest, main

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "js")


@unittest.skipUnless(shutil.which("node"), "node is not installed")
@unittest.skipUnless(os.path.isdir(os.path.join(HERE, "node_modules")),
                     "the SDK is not installed (npm ci in tests/live/js)")
class JavaScript(ClusterTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        done = subprocess.run(
            ["node", "--test", "--test-reporter=tap", "global_table.test.mjs"], cwd=HERE, text=True,
            capture_output=True, timeout=20 * DEADLINE, check=False, env={
                **os.environ, "AWS_ENDPOINT_URL_DYNAMODB": cls.cluster.endpoint(),
                "TIDEMARK_REGIONS": ",".join(REGIONS), "TIDEMARK_DEADLINE": str(DEADLINE),
                "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret",
                "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"})
        cls.output = done.stdout + done.stderr
        cls.results = {name: ok for ok, name in re.findall(
            r"^\s*(not ok|ok) \d+ - (.*?)(?: #.*)?$", cls.output, re.M)}

    def passed(self, name):
        self.assertEqual(self.results.get(name), "ok", self.output)

    def test_two_regions(self):
        self.passed("a global table over 2 Regions")

    def test_three_regions(self):
        self.passed("a global table over 3 Regions")

    def test_five_thousand_items_page_by_page(self):
        self.passed("5,000 items page by page")


if __name__ == "__main__":
    main()
