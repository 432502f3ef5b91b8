-- memory_audit.lua: entries of a memory that a person should look at.
--
-- It finds what looks like an order to the model, an address or a secret, what the screens that
-- ship say of it today, what the engine trusts less than the policy that proposed it, and sessions
-- from which far more was remembered than from others. It is a help, not a proof: what it does not
-- find may still be one.

local redact = require "sessile.redact"
local screens = require "sessile.screens"
local url = require "sessile.url"

local audit = {}

-- What the rules of redaction find, in the words of an audit.
local WHAT = { secret = "secret", key = "secret", credentials = "secret", ip = "address",
  email = "address" }

-- Lower-case patterns of orders, in English and German: those of policies/admit_strict.lua, which
-- must stand alone. spec/policies/admit_strict_spec.lua compares the two.
local ORDERS = {
  "ignore %w*%s?%w*%s?instruction", "ignore all", "ignore any", "ignore previous", "disregard",
  "forget everything", "forget all", "you must", "you are now", "from now on", "new instruction",
  "system prompt", "system message", "developer message", "do not tell", "don't tell",
  "do not mention", "without asking", "without telling", "before you answer",
  "when you read this", "act as ", "pretend to", "jailbreak", "override ", "send %w+ to",
  "forward %w+ to", "upload %w+ to", "curl ", "wget ", "rm %-rf", "sudo ", "eval%(", "<script",
  "<%|", "%[inst%]", "</?system", "ignoriere", "ab jetzt", "ab sofort", "von nun an", "du musst",
  "ohne zu fragen", "sende %w+ an", "schicke %w+ an",
}

-- What a text looks like: {["order"] = the part, …}.
local function looks_like(text)
  local found = {}
  local folded = text:lower():gsub("%s+", " ")
  for _, pattern in ipairs(ORDERS) do
    local first, last = folded:find(pattern)
    if first then
      found.order = folded:sub(math.max(1, first - 10), last + 20)
      break
    end
  end
  local run = redact.new()
  run:text(text)
  for name in pairs(run.values) do
    if WHAT[name] then
      found[WHAT[name]] = name
    end
  end
  found.address = found.address or text:match "%a[%w+.-]*://[^%s/]*"
  return found
end

-- What a screen that ships finds, in the words of an audit; of another one: "screen".
local OF_SCREEN = { no_orders = "order", secrets = "secret" }

--- A function that says what today's screens find in a row: a list of {what, screen, rule}. They
--- were perhaps not there when it was written. nil, message, code.
function audit.judge()
  local list, message, code, retry_ms, rule = screens.load { "no_orders", "secrets", "injection" }
  if not list then
    return nil, message, code, retry_ms, rule
  end
  return function(row)
    local found = {}
    for _, text in ipairs { row.value, row.also or "" } do
      local said = list:run { kind = "memory", source = row.source, key = row.key, text = text }
      for _, one in ipairs(said and said.findings or {}) do
        found[#found + 1] = { what = OF_SCREEN[one.screen] or "screen", screen = one.screen,
          rule = one.rule }
      end
      local ok, _, _, leads = url.check(text)
      if not ok and leads then
        found[#found + 1] = { what = "address", screen = "urls", rule = leads.rule }
      end
    end
    return found
  end
end

-- The sessions that an entry is from, each once.
local function sessions_of(row)
  local names, seen = {}, {}
  for _, from in ipairs(row.from or {}) do
    if not seen[from.session] then
      seen[from.session] = true
      names[#names + 1] = from.session
    end
  end
  return names[1] and names or nil
end

local LEAST, TIMES = 10, 5 -- entries of a session, and how often as many as the median of all

-- Sessions from which far more entries are than from the others.
local function busy(rows)
  local counts, list = {}, {}
  for _, row in ipairs(rows) do
    local seen = {}
    for _, from in ipairs(row.from or {}) do
      local name = from.agent .. "\0" .. from.session
      if not seen[name] then
        seen[name] = true
        counts[name] = counts[name]
          or { what = "session", session = from.session, agent = from.agent, entries = 0 }
        counts[name].entries = counts[name].entries + 1
      end
    end
  end
  for _, one in pairs(counts) do
    list[#list + 1] = one
  end
  table.sort(list, function(a, b)
    return a.entries > b.entries or a.entries == b.entries and a.session < b.session
  end)
  local median = list[1] and list[math.floor(#list / 2) + 1].entries
  local found = {}
  for _, one in ipairs(list) do
    if #list >= 3 and one.entries >= LEAST and one.entries >= TIMES * median then
      one.usual = median
      found[#found + 1] = one
    end
  end
  return found
end

--- What a person should look at in these entries: {what = "order", "address", "secret", "screen" or
--- "lowered", row, part, screen, rule, sessions} of an entry, {what = "session", session, agent,
--- entries, usual} of a session. A secret is never in `part`. judge: of audit.judge(), or nil.
function audit.of(rows, judge)
  local list = {}
  for _, row in ipairs(rows) do
    local found = looks_like(table.concat({ row.key or "", row.value, row.also or "" }, "\n"))
    found.lowered = type(row.metadata) == "table" and row.metadata.lowered == true
      and not row.approved
    local by = {}
    for _, one in ipairs(judge and judge(row) or {}) do
      by[one.what] = by[one.what] or one
    end
    for _, what in ipairs { "order", "secret", "address", "screen", "lowered" } do
      local screen = by[what] or {}
      if found[what] or by[what] then
        list[#list + 1] = { what = what, row = row, screen = screen.screen, rule = screen.rule,
          sessions = sessions_of(row),
          part = (what == "order" or what == "address") and found[what] or nil }
      end
    end
  end
  return table.move(busy(rows), 1, #rows, #list + 1, list)
end

return audit
