--- redact: takes secrets, addresses and paths out of text that is about to leave.
--
-- Owns: one run over many texts. The same text becomes the same placeholder everywhere in it,
-- ids too, so that a redacted conversation still makes sense and calls still have their
-- results. It is a help, not a proof: what looks like no secret is not found, and whoever
-- publishes what came of it reads it first. What is looked for: redact_rules.lua.

local rules = require "sessile.redact_rules"
local span = require "sessile.import.span"

local redact = {}

--- The rules that ship, in the order they are used.
redact.rules = rules.shipped

--- Rules of one's own, read from the text of a file; nil and a sentence.
redact.read_rules = rules.read

local methods = {}
methods.__index = methods

--- A run of redaction: remembers what it put for what. `more`: rules of one's own, used after
--- those that ship.
---@param more sessile.redact.rule[]?
function redact.new(more)
  local list = table.move(rules.shipped, 1, #rules.shipped, 1, {})
  table.move(more or {}, 1, more and #more or 0, #list + 1, list)
  return setmetatable({
    rules = list, known = {}, spread = {}, counts = {}, places = {}, total = 0,
  }, methods)
end

-- No more of them are looked for everywhere: each is a search through every text.
local MOST_SPREAD = 500

-- The placeholder of a text; the same text has the same one.
local function stand_in(self, rule, text)
  local name = rule.name
  local known = self.known[name] or {}
  self.known[name] = known
  if not known[text] then
    self.counts[name] = (self.counts[name] or 0) + 1
    known[text] = ("[%s-%d]"):format(name, self.counts[name])
    if rule.spreads and #self.spread < MOST_SPREAD
      and (rules.is_random(text) or #text >= 8 and text:find "%d" and text:find "%a") then
      self.spread[#self.spread + 1] = { text = text, put = known[text], name = name }
    end
  end
  self.total = self.total + 1
  self.places[name] = (self.places[name] or 0) + 1
  return known[text]
end

-- Already taken out, by a rule before this one.
local function is_done(value)
  return value:find "%[%l[%l_]*%-%d+%]" ~= nil
end

-- Where the next match of a rule is: all of it, and the part that goes.
local function next_match(rule, text, lower, at)
  if rule.find then
    local from, to = rule.find(text, at)
    return from, to, from, to
  end
  local captures = table.pack((rule.fold and lower or text):find(rule.pattern, at))
  if not captures[1] then
    return nil
  end
  return captures[1], captures[2], captures[3], captures[captures.n] - 1
end

local function use(self, rule, text)
  local lower = rule.fold and text:lower()
  local out, at, copied = {}, 1, 1
  while at <= #text do
    local first, last, from, to = next_match(rule, text, lower, at)
    if not first or last < first then
      break
    end
    local value = text:sub(from, to)
    if to >= from and not is_done(value) and (not rule.test or rule.test(value)) then
      out[#out + 1] = text:sub(copied, from - 1)
      out[#out + 1] = stand_in(self, rule, value)
      copied = to + 1
    end
    at = math.max(last, first) + 1
  end
  if copied == 1 then
    return text
  end
  out[#out + 1] = text:sub(copied)
  return table.concat(out)
end

-- What a rule found anywhere, wherever it stands.
local function use_known(self, text)
  for _, one in ipairs(self.spread) do
    local at = text:find(one.text, 1, true)
    if at then
      local out, copied = {}, 1
      while at do
        out[#out + 1] = text:sub(copied, at - 1)
        out[#out + 1] = one.put
        self.total, self.places[one.name] = self.total + 1, self.places[one.name] + 1
        copied = at + #one.text
        at = text:find(one.text, copied, true)
      end
      out[#out + 1] = text:sub(copied)
      text = table.concat(out)
    end
  end
  return text
end

--- The text with everything that a rule finds taken out.
---@param text string
---@return string
function methods:text(text)
  for _, rule in ipairs(self.rules) do
    if not rule.needs or text:find(rule.needs, 1, true) then
      text = use(self, rule, text)
    end
  end
  return #self.spread > 0 and use_known(self, text) or text
end

-- Fields that name a kind: they stay.
local KEPT = { role = true, type = true }

local SECRET = { name = "secret", spreads = true }

-- A string that is the value of a field, whose name may promise a secret.
local function field_text(self, text, field)
  if KEPT[field] then
    return text
  end
  local promise = field and rules.promise(field)
  if text ~= "" and not is_done(text) and (promise == "secret" and rules.is_value(text, field)
    or promise == "perhaps" and rules.is_random(text)) then
    local clean = self:text(text) -- "Bearer …": the part that is one, when a rule knows it
    return clean ~= text and clean or stand_in(self, SECRET, text)
  end
  if text:find "^%s*[{%[]" and span.valid(text) then
    return self:json(text) -- the arguments of a call are JSON in a string
  end
  return self:text(text)
end

--- JSON text with every string in it redacted, names of fields too; what is not touched
--- stays token for token as it was.
---@param raw string
---@param field string?  the name that the value stands behind
---@return string
function methods:json(raw, field)
  local kind = span.kind(raw)
  if kind == "object" then
    local members = span.object(raw)
    if not members then
      return raw
    end
    local parts = {}
    for i, member in ipairs(members) do
      local key = self:text(member.key)
      parts[i] = ("%s:%s"):format(key == member.key and member.raw_key or span.quote(key),
        self:json(member.raw, member.key))
    end
    return "{" .. table.concat(parts, ",") .. "}"
  elseif kind == "array" then
    local parts = span.array(raw)
    if not parts then
      return raw
    end
    for i, one in ipairs(parts) do
      parts[i] = self:json(one, field)
    end
    return "[" .. table.concat(parts, ",") .. "]"
  elseif kind == "number" and field and field:lower():find "passw" then
    return span.quote(stand_in(self, SECRET, raw))
  end
  local text = kind == "string" and span.string(raw)
  if not text then
    return raw
  end
  local clean = field_text(self, text, field)
  return clean == text and raw or span.quote(clean)
end

--- A value with every text in it redacted. Tables are copied.
function methods:value(value, field)
  if type(value) == "string" then
    return field_text(self, value, type(field) == "string" and field or nil)
  end
  if type(value) ~= "table" then
    return value
  end
  local copy = setmetatable({}, getmetatable(value))
  for key, inner in pairs(value) do
    local name = type(key) == "string" and self:text(key) or key
    rawset(copy, name, self:value(inner, type(key) == "string" and key or field))
  end
  return copy
end

--- From here on it counts anew; what was found before keeps its placeholder and is taken out
--- wherever it stands. A first pass finds, a second one writes.
function methods:restart()
  self.places, self.total = {}, 0
end

--- What was taken out: {{name, values, places}, …} by name.
---@return {name: string, values: integer, places: integer}[]
function methods:report()
  local rows = {}
  for name, places in pairs(self.places) do
    rows[#rows + 1] = { name = name, values = self.counts[name], places = places }
  end
  table.sort(rows, function(a, b) return a.name < b.name end)
  return rows
end

return redact
