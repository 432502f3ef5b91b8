-- Policies in a process of their own: the same bytes, and a worker that fails costs a compaction.

local shell = require "spec.support.shell"
local transcript = require "spec.support.transcript"
local workers = require "spec.support.workers"

local children, worker = workers.children, workers.path

local function open(isolation, options)
  options.isolation = isolation
  return assert(workers.open(options))
end

-- The first line that two logs do not share, cut short; nil when they are the same.
local function difference(a, b)
  local other = b:gmatch "[^\n]+"
  for line in a:gmatch "[^\n]+" do
    local there = other() or "(nothing)"
    if line ~= there then
      local at = 1
      while line:byte(at) == there:byte(at) do
        at = at + 1
      end
      local from = math.max(1, at - 60)
      return ("…%s…\nand\n…%s…"):format(line:sub(from, at + 60), there:sub(from, at + 60))
    end
  end
  return other()
end

local function play(isolation, policy, options)
  local store <close> = open(isolation, { policy = policy, window = options.window })
  local session = assert(store:create { id = "s" })
  for _, turn in ipairs(transcript.turns()) do
    assert(session:turn(turn))
  end
  local outcome = assert(session:compact { instructions = "keep names" })
  return transcript.log(session), outcome
end

-- A program in place of the worker.
local function impostor(text)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write("#!/bin/sh\n" .. text .. "\n")
  file:close()
  assert(os.execute("chmod 700 " .. path))
  return path
end

describe("a policy in a process of its own", function()
  for _, name in ipairs { "sliding_window", "edit_tools", "key_messages", "summarize", "tiered" } do
    for _, window in ipairs { 6000, 12000 } do
      it(("writes the same log: %s, %d"):format(name, window), function()
        local here = play("none", name, { window = window })
        local there = play("worker", name, { window = window })
        assert.is_nil(difference(here, there))
      end)
    end
  end

  it("sees notes, options, log and the model's answers as usual", function()
    local path = os.tmpname()
    os.remove(path)
    path = path .. ".lua"
    local file = assert(io.open(path, "w"))
    file:write [[
      return { name = "all", options = { n = { type = "integer", default = 3 } },
        truncate = function(state, ctx)
          state.vars.turns = (state.vars.turns or 0) + 1
          ctx.log("turn", state.vars.turns, ctx.options.n, ctx.session.id, ctx.random(1000))
          local text = ctx.model { messages = { { role = "user", content = "hi" } } }
          ctx.log(text, ctx.count("some words"), #state.messages, state.messages[1].content)
        end }
    ]]
    file:close()
    local logs = {}
    for i, isolation in ipairs { "none", "worker" } do
      local store <close> = open(isolation, { policy = { path, n = 7 },
        model = function() return "hello" end })
      local session = assert(store:create { id = "s" })
      local words = {}
      for n = 1, 3 do
        local outcome = assert(session:turn { { role = "user", content = "q" .. n } })
        words[n] = table.concat(outcome.log, "\n")
      end
      logs[i] = table.concat(words, "\n")
    end
    os.remove(path)
    assert.truthy(logs[1]:find("turn 3 7 s", 1, true))
    assert.truthy(logs[1]:find("hello", 1, true))
    assert.equal(logs[1], logs[2])
  end)

  it("mixes with a host's own functions in one chain", function()
    local logs = {}
    for i, isolation in ipairs { "none", "worker" } do
      local store <close> = open(isolation, { window = 4000, policy = {
        { "edit_tools", min_tokens = 30 },
        { name = "mine", truncate = function(state)
          if #state.messages > 12 then state:keep_last(10, "messages") end
        end },
        { "sliding_window", messages = 8 } } })
      local session = assert(store:create { id = "s" })
      for _, turn in ipairs(transcript.work(12, 60)) do
        assert.is_nil(assert(session:turn(turn)).policy.refused)
      end
      logs[i] = transcript.log(session)
    end
    assert.is_nil(difference(logs[1], logs[2]))
  end)

  it("may wait for a model while another turn runs", function()
    local store <close> = open("worker", { policy = { "summarize", preserve_recent = 2 },
      window = 300 })
    local session = assert(store:create { id = "s" })
    local answers = coroutine.wrap(function()
      return session:turn({ { role = "user", content = ("long "):rep(400) } },
        { model = function() coroutine.yield "asked" return "short" end })
    end)
    local first = answers()
    local second = assert(session:append { role = "assistant", content = "meanwhile" })
    assert.is_string(second)
    if first == "asked" then
      local outcome = answers()
      assert.equal("completed", outcome.status)
    end
  end)
end)

describe("a worker that fails", function()
  local function turns(path)
    local store <close> = open("worker", { policy = "sliding_window", worker = path,
      limits = { policy_ms = 50 } })
    local session = assert(store:create { id = "s" })
    local outcome
    for i = 1, 2 do
      outcome = assert(session:turn { { role = "user", content = "q" .. i } })
    end
    assert.equal(2, #session:messages())
    return outcome
  end

  it("is not there: the turn stands, and the sentence names it", function()
    local outcome = turns "/nonexistent/sessile-worker"
    assert.truthy(outcome.policy.refused:find("/nonexistent/sessile-worker", 1, true))
  end)

  for what, text in pairs {
    ["ends at once"] = "exit 0", ["ends after a while"] = "head -c 20 >/dev/null; exit 1",
    ["answers with noise"] = "head -c 5 >/dev/null; cat /dev/urandom >&0",
    ["answers with a huge size"] = "printf '\\377\\377\\377\\377\\10' >&0; sleep 9",
    ["answers with an empty frame"] = "printf '\\1\\0\\0\\0\\10' >&0; sleep 9",
    ["spins"] = "while :; do :; done",
  } do
    it(what, function()
      local path = impostor(text)
      local outcome = turns(path)
      os.remove(path)
      assert.truthy(outcome.policy.refused:find("the policy's process", 1, true))
    end)
  end

  it("is none of the host's children afterwards", function()
    local path = impostor "while :; do :; done"
    turns(path)
    assert.same({}, children(path))
    os.remove(path)
  end)

  it("and ends between two turns is replaced before the next", function()
    local store <close> = open("worker", { policy = { "sliding_window", messages = 2 } })
    local session = assert(store:create { id = "s" })
    for i = 1, 4 do
      local outcome = assert(session:turn { { role = "user", content = "q" .. i },
        { role = "assistant", content = "a" .. i } })
      assert.is_nil(outcome.policy.refused)
      local running = children(worker)
      assert.equal(1, #running)
      assert(os.execute("kill -9 " .. running[1]))
      for _ = 1, 400 do -- until it is a zombie: its socket is closed by then
        if workers.state(running[1]) == "Z" then break end
        os.execute "sleep 0.02"
      end
    end
    assert.equal(2, #session:context())
  end)

  it("does nothing when a person starts it", function()
    local text = shell.output(worker .. " </dev/null 2>&1; echo $?")
    assert.truthy(text:find("does nothing by itself", 1, true))
    assert.truthy(text:find "2\n$")
  end)
end)
