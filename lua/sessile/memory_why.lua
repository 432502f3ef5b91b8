-- memory_why.lua: where an entry of a memory comes from, and what ended it.

local why = {}

local MOST = 50 -- messages that are shown of one source

-- An id as a number.
local function number(id)
  return tonumber(id, 16)
end

-- The messages of a source, or why they cannot be read.
local function read(store, user, from)
  local s, message, code
  for _, owner in ipairs(user and { user, "" } or { "" }) do
    s, message, code = store:resume { id = from.session, agent = from.agent,
      user = owner ~= "" and owner or nil }
    if s or code ~= "ENOTFOUND" then
      break
    end
  end
  if not s then
    return { failure = message, code = code }
  end
  local found = { messages = {} }
  local first, last = number(from.first), number(from.last)
  for id = first, math.min(last, first + MOST - 1) do
    local entry = s:entry(("%08x"):format(id))
    if entry and entry.type == "message" then
      found.messages[#found.messages + 1] = { id = entry.id, role = entry.data.role,
        content = entry.data.content, message = entry.data }
    end
  end
  found.more = last >= first + MOST or nil
  s:close()
  return found
end

-- What ended an entry, or took its place.
local function ended(memory, row)
  local entry = row.ended_by and memory._core:entry(row.ended_by)
  if not entry then
    return nil
  end
  return { id = row.ended_by, state = row.state, time = entry.timestamp,
    by = entry.type == "memory" and entry.author or entry.data.by, reason = entry.data.reason,
    value = entry.type == "memory" and entry.data.value or nil }
end

--- {entry = row, from = {{session, agent, first, last, messages or failure, code}, …}, ended}.
function why.of(memory, row)
  local found = { entry = row, from = {}, ended = ended(memory, row) }
  for i, from in ipairs(row.from or {}) do
    local source = read(memory._store, memory._user, from)
    for name, value in pairs(from) do
      source[name] = value
    end
    found.from[i] = source
  end
  return found
end

return why
