// SPDX-License-Identifier: Apache-2.0
// Toxiproxy's client for Node, as its users write it, against the control API named by TIDEMARK_CONTROL.
import assert from "node:assert/strict";
import net from "node:net";
import { test } from "node:test";
import toxiproxyClient from "toxiproxy-node-client";

const toxiproxy = new toxiproxyClient.Toxiproxy(process.env.TIDEMARK_CONTROL);

async function echo() {
  const server = net.createServer((socket) => socket.on("error", () => {}).pipe(socket));
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  server.unref(); // a failed test must not keep the program alive
  return server;
}

/** All that comes back for `text` until the other side ends; null when the connection fails. */
function send(listen, text) {
  const [host, port] = listen.split(":");
  return new Promise((done) => {
    let got = "";
    const socket = net.connect(Number(port), host, () => socket.end(text));
    socket.on("data", (data) => (got += data));
    socket.on("end", () => done(got));
    socket.on("error", () => done(null));
  });
}

test("a proxy of one's own", async () => {
  const server = await echo();
  const proxy = await toxiproxy.createProxy({
    name: "own", listen: "localhost:0", upstream: `127.0.0.1:${server.address().port}` });
  assert.equal(await send(proxy.listen, "hello"), "hello");

  const toxic = await proxy.addToxic({ type: "limit_data", attributes: { bytes: 2 } });
  assert.equal(toxic.name, "limit_data_downstream");
  assert.equal(await send(proxy.listen, "hello"), "he");
  await toxic.update({ attributes: { bytes: 3 } });
  assert.equal(await send(proxy.listen, "hello"), "hel");
  assert.deepEqual((await proxy.getToxic(toxic.name)).attributes, { bytes: 3 });
  await toxic.remove();
  assert.equal(await send(proxy.listen, "hello"), "hello");

  await proxy.update({ enabled: false, listen: proxy.listen, upstream: proxy.upstream });
  assert.equal(await send(proxy.listen, "hello"), null);
  await toxiproxy.reset();
  assert.equal(await send(proxy.listen, "hello"), "hello");
  await proxy.remove();
  await assert.rejects(toxiproxy.get("own"));
  server.close();
});

test("populate", async () => {
  const made = await toxiproxy.populate([
    { name: "one", listen: "localhost:0", upstream: "localhost:1" },
    { name: "two", listen: "localhost:0", upstream: "localhost:1" }]);
  const names = made.proxies ? made.proxies.map((p) => p.name) : Object.keys(made);
  assert.deepEqual(names.sort(), ["one", "two"]);
  for (const name of names) await (await toxiproxy.get(name)).remove();
});

test("the links of the cluster", async () => {
  const all = await toxiproxy.getAll();
  assert.equal(Object.keys(all).filter((name) => name.includes("->")).length, 6);
  const link = all["us-east-1->eu-west-1"];
  const toxic = await link.addToxic({
    type: "latency", stream: "upstream", attributes: { latency: 20, jitter: 5 } });
  assert.equal((await link.getToxic("latency_upstream")).attributes.latency, 20);
  await toxic.remove();
  const cut = await link.update({ enabled: false, listen: link.listen, upstream: link.upstream });
  assert.equal(cut.enabled, false);
  await toxiproxy.reset();
  assert.equal((await toxiproxy.get(link.name)).enabled, true);
  await assert.rejects(link.remove());
  assert.match(JSON.parse(await toxiproxy.getVersion()).version, /^\d+\.\d+\.\d+/);
});
