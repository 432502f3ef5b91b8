--- prompt: a question on the last line of the screen, and its answer.
--
-- Owns: typing and editing a line. Only a typed y is a yes.

local draw = require "sessile.cli.treeview.draw"
local terminal = require "sessile.cli.terminal"

local prompt = {}

-- The start of the character before a byte, the end of the one after it.
local function left(text, at)
  return at > 0 and utf8.offset(text, -1, at + 1) - 1 or 0
end

local function right(text, at)
  return at < #text and utf8.offset(text, 2, at + 1) - 1 or at
end

--- What a key does to a line that is typed: the text, where the cursor is (bytes before it).
---@param text string
---@param at integer
---@param key string
---@return string text
---@return integer at
function prompt.edit(text, at, key)
  if key == "left" then
    return text, left(text, at)
  elseif key == "right" then
    return text, right(text, at)
  elseif key == "home" or key == "ctrl-a" then
    return text, 0
  elseif key == "end" or key == "ctrl-e" then
    return text, #text
  elseif key == "backspace" then
    local from = left(text, at)
    return text:sub(1, from) .. text:sub(at + 1), from
  elseif key == "delete" then
    return text:sub(1, at) .. text:sub(right(text, at) + 1), at
  elseif key == "ctrl-u" then
    return text:sub(at + 1), 0
  elseif key == "ctrl-k" then
    return text:sub(1, at), at
  elseif key == "ctrl-w" then
    local from = #text:sub(1, at):gsub("%s+$", ""):gsub("%S+$", "")
    return text:sub(1, from) .. text:sub(at + 1), from
  elseif utf8.len(key) == 1 and terminal.safe(key) == key then
    return text:sub(1, at) .. key .. text:sub(at + 1), at + #key
  end
  return text, at
end

--- Asks for a line; nil when it was cancelled (Esc), or the terminal is gone.
---@param view table     with screen and paint()
---@param label string   safe
---@param text string?   what is there already
---@param history string[]?  ↑ and ↓ go through it
---@return string?
function prompt.line(view, label, text, history)
  text = text or ""
  local at, past = #text, #(history or {}) + 1
  while true do
    view:paint()
    local rows, columns = view.screen:size()
    draw.prompt(view.screen, rows, columns, label, text, at)
    view.screen:refresh()
    local key = view.screen:key()
    if key == "enter" or key == "escape" or key == "closed" then
      view.screen:cursor()
      view.gone = view.gone or key == "closed"
      return key == "enter" and text or nil
    elseif history and (key == "up" or key == "down") then
      past = math.max(math.min(past + (key == "up" and -1 or 1), #history + 1), 1)
      text = history[past] or ""
      at = #text
    elseif key then
      text, at = prompt.edit(text, at, key)
    end
  end
end

--- Asks whether to do something; only y does it.
---@param view table
---@param question string  without its question mark
---@return boolean
function prompt.sure(view, question)
  while true do
    view:paint()
    local rows, columns = view.screen:size()
    draw.prompt(view.screen, rows, columns, question .. "? y/n ")
    view.screen:refresh()
    local key = view.screen:key()
    if key ~= "resize" and key ~= "resume" and key then
      view.screen:cursor()
      view.gone = view.gone or key == "closed"
      return key == "y" or key == "Y"
    end
  end
end

return prompt
