#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What people reported in public about DynamoDB and its imitations, as small inputs with AWS's answer.

Each test is one case, C0nn; those that need cut links are in live_replication.py. A case goes through
the front door, as an SDK would, unless it is about a Region's own port. Messages are matched on the
part that client code depends on."""

import base64
import gzip
import http.client
import json
import socket
import zlib

from cluster import (EUROPE, JAPAN, USA, ApiError, Client, ClusterTest, authorization, item, main,
                     wait_until)

VALIDATION = "ValidationException"
NOT_FOUND = "ResourceNotFoundException"


class Cases(ClusterTest):
    def client(self, region=USA, **options):
        return self.cluster.client(region, through_door=True, **options)

    def make(self, region=USA, sort=False, **members):
        self.client(region).create(self.table, sort, **members)
        return self.client(region)

    def make_global(self):
        self.cluster.make_global(self.table, (USA, EUROPE))

    def replicas(self, region, *actions):
        return self.client(region).call(
            "UpdateTable", TableName=self.table,
            ReplicaUpdates=[{verb: {"RegionName": target}} for verb, target in actions])

    def no_table(self, region, table=None):
        self.refused(NOT_FOUND, "not found", self.client(region).describe, table or self.table)

    # ---- control plane

    def test_c001_one_replica_action_a_call(self):
        usa = self.make()
        self.refused(VALIDATION, "more than one create or delete replica actions not allowed",
                     self.replicas, USA, ("Create", EUROPE), ("Create", JAPAN))
        self.assertNotIn("Replicas", usa.describe(self.table))
        self.no_table(EUROPE)

    def test_c002_never_lists_itself(self):
        self.make_global()
        for region, other in ((USA, EUROPE), (EUROPE, USA)):
            shown = self.client(region).describe(self.table)
            self.assertEqual([(r["RegionName"], r["ReplicaStatus"]) for r in shown["Replicas"]],
                             [(other, "ACTIVE")])
            self.assertEqual(shown["GlobalTableVersion"], "2019.11.21")
            self.assertIn(f":{region}:", shown["TableArn"])
        self.assertNotEqual(*[self.client(r).describe(self.table)["TableId"] for r in (USA, EUROPE)])

    def test_c005_legacy_global_tables(self):
        for region in (USA, EUROPE):
            self.make(region)
        self.refused(VALIDATION, "version 2017.11.29 is not supported", self.client().call,
                     "CreateGlobalTable", GlobalTableName=self.table,
                     ReplicationGroup=[{"RegionName": USA}, {"RegionName": EUROPE}])
        self.assertEqual(self.client().call("ListGlobalTables"), {"GlobalTables": []})
        self.refused("GlobalTableNotFoundException", "does not exist", self.client().call,
                     "DescribeGlobalTable", GlobalTableName=self.table)

    def test_c007_own_region(self):
        self.make()
        self.refused(VALIDATION, "Cannot add or delete the local region through ReplicaUpdates",
                     self.replicas, USA, ("Create", USA))

    def test_c008_never_adopted(self):
        for region in (USA, EUROPE):
            self.make(region)
        self.client(EUROPE).put(self.table, pk="mine")
        self.refused(VALIDATION, "already existed as tables", self.replicas, USA, ("Create", EUROPE))
        self.assertEqual(self.client(EUROPE).get(self.table, pk="mine"), item(pk="mine"))
        for region in (USA, EUROPE):
            self.assertNotIn("Replicas", self.client(region).describe(self.table))

    def test_c010_stream_is_switched_on(self):
        self.make_global()
        for region in (USA, EUROPE):
            self.assertEqual(self.client(region).describe(self.table)["StreamSpecification"],
                             {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"})
        self.refused(VALIDATION, "Disabling Stream is not allowed for a Global Table replica",
                     self.client().call, "UpdateTable", TableName=self.table,
                     StreamSpecification={"StreamEnabled": False})

    def test_c014_never_a_member(self):
        self.make_global()
        error = self.refused(VALIDATION, "were not part of the global table", self.replicas, USA,
                             ("Delete", "ca-central-1"))
        self.assertIn("[ca-central-1]", error.message)

    def test_replica_change_must_come_alone(self):
        self.make()
        self.refused(VALIDATION, "Replica modification must be the only operation in the request",
                     self.client().call, "UpdateTable", TableName=self.table,
                     DeletionProtectionEnabled=True,
                     ReplicaUpdates=[{"Create": {"RegionName": EUROPE}}])

    def test_unknown_regions(self):
        self.make()
        for region in ("mars-north-1", "EU-WEST-1", "ap-south-2"):
            self.refused(VALIDATION, f"Region {region} is not supported", self.replicas, USA,
                         ("Create", region))

    def test_update_table_without_a_change(self):
        self.make()
        self.refused(VALIDATION, "At least one of ProvisionedThroughput, BillingMode",
                     self.client().call, "UpdateTable", TableName=self.table)

    def test_c040_witness_needs_strong(self):
        self.make()
        self.refused(VALIDATION, "MultiRegionConsistency must be set as STRONG", self.client().call,
                     "UpdateTable", TableName=self.table,
                     ReplicaUpdates=[{"Create": {"RegionName": EUROPE}}],
                     GlobalTableWitnessUpdates=[{"Create": {"RegionName": JAPAN}}])

    def test_c017_deletion_protection_stays_local(self):
        self.make_global()
        self.client().call("UpdateTable", TableName=self.table, DeletionProtectionEnabled=True)
        wait_until("it is on here",
                   lambda: self.client().describe(self.table)["DeletionProtectionEnabled"])
        self.client().put(self.table, pk="after")
        self.cluster.wait_converged(self.table, (USA, EUROPE))
        self.assertFalse(self.client(EUROPE).describe(self.table)["DeletionProtectionEnabled"])

    def test_c025_protected_replica(self):
        self.make_global()
        europe = self.client(EUROPE)
        europe.call("UpdateTable", TableName=self.table, DeletionProtectionEnabled=True)
        self.refused(VALIDATION, "deletion protection enabled", self.replicas, USA, ("Delete", EUROPE))
        self.refused(VALIDATION, "protected against deletion", europe.call, "DeleteTable",
                     TableName=self.table)
        self.client().put(self.table, pk="still", v=1)
        self.assertEqual(self.cluster.wait_converged(self.table, (USA, EUROPE)), [item(pk="still", v=1)])
        europe.call("UpdateTable", TableName=self.table, DeletionProtectionEnabled=False)
        self.replicas(USA, ("Delete", EUROPE))
        wait_until("the replica is gone", lambda: "Replicas" not in self.client().describe(self.table))

    def test_source_cannot_be_deleted_while_its_replica_lives(self):
        self.make_global()
        self.refused(VALIDATION, "acted as a source region", self.client().call, "DeleteTable",
                     TableName=self.table)
        self.client(EUROPE).call("DeleteTable", TableName=self.table)
        wait_until("the replica is gone", lambda: "Replicas" not in self.client().describe(self.table))
        self.client().call("DeleteTable", TableName=self.table)
        wait_until("the table is gone", lambda: self.table not in self.client().call(
            "ListTables", ExclusiveStartTableName=self.table[:-1])["TableNames"])

    def test_c020_c022_tables_are_of_account_and_region(self):
        for number, region in enumerate((USA, JAPAN), 1):
            self.make(region).put(self.table, pk="x", r=number)
        for number, region in enumerate((USA, JAPAN), 1):
            self.assertEqual(self.client(region).get(self.table, pk="x"), item(pk="x", r=number))
        other = self.client(USA, key="AKIDEXAMPLETWO")
        self.addCleanup(other.close)
        self.assertIn(self.table, other.call("ListTables",
                                             ExclusiveStartTableName=self.table[:-1])["TableNames"])
        self.no_table(EUROPE)

    def test_c023_eventual_is_not_echoed(self):
        self.make_global()
        self.assertNotIn("MultiRegionConsistency", self.client().describe(self.table))

    def test_plain_table_has_no_global_keys(self):
        shown = self.make().describe(self.table)
        for name in ("Replicas", "GlobalTableVersion", "MultiRegionConsistency", "GlobalTableWitnesses"):
            self.assertNotIn(name, shown)

    def test_table_twice_and_missing(self):
        usa = self.make()
        self.refused("ResourceInUseException", f"Table already exists: {self.table}", usa.create,
                     self.table)
        self.refused(NOT_FOUND, "Requested resource not found: Table: nowhere not found",
                     usa.describe, "nowhere")
        self.refused(NOT_FOUND, "Requested resource not found", usa.put, "nowhere", pk="a")

    # ---- expressions

    def test_c076_assignments_read_the_old_item(self):
        usa = self.make()
        usa.put(self.table, pk="x", a="A0", b="B0")
        self.assertEqual(usa.update(self.table, {"pk": "x"}, "SET a = :n, b = a", {"n": "A1"},
                                    ReturnValues="ALL_NEW")["Attributes"],
                         item(pk="x", a="A1", b="A0"))

    def test_c077_brackets_round_arithmetic(self):
        usa = self.make()
        usa.put(self.table, pk="x", c=10)
        self.assertEqual(usa.update(self.table, {"pk": "x"}, "SET c = (c - :v)", {"v": 3},
                                    ReturnValues="UPDATED_NEW")["Attributes"], item(c=7))

    def test_c079_a_clause_twice(self):
        usa = self.make()
        self.refused(VALIDATION, 'The "ADD" section can only be used once in an update expression',
                     usa.update, self.table, {"pk": "x"}, "ADD p :o SET a = :a ADD q :o",
                     {"o": 1, "a": "t"})

    def test_c080_placeholders_that_are_digits(self):
        usa = self.make(sort=True)
        for sk in ("s1", "s2"):
            usa.put(self.table, pk="p", sk=sk)
        names = {"#0": "pk", "#1": "sk"}
        self.assertEqual(usa.call(
            "Query", TableName=self.table, KeyConditionExpression="#0 = :0 AND begins_with(#1, :1)",
            ExpressionAttributeNames=names,
            ExpressionAttributeValues={":0": {"S": "p"}, ":1": {"S": "s"}})["Count"], 2)
        usa.call("PutItem", TableName=self.table, Item=item(pk="p", sk="s3"),
                 ConditionExpression="(attribute_not_exists (#0) AND attribute_not_exists (#1))",
                 ExpressionAttributeNames=names)

    def test_c082_reversed_operand_and_brackets(self):
        usa = self.make(sort=True)
        usa.put(self.table, pk="p", sk="m")
        self.assertEqual(usa.call(
            "Query", TableName=self.table, KeyConditionExpression="(pk = :p) AND (:lo <= sk)",
            ExpressionAttributeValues={":p": {"S": "p"}, ":lo": {"S": "a"}})["Count"], 1)

    def test_c083_between_the_wrong_way_round(self):
        usa = self.make(sort=True)
        self.refused(VALIDATION, "BETWEEN", usa.call, "Query", TableName=self.table,
                     KeyConditionExpression="pk = :p AND sk BETWEEN :a AND :b",
                     ExpressionAttributeValues=item(**{":p": "p", ":a": "z", ":b": "a"}))

    def test_c085_expression_size(self):
        usa = self.make()
        put = lambda key, size: usa.call(
            "PutItem", TableName=self.table, Item=item(pk=key),
            ConditionExpression="attribute_not_exists(pk)".ljust(size))
        put("x", 4096)
        self.refused(VALIDATION, "size has exceeded the maximum allowed size", put, "y", 4097)
        self.assertIsNone(usa.get(self.table, pk="y"))

    def test_c086_append_to_nothing(self):
        usa = self.make()
        usa.put(self.table, pk="x")
        one = {"e": {"L": [{"N": "1"}]}}
        self.refused(VALIDATION, "", usa.update, self.table, {"pk": "x"}, "SET l = list_append(l, :e)", one)
        self.assertEqual(usa.update(
            self.table, {"pk": "x"}, "SET l = list_append(if_not_exists(l, :n), :e)",
            {**one, "n": {"L": []}}, ReturnValues="ALL_NEW")["Attributes"]["l"], one["e"])

    def test_undefined_and_unused_placeholders(self):
        usa = self.make()
        self.refused(VALIDATION, "An expression attribute value used in expression is not defined",
                     usa.update, self.table, {"pk": "x"}, "SET a = :nope")
        self.refused(VALIDATION, "Value provided in ExpressionAttributeValues unused in expressions",
                     usa.update, self.table, {"pk": "x"}, "SET a = :a", {"a": 1, "more": 2})
        self.refused(VALIDATION, "reserved keyword", usa.update, self.table, {"pk": "x"},
                     "SET size = :a", {"a": 1})

    # ---- numbers

    def test_c088_digits(self):
        usa = self.make()
        long = "9876543210123450000000000000000000000000"
        usa.put(self.table, pk="a", n={"N": long})
        self.assertEqual(usa.get(self.table, pk="a")["n"], {"N": long})
        self.refused(VALIDATION, "more than 38 significant digits", usa.put, self.table, pk="b",
                     n={"N": "123456789012345678901234567890123456789"})

    def test_c089_magnitude(self):
        usa = self.make()
        for good in ("9.99999999E125", "1E-130"):
            usa.put(self.table, pk="a", n={"N": good})
        for bad, text in (("1E126", "overflow"), ("1E-131", "underflow"), ("NaN", "numeric"),
                          ("1 ", "numeric"), ("", "numeric"), ("0x10", "numeric")):
            self.refused(VALIDATION, text, usa.put, self.table, pk="b", n={"N": bad})

    def test_c091_bare_number(self):
        usa = self.make()
        self.refused("SerializationException", "", usa.put, self.table, pk="x", n={"N": 123})
        self.assertIsNone(usa.get(self.table, pk="x"))

    def test_c092_sets_of_long_numbers(self):
        usa = self.make()
        usa.put(self.table, pk="x", ns={"NS": ["100000000000000001"]})
        self.refused("ConditionalCheckFailedException", "The conditional request failed", usa.call,
                     "PutItem", TableName=self.table, Item=item(pk="x", ok=True),
                     ConditionExpression="ns = :v",
                     ExpressionAttributeValues={":v": {"NS": ["100000000000000002"]}})

    # ---- pages and batches

    def test_c095_filter_empties_the_page_not_the_walk(self):
        usa = self.make(sort=True)
        for n in "1234":
            usa.put(self.table, pk="p", sk=n, **({"keep": True} if n == "4" else {}))
        pages = list(usa.pages(
            "Query", TableName=self.table, Limit=2, KeyConditionExpression="pk = :p",
            FilterExpression="keep = :t", ExpressionAttributeValues=item(**{":p": "p", ":t": True})))
        self.assertEqual([(p["Count"], p["ScannedCount"]) for p in pages[:2]], [(0, 2), (1, 2)])
        self.assertEqual(pages[0]["LastEvaluatedKey"], item(pk="p", sk="2"))

    def test_c097_the_same_key_twice(self):
        usa = self.make()
        duplicates = "Provided list of item keys contains duplicates"
        self.refused(VALIDATION, duplicates, usa.call, "BatchWriteItem", RequestItems={
            self.table: [{"PutRequest": {"Item": item(pk="a", v=v)}} for v in (1, 2)]})
        self.refused(VALIDATION, duplicates, usa.call, "BatchGetItem", RequestItems={
            self.table: {"Keys": [item(pk="a"), item(pk="a")]}})
        self.assertIsNone(usa.get(self.table, pk="a"))

    def test_c098_unprocessed_is_present_and_empty(self):
        usa = self.make()
        self.assertEqual(usa.call("BatchWriteItem", RequestItems={
            self.table: [{"PutRequest": {"Item": item(pk="a")}}]}), {"UnprocessedItems": {}})

    def test_c100_one_bad_member(self):
        usa = self.make()
        self.refused(VALIDATION, "", usa.call, "BatchWriteItem", RequestItems={
            self.table: [{"PutRequest": {"Item": item(pk=key)}} for key in ("good", 1)]})
        self.assertIsNone(usa.get(self.table, pk="good"))

    # ---- HTTP and authentication

    def test_c101_c103_compressed_answers(self):
        usa = self.make()
        usa.put(self.table, pk="small", pad="x" * 100)
        usa.put(self.table, pk="large", pad="x" * 10_000)
        for accept, large in (("gzip", "gzip"), ("identity", None), ("br", None),
                              ("gzip;q=0, deflate;q=0.5", "deflate"), (None, None)):
            for key, expected in (("small", None), ("large", large)):
                with self.subTest(accept=accept, key=key):
                    status, headers, body = usa.raw(
                        "GetItem", {"TableName": self.table, "Key": item(pk=key)},
                        {"Accept-Encoding": accept or ""})
                    self.assertEqual((status, headers.get("content-encoding")), (200, expected))
                    self.assertEqual(int(headers["x-amz-crc32"]), zlib.crc32(body))
                    plain = {"gzip": gzip.decompress, "deflate": zlib.decompress}.get(expected, bytes)(body)
                    self.assertEqual(json.loads(plain)["Item"]["pk"], {"S": key})

    def test_compressed_requests(self):
        self.make()
        body = gzip.compress(json.dumps({"TableName": self.table, "Item": item(pk="z")}).encode())
        self.assertEqual(self.client().raw("PutItem", body, {"Content-Encoding": "gzip"})[0], 200)
        self.assertEqual(self.client().get(self.table, pk="z"), item(pk="z"))

    def test_c104_wrong_content_type(self):
        usa = self.client()
        status, _, body = usa.raw("ListTables", {}, {"Content-Type": "application/x-amz-json-1.1"})
        self.assertEqual(status, 404)
        self.assertIn(b"UnknownOperationException", body)
        self.assertTrue(usa.connection, "the connection stays usable")
        usa.call("ListTables")

    def test_unknown_operation(self):
        for target in ("DynamoDB_20120810.NoSuchThing", "Nothing.ListTables", "DynamoDB_20120810."):
            status, _, body = self.client().raw(target, {})
            self.assertEqual(status, 400)
            self.assertIn(b"UnknownOperationException", body)

    def test_c106_unsigned(self):
        status, headers, _ = self.client().raw("ListTables", {}, {"Authorization": None})
        self.assertEqual(status, 200)
        self.assertIn(USA, headers["x-tidemark-region"])

    def test_c107_signed_for_another_region(self):
        status, _, body = self.client().raw("ListTables", {}, {
            "Authorization": authorization(EUROPE), "Host": f"dynamodb.{USA}.amazonaws.com"})
        self.assertEqual(status, 400)
        self.assertIn(b"InvalidSignatureException", body)
        own_port = Client(EUROPE, self.cluster.port(USA))
        self.addCleanup(own_port.close)
        error = self.refused("InvalidSignatureException", "Credential should be scoped to a valid region",
                             own_port.call, "ListTables")
        self.assertIn(USA, error.message)

    def test_region_that_is_not_here(self):
        with self.assertRaises(ApiError) as caught:
            Client("sa-east-1", self.cluster.front).call("ListTables")
        self.assertEqual(caught.exception.status, 400)
        for region in self.regions:
            self.assertIn(region, caught.exception.message)

    def test_c109_binary_rpc(self):
        status, _, body = self.client().http(
            "POST", "/service/DynamoDB_20120810/operation/ListTables", b"\xa0",
            {"smithy-protocol": "rpc-v2-cbor", "Content-Type": "application/cbor"})
        self.assertTrue(400 <= status < 500, (status, body))

    def test_c110_account_hosts(self):
        self.make(EUROPE)
        tables = []
        for host in (f"123456789012.ddb.{EUROPE}.amazonaws.com", f"dynamodb.{EUROPE}.amazonaws.com"):
            for region in (EUROPE, None):
                _, _, body = self.client(EUROPE).raw("DescribeTable", {"TableName": self.table}, {
                    "Host": host, "Authorization": authorization(region) if region else None})
                tables.append(json.loads(body)["Table"])
        self.assertEqual(len({(t["TableId"], t["TableArn"]) for t in tables}), 1)
        self.assertIn(f":{EUROPE}:", tables[0]["TableArn"])

    def test_c112_oversized(self):
        # The refusal may come before all is sent, which then fails: that too is an end, not a wait.
        for port in (self.cluster.front, self.cluster.port(USA)):
            connection = socket.create_connection(("127.0.0.1", port), timeout=60)
            self.addCleanup(connection.close)
            connection.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\n"
                               b"Content-Type: application/x-amz-json-1.0\r\n"
                               b"X-Amz-Target: DynamoDB_20120810.ListTables\r\n"
                               b"Content-Length: 16777217\r\n\r\n")
            try:
                for _ in range(257):
                    connection.sendall(b" " * 65536)
            except OSError:
                pass
            answer = http.client.HTTPResponse(connection)
            try:
                answer.begin()
                self.assertEqual(answer.status, 413)
            except ConnectionError:
                self.fail("the connection was reset before the refusal could be read")
        self.client().call("ListTables")

    def test_every_answer_is_identified(self):
        seen = set()
        for operation in ("ListTables", "NoSuchThing", "DescribeTable"):
            _, headers, _ = self.client().raw(operation, {})
            self.assertRegex(headers["x-amzn-requestid"], r"^[A-Z0-9]{52}$")
            self.assertIn("x-amz-crc32", headers)
            self.assertEqual(headers["content-type"], "application/x-amz-json-1.0")
            seen.add(headers["x-amzn-requestid"])
        self.assertEqual(len(seen), 3)

    # ---- errors and limits

    def test_c113_old_item_on_a_failed_condition(self):
        usa = self.make()
        usa.put(self.table, pk="k", v=1)
        error = self.refused("ConditionalCheckFailedException", "The conditional request failed",
                             usa.update, self.table, {"pk": "k"}, "SET v = :n", {"n": 3, "o": 2},
                             ConditionExpression="v = :o",
                             ReturnValuesOnConditionCheckFailure="ALL_OLD")
        self.assertEqual(error.body["Item"], item(pk="k", v=1))

    def test_c115_key_attributes_cannot_change(self):
        usa = self.make()
        usa.put(self.table, pk="a")
        self.refused(VALIDATION, "Cannot update attribute pk. This attribute is part of the key",
                     usa.update, self.table, {"pk": "a"}, "SET pk = :b", {"b": "b"})

    def test_c116_empty_strings(self):
        usa = self.make(sort=True)
        usa.put(self.table, pk="p", sk="s", note="")
        self.assertEqual(usa.get(self.table, pk="p", sk="s")["note"], {"S": ""})
        self.refused(VALIDATION, "empty string value", usa.put, self.table, pk="p", sk="")

    def test_c118_no_such_index(self):
        usa = self.make()
        self.refused(VALIDATION, "does not have the specified index", usa.call, "Query",
                     TableName=self.table, IndexName="nope", KeyConditionExpression="pk = :p",
                     ExpressionAttributeValues={":p": {"S": "x"}})

    def test_c119_sets(self):
        usa = self.make()
        self.refused(VALIDATION, "empty", usa.put, self.table, pk="a", s={"SS": []})
        usa.put(self.table, pk="b", s={"SS": ["", "a"]})
        self.assertEqual(set(usa.get(self.table, pk="b")["s"]["SS"]), {"", "a"})
        self.refused(VALIDATION, "duplicates", usa.put, self.table, pk="c", s={"NS": ["7", "7"]})

    def test_item_size(self):
        usa = self.make()
        usa.put(self.table, pk="a", pad="x" * (400 * 1024 - len("pk" "a" "pad")))
        self.refused(VALIDATION, "Item size has exceeded the maximum allowed size", usa.put,
                     self.table, pk="a", pad="x" * (400 * 1024 - len("pk" "a" "pad") + 1))
        self.refused(VALIDATION, "", usa.put, self.table, pk="k" * 2049)

    def test_depth(self):
        usa = self.make()
        nest = lambda depth: {"L": [nest(depth - 1)]} if depth else {"S": "x"}
        usa.put(self.table, pk="a", l=nest(31))
        self.refused(VALIDATION, "Nesting Levels have exceeded supported limits", usa.put,
                     self.table, pk="a", l=nest(33))

    def test_constraints_are_told_all_at_once(self):
        error = self.refused(VALIDATION, "validation errors detected", self.client().call, "PutItem",
                             TableName="a", Item={}, ReturnValues="SOMETIMES")
        self.assertRegex(error.message, r"^\d validation errors? detected: ")
        self.assertIn("Member must satisfy enum value set", error.message)

    def test_binary_must_be_base64(self):
        usa = self.make()
        raw = bytes(range(256))
        usa.put(self.table, pk="b", b={"B": base64.b64encode(raw).decode()})
        self.assertEqual(base64.b64decode(usa.get(self.table, pk="b")["b"]["B"]), raw)
        self.refused("SerializationException", "", usa.put, self.table, pk="c", b={"B": "*"})


if __name__ == "__main__":
    main()
