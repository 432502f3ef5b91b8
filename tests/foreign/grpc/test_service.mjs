// test_service.mjs: `sessile serve` and @grpc/grpc-js, whose HTTP/2 and protobuf are of JavaScript.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";
import { program, run, test } from "./harness.mjs";

const { sessile } = grpc.loadPackageDefinition(loader.loadSync(
  join(process.env.SESSILE_ROOT, "engine/service/sessile.proto"), { keepCase: true, longs: Number, defaults: true }));

// The server, and where it listens: its first line says that.
const server = spawn(program, ["--store", "ram:", "serve", "--listen", "127.0.0.1:0"],
  { stdio: ["ignore", "pipe", "ignore"] });
const ended = once(server, "exit");
const [line] = await once(server.stdout.setEncoding("utf8"), "data");
server.stdout.resume();
const client = new sessile.v1.SessionService(line.match(/ at (127[\d.]+:\d+)/)[1],
  grpc.credentials.createInsecure());

// A call that answers once: its reply; the error has `metadata`.
function call(method, request) {
  return new Promise((done, failed) => client[method](request,
    { deadline: Date.now() + 60000 }, (error, reply) => (error ? failed(error) : done(reply))));
}

async function failure(method, request) {
  return call(method, request).then(() => assert.fail(`${method} did not fail`), (error) => error);
}

const of = (id) => ({ session: { id } });
const json = (value) => ({ text: JSON.stringify(value) });
const says = (content) => json({ role: "user", content });

async function make(id, count) {
  await call("CreateSession", of(id));
  for (let i = 0; i < count; i++) await call("AppendMessage", { ...of(id), message: says(`${id} ${i}`) });
}

async function context(id) {
  const all = [];
  for await (const part of client.GetContext(of(id))) {
    all.push(...part.messages.map((one) => JSON.parse(one.json.text).content));
  }
  return all;
}

test("what is appended is the context, to the byte", async () => {
  const text = '{"role":"user","content":"größer \u{1f68b}","n":1.50,"big":12345678901234567890}';
  await make("bytes", 0);
  const { entry } = await call("AppendMessage", { ...of("bytes"), message: { text } });
  const kept = await call("GetEntry", { ...of("bytes"), entry });
  assert.ok(kept.json.text.includes(text.slice(1, -1)), kept.json.text);
});

test("a session that is not there is NOT_FOUND, and trailers say more", async () => {
  const error = await failure("ResumeSession", of("none"));
  assert.equal(error.code, grpc.status.NOT_FOUND);
  assert.match(error.details, /none/);
  assert.deepEqual(error.metadata.get("sessile-status"), ["ENOTFOUND"]);
  const again = (await make("twice", 0), await failure("CreateSession", of("twice")));
  assert.equal(again.code, grpc.status.ALREADY_EXISTS);
});

test("a request that is none, and a method that is none, are refused", async () => {
  const nothing = await failure("AppendMessage", { ...of("bytes"), message: { text: "no json" } });
  assert.equal(nothing.code, grpc.status.INVALID_ARGUMENT);
  const raw = new Promise((done) => client.makeUnaryRequest("/sessile.v1.SessionService/Nothing",
    (b) => b, (b) => b, Buffer.alloc(0), (error) => done(error)));
  assert.equal((await raw).code, grpc.status.UNIMPLEMENTED);
});

test("two hundred calls at once on twenty sessions are each written once, in an order", async () => {
  await Promise.all(Array.from({ length: 20 }, (_, i) => call("CreateSession", of(`many-${i}`))));
  await Promise.all(Array.from({ length: 200 }, (_, i) =>
    call("AppendMessage", { ...of(`many-${i % 20}`), message: says(String(i)) })));
  for (let i = 0; i < 20; i++) {
    const got = (await context(`many-${i}`)).map(Number).sort((a, b) => a - b);
    assert.deepEqual(got, Array.from({ length: 10 }, (_, n) => i + 20 * n));
  }
});

test("events come in order, and a stream that was cut goes on where it was", async () => {
  await make("events", 3);
  const seen = [];
  async function read(from, until) {
    const stream = client.StreamSessionEvents({ ...of("events"), ...(from && { from }) });
    stream.on("error", () => {});
    for await (const event of stream) {
      if (event.entry) seen.push(event.entry.entry);
      if (seen.length >= until) break;
    }
    stream.cancel();
  }
  await read({ id: 0 }, 2);
  const reading = read({ id: seen.at(-1) + 1 }, 6);
  for (let i = 3; i < 6; i++) await call("AppendMessage", { ...of("events"), message: says(`${i}`) });
  await reading;
  assert.equal(seen.length, 6);
  assert.deepEqual(seen, seen.map((_, i) => seen[0] + i));
});

test("a run asks for the model's words over its stream, and ends with them in the context", async () => {
  await make("run", 6);
  const stream = client.Run();
  const events = [];
  stream.write({ compact: { ...of("run"), config: { policies: [{ name: "summarize", options: json({ preserve_recent: 2 }) }] } } });
  for await (const event of stream) {
    events.push(event);
    if (event.need) {
      assert.equal(event.need.kind, "model");
      stream.write({ reply: { text: "in short: six messages" } });
      stream.end();
    }
  }
  assert.equal(events.at(-1).outcome.verdict, "applied", JSON.stringify(events));
  assert.ok((await context("run")).some((text) => JSON.stringify(text).includes("in short: six")));
});

test("a run whose client is gone at its deadline waits as a pending run", async () => {
  await make("late", 6);
  const stream = client.Run({ deadline: Date.now() + 1000 });
  stream.write({ compact: { ...of("late"), config: { policies: [{ name: "summarize", options: json({ preserve_recent: 2 }) }] } } });
  const error = await (async () => { for await (const _ of stream); })().then(() => null, (why) => why);
  assert.equal(error?.code, grpc.status.DEADLINE_EXCEEDED);
  let runs = [];
  for (let i = 0; i < 600 && runs.length === 0; i++) {
    runs = (await call("ListPendingRuns", of("late"))).runs;
    if (runs.length === 0) await new Promise((done) => setTimeout(done, 100));
  }
  assert.equal(runs.length, 1);
});

test("a server that is told to end, ends with nothing left open", async () => {
  client.close();
  server.kill("SIGTERM");
  assert.deepEqual(await ended, [0, null]);
});

await run(() => server.kill("SIGKILL"));
