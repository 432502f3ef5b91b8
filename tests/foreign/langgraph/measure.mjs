// measure.mjs [CHECKPOINTS]: what the checkpoints of a growing conversation cost, two messages each: bytes
// on disk, a put at the end beside an append of one message and beside MemorySaver's put, and the newest
// state, read by a process that knows nothing and once more by the same. Messages are LangChain's, then
// plain objects. Medians in ms.

import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { MemorySaver, emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { SessileSaver } from "./langgraph.mjs";
import { Sessile } from "./sessile.mjs";

const COUNT = Number(process.argv[2] ?? 400);
const text = (i) => `message ${i}: ${"the tram was late because the points froze. ".repeat(4)}`;
const median = (list) => list.sort((a, b) => a - b)[list.length >> 1].toFixed(2);

async function timed(work) {
  const start = performance.now();
  const value = await work();
  return [performance.now() - start, value];
}

function sizeOf(folder) {
  return readdirSync(folder, { withFileTypes: true }).reduce((sum, one) => sum + (one.isDirectory()
    ? sizeOf(join(folder, one.name)) : statSync(join(folder, one.name)).size), 0);
}

const FORMS = {
  "LangChain's messages": (i, Type) => new Type({ id: `m${i}`, content: text(i) }),
  "plain objects": (i, Type) => (
    { id: `m${i}`, type: Type === AIMessage ? "ai" : "human", content: text(i) }),
};

// Puts all checkpoints; the times of the newest 50.
async function fill(saver, make) {
  const messages = [], times = [];
  let config = { configurable: { thread_id: "t", checkpoint_ns: "" } };
  for (let i = 0; i < COUNT; i++) {
    messages.push(make(2 * i, HumanMessage), make(2 * i + 1, AIMessage));
    const checkpoint = { ...emptyCheckpoint(), id: uuid6(i), channel_versions: { messages: i + 1 },
      channel_values: { messages: [...messages] } };
    const [ms, put] = await timed(() => saver.put(config, checkpoint,
      { source: "loop", step: i, parents: {} }, { messages: i + 1 }));
    config = put;
    times.push(ms);
  }
  return times.slice(-50);
}

async function read(saver) {
  const [ms, tuple] = await timed(() => saver.getTuple({ configurable: { thread_id: "t" } }));
  const count = tuple.checkpoint.channel_values.messages.length;
  if (count !== 2 * COUNT) throw new Error(`${count} messages were read`);
  return ms.toFixed(1);
}

for (const [form, make] of Object.entries(FORMS)) {
  const folder = mkdtempSync(join(tmpdir(), "measure-"));
  const open = async () => {
    const store = new Sessile({ command: process.env.SESSILE_BIN, args: ["--store", folder] });
    await store.hello;
    return store;
  };
  let store = await open();
  const puts = median(await fill(new SessileSaver(store), make));
  await store.call("session/create", { id: "plain" });
  const appends = [];
  for (let i = 0; i < 50; i++) {
    appends.push((await timed(() => store.call("session/append",
      { session: "plain", message: { role: "user", content: text(i) } })))[0]);
  }
  await store.close();
  const bytes = sizeOf(folder);
  store = await open();
  const saver = new SessileSaver(store);
  const cold = await read(saver), warm = await read(saver);
  await store.close();
  rmSync(folder, { recursive: true });
  const memory = new MemorySaver();
  const theirs = median(await fill(memory, make));
  console.log(`${form}: ${bytes} bytes; put ${puts}, append ${median(appends)}, MemorySaver's put `
    + `${theirs}; cold ${cold}, warm ${warm}, MemorySaver's ${await read(memory)}`);
}
