// test_session.mjs: SessileSession beside the SDK's MemorySession, and under its Runner.

import assert from "node:assert/strict";
import { Agent, MemorySession, Runner, Usage, setTracingDisabled, tool } from "@openai/agents";
import { z } from "zod";
import { run, snippet, test } from "./harness.mjs";
import { SessileSession } from "./openai_agents.mjs";
import { Sessile } from "./sessile.mjs";

setTracingDisabled(true);
const asked = [];
const store = new Sessile({
  command: process.env.SESSILE_BIN,
  answers: { model: (question) => { asked.push(question); return { text: "in short: it was slow" }; } },
});

// The same numbers each time.
function numbers(seed) {
  return (below) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
}

const TEXTS = ["why is it slow?", "", "größer, 日本語 \u{1f68b}", "a\u2028b\u0085c\u0000d", '{"n": 1.50}'];

// An item that may follow `items`. After calls without results there are results, in any order, and
// more calls; at times something else, and then these calls never get one.
function makeItem(random, items, n) {
  const text = TEXTS[random(TEXTS.length)];
  const calls = [], answered = new Set();
  for (const item of [...items].reverse()) {
    if (item.type === "function_call_result") answered.add(item.callId);
    else if (item.type !== "function_call") break;
    else if (!answered.has(item.callId)) calls.push(item);
  }
  const call = { type: "function_call", callId: `call_${n}`, name: "lookup", status: "completed",
    arguments: random(2) ? '{"q":"x"}' : "no json" };
  const next = calls.length > 0 ? random(10) : 9;
  if (next < 5) return resultOf(random, calls[random(calls.length)], text);
  if (next < 9 && answered.size === 0) return call;
  const forms = [
    { type: "message", role: "user", content: text },
    { role: "user", content: [{ type: "input_text", text }, { type: "input_image", image: "data:x" }] },
    { type: "message", role: "system", content: text },
    { type: "message", role: "assistant", status: "completed", id: `m${n}`, providerData: { n },
      content: [{ type: "output_text", text }] },
    { type: "reasoning", id: `rs_${n}`, content: [{ type: "input_text", text }] },
    { type: "reasoning", content: [] },
    { type: "hosted_tool_call", name: "web_search", status: "completed", output: text },
    { type: "compaction", encrypted_content: text },
  ];
  return forms[random(forms.length + 3)] ?? call;
}

function resultOf(random, { callId, name }, text) {
  const outputs = [text, { type: "text", text }, [{ type: "input_text", text }],
    { type: "image", image: { data: Uint8Array.of(0, 255, random(256)), mediaType: "image/png" } }];
  return { type: "function_call_result", callId, name, status: "completed", output: outputs[random(4)] };
}

test("1,000 random operations do what they do to a MemorySession", async () => {
  const random = numbers(7);
  const ours = new SessileSession(store), theirs = new MemorySession();
  const seen = { add: 0, pop: 0, clear: 0, get: 0 };
  for (let n = 0; n < 1000; n++) {
    const of = random(100);
    if (of < 50) {
      const added = [];
      const items = await theirs.getItems();
      for (let i = random(5); i >= 0; i--) added.push(makeItem(random, [...items, ...added], `${n}_${i}`));
      await Promise.all([ours.addItems(added), theirs.addItems(added)]);
      seen.add += 1;
    } else if (of < 70) {
      assert.deepEqual(await ours.popItem(), await theirs.popItem());
      seen.pop += 1;
    } else if (of < 72) {
      await Promise.all([ours.clearSession(), theirs.clearSession()]);
      seen.clear += 1;
    } else {
      const limit = of < 85 ? undefined : random(6) - 1;
      assert.deepEqual(await ours.getItems(limit), await theirs.getItems(limit));
      seen.get += 1;
    }
  }
  assert.deepEqual(await ours.getItems(), await theirs.getItems());
  for (const count of Object.values(seen)) assert.ok(count > 5, JSON.stringify(seen));
});

// A model that calls two tools at once, then answers; what it was sent.
function scripted() {
  const sent = [];
  let turn = 0;
  const call = (name, n) => ({ type: "function_call", callId: `call_${turn}_${n}`, name, status: "completed",
    arguments: '{"of":"tram"}' });
  return { sent, async getResponse({ input }) {
    sent.push(structuredClone(input));
    turn += 1;
    const output = turn % 2 === 1
      ? [{ type: "reasoning", id: `rs_${turn}`, content: [{ type: "input_text", text: "look" }] },
        call("read", 1), call("count", 2)]
      : [{ type: "message", role: "assistant", status: "completed", id: `msg_${turn}`,
        content: [{ type: "output_text", text: `answer ${turn}` }] }];
    return { output, usage: new Usage(), responseId: `resp_${turn}` };
  } };
}

async function converse(session, questions) {
  const model = scripted();
  const parameters = z.object({ of: z.string() });
  const tools = ["read", "count"].map((name) => tool({
    name, description: name, parameters, execute: ({ of }) => `${name} of ${of}` }));
  const agent = new Agent({ name: "helper", model, tools });
  const answers = [];
  for (const question of questions) {
    answers.push((await new Runner().run(agent, question, { session })).finalOutput);
  }
  return { sent: model.sent, answers };
}

test("the Runner sends the model what it sends with a MemorySession", async () => {
  const questions = ["why is it slow?", "and now?", "thanks"];
  const theirs = await converse(new MemorySession(), questions);
  const ours = await converse(new SessileSession(store, { id: "run" }), questions);
  assert.equal(theirs.sent.length, 6);
  assert.deepEqual(ours, theirs);
});

test("a session is continued by another process, by its id", async () => {
  const session = new SessileSession(store, { id: "again" });
  await session.addItems([{ type: "message", role: "user", content: "remember 7" }]);
  const other = new Sessile({ command: process.env.SESSILE_BIN });
  const same = new SessileSession(other, { id: "again" });
  assert.equal(await same.getSessionId(), "again");
  assert.deepEqual(await same.getItems(), await session.getItems());
  assert.equal(await other.close(), 0);
});

test("a policy compacts a conversation that the SDK runs, and the log keeps all of it", async () => {
  const session = new SessileSession(store, { id: "long", window: 1200,
    policy: { name: "summarize", options: { preserve_recent: 4 } } });
  const questions = Array.from({ length: 12 }, (_, i) => `question ${i}: ${"the tram is late ".repeat(20)}`);
  const { sent, answers } = await converse(session, questions);
  assert.equal(answers.length, 12);
  assert.ok(asked.length > 0, "the model was asked for a summary");
  assert.ok(sent.at(-1).length < 30, `it was sent ${sent.at(-1).length} items`);
  assert.match(JSON.stringify(sent.at(-1)), /in short: it was slow/);
  // Each result that was sent has its call before it.
  for (const input of sent) {
    const calls = new Set();
    for (const item of input) {
      if (item.type === "function_call") calls.add(item.callId);
      if (item.type === "function_call_result") assert.ok(calls.has(item.callId), item.callId);
    }
  }
  const all = await store.call("session/messages", { session: "long" });
  assert.equal(all.length, 12 * 7);
});

test("what popItem and clearSession took is in the log", async () => {
  const session = new SessileSession(store, { id: "popped" });
  await session.addItems([{ role: "user", content: "a" }, { role: "user", content: "b" }]);
  await session.popItem();
  await session.clearSession();
  assert.deepEqual(await session.getItems(), []);
  const { nodes } = await store.call("session/tree", { session: "popped", types: ["message"] });
  assert.equal(nodes.length, 2);
});

test("the snippet of the README runs", () => {
  assert.equal(snippet("openai_agents.mjs"), "1 items\n3 items\n");
});

await run(() => store.close());
