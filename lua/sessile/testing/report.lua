--- report: prints conversations and contexts for a failure, one line a message.
--
-- Bytes that a terminal could take for a command are never printed.

local facts = require "sessile.facts"

local report = {}

local function clean(text)
  text = text:gsub("[%c\x7f]", " "):gsub("\xc2[\x80-\x9f]", " ")
  if not utf8.len(text) then
    text = text:gsub("[\x80-\xff]", "?")
  end
  return text
end

local function cut(text, room)
  if (utf8.len(text) or #text) <= room then
    return text
  end
  return text:sub(1, (utf8.offset(text, room) or #text + 1) - 1) .. "…"
end

local function text_of(message)
  local content = message.content
  if type(content) == "table" then
    local parts = {}
    for _, block in ipairs(content) do
      local text = type(block) == "table" and (block.text or ("<%s>"):format(block.type))
      parts[#parts + 1] = text or ""
    end
    content = table.concat(parts, " ")
  end
  local size = #(content or "")
  local shown = cut(clean(content or ""), 48)
  return size > 60 and ("%s (%d bytes)"):format(shown, size) or shown
end

--- One message as a line.
---@param message table
function report.line(message)
  local parts = {}
  for _, call in ipairs(message.tool_calls or {}) do
    parts[#parts + 1] = ("calls %s %s"):format(clean(call.id), clean(call.name or "?"))
  end
  if message.tool_call_id then
    parts[#parts + 1] = "answers " .. clean(message.tool_call_id)
  end
  local text = text_of(message)
  if text ~= "" then
    parts[#parts + 1] = ("%q"):format(text)
  end
  return ("%-10s %s"):format(message.role or "?", table.concat(parts, "  "))
end

--- A conversation, turn by turn.
---@param turns table[][]
function report.turns(turns)
  local lines, number = {}, 0
  for i, turn in ipairs(turns) do
    for j, message in ipairs(turn) do
      number = number + 1
      lines[#lines + 1] = ("  %s %08x  %s"):format(j == 1 and ("turn %-3d"):format(i) or "        ",
        number, report.line(message))
    end
    number = number + 1 -- the turn's own entry
  end
  return table.concat(lines, "\n")
end

--- A context, as a golden file holds it: no ids of what was made up, no times.
---@param context table[]
function report.context(context)
  local lines = {}
  for i, message in ipairs(context) do
    local key = facts.within(message).key or "made-up"
    lines[i] = ("%-12s %s"):format(key, report.line(message))
  end
  return table.concat(lines, "\n") .. "\n"
end

return report
