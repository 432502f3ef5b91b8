-- Many sessions that others write to, asked for at once.

local messages = require "spec.support.messages"
local sessile = require "sessile"
local stores = require "spec.support.stores"
local temp = require "spec.support.temp"

local function ids(list)
  local found = {}
  for i, one in ipairs(list) do
    found[i] = one.id
  end
  return table.concat(found, " ")
end

stores.each_kind("sessions that are followed in", function(open)
  local store, followed

  before_each(function()
    store = open()
    followed = {}
    for i = 1, 4 do
      followed[i] = assert(store:session("s" .. i))
    end
  end)

  it("are told when others have written, until they are read", function()
    assert.equal("", ids(assert(store:changed(followed))))
    assert(assert(store:session "s3"):append(messages.user "news"))
    assert(assert(store:session "s1"):append(messages.user "news"))
    assert.equal("s1 s3", ids(assert(store:changed(followed))))
    assert.equal(1, #assert(followed[1]:messages()))
    assert.equal("s3", ids(assert(store:changed(followed))))
    assert(followed[2]:append(messages.user "mine"))
    assert.equal("s3", ids(assert(store:changed(followed))))
    assert.same({}, assert(store:changed {}))
  end)

  it("are told when they are gone", function()
    assert(store:delete "s2")
    assert.equal("s2", ids(assert(store:changed(followed))))
  end)

  it("are sessions, and open", function()
    assert.has_error(function() store:changed { "s1" } end,
      "store:changed: session 1 expected, got string")
    assert.has_error(function() store:changed "s1" end)
    assert(followed[2]:close())
    local value, _, code = store:changed(followed)
    assert.is_nil(value)
    assert.equal("ECLOSED", code)
  end)
end)

describe("sessions of another store", function()
  it("are refused", function()
    local one, other = stores.ram(), stores.ram()
    local value, message, code = one:changed { assert(other:session "s") }
    assert.is_nil(value)
    assert.equal("EINVALID", code)
    assert.matches("another store", message)
  end)
end)

describe("the clock of a store", function()
  it("is this machine's where there is no server", function()
    temp.files_only "a server has a clock of its own"
    local ahead, within = sessile.open("ram:", { key = false }):clock()
    assert.equal(0, ahead)
    assert.equal(0, within)
  end)
end)
