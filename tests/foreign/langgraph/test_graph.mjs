// test_graph.mjs: graphs that run with SessileSaver: beside MemorySaver, in another process, and what the
// session of a thread shows of them.

import assert from "node:assert/strict";
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import {
  Annotation, Command, MemorySaver, MessagesAnnotation, StateGraph, interrupt,
} from "@langchain/langgraph";
import { run, snippet, test } from "./harness.mjs";
import { SessileSaver } from "./langgraph.mjs";
import { Sessile } from "./sessile.mjs";

const store = new Sessile({ command: process.env.SESSILE_BIN });
const saver = new SessileSaver(store);
const named = (id) => ({ id, agent: "langgraph" });
const at = (thread_id) => ({ configurable: { thread_id } });
const ask = (content, id) => ({ messages: [new HumanMessage({ content, id })] });

// A model that calls a tool, is answered, and answers; it names its messages by their place.
function tramGraph(checkpointer) {
  const State = Annotation.Root({ ...MessagesAnnotation.spec, seen: Annotation() });
  return new StateGraph(State)
    .addNode("model", ({ messages }) => {
      const id = `ai-${messages.length}`;
      if (messages.at(-1).type === "tool") {
        return { messages: [new AIMessage({ id, content: `it is late: ${messages.at(-1).content}` })] };
      }
      return { messages: [new AIMessage({ id, content: "", tool_calls: [
        { id: `call-${messages.length}`, name: "look", args: { at: messages.length } }] })] };
    })
    .addNode("tools", ({ messages }) => {
      const [call] = messages.at(-1).tool_calls;
      return { seen: { at: call.args.at, when: new Map([["now", Uint8Array.of(1, 2)]]) },
        messages: [new ToolMessage({ id: `tool-${messages.length}`, tool_call_id: call.id, name: "look",
          content: "the points froze" })] };
    })
    .addEdge("__start__", "model")
    .addConditionalEdges("model", ({ messages }) => (
      messages.at(-1).tool_calls?.length > 0 ? "tools" : "__end__"))
    .addEdge("tools", "model")
    .compile({ checkpointer });
}

// What a history says, without the ids and times that differ from run to run.
async function history(graph, config) {
  const states = [];
  for await (const { values, next, metadata, tasks } of graph.getStateHistory(config)) {
    states.push(JSON.parse(JSON.stringify({ values, next, metadata,
      tasks: tasks.map(({ name, interrupts }) => ({ name, interrupts })) })));
  }
  return states;
}

test("a history is what it is with a MemorySaver, after a fork and an update too", async () => {
  const lists = [];
  for (const checkpointer of [saver, new MemorySaver()]) {
    const graph = tramGraph(checkpointer);
    await graph.invoke(ask("why is it late?", "q1"), at("same"));
    await graph.invoke(ask("and now?", "q2"), at("same"));
    const states = [];
    for await (const state of graph.getStateHistory(at("same"))) states.push(state);
    const early = states.find(({ values }) => values.messages?.length === 4);
    await graph.invoke(ask("another question", "q3"), early.config);
    await graph.updateState(at("same"), { messages: [new AIMessage({ content: "edited", id: "ai-5" })] });
    lists.push(await history(graph, at("same")));
  }
  assert.ok(lists[0].length > 12);
  assert.deepEqual(lists[0], lists[1]);
});

test("new messages of a thread are messages of its session, and a fork is a branch", async () => {
  const graph = tramGraph(saver);
  await graph.invoke(ask("why is it late?", "q1"), at("shown"));
  const { config } = await graph.getState(at("shown"));
  await graph.invoke(ask("first way", "q2"), at("shown"));
  const said = async () => (await store.call("session/context", { session: named("shown") })).messages
    .map(({ message: { role, content } }) => `${role}: ${content}`);
  const start = ["user: why is it late?", "assistant: ", "tool: the points froze",
    "assistant: it is late: the points froze"];
  const way = (question) => [...start, `user: ${question}`, ...start.slice(1)];
  assert.deepEqual(await said(), way("first way"));
  await graph.invoke(ask("second way", "q2"), config);
  assert.deepEqual(await said(), way("second way"));
  const edited = await graph.updateState(config, { seen: "nothing was said here" });
  await graph.invoke(ask("third way", "q2"), config);
  await graph.invoke(ask("fourth way", "q2"), edited);
  assert.deepEqual(await said(), way("fourth way"));
  const [hit] = await store.call("store/search", { text: "first way" });
  assert.equal(hit.session, "shown");
  const { messages } = await store.call("session/context", { session: named("shown") });
  assert.deepEqual(messages[1].message.tool_calls, [
    { id: "call-1", name: "look", arguments: '{"at":1}' }]);
  const { leaves } = await store.call("session/info", { session: named("shown") });
  assert.equal(leaves.length, 4);
});

test("a compaction changes what the session shows, and nothing of the thread", async () => {
  const graph = tramGraph(saver);
  for (let i = 0; i < 4; i++) await graph.invoke(ask(`question ${i}`, `q${i}`), at("small"));
  const before = await history(graph, at("small"));
  const outcome = await store.call("session/compact", { session: named("small"),
    policy: { name: "sliding_window", options: { turns: 1 } } });
  assert.equal(outcome.policy.verdict, "applied", JSON.stringify(outcome.policy));
  assert.deepEqual(await history(graph, at("small")), before);
  await graph.invoke(ask("after", "q9"), at("small"));
  const { messages } = await store.call("session/context", { session: named("small") });
  assert.ok(messages.length < 12, `${messages.length}`);
  assert.equal((await graph.getState(at("small"))).values.messages.length, 20);
});

test("an interrupted run is resumed by another process", async () => {
  const State = Annotation.Root({ answer: Annotation() });
  const made = (checkpointer) => new StateGraph(State)
    .addNode("wait", () => ({ answer: interrupt("may I?") }))
    .addEdge("__start__", "wait").addEdge("wait", "__end__").compile({ checkpointer });
  await made(saver).invoke({ answer: "" }, at("waits"));
  const other = new Sessile({ command: process.env.SESSILE_BIN });
  const graph = made(new SessileSaver(other));
  const state = await graph.getState(at("waits"));
  assert.equal(state.tasks[0].interrupts[0].value, "may I?");
  assert.equal((await graph.invoke(new Command({ resume: "yes" }), at("waits"))).answer, "yes");
  assert.equal(await other.close(), 0);
  assert.equal((await made(saver).getState(at("waits"))).values.answer, "yes");
});

test("two savers that write to one thread by turns read all of it", async () => {
  const others = [saver, new SessileSaver(new Sessile({ command: process.env.SESSILE_BIN }))];
  for (let i = 0; i < 6; i++) {
    await tramGraph(others[i % 2]).invoke(ask(`question ${i}`, `q${i}`), at("both"));
  }
  const [one, two] = await Promise.all(others.map((each) => history(tramGraph(each), at("both"))));
  assert.equal(one[0].values.messages.length, 24);
  assert.deepEqual(one, two);
  await others[1].store.close();
});

test("a list that grew is kept as what was added, a whole one each 64 times", async () => {
  const values = [];
  let config = { configurable: { thread_id: "grows", checkpoint_ns: "" } };
  for (let i = 0; i < 130; i++) {
    values.push({ n: i });
    const id = String(i).padStart(6, "0");
    config = await saver.put(config, { v: 4, id, ts: "2026-01-01T00:00:00Z", versions_seen: {},
      channel_values: { list: [...values] }, channel_versions: { list: i + 1 } },
    { source: "loop", step: i, parents: {} }, { list: i + 1 });
  }
  const { entries } = await store.call("session/entries", { session: named("grows"), types: ["custom"] });
  const whole = entries.filter(({ data }) => data.values[0].json).map(({ data }) => Number(data.id));
  assert.deepEqual(whole, [0, 64, 128]);
  const cold = new SessileSaver(store);
  for (const n of [1, 63, 64, 65, 130]) {
    const id = String(n - 1).padStart(6, "0");
    const tuple = await cold.getTuple({ configurable: { ...config.configurable, checkpoint_id: id } });
    assert.deepEqual(tuple.checkpoint.channel_values.list, values.slice(0, n));
  }
});

test("values that JSON text cannot carry come back", async () => {
  const text = "\ud800 \u0000 \u2028";
  const channel_values = { ["__proto__x"]: 1, bytes: Uint8Array.of(0, 255), text, none: undefined,
    deep: new Map([[text, new Set([1.5, -1e300])]]) };
  const versions = Object.fromEntries(Object.keys(channel_values).map((channel) => [channel, 1]));
  const config = await saver.put(at("odd"), { v: 4, id: "1", ts: "", versions_seen: {}, channel_values,
    channel_versions: versions }, { source: "input", step: -1, parents: {} }, versions);
  const tuple = await new SessileSaver(store).getTuple(config);
  assert.deepEqual(tuple.checkpoint.channel_values, channel_values);
});

test("the snippet of the README runs", () => {
  assert.equal(snippet("langgraph.mjs"), "user: why is it late?\nassistant: 1 so far\nuser: and now?\nassistant: 3 so far\n");
});

await run(() => store.close());
