#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The AWS CLI, unchanged but for the endpoint: a global table over two Regions and over three, every
operation of this version, and 5,000 items page by page."""

import json
import os
import subprocess
import tempfile
import unittest

from cluster import EUROPE, JAPAN, REGIONS, USA, ClusterTest, item, main, wait_until

# Debian's, where there are several: some machines shadow it by a wrapper that starts another Python.
AWS = next((path for path in ("/usr/bin/aws", "/usr/local/bin/aws") if os.access(path, os.X_OK)), None)
ITEMS = 5000


class CommandFailed(Exception):
    pass


@unittest.skipUnless(AWS, "the AWS CLI is not installed (awscli)")
class Cli(ClusterTest):
    def aws(self, region, command, *arguments, **options):
        options = [part for name, content in options.items() for part in (
            "--" + name.replace("_", "-"),
            content if isinstance(content, str) else json.dumps(content))]
        done = subprocess.run(
            [AWS, "dynamodb", command, *arguments, *options, "--region", region, "--output", "json",
             "--endpoint-url", self.cluster.endpoint(), "--no-cli-pager"],
            capture_output=True, text=True, timeout=300, check=False, env={
                **os.environ, "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret",
                "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null",
                "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "PYTHONWARNINGS": "ignore"})
        if done.returncode:
            raise CommandFailed(done.stderr)
        return json.loads(done.stdout) if done.stdout.strip() else {}

    def make(self, regions):
        self.aws(regions[0], "create-table", "--attribute-definitions",
                 "AttributeName=pk,AttributeType=S", "AttributeName=sk,AttributeType=S",
                 "--key-schema", "AttributeName=pk,KeyType=HASH", "AttributeName=sk,KeyType=RANGE",
                 table_name=self.table, billing_mode="PAY_PER_REQUEST")
        self.aws(regions[0], "wait", "table-exists", table_name=self.table)
        for region in regions[1:]:
            self.aws(regions[0], "update-table", table_name=self.table,
                     replica_updates=[{"Create": {"RegionName": region}}])
            self.cluster.wait_members(self.table, regions[:regions.index(region) + 1])
        shown = self.aws(regions[-1], "describe-table", table_name=self.table)["Table"]
        self.assertEqual({r["RegionName"] for r in shown["Replicas"]}, set(regions[:-1]))

    def test_two_regions(self):
        self.global_table((USA, EUROPE))

    def test_three_regions(self):
        self.global_table(REGIONS)

    def global_table(self, regions):
        self.make(regions)
        home = regions[0]
        self.aws(home, "put-item", table_name=self.table, item=item(pk="hello", sk="1", v=1))
        for region in regions[1:]:
            wait_until(f"{region} has it", lambda: self.aws(
                region, "get-item", table_name=self.table, key=item(pk="hello", sk="1")).get("Item") ==
                item(pk="hello", sk="1", v=1))
        self.every_operation(home)
        for region in regions[1:]:
            self.aws(home, "update-table", table_name=self.table,
                     replica_updates=[{"Delete": {"RegionName": region}}])
            self.aws(region, "wait", "table-not-exists", table_name=self.table)
            wait_until("it is no member", lambda: region not in {
                r["RegionName"] for r in self.client(home).describe(self.table).get("Replicas", [])})
        self.aws(home, "delete-table", table_name=self.table)
        self.aws(home, "wait", "table-not-exists", table_name=self.table)

    def every_operation(self, home):
        aws = lambda command, *arguments, **options: self.aws(home, command, *arguments, **options)
        self.assertIn(self.table, aws("list-tables")["TableNames"])
        self.assertGreater(aws("describe-limits")["AccountMaxWriteCapacityUnits"], 0)
        self.assertTrue(aws("describe-endpoints")["Endpoints"])
        key = item(pk="k", sk="1")
        changed = aws("update-item", table_name=self.table, key=key, return_values="ALL_NEW",
                      update_expression="SET #c = if_not_exists(#c, :zero) + :one, l = :l",
                      expression_attribute_names={"#c": "count"},
                      expression_attribute_values={":zero": {"N": "0"}, ":one": {"N": "1"},
                                                   ":l": {"L": [{"S": "a"}, {"NULL": True}]}})
        self.assertEqual(changed["Attributes"]["count"], {"N": "1"})
        with self.assertRaisesRegex(CommandFailed, "ConditionalCheckFailedException"):
            aws("put-item", table_name=self.table, item=key,
                condition_expression="attribute_not_exists(pk)")
        with self.assertRaisesRegex(CommandFailed, "ResourceNotFoundException"):
            aws("describe-table", table_name="nowhere")
        aws("batch-write-item", request_items={self.table: [
            {"PutRequest": {"Item": item(pk="batch", sk=f"{n:02}", even=n % 2 == 0)}} for n in range(25)]})
        got = aws("batch-get-item", request_items={self.table: {
            "Keys": [item(pk="batch", sk=sk) for sk in ("00", "24", "99")]}})
        self.assertEqual(len(got["Responses"][self.table]), 2)
        found = aws("query", "--no-scan-index-forward", table_name=self.table,
                    key_condition_expression="pk = :p AND begins_with(sk, :s)",
                    filter_expression="even = :t", projection_expression="sk",
                    expression_attribute_values={":p": {"S": "batch"}, ":s": {"S": "1"},
                                                 ":t": {"BOOL": True}})
        self.assertEqual([i["sk"]["S"] for i in found["Items"]], ["18", "16", "14", "12", "10"])
        counts = [aws("scan", table_name=self.table, select="COUNT", segment=str(s),
                      total_segments="2", return_consumed_capacity="TOTAL")["Count"] for s in range(2)]
        self.assertEqual(sum(counts), 27)
        gone = aws("delete-item", table_name=self.table, key=key, return_values="ALL_OLD")
        self.assertEqual(gone["Attributes"]["count"], {"N": "1"})
        self.assertEqual(aws("get-item", "--consistent-read", table_name=self.table, key=key), {})

    def test_five_thousand_items_page_by_page(self):
        self.make((USA, JAPAN))
        # A process per 25 items would measure Python's start: the CLI writes the first batch from a
        # file, as its users do, and the rest are put by the test's own client.
        batch = lambda first: {self.table: [{"PutRequest": {"Item": item(
            pk=f"p{n % 2}", sk=f"{n:05}", pad="x" * 600)}} for n in range(first, first + 25)]}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(batch(0), file)
            file.flush()
            self.aws(USA, "batch-write-item", request_items="file://" + file.name)
        for first in range(25, ITEMS, 25):
            answer = self.client(USA).call("BatchWriteItem", RequestItems=batch(first))
            self.assertEqual(answer["UnprocessedItems"], {})
        scanned = self.aws(USA, "scan", table_name=self.table, projection_expression="sk")
        self.assertEqual((scanned["Count"], len({i["sk"]["S"] for i in scanned["Items"]})),
                         (ITEMS, ITEMS))
        queried = self.aws(USA, "query", "--page-size", "500", table_name=self.table,
                           key_condition_expression="pk = :p", projection_expression="sk",
                           expression_attribute_values={":p": {"S": "p1"}})
        self.assertEqual([i["sk"]["S"] for i in queried["Items"]],
                         [f"{n:05}" for n in range(1, ITEMS, 2)])
        # By hand, with the token that the CLI gives: it wraps LastEvaluatedKey.
        seen, token = 0, []
        while True:
            page = self.aws(USA, "scan", "--max-items", "2000", *token, table_name=self.table,
                            projection_expression="sk")
            seen += len(page["Items"])
            if "NextToken" not in page:
                break
            token = ["--starting-token", page["NextToken"]]
        self.assertEqual(seen, ITEMS)
        self.assertEqual(len(self.cluster.wait_converged(self.table, (USA, JAPAN))), ITEMS)
        self.assertEqual(self.aws(JAPAN, "scan", table_name=self.table, select="COUNT")["Count"], ITEMS)


if __name__ == "__main__":
    main()
