--- redact: takes secrets, addresses and paths out of text that is about to leave.
--
-- Owns: the rules and their order. The same text becomes the same placeholder everywhere in one
-- run, so that a redacted conversation still makes sense. It is a help, not a proof: what looks
-- like no secret is not found, and whoever publishes a fixture reads it first. Must never
-- change the ids that tie calls to results.

local redact = {}

-- Lines around a private key; and what stands behind a name that promises a secret.
local PEM = "%%-%%-%%-%%-%%-%s [%%u ]*PRIVATE KEY%%-%%-%%-%%-%%-"
PEM = PEM .. ".-" .. PEM
local VALUE = "[\"']?%s*[:=]%s*[\"']?([^%s\"',;&]+)"

---@class sessile.redact.rule
---@field name string     the placeholder says it: [email-1]
---@field pattern string  a Lua pattern; its first capture, or all of it, is taken out

--- The rules that ship, in the order they are used.
---@type sessile.redact.rule[]
redact.rules = {
  { name = "key", pattern = PEM:format("BEGIN", "END") },
  { name = "secret", pattern = "%f[%w]sk%-[%w_-]+" },
  { name = "secret", pattern = "%f[%w]gh[pousr]_%w+" },
  { name = "secret", pattern = "%f[%w]xox[abprs]%-[%w-]+" },
  { name = "secret", pattern = "%f[%w]AKIA%u%w+" },
  { name = "secret", pattern = "%f[%w]eyJ[%w_-]+%.[%w_-]+%.[%w_-]*" },
  { name = "secret", pattern = "[Bb]earer%s+([%w%._~+/=-]+)" },
  { name = "secret", pattern = "[Pp]assword" .. VALUE },
  { name = "secret", pattern = "[Tt]oken" .. VALUE },
  { name = "secret", pattern = "[Ss]ecret" .. VALUE },
  { name = "secret", pattern = "[Aa][Pp][Ii][_-]?[Kk][Ee][Yy]" .. VALUE },
  { name = "credentials", pattern = "://([^/%s@:]+:[^/%s@]+)@" },
  { name = "email", pattern = "[%w%._%%+-]+@[%w-]+%.[%w%.-]*%w" },
  { name = "home", pattern = "/home/([%w%._-]+)" },
  { name = "home", pattern = "/Users/([%w%._-]+)" },
  { name = "home", pattern = "\\Users\\([%w%._-]+)" },
  { name = "ip", pattern = "%f[%d]%d+%.%d+%.%d+%.%d+%f[^%d%.]" },
}

local methods = {}
methods.__index = methods

--- A run of redaction: remembers what it put for what.
---@param rules sessile.redact.rule[]?
function redact.new(rules)
  return setmetatable({
    rules = rules or redact.rules, known = {}, counts = {}, total = 0,
  }, methods)
end

-- The placeholder of a text; the same text has the same one.
local function stand_in(self, name, text)
  local known = self.known[name] or {}
  self.known[name] = known
  if not known[text] then
    self.counts[name] = (self.counts[name] or 0) + 1
    known[text] = ("[%s-%d]"):format(name, self.counts[name])
  end
  self.total = self.total + 1
  return known[text]
end

--- The text with everything that a rule finds taken out.
---@param text string
---@return string
function methods:text(text)
  for _, rule in ipairs(self.rules) do
    local out, at = {}, 1
    while true do
      local first, last, capture = text:find(rule.pattern, at)
      if not first or last < first then
        break
      end
      if capture then
        local from = text:find(capture, first, true)
        out[#out + 1] = text:sub(at, from - 1)
        local done = capture:find "^%[%a+%-%d+%]$" -- by a rule before this one
        out[#out + 1] = done and capture or stand_in(self, rule.name, capture)
        out[#out + 1] = text:sub(from + #capture, last)
      else
        out[#out + 1] = text:sub(at, first - 1)
        out[#out + 1] = stand_in(self, rule.name, text:sub(first, last))
      end
      at = last + 1
    end
    out[#out + 1] = text:sub(at)
    text = table.concat(out)
  end
  return text
end

-- Fields whose value ties things together or names a kind: they stay.
local KEPT = {
  id = true, role = true, type = true, tool_call_id = true, tool_use_id = true, name = true,
}

--- A value with every text in it redacted. Tables are copied.
function methods:value(value, field)
  if type(value) == "string" then
    return KEPT[field] and value or self:text(value)
  end
  if type(value) ~= "table" then
    return value
  end
  local copy = setmetatable({}, getmetatable(value))
  for key, inner in pairs(value) do
    rawset(copy, key, self:value(inner, key))
  end
  return copy
end

return redact
