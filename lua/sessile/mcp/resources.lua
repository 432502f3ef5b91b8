-- resources.lua: sessions as resources: sessile://AGENT/ID, Markdown.

local clean = require "sessile.mcp.clean"
local core = require "sessile.core"
local page = require "sessile.mcp.page"
local place = require "sessile.mcp.place"

local resources = {}

local PAGE = 50 -- sessions
local MOST = 256 * 1024 -- bytes of a document
local TYPE = "text/markdown"

local CUT = "\n*The rest is left out here: session_read shows it.*\n"

-- ---------------------------------------------------------------- lists

local function row_of(redaction, row)
  local modified = page.time(row.modified)
  return {
    uri = place.uri(row), name = place.name(row), mimeType = TYPE,
    title = row.title and row.title ~= "" and redaction:line(row.title) or nil,
    annotations = modified and { lastModified = modified } or nil,
  }
end

-- How many sessions a cursor has passed; nil: it is none of ours.
local function offset_of(cursor)
  if cursor == nil then
    return 0
  end
  return type(cursor) == "string" and #cursor < 10 and cursor:find "^%d+$"
    and math.tointeger(tonumber(cursor)) or nil
end

--- A page of the sessions, newest first: its rows, and the cursor of the next page. nil, message,
--- code.
---@param server table
---@param cursor any
---@return table[]?
---@return string? next_cursor  or the message
---@return string? code
function resources.list(server, cursor)
  local offset = offset_of(cursor)
  if not offset then
    return nil, "cursor: one that resources/list gave expected", "EINVALID"
  end
  local store, found = server:store(), core.array {}
  if not store then
    return found
  end
  local rows, message, code = store:list { agent = server.scope.agent, user = server.scope.user,
    offset = offset, limit = PAGE + 1 }
  if not rows then
    return nil, message, code
  end
  local redaction = clean.new()
  for i = 1, math.min(PAGE, #rows) do
    if rows[i].id then
      found[#found + 1] = row_of(redaction, rows[i])
    end
  end
  return found, #rows > PAGE and tostring(offset + PAGE) or nil
end

--- How the URI of a session is made.
---@return table[]
function resources.templates()
  return core.array { {
    uriTemplate = place.SCHEME .. "{agent}/{id}", name = "session", title = "A session",
    description = "What was said in a session of an agent, redacted.", mimeType = TYPE,
  } }
end

-- ---------------------------------------------------------------- one session

-- The document, to the last message that fits.
local function markdown(session, redaction)
  local chunks, size, is_full = {}, 0, false
  local done, message, code = session:export { format = "md", redact = redaction.redactor,
    write = function(chunk)
      size = size + #chunk
      if size > MOST then
        is_full = true
        return nil, "it is full", "ELIMIT"
      end
      chunks[#chunks + 1] = chunk
      return true
    end }
  if not done and not is_full then
    return nil, message, code
  end
  return clean.visible(table.concat(chunks) .. (is_full and CUT or ""))
end

--- The contents of a URI. nil, message, code, step.
---@param server table
---@param uri string
---@return table[]?
---@return string? message
---@return string? code
---@return string? step
function resources.read(server, uri)
  if uri:sub(1, #place.SCHEME) ~= place.SCHEME then
    return nil, "a URI of this server is sessile://AGENT/ID", "ENOTFOUND",
      "resources/list shows them."
  end
  local session <close>, message, code, step = server:session(uri)
  if not session then
    return nil, message, code, step
  end
  local redaction
  redaction, message, code = server.redactions:of(session)
  if not redaction then
    return nil, message, code
  end
  local text
  text, message, code = markdown(session, redaction)
  if not text then
    return nil, message, code
  end
  return core.array { { uri = place.uri(session), mimeType = TYPE, text = text } }
end

return resources
