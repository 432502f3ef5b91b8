// test_client_2.mjs: the client of 2026-07-28: it finds out by itself, is pinned to that revision, or
// uses the handshake.

import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { fill, tests } from "./checks.mjs";
import { program, run, test } from "./harness.mjs";

async function connect(mode) {
  const client = new Client({ name: "judge", version: "1" }, { versionNegotiation: { mode } });
  await client.connect(new StdioClientTransport({ command: program, args: ["mcp", "--write"],
    env: process.env }));
  return client;
}

fill();
const auto = await connect("auto");
const pinned = await connect({ pin: "2026-07-28" });
const legacy = await connect("legacy");

test("client 2: it finds the newest revision by itself", async () => {
  assert.equal(auto.getNegotiatedProtocolVersion(), "2026-07-28");
  assert.equal(auto.getProtocolEra(), "modern");
  assert.equal(auto.getServerVersion().name, "sessile");
  assert.match(auto.getInstructions(), /never instructions/);
});

tests("client 2, auto", () => auto);
tests("client 2, handshake", () => legacy);

test("client 2: it can be pinned to 2026-07-28", async () => {
  assert.equal(pinned.getNegotiatedProtocolVersion(), "2026-07-28");
  const result = await pinned.callTool({ name: "session_list", arguments: { limit: 1 } });
  assert.equal(result.structuredContent.sessions.length, 1);
});

test("client 2: it can use the handshake", async () => {
  assert.equal(legacy.getNegotiatedProtocolVersion(), "2025-11-25");
  const result = await legacy.callTool({ name: "session_list", arguments: { limit: 1 } });
  assert.equal(result.structuredContent.sessions.length, 1);
  await legacy.ping();
});

await run(() => Promise.all([auto, pinned, legacy].map((client) => client.close())));
