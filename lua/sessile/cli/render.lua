--- render: messages as text.
--
-- Owns: how content, calls and results look as text. Must never return stored text unchanged: all
-- of it goes through terminal.safe or terminal.line.

local answers = require "sessile.answers"
local sessile = require "sessile"
local speaker = require "sessile.speaker"
local terminal = require "sessile.cli.terminal"

local render = {}

local ROLE_COLOUR = {
  system = "yellow", developer = "yellow", user = "green", assistant = "cyan", model = "cyan",
  tool = "blue", ["function"] = "blue",
}

--- The engine's fields of a message (key, tokens, time, json), even if the message has fields of
--- the same names.
render.facts = require("sessile.facts").within

local function block_text(block)
  if type(block) ~= "table" then
    return nil
  end
  local kind = block.type
  if kind == "text" and type(block.text) == "string" then
    return block.text
  elseif kind == "thinking" and type(block.thinking) == "string" then
    return "(thinking) " .. block.thinking
  elseif kind == "tool_result" then
    return render.text { content = block.content }
  elseif kind == "tool_use" then
    return nil
  end
  return ("[%s]"):format(tostring(kind or "block"))
end

--- The text of a message, unchanged: not safe for a terminal.
---@param message table
---@return string
function render.text(message)
  local content = message.content
  if type(content) == "string" then
    return content
  elseif type(content) ~= "table" then
    return ""
  end
  local parts = {}
  for _, block in ipairs(content) do
    parts[#parts + 1] = block_text(block)
  end
  return table.concat(parts, "\n")
end

-- The arguments of a call as text: some formats have a text, others an object.
local function arguments_text(arguments)
  if type(arguments) == "table" then
    local ok, text = pcall(sessile.encode, arguments)
    arguments = ok and text or nil
  end
  return type(arguments) == "string" and arguments or "…"
end

--- The calls of a message: {{id, name, arguments}, …}, arguments as text.
---@param message table
---@return table[]
function render.calls(message)
  local calls = {}
  if type(message.tool_calls) == "table" then
    for _, call in ipairs(message.tool_calls) do
      if type(call) == "table" then
        -- In OpenAI's format name and arguments are one level deeper.
        local named = type(call["function"]) == "table" and call["function"] or call
        calls[#calls + 1] = {
          id = call.id,
          name = type(named.name) == "string" and named.name or "?",
          arguments = arguments_text(named.arguments),
        }
      end
    end
  end
  if type(message.content) == "table" then
    for _, block in ipairs(message.content) do
      if type(block) == "table" and block.type == "tool_use" then
        local name = type(block.name) == "string" and block.name or "?"
        calls[#calls + 1] = { id = block.id, name = name, arguments = arguments_text(block.input) }
      end
    end
  end
  return calls
end

--- A message on one line: its first words, and the tools it calls.
---@param message table
---@param columns integer
---@return string
function render.brief(message, columns)
  local text = terminal.line(render.text(message):sub(1, 2000))
  local names = {}
  for i, call in ipairs(render.calls(message)) do
    names[i] = terminal.line(call.name)
  end
  local calls = #names > 0 and "→ " .. table.concat(names, ", ") or ""
  if text == "" then
    return terminal.cut(calls, columns)
  elseif calls == "" then
    return terminal.cut(text, columns)
  end
  calls = terminal.cut(calls, math.max(columns // 2, 12))
  return terminal.cut(text, math.max(columns - terminal.width(calls) - 2, 10)) .. "  " .. calls
end

-- Whether it tells of an error, or one of its results does.
local function is_error(message)
  local blocks = speaker.of(message) == "tool" and message.role == "user" and message.content or {}
  for _, block in ipairs(blocks) do
    if block.is_error == true then
      return true
    end
  end
  return message.is_error == true or message.isError == true
end

--- "user", "tool read_file (error)", or "assistant (interrupted)" for the part of an answer that
--- arrived.
---@param message table
---@return string
function render.role(message)
  local role = speaker.of(message)
  if (role == "tool" or role == "function") and type(message.name) == "string" then
    role = role .. " " .. terminal.line(message.name)
  end
  if is_error(message) then
    role = role .. " (error)"
  end
  local metadata = type(message.metadata) == "table" and message.metadata or {}
  if type(metadata.kind) == "string" then
    role = role .. " (" .. terminal.line(metadata.kind) .. ")"
  end
  if metadata.interrupted == true then
    role = role .. " (interrupted)"
  end
  return role
end

--- The colour of a role.
function render.colour(message)
  return ROLE_COLOUR[speaker.of(message)] or "bold"
end

--- A message in full: a heading, the text, the calls.
---@param message table
---@param paint fun(text: string, colour: string): string
---@param now integer
---@param columns integer?  wrap at this width
---@return string
function render.message(message, paint, now, columns)
  local facts = render.facts(message)
  local heading = { paint(render.role(message), render.colour(message)) }
  if facts.time and facts.time > 0 then
    heading[#heading + 1] = paint(terminal.ago(facts.time, now), "dim")
  end
  if facts.tokens then
    heading[#heading + 1] = paint(terminal.number(facts.tokens) .. " tokens", "dim")
  end
  local out = {
    ("%s  %s"):format(paint(facts.key or "--------", "dim"), table.concat(heading, "  ")),
  }
  local function add(lines, colour)
    lines = terminal.fold(lines, columns and columns - 2)
    for line in (lines .. "\n"):gmatch "(.-)\n" do
      out[#out + 1] = "  " .. (colour and line ~= "" and paint(line, colour) or line)
    end
  end
  local reasoning = answers.reasoning(message)
  if reasoning then
    add((terminal.safe("(thinking) " .. reasoning):gsub("%s+$", "")), "dim")
  end
  local text = terminal.safe(render.text(message)):gsub("%s+$", "")
  if text ~= "" then
    add(text)
  end
  for _, call in ipairs(render.calls(message)) do
    add(("→ %s(%s)"):format(terminal.line(call.name), terminal.line(call.arguments)))
  end
  return table.concat(out, "\n") .. "\n"
end

-- The counts of a row of session:log, and the words for them: JSON has `lost` for what was dropped.
local DISPOSITIONS = {
  { "covered" }, { "replaced" }, { "lost", "dropped" }, { "undone" }, { "written", "inserted" },
  { "restored" },
}

--- What a compaction did with messages: "3 covered, 1 dropped".
---@param row sessile.LogRow
---@return string  "" if it did nothing
function render.dispositions(row)
  local parts = {}
  for _, of in ipairs(DISPOSITIONS) do
    local n = row[of[1]] or 0
    if n > 0 then
      parts[#parts + 1] = ("%s %s"):format(terminal.number(n), of[2] or of[1])
    end
  end
  return table.concat(parts, ", ")
end

--- A message for --json: its JSON, and the engine's fields.
---@param app sessile.cli.app
---@param message table
---@return table
function render.json(app, message)
  local facts = render.facts(message)
  return {
    key = facts.key, time = facts.time, tokens = facts.tokens,
    message = app.raw(facts.json),
  }
end

--- Messages for --json.
---@param app sessile.cli.app
---@param messages table[]
---@return table
function render.list(app, messages)
  local rows = {}
  for i, message in ipairs(messages) do
    rows[i] = render.json(app, message)
  end
  return app.array(rows)
end

return render
