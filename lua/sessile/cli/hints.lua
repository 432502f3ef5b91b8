--- hints: commands in messages.
--
-- Owns: how an id, a path and this program are written in them. A command that is shown must work
-- when it is pasted: with the name of the program as it was typed, the same store, real ids and
-- files.

local registry = require "sessile.cli.registry"
local show = require "sessile.config.show"
local terminal = require "sessile.cli.terminal"

local hints = {
  --- How this program was called.
  program = "sessile",
}

--- Sets how the program was called: a path stays a path, any other name is found in $PATH.
---@param typed string?
function hints.called(typed)
  hints.program = typed and typed:find("/", 1, true) and hints.quoted(typed) or "sessile"
end

--- A word quoted for a shell.
---@param text string
---@return string
function hints.quoted(text)
  if text:find("^[%w_./:@+-]+$") then
    return text
  end
  if text:find "[\n\t]" or terminal.safe(text) ~= text then
    -- Characters that a terminal executes or hides, as escapes that bash and others read.
    return "$'" .. text:gsub("[^%w_./:@+ -]", function(byte)
      return ("\\%03o"):format(byte:byte())
    end) .. "'"
  end
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

--- An id as an argument: `--` precedes one that looks like an option.
---@param id string
---@return string
function hints.id(id)
  return (id:sub(1, 1) == "-" and "-- " or "") .. hints.quoted(id)
end

--- The command that continues a conversation.
---@param id string
---@return string
function hints.go_on(id)
  return "sessile resume " .. hints.id(id)
end

--- Typed text for use in a sentence: on one line, and cut if it is long.
---@param text string
---@return string
function hints.shown(text)
  return terminal.cut(terminal.line(text), 60)
end

local function store_options(globals, by_host)
  local words = {}
  if globals.config then words[#words + 1] = " --config " .. hints.quoted(globals.config) end
  if globals.store then
    words[#words + 1] = " --store " .. hints.quoted(show.url(globals.store))
  end
  if globals.key_file then words[#words + 1] = " --key-file " .. hints.quoted(globals.key_file) end
  if globals.token_file and not by_host then
    words[#words + 1] = " --token-file " .. hints.quoted(globals.token_file)
  end
  if globals.network then words[#words + 1] = " --network" end
  if globals.plain then words[#words + 1] = " --plain" end
  return table.concat(words)
end

--- Replaces `sessile` in the commands of a sentence by the name of this program and the options
--- that were typed for the store. One behind \1 is for whoever has the store (refusals.lua).
---@param text string
---@param globals table?
---@return string
function hints.fill(text, globals)
  return (text:gsub("(\1?)%f[%w/]sessile (%l+)( ?%l*)", function(host, command, after)
    if not registry.begins(command) then
      return nil -- a word of the sentence
    end
    local store = globals and registry.opens_store(command)
      and store_options(globals, host ~= "")
      or command == "config" and after == " show" and globals and globals.config
      and " --config " .. hints.quoted(globals.config) or ""
    if registry.is_pair(command .. after) then
      command, after = command .. after, "" -- a name of two words
    end
    return ("%s %s%s%s"):format(hints.program, command, store, after)
  end))
end

return hints
