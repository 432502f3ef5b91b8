-- kinds.lua: the kinds of store that outlive a process, for specs about two of them: each makes
-- URLs of places where nothing is yet. What is not on this machine is left out, with the reason.

local postgres = require "spec.support.postgres"
local sessile = require "sessile"
local temp = require "spec.support.temp"

local kinds = {}

local KEY = sessile.key.secret("hex:" .. ("5e"):rep(32))

local PLACES = {
  file = function() return "file:" .. temp.dir() .. "/store" end,
  sqlite = function() return "sqlite:" .. temp.dir() .. "/store.db" end,
  postgres = function() return postgres.place() end,
}

local function why_not(kind)
  if kind == "postgres" then
    local server, reason = postgres.server()
    if not server then
      return reason
    end
  end
  local store, message, code = sessile.open(PLACES[kind](), { key = false })
  if store then
    store:close()
  end
  return code == "EUNSUPPORTED" and message or nil
end

--- Calls visit(name, kind, key) for each kind of store, plain and sealed; `reason` is there when
--- it cannot be had.
function kinds.each(visit)
  for _, kind in ipairs { "file", "sqlite", "postgres" } do
    local reason = why_not(kind)
    visit(kind .. " plain", { place = PLACES[kind], key = false, reason = reason })
    visit(kind .. " sealed", { place = PLACES[kind], key = KEY, reason = reason })
  end
end

--- Removes all that was made.
function kinds.clean()
  temp.clean()
  postgres.clean()
end

return kinds
