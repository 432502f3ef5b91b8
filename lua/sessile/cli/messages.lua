--- messages: what a person or a program typed, as messages.
--
-- Owns: what is a message in JSON, and what is plain text. Must never encode a message again.

local hints = require "sessile.cli.hints"
local sessile = require "sessile"
local span = require("sessile.core").span

local messages = {}

--- The roles that `--role` may name.
messages.roles = { "user", "assistant", "system", "developer", "model" }

-- The messages in a list of JSON texts; nil if one is no object with a role.
local function all_of(texts)
  local list = {}
  for i, raw in ipairs(texts) do
    local members, fields = span.object(raw)
    if not (members and span.valid(raw) and fields.role and span.string(fields.role)) then
      return nil
    end
    list[i] = sessile.json(raw)
  end
  return #list > 0 and list or nil
end

-- A message, a list of messages, or a message on each line; nil if it is anything else.
local function from_json(text)
  local first = text:match "^%s*([%[{])"
  if not first then
    return nil
  elseif first == "[" then
    return all_of(span.array(text) or {})
  elseif span.valid(text) then
    return all_of { text }
  end
  local lines = {}
  for line in text:gmatch "[^\n]+" do
    lines[#lines + 1] = line:find "%S" and line or nil
  end
  return all_of(lines)
end

--- The messages in a text: those that it holds as JSON, unless a role was typed; else the text as
--- one message.
---@param text string
---@param role string?
---@return table[]
function messages.of(text, role)
  return not role and from_json(text) or { { role = role or "user", content = text } }
end

--- The argument and the option of commands that take messages.
messages.argument = { "text", "the message, or messages as JSON; `-` or nothing: standard input",
  "?" }
messages.option = { "--role ROLE", "the text is one message of this role (default: user)",
  choices = messages.roles }
messages.about = [[
    JSON is taken as it is: a message with a role, a list of them, or one on each line. Any
    other text is one message; with --role, JSON is text too.]]

--- The messages that were typed, or come on standard input without its last newline.
---@param app sessile.cli.app
---@param args table
---@param command string
---@return table[]
function messages.typed(app, args, command)
  local text = args.text
  if not text or text == "-" then
    text = require("sessile.cli.common").typed_text(app)
    if text == "" then
      app.fail("standard input was empty: there is nothing to append", "EUSAGE",
        ("Give the text: sessile %s %s TEXT"):format(command, hints.id(args.id)))
    end
  end
  return messages.of(text, args.role)
end

return messages
