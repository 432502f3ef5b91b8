--- import: recorded conversations into sessions.
--
-- Owns: the loop that every format shares: one write for each recorded turn, no policy, and
-- nothing lost: what the engine will not take as a message is kept as a custom entry. Must
-- never open a store or print: its caller does.

local sessile = require "sessile"
local turns = require "sessile.import.turns"

local import = {}

--- The formats, by name: each a module with records(lines) and recognises(first line).
---@type table<string, table>
import.formats = {
  pi = require "sessile.import.pi",
  jsonl = require "sessile.import.jsonl",
}

--- The names of the formats, sorted.
---@return string[]
function import.names()
  local names = {}
  for name in pairs(import.formats) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

local FAILED = { [2] = "ENOTFOUND", [13] = "EDENIED" } -- by errno

--- Opens a file (or takes an open one) as an iterator over records. `from` nil: told by the
--- first line.
---@param file file*|string
---@param from string?
---@return (fun(): sessile.import.record?)? records
---@return string? from_or_message
---@return string? code
function import.open(file, from)
  if type(file) == "string" then
    local opened, message, number = io.open(file, "rb")
    if not opened then
      return nil, (message:gsub("^.*: ", "")), FAILED[number] or "EIO"
    end
    file = opened
  end
  local first, why = file:read "l" -- a folder opens like a file, and then does not read
  if why then
    return nil, (why:gsub("^.*: ", "")), "EINVALID"
  end
  if not first then
    return nil, "it is empty", "EINVALID"
  end
  if not from then
    for _, name in ipairs { "pi", "jsonl" } do
      if import.formats[name].recognises(first) then
        from = name
        break
      end
    end
    if not from then
      return nil, "its first line is of no known format", "EINVALID"
    end
  end
  local format = import.formats[from]
  if not format then
    return nil, ("there is no format '%s'"):format(from), "ENOTFOUND"
  end
  local pending = first
  return format.records(function()
    if pending then
      local line = pending
      pending = nil
      return line
    end
    return (file:read "l")
  end), from
end

---@class sessile.import.counts
---@field messages integer
---@field turns integer
---@field customs integer  lines that are no message, kept as custom entries
---@field refused integer  messages that the engine would not take, kept as custom entries
---@field unread integer   lines that could not be read as messages: refused, or not even that
---@field first {at: integer?, why: string}?  the first of those

local Writer = {}
Writer.__index = Writer

-- Writes the data of a custom entry; when the engine does not take it (nested too deep, a
-- key given twice), its text.
local function put_custom(self, json, at)
  local id, message, code = self.session:custom(sessile.json(json))
  if not id and (code == "EINVALID" or code == "ELIMIT") then
    id, message, code = self.session:custom(
      sessile.json(turns.custom(self.from, at, json, true)))
  end
  if not id then
    return nil, message, code
  end
  self.counts.customs = self.counts.customs + 1
  return true
end

-- Counts a line that could not be read as a message; what is counted first is told.
local function count_unread(self, at, why)
  local counts = self.counts
  counts.unread = counts.unread + 1
  if not counts.first or at and counts.first.at and at < counts.first.at then
    counts.first = { at = at, why = why }
  end
end

local function turn_options(record)
  return {
    policy = false,
    usage = record.usage and sessile.json(record.usage),
    model_name = record.model,
    metadata = record.metadata and sessile.json(record.metadata),
  }
end

-- The messages as values that the engine writes as they stand.
local function verbatim(list)
  local out = {}
  for i, json in ipairs(list) do
    out[i] = sessile.json(json)
  end
  return out
end

-- Tells the messages that the engine takes from those it does not, in a session that
-- nobody will see. good: a record's messages and their lines; bad: {json, at, why}, …
local function sieve(record)
  local store = assert(sessile.open("ram:", { key = false }))
  local scratch = assert(store:create {})
  local good, bad = { messages = {}, lines = {} }, {}
  for i, json in ipairs(record.messages) do
    local id, message, code = scratch:append(sessile.json(json))
    if id then
      table.insert(good.messages, json)
      good.lines[#good.messages] = record.lines[i]
    elseif code == "EINVALID" or code == "ELIMIT" then
      bad[#bad + 1] = { json = json, at = record.lines[i], why = message }
    else
      return nil, message, code
    end
  end
  scratch:close()
  store:close()
  return good, bad
end

-- Keeps messages that the engine does not take.
local function put_bad(self, bad)
  for _, one in ipairs(bad) do
    local ok, message, code =
      put_custom(self, turns.custom(self.from, one.at, one.json, true))
    if not ok then
      return nil, message, code
    end
    self.counts.refused = self.counts.refused + 1
    count_unread(self, one.at, one.why)
  end
  return true
end

local function put_turn(self, record)
  local outcome, message, code =
    self.session:turn(verbatim(record.messages), turn_options(record))
  if outcome then
    self.counts.turns = self.counts.turns + 1
    self.counts.messages = self.counts.messages + #record.messages
    return true
  elseif code ~= "EINVALID" and code ~= "ELIMIT" then
    return nil, message, code
  end
  local good, bad, failed = sieve(record)
  if not good then
    return nil, bad, failed
  elseif #bad == 0 then
    return nil, message, code -- the fault is not in a message
  end
  if #good.messages > 0 then
    record.messages, record.lines = good.messages, good.lines
    local ok
    ok, message, code = put_turn(self, record)
    if not ok then
      return nil, message, code
    end
  end
  return put_bad(self, bad)
end

-- A line that is no message.
local function put_line(self, record)
  if record.why then
    count_unread(self, record.at, record.why)
  end
  return put_custom(self, record.json)
end

local function make_session(self)
  local options = self.options
  local session, message, code = self.store:create {
    id = options.id or self.recorded_id,
    title = options.title or self.recorded_title,
    agent = options.agent,
  }
  if not session then
    return nil, message, code
  end
  self.session = session
  return true
end

local function put(self, record)
  return (record.kind == "turn" and put_turn or put_line)(self, record)
end

-- Until a message turns up that the engine takes, there is no session: everything waits.
local function put_or_wait(self, record)
  if self.session then
    return put(self, record)
  end
  table.insert(self.waiting, record)
  if record.kind == "turn" then
    local good, message, code = sieve(record)
    if not good then
      return nil, message, code
    elseif #good.messages > 0 then
      local ok
      ok, message, code = make_session(self)
      for _, waiting in ipairs(ok and self.waiting or {}) do
        if ok then
          ok, message, code = put(self, waiting)
        end
      end
      self.waiting = nil
      return ok, message, code
    end
    self.why = self.why or { at = message[1].at, why = message[1].why }
  else
    self.why = self.why or record.why and { at = record.at, why = record.why }
  end
  return true
end

-- Why nothing came of it.
local function nothing(self)
  if #self.waiting == 0 then
    return "there is nothing in it"
  end
  local first = self.why
  return "none of its lines is a message"
    .. (first and ("; line %d: %s"):format(first.at or 1, first.why) or "")
end

--- Writes records into a new session of the store; returns it, still open. The session is
--- called what it was called when it was recorded, unless options.id is given.
---@param store table
---@param records fun(): sessile.import.record?
---@param options {from: string, id: string?, title: string?, agent: string?}
---@return table? session
---@return sessile.import.counts|string counts_or_message
---@return string? code
function import.into(store, records, options)
  local self = setmetatable({
    store = store, options = options, from = options.from,
    counts = { messages = 0, turns = 0, customs = 0, refused = 0, unread = 0 },
    waiting = {},
  }, Writer)
  for record in records do
    local ok, message, code = true, nil, nil
    if record.kind == "session" then
      if not self.session then
        self.recorded_id = self.recorded_id or record.id
        self.recorded_title = self.recorded_title or record.title
      end
    else
      ok, message, code = put_or_wait(self, record)
    end
    if not ok then
      if self.session then
        local count = self.counts.messages
        message = ("%s (after %d messages, which are in '%s')"):format(message, count,
          self.session.id)
        self.session:close()
      end
      return nil, message, code
    end
  end
  if not self.session then
    return nil, nothing(self), "EINVALID"
  end
  return self.session, self.counts
end

return import
