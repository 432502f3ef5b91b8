-- The audit of a store in Lua: its events, whether it is what was written, proofs.
-- Own guard: it sets them.

local audited = require "spec.support.audited"
local expect = require "spec.support.expect"
local sessile = require "sessile"
local temp = require "spec.support.temp"

local EVENTS = [[
open method=os
create user=ann agent=coder session=bug-42
append user=ann agent=coder session=bug-42 entry=00000001
append user=bob agent=coder session=bug-42 outcome=failure code=DENIED
seal
turn user=ann agent=coder session=bug-42
]]

local dir, root, store

-- The operations of what a reader returns.
local function operations(reader)
  local list = {}
  for event in reader do
    list[#list + 1] = event.operation
  end
  return table.concat(list, " ")
end

describe("an audit", function()
  temp.each_test(function(path)
    dir = path
    root = audited.write(dir, audited.KEY, EVENTS)
    store = assert(sessile.open(dir, { key = audited.key() }))
  end)
  after_each(function() store:close() end)

  local function read(filter)
    return operations(assert(store:audit(filter)))
  end

  it("is read oldest first, with the names of users", function()
    local first, second
    for event in assert(store:audit()) do
      if not first then first = event elseif not second then second = event end
    end
    assert.equal("open create append append turn", read {})
    assert.equal("open", first.operation)
    assert.is_nil(first.user)
    assert.equal("ann", second.name)
    assert.matches("^u_%w+$", second.user)
    assert.equal("00-000/00000003", second.id)
    assert.truthy(math.abs(second.time - os.time() * 1000) < 3600000)
    expect.has_not(second.json, "ann")
  end)

  it("is filtered", function()
    assert.equal("create append turn", read { user = "ann" })
    assert.equal("append", read { outcome = "failure" })
    assert.equal("append append", read { operation = "append" })
    assert.equal("create append", read { session = "bug-42", limit = 2 })
    assert.equal("", read { since = os.time() * 1000 + 60000 })
    assert.equal("open create append append turn", read { since = "1h" })
    assert.equal("", read { user = "nobody" })
    for event in assert(store:audit { names = false, user = "ann" }) do
      assert.is_nil(event.name)
      assert.equal("create append turn", read { user = event.user })
    end
  end)

  it("has a cursor, from which another reader goes on", function()
    local reader <close> = assert(store:audit())
    assert.equal("open", reader().operation)
    assert.equal("create", reader().operation)
    local cursor = reader:cursor()
    assert.equal("append append turn", read { cursor = cursor })
    assert.equal("append append turn", operations(reader))
    assert.equal("", read { cursor = reader:cursor() })
    expect.refused("EINVALID", store:audit { cursor = "somewhere" })
  end)

  it("is followed", function()
    local reader <close> = assert(store:audit { follow = true, timeout_ms = 200 })
    assert.equal("open create append append turn", operations(reader))
    audited.write(dir, audited.KEY, "delete user=ann session=bug-42\n")
    assert.is_true(reader:wait(5000))
    assert.equal("delete", operations(reader))
  end)

  it("does not tell the name of who was forgotten", function()
    assert(store:forget "ann")
    for event in assert(store:audit()) do
      assert.not_equal("ann", event.name)
    end
    assert.equal("", read { user = "ann" })
    assert.is_true(store:audit_verify { root = root }.holds)
  end)

  it("verifies with the key that was kept, and reports what is not sealed", function()
    local steps = 0
    local report = assert(store:audit_verify { root = root,
      progress = function(at) steps = steps + 1 assert.truthy(at.bytes <= at.bytes_of) end })
    assert.is_true(report.holds)
    assert.equal(4, report.events)
    assert.equal(1, report.seals)
    assert.equal(1, report.unsealed)
    assert.is_false(report.own_root)
    assert.truthy(steps > 0)
    assert.equal(root, store:audit_root())
    assert.is_true(store:audit_verify().own_root)
    assert(store:audit_seal())
    assert.equal(0, store:audit_verify().unsealed)
    assert.is_false(store:audit_verify { root = ("0"):rep(64) }.holds)
    expect.refused("EINVALID", store:audit_verify { root = "0" })
  end)

  it("finds with an anchor that its end was cut off in a copy", function()
    temp.files_only()
    local copy = temp.dir()
    assert(os.execute(("cp -a %s/. %s"):format(dir, copy)))
    audited.write(dir, audited.KEY, "delete user=ann\nseal\n")
    local heads = assert(store:audit_head { root = root })
    assert.equal(1, #heads)
    assert.equal(1, heads[1].epoch)
    assert.is_true(store:audit_verify { root = root, anchors = heads }.holds)
    local old <close> = assert(sessile.open(copy, { key = audited.key() }))
    assert.is_true(old:audit_verify { root = root, copy = true }.holds)
    local report = old:audit_verify { root = root, copy = true, anchors = heads }
    assert.is_false(report.holds)
    expect.has(report.why, "anchors")
  end)

  it("names the first event that was changed", function()
    temp.files_only()
    local plain = temp.dir()
    local key = audited.write(plain, "plain", EVENTS)
    local path = temp.files(plain .. "/agents/guard.audit")[1]
    local text = temp.read(path)
    store:close()
    store = assert(sessile.open(plain, { key = false }))
    assert.is_true(store:audit_verify { root = key }.holds)
    temp.write(path, (text:gsub('"DENIED"', '"DENIES"', 1)))
    local report = assert(store:audit_verify { root = key })
    assert.is_false(report.holds)
    assert.equal("00-000/00000004", report.where)
    local told = {}
    assert.equal("open create append", read { on_damage = function(message, code)
      told[#told + 1] = code .. message
    end })
    assert.equal(1, #told)
    local ok, message = pcall(read, {})
    assert.is_false(ok)
    expect.has(message, "EDAMAGED")
  end)

  it("proves an event to somebody without the store", function()
    local proof = assert(store:audit_prove "00-000/00000003")
    local event, key = sessile.audit_check(proof)
    assert.equal("create", event.operation)
    assert.equal(root, key)
    expect.has_not(proof, "append")
    expect.refused("EDAMAGED", sessile.audit_check((proof:gsub("create", "delete"))))
    expect.refused("EDAMAGED", sessile.audit_check "{}")
    expect.refused("ESUSPENDED", store:audit_prove "00-000/00000008")
    expect.refused("ENOTFOUND", store:audit_prove "00-000/00000fff")
    expect.refused("EINVALID", store:audit_prove "something")
  end)

  it("is for who may read it", function()
    assert(store:guard())
    local ann <close> = assert(store:as { user = "ann", roles = "editor" })
    local auditor <close> = assert(store:as { user = "eve", roles = "auditor" })
    for _, call in ipairs {
      function(s) return s:audit() end, function(s) return s:audit_verify { root = root } end,
      function(s) return s:audit_root() end, function(s) return s:audit_head { root = root } end,
      function(s) return s:audit_seal() end,
      function(s) return s:audit_prove "00-000/00000003" end,
    } do
      expect.has(expect.refused("EDENIED", call(ann)), "read_audit")
      assert(call(auditor))
    end
  end)
end)

describe("a store with a guard that keeps an audit", function()
  temp.each_test()

  it("has what was done through its views, and what was refused", function()
    local guarded <close> = assert(sessile.open(temp.dir(), { key = audited.key() }))
    assert(guarded:guard { audit = true })
    do
      local ann <close> = assert(guarded:as { user = "ann", roles = "editor" })
      local s <close> = assert(ann:session "bug-42")
      assert(s:append { role = "user", content = "canary" })
      expect.refused("EDENIED", ann:resume { id = "x", user = "bob" })
    end
    local seen = {}
    for event in assert(guarded:audit { user = "ann" }) do
      seen[event.operation .. " " .. event.outcome] = event
      expect.has_not(event.json, "canary")
    end
    assert.equal("bug-42", seen["append success"].session)
    assert.equal("EDENIED", "E" .. seen["resume failure"].code)
    assert.truthy(seen["create success"])
    assert(guarded:audit_seal())
    assert.is_true(guarded:audit_verify().holds)
  end)
end)

describe("a store without an audit", function()
  it("says so", function()
    local empty <close> = assert(sessile.open("ram:", { key = false }))
    expect.refused("ENOTFOUND", empty:audit())
    expect.refused("ENOTFOUND", empty:audit_verify())
    expect.refused("ENOTFOUND", empty:audit_root())
    expect.refused("ENOTFOUND", empty:audit_seal())
  end)
end)
