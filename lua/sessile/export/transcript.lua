--- transcript: messages and compactions from the root to the head, for agents that continue there.
--
-- Owns: what an agent's file says in its order: each message with its calls answered (see
-- conversation.lua), and, where a compaction changed the context, the messages of the new one. Must
-- never hold more than one context.

local characters = require "sessile.characters"
local dialect = require "sessile.dialect"
local contexts = require "sessile.export.pi_context"
local conversation = require "sessile.export.conversation"
local core = require "sessile.core"
local parts = require "sessile.import.parts"
local paths = require "sessile.paths"

local math = dialect.math

local span = core.span

local transcript = {}

---@class sessile.export.listener
---@field message fun(self: table, said: sessile.export.said)
---@field compaction fun(self: table, entry: table, list: sessile.export.said[])  list: the whole
---                      new context

-- A message of the context, with the facts of its entry.
local function read(raw, entry, key)
  local said = conversation.read(raw)
  said.key, said.time = key, span.string(entry.timestamp)
  return said
end

-- The messages of a context, by their keys.
local function messages_of(source, keys)
  local out = {}
  local mender = conversation.mender(function(said) out[#out + 1] = said end)
  for _, key in ipairs(keys) do
    local raw, entry = conversation.by_key(source, key)
    mender:put(read(raw, entry, key))
  end
  return out
end

--- Calls the listener for each message and each compaction of the path, in order. Returns the
--- numbers of changes, as conversation.each does.
---@param source table  of sessile.export.source
---@param listener sessile.export.listener
---@return {unanswered: integer, orphans: integer, elsewhere: integer}
function transcript.each(source, listener)
  local on_path, known = {}, contexts.new()
  for _, id in ipairs(source.session:path() or {}) do
    on_path[id] = true
  end
  local mender = conversation.mender(function(said) listener:message(said) end)
  mender.elsewhere = 0
  for text in source:texts() do
    local _, entry = span.object(text)
    local id, kind = span.string(entry.id), span.string(entry.type)
    local is_message = kind == "message" or kind == "branch_summary"
    if is_message or kind == "turn" or kind == "compaction" then
      known:entry({ id = id, parent = span.string(entry.parent_id) or "" }, kind, entry.data)
    end
    if is_message and on_path[id] then
      mender:put(read(entry.data, entry, id))
    elseif is_message then
      mender.elsewhere = mender.elsewhere + 1
    elseif kind == "compaction" and on_path[id] and known:after(id) then
      listener:compaction(entry, messages_of(source, known:after(id)))
    end
  end
  return mender
end

-- ---------------------------------------------------------------- names

--- A UUID that is always the same for these words.
---@param ... string
---@return string
function transcript.uuid(...)
  local hex = core.sha256(table.concat({ "sessile", ... }, "\0"))
  return ("%s-%s-8%s-a%s-%s"):format(hex:sub(1, 8), hex:sub(9, 12), hex:sub(13, 15),
    hex:sub(16, 18), hex:sub(19, 30))
end

---@class sessile.export.origin
---@field id string       the session's name there: its own if that is a UUID
---@field cwd string
---@field branch string?  of git
---@field created integer  ms

local UUID = "^" .. ("%x"):rep(8) .. ("%-" .. ("%x"):rep(4)):rep(3) .. "%-" .. ("%x"):rep(12) .. "$"

--- What an agent has to know of a session.
---@param session sessile.Session
---@param cwd string?  where it continues, if the session does not say where it ran
---@param redactor table?
---@return sessile.export.origin
function transcript.origin(session, cwd, redactor)
  local own = session:metadata()
  own = type(own) == "table" and own or {}
  local id = session.id:lower()
  local function shown(text)
    return type(text) == "string" and characters.repaired(redactor and redactor:text(text) or text)
      or nil
  end
  return {
    id = id:find(UUID) and id or transcript.uuid(session.agent or "", session.id),
    cwd = shown(paths.is_folder(own.cwd) and own.cwd) or shown(cwd) or "/",
    branch = shown(own.branch),
    created = session.created,
  }
end

--- Where an agent looks for a session, below its own folder.
---@param to "claude"|"codex"
---@param origin sessile.export.origin
---@return string
function transcript.place(to, origin)
  if to == "claude" then
    return ("projects/%s/%s.jsonl"):format((origin.cwd:gsub("[^%w]", "-")), origin.id)
  end
  local stamp = parts.stamp(origin.created)
  return ("sessions/%s/rollout-%s-%s.jsonl"):format((stamp:sub(1, 10):gsub("-", "/")),
    (stamp:sub(1, 19):gsub(":", "-")), origin.id)
end

--- The time of what was said, in ms: the message's, else its entry's; at least 0.
---@param said sessile.export.said
---@return integer?
function transcript.time(said)
  return math.tointeger(tonumber(said.fields.timestamp)) or parts.time(said.time)
end

--- Sentences about the changes and about what is left out.
---@param mended table   what transcript.each returned
---@param notes string[]
function transcript.tell(mended, notes)
  conversation.tell(mended, notes)
  conversation.note(notes, mended.elsewhere, "%d message of another branch is left out",
    "%d messages of other branches are left out")
end

return transcript
