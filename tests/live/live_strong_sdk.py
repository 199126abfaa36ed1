#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Strong tables by the clients that users have: the AWS SDK for JavaScript v3 makes them, over three Regions,
over two and a witness in a third that serves, and over two and a witness process, and is refused what AWS
refuses; then Debian's boto3 and AWS CLI, which are older than the parameter, read and write them.

A write in one Region and at once a strong read in another, TIDEMARK_STRONG_READS times in all (500), half by
JavaScript and half by boto3: no answer may be stale."""

import os
import re
import shutil
import subprocess
import time
import unittest

from cluster import DEADLINE, EUROPE, USA, ClusterTest, item, main
import live_cli  # not its class: that would be run here, too
from live_boto3 import boto3

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "js")

WITNESS = "us-west-2"
READS = int(os.environ.get("TIDEMARK_STRONG_READS", "500"))


@unittest.skipUnless(shutil.which("node"), "node is not installed")
@unittest.skipUnless(os.path.isdir(os.path.join(HERE, "node_modules")),
                     "the SDK is not installed (npm ci in tests/live/js)")
class Serving(ClusterTest):
    """All three Regions serve; one of them holds witnesses of tables that are not its own."""

    tables_kept = ("kept", "kept-witness")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # A third of the reads each: over three Regions, over two and a witness, and in WitnessProcess.
        done = subprocess.run(
            ["node", "--test", "--test-reporter=tap", "strong_table.test.mjs"], cwd=HERE, text=True,
            capture_output=True, timeout=20 * DEADLINE + READS, check=False, env={
                **os.environ, "AWS_ENDPOINT_URL_DYNAMODB": cls.cluster.endpoint(),
                "TIDEMARK_REGIONS": ",".join(cls.regions + cls.witnesses), "TIDEMARK_DEADLINE": str(DEADLINE),
                "TIDEMARK_WITNESS_ONLY": str(len(cls.witnesses)), "TIDEMARK_ROUNDS": str(-(-READS // 6)),
                "TIDEMARK_TABLES": ",".join(cls.tables_kept),
                "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret",
                "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"})
        cls.output = done.stdout + done.stderr
        cls.results = {name: ok for ok, name in re.findall(
            r"^\s*(not ok|ok) \d+ - (.*?)(?: #.*)?$", cls.output, re.M)}
        for line in re.findall(r"strong reads: .*", cls.output):
            print(line, flush=True)

    def passed(self, name):
        self.assertEqual(self.results.get(name), "ok", self.output)

    def test_over_three_regions(self):
        self.passed("over three Regions")

    def test_over_two_and_a_witness(self):
        self.passed("over two and a witness")

    def test_refusals(self):
        self.passed("refusals of making one")
        self.passed("refusals of changing one")

    # ---- The older clients, on the tables that JavaScript has left

    def kept(self):
        """Each table with the Regions that have it."""
        self.passed("tables for the other clients")
        return {name: self.regions[:2] if name.endswith("witness") else self.regions
                for name in self.tables_kept}

    def dynamodb(self, region):
        os.environ.update(AWS_ACCESS_KEY_ID="AKIDEXAMPLE", AWS_SECRET_ACCESS_KEY="secret",
                          AWS_EC2_METADATA_DISABLED="true", AWS_CONFIG_FILE="/dev/null",
                          AWS_SHARED_CREDENTIALS_FILE="/dev/null")
        return boto3.session.Session().client("dynamodb", region_name=region,
                                              endpoint_url=self.cluster.endpoint())

    @unittest.skipUnless(boto3, "boto3 is not installed (python3-boto3)")
    def test_boto3_reads_and_writes(self):
        for table, regions in self.kept().items():
            clients = [self.dynamodb(region) for region in regions]
            for number, writer in enumerate(clients):
                key, reader = item(pk=f"boto3-{number}"), clients[number - 1]
                writer.put_item(TableName=table, Item={**key, "n": {"N": "1"}})
                self.assertEqual(reader.get_item(TableName=table, Key=key, ConsistentRead=True)["Item"]["n"],
                                 {"N": "1"})
                with self.assertRaises(reader.exceptions.ConditionalCheckFailedException):
                    reader.put_item(TableName=table, Item=key, ConditionExpression="attribute_not_exists(pk)")
                changed = reader.update_item(
                    TableName=table, Key=key, UpdateExpression="ADD n :one", ConditionExpression="n = :one",
                    ExpressionAttributeValues={":one": {"N": "1"}}, ReturnValues="ALL_NEW")
                self.assertEqual(changed["Attributes"], {**key, "n": {"N": "2"}})
                self.assertEqual(writer.batch_get_item(RequestItems={
                    table: {"Keys": [key], "ConsistentRead": True}})["Responses"][table][0]["n"], {"N": "2"})
                writer.batch_write_item(RequestItems={
                    table: [{"PutRequest": {"Item": item(pk=f"boto3-batch-{n}")}} for n in range(25)]})
                found = reader.scan(TableName=table, ConsistentRead=True)["Items"]
                self.assertEqual(len([i for i in found if i["pk"]["S"].startswith("boto3-batch-")]), 25)
                gone = reader.delete_item(TableName=table, Key=key, ReturnValues="ALL_OLD")
                self.assertEqual(gone["Attributes"]["n"], {"N": "2"})
                self.assertNotIn("Item", writer.get_item(TableName=table, Key=key, ConsistentRead=True))
                shown = {r["RegionName"] for r in writer.describe_table(TableName=table)["Table"]["Replicas"]}
                self.assertEqual(shown, set(regions) - {regions[number]})

    @unittest.skipUnless(boto3, "boto3 is not installed (python3-boto3)")
    def test_boto3_reads_what_was_written_elsewhere(self):
        for table, regions in self.kept().items():
            clients, stale, started = [self.dynamodb(region) for region in regions], 0, time.monotonic()
            rounds = -(-READS // 6)
            for number in range(rounds):
                writer = number % len(clients)
                reader = (writer + 1 + number // len(clients) % (len(clients) - 1)) % len(clients)
                key = item(pk=f"reads-{number % 7}")
                clients[writer].put_item(TableName=table, Item={**key, "v": {"N": str(number)}})
                found = clients[reader].get_item(TableName=table, Key=key, ConsistentRead=True)
                stale += found.get("Item", {}).get("v") != {"N": str(number)}
            print(f"strong reads: {rounds} rounds by boto3 over {len(clients)} Regions in "
                  f"{time.monotonic() - started:.1f} s, {stale} stale", flush=True)
            self.assertEqual(stale, 0)

    @unittest.skipUnless(live_cli.AWS, "the AWS CLI is not installed (awscli)")
    def test_cli_reads_and_writes(self):
        for table, regions in self.kept().items():
            aws = lambda region, command, *more, **options: live_cli.Cli.aws(
                self, region, command, *more, table_name=table, **options)
            aws(regions[0], "put-item", item=item(pk="cli", n=1))
            read = lambda region: aws(region, "get-item", "--consistent-read", key=item(pk="cli")).get("Item")
            self.assertEqual(read(regions[-1]), item(pk="cli", n=1))
            changed = aws(regions[-1], "update-item", key=item(pk="cli"), return_values="UPDATED_NEW",
                          update_expression="ADD n :one", expression_attribute_values={":one": {"N": "1"}})
            self.assertEqual(changed["Attributes"], item(n=2))
            aws(regions[1], "delete-item", key=item(pk="cli"))
            self.assertIsNone(read(regions[0]))
            shown = aws(regions[1], "describe-table")["Table"]["Replicas"]
            self.assertEqual({r["RegionName"] for r in shown}, set(regions) - {regions[1]})


class WitnessProcess(Serving):
    """Two Regions serve; the third runs nothing but a witness."""

    regions, witnesses = (USA, EUROPE), (WITNESS,)
    tables_kept = ("kept-witness",)

    test_over_three_regions = None


if __name__ == "__main__":
    main()
