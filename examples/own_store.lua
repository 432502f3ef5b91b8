-- own_store.lua: a store of your own: here each session is a text file, written with plain Lua.
--
--     build/bin/sessile run examples/own_store.lua [FOLDER]
--
-- load returns the records of a session; save adds records if nobody else has added any meanwhile.
-- Both may yield, so a database table or an HTTP service can be used instead of files.
local sessile = require "sessile"

local given = arg and arg[1]
local folder = given or io.popen("mktemp -d"):read "l"

-- Ids may be any bytes: here they are converted to safe file names.
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

-- Writes all new records or none: a new file replaces the old one. (This is for one process at a
-- time. With several processes, compare and replace in one transaction.)
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

-- Two handles of one session: the second write fails.
local other = assert(store:resume { session_id = "tide", user_id = "ann" })
assert(session:append { role = "user", content = "Thank you." })
local _, _, code = other:append { role = "user", content = "Hello?" }
print("another handle", code)
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
