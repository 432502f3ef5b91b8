-- Compactions undone, in Lua.

local M = require "spec.support.messages"
local lists = require "spec.support.lists"
local stores = require "spec.support.stores"

-- Keeps the newest n messages, and covers the rest with a summary when asked to.
local function window(n, summary)
  return {
    name = "window",
    compact = function(state)
      local last = #state.messages - n
      if last < 1 then
        return
      elseif summary then
        state:insert(1, { role = "user", content = summary }, { covers = { 1, last } })
      else
        state:drop(1, last)
      end
    end,
  }
end

local function keys(s)
  return lists.words(s:context(), "key")
end

local function long(i)
  return ("message %d "):format(i) .. ("word "):rep(40)
end

describe("uncompact", function()
  local store, s

  stores.each_test(function()
    store = stores.open "ram:"
    s = assert(store:create())
    for i = 1, 6 do
      assert(s:append(i % 2 == 1 and M.user(long(i)) or M.assistant(long(i))))
    end
  end)

  it("puts back what the newest compaction took out, and removes what it wrote", function()
    local before = keys(s)
    local done = assert(s:compact { policy = window(2, "in short") })
    assert.equal(done.compaction .. ".1 00000005 00000006", keys(s))
    assert(s:append(M.user "more"))
    local back = assert(s:uncompact())
    assert.equal(before .. " 00000008", keys(s))
    assert.same({ "00000001", "00000002", "00000003", "00000004" }, back.restored)
    assert.same({ done.compaction .. ".1" }, back.removed)
    assert.equal(done.compaction, back.undone)
    assert.is_true(back.tokens.after > back.tokens.before)
    local entry = assert(s:entry(back.compaction))
    assert.equal("compaction", entry.type)
    assert.equal("host", entry.source)
    assert.equal(done.compaction, entry.data.uncompacts)
    assert.same({ "00000001-00000004" }, entry.data.account.restored.entries)
  end)

  it("does the compaction again when it is undone itself", function()
    local done = assert(s:compact { policy = window(2, "in short") })
    local compacted = keys(s)
    local back = assert(s:uncompact())
    local again = assert(s:uncompact(back.compaction))
    assert.equal(compacted, keys(s))
    assert.same({ done.compaction .. ".1" }, again.restored)
    assert.equal("in short", s:context()[1].content)
    assert.equal("yes", s:log()[1].in_force)
  end)

  it("goes back one compaction after the other", function()
    local all = keys(s)
    assert(s:compact { policy = window(4, "first") })
    local first = keys(s)
    assert(s:compact { policy = window(2, "second") })
    assert(s:uncompact())
    assert.equal(first, keys(s))
    assert(s:uncompact())
    assert.equal(all, keys(s))
    local _, message, code = s:uncompact()
    assert.equal("EINVALID", code)
    assert.matches("no compaction on the path to the head is in force", message)
  end)

  it("leaves what a later compaction did as it is", function()
    local first = assert(s:compact { policy = window(4, "first") })
    local second = assert(s:compact { policy = window(2, "second") })
    local now = keys(s)
    local _, message, code = s:uncompact(first.compaction)
    assert.equal("EINVALID", code)
    assert.matches("nothing of compaction " .. first.compaction, message)
    assert.matches(second.compaction .. " changed it since", message)
    assert.equal(now, keys(s))
    assert(s:uncompact(second.compaction))
    assert(s:uncompact(first.compaction))
    assert.equal(6, #s:context())
  end)

  it("puts what was lost where the log has it", function()
    local lost = assert(s:compact { policy = { name = "hole", compact = function(state)
      state:drop(2)
    end } })
    local covered = assert(s:compact { policy = { name = "rest", compact = function(state)
      state:insert(2, { role = "user", content = "3 and 4" }, { covers = { 2, 3 } })
    end } })
    assert(s:uncompact(lost.compaction))
    assert.equal(("00000001 00000002 %s.1 00000005 00000006"):format(covered.compaction),
      keys(s))
  end)

  it("writes nothing in a dry run", function()
    assert(s:compact { policy = window(2) })
    local head, now = s:head(), keys(s)
    local would = assert(s:uncompact { dry_run = true })
    assert.is_nil(would.compaction)
    assert.equal(4, #would.restored)
    assert.equal(head, s:head())
    assert.equal(now, keys(s))
  end)

  it("says when the context does not fit any more", function()
    s = assert(store:create { id = "small", window = 150 })
    for i = 1, 6 do
      assert(s:append(i % 2 == 1 and M.user(long(i)) or M.assistant(long(i))))
    end
    assert(s:compact { policy = window(2) })
    local back = assert(s:uncompact())
    assert.equal(back.tokens.after - 150, back.cannot_fit)
  end)

  it("keeps the notes of policies", function()
    local seen
    local policy = { name = "noting", compact = function(state)
      seen = state.vars.n
      state.vars = { n = (state.vars.n or 0) + 1 }
      if #state.messages > 4 then
        state:drop(1, 2)
      end
    end }
    assert(s:compact { policy = policy })
    assert(s:uncompact())
    assert(s:compact { policy = policy })
    assert.equal(1, seen)
  end)

  it("tears no call from its result", function()
    local call = assert(s:append { role = "assistant", content = "",
      tool_calls = { { id = "c", name = "f", arguments = "{}" } } })
    assert(s:append(M.user "never mind"))
    assert(s:append(M.assistant "fine"))
    local dead = assert(s:compact { policy = { name = "dead", compact = function(state)
      state:drop(7)
    end } })
    local back = assert(s:uncompact(dead.compaction))
    assert(s:append { role = "tool", tool_call_id = "c", content = "late" })
    local _, message, code = s:uncompact(back.compaction)
    assert.equal("EINVALID", code)
    assert.matches("would separate a call from its result", message)
    assert.is_truthy(keys(s):find(call, 1, true))
  end)

  it("is CONFLICT when the head has left what the handle saw", function()
    assert(s:compact { policy = window(4, "first") })
    local other = assert(store:resume(s.id))
    assert(s:clear())
    assert(s:append(M.user "elsewhere"))
    local _, message, code = other:uncompact()
    assert.equal("ECONFLICT", code)
    assert.matches("moved on", message)
  end)

  it("is refused for what is no compaction of the path", function()
    local first = assert(s:compact { policy = window(2) })
    assert(s:clear())
    local _, message, code = s:uncompact(first.compaction)
    assert.equal("ENOTFOUND", code)
    assert.matches("is not on the path to the head", message)
    _, message, code = s:uncompact "00000001"
    assert.equal("ENOTFOUND", code)
    assert.matches("is a message, not a compaction", message)
    _, message, code = s:uncompact "000000ff"
    assert.equal("ENOTFOUND", code)
    assert.matches("there is no entry 000000ff", message)
    assert.has_error(function() s:uncompact(7) end)
    assert.has_error(function() s:uncompact { dryrun = true } end)
  end)
end)
