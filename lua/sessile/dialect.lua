-- dialect.lua: what Lua 5.4 has and LuaJIT lacks, as far as this module uses it.
--
-- Files that LuaJIT loads use only syntax that both know. Instead of the global tables math, table,
-- utf8 and coroutine they use the fields of this module where LuaJIT's lack a function: in Lua 5.4
-- these are the global tables themselves. No global and no library table is changed.

local dialect = {}

--- Whether this is LuaJIT.
dialect.is_luajit = rawget(_G, "jit") ~= nil and _VERSION == "Lua 5.1"

if not dialect.is_luajit then
  dialect.math, dialect.table = math, table
  dialect.utf8, dialect.coroutine = _G.utf8, coroutine

  --- ipairs, also of the messages of a state, which are no table.
  dialect.each = ipairs

  -- The syntax of Lua 5.4, in a text because LuaJIT does not read it. It belongs to this file, as
  -- far as the search for the caller's line is concerned.
  local source = debug and debug.getinfo(1, "S").source or "=dialect.lua"
  local text = [[
    local value, body = ...
    local guard <close> = value
    return body(guard, select(3, ...))]]

  --- Calls body(value, …), then closes the value, also after an error or when the coroutine is
  --- closed. nil and false are not closed. Returns what body returned.
  dialect.closing = assert(load(text, source, "t"))
  return dialect
end

local EXACT = 2 ^ 53 -- whole numbers up to this are exact

local function is_whole(x)
  return type(x) == "number" and x >= -EXACT and x <= EXACT and x % 1 == 0
end

local function with(library, more)
  for name, value in pairs(library) do
    if more[name] == nil then
      more[name] = value
    end
  end
  return more
end

dialect.math = with(math, {
  maxinteger = EXACT, mininteger = -EXACT,
  type = function(x)
    return type(x) == "number" and (is_whole(x) and "integer" or "float") or nil
  end,
  tointeger = function(x)
    x = tonumber(x)
    return is_whole(x) and x or nil
  end,
})

dialect.table = with(table, {
  pack = function(...) return { n = select("#", ...), ... } end,
  unpack = unpack, -- luacheck: ignore 113
})

-- A suspended coroutine is collected; nothing of it runs again.
dialect.coroutine = with(coroutine, { close = function() return true end })

dialect.utf8 = require "sessile.dialect_utf8"

local function next_of(list, i)
  i = i + 1
  local value = list[i]
  if value ~= nil then
    return i, value
  end
  return nil
end

function dialect.each(list)
  if type(list) == "table" then
    return ipairs(list)
  end
  return next_of, list, 0
end

-- After body: closes the value, then raises or returns.
local function finish(value, ok, ...)
  if value then
    local meta = getmetatable(value)
    local close = type(meta) == "table" and meta.__close or value.close
    close(value, not ok and (...) or nil)
  end
  if not ok then
    error((...), 0)
  end
  return ...
end

function dialect.closing(value, body, ...)
  return finish(value, pcall(body, value, ...))
end

return dialect
