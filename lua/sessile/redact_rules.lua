--- redact_rules: the patterns of secrets, addresses and home folders.
--
-- The rules that ship, the reader for a user's own rules, and the names that announce a secret. A
-- file of rules is read without any function in reach, not even the methods of strings, so that it
-- cannot run code.

local dialect = require "sessile.dialect"

local rules = {}

---@class sessile.redact.rule
---@field name string      the placeholder says it: [email-1]
---@field pattern string?  a Lua pattern; its capture, or all of it, is taken out
---@field fold boolean?    letters of the text are lower case when it is matched
---@field needs string?    text without these characters is not looked at
---@field test (fun(value: string, text: string, from: integer): boolean)?
---@field find (fun(text: string, at: integer): integer?, integer?)?  in the place of a pattern
---@field spreads boolean? what was found once is taken out wherever it stands

-- ---------------------------------------------------------------- values and names

-- Bits a character, by how often each occurs.
local function entropy(value)
  local counts, sum = {}, 0
  for i = 1, #value do
    local byte = value:byte(i)
    counts[byte] = (counts[byte] or 0) + 1
  end
  for _, n in pairs(counts) do
    sum = sum - n / #value * math.log(n / #value, 2)
  end
  return sum
end

--- Whether nobody would have typed this: letters and digits without order.
---@param value string
---@return boolean
function rules.is_random(value)
  return #value >= 16 and value:find "%d" ~= nil and value:find "%a" ~= nil
    and not value:find "%s" and entropy(value) >= 3.3
end

local STRICT = {
  "passw", "passphrase", "^pass$", "[_.-]pass$", "^pwd$", "[_.-]pwd$", "secret",
  "api[_-]?key$", "access[_-]?key$", "private[_-]?key$", "^token$", "[_.-]token$",
  "[a-z]token$", "credential", "^authorization$", "^cookie$", "^set%-cookie$",
  "connection[_-]?string$",
}

--- What a name says of its value: "secret", "perhaps" (when it looks random), or nil.
---@param name string
---@return "secret"|"perhaps"|nil
function rules.promise(name)
  local lower = name:lower()
  for _, pattern in ipairs(STRICT) do
    if lower:find(pattern) then
      return "secret"
    end
  end
  return (lower:find "key$" or lower:find "auth$") and "perhaps" or nil
end

-- What stands behind such a name in source code, and is none.
local WORDS = {}
for word in ([[string number boolean str int bool bytes any unknown void object null nil none
  undefined true false required optional text required: function const let var new return await
  process.env os.environ bearer basic]]):gmatch "%S+" do
  WORDS[word] = true
end

--- Whether a value behind the name of a secret is a secret: not a type, a call, a variable.
---@param value string
---@param name string
---@return boolean
function rules.is_value(value, name)
  if value:find "^%d%d?%d?%d?%d?$" and not name:lower():find "pass" then
    return false -- token: 5
  end
  local word = value:lower():gsub("[%)%]}?|]+$", "")
  return word ~= "" and not WORDS[word] and not value:find "^[%a_][%w_.]*[%(%[]"
    and not value:find "^process%.env" and not value:find "^os%.environ"
    and not value:find "^[%$<{%(%[*|!=]" and not value:find "^%p+$"
end

--- The same of the value of a field, which is there whole: what refers to a secret is none.
---@param value string
---@param name string
---@return boolean
function rules.is_field_value(value, name)
  local is_reference = value:find "^%$%u[%u%d_]*$" or value:find "^%${[^}]*}$"
    or value:find "^%$%([^)]*%)$" or value:find "^<[^>]*>$" or value:find "^{{[^}]*}}$"
    or value:find "^%[%u[%u ]*%]$" or value:find "^[%a_][%w_.]*%([^)]*%)$"
    or value:find "^process%.env%.[%w_]+$" or value:find "^os%.environ"
  return not is_reference and not WORDS[value:lower()] and not value:find "^%p+$"
    and (name:lower():find "pass" ~= nil or not value:find "^%d%d?%d?%d?%d?$")
end

--- Whether all of the value is the secret, and not only a part, as of a cookie.
---@param name string
---@return boolean
function rules.is_whole(name)
  local lower = name:lower()
  return lower:find "pass" ~= nil or lower:find "secret" ~= nil or lower:find "token" ~= nil
    or lower:find "key" ~= nil
end

-- ---------------------------------------------------------------- the rules that ship

local function at_least(n)
  return function(value)
    return #value >= n
  end
end

-- A private key, to its end; one that was cut off, to the end of the text.
local function private_key(text, at)
  local from, head = text:find("%-%-%-%-%-BEGIN [%u%d ]*PRIVATE KEY[%u ]*%-%-%-%-%-", at)
  if not from then
    return nil
  end
  local _, last = text:find("-----END", head, true)
  local _, stop = text:find("^[%u%d ]*%-%-%-%-%-", (last or #text) + 1)
  return from, stop or last or #text
end

-- A JSON web token: three parts. A run of letters without the dots is looked at once.
local function web_token(text, at)
  while true do
    local from, to = text:find("%f[%w]eyJ[%w_-]+", at)
    if not from then
      return nil
    end
    local _, stop = text:find("^%.[%w_-]+%.[%w_-]*", to + 1)
    if stop then
      return from, stop
    end
    at = to + 1
  end
end

-- A name and what makes the rest of the line its value. The value is looked at only where the
-- name promises something: else a text of nothing but "a=" would be read once for each.
local ASSIGNS = "%f[%w_.-]([%w_.-]+)[\"'\\]*%s?%s?[:=]+>?%s?%s?[\\]*([\"']?)()"

-- No value is longer: what is behind it stays.
local LONGEST = 4096

-- The last place of the value that begins at `from`, behind that quote or none.
local function value_end(text, from, quote)
  local rest = text:sub(from, from + LONGEST - 1)
  local stop = rest:find "[%s\"',;&]" or #rest + 1
  if quote ~= "" then
    local close = rest:find(quote, 1, true)
    if close and close < (rest:find("\n", 1, true) or LONGEST) then
      stop = close
    end
  end
  -- In a text that was quoted once more, an escape ends the value.
  local escape = rest:sub(1, stop - 1):find "\\[nrtbfu\"'\\/]"
  if not escape and rest:sub(stop - 1, stop - 1) == "\\" then
    escape = stop - 1
  end
  return from + (escape or stop) - 2
end

local function assigned(text, at)
  while true do
    local first, _, name, quote, from = text:find(ASSIGNS, at)
    if not first then
      return nil
    end
    local promise = rules.promise(name)
    if promise then
      local to = value_end(text, from, quote)
      local value = text:sub(from, to)
      if promise == "secret" and (rules.is_value(value, name)
          or quote ~= "" and value:find "^[%$!*|=(%[{<]" and rules.is_field_value(value, name))
        or promise == "perhaps" and rules.is_random(value) then
        return from, to
      end
    end
    at = math.max(from, first + 1) -- a = b = c: the value may be a name
  end
end

local function is_ipv4(value)
  for part in value:gmatch "%d+" do
    if tonumber(part) > 255 then
      return false
    end
  end
  return not value:find "^127%." and value ~= "0.0.0.0"
end

local function is_ipv6(value)
  local _, colons = value:gsub(":", "")
  local _, groups = value:gsub("%x+", "")
  return value:find "%x%x%x%x?%x?" ~= nil and (colons == 7 and groups == 8
    or value:find "::" ~= nil and groups >= 3 and colons <= 7)
end

local function is_home(value)
  return value ~= "Shared" and value ~= "Public" and not value:find "^[%.%*%$<{%[]"
end

local HOME = "()[^%s/\\\"'`<>|:;,)%]}]+()"

--- In the order in which they are used.
---@type sessile.redact.rule[]
rules.shipped = {
  { name = "key", needs = "PRIVATE KEY", find = private_key },
  { name = "secret", needs = "sk-", pattern = "%f[%w]sk%-[%w_-]+", test = at_least(8) },
  { name = "secret", needs = "sk_", pattern = "%f[%w][sr]k_%l+_%w+", test = at_least(16) },
  { name = "secret", needs = "gh", pattern = "%f[%w]gh[pousr]_%w+" },
  { name = "secret", needs = "github_pat_", pattern = "%f[%w]github_pat_[%w_]+" },
  { name = "secret", needs = "glpat-", pattern = "%f[%w]glpat%-[%w_-]+" },
  { name = "secret", needs = "npm_", pattern = "%f[%w]npm_%w+", test = at_least(30) },
  { name = "secret", needs = "hf_", pattern = "%f[%w]hf_%w+", test = at_least(20) },
  { name = "secret", needs = "pypi-", pattern = "%f[%w]pypi%-[%w_-]+", test = at_least(30) },
  { name = "secret", needs = "SG.", pattern = "%f[%w]SG%.[%w_-]+%.[%w_-]+" },
  { name = "secret", needs = "AIza", pattern = "%f[%w]AIza[%w_-]+", test = at_least(30) },
  { name = "secret", needs = "ya29.", pattern = "%f[%w]ya29%.[%w_-]+" },
  { name = "secret", needs = "xox", pattern = "%f[%w]xox[abeprs]%-[%w-]+" },
  { name = "secret", needs = "hooks.slack.com", pattern = "hooks%.slack%.com/services/()[%w/]+()" },
  { name = "secret", needs = "A", pattern = "%f[%w]A[KS]IA%u[%u%d]+", test = at_least(16) },
  { name = "secret", needs = "eyJ", find = web_token },
  { name = "secret", needs = "earer", pattern = "[Bb]earer%s+()[%w%._~+/=-]+()",
    test = at_least(12) },
  { name = "secret", needs = "asic ", pattern = "[Bb]asic%s+()[%w+/=]+()", test = rules.is_random },
  { name = "credentials", needs = "://", pattern = "://()[^/%s@:]*:[^/%s@]+()@" },
  { name = "secret", find = assigned },
  { name = "email", needs = "@",
    pattern = "%f[%w%._%%+\128-\255-][%w%._%%+\128-\255-]+@[%w%.\128-\255-]*[%w\128-\255]%.%a%a+" },
  { name = "home", needs = "home", pattern = "[/\\]home[/\\]+" .. HOME, test = is_home },
  { name = "home", needs = "Users", pattern = "[/\\]Users[/\\]+" .. HOME, test = is_home },
  { name = "ip", needs = ".", pattern = "%f[%w%.]%d+%.%d+%.%d+%.%d+%f[^%d%.]", test = is_ipv4 },
  { name = "ip", needs = ":", pattern = "%f[%w:]%x*:[%x:]+%f[^%w:]", test = is_ipv6 },
}

for _, rule in ipairs(rules.shipped) do
  rule.spreads = rule.name == "secret" or rule.name == "credentials"
end

-- ---------------------------------------------------------------- rules of one's own

-- The items of a pattern that repeat without a bound, and the place of its captures.
local function survey(pattern)
  local repeats, captures, at = 0, {}, 1
  while at <= #pattern do
    local c = pattern:sub(at, at)
    if c == "%" then
      local letter = pattern:sub(at + 1, at + 1)
      at = at + (letter == "b" and 4 or 2)
      c = letter == "f" and pattern:sub(at, at) or ""
    end
    if c == "[" then
      local first = pattern:sub(at + 1, at + 1) == "^" and at + 2 or at + 1
      local inside = first
      while inside <= #pattern and (pattern:sub(inside, inside) ~= "]" or inside == first) do
        inside = inside + (pattern:sub(inside, inside) == "%" and 2 or 1)
      end
      at = inside + 1
    elseif c == "(" or c == ")" then
      captures[#captures + 1] = at
      at = at + 1
    elseif c ~= "" then
      repeats = repeats + ((c == "*" or c == "+" or c == "-") and 1 or 0)
      at = at + 1
    end
  end
  return repeats, captures
end

local MOST_REPEATS = 4

--- The rule with its pattern as a run uses it: its first capture says where the part begins
--- that goes, its last where it ends. Nil and a sentence when the pattern is no such one.
---@param rule sessile.redact.rule
---@return sessile.redact.rule?
---@return string?
function rules.prepare(rule)
  if rule.find then
    return rule
  end
  local pattern = rule.pattern
  local fine, why = pcall(string.find, "", pattern)
  if not fine then
    return nil, "is no pattern: " .. tostring(why)
  end
  local repeats, captures = survey(pattern)
  if repeats > MOST_REPEATS then
    return nil, ("repeats %d times (* + -), which can be slow: at most %d"):format(
      repeats, MOST_REPEATS)
  elseif #captures == 0 then
    local start, body, stop = pattern:match "^(%^?)(.-)(%$?)$"
    if body:find "%%$" then -- the $ is a letter
      body, stop = body .. stop, ""
    end
    pattern = start .. "()" .. body .. "()" .. stop
  elseif #captures == 2 then
    pattern = pattern:sub(1, captures[1] - 1) .. "()"
      .. pattern:sub(captures[1] + 1, captures[2] - 1) .. "()" .. pattern:sub(captures[2] + 1)
  elseif not (#captures == 4 and captures[2] == captures[1] + 1
    and captures[4] == captures[3] + 1) then
    return nil, "has more than one capture"
  end
  local copy = {}
  for name, value in pairs(rule) do
    copy[name] = value
  end
  copy.pattern = pattern
  return copy
end

local MOST_STEPS, MOST_RULES, MOST_KIB = 100000, 1000, 1024

-- What the text of a file of rules returns, run with nothing in reach.
local function run(text, name)
  local chunk, message = load(text, "=" .. name, "t", {})
  if not chunk then
    return nil, message
  end
  if dialect.is_luajit then
    rawget(_G, "jit").off(chunk, true) -- compiled code calls no hook
  end
  local thread = coroutine.create(chunk)
  local steps, most = 0, collectgarbage "count" + MOST_KIB
  -- Texts can be put together: looked at after each step, they cannot double for long.
  debug.sethook(thread, function()
    steps = steps + 1
    if steps > MOST_STEPS then
      error("it takes too long", 0)
    elseif collectgarbage "count" > most then
      error("it takes too much memory", 0)
    end
  end, "", 1)
  local of_strings = getmetatable ""
  local index = of_strings.__index
  of_strings.__index = nil
  local fine, value = coroutine.resume(thread)
  of_strings.__index = index
  if not fine then
    return nil, tostring(value)
  end
  return value
end

--- Reads rules of one's own: a Lua text that returns a list of {name =, pattern =, fold =}.
--- It can compute nothing: no function is in its reach.
---@param text string
---@param name string  of the file, for what is said
---@return sessile.redact.rule[]? rules
---@return string? message
function rules.read(text, name)
  local list, message = run(text, name)
  if type(list) ~= "table" then
    return nil, ("%s does not return a list of rules%s"):format(name,
      message and ": " .. message or "")
  end
  local read = {}
  for i = 1, math.min(#list, MOST_RULES + 1) do
    local row = list[i]
    local label = type(row) == "table" and rawget(row, "name")
    local pattern = type(row) == "table" and rawget(row, "pattern")
    local rule, why
    if i > MOST_RULES then
      why = "is one too many"
    elseif type(label) ~= "string" or not label:find "^%l[%l_]*$" then
      why = "has no name of small letters"
    elseif type(pattern) ~= "string" or pattern == "" then
      why = "has no pattern"
    else
      rule, why = rules.prepare { name = label, pattern = pattern, fold = row.fold == true }
    end
    if not rule then
      return nil, ("%s: rule %d %s"):format(name, i, why)
    end
    read[i] = rule
  end
  return read
end

for i, rule in ipairs(rules.shipped) do
  rules.shipped[i] = assert(rules.prepare(rule))
end

return rules
