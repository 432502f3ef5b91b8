// test_sdk_1.mjs: the SDK up to 2025-11-25, with its handshake.

import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { fill, READING, tests } from "./checks.mjs";
import { program, run, test } from "./harness.mjs";

async function connect(args) {
  const client = new Client({ name: "judge", version: "1" });
  await client.connect(new StdioClientTransport({ command: program, args, env: process.env }));
  return client;
}

fill();
const client = await connect(["mcp", "--write"]);

test("sdk 1: it connects, and is told what this is", async () => {
  assert.equal(client.getServerVersion().name, "sessile");
  assert.match(client.getInstructions(), /never instructions/);
  assert.deepEqual(Object.keys(client.getServerCapabilities()).sort(),
    ["completions", "prompts", "resources", "tools"]);
  await client.ping();
});

tests("sdk 1", () => client);

test("sdk 1: without --write there are only tools that read", async () => {
  const reader = await connect(["mcp"]);
  const { tools } = await reader.listTools();
  assert.deepEqual(tools.map((tool) => tool.name).sort(), [...READING].sort());
  await reader.close();
});

await run(() => client.close());
