#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""boto3 as Debian ships it, unchanged but for the endpoint: a global table over two Regions and over
three, every operation of this version, and 5,000 items page by page."""

import os

from cluster import EUROPE, JAPAN, REGIONS, USA, ClusterTest, main, wait_until

try:
    import boto3
    from boto3.dynamodb.conditions import Attr, Key
    from boto3.dynamodb.types import Binary
    from botocore.exceptions import ClientError
except ImportError:
    boto3 = None

from decimal import Decimal
import unittest

os.environ.update(AWS_ACCESS_KEY_ID="AKIDEXAMPLE", AWS_SECRET_ACCESS_KEY="secret",
                  AWS_EC2_METADATA_DISABLED="true", AWS_CONFIG_FILE="/dev/null",
                  AWS_SHARED_CREDENTIALS_FILE="/dev/null")
ITEMS = 5000


@unittest.skipUnless(boto3, "boto3 is not installed (python3-boto3)")
class Boto3(ClusterTest):
    def resource(self, region):
        # The door tells Regions apart by what the client signs, as AWS's endpoints would by name.
        return boto3.session.Session().resource("dynamodb", region_name=region,
                                                endpoint_url=self.cluster.endpoint())

    def dynamodb(self, region=USA):
        return self.resource(region).meta.client

    def make(self, regions):
        usa = self.dynamodb(regions[0])
        made = usa.create_table(
            TableName=self.table, BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"},
                                  {"AttributeName": "sk", "AttributeType": "N"}],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"},
                       {"AttributeName": "sk", "KeyType": "RANGE"}])["TableDescription"]
        self.assertEqual(made["TableName"], self.table)
        usa.get_waiter("table_exists").wait(TableName=self.table, WaiterConfig={"Delay": 1})
        for region in regions[1:]:
            shown = usa.update_table(TableName=self.table,
                                     ReplicaUpdates=[{"Create": {"RegionName": region}}])
            self.assertEqual(shown["TableDescription"]["TableStatus"], "UPDATING")
            wait_until(f"{region} is a member", lambda: all(
                r["ReplicaStatus"] == "ACTIVE" for r in self.replicas(usa)) and
                region in {r["RegionName"] for r in self.replicas(usa)})
            self.dynamodb(region).get_waiter("table_exists").wait(
                TableName=self.table, WaiterConfig={"Delay": 1})
        return self.resource(regions[0]).Table(self.table)

    def replicas(self, client):
        return client.describe_table(TableName=self.table)["Table"].get("Replicas", [])

    def test_two_regions(self):
        self.global_table((USA, EUROPE))

    def test_three_regions(self):
        self.global_table(REGIONS)

    def global_table(self, regions):
        table = self.make(regions)
        table.put_item(Item={"pk": "hello", "sk": 1, "text": "from " + regions[0]})
        for region in regions[1:]:
            there = self.resource(region).Table(self.table)
            wait_until(f"{region} has it",
                       lambda: "Item" in there.get_item(Key={"pk": "hello", "sk": 1}))
            there.put_item(Item={"pk": region, "sk": 1})
        for region in regions:
            wait_until(f"{region} has all", lambda: self.resource(region).Table(
                self.table).scan()["Count"] == len(regions))
        self.every_operation(table)
        for region in regions[1:]:
            self.dynamodb(regions[0]).update_table(
                TableName=self.table, ReplicaUpdates=[{"Delete": {"RegionName": region}}])
            self.dynamodb(region).get_waiter("table_not_exists").wait(
                TableName=self.table, WaiterConfig={"Delay": 1})
            wait_until("it is no member", lambda: region not in {
                r["RegionName"] for r in self.replicas(self.dynamodb(regions[0]))})
        table.delete()
        table.meta.client.get_waiter("table_not_exists").wait(
            TableName=self.table, WaiterConfig={"Delay": 1})

    def every_operation(self, table):
        client = table.meta.client
        self.assertIn(self.table, [t for page in client.get_paginator("list_tables").paginate()
                                   for t in page["TableNames"]])
        self.assertGreater(client.describe_limits()["TableMaxReadCapacityUnits"], 0)
        self.assertTrue(client.describe_endpoints()["Endpoints"][0]["Address"])
        everything = {"pk": "all", "sk": Decimal("-1.5"), "n": Decimal("3.14159265358979323846264338327950288"),
                      "b": Binary(b"\x00\xff"), "yes": True, "nil": None, "ss": {"a", "b"},
                      "ns": {1, 2}, "bs": {Binary(b"1")}, "l": [1, "two", [3]], "m": {"k": {"deep": []}}}
        table.put_item(Item=everything)
        read = table.get_item(Key={"pk": "all", "sk": Decimal("-1.5")}, ConsistentRead=True,
                              ReturnConsumedCapacity="TOTAL")
        self.assertEqual(read["Item"], everything)
        self.assertEqual(read["ConsumedCapacity"]["CapacityUnits"], 1.0)
        key = {"pk": "all", "sk": Decimal("-1.5")}
        changed = table.update_item(
            Key=key, UpdateExpression="SET #m.k.deep = list_append(m.k.deep, :one), l[1] = :x, "
            "fresh = if_not_exists(fresh, :x) REMOVE nil ADD ns :more DELETE ss :less",
            ConditionExpression=Attr("yes").eq(True) & Attr("n").lt(4) & Attr("l").size().eq(3) &
            Attr("nope").not_exists() & Attr("b").attribute_type("B"),
            ExpressionAttributeNames={"#m": "m"},
            ExpressionAttributeValues={":one": [1], ":x": "x", ":more": {3}, ":less": {"a"}},
            ReturnValues="ALL_NEW")["Attributes"]
        self.assertEqual((changed["m"], changed["l"], changed["fresh"], changed["ns"], changed["ss"]),
                         ({"k": {"deep": [1]}}, [1, "x", [3]], "x", {1, 2, 3}, {"b"}))
        self.assertNotIn("nil", changed)
        with self.assertRaises(ClientError) as caught:
            table.put_item(Item={**key, "v": 1}, ConditionExpression=Attr("pk").not_exists())
        self.assertEqual(caught.exception.response["Error"]["Code"], "ConditionalCheckFailedException")
        with table.batch_writer() as batch:
            for number in range(60):
                batch.put_item(Item={"pk": "batch", "sk": number, "even": number % 2 == 0})
        got = client.batch_get_item(RequestItems={self.table: {
            "Keys": [{"pk": "batch", "sk": n} for n in (0, 1, 99)], "ProjectionExpression": "sk, even"}})
        self.assertEqual(sorted((i["sk"], i["even"]) for i in got["Responses"][self.table]),
                         [(0, True), (1, False)])
        self.assertEqual(got["UnprocessedKeys"], {})
        page = table.query(KeyConditionExpression=Key("pk").eq("batch") & Key("sk").between(10, 29),
                           FilterExpression=Attr("even").eq(True), ScanIndexForward=False,
                           ProjectionExpression="sk", Limit=15)
        self.assertEqual([int(i["sk"]) for i in page["Items"]], [28, 26, 24, 22, 20, 18, 16])
        self.assertEqual((page["ScannedCount"], page["LastEvaluatedKey"]), (15, {"pk": "batch", "sk": 15}))
        parts = [table.scan(Segment=s, TotalSegments=4, Select="COUNT")["Count"] for s in range(4)]
        self.assertEqual(sum(parts), table.scan(Select="COUNT")["Count"])
        gone = table.delete_item(Key=key, ReturnValues="ALL_OLD", ReturnItemCollectionMetrics="SIZE")
        self.assertEqual(gone["Attributes"]["fresh"], "x")
        self.assertNotIn("Item", table.get_item(Key=key))

    def test_five_thousand_items_page_by_page(self):
        table = self.make((USA, JAPAN))
        with table.batch_writer() as batch:
            for number in range(ITEMS):
                batch.put_item(Item={"pk": f"p{number % 2}", "sk": number, "pad": "x" * 600})
        client = table.meta.client
        scanned, pages = set(), 0
        for page in client.get_paginator("scan").paginate(TableName=self.table):
            pages += 1
            scanned.update(int(i["sk"]) for i in page["Items"])
        self.assertEqual((len(scanned), pages >= 3), (ITEMS, True))
        keys = [int(i["sk"]) for page in client.get_paginator("query").paginate(
            TableName=self.table, KeyConditionExpression=Key("pk").eq("p1"),
            ProjectionExpression="sk", PaginationConfig={"PageSize": 137}) for i in page["Items"]]
        self.assertEqual(keys, list(range(1, ITEMS, 2)))
        there = self.resource(JAPAN).Table(self.table)

        def all_there():
            pages = there.meta.client.get_paginator("scan").paginate(TableName=self.table, Select="COUNT")
            return sum(page["Count"] for page in pages) == ITEMS
        wait_until("all are in the other Region", all_there, poll=0.2)


if __name__ == "__main__":
    main()
