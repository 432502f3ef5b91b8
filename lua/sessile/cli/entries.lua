--- entries: finds the entry that was typed.
--
-- An entry is typed as its number (1 to 8 hexadecimal digits), a label, or `head`. Must never
-- choose between two entries with the same label.

local facts = require "sessile.facts"
local hints = require "sessile.cli.hints"

local entries = {}

-- The engine's mark of "no entry": no entry ever has this number.
local NO_ENTRY = "ffffffff"

local function fail(session, text)
  return nil, ("'%s' is not an entry of session %s: an entry is a number of 1 to 8 hexadecimal "
    .. "digits, a label, or `head`"):format(hints.shown(text), hints.shown(session.id)),
    "ENOTFOUND", entries.step("ENOTFOUND", session.id)
end

-- The ids of the entries with this label.
local function labelled(labels, name)
  local ids = {}
  for _, label in ipairs(labels) do
    if label.name == name then
      ids[#ids + 1] = label.id
    end
  end
  return ids
end

--- The entry that `text` names. Eight digits are always a number; anything else is first taken for
--- a label.
---@param session sessile.Session
---@param text string
---@return string? id
---@return string? message
---@return string? code
---@return string? step
function entries.find(session, text)
  local digits = #text <= 8 and text:match "^%x+$"
  if digits and digits:lower() == NO_ENTRY then
    return fail(session, text)
  elseif digits and #digits == 8 then
    return digits:lower()
  end
  local labels, message, code = session:labels()
  if not labels then
    return nil, message, code
  end
  local ids = labelled(labels, text)
  if #ids == 1 then
    return ids[1]
  elseif #ids > 1 then
    return nil, ("'%s' is on %d entries"):format(hints.shown(text), #ids), "EUSAGE",
      "Name one of them: " .. table.concat(ids, ", ", 1, math.min(#ids, 8))
  elseif text == "head" then
    return session:head()
  elseif not digits then
    return fail(session, text)
  end
  return ("0"):rep(8 - #digits) .. digits:lower()
end

--- The id of the checkpoint that `text` names: the newest one with that name; else, for `last`, the
--- newest; else the one at the entry that entries.find returns.
---@param session sessile.Session
---@param text string
---@return string? id
---@return string? message
---@return string? code
---@return string? step
function entries.checkpoint(session, text)
  local rows, message, code = session:checkpoints()
  if not rows then
    return nil, message, code
  end
  for _, row in ipairs(rows) do -- newest first
    if row.name == text then
      return row.id
    end
  end
  if text == "last" and rows[1] then
    return rows[1].id
  end
  local id, step
  id, message, code, step = entries.find(session, text)
  if not id and code ~= "ENOTFOUND" then
    return nil, message, code, step
  end
  for _, row in ipairs(rows) do
    if row.id == id then
      return id
    end
  end
  return nil, ("session %s has no checkpoint '%s'"):format(hints.shown(session.id),
    hints.shown(text)), "ENOTFOUND", "See them: sessile checkpoints " .. hints.id(session.id)
end

--- For a command: the session that `name` names, open until the command ends, and the entry in it
--- that `text` names.
---@param app sessile.cli.app
---@param name string
---@param text string
---@return sessile.Session session
---@return string id
function entries.open(app, name, text)
  local session = app:open(name)
  return session, (app.try(entries.find(session, text)))
end

-- Whether a session is called `name`, by its id, a prefix of it or its title.
local function is_session(app, name)
  for _, which in ipairs { "prefix", "title" } do
    for _, row in ipairs(app.try(app:list(app:need_store(), { [which] = name }))) do
      if row.id == name or row.title == name then
        return true
      end
    end
  end
  return false
end

--- For a command: the session that "ID" or "ID@ENTRY" names, and the entry. A session with the
--- whole text as its id or title takes precedence.
---@param app sessile.cli.app
---@param name string
---@return sessile.Session session
---@return string? id  nil: no entry was named
function entries.open_at(app, name)
  local id, entry = name:match "^(.+)@([^@]+)$"
  if not id then
    return app:open(name)
  end
  local message, code, step
  if not entry:find "^%x%x?%x?%x?%x?%x?%x?%x?$" or is_session(app, name) then
    local whole
    whole, message, code, step = app:session(name)
    if whole or code ~= "ENOTFOUND" then
      return app:keep(app.try(whole, message, code, step))
    end
  end
  local holder, why, why_code, why_step = app:session(id)
  if not message then
    message, code, step = why, why_code, why_step
  end
  return app:keep(app.try(holder, message, code, step)), (app.try(entries.find(holder, entry)))
end

--- The next step after an entry was not found.
---@param code string?
---@param session_id string
---@return string?
function entries.step(code, session_id)
  return code == "ENOTFOUND" and "See the entries: sessile tree " .. hints.id(session_id) or nil
end

--- The same as an argument of app.try_or.
---@param session sessile.Session
---@return table<string, string>
function entries.steps(session)
  return { ENOTFOUND = entries.step("ENOTFOUND", session.id) }
end

--- How many messages a branch leaves behind: those between the head and the common ancestor. Fails
--- like the branch itself if a conversation cannot continue from the entry.
---@param session sessile.Session
---@param from string  the head
---@param to string
---@return integer? count
---@return string? message
---@return string? code
---@return string? step
function entries.count_left(session, from, to)
  local fork, message, code = session:common_ancestor(from, to)
  if not fork then
    return nil, message, code, entries.step(code, session.id)
  end
  local n = 0
  for _, left in ipairs(session:messages { at = from } or {}) do
    n = n + (facts.of(left).id > fork and 1 or 0)
  end
  return n
end

return entries
