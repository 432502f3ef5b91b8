-- own_store.lua: sessions kept where you like: here one text file each, with plain Lua.
--
--     build/bin/sessile run examples/own_store.lua [FOLDER]
--
-- load hands out a session's records, save adds some if nobody else did meanwhile. Both may
-- yield, so a table in a database or a service behind HTTP does as well as a file.
local sessile = require "sessile"

local given = arg and arg[1]
local folder = given or io.popen("mktemp -d"):read "l"

-- Ids are any bytes: here they become names that are safe in a folder.
local function path_of(id, ctx)
  local name = ctx.session.agent .. "\0" .. ctx.session.user .. "\0" .. ctx.session.id
  return folder .. "/" .. name:gsub("[^%w]", function(c) return ("_%02x"):format(c:byte()) end)
end

local function read(path)
  local file = io.open(path, "rb")
  if not file then
    return nil
  end
  local records = {}
  for line in file:lines() do
    records[#records + 1] = line
  end
  file:close()
  return records
end

local adapter = {}

function adapter.load(id, ctx)
  return read(path_of(id, ctx)) -- nil: there is no such session
end

-- All of the new records or none: a whole new file, put in the old one's place. (One process
-- at a time: whoever has several compares and replaces in one transaction.)
function adapter.save(id, new, was, ctx)
  local path = path_of(id, ctx)
  local records = read(path) or {}
  if #records ~= was then
    return false -- somebody else was faster: the engine says ECONFLICT
  end
  table.move(new.records, 1, #new.records, was + 1, records)
  local file, why = io.open(path .. ".new", "wb")
  local ok = file
  if file then
    ok, why = file:write(table.concat(records, "\n"), "\n")
    local closed, failure = file:close()
    ok, why = ok and closed, why or failure
  end
  if ok then
    ok, why = os.rename(path .. ".new", path)
  end
  if not ok then
    return nil, why -- not saved: the engine says EIO, and sends it again with the next save
  end
  return true
end

function adapter.delete(id, ctx)
  return os.remove(path_of(id, ctx)) ~= nil
end

local store = assert(sessile.open(adapter))
local session = assert(store:session { session_id = "tide", user_id = "ann" })
local outcome = assert(session:turn {
  { role = "user", content = "When is high tide?" },
  { role = "assistant", content = "At noon. I was here for the last one." },
})
print("saved", outcome.saved)

-- Two handles of one session: the second to write is told.
local other = assert(store:resume { session_id = "tide", user_id = "ann" })
assert(session:append { role = "user", content = "Thank you." })
print("another handle", select(3, other:append { role = "user", content = "Hello?" }))
assert(other:close())
assert(session:close())

session = assert(store:resume { session_id = "tide", user_id = "ann" })
for _, message in ipairs(assert(session:messages())) do
  print(message.role, message.content)
end
if not given then
  assert(store:delete { session_id = "tide", user_id = "ann" })
  assert(os.remove(folder))
end
store:close()
