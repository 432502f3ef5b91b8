-- stores.lua: stores that a spec opens. stores.clean() closes all of them and removes their places.

local busted = require "busted"
local postgres = require "spec.support.postgres"
local sessile = require "sessile"
local temp = require "spec.support.temp"

local stores = {}

local opened = {}

--- sessile.open, for a store that must open.
function stores.open(place, options)
  local store = assert(sessile.open(place, options))
  opened[#opened + 1] = store
  return store
end

-- The options of a plain store, and the spec's own.
local function plain(options)
  local given = { key = false }
  for name, value in pairs(options or {}) do
    given[name] = value
  end
  return given
end

--- A store in memory, without a key.
function stores.ram(options)
  return stores.open("ram:", plain(options))
end

--- A session of a store, opened or created, and the store.
function stores.session(store, id)
  return assert(store:session(id)), store
end

--- The kinds of store that behave alike: a name, and a function that opens an empty one. With
--- PostgreSQL if a server can be started.
function stores.kinds()
  local function at(place)
    return function(options) return stores.open(place(), plain(options)) end
  end
  return {
    ["ram:"] = function(options) return stores.open("ram:", options) end,
    ["file:"] = at(function() return "file:" .. temp.dir() .. "/store" end),
    ["sqlite:"] = at(function() return "sqlite:" .. temp.dir() .. "/sessions.db" end),
    ["postgres:"] = postgres.server() and at(function() return (postgres.place()) end) or nil,
  }
end

--- Closes the stores, and removes every folder of temp.lua.
function stores.clean()
  for i = #opened, 1, -1 do
    assert(opened[i]:close())
    opened[i] = nil
  end
  temp.clean()
end

--- In a describe, or a spec: calls set_up before each test, and stores.clean() after it.
function stores.each_test(set_up)
  busted.before_each(set_up)
  busted.after_each(stores.clean)
end

--- A describe for each kind of store, called "WHAT KIND"; define(open) has its tests.
function stores.each_kind(what, define)
  for kind, open in pairs(stores.kinds()) do
    busted.describe(what .. " " .. kind, function()
      define(open)
      busted.after_each(stores.clean)
    end)
  end
end

--- A new session with these options and one turn.
function stores.with_turn(store, options, messages)
  local session = assert(store:create(options))
  assert(session:turn(messages))
  return session
end

return stores
