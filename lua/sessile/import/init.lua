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
  if not from then
    for _, name in ipairs { "pi", "jsonl" } do
      if first and import.formats[name].recognises(first) then
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
-- nobody will see.
local function sieve(list)
  local store = assert(sessile.open("ram:", { key = false }))
  local scratch = assert(store:create {})
  local good, bad = {}, {}
  for _, json in ipairs(list) do
    local id, message, code = scratch:append(sessile.json(json))
    if id then
      good[#good + 1] = json
    elseif code == "EINVALID" or code == "ELIMIT" then
      bad[#bad + 1] = json
    else
      return nil, message, code
    end
  end
  scratch:close()
  store:close()
  return good, bad
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
  local good, bad, failed = sieve(record.messages)
  if not good then
    return nil, bad, failed
  elseif #bad == 0 then
    return nil, message, code -- the fault is not in a message
  end
  if #good > 0 then
    record.messages = good
    local ok
    ok, message, code = put_turn(self, record)
    if not ok then
      return nil, message, code
    end
  end
  for _, json in ipairs(bad) do
    local ok
    ok, message, code = put_custom(self, turns.custom(self.from, nil, json, true))
    if not ok then
      return nil, message, code
    end
    self.counts.refused = self.counts.refused + 1
  end
  return true
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
    counts = { messages = 0, turns = 0, customs = 0, refused = 0 },
  }, Writer)
  for record in records do
    local ok, message, code = true, nil, nil
    if record.kind == "session" then
      if not self.session then
        self.recorded_id = self.recorded_id or record.id
        self.recorded_title = self.recorded_title or record.title
      end
    else
      if not self.session then
        ok, message, code = make_session(self)
      end
      if ok and record.kind == "turn" then
        ok, message, code = put_turn(self, record)
      elseif ok then
        ok, message, code = put_custom(self, record.json)
      end
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
    return nil, "there is nothing in it", "EINVALID"
  end
  return self.session, self.counts
end

return import
