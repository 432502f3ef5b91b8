--- redaction: --redact and --redact-rules, and the report about them.
--
-- Must never claim that no secret is left.

local hints = require "sessile.cli.hints"
local redact = require "sessile.redact"
local terminal = require "sessile.cli.terminal"

local redaction = {}

-- The largest file of rules.
local MOST_BYTES = 1000000

--- The value of `redact` for session:export: nil without --redact. Nil and a sentence if the rules
--- cannot be read.
---@param args table
---@return boolean|table|nil rules
---@return string? message
---@return string? code
---@return string? step
function redaction.read(args)
  local path = args.redact_rules
  if not path then
    return args.redact or nil
  end
  local file <close>, why = io.open(path, "rb")
  local text = file and file:read(MOST_BYTES)
  if not text then
    return nil, ("%s cannot be read: %s"):format(hints.shown(path),
      (why or "it is empty, or no file"):gsub("^.*: ", "")), "ENOTFOUND", "Name a file of rules."
  end
  local rules, message = redact.read_rules(text, hints.shown(path))
  if not rules then
    return nil, message, "EINVALID",
      'A rule is { name = "project", pattern = "a Lua pattern" }; see: sessile help export'
  end
  return rules
end

local MANY = {
  credentials = "credentials", home = "homes", key = "private keys", ip = "IP addresses",
  email = "e-mail addresses", secret = "secrets",
}
local SINGLE = {
  home = "home", key = "private key", ip = "IP address",
  email = "e-mail address", secret = "secret",
}

--- "Taken out: 3 secrets in 5 places, 1 e-mail address in 2. …"
---@param report {name: string, values: integer, places: integer}[]
---@return string
function redaction.sentence(report)
  local parts = {}
  for i, row in ipairs(report) do
    local word = row.values == 1 and SINGLE[row.name] or MANY[row.name] or row.name
    parts[i] = ("%s %s in %s place%s"):format(terminal.number(row.values), word,
      terminal.number(row.places), row.places == 1 and "" or "s")
  end
  return (#parts > 0 and "Taken out: " .. table.concat(parts, ", ")
    or "Nothing was found to take out")
    .. ". Anything of another form is still there: read it before you share it."
end

return redaction
