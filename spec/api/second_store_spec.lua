-- A second store is no way around a guard: what is copied out of a guarded store, and what is
-- written into one: by migrate, backup, restore, put, an audit of another, and the command line.
-- Own guard: it sets them.
-- Files only: stores are copied.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local sessile = require "sessile"
local temp = require "spec.support.temp"
local user = require("spec.support.messages").user

local KEY = "hex:" .. ("5a"):rep(32)

describe("a second store", function()
  local folder, opened

  temp.each_test(function(dir) folder, opened = dir, {} end)
  after_each(function()
    for i = #opened, 1, -1 do
      opened[i]:close()
    end
  end)

  local function keep(store)
    opened[#opened + 1] = store
    return store
  end

  -- guard: "standard", or none.
  local function open(name, guard, key)
    return keep(assert(sessile.open(folder .. "/" .. name, { guard = guard,
      key = sessile.key.secret(key or KEY) })))
  end

  local function place(name, key)
    return { url = folder .. "/" .. name, key = sessile.key.secret(key or KEY) }
  end

  local function filled(name, guard, key)
    local store = open(name, guard, key)
    local s = assert(store:create { id = "s-" .. name, user = "ann" })
    assert(s:append(user "hello"))
    s:close()
    return store
  end

  local function denied(part, value, message, code)
    expect.has(expect.refused("EDENIED", value, message, code), part)
  end

  local function ids(store)
    local list = {}
    for i, row in ipairs(assert(store:list())) do
      list[i] = row.id
    end
    table.sort(list)
    return list
  end

  it("is no copy of one that is open, under whatever name", function()
    local store = filled("a")
    local again = open "a"
    for _, pair in ipairs { { store, place "a" }, { place "a", store }, { store, place "a/." },
      { store, again } } do
      local _, message, code = sessile.migrate(pair[1], pair[2])
      assert.equal("EINVALID", code, message)
      expect.has(message, "the same store")
    end
  end)

  it("gets nothing of a guarded one from somebody without move_store", function()
    local store = filled("a", "standard")
    for _, role in ipairs { "viewer", "editor", "auditor" } do
      local view = keep(assert(store:as { user = "ann", roles = role }))
      denied("move_store", sessile.migrate(view, place "b"))
      denied("move_store", view:backup(folder .. "/file"))
    end
    local one = keep(assert(store:as { user = "ann", roles = "admin", session = "s-a" }))
    denied("whole store", sessile.migrate(one, place "b"))
    assert.is_false(cli.exists(folder .. "/b"))
    assert.is_false(cli.exists(folder .. "/file"))
    local admin = keep(assert(store:as { user = "ann", roles = "admin" }))
    assert(sessile.migrate(admin, place "b"))
    assert(admin:backup(folder .. "/file"))
  end)

  it("that stays guarded gets nothing from a handle without its guard", function()
    filled("a"):close()
    filled("b", "standard"):close()
    opened = {}
    -- its address, also with other keys on either side; and a handle that set no guard
    denied("stays guarded", sessile.migrate(place "a", place "b", { into = true }))
    filled("c", nil, "hex:" .. ("c3"):rep(32)):close()
    opened = {}
    denied("stays guarded", sessile.migrate(place("c", "hex:" .. ("c3"):rep(32)), place "b",
      { into = true }))
    local waiting = open "b"
    denied("guarded", sessile.migrate(place "a", waiting, { into = true }))
    denied("guarded", sessile.migrate(waiting, place "d"))
    local source = open "a"
    local s = assert(source:resume { id = "s-a", user = "ann" })
    denied("guarded", waiting:put(s))
    waiting:close()
    opened[1] = nil
    local with = keep(assert(sessile.open(folder .. "/b", { guard = "standard",
      key = sessile.key.secret(KEY) })))
    assert.same({ "s-b" }, ids(with))
    -- with its guard it takes them, from whoever may
    local viewer = keep(assert(with:as { user = "ann", roles = "editor" }))
    denied("move_store", sessile.migrate(place "a", viewer, { into = true }))
    assert(sessile.migrate(place "a", with, { into = true }))
    assert.same({ "s-a", "s-b" }, ids(with))
  end)

  it("that is a copy goes on being one", function()
    local store = filled("a", "standard")
    local b = { url = folder .. "/b" } -- with the keys of the first
    assert(sessile.migrate(store, b))
    assert(store:backup(folder .. "/file"))
    local s = assert(store:create { id = "later", user = "ann" })
    s:close()
    assert(sessile.migrate(store, b))
    assert(store:backup(folder .. "/file", { update = true }))
    -- it stays guarded as well
    denied("guarded", open "b":list())
    assert(sessile.migrate({ url = "sqlite:" .. folder .. "/file",
      key = sessile.key.secret(KEY) }, { url = folder .. "/d" }))
    denied("guarded", open "d":list())
    assert.same({ "later", "s-a" }, ids(open("d", "standard")))
  end)

  it("that is said to be off takes what it is given", function()
    filled("a"):close()
    filled("b", "standard"):close()
    opened = {}
    open("b", "off"):close()
    opened = {}
    assert(sessile.migrate(place "a", place "b", { into = true }))
    assert.same({ "s-a", "s-b" }, ids(open "b"))
  end)

  it("that keeps the audit of another has its guard set first", function()
    filled("a", "standard"):close()
    local waiting, other = open "a", open "e"
    denied("stays guarded", other:guard { audit = { store = waiting } })
  end)
end)

describe("a second store on the command line", function()
  local home

  cli.each_test(function(dir) home = dir end)

  local function own_store()
    return home .. "/data/sessile"
  end

  local function token(roles)
    local path = home .. "/token"
    os.remove(path)
    cli.write(path, (cli.json("access key new ann --role " .. roles)).key)
    assert(os.execute("chmod 600 " .. cli.quote(path)))
    return " --token-file " .. path
  end

  it("is copied to, backed up and restored by whoever may move the store", function()
    cli.configure 'return { guard = "standard" }'
    cli.done "new --id a --user ann"
    local store = own_store()
    cli.done(("backup %s/file"):format(home))
    local as = token "editor"
    expect.has(cli.fails(7, ("migrate %s %s/copy"):format(store, home) .. as), "move_store")
    expect.has(cli.fails(7, ("backup %s/other"):format(home) .. as), "move_store")
    expect.has(cli.fails(7, ("backup restore %s/file --into"):format(home) .. as), "scope all")
    assert.is_false(cli.exists(home .. "/copy"))
    assert.is_false(cli.exists(home .. "/other"))
    cli.done(("migrate %s %s/copy"):format(store, home))
    cli.done(("migrate %s %s/copy"):format(store, home))
    cli.done(("backup restore %s/file --into"):format(home))
    assert.equal("a", cli.json(("list --store %s/copy"):format(home))[1].id)
  end)

  it("that stays guarded is not written to without a guard", function()
    cli.configure 'return { guard = "standard" }'
    cli.done "new --id a"
    cli.configure "return {}"
    local plain = home .. "/plain-store"
    cli.done("new --id b --store " .. plain)
    local guarded = own_store()
    expect.has(cli.fails(7, ("migrate %s %s --into"):format(plain, guarded)), "stays guarded")
    cli.fails(7, ("copy b %s --store %s"):format(guarded, plain))
  end)
end)
