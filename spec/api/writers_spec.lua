-- Several handles on one session: who gets in the other's way, and what is said then.

local stores = require "spec.support.stores"
local temp = require "spec.support.temp"
local messages = require "spec.support.messages"
local cli = require "spec.support.cli"
local sessile = require "sessile"

local user, assistant, contents = messages.user, messages.assistant, messages.contents

stores.each_kind("two handles in", function(open)
  local store, a, b

  before_each(function()
    store = open()
    a = assert(store:session "s")
    b = assert(store:session "s")
    assert(a:turn { user "one", assistant "two" })
  end)

  it("refuse a turn that was thought before the other's", function()
    local value, message, code = b:turn { user "late" }
    assert.is_nil(value)
    assert.equal("ECONFLICT", code)
    assert.matches("read it again", message)
    assert.same({ "one", "two" }, contents(assert(a:messages())))
    value, message, code = b:turn({ user "late" }, { on_conflict = "fail" })
    assert.is_string(message)
    assert.is_nil(value)
    assert.equal("ECONFLICT", code)
  end)

  it("append it when what came between is accepted", function()
    assert(b:turn({ user "late" }, { on_conflict = "append" }))
    assert.same({ "one", "two", "late" }, contents(assert(a:messages())))
    assert(a:turn({ user "later" }, { on_conflict = "append", base = "00000001" }))
    assert.same({ "one", "two", "late", "later" }, contents(assert(b:messages())))
  end)

  it("write beside each other, and the head stays", function()
    local head = a:head()
    local late = assert(b:turn({ user "late" },
      { base = "00000001", on_conflict = "branch" }))
    assert.equal(head, a:head())
    assert.same({ "one", "two" }, contents(assert(a:messages())))
    assert.same({ "one", "late" }, contents(assert(b:messages { at = late.head })))
    -- who thinks on there goes on there
    local later = assert(b:turn({ user "later" }, { on_conflict = "branch" }))
    assert.same({ "one", "late", "later" }, contents(assert(a:messages { at = later.head })))
    assert.same({ "one", "late", "later" }, contents(later.context))
    local value, _, code = b:turn { user "on the head" }
    assert.is_nil(value)
    assert.equal("ECONFLICT", code)
  end)

  it("take no other word for it", function()
    assert.has_error(function() b:turn({ user "x" }, { on_conflict = "merge" }) end,
      "session:turn: option 'on_conflict': \"fail\", \"append\" or \"branch\" "
      .. "expected, got \"merge\"")
    assert.has_error(function() b:turn({ user "x" }, { on_conflict = 1 }) end)
  end)

  it("are told how long to wait, each for itself and each call", function()
    local s = assert(store:session { id = "s", timeout_ms = 0 })
    assert.is_true(s:set_timeout(100))
    assert.is_true(s:set_timeout(-1))
    assert.is_true(s:set_timeout "5m")
    assert(s:turn({ user "x" }, { timeout_ms = 10 }))
    assert(s:plan { policy = { truncate = function() end }, timeout_ms = 10 })
    assert.has_error(function() s:set_timeout "soon" end)
    assert.has_error(function() s:set_timeout(0.5) end)
  end)
end)

describe("a torn end", function()
  temp.each_test()

  it("that an open handle sets aside is told", function()
    temp.files_only "a torn end"
    local dir = temp.dir() .. "/store"
    local store <close> = assert(sessile.open(dir, { key = false }))
    local s = assert(store:session "s")
    assert(s:append(user "one"))
    assert.equal(0, s.torn)
    local log = assert(io.open(dir .. "/agents/main/s.jsonl", "ab"))
    log:write '{"id":"000'
    log:close()
    assert(s:append(user "two"))
    assert.equal(10, s.torn)
    assert.same({ "one", "two" }, contents(assert(s:messages())))
    s:close()
    assert.is_number(s.torn)
  end)
end)

describe("durability none", function()
  temp.each_test()

  -- Writes six messages, changes a letter of the second: what does the log say of itself?
  local function code_after_damage(synced)
    local dir = temp.dir() .. "/store"
    local store <close> = assert(sessile.open(dir, { key = false, durability = "none" }))
    local s = assert(store:session "s")
    for n = 1, 5 do
      assert(s:append(user("text " .. n)))
    end
    if synced then
      assert.is_true(s:sync())
    end
    assert(s:append(user "text 6"))
    assert(s:close())
    local path = dir .. "/agents/main/s.jsonl"
    temp.write(path, (temp.read(path):gsub("text 2", "tExt 2")))
    s = assert(store:session "s")
    return s.damage and s.damage.code, s.torn
  end

  it("tells damage to a whole line, whether it was synced or not", function()
    temp.files_only "a letter is changed"
    assert.equal("EDAMAGED", (code_after_damage(true)))
    assert.equal("EDAMAGED", (code_after_damage(false)))
  end)
end)

describe("--timeout", function()
  it("is a time", function()
    local times = require "sessile.times"
    assert.equal(5000, times.ms "5")
    assert.equal(500, times.ms "0.5")
    assert.equal(500, times.ms "500ms")
    assert.equal(120000, times.ms "2m")
    assert.equal(0, times.ms "0")
    for _, wrong in ipairs { "", "-1", "soon", "5x", "1e9", "m" } do
      assert.is_nil(times.ms(wrong), wrong)
    end
  end)

  it("is taken by commands that write, and refused when it is none", function()
    cli.begin()
    cli.done "new --id s --timeout 1m --plain"
    cli.done "append s hello --plain --timeout=0 --network"
    local _, err, code = cli.sessile "append s x --plain --timeout soon"
    cli.finish()
    assert.equal(2, code)
    assert.matches("'soon' is not a time", err)
  end)
end)
