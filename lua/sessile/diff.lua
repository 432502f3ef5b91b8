-- diff.lua: a plan as text: what leaves the context, what is added, what stays.
--
--   - 00000003  assistant     812  replaced  {"type":"tool_result"…
--   + 1         assistant      24            [output removed]
--     00000004  user            9            and now?
--
-- Control characters are removed, because the text is shown on terminals.

local facts = require "sessile.facts"

local diff = {}

local preview_bytes = 60

-- One line of text for a message's content: printable, cut at a character.
local function preview(message)
  local content = message.content
  if type(content) == "table" then
    local words = {}
    for _, block in ipairs(content) do
      local text = type(block) == "table" and (block.text or block.content)
      if type(text) == "string" then
        words[#words + 1] = text
      elseif type(block) == "table" then
        words[#words + 1] = "[" .. tostring(block.type) .. "]"
      end
    end
    content = table.concat(words, " ")
  end
  if type(content) ~= "string" or content == "" then
    local names = {}
    for _, call in ipairs(type(message.tool_calls) == "table" and message.tool_calls or {}) do
      names[#names + 1] = tostring(call.name)
    end
    content = #names > 0 and "calls " .. table.concat(names, ", ") or ""
  end
  -- C0, DEL, and C1 as UTF-8 writes it.
  content = content:gsub("[%c\127]+", " "):gsub("\194[\128-\159]", " ")
  if #content <= preview_bytes then
    return content
  end
  local cut = preview_bytes
  while cut > 0 and content:find("^[\128-\191]", cut + 1) do
    cut = cut - 1
  end
  return content:sub(1, cut) .. "…"
end

-- A name to compare by: engine-made messages have no key, but their text.
local function name_of(message)
  local own = facts.within(message)
  return own.key or own.json
end

local function row(mark, message, removal)
  local own = facts.within(message)
  return {
    mark = mark,
    key = own.key,
    role = message.role,
    tokens = own.tokens,
    disposition = removal and removal.disposition,
    by = removal and removal.by,
    text = preview(message),
  }
end

local function index(list, name)
  local set = {}
  for _, item in ipairs(list) do
    set[name(item)] = item
  end
  return set
end

-- The two lists side by side: what both have is kept, and in the same order.
local function merge(before, after, removals)
  local gone = index(removals, function(d) return d.key end)
  local stays = index(after, name_of)
  local rows, i, j = {}, 1, 1
  while before[i] or after[j] do
    local old, new = before[i], after[j]
    if old and not stays[name_of(old)] then
      rows[#rows + 1] = row("-", old, gone[facts.within(old).key])
      i = i + 1
    elseif old and new and name_of(old) == name_of(new) then
      rows[#rows + 1] = row(" ", new)
      i, j = i + 1, j + 1
    elseif new then
      rows[#rows + 1] = row("+", new)
      j = j + 1
    else
      i = i + 1
    end
  end
  return rows
end

local function totals(plan, rows)
  local dispositions = { lost = 0, covered = 0, replaced = 0 }
  local written = 0
  for _, r in ipairs(rows) do
    if r.mark == "-" and dispositions[r.disposition] then
      dispositions[r.disposition] = dispositions[r.disposition] + 1
    elseif r.mark == "+" then
      written = written + 1
    end
  end
  return ("%d messages, %d tokens -> %d messages, %d tokens; %d dropped, %d covered, "
    .. "%d replaced, %d written"):format(#plan.before, plan.tokens.before, #plan.after,
    plan.tokens.after, dispositions.lost, dispositions.covered, dispositions.replaced, written)
end

--- The text and the rows of a plan.
function diff.make(plan)
  local rows = merge(plan.before, plan.after, plan.removals)
  local lines = {}
  for i, r in ipairs(rows) do
    local line = ("%s %-11s %-9s %6d  %-8s  %s"):format(r.mark, r.key or "(engine)", r.role,
      r.tokens or 0, r.disposition or "", r.text)
    lines[i] = line:gsub("%s+$", "")
  end
  lines[#lines + 1] = totals(plan, rows)
  if plan.policy and plan.policy.refused then
    lines[#lines + 1] = "refused: " .. plan.policy.refused
  end
  return table.concat(lines, "\n") .. "\n", rows
end

return diff
