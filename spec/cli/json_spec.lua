-- What --json prints is JSON whatever is in the session: UTF-8, no number that is none, lists that
-- are lists.

local cli = require "spec.support.cli"
local span = require("sessile.core").span

-- Messages with everything that is hard to print: calls without answers, empty lists and objects,
-- numbers beyond 2^53 and beyond a double, control characters, NUL.
local NASTY = [[ [
  {"role":"system","content":""},
  {"role":"user","content":[]},
  {"role":"user","content":"x\u0000\ud83d\ude00 \u202e needle","n":1e400,"big":9007199254740993,
    "neg":-0,"o":{},"a":[],"timestamp":1e999},
  {"role":"assistant","content":null,"tool_calls":[{"id":"a","name":"f","arguments":"{"},
    {"id":"b","name":"g","arguments":"{}"}]},
  {"role":"tool","tool_call_id":"a","content":"done"},
  {"role":"assistant","content":[{"type":"tool_use","id":"c","name":"h","input":{}}],
    "usage":{"input":9007199254740993,"output":1}},
  {"role":"user","content":"go on"}] ]]

-- Commands that print about a session, and members that are lists (of the document itself: "").
local COMMANDS = {
  { "list", { "" } }, { "show %s", { "" } }, { "context %s", { "messages" } },
  { "context %s --to openai", { "messages" } }, { "context %s --to anthropic", { "messages" } },
  { "tree %s", { "entries" } }, { "info %s", { "labels", "children", "pending_runs" } },
  { "stats %s", { "rows" } }, { "usage %s --by day", { "groups" } }, { "usage --by model", {} },
  { "log %s", { "" } }, { "search needle", { "" } }, { "label list %s", { "" } },
  { "checkpoints %s", { "checkpoints" } }, { "children %s", { "children" } },
  { "settings %s", {} }, { "check %s", { "findings" } }, { "policy try tiered %s", {} },
  { "export %s", { "context", "entries", "labels" } }, { "export %s --to openai", { "messages" } },
  { "compact %s --policy tiered --dry-run", { "log" } }, { "turn %s more", { "entries" } },
}

describe("--json", function()
  cli.each_test()

  it("is JSON for every command, of a session with everything and of an empty one", function()
    cli.done "new --id nasty"
    cli.done "new --id empty"
    cli.done("append nasty -", NASTY)
    for _, id in ipairs { "nasty", "empty" } do
      for _, case in ipairs(COMMANDS) do
        local command = case[1]:format(id)
        local out = cli.sessile("--json " .. command)
        assert.is_true(span.valid(out) and utf8.len(out) ~= nil, command .. ": " .. out)
        local _, fields = span.object(out)
        for _, name in ipairs(case[2]) do
          local value = name == "" and out or type(fields) == "table" and fields[name]
          assert.equal("array", value and span.kind(value), command .. ": " .. name)
        end
      end
    end
    assert.matches("9007199254740993", cli.done "--json show nasty")
    assert.matches("1e400", cli.done "--json show nasty")
  end)
end)
