// SPDX-License-Identifier: Apache-2.0
// The AWS SDK for JavaScript v3 and strong tables: one UpdateTable makes one over three Regions, or over two
// and a witness; DescribeTable; every refusal that AWS is known to give, in its words; reads that follow writes
// from Region to Region; dissolving. live_strong_sdk.py starts the clusters and runs this file.
//
// TIDEMARK_REGIONS: those that serve, then the one for the witness; TIDEMARK_WITNESS_ONLY: it runs no Region,
// only a witness. TIDEMARK_TABLES: tables to make and keep, "data" and "witness", for the other clients.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import {
  ConditionalCheckFailedException, CreateTableCommand, DeleteTableCommand, DescribeTableCommand, DynamoDBClient,
  GetItemCommand, ListTablesCommand, PutItemCommand, ResourceNotFoundException, UpdateItemCommand,
  UpdateTableCommand, waitUntilTableExists, waitUntilTableNotExists,
} from "@aws-sdk/client-dynamodb";

const names = process.env.TIDEMARK_REGIONS.split(",");
const witnessOnly = process.env.TIDEMARK_WITNESS_ONLY === "1";
const [home, other, third] = names;
const deadline = Number(process.env.TIDEMARK_DEADLINE ?? 60);
const rounds = Number(process.env.TIDEMARK_ROUNDS ?? 250);
const clients = Object.fromEntries(names.map((region) => [region, new DynamoDBClient({ region })]));
// A refusal is looked at as it comes: the SDK would repeat a 500.
const once = Object.fromEntries(names.map((region) => [region, new DynamoDBClient({ region, maxAttempts: 1 })]));
const waiting = (region) => ({ client: clients[region], maxWaitTime: deadline, minDelay: 1, maxDelay: 1 });

async function eventually(what, condition) {
  for (const end = Date.now() + deadline * 1000; Date.now() < end; await pause(20))
    if (await condition()) return;
  assert.fail(`Waited ${deadline} s in vain: ${what}`);
}

const describe = async (region, TableName) =>
  (await clients[region].send(new DescribeTableCommand({ TableName }))).Table;

async function create(TableName, more = {}) {
  await clients[home].send(new CreateTableCommand({
    TableName, BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: [{ AttributeName: "pk", AttributeType: "S" }],
    KeySchema: [{ AttributeName: "pk", KeyType: "HASH" }], ...more,
  }));
  await waitUntilTableExists(waiting(home), { TableName });
}

const creates = (...regions) => regions.map((RegionName) => ({ Create: { RegionName } }));
const deletes = (...regions) => regions.map((RegionName) => ({ Delete: { RegionName } }));
const update = (TableName, members, region = home) =>
  once[region].send(new UpdateTableCommand({ TableName, ...members }));
const strong = (ReplicaUpdates, witness) => ({
  MultiRegionConsistency: "STRONG", ReplicaUpdates,
  ...(witness && { GlobalTableWitnessUpdates: creates(witness) }),
});

async function makeStrong(TableName, replicas, witness) {
  await create(TableName);
  let answer;
  // A Region that has just started may not have reached its peers yet; the SDK repeats that 500, not for long.
  await eventually("the table may be made strong", async () => {
    try {
      return (answer = await clients[home].send(
        new UpdateTableCommand({ TableName, ...strong(creates(...replicas), witness) })));
    } catch (error) {
      if (error.$metadata?.httpStatusCode === 500) return false;
      throw error;
    }
  });
  assert.equal(answer.TableDescription.TableStatus, "UPDATING");
  assert.equal(answer.TableDescription.MultiRegionConsistency, "STRONG");
  assert.equal(answer.TableDescription.GlobalTableVersion, "2019.11.21");
  const data = [home, ...replicas];
  for (const region of data) {
    await eventually(`${TableName} is whole in ${region}`, async () => {
      try {
        const shown = await describe(region, TableName);
        return shown.TableStatus === "ACTIVE" && shown.Replicas?.length === data.length - 1 &&
          shown.Replicas.every((replica) => replica.ReplicaStatus === "ACTIVE");
      } catch (error) {
        if (error instanceof ResourceNotFoundException) return false;
        throw error;
      }
    });
  }
  return data;
}

async function checkShown(TableName, data, witness) {
  const ids = new Set();
  for (const region of data) {
    const shown = await describe(region, TableName);
    assert.equal(shown.MultiRegionConsistency, "STRONG");
    assert.equal(shown.GlobalTableVersion, "2019.11.21");
    assert.deepEqual(new Set(shown.Replicas.map((r) => r.RegionName)),
      new Set(data.filter((name) => name !== region)));
    assert.deepEqual(shown.GlobalTableWitnesses,
      witness && [{ RegionName: witness, WitnessStatus: "ACTIVE" }]);
    assert.ok(shown.TableArn.includes(`:${region}:`), shown.TableArn);
    ids.add(shown.TableId);
  }
  assert.equal(ids.size, data.length);
  if (!witness || witnessOnly) return;
  // In the witness's Region there is no such table, and a user may have one of that name.
  await assert.rejects(describe(witness, TableName), ResourceNotFoundException);
  const { TableNames } = await clients[witness].send(new ListTablesCommand({}));
  assert.ok(!TableNames.includes(TableName));
}

async function dissolve(TableName, data, witness) {
  await update(TableName, {
    ReplicaUpdates: deletes(...data.slice(1)),
    ...(witness && { GlobalTableWitnessUpdates: deletes(witness) }),
  });
  await eventually("it is a table of one Region", async () => {
    const shown = await describe(home, TableName);
    return shown.TableStatus === "ACTIVE" && !shown.Replicas;
  });
  const shown = await describe(home, TableName);
  for (const key of ["Replicas", "GlobalTableVersion", "GlobalTableWitnesses", "MultiRegionConsistency"])
    assert.ok(!(key in shown), key);
  for (const region of data.slice(1)) await waitUntilTableNotExists(waiting(region), { TableName });
}

async function drop(TableName) {
  await clients[home].send(new DeleteTableCommand({ TableName }));
  await waitUntilTableNotExists(waiting(home), { TableName });
}

const get = (region, TableName, pk, ConsistentRead = true) =>
  clients[region].send(new GetItemCommand({ TableName, Key: { pk: { S: pk } }, ConsistentRead }));
const put = (region, TableName, pk, v, more = {}) => clients[region].send(
  new PutItemCommand({ TableName, Item: { pk: { S: pk }, v: { N: String(v) } }, ...more }));

async function writesMeet(TableName, data) {
  for (const [i, region] of data.entries()) {
    const next = data[(i + 1) % data.length];
    await put(region, TableName, "a", i);
    assert.deepEqual((await get(next, TableName, "a")).Item, { pk: { S: "a" }, v: { N: String(i) } });
    await assert.rejects(
      put(next, TableName, "a", 7, {
        ConditionExpression: "v <> :v", ExpressionAttributeValues: { ":v": { N: String(i) } },
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      }),
      (error) => error instanceof ConditionalCheckFailedException && error.Item.v.N === String(i));
    const { Attributes } = await clients[next].send(new UpdateItemCommand({
      TableName, Key: { pk: { S: "sum" } }, UpdateExpression: "ADD n :one", ReturnValues: "UPDATED_NEW",
      ExpressionAttributeValues: { ":one": { N: "1" } },
    }));
    assert.deepEqual(Attributes, { n: { N: String(i + 1) } });
  }
}

/** A write in one Region, then at once a strong read in another. */
async function readYourWrites(TableName, data) {
  const started = Date.now();
  let stale = 0;
  for (let i = 0; i < rounds; i++) {
    const from = data[i % data.length];
    const to = data[(i + 1 + Math.floor(i / data.length) % (data.length - 1)) % data.length];
    await put(from, TableName, `k${i % 7}`, i);
    stale += (await get(to, TableName, `k${i % 7}`)).Item?.v.N !== String(i);
  }
  console.log(`strong reads: ${rounds} rounds by JavaScript over ${data.length} Regions in ` +
    `${((Date.now() - started) / 1000).toFixed(1)} s, ${stale} stale`);
  assert.equal(stale, 0);
}

async function wholeLife(TableName, replicas, witness) {
  const data = await makeStrong(TableName, replicas, witness);
  await checkShown(TableName, data, witness);
  await writesMeet(TableName, data);
  await readYourWrites(TableName, data);
  await dissolve(TableName, data, witness);
  assert.deepEqual((await get(home, TableName, "sum")).Item.n, { N: String(data.length) });
  await drop(TableName);
}

const refuses = async (text, name, promise) => assert.rejects(promise, (error) => {
  assert.equal(error.name, name, error.message);
  assert.ok(error.message.includes(text), error.message);
  return true;
});
const invalid = (text, promise) => refuses(text, "ValidationException", promise);
const COUNT = "Unsupported replica count for global tables with MultiRegionConsistency set to STRONG.";
const ONE = "Deletion of only one table replica is not supported for global tables with MultiRegionConsistency " +
  "set to STRONG.";

if (!witnessOnly)
  test("over three Regions", () => wholeLife("js-strong-3", [other, third]));
test("over two and a witness", () => wholeLife("js-strong-2", [other], third));

test("refusals of making one", async () => {
  const TableName = "js-refused";
  await create(TableName);
  const refused = (text, members) => invalid(text, update(TableName, members));
  await refused(COUNT, strong(creates(other)));
  await refused(COUNT, strong(creates(other, third, "us-east-2")));
  await refused(COUNT, strong(creates(other, third), "us-east-2"));
  await refused("Cannot add or delete the local region through ReplicaUpdates. Use CreateTable, DeleteTable, or " +
    "UpdateTable as required.", strong(creates(home, other)));
  await refused("MultiRegionConsistency must be set as STRONG when GlobalTableWitnessUpdates parameter is present.",
    { ReplicaUpdates: creates(other), GlobalTableWitnessUpdates: creates(third) });
  await refused("Cannot target multiple regions with the same action", strong(creates(other), other));
  await refused("Cannot add a witness in the same region as an existing replica when creating a global table with " +
    "MultiRegionConsistency set to STRONG.", strong(creates(other), home));
  await refused("Unsupported Region(s) specified for global tables with MultiRegionConsistency set to STRONG: " +
    "[us-west-1].", strong(creates(other, "us-west-1")));
  await refused("'globalTableWitnessUpdates' failed to satisfy constraint: Member must have length less than or " +
    "equal to 1", { ...strong(creates(other)), GlobalTableWitnessUpdates: creates(third, "us-east-2") });
  await refused("Only Replica Create actions are supported when MultiRegionConsistency parameter is provided.",
    strong(deletes(other, third)));
  await refused("Requests that modify replicas or witnesses must not also modify other fields",
    { ...strong(creates(other), third), DeletionProtectionEnabled: true });
  await put(home, TableName, "a", 1);
  await refused("empty table", strong(creates(other), third));
  assert.ok(!("Replicas" in await describe(home, TableName)));
  await drop(TableName);
});

test("refusals of changing one", async () => {
  const TableName = "js-frozen";
  const witness = third;
  const data = await makeStrong(TableName, [other], witness);
  const refused = (text, members, region = home) => invalid(text, update(TableName, members, region));
  await refused("Cannot add replicas to a global table with strong MultiRegionConsistency",
    { ReplicaUpdates: creates("us-east-2") });
  await refused("MultiRegionConsistency parameter is unsupported on existing global table",
    { ...strong(creates("us-east-2", "ap-northeast-2")) });
  await refused("Only Replica Create actions are supported when MultiRegionConsistency parameter is provided.",
    strong(deletes(other)));
  await refused("Update table delete operation does not include all witnesses.", { ReplicaUpdates: deletes(other) });
  await invalid(ONE, once[other].send(new DeleteTableCommand({ TableName })));
  await checkShown(TableName, data, witness);
  await dissolve(TableName, data, witness);
  await drop(TableName);
  if (witnessOnly) return;
  const three = await makeStrong(TableName, [other, third]);
  await refused(ONE, { ReplicaUpdates: deletes(other) });
  await refused("MultiRegionConsistency parameter is unsupported on existing global table",
    { MultiRegionConsistency: "EVENTUAL", ReplicaUpdates: creates("us-east-2") }, third);
  await invalid(ONE, once[third].send(new DeleteTableCommand({ TableName })));
  await dissolve(TableName, three);
  await drop(TableName);
});

test("tables for the other clients", async () => {
  const kept = (process.env.TIDEMARK_TABLES ?? "").split(",").filter(Boolean);
  for (const name of kept) {
    if (name.endsWith("witness")) await makeStrong(name, [other], third);
    else await makeStrong(name, [other, third]);
  }
});
