--- lines: the lines that are typed in a chat, and their history.
--
-- Owns: where the history is kept. For a plain store it is a file that only its user can read. For
-- a sealed store there is no file: the history is read from the session.

local core = require "sessile.core"
local files = require "sessile.files"
local line = require "sessile.line"
local paths = require "sessile.paths"
local terminal = require "sessile.cli.terminal"

local lines = {}

local MOST, MOST_BYTES = 500, 512 * 1024

local function escaped(text)
  return (text:gsub("[\\\n]", { ["\\"] = "\\\\", ["\n"] = "\\n" }))
end

local function unescaped(text)
  return (text:gsub("\\(.)", { n = "\n", ["\\"] = "\\" }))
end

-- The history file of a store. Its name is a hash, so that it is never too long.
local function file_of(place)
  local folder = paths.state "history"
  if not folder then
    return nil
  end
  return ("%s/%s"):format(folder, (core.sha256(place)))
end

lines.file_of = file_of

-- The last lines of the file. Lines that are not safe text are left out.
local function read(path)
  local file = io.open(path, "rb")
  local list = {}
  if not file then
    return list
  end
  local size = file:seek "end" or 0
  file:seek("set", math.max(0, size - MOST_BYTES))
  for text in (file:read "a" or ""):gmatch "[^\n]+" do
    text = unescaped(text)
    if text ~= "" and utf8.len(text) and terminal.safe(text) == text then
      list[#list + 1] = text
    end
  end
  file:close()
  if size > 4 * MOST_BYTES then
    os.remove(path) -- rewritten from what was read
    local kept = {}
    for i = math.max(1, #list - MOST), #list do
      kept[#kept + 1] = escaped(list[i]) .. "\n"
    end
    files.append(path, table.concat(kept))
  end
  return table.move(list, math.max(1, #list - MOST + 1), #list, 1, {})
end

-- The messages of the user in this session.
local function said_in(session)
  local list = {}
  for _, message in ipairs(session and session:messages { role = "user", last = 200 } or {}) do
    if type(message.content) == "string" and terminal.safe(message.content) == message.content then
      list[#list + 1] = message.content
    end
  end
  return list
end

--- The lines of a chat. place: the place of the store if the history is a file; nil: it is none.
---@param session sessile.Session?
---@param place string?
function lines.open(session, place)
  local path = place and file_of(place)
  local list = path and read(path) or said_in(session)
  local self = {}

  --- The line that is typed; nil and "end" or "interrupted".
  function self.read(prompt, complete)
    return line.read(prompt, { history = list, complete = complete })
  end

  --- Adds one to those that the arrow keys bring back.
  function self.add(text)
    if text == list[#list] or #text > 8192 then
      return
    end
    list[#list + 1] = text
    if path then
      files.append(path, escaped(text) .. "\n")
    end
  end
  return self
end

return lines
