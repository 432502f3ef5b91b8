-- shim.lua: what specs use of Lua 5.4's libraries, for LuaJIT. The first line of each translated
-- file takes the libraries from here; the module has its own sessile.dialect.
--
-- A write to a file returns the file, here for every file of the process.

local dialect = require "sessile.dialect"

local shim = { math = dialect.math, table = dialect.table, utf8 = dialect.utf8,
  coroutine = dialect.coroutine }

local function with(library, more)
  return setmetatable(more, { __index = library })
end

local methods = getmetatable(io.stdout).__index
local write = methods.write
function methods.write(file, ...)
  local ok, message, code = write(file, ...)
  if not ok then
    return nil, message, code
  end
  return file
end

-- What Lua 5.4 returns for the status of a process.
local function ended(status)
  local signal, code = status % 128, math.floor(status / 256)
  if signal ~= 0 then
    return nil, "signal", signal
  end
  return code == 0 or nil, "exit", code
end

shim.os = with(os, {
  execute = function(command)
    return ended(os.execute(command))
  end,
})

local function quoted(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

-- A pipe whose close returns how the program ended, which LuaJIT does not keep: a shell writes it
-- down.
local pipe = {}
pipe.__index = pipe
for _, name in ipairs { "read", "lines", "flush", "setvbuf" } do
  pipe[name] = function(self, ...)
    return self.file[name](self.file, ...)
  end
end
function pipe:write(...)
  self.file:write(...)
  return self
end
function pipe:close()
  if not self.status then
    return nil, "closed"
  end
  self.file:close()
  local file = assert(io.open(self.status))
  local code = tonumber(file:read "*a") or 0
  file:close()
  os.remove(self.status)
  self.status = nil
  return ended(code < 128 and code * 256 or code - 128)
end

shim.io = with(io, {
  open = function(path, mode)
    local file, message, code = io.open(path, mode)
    if file and mode and mode:find "[wa+]" then
      file:setvbuf "no" -- nothing closes it at the end of its block
    end
    return file, message, code
  end,
  popen = function(command, mode)
    local status = os.tmpname()
    local file, message = io.popen(("sh -c %s; echo $? >%s"):format(quoted(command), status), mode)
    if not file then
      return nil, message
    end
    return setmetatable({ file = file, status = status }, pipe)
  end,
})

--- The modes of Lua 5.4's collector mean nothing here.
function shim.collectgarbage(what, ...)
  if what == "incremental" or what == "generational" then
    return what
  end
  return collectgarbage(what, ...)
end

return shim
