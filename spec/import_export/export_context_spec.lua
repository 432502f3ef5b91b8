-- A session that is written in the format of another agent, and read again, has the same context:
-- there, and here.

local claude_reader = require "spec.support.claude_reader"
local codex_reader = require "spec.support.codex_reader"
local pi_reader = require "spec.support.pi_reader"
local recordings = require "spec.support.recordings"
local stores = require "spec.support.stores"
local temp = require "spec.support.temp"

local store

stores.each_test(function() store = stores.ram() end)

local text_of

function text_of(message)
  local out = {}
  for _, block in ipairs(type(message.content) == "table" and message.content or {}) do
    out[#out + 1] = block.text or block.type == "tool_use" and "call " .. block.id
      or block.type == "tool_result" and text_of(block) or nil
  end
  if type(message.content) == "string" and message.content ~= "" then
    out[1] = message.content
  end
  for _, call in ipairs(message.tool_calls or {}) do
    out[#out + 1] = "call " .. call.id
  end
  return table.concat(out, " ")
end

-- What each message of the context says; an answer that stands in for a missing one has no key.
local function said(session)
  local out = {}
  for _, message in ipairs(assert(session:context())) do
    out[#out + 1] = message.key and text_of(message) or nil
  end
  return out
end

local number = 0

local function there_and_back(session, to)
  number = number + 1
  local text = recordings.exported(session, to)
  local path = temp.dir() .. "/out"
  temp.write(path, text)
  local again = assert(recordings.into(store, path, { from = to, id = "again" .. number }))
  return said(again), text
end

-- A question, calls with their results, and an answer.
local function turn(session, n)
  assert(session:turn({
    { role = "user", content = ("question %d "):format(n) .. ("word "):rep(30) },
    { role = "assistant", content = "", tool_calls = {
      { id = "c" .. n, name = "look", arguments = "{}" } } },
    { role = "tool", tool_call_id = "c" .. n, content = ("seen %d "):format(n)
      .. ("line "):rep(60) },
    { role = "assistant", content = "answer " .. n },
  }, { policy = false }))
end

local function made(turns)
  local session = assert(store:create {})
  for n = 1, turns do
    turn(session, n)
  end
  return session
end

-- Compactions of several kinds. `keep` messages stay at the end.
local kinds = {
  summary = function(keep)
    return function(state)
      local last = #state.messages - keep
      if last > 1 then
        state:insert(1, { role = "user", content = "a summary of " .. last },
          { covers = { 1, last } })
      end
    end
  end,
  cut = function(keep)
    return function(state)
      if #state.messages > keep + 1 then
        state:drop(1, #state.messages - keep)
      end
    end
  end,
  edit = function()
    return function(state)
      for i = 1, #state.messages - 4 do
        local one = state.messages[i]
        if one.role == "tool" and #one.content > 100 then
          state:replace(i, { role = "tool", tool_call_id = one.tool_call_id,
            content = "shortened" })
        end
      end
    end
  end,
  hole = function(keep)
    return function(state)
      if #state.messages > keep + 8 then
        state:drop(5, 8)
      end
    end
  end,
}

local function compact(session, kind, keep)
  return session:compact { policy = { name = kind, compact = kinds[kind](keep or 4) } }
end

local stories = {
  ["no compaction"] = function(s) turn(s, 7) end,
  ["a summary"] = function(s) assert(compact(s, "summary")) end,
  ["a summary, and more"] = function(s)
    assert(compact(s, "summary"))
    turn(s, 7)
  end,
  ["a cut without a summary"] = function(s) assert(compact(s, "cut")) end,
  ["shortened tool output"] = function(s) assert(compact(s, "edit")) end,
  ["a hole"] = function(s)
    assert(compact(s, "hole"))
    turn(s, 7)
  end,
  ["several compactions"] = function(s)
    for n, kind in ipairs { "edit", "summary", "cut", "summary", "edit" } do
      turn(s, 10 + 2 * n)
      assert(compact(s, kind, 8))
      turn(s, 11 + 2 * n)
    end
  end,
  ["a compaction undone"] = function(s)
    assert(compact(s, "summary"))
    assert(s:uncompact())
  end,
  ["a compaction undone after more was said"] = function(s)
    assert(compact(s, "summary"))
    turn(s, 7)
    assert(s:uncompact())
    turn(s, 8)
  end,
  ["a compaction undone and done again"] = function(s)
    assert(compact(s, "summary"))
    local back = assert(s:uncompact())
    assert(s:uncompact(back.compaction))
  end,
  ["one of two compactions undone"] = function(s)
    assert(compact(s, "edit"))
    turn(s, 7)
    assert(compact(s, "cut"))
    assert(s:uncompact())
  end,
  ["a branch that was gone back to"] = function(s)
    assert(s:branch(s:messages()[9].id))
  end,
  ["a branch from before a compaction"] = function(s)
    assert(compact(s, "summary"))
    turn(s, 7)
    assert(s:branch(s:messages()[12].id))
    turn(s, 8)
  end,
  ["a branch with a summary"] = function(s)
    assert(s:branch(s:messages()[8].id, { summary = "it led nowhere" }))
    turn(s, 7)
  end,
  ["a cleared context"] = function(s) assert(s:clear()) end,
  ["a cleared context, and more"] = function(s)
    assert(compact(s, "cut"))
    assert(s:clear())
    turn(s, 7)
  end,
  ["a message with results and a text"] = function(s)
    assert(s:append { role = "assistant", content = {
      { type = "tool_use", id = "t1", name = "look", input = { a = 1 } },
      { type = "tool_use", id = "t2", name = "look", input = { a = 2 } } } })
    assert(s:append { role = "user", content = {
      { type = "tool_result", tool_use_id = "t1", content = "one" },
      { type = "tool_result", tool_use_id = "t2", content = "two" },
      { type = "text", text = "and now?" } } })
    assert(compact(s, "hole", 4))
  end,
  ["labels after the head moved"] = function(s)
    local list = s:messages()
    assert(s:branch(list[8].id))
    assert(s:label(list[15].id, "there"))
  end,
}

-- The words of a context, one text: results of one message may be several messages elsewhere. What
-- stands in for a missing result here is a message there.
local function words(list)
  return (table.concat(list, "\n"):gsub("not answered", ""):gsub("[ \n]+", " "):gsub("^ ", "")
    :gsub(" $", ""))
end

-- What may happen to a session, at random.
local function random_story(s)
  local names = { "summary", "cut", "edit", "hole" }
  local n = 3
  for _ = 1, math.random(12) do
    local what = math.random(8)
    n = n + 1
    if what <= 3 then
      turn(s, n)
    elseif what <= 5 then
      compact(s, names[math.random(#names)], math.random(4, 9))
    elseif what == 6 then
      s:uncompact()
    else
      local list = s:messages()
      s:branch(list[math.random(#list)].id)
    end
  end
end

for to, reader in pairs { pi = pi_reader, claude = claude_reader, codex = codex_reader } do
  describe("to " .. to .. ":", function()
    for name, tell in pairs(stories) do
      it(name, function()
        local s = made(6)
        tell(s)
        local here = words(said(s))
        local text = recordings.exported(s, to)
        assert.equal(here, words(reader.context(text)), "as it is read there")
        if here ~= "" then -- nothing is nothing to import
          assert.equal(here, words((there_and_back(s, to))), "imported again")
        end
      end)
    end

    it("whatever was done, in any order", function()
      local seed = math.tointeger(tonumber(os.getenv "SEED" or "")) or os.time()
      math.randomseed(seed)
      for round = 1, os.getenv "SESSILE_SOAK" == "1" and 300 or 12 do
        local s = made(3)
        random_story(s)
        local where = ("SEED=%d round %d"):format(seed, round)
        local here = words(said(s))
        local back, text = there_and_back(s, to)
        assert.equal(here, words(reader.context(text)), where)
        assert.equal(here, words(back), where)
      end
    end)
  end)
end

describe("to pi:", function()
  it("taking a compaction back copies nothing", function()
    local s = made(6)
    assert(compact(s, "cut"))
    assert(s:uncompact())
    local text, done = recordings.exported(s, "pi")
    assert.same({ "4 messages are there twice: pi has no compaction like those that kept them" },
      done.notes)
    assert.equal(24, #pi_reader.context(text))
  end)

  it("what came from pi and was compacted there, undone here", function()
    local path = "spec/fixtures/import/pi-tree.jsonl"
    local s = assert(recordings.into(store, path))
    assert.equal(words(said(s)), words((there_and_back(s, "pi"))))
    while s:uncompact() do
      local back, text = there_and_back(s, "pi")
      assert.equal(words(said(s)), words(back))
      assert.equal(words(said(s)), words(pi_reader.context(text)))
    end
  end)
end)
