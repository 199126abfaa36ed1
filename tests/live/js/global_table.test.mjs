// SPDX-License-Identifier: Apache-2.0
// The AWS SDK for JavaScript v3 against a running cluster, unchanged but for AWS_ENDPOINT_URL_DYNAMODB:
// a global table over two Regions and over three, every operation of this version, and 5,000 items page
// by page. live_js.py starts the cluster and runs this file with Node's own test runner.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import {
  BatchGetItemCommand, BatchWriteItemCommand, ConditionalCheckFailedException, CreateTableCommand,
  DeleteItemCommand, DeleteTableCommand, DescribeEndpointsCommand, DescribeLimitsCommand,
  DescribeTableCommand, DynamoDBClient, GetItemCommand, ListTablesCommand, paginateListTables,
  paginateQuery, paginateScan, PutItemCommand, QueryCommand, ResourceNotFoundException, ScanCommand,
  UpdateItemCommand, UpdateTableCommand, waitUntilTableExists, waitUntilTableNotExists,
} from "@aws-sdk/client-dynamodb";

const [usa, europe, japan] = process.env.TIDEMARK_REGIONS.split(",");
const deadline = Number(process.env.TIDEMARK_DEADLINE ?? 60);
const clients = Object.fromEntries([usa, europe, japan].map((region) => [region, new DynamoDBClient({ region })]));
const waiting = (region) => ({ client: clients[region], maxWaitTime: deadline, minDelay: 1, maxDelay: 1 });

async function eventually(what, condition) {
  for (const end = Date.now() + deadline * 1000; Date.now() < end; await pause(50))
    if (await condition()) return;
  assert.fail(`Waited ${deadline} s in vain: ${what}`);
}

async function replicas(region, TableName) {
  const { Table } = await clients[region].send(new DescribeTableCommand({ TableName }));
  return Object.fromEntries((Table.Replicas ?? []).map((r) => [r.RegionName, r.ReplicaStatus]));
}

async function makeGlobal(TableName, regions) {
  const home = clients[regions[0]];
  await home.send(new CreateTableCommand({
    TableName,
    BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: [{ AttributeName: "pk", AttributeType: "S" }, { AttributeName: "sk", AttributeType: "N" }],
    KeySchema: [{ AttributeName: "pk", KeyType: "HASH" }, { AttributeName: "sk", KeyType: "RANGE" }],
  }));
  await waitUntilTableExists(waiting(regions[0]), { TableName });
  for (const RegionName of regions.slice(1)) {
    await home.send(new UpdateTableCommand({ TableName, ReplicaUpdates: [{ Create: { RegionName } }] }));
    await eventually(`${RegionName} is a member`, async () => {
      const all = await replicas(regions[0], TableName);
      return all[RegionName] && Object.values(all).every((status) => status === "ACTIVE");
    });
    await waitUntilTableExists(waiting(RegionName), { TableName });
  }
}

async function everyOperation(client, TableName) {
  const key = { pk: { S: "all" }, sk: { N: "-1.5" } };
  const item = {
    ...key, n: { N: "3.1415926535897932384626433832795028842" }, b: { B: new Uint8Array([0, 255]) },
    yes: { BOOL: true }, nil: { NULL: true }, ss: { SS: ["a", "b"] }, ns: { NS: ["1", "2"] },
    bs: { BS: [new Uint8Array([1])] }, l: { L: [{ N: "1" }, { S: "two" }] }, m: { M: { k: { M: {} } } },
  };
  await client.send(new PutItemCommand({ TableName, Item: item }));
  const read = await client.send(new GetItemCommand({ TableName, Key: key, ConsistentRead: true }));
  assert.deepEqual(read.Item, item);
  const { Attributes } = await client.send(new UpdateItemCommand({
    TableName, Key: key, ReturnValues: "UPDATED_NEW",
    UpdateExpression: "SET #m.k.#new = :v, l[1] = if_not_exists(nope, :v) REMOVE nil ADD ns :three DELETE ss :a",
    ConditionExpression:
      "attribute_exists(pk) AND size(l) = :two AND (yes = :t OR NOT contains(ss, :v)) AND NOT n IN (:two)",
    ExpressionAttributeNames: { "#m": "m", "#new": "new" },
    ExpressionAttributeValues: {
      ":v": { S: "v" }, ":three": { NS: ["3"] }, ":a": { SS: ["a"] }, ":two": { N: "2" }, ":t": { BOOL: true },
    },
  }));
  assert.deepEqual(Attributes.m, { M: { k: { M: { new: { S: "v" } } } } });
  assert.deepEqual(new Set(Attributes.ns.NS), new Set(["1", "2", "3"]));
  assert.deepEqual(Attributes.ss, { SS: ["b"] });
  await assert.rejects(
    client.send(new PutItemCommand({
      TableName, Item: key, ConditionExpression: "attribute_not_exists(pk)",
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    })),
    (error) => error instanceof ConditionalCheckFailedException && error.Item.yes.BOOL === true);
  await assert.rejects(client.send(new DescribeTableCommand({ TableName: "nowhere" })), ResourceNotFoundException);
  const put = (sk) => ({
    PutRequest: { Item: { pk: { S: "batch" }, sk: { N: String(sk) }, even: { BOOL: sk % 2 === 0 } } },
  });
  const written = await client.send(new BatchWriteItemCommand({
    RequestItems: { [TableName]: Array.from({ length: 25 }, (_, sk) => put(sk)) },
  }));
  assert.deepEqual(written.UnprocessedItems, {});
  const got = await client.send(new BatchGetItemCommand({
    RequestItems: { [TableName]: { Keys: ["0", "24", "99"].map((N) => ({ pk: { S: "batch" }, sk: { N } })) } },
  }));
  assert.equal(got.Responses[TableName].length, 2);
  const page = await client.send(new QueryCommand({
    TableName, KeyConditionExpression: "pk = :p AND sk BETWEEN :a AND :b", FilterExpression: "even = :t",
    ProjectionExpression: "sk", ScanIndexForward: false, Limit: 4, ReturnConsumedCapacity: "TOTAL",
    ExpressionAttributeValues: { ":p": { S: "batch" }, ":a": { N: "2" }, ":b": { N: "9" }, ":t": { BOOL: true } },
  }));
  assert.deepEqual(page.Items, [{ sk: { N: "8" } }, { sk: { N: "6" } }]);
  assert.deepEqual([page.ScannedCount, page.LastEvaluatedKey.sk], [4, { N: "6" }]);
  const parts = await Promise.all([0, 1, 2].map((Segment) =>
    client.send(new ScanCommand({ TableName, Segment, TotalSegments: 3, Select: "COUNT" }))));
  assert.equal(parts.reduce((sum, { Count }) => sum + Count, 0), 27);
  const gone = await client.send(new DeleteItemCommand({ TableName, Key: key, ReturnValues: "ALL_OLD" }));
  assert.deepEqual(gone.Attributes.pk, { S: "all" });
  const names = [];
  for await (const { TableNames } of paginateListTables({ client, pageSize: 1 }, {})) names.push(...TableNames);
  assert.ok(names.includes(TableName));
  assert.equal((await client.send(new ListTablesCommand({ Limit: 1 }))).TableNames.length, 1);
  assert.ok((await client.send(new DescribeLimitsCommand({}))).TableMaxWriteCapacityUnits > 0);
  assert.ok((await client.send(new DescribeEndpointsCommand({}))).Endpoints[0].Address);
}

for (const regions of [[usa, europe], [usa, europe, japan]]) {
  test(`a global table over ${regions.length} Regions`, async () => {
    const TableName = `js-global-${regions.length}`;
    const [home, ...others] = regions;
    await makeGlobal(TableName, regions);
    await clients[home].send(new PutItemCommand({ TableName, Item: { pk: { S: "hello" }, sk: { N: "1" } } }));
    for (const region of others) {
      await eventually(`${region} has it`, async () => (await clients[region].send(
        new GetItemCommand({ TableName, Key: { pk: { S: "hello" }, sk: { N: "1" } } }))).Item);
    }
    await everyOperation(clients[home], TableName);
    for (const RegionName of others) {
      await clients[home].send(new UpdateTableCommand({ TableName, ReplicaUpdates: [{ Delete: { RegionName } }] }));
      await waitUntilTableNotExists(waiting(RegionName), { TableName });
      await eventually("it is no member", async () => !(RegionName in await replicas(home, TableName)));
    }
    await clients[home].send(new DeleteTableCommand({ TableName }));
    await waitUntilTableNotExists(waiting(home), { TableName });
  });
}

test("5,000 items page by page", async () => {
  const TableName = "js-pages";
  const items = 5000;
  await makeGlobal(TableName, [usa, japan]);
  const pad = { S: "x".repeat(600) };
  for (let first = 0; first < items; first += 25) {
    const { UnprocessedItems } = await clients[usa].send(new BatchWriteItemCommand({
      RequestItems: {
        [TableName]: Array.from({ length: 25 }, (_, i) => ({
          PutRequest: { Item: { pk: { S: `p${(first + i) % 2}` }, sk: { N: String(first + i) }, pad } },
        })),
      },
    }));
    assert.deepEqual(UnprocessedItems, {});
  }
  const seen = new Set();
  let pages = 0;
  for await (const { Items } of paginateScan({ client: clients[usa] }, { TableName, ProjectionExpression: "sk" })) {
    pages += 1;
    for (const { sk } of Items) seen.add(Number(sk.N));
  }
  assert.equal(seen.size, items);
  assert.ok(pages >= 3, `${pages} pages of 3 MB`);
  const keys = [];
  for await (const { Items } of paginateQuery({ client: clients[usa], pageSize: 137 }, {
    TableName, KeyConditionExpression: "pk = :p", ProjectionExpression: "sk",
    ExpressionAttributeValues: { ":p": { S: "p1" } },
  })) keys.push(...Items.map(({ sk }) => Number(sk.N)));
  assert.deepEqual(keys, Array.from({ length: items / 2 }, (_, i) => 2 * i + 1));
  await eventually("all are in the other Region", async () => {
    let count = 0;
    const pages = paginateScan({ client: clients[japan] }, { TableName, Select: "COUNT" });
    for await (const { Count } of pages) count += Count;
    return count === items;
  });
});
