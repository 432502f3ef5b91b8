-- attacks.lua: a guarded store to attack, and what its audit says of the attack.

local assert = require "luassert"
local jwt = require "spec.support.jwt"
local sessile = require "sessile"
local stores = require "spec.support.stores"
local temp = require "spec.support.temp"

local attacks = {}

--- A sealed store with the profile standard, and its folder. Tokens of https://id.example are
--- accepted.
function attacks.store()
  local dir = temp.dir()
  local keys = temp.write(dir .. "/jwks.json", jwt.keys(), "600")
  local store = stores.open("file:" .. dir .. "/store", {
    key = sessile.key.secret("hex:" .. ("0123456789abcdef"):rep(4)),
    memory = { enabled = true },
    guard = { profile = "standard", identity = {
      token = { issuer = "https://id.example", audience = "sessile", keys = keys },
    } },
  })
  return store, dir .. "/store"
end

--- A view of a user, an editor.
function attacks.user(store, user)
  return assert(store:as { user = user, roles = "editor" })
end

--- The events of a store's audit that have these fields, oldest first.
function attacks.events(store, wanted)
  local found = {}
  for event in assert(store:audit {}) do
    local same = true
    for name, value in pairs(wanted) do
      same = same and event[name] == value
    end
    found[#found + 1] = same and event or nil
  end
  return found
end

--- That a text is in no event.
function attacks.says_nothing(store, text)
  for event in assert(store:audit {}) do
    assert.is_nil(event.json:find(text, 1, true), "the audit has it: " .. event.json)
  end
end

return attacks
