// test_store.mjs: SessileSessionStore beside the SDK's InMemorySessionStore: a transcript whose batches
// are retried, subagents, and what the SDK's own functions make of both stores.

import assert from "node:assert/strict";
import { mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as sdk from "@anthropic-ai/claude-agent-sdk";
import { SessileSessionStore } from "./claude_agent.mjs";
import { run, snippet, test } from "./harness.mjs";
import { Sessile } from "./sessile.mjs";

const store = new Sessile({ command: process.env.SESSILE_BIN });
const SESSION = "11111111-2222-4333-8444-555555555555";

const uuid = (n) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;

// The lines of a conversation: questions, calls and their results in lines of their own, thoughts, and
// lines that nobody said, some without a uuid.
function transcript(turns, sessionId = SESSION, agentId) {
  const lines = [];
  let n = 0, parentUuid = null;
  const said = (type, message, more = {}) => {
    const line = { parentUuid, isSidechain: agentId !== undefined, userType: "external", cwd: "/srv/tram",
      sessionId, version: "2.1.0", gitBranch: "main", type, message, uuid: uuid(++n),
      timestamp: new Date(1760000000000 + n * 1000).toISOString(), ...agentId && { agentId }, ...more };
    parentUuid = line.uuid;
    lines.push(line);
  };
  const answer = (turn, block) => ({ id: `msg_${turn}`, type: "message", role: "assistant",
    model: "claude-x", content: [block], stop_reason: null, usage: { input_tokens: turn, cost: 1.5 } });
  for (let turn = 0; turn < turns; turn++) {
    lines.push({ type: "file-history-snapshot", messageId: uuid(n + 1), snapshot: { turn, __proto: {} } });
    said("user", { role: "user", content: `question ${turn}: größer \u{1f68b} \u2028 \u0000` });
    said("assistant", answer(turn, { type: "thinking", thinking: "look", signature: "c2ln" }));
    said("assistant", answer(turn, { type: "tool_use", id: `toolu_${turn}`, name: "Read",
      input: { file: "points.log", line: 1e21, turn } }));
    said("user", { role: "user", content: [{ type: "tool_result", tool_use_id: `toolu_${turn}`,
      content: [{ type: "text", text: "the points froze" }], is_error: turn % 2 === 1 }] },
    { toolUseResult: { stdout: "", lines: [turn, null, true, {}] } });
    said("assistant", answer(turn, { type: "text", text: `answer ${turn}` }));
    said("system", undefined, { subtype: "turn_duration", durationMs: 12 + turn, message: undefined });
  }
  lines.push({ type: "custom-title", customTitle: "Slow trams", sessionId });
  lines.push({ type: "custom-title", customTitle: "Slow trams", sessionId }); // no uuid: both count
  if (agentId === undefined) {
    lines.push({ type: "user", message: { role: "user" }, uuid: uuid(++n), sessionId, parentUuid });
  }
  return lines.map((line) => JSON.parse(JSON.stringify(line)));
}

const batches = (lines, size) => Array.from({ length: Math.ceil(lines.length / size) },
  (_, i) => lines.slice(i * size, (i + 1) * size));
const sorted = (list) => [...list].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
const ids = (list) => sorted(list.map(({ sessionId }) => sessionId));

async function same(ours, theirs, keys) {
  for (const key of keys) assert.deepEqual(await ours.load(key), await theirs.load(key));
  for (const projectKey of ["p", "p/q", "none"]) {
    assert.deepEqual(ids(await ours.listSessions(projectKey)), ids(await theirs.listSessions(projectKey)));
  }
  for (const { projectKey, sessionId } of keys) {
    assert.deepEqual(sorted(await ours.listSubkeys({ projectKey, sessionId })),
      sorted(await theirs.listSubkeys({ projectKey, sessionId })));
  }
}

test("a transcript in batches, some retried, is what an InMemorySessionStore has", async () => {
  const ours = new SessileSessionStore(store), theirs = new sdk.InMemorySessionStore();
  const main = { projectKey: "p", sessionId: SESSION };
  const sub = { ...main, subpath: "subagents/agent-a1" };
  const keys = [main, sub, { ...main, subpath: "subagents/agent-b2" }, { projectKey: "p", sessionId: "s2" },
    { projectKey: "none", sessionId: "x" }];
  await same(ours, theirs, keys);
  const parts = batches(transcript(12), 7);
  for (const [i, part] of parts.entries()) {
    await Promise.all([ours.append(main, part), theirs.append(main, part)]);
    const said = part.filter((line) => line.uuid !== undefined);
    if (i % 3 === 0) await Promise.all([ours.append(main, said), ours.append(main, said)]);
    await same(ours, theirs, keys.slice(0, 1));
  }
  for (const part of batches(transcript(2, SESSION, "a1"), 5)) {
    await Promise.all([ours.append(sub, part), theirs.append(sub, part)]);
  }
  await Promise.all([ours, theirs].map((each) => each.append(keys[3], transcript(1, "s2"))));
  await same(ours, theirs, keys);
  await Promise.all([ours, theirs].map((each) => each.delete(sub)));
  await same(ours, theirs, keys);
  await Promise.all([ours, theirs].map((each) => each.append(sub, transcript(1, SESSION, "a1"))));
  await Promise.all([ours, theirs].map((each) => each.delete(main)));
  await same(ours, theirs, keys);
  await ours.delete(main); // nothing is there
});

test("a batch that another process retries is written once", async () => {
  const key = { projectKey: "p", sessionId: "retried" };
  const lines = transcript(3).filter((line) => line.uuid !== undefined);
  await new SessileSessionStore(store).append(key, lines.slice(0, 10));
  const other = new Sessile({ command: process.env.SESSILE_BIN });
  await new SessileSessionStore(other).append(key, lines);
  await new SessileSessionStore(store).append(key, lines);
  assert.deepEqual(await new SessileSessionStore(other).load(key), lines);
  assert.equal(await other.close(), 0);
});

test("names are kept apart, whatever is in them", async () => {
  const ours = new SessileSessionStore(store);
  const names = ["a", "a\u241fb", "a%E2%90%9Fb", "a/b", "a%", "größer"];
  for (const projectKey of names) {
    for (const sessionId of names) await ours.append({ projectKey, sessionId }, [{ type: projectKey }]);
  }
  for (const projectKey of names) {
    assert.deepEqual(ids(await ours.listSessions(projectKey)), sorted(names));
    assert.deepEqual(await ours.load({ projectKey, sessionId: "a" }), [{ type: projectKey }]);
  }
});

test("what was said is a conversation that sessile reads", async () => {
  const ours = new SessileSessionStore(store);
  await ours.append({ projectKey: "q", sessionId: SESSION }, transcript(2));
  const session = { id: `q\u241f${SESSION}`, agent: "claude" };
  const { messages, orphans } = await store.call("session/context", { session });
  assert.deepEqual(messages.map(({ message }) => message.role).slice(0, 5),
    ["user", "assistant", "assistant", "user", "assistant"]);
  assert.equal(orphans, 0);
  const [hit] = await store.call("store/search", { text: "answer 1" });
  assert.equal(hit.session, session.id);
});

test("the SDK's functions do the same with both stores", async () => {
  const dir = join(realpathSync(process.env.HOME), "work");
  process.env.CLAUDE_CONFIG_DIR = join(process.env.HOME, "claude");
  const project = join(process.env.CLAUDE_CONFIG_DIR, "projects", dir.replace(/[^a-zA-Z0-9]/g, "-"));
  mkdirSync(join(project, SESSION, "subagents"), { recursive: true });
  mkdirSync(dir, { recursive: true });
  const text = (lines) => lines.map((line) => JSON.stringify({ ...line, cwd: dir }) + "\n").join("");
  writeFileSync(join(project, `${SESSION}.jsonl`), text(transcript(5)));
  writeFileSync(join(project, SESSION, "subagents", "agent-a1.jsonl"), text(transcript(1, SESSION, "a1")));
  const seen = [];
  for (const sessionStore of [new SessileSessionStore(store), new sdk.InMemorySessionStore()]) {
    const options = { dir, sessionStore };
    await sdk.importSessionToStore(SESSION, sessionStore, { dir, batchSize: 6 });
    const said = await sdk.getSessionMessages(SESSION, { ...options, includeSystemMessages: true });
    const subagents = await sdk.getSubagentMessages(SESSION, "a1", options);
    assert.ok(said.length > 20 && subagents.length > 3, `${said.length} ${subagents.length}`);
    await sdk.renameSession(SESSION, "Renamed", options);
    await sdk.tagSession(SESSION, "late", options);
    const { lastModified, fileSize, ...info } = await sdk.getSessionInfo(SESSION, options);
    const listed = (await sdk.listSessions(options)).map(({ sessionId, customTitle, tag, firstPrompt }) => (
      { sessionId, customTitle, tag, firstPrompt }));
    const { sessionId: forked } = await sdk.forkSession(SESSION, options);
    const copies = await sdk.getSessionMessages(forked, options);
    await sdk.deleteSession(SESSION, options);
    const left = (await sdk.listSessions(options)).map(({ sessionId }) => sessionId === forked);
    seen.push({ said, subagents, info, listed, copies: copies.map(({ message }) => message), left });
  }
  assert.equal(seen[0].info.customTitle, "Renamed");
  assert.deepEqual(seen[0], seen[1]);
});

test("the snippet of the README runs", () => {
  assert.equal(snippet("claude_agent.mjs"), "1 why is it late?\n");
});

await run(() => store.close());
