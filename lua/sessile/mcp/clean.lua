-- clean.lua: stored text for a model: redacted, and with every character to be seen.
--
-- What is stored may have been written by anybody. Text leaves this server only through here:
-- secrets are replaced as `sessile export --redact` does, and characters that nobody sees, that
-- control a terminal or that reorder text are written as escapes.

local characters = require "sessile.characters"
local core = require "sessile.core"
local facts = require "sessile.facts"
local redact = require "sessile.redact"

local clean = {}

-- Redactors of sessions that are kept.
local MOST_KEPT = 16

local function escape(code)
  return ("\\u%04x"):format(code)
end

--- Text in which every character but a line's end and a tab can be seen, as valid UTF-8.
---@param text string
---@return string
function clean.visible(text)
  text = characters.repaired(text):gsub("\r\n", "\n"):gsub("[%z\1-\8\11-\31\127]", function(byte)
    return escape(byte:byte())
  end)
  return characters.without_hidden(text, escape)
end

--- The same on one line.
---@param text string
---@return string
function clean.line(text)
  return (clean.visible(text):gsub("%s+", " "):gsub("^ ", ""):gsub(" $", ""))
end

--- A value as JSON on one line, without anything that looks like markup, for a model to read.
---@param value table
---@return string
function clean.json(value)
  local text = core.text(value):gsub("[<>\127]", function(one)
    return ("\\u%04x"):format(one:byte())
  end)
  return characters.inert(text)
end

-- ---------------------------------------------------------------- what is redacted

local Redaction = {}
Redaction.__index = Redaction

--- A redaction of texts that are of no single session.
---@return table
function clean.new()
  return setmetatable({ redactor = redact.new() }, Redaction)
end

--- Text of people, redacted and visible.
---@param text string
---@return string
function Redaction:text(text)
  return clean.visible(self.redactor:text(characters.repaired(text)))
end

--- The same on one line.
---@param text string
---@return string
function Redaction:line(text)
  return clean.line(self.redactor:text(characters.repaired(text)))
end

--- A message that was read, as a table with everything redacted; nil: it cannot be read as one.
---@param message table
---@return table?
function Redaction:message(message)
  local json = facts.within(message).json
  local value = json and core.decode(self.redactor:json(json))
  return type(value) == "table" and value or nil
end

--- Whether nothing in a text would be changed.
---@param text string
---@return boolean
function clean.is_plain(text)
  return clean.visible(text) == text and redact.new():text(text) == text
end

-- ---------------------------------------------------------------- sessions

local Kept = {}
Kept.__index = Kept

--- Redactions of sessions: a secret that a session names anywhere is taken out everywhere. What was
--- learned of a session is kept while the server runs, so that only its new entries are read.
---@return table
function clean.sessions()
  return setmetatable({ by_key = {}, order = {} }, Kept)
end

-- The names of a session and what is set on it.
local function see_names(redaction, session)
  for _, text in ipairs { session.id, session.agent, session.user or "", session.title or "" } do
    redaction.redactor:text(text)
  end
  for _, read in ipairs { session.settings, session.metadata } do
    local found = read(session)
    local json = found and facts.within(found).json
    if json then
      redaction.redactor:json(json)
    end
  end
end

-- Shows the entries that are new. nil, message, code: one cannot be read.
local function see_entries(redaction, session)
  local iterator, message, code = session:entries { after = redaction.newest }
  if not iterator then
    return nil, message, code
  end
  local is_new = false
  for entry in iterator do
    redaction.redactor:json(facts.within(entry).json)
    redaction.newest, is_new = entry.id, true
  end
  if is_new or redaction.title ~= session.title then
    see_names(redaction, session)
    redaction.redactor:restart()
    redaction.title = session.title
  end
  return redaction
end

local function new_of(session)
  return setmetatable({ redactor = redact.new(), created = session.created }, Redaction)
end

--- The redaction of an open session. nil, message, code. Raises if an entry cannot be read.
---@param session sessile.Session
---@return table?
---@return string? message
---@return string? code
function Kept:of(session)
  local key = ("%s\0%s\0%s"):format(session.agent, session.user or "", session.id)
  local kept = self.by_key[key]
  if kept and kept.created == session.created and see_entries(kept, session) then
    return kept
  end
  self.by_key[key] = nil -- there was none, or it was of a log that was replaced
  local made, message, code = see_entries(new_of(session), session)
  if not made then
    return nil, message, code
  end
  self.by_key[key] = made
  self.order[#self.order + 1] = key
  if #self.order > MOST_KEPT then
    self.by_key[table.remove(self.order, 1)] = nil
  end
  return made
end

return clean
