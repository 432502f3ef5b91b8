// checks.mjs: what a client of either SDK asks of `sessile mcp`. The SDKs check each result by the
// schemas of the protocol, and what a tool returns by its output schema.

import assert from "node:assert/strict";
import { sessile, test } from "./harness.mjs";

export const READING = ["session_list", "session_search", "session_read", "session_why",
  "memory_search"];
export const WRITING = ["memory_remember", "session_note", "session_checkpoint", "session_fork"];

const SECRET = "password: hunter2horse9xQ";

/** A store with a session that has calls, results, a secret and text that reorders, and 60 more. */
export function fill() {
  const lines = [{ role: "user", content: `why is it slow? ${SECRET}` }];
  for (let i = 0; i < 30; i += 1) {
    lines.push({ role: "assistant", content: null, tool_calls: [{ id: `c${i}`, type: "function",
      function: { name: "grep", arguments: JSON.stringify({ for: `n${i}` }) } }] });
    lines.push({ role: "tool", tool_call_id: `c${i}`, content: `\u202efound ${i} </system>` });
    lines.push({ role: "user", content: `and ${i}?` });
  }
  const text = lines.map((line) => JSON.stringify(line)).join("\n");
  sessile(["import", "-", "--id", "talk", "--title", "A long talk"], `${text}\n`);
  sessile(["compact", "talk", "--policy", "sliding_window", "--window", "500"]);
  sessile(["memory", "add", "main", "prefers vim", "--key", "editor"]);
  for (let i = 0; i < 60; i += 1) {
    sessile(["new", "--id", `empty-${i}`]);
  }
}

async function call(client, name, args) {
  const result = await client.callTool({ name, arguments: args });
  assert.ok(!result.isError, JSON.stringify(result.content));
  assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
  assert.ok(!JSON.stringify(result).includes("hunter2horse9xQ"));
  assert.ok(!JSON.stringify(result).includes("\u202e"));
  return result.structuredContent;
}

/** Tests of a client that is connected; client() returns it. */
export function tests(what, client) {
  test(`${what}: tools are listed, with schemas and annotations`, async () => {
    const { tools } = await client().listTools();
    assert.deepEqual(tools.map((tool) => tool.name).sort(), [...READING, ...WRITING].sort());
    for (const tool of tools) {
      assert.equal(tool.annotations.readOnlyHint, READING.includes(tool.name));
      assert.equal(tool.outputSchema.type, "object");
    }
  });

  test(`${what}: sessions are listed, searched, read and explained`, async () => {
    const listed = await call(client(), "session_list", { search: "talk" });
    assert.ok(listed.sessions.some((row) => row.session === "main/talk"));
    const found = await call(client(), "session_search", { text: "slow", limit: 20 });
    assert.ok(found.hits.some((hit) => hit.session === "main/talk" && hit.entry === "00000001"));
    const read = await call(client(), "session_read", { session: "main/talk", bytes: 1000 });
    assert.equal(read.total, 91);
    const around = await call(client(), "session_read", { session: "talk", entry: "1", bytes: 500 });
    assert.ok(around.next);
    await call(client(), "session_read", { session: "talk", entry: around.next });
    await call(client(), "session_read", { session: "talk", view: "context" });
    const why = await call(client(), "session_why", { session: "talk", entry: "1" });
    assert.ok(why.steps.length > 1);
  });

  test(`${what}: memories are searched and proposed`, async () => {
    const found = await call(client(), "memory_search", { query: "which editor?" });
    assert.equal(found.notes[0].value, "prefers vim");
    const done = await call(client(), "memory_remember", { text: "tests run with make" });
    assert.equal(done.state, "pending");
  });

  test(`${what}: a note, a checkpoint and a fork are made`, async () => {
    const note = await call(client(), "session_note", { session: "main/empty-1", text: "look" });
    assert.ok(note.entry);
    const name = `${what} was here`.replaceAll(/[^a-z0-9 ]/gi, "");
    await call(client(), "session_checkpoint", { session: "main/empty-1", name });
    const fork = await call(client(), "session_fork", { session: "main/talk", entry: "1" });
    const read = await call(client(), "session_read", { session: fork.session });
    assert.equal(read.total, 1);
  });

  test(`${what}: what fails is told to the model`, async () => {
    for (const [name, args, status] of [
      ["session_read", { session: "main/none" }, "NOTFOUND"],
      ["session_why", { session: "main/talk" }, "INVALID"],
      ["session_list", { limit: 0 }, "INVALID"],
    ]) {
      const result = await client().callTool({ name, arguments: args });
      assert.equal(result.isError, true);
      const told = JSON.parse(result.content[0].text);
      assert.equal(told.status, status);
      assert.ok(told.next);
    }
  });

  test(`${what}: a tool that does not exist is an error`, async () => {
    await assert.rejects(client().callTool({ name: "session_burn", arguments: {} }),
      (error) => error.code === -32602);
  });

  test(`${what}: resources are listed in pages, and read`, async () => {
    const uris = [];
    let cursor;
    let pages = 0;
    do {
      const page = await client().listResources(cursor ? { cursor } : undefined);
      uris.push(...page.resources.map((one) => one.uri));
      // A client may have gone through all pages by itself.
      cursor = uris.length < 61 ? page.nextCursor : undefined;
      pages += 1;
    } while (cursor);
    assert.ok(uris.length >= 61 && pages <= 2);
    const { contents } = await client().readResource({ uri: "sessile://main/talk" });
    assert.equal(contents[0].mimeType, "text/markdown");
    assert.ok(contents[0].text.includes("A long talk"));
    assert.ok(!contents[0].text.includes("hunter2"));
    const { resourceTemplates } = await client().listResourceTemplates();
    assert.equal(resourceTemplates[0].uriTemplate, "sessile://{agent}/{id}");
    await assert.rejects(client().readResource({ uri: "sessile://main/none" }),
      (error) => error.code === -32002 || error.code === -32602);
  });

  test(`${what}: the prompt is listed and given`, async () => {
    const { prompts } = await client().listPrompts();
    assert.deepEqual(prompts.map((prompt) => prompt.name), ["continue"]);
    const { messages } = await client().getPrompt({ name: "continue",
      arguments: { session: "main/talk" } });
    assert.equal(messages[0].role, "user");
    assert.ok(messages[0].content.text.includes('- user: "and 29?"'));
  });

  test(`${what}: arguments are completed`, async () => {
    const of = async (ref, argument, context) =>
      (await client().complete({ ref, argument, context })).completion;
    const named = await of({ type: "ref/prompt", name: "continue" },
      { name: "session", value: "ta" });
    assert.deepEqual(named.values, ["main/talk"]);
    const ids = await of({ type: "ref/resource", uri: "sessile://{agent}/{id}" },
      { name: "id", value: "empty-" }, { arguments: { agent: "main" } });
    assert.equal(ids.total, 60);
  });
}
