-- Consents, holds, retention, export and erasure of users, through Lua.
-- Own guard: it asks for consent.

local decode = require("sessile").decode
local expect = require "spec.support.expect"
local sessile = require "sessile"
local stores = require "spec.support.stores"
local temp = require "spec.support.temp"

local NOTES = { name = "notes", remember = function(said, ctx)
  for _, message in ipairs(said) do
    if message.source == "user" then
      ctx.memory.write { value = message.content, from = { message.id } }
    end
  end
end }

local store

local function user(text)
  return { role = "user", content = text }
end

local function said(text)
  local s = assert(store:session { id = "trip", agent = "coder", user = "ann" })
  assert(s:append(user(text)))
  return s
end

-- The fifth value of a call is the rule that refused it.
local function rule(...)
  return select(5, ...)
end

stores.each_test(function()
  store = stores.open("file:" .. temp.dir() .. "/store", { key = false,
    memory = { enabled = true, remember = false, policy = NOTES } })
end)

describe("consent, where the guard asks for it", function()
  local view, s

  before_each(function()
    assert(store:guard { consent = true, roles = {
      helper = { "read_memory", "write_memory", all = true },
    } })
    view = assert(store:as { user = "ann", roles = "editor" })
    s = assert(view:session { id = "trip", agent = "coder" })
    for i = 1, 4 do
      assert(s:append(user("likes aisle seats " .. i)))
    end
  end)
  after_each(function() view:close() end)

  local function memory()
    return assert(view:memory { agent = "coder", user = "ann" })
  end

  -- Each way in which something is written, or found.
  local function ways()
    local tools = sessile.tools.memory(s)
    return {
      write = function() return memory():write("seat", "aisle") end,
      remember = function() return s:remember() end,
      tool = function() return tools.memory_write.run({ key = "seat", value = "aisle" }, {}) end,
    }, {
      search = function() return memory():search "aisle seats" end,
      recall = function()
        local outcome = assert(s:recall())
        return (outcome.recalled or 0) > 0 and { outcome } or {}
      end,
      tool = function()
        local ok, text = pcall(tools.memory_search.run, { query = "aisle seats" }, {})
        return ok and text:find("aisle", 1, true) and { text } or {}
      end,
    }
  end

  it("lets nothing be written or found before it is given, nor after it is withdrawn", function()
    local entries
    local function nothing_happens()
      local writing, finding = ways()
      for name, write in pairs(writing) do
        local ok, done, message, code = pcall(write)
        assert.is_true(not ok or not done or name == "tool", name)
        if name == "write" then
          expect.refused("EDENIED", done, message, code)
        end
      end
      s:compact { policy = nil }
      entries = memory():stats().entries
      for name, find in pairs(finding) do
        assert.same({}, (find()), name)
      end
    end
    memory():close()
    nothing_happens()
    assert.equal(0, entries)
    assert.equal(0, view:consent { agent = "coder", user = "ann", text = "yes" })
    assert(memory():write("seat", "aisle seats"))
    assert.equal(1, #memory():search "aisle seats")
    assert.equal(0, view:consent { agent = "coder", user = "ann", given = false, keep = true })
    nothing_happens()
    assert.equal(1, entries) -- kept, and shown to who asks for it by name
    assert.equal("aisle seats", memory():read "seat".value)
    assert.equal(1, view:consent { agent = "coder", user = "ann", given = false })
    assert.is_nil((memory():read "seat"))
  end)

  it("lets no flush of a policy save anything for a user who does not consent", function()
    local outcome = assert(store:resume { id = "trip", agent = "coder", user = "ann" }
      :compact { policy = "spec/support/flushes.lua" })
    assert.is_nil(outcome.memory and outcome.memory[1] or nil)
    assert.equal(0, memory():stats().entries)
  end)

  it("is given by the user, or by who may manage privacy", function()
    local bot = assert(store:as { user = "bot", roles = "helper" })
    finally(function() bot:close() end)
    expect.refused("EDENIED", bot:consent { agent = "coder", user = "ann", text = "yes" })
    expect.refused("EDENIED", bot:memory { agent = "coder", user = "ann", consent = "she said so" })
    assert.equal(0, store:consent { agent = "coder", user = "ann", text = "yes" }) -- the host
    local m = assert(bot:memory { agent = "coder", user = "ann" })
    expect.refused("EDENIED", m:consent(false))
    m:close()
  end)
end)

describe("a consent", function()
  it("needs the words that the user agreed to; a withdrawal needs none", function()
    expect.refused("EINVALID", store:consent { agent = "coder", user = "ann" })
    local m = assert(store:memory { agent = "coder", user = "ann", consent = "yes" })
    expect.refused("EINVALID", m:consent(true))
    assert(m:consent(false))
    m:close()
    assert.equal(0, store:consent { agent = "coder", user = "ann", given = false })
  end)
end)

describe("a hold", function()
  it("keeps what it names until it is released", function()
    said("hello"):close()
    local id = assert(store:hold { user = "ann", reason = "case 7", by = "kim", ["until"] = "30d" })
    expect.refused("EDENIED", store:delete { id = "trip", agent = "coder", user = "ann" })
    assert.equal("hold:" .. id, rule(store:erase_user "ann"))
    local row = assert(store:holds())[1]
    assert.same({ id, "ann", "case 7", "kim" }, { row.id, row.user, row.reason, row.by })
    assert.is_true(row["until"] > row.time)
    assert(store:release(id, { by = "kim" }))
    assert.same({}, assert(store:holds()))
    assert(store:delete { id = "trip", agent = "coder", user = "ann" })
    assert.is_false((pcall(store.hold, store, { user = "ann", reason = "x", ["until"] = "soon" })))
  end)
end)

describe("a retention", function()
  it("says what a purge removes, for all, for agents and for users", function()
    said("hello"):close()
    local function due(given)
      given.dry_run = true
      return assert(store:purge_retention(given)).sessions
    end
    require("sessile.core").sleep(20)
    assert.equal(0, due {})
    assert.equal(0, due { sessions = "90d" })
    assert.equal(1, due { sessions = 0.001 })
    assert.equal(0, due { sessions = 0.001, agents = { coder = { sessions = false } } })
    assert.equal(1, due { agents = { coder = { sessions = "90d" } },
      users = { ann = { sessions = 0.001 } } })
    assert.equal(1, assert(store:purge_retention { sessions = 0.001 }).sessions)
    assert.equal(0, #store:list())
  end)
end)

describe("the export and the erasure of a user", function()
  it("hand out all that is kept, and leave nothing of it", function()
    local m = assert(store:memory { agent = "coder", user = "ann", consent = "yes" })
    assert(m:write("seat", "aisle"))
    m:close()
    said("hello"):close()
    local files = {}
    local done = assert(store:export_user("ann", function(name, text)
      files[name] = text
      return true
    end))
    assert.same({ 1, 1, 5, 0 }, { done.sessions, done.memories, done.files, done.failed })
    assert.matches("hello", files["sessions/0001-trip.md"])
    assert.matches("aisle", files["memory/0001-coder.md"])
    local manifest = assert(decode(files["manifest.json"]))
    assert.equal(5, #manifest.files)
    for _, one in ipairs(manifest.files) do
      assert.equal(require("sessile.core").sha256(files[one.name]), one.sha256)
    end
    local _, message, code = store:export_user("ann", function() return nil, "disk", "EFULL" end)
    assert.same({ "disk", "EFULL" }, { message, code })
    local receipt = assert(store:erase_user "ann")
    assert.same({ 1, 1, false }, { receipt.sessions, receipt.memories, receipt.shredded })
    assert.equal(1, assert(decode(receipt.json)).sessions)
    expect.refused("ENOTFOUND", store:export_user("ann", function() return true end))
  end)

  it("are proven by the audit, also when another store keeps it", function()
    local keeper = stores.open("file:" .. temp.dir() .. "/keeper", { key = false })
    local guarded = stores.open("file:" .. temp.dir() .. "/guarded", { key = false })
    assert(guarded:guard { audit = { store = keeper } })
    guarded:session { id = "trip", agent = "coder", user = "ann" }:close()
    local receipt = assert(guarded:erase_user "ann")
    local event, key = sessile.audit_check(receipt.json)
    assert.equal(keeper:audit_root(), key)
    assert.same({ "erase", 1 }, { event.operation, event.details.sessions })
    assert.is_nil(receipt.before)
    assert.is_true(assert(guarded:erase_user "ann").before > 0)
    expect.refused("ENOTFOUND", guarded:erase_user "anna")
  end)

  it("are handed out with their grants and what the audit has of them", function()
    local guarded = stores.open("file:" .. temp.dir() .. "/guarded", { key = false,
      guard = "standard" })
    local ann <close> = assert(guarded:as { user = "ann", roles = "editor" })
    assert(ann:session "trip":append(user "to the sea"))
    assert(guarded:grant { user = "ann", role = "viewer", agents = "coder" })
    assert(guarded:grant { user = "bob", role = "viewer" })
    local files = {}
    local function keep(name, text)
      files[name] = text
      return true
    end
    assert(guarded:export_user("ann", keep))
    local grants = decode(files["grants.json"])
    assert.same({ 1, "ann" }, { #grants, grants[1].user })
    expect.has(files["events.jsonl"], '"operation":"append"')
    expect.has_not(files["events.jsonl"], "to the sea")
    assert.same({}, decode(files["manifest.json"]).left_out)

    local outcomes = {}
    for event in assert(guarded:audit { operation = "host:user_export" }) do
      outcomes[#outcomes + 1] = event.outcome
    end
    assert.same({ "success" }, outcomes)

    for _ = 1, 9 do
      assert(ann:export_user("ann", keep))
    end
    files = {}
    assert(ann:export_user("ann", keep))
    assert.is_nil(files["events.jsonl"])
    expect.has(decode(files["manifest.json"]).left_out[1], "events")
    local _, _, code, _, over = ann:export_user("ann", keep)
    assert.same({ "ELIMIT", "exports" }, { code, over })
    expect.refused("EDENIED", ann:export_user("bob", keep))
  end)
end)

describe("a retention of the audit", function()
  local audited = require "spec.support.audited"

  temp.each_test()

  it("removes whole logs, and none while a hold is in force", function()
    local dir, lines = temp.dir(), {}
    for _ = 1, 30 do
      lines[#lines + 1] = "append user=ann agent=coder session=bug-42\nseal\n"
    end
    local root = audited.write(dir, audited.KEY, table.concat(lines), 2500)
    local kept <close> = assert(sessile.open(dir, { key = audited.key() }))
    require("sessile.core").sleep(20)
    local hold = assert(kept:hold { user = "ann", reason = "a case" })
    local held = assert(kept:purge_retention { audit = "1ms" })
    assert.equal(0, held.audit_logs)
    assert.truthy(held.audit_held > 1)
    assert(kept:release(hold))
    local due = assert(kept:purge_retention { audit = "1ms", dry_run = true })
    assert.equal(held.audit_held, due.audit_logs)
    assert.equal(0, assert(kept:purge_retention { audit = "90d" }).audit_logs)
    assert.equal(0, assert(kept:purge_retention { audit = false }).audit_logs)
    assert.equal(due.audit_logs, assert(kept:purge_retention { audit = "1ms" }).audit_logs)
    local report = assert(kept:audit_verify { root = root })
    assert.is_true(report.holds)
    assert.equal(1, report.cut_lanes)
    local said_so = 0
    for _ in assert(kept:audit { operation = "audit_retain" }) do said_so = said_so + 1 end
    assert.truthy(said_so > 0)
  end)
end)
