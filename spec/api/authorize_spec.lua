-- A rule of the host's that can refuse a call of a view: from Lua, in the configuration, and as the
-- guide shows it.
-- Own guard: it sets them.
-- Files only: rules are files.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local project = require "spec.support.project"
local sessile = require "sessile"
local temp = require "spec.support.temp"
local user = require("spec.support.messages").user

local SENTENCE = "a rule of this store's host does not allow this"

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

local function write(path, text)
  local file <close> = assert(io.open(path, "wb"))
  assert(file:write(text))
  return path
end

local function refused(rule, ...)
  local ok, message, code, retry_ms, got = ...
  assert.same({ nil, SENTENCE, "EDENIED", rule }, { ok, message, code, got })
  assert.is_nil(retry_ms)
end

describe("a rule of the host's", function()
  local folder, store

  temp.each_test(function(dir) folder = dir end)
  after_each(function()
    if store then
      store:close()
    end
    store = nil
  end)

  local function rule(text)
    return write(folder .. "/rule.lua", text)
  end

  local function open(text, guard)
    guard = guard or { profile = "standard" }
    guard.authorize = rule(text)
    store = assert(sessile.open(folder .. "/store", { key = false, guard = guard }))
  end

  local function view(who)
    local made = assert(store:as(who))
    finally(function() made:close() end)
    return made
  end

  it("is what the guide shows", function()
    local guide = read(os.getenv "SESSILE_ROOT" .. "/engine/guard/README.md")
    open(guide:match "## A rule of your own.-```lua\n(.-)```",
      { roles = { contractor = { "view_session", "modify_session", "create_session" } } })
    local contractor = view { user = "ann", roles = "contractor" }
    assert.same({}, contractor:list())
    refused("authorize:read_only", contractor:session "a")
    refused("authorize", view { user = "bob", roles = "admin" }:may("x",
      { permission = "move_store" }))
    assert(view { user = "bob", actor = "ops", roles = "admin" }:may("x",
      { permission = "move_store" }))
    assert(view { user = "bob", roles = "editor" }:session "a")
  end)

  it("is asked with the names of the session, and store:can is not asked about it", function()
    open [[return { authorize = function(who, operation, object)
      return not (object.agent == "main" and object.id == "closed" and operation.changes), "closed"
    end }]]
    local ann = view { user = "ann", roles = "editor" }
    refused("authorize:closed", ann:create { id = "closed" })
    assert(assert(ann:session "open"):append(user "hello"))
    assert.is_true(ann:can("create_session", { id = "closed" }))
  end)

  it("that fails refuses, and its event says why, without what it raised", function()
    open [[return { authorize = function(who) error("of " .. who.user) end }]]
    local ann = view { user = "ann", roles = "editor" }
    refused("authorize", ann:session "a")
    local whys = {}
    for event in store:audit { outcome = "failure" } do
      whys[#whys + 1] = event.rule .. ": " .. tostring(event.details.why)
    end
    assert.same({ "authorize: rule.lua:1: it raised an error" }, whys)
  end)

  it("is read when the store is opened", function()
    open "return { authorize = function() return false end }"
    rule "return { authorize = function() return true end }"
    refused("authorize", view { user = "ann", roles = "editor" }:session "a")
    store:close()
    store = assert(sessile.open(folder .. "/store",
      { key = false, guard = { authorize = folder .. "/rule.lua" } }))
    assert(view { user = "ann", roles = "editor" }:session "a")
  end)

  it("is a file of ours", function()
    local path = rule "return { authorize = function() return true end }"
    assert(os.execute(("chmod 666 '%s'"):format(path)))
    local got, message, code = sessile.open(folder .. "/store",
      { key = false, guard = { authorize = path } })
    assert.same({ nil, "EDENIED" }, { got, code })
    expect.has(message, "can be written by others")
    got, message, code = sessile.open(folder .. "/store",
      { key = false, guard = { authorize = folder .. "/none.lua" } })
    assert.same({ nil, "ENOTFOUND" }, { got, code })
    expect.has(message, "none.lua")
  end)
end)

describe("a configured rule", function()
  project.each_test(function() end)

  it("is met by the command line, which can take it out again", function()
    local path = cli.configure [[return { guard = { authorize = "./rule.lua" } }]]
    write(path:match "^(.*)/" .. "/rule.lua", [[return {
      authorize = function(who, operation)
        return not (who.method == "os" and operation.name == "create"), "frozen"
      end }]])
    expect.has(project.fails(7, "new"), SENTENCE)
    project.done "list"
    cli.configure [[return { guard = { authorize = false } }]]
    project.done "new"
  end)

  it("is never a project's", function()
    project.configure [[return { guard = { authorize = "./rule.lua" } }]]
    expect.has(project.fails(7, "list"), "'guard': a project's file cannot set it")
  end)
end)
