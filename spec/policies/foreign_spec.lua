-- A policy file that is not its user's own, or that others may write: it runs in a process of its
-- own, from the first look at it, and the same comes of it.

local shipped = require "spec.support.shipped"
local temp = require "spec.support.temp"
local transcript = require "spec.support.transcript"
local workers = require "spec.support.workers"

local folder

local write = temp.policies("666", function(path) folder = path end)

local function open(policy, options)
  options = options or {}
  options.policy = policy
  return workers.open(options)
end

local function source_of(name)
  return temp.read("policies/" .. name .. ".lua")
end

-- Plays the bundled conversation; the entries, and how many workers ran.
local function play(policy)
  local store <close> = assert(open(policy, { window = 9000 }))
  local session = assert(store:create { id = "s" })
  shipped.none_refused(transcript.play(session, transcript.turns()))
  local ran = #workers.children("sessile-worker", true)
  return transcript.log(session), ran
end

describe("a policy file that others may write", function()
  for _, name in ipairs { "sliding_window", "edit_tools", "token_budget", "summarize" } do
    it("runs in a worker and does the same: " .. name, function()
      local theirs, ran = play(write(name, source_of(name)))
      assert.equal(1, ran)
      local ours, none = play(write(name, source_of(name), "600"))
      assert.equal(0, none)
      assert.equal(ours, theirs)
    end)
  end

  it("takes the whole of its chain there", function()
    local path = write("own", source_of "sliding_window")
    local _, ran = play { { "edit_tools" }, { path, messages = 30 } }
    assert.equal(1, ran)
  end)

  it("may be a chain that names others", function()
    local path = write("both", 'return { name = "both", chain = { "edit_tools", '
      .. '{ "sliding_window", messages = 20 } } }')
    local _, ran = play { path, preserve_recent = 4 }
    assert.equal(1, ran)
  end)

  it("by the group's leave counts too", function()
    local _, ran = play(write("group", source_of "sliding_window", "620"))
    assert.equal(1, ran)
  end)

  it("is told the same when it does not load", function()
    for _, source in ipairs {
      "return {", "return 3", 'return {\n  onCompact = function() end\n}',
      'return { helper = function() end,\n  truncate = function() end,\n  flsh = function() end }',
 "error('no')", 'return { truncte = function() end }',
      'return { truncate = 5 }', 'return { name = 5 }', 'return { version = "x" }',
      'return { options = { n = { type = "whole" } } }', "\27Lua", "local x = _ENV return {}",
      'return { chain = {} }', 'return { chain = { "nothing" } }', 'return { chain = { 5 } }',
      'return { chain = { {} } }', 'return { chain = { { 3, a = 1 } } }',
      'return { chain = 5 }', 'return { chain = { "edit_tools" }, truncate = function() end }',
      'return { chain = { { "edit_tools", nothing = 1 } } }',
    } do
      local _, theirs = open(write("bad", source))
      local _, ours = open(write("bad", source, "600"))
      assert.is_string(theirs, source)
      assert.equal(ours, theirs)
    end
  end)

  it("is told the nearest name of an option", function()
    local path = write("mine", source_of "sliding_window")
    local _, message, code = open { path, mesages = 3 }
    assert.equal("EINVALID", code)
    assert.truthy(message:find("'messages'", 1, true))
  end)

  it("that never ends when it is looked at is ended", function()
    local store, message, code = open(write("loop", "while true do end"),
      { limits = { policy_ms = 50, policy_gas = 1000000 } })
    assert.is_nil(store)
    assert.equal("EPOLICY", code)
    assert.truthy(message:find("loop.lua", 1, true), message)
    assert.same({}, workers.children("sessile-worker", true))
  end)

  it("is believed nothing that is no answer", function()
    -- frames: a size of 32 bits, a kind (10: facts), status, message, facts, wanted
    local function frame(facts, wanted)
      local body = string.pack("<I4s4s4s4", 0, "", facts, wanted or "")
      return string.pack("<I4B", #body + 1, 10) .. body
    end
    local answers = { "", "nonsense, and a lot of it", frame "{", frame "[]", frame "{}",
      frame '{"fields":3,"functions":[]}', frame '{"fields":{},"functions":[3]}',
      frame '{"fields":{},"functions":[["truncate"]]}',
      frame '{"fields":{},"functions":[[null,1]]}', frame '{"fields":{"chain":[{"options":3}]}}',
      frame '{"fields":{"chain":[[],{}]},"functions":[]}',
      frame('{"fields":{},"functions":' .. ("["):rep(5000) .. ("]"):rep(5000) .. "}"),
      frame("\xff"), "\255\255\255\255\10", frame("", ("x"):rep(256)), frame("", "a\0b"),
      frame("", "\xff"), frame("", "helper"):rep(3) }
    write("helper", "return {}", "600")
    local path = write("mine", "return {}")
    local function try(answer)
      local program = folder .. "/impostor"
      local file = assert(io.open(folder .. "/answer", "wb"))
      file:write(answer)
      file:close()
      file = assert(io.open(program, "w"))
      file:write(("#!/bin/sh\ncat '%s/answer' >&0\n"):format(folder))
      file:close()
      assert(os.execute(("chmod 700 '%s'"):format(program)))
      return open(path, { worker = program })
    end
    assert(try(frame '{"fields":{},"functions":[["truncate",1]]}')):close()
    for i, answer in ipairs(answers) do
      local store, message, code = try(answer)
      assert.is_nil(store, i)
      assert.equal("EPOLICY", code, message)
    end
  end)

  it("is denied where there is no worker, with the way out", function()
    local path = write("mine", "return {}")
    local store, message, code = open(path, { worker = folder .. "/no-worker" })
    assert.is_nil(store)
    assert.equal("EDENIED", code)
    assert.truthy(message:find("chmod go-w", 1, true), message)
    assert.truthy(message:find("no-worker", 1, true), message)
  end)

  it("is still no policy when it is a link, a folder or a pipe", function()
    local path = write("real", "return {}", "600")
    assert(os.execute(("ln -s '%s' '%s/link.lua' && mkdir '%s/dir.lua' && mkfifo '%s/pipe.lua'")
      :format(path, folder, folder, folder)))
    for _, name in ipairs { "link", "dir", "pipe" } do
      local store, _, code = open(("%s/%s.lua"):format(folder, name))
      assert.is_nil(store, name)
      assert.equal("EDENIED", code, name)
    end
  end)
end)

describe("a policy file that belongs to another user", function()
  it("runs in a worker", function()
    local path = write("theirs", source_of "sliding_window", "644")
    if not os.execute(("chown 65534 '%s' 2>/dev/null"):format(path)) then
      pending "only root gives a file away"
      return
    end
    local _, ran = play(path)
    assert.equal(1, ran)
  end)
end)
