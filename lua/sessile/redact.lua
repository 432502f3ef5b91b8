--- redact: replaces secrets, addresses and paths in texts that are exported.
--
-- One redaction covers many texts: the same text, also an id, gets the same placeholder everywhere,
-- so that the conversation still makes sense and calls keep their results. Redaction is a help, not
-- a proof: it cannot find a secret that does not look like one, so read the result before you
-- publish it. The rules are in redact_rules.lua.

local core = require "sessile.core"
local dialect = require "sessile.dialect"
local rules = require "sessile.redact_rules"

local table, utf8 = dialect.table, dialect.utf8

local span = core.span

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
    rules = list, known = {}, spread = {}, counts = {}, values = {}, places = {}, total = 0,
    issued = {}, foreign = {},
  }, methods)
end

-- No more of them are looked for everywhere: each is a search through every text.
local MOST_SPREAD = 500

-- A placeholder that nothing has, and that no text says of itself.
local function new_placeholder(self, name)
  local put
  repeat
    self.counts[name] = (self.counts[name] or 0) + 1
    put = ("[%s-%d]"):format(name, self.counts[name])
  until not self.foreign[put]
  self.issued[put] = true
  return put
end

-- The placeholder of a text; the same text has the same one.
local function stand_in(self, rule, text)
  local name = rule.name
  local known = self.known[name] or {}
  self.known[name] = known
  if not known[text] then
    known[text] = new_placeholder(self, name)
    self.values[name] = (self.values[name] or 0) + 1
    if rule.spreads and #self.spread < MOST_SPREAD
      and (rules.is_random(text) or #text >= 8 and text:find "%d" and text:find "%a") then
      self.spread[#self.spread + 1] = { text = text, put = known[text], name = name }
    end
  end
  self.total = self.total + 1
  self.places[name] = (self.places[name] or 0) + 1
  return known[text]
end

local PLACEHOLDER = "%[%l[%l_]*%-%d+%]"

-- What a text itself says that looks like a placeholder is none.
local function note_foreign(self, text)
  if text:find("[", 1, true) then
    for put in text:gmatch(PLACEHOLDER) do
      self.foreign[put] = true
    end
  end
end

-- Already taken out, by a rule before this one.
local function is_done(self, value)
  for put in value:gmatch(PLACEHOLDER) do
    if self.issued[put] and not self.foreign[put] then
      return true
    end
  end
  return false
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
    if to >= from and not is_done(self, value) and (not rule.test or rule.test(value)) then
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
        self.total, self.places[one.name] = self.total + 1, (self.places[one.name] or 0) + 1
        copied = at + #one.text
        at = text:find(one.text, copied, true)
      end
      out[#out + 1] = text:sub(copied)
      text = table.concat(out)
    end
  end
  return text
end

-- Nothing shorter is read as base64, and no more of it than this.
local ENCODED = "%f[%w+/_-]" .. ("[%w+/_-]"):rep(20) .. "[%w+/_-]*=*"
local MOST_ENCODED, MOST_LAYERS = 64 * 1024, 3

-- Whether the bytes are a text, which base64 of pictures and hashes is not.
local function is_text(bytes)
  return utf8.len(bytes) ~= nil and not bytes:find "[%z\1-\8\14-\31\127]"
end

-- The bytes that base64 stands for, also when its end is cut off or not as it should be.
local function bytes_of(text)
  local letters = text:gsub("[-_]", { ["-"] = "+", _ = "/" }):gsub("[^%w+/]", "")
  return core.base64_bytes(letters .. ("="):rep(-#letters % 4))
    or core.base64_bytes(letters:sub(1, #letters - #letters % 4))
end

-- Whether base64 holds a text in which something is found.
local function hides_something(self, encoded)
  if not is_text((bytes_of(encoded:sub(1, 20)):gsub("[\192-\255][\128-\191]*$", ""))) then
    return false
  end
  local bytes = bytes_of(encoded:sub(1, MOST_ENCODED))
  if not is_text((bytes:gsub("[\192-\255][\128-\191]*$", ""))) then
    return false
  end
  local probe = redact.new()
  probe.rules, probe.layer = self.rules, (self.layer or 0) + 1
  return probe:text(bytes) ~= bytes
end

local ENCODED_RULE = { name = "secret", spreads = true }

local function use_encoded(self, text)
  if #text < 20 or (self.layer or 0) >= MOST_LAYERS then
    return text
  end
  return (text:gsub(ENCODED, function(encoded)
    return hides_something(self, encoded) and stand_in(self, ENCODED_RULE, encoded) or nil
  end))
end

--- The text with everything that a rule finds taken out.
---@param text string
---@return string
function methods:text(text)
  note_foreign(self, text)
  for _, rule in ipairs(self.rules) do
    if not rule.needs or text:find(rule.needs, 1, true) then
      text = use(self, rule, text)
    end
  end
  text = use_encoded(self, text)
  return #self.spread > 0 and use_known(self, text) or text
end

-- Fields that name a kind: they stay.
local KEPT = { role = true, type = true }

-- Names of fields by which a message or an entry is read: they stay too, whatever rules of one's
-- own say.
local FIELDS = {}
for word in ([[role type content text id name arguments function input output tool_calls
  tool_call_id toolCallId toolName is_error isError metadata kind model usage timestamp author
  thinking image source data message put n covers replaces context policy reason summary head
  first label off entries from at line lines part b64 imported]]):gmatch "%S+" do
  FIELDS[word] = true
end

local SECRET = { name = "secret", spreads = true }

-- A string that is the value of a field, whose name may promise a secret.
local function field_text(self, text, field)
  if KEPT[field] then
    return text
  end
  local promise = field and rules.promise(field)
  if text ~= "" and not is_done(self, text)
    and (promise == "secret" and rules.is_field_value(text, field)
      or promise == "perhaps" and rules.is_random(text)) then
    local clean = self:text(text) -- "Bearer …": the part that is one, when a rule knows it
    local around = clean:gsub(PLACEHOLDER, function(put) return self.issued[put] and "" or nil end)
    return clean ~= text and (around:find "^%a*%s*$" or not rules.is_whole(field)) and clean
      or stand_in(self, SECRET, text)
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
      local key = FIELDS[member.key] and member.key or self:text(member.key)
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
  elseif field == "b64" then -- a line of a recording that was no UTF-8
    local bytes = bytes_of(text)
    local clean = self:text(bytes)
    return clean == bytes and raw or span.quote(core.base64(clean))
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

--- Restarts the count at 1; what was found before keeps its placeholder and is taken out
--- wherever it stands. A first pass finds, a second one writes.
function methods:restart()
  self.places, self.total = {}, 0
  local instead = {}
  for name, known in pairs(self.known) do
    for text, put in pairs(known) do
      if self.foreign[put] then -- a text that came later says so itself
        known[text] = new_placeholder(self, name)
        instead[put] = known[text]
      end
    end
  end
  for _, one in ipairs(self.spread) do
    one.put = instead[one.put] or one.put
  end
end

--- What was taken out: {{name, values, places}, …} by name.
---@return {name: string, values: integer, places: integer}[]
function methods:report()
  local rows = {}
  for name, places in pairs(self.places) do
    rows[#rows + 1] = { name = name, values = self.values[name], places = places }
  end
  table.sort(rows, function(a, b) return a.name < b.name end)
  return rows
end

return redact
