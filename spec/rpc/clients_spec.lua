-- `sessile rpc --client`: the clients that it writes are run by their languages, and do the same.

local built = require "spec.support.built"
local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local shell = require "spec.support.shell"

local has = expect.has

local home

cli.each_test(function(path)
  home = path
end)

-- Where a program is; nil after saying why its test is left out.
local function found(program, why)
  local path = shell.line("command -v " .. program .. " || true")
  if path == "" then
    pending(("%s is not installed: %s"):format(program, why))
    return nil
  end
  return path
end

-- Writes the client and a program beside it, and runs it; returns what it printed.
local function run(language, name, program, text, command)
  cli.write(home .. "/" .. name, (cli.done("rpc --client " .. language)))
  cli.write(home .. "/" .. program, text)
  local out, ok = shell.output(("cd %s && %s SESSILE_BIN=%s timeout 60 %s 2>&1"):format(
    cli.quote(home), cli.env(), cli.quote(built.binary), command))
  assert(ok, out)
  return out
end

local EXPECTED = [[
protocol 1
turn 00000001 00000002
messages 2 h€ 1.5
error 3 NOTFOUND nobody
model asked for s
compact applied
hook truncate message question 3
hooked applied 4
note told
exit 0
]]

local NODE = [==[
import { Sessile, SessileError } from "./sessile.mjs";
const notes = [];
const store = new Sessile({
  command: process.env.SESSILE_BIN,
  onEntries: (note) => notes.push(note),
  answers: {
    model: (asked) => {
      console.log("model asked for", asked.session);
      return { text: "in short" };
    },
    hook: async (asked, message) => {
      const third = await message(3);
      console.log("hook", asked.hook, "message", third.message.content);
      return { edits: [["keep_last", 4, "messages"]] };
    },
  },
});
console.log("protocol", (await store.hello).protocol);
await store.call("session/create", { id: "m" });
const turn = await store.call("session/turn", { session: "m", messages: [
  { role: "user", content: "h€", n: 1.5 }, { role: "assistant", content: "hello" }] });
console.log("turn", ...turn.ids);
const read = await store.call("session/messages", { session: "m" });
console.log("messages", read.length, read[0].message.content, read[0].message.n);
try { await store.call("session/messages", { session: "nobody" }); } catch (why) {
  console.log("error", why.code, why.status, /nobody/.exec(why.message)[0]);
}
for (const id of ["s", "t"]) {
  await store.call("session/create", { id });
  await store.call("session/turn", { session: id, messages: Array.from({ length: 12 }, (_, i) =>
    ({ role: "user", content: i === 2 ? "question 3" : `question ${i + 1} `.repeat(20) })) });
}
let outcome = await store.call("session/compact", { session: "s",
  policy: { name: "summarize", options: { preserve_recent: 2 } } });
console.log("compact", outcome.policy.verdict);
outcome = await store.call("session/compact", { session: "t",
  policy: { name: "mine", hooks: ["truncate"] } });
const context = await store.call("session/context", { session: "t" });
console.log("hooked", outcome.policy.verdict, context.messages.length);
await store.call("session/watch", { session: "m" });
await store.call("session/append", { session: "m", message: { role: "user", content: "x" } });
while (notes.length === 0) await new Promise((go) => setTimeout(go, 10));
console.log("note", "told");
console.log("exit", await store.close());
]==]

local PYTHON = [==[
import os, threading
from sessile_rpc import Sessile, SessileError
told = threading.Event()
def model(asked):
    print("model asked for", asked["session"])
    return {"text": "in short"}
def hook(asked, message):
    print("hook", asked["hook"], "message", message(3)["message"]["content"])
    return {"edits": [["keep_last", 4, "messages"]]}
store = Sessile(os.environ["SESSILE_BIN"], model=model, hook=hook,
                on_entries=lambda note: told.set())
print("protocol", store.hello["protocol"])
store.session_create(id="m")
turn = store.session_turn(session="m", messages=[
    {"role": "user", "content": "h€", "n": 1.5}, {"role": "assistant", "content": "hello"}])
print("turn", *turn["ids"])
read = store.session_messages(session="m")
print("messages", len(read), read[0]["message"]["content"], read[0]["message"]["n"])
try:
    store.session_messages(session="nobody")
except SessileError as why:
    print("error", why.code, why.status, "nobody" if "nobody" in str(why) else why)
for id in ("s", "t"):
    store.session_create(id=id)
    store.session_turn(session=id, messages=[{"role": "user", "content":
        "question 3" if i == 3 else "question %d " % i * 20} for i in range(1, 13)])
outcome = store.session_compact(session="s",
    policy={"name": "summarize", "options": {"preserve_recent": 2}})
print("compact", outcome["policy"]["verdict"])
outcome = store.session_compact(session="t", policy={"name": "mine", "hooks": ["truncate"]})
print("hooked", outcome["policy"]["verdict"], len(store.session_context(session="t")["messages"]))
store.session_watch(session="m")
store.session_append(session="m", message={"role": "user", "content": "x"})
told.wait(30)
print("note", "told")
print("exit", store.close())
]==]

local NVIM = [==[
package.path = "./?.lua;" .. package.path
local out = {}
local function say(...)
  out[#out + 1] = table.concat(vim.tbl_map(tostring, { ... }), " ")
end
local told
local store
store = require("sessile_rpc").start {
  command = vim.env.SESSILE_BIN,
  on_entries = function() told = true end,
  answers = {
    model = function(asked, reply)
      say("model asked for", asked.session)
      reply { text = "in short" }
    end,
    hook = function(asked, reply)
      store:call("run/message", { run = asked.run, index = 3 }, function(third)
        say("hook", asked.hook, "message", third.message.content)
        reply { edits = { { "keep_last", 4, "messages" } } }
      end)
    end,
  },
}
vim.wait(5000, function() return store.hello end, 2)
say("protocol", store.hello.protocol)
assert(#store:wait("store/list", {}) == 0)
store:wait("session/create", { id = "m" })
local turn = store:wait("session/turn", { session = "m", messages = {
  { role = "user", content = "h€", n = 1.5 }, { role = "assistant", content = "hello" } } })
say("turn", unpack(turn.ids))
local read = store:wait("session/messages", { session = "m" })
say("messages", #read, read[1].message.content, read[1].message.n)
local _, failure = store:wait("session/messages", { session = "nobody" })
say("error", failure.code, failure.data.status, failure.message:match "nobody")
for _, id in ipairs { "s", "t" } do
  store:wait("session/create", { id = id })
  local list = {}
  for i = 1, 12 do
    list[i] = { role = "user",
      content = i == 3 and "question 3" or ("question %d "):format(i):rep(20) }
  end
  store:wait("session/turn", { session = id, messages = list })
end
local outcome = store:wait("session/compact", { session = "s",
  policy = { name = "summarize", options = { preserve_recent = 2 } } })
say("compact", outcome.policy.verdict)
outcome = store:wait("session/compact", { session = "t",
  policy = { name = "mine", hooks = { "truncate" } } })
say("hooked", outcome.policy.verdict, #store:wait("session/context", { session = "t" }).messages)
store:wait("session/watch", { session = "m" })
store:call("session/append", { session = "m", message = { role = "user", content = "x" } })
vim.wait(5000, function() return told end, 2)
say("note", told and "told" or "none")
say("exit", store:stop())
vim.fn.writefile(out, "out.txt")
vim.cmd "qa!"
]==]

describe("a client that sessile rpc writes", function()
  it("works in Node", function()
    local node = found("node", "the client for Node was not run")
    if node then
      has(run("node", "sessile.mjs", "try.mjs", NODE, node .. " try.mjs"), EXPECTED)
    end
  end)

  it("works in Python", function()
    local python = found("/usr/bin/python3", "the client for Python was not run")
    if python then
      has(run("python", "sessile_rpc.py", "try.py", PYTHON, "env PYTHONIOENCODING=utf-8 " .. python
        .. " try.py"), EXPECTED)
    end
  end)

  it("works in Neovim", function()
    local nvim = found("nvim", "the client for Neovim was not run")
    if nvim then
      local said = run("nvim", "sessile_rpc.lua", "try.lua", NVIM, nvim
        .. " --headless -u NONE -i NONE +'luafile try.lua'")
      assert(cli.exists(home .. "/out.txt"), said)
      has(cli.read(home .. "/out.txt"), EXPECTED)
    end
  end)

  it("has types that TypeScript takes, and that refuse a misspelt parameter", function()
    local tsc = shell.line(("ls %s/npm/node_modules/.bin/tsc 2>/dev/null || command -v tsc || true")
      :format(cli.quote(built.folder)))
    if tsc == "" then
      pending("TYPESCRIPT IS NOT CHECKED: tsc is neither in PATH nor fetched by `make npm-tools`")
      return
    end
    cli.write(home .. "/types.ts", (cli.done "rpc --types ts"))
    cli.write(home .. "/good.ts", [=[
      import type { Methods } from "./types";
      export const turn: Methods["session/turn"]["params"] =
        { session: "s", messages: [{ role: "user", content: "x" }] };
    ]=])
    local check = ("cd %s && %s --strict --noEmit %%s 2>&1"):format(cli.quote(home), tsc)
    local out, ok = shell.output(check:format "types.ts good.ts")
    assert(ok, out)
    cli.write(home .. "/wrong.ts", (cli.read(home .. "/good.ts"):gsub("messages:", "mesages:")))
    out, ok = shell.output(check:format "types.ts wrong.ts")
    assert.is_false(ok or false)
    has(out, "mesages")
  end)

  it("has types that Python and Lua read", function()
    cli.write(home .. "/sessile_types.py", (cli.done "rpc --types py"))
    cli.write(home .. "/types.lua", (cli.done "rpc --types lua"))
    assert(loadfile(home .. "/types.lua"))
    if found("/usr/bin/python3", "the types for Python were not read") then
      local out, ok = shell.output(("/usr/bin/python3 %s/sessile_types.py 2>&1"):format(
        cli.quote(home)))
      assert(ok, out)
    end
  end)
end)
