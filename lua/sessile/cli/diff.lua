--- diff: what a compaction takes out of a context and what it puts in.
--
-- Owns: the comparison of two contexts, message by message, and its text. Must never guess why a
-- message left: the dispositions come from the engine.

local render = require "sessile.cli.render"
local terminal = require "sessile.cli.terminal"

local diff = {}

---@class sessile.cli.change
---@field sign "-"|"+"|"~"|"="  left, new, edited in place, kept
---@field message table
---@field disposition string?          of what left: lost, covered, replaced
---@field was table?            edited in place: the message before

-- The message that the engine adds for a call without an answer has no key, in either context.
local function name_of(message)
  local facts = render.facts(message)
  return facts.key or facts.json
end

--- Compares two contexts. removals: those of the outcome.
---@param before table[]
---@param after table[]
---@param removals table[]?
---@return sessile.cli.change[]
function diff.compare(before, after, removals)
  local disposition, kept, known = {}, {}, {}
  for _, removal in ipairs(removals or {}) do
    disposition[removal.key] = removal.disposition
  end
  for _, message in ipairs(after) do
    kept[name_of(message)] = true
  end
  for _, message in ipairs(before) do
    known[name_of(message)] = true
  end
  local changes, at = {}, 1
  local function left_until(name)
    while before[at] and name_of(before[at]) ~= name do
      local own = name_of(before[at])
      if not kept[own] then
        changes[#changes + 1] = { sign = "-", message = before[at], disposition = disposition[own] }
      end
      at = at + 1
    end
  end
  for i, message in ipairs(after) do
    local name = name_of(message)
    if known[name] then
      left_until(name)
      changes[#changes + 1] = { sign = "=", message = message }
      at = at + 1
    else
      -- A new message is shown after the messages that it replaces: those that leave before the
      -- next one that stays.
      local following
      for j = i + 1, #after do
        if known[name_of(after[j])] then
          following = name_of(after[j])
          break
        end
      end
      while before[at] and disposition[name_of(before[at])] == "lost" do
        changes[#changes + 1] = { sign = "-", message = before[at], disposition = "lost" }
        at = at + 1
      end
      local replaced = before[at]
      if replaced and disposition[name_of(replaced)] == "replaced" then
        changes[#changes + 1] = {
          sign = "~", message = message, disposition = "replaced", was = replaced,
        }
        at = at + 1
      else
        if not (after[i + 1] and not known[name_of(after[i + 1])]) then
          left_until(following)
        end
        changes[#changes + 1] = { sign = "+", message = message }
      end
    end
  end
  left_until(nil)
  return changes
end

local COLOUR = { ["-"] = "red", ["+"] = "green", ["~"] = "yellow" }

local function line_of(change, columns)
  local facts = render.facts(change.message)
  local role = terminal.cut(render.role(change.message), 22)
  role = role .. (" "):rep(22 - terminal.width(role))
  local tokens = facts.tokens and terminal.number(facts.tokens) or ""
  local was = change.was and render.facts(change.was).tokens
  if was then
    tokens = ("%s → %s"):format(terminal.number(was), tokens)
  end
  tokens = (" "):rep(12 - terminal.width(tokens)) .. tokens
  -- A message that is not written yet has no meaningful key.
  local key = facts.key and not facts.key:find "^ffffffff" and facts.key or ""
  return ("%s %-11s %s %s  %s"):format(change.sign, key, role, tokens,
    render.brief(change.message, math.max(columns - 53, 24)))
end

--- The changes as text: runs of the same sign beyond `run` lines are counted, not listed.
---@param changes sessile.cli.change[]
---@param paint fun(text: string, colour: string): string
---@param columns integer?
---@param run integer?  lines of a run that are shown: 4
---@return string
function diff.text(changes, paint, columns, run)
  columns, run = columns or 100, run or 4
  local lines = {}
  local i = 1
  while i <= #changes do
    local sign = changes[i].sign
    local last = i
    while changes[last + 1] and changes[last + 1].sign == sign do
      last = last + 1
    end
    local shown = sign == "=" and 1 or run
    local total = last - i + 1
    local function add(from, to)
      for j = from, to do
        local text = line_of(changes[j], columns):gsub("^=", " ")
        lines[#lines + 1] = paint(text, COLOUR[sign] or "dim")
      end
    end
    if total <= shown + 1 then
      add(i, last)
    else
      add(i, i + shown - 2)
      local tokens = 0
      for j = i + shown - 1, last - 1 do
        tokens = tokens + (render.facts(changes[j].message).tokens or 0)
      end
      lines[#lines + 1] = paint(("%s   … %d more, %s tokens"):format(sign == "=" and " " or sign,
        total - shown, terminal.number(tokens)), COLOUR[sign] or "dim")
      add(last, last)
    end
    i = last + 1
  end
  return table.concat(lines, "\n") .. "\n"
end

--- How many messages left, by disposition.
---@param changes sessile.cli.change[]
---@return {lost: integer, covered: integer, replaced: integer, new: integer, kept: integer}
function diff.count(changes)
  local n = { lost = 0, covered = 0, replaced = 0, new = 0, kept = 0 }
  for _, change in ipairs(changes) do
    if change.sign == "=" then
      n.kept = n.kept + 1
    elseif change.sign == "~" then
      n.replaced = n.replaced + 1
    elseif change.sign == "+" then
      n.new = n.new + 1
    else
      n[change.disposition or "lost"] = n[change.disposition or "lost"] + 1
    end
  end
  return n
end

return diff
