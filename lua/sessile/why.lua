-- why.lua: explains what happened to a message, in sentences.
--
-- Each step gets a sentence in `text`; the explanation as a whole is one sentence a line.

local recalled = require "sessile.recalled"

local why = {}

local function time(ms)
  return os.date("!%Y-%m-%d %H:%M UTC", math.floor(ms / 1000))
end

local function number(n)
  local text = ("%d"):format(n):reverse():gsub("(%d%d%d)", "%1,"):reverse()
  return (text:gsub("^,", ""))
end

-- "compaction 00000016 (sliding_window, version 1, threshold, 2026-11-22 04:50 UTC, 900 → 400
-- tokens)"
local function compaction(of)
  local parts = {}
  if of.policy then
    -- the engine writes "sliding_window 1", and 0 for a policy without a version
    parts[#parts + 1] = of.policy:gsub(" 0$", ""):gsub(" (%d+)$", ", version %1")
  end
  if of.uncompacts then
    parts[#parts + 1] = "which undoes " .. of.uncompacts
  end
  parts[#parts + 1] = of.reason
  parts[#parts + 1] = time(of.time)
  if of.tokens then
    parts[#parts + 1] = ("%s → %s tokens"):format(number(of.tokens.before),
      number(of.tokens.after))
  end
  return ("compaction %s (%s)"):format(of.id, table.concat(parts, ", "))
end

-- Adjacent entries are one range: "00000003 to 00000009".
local function keys(list)
  if #list == 0 then
    return "no message: it is a note"
  elseif #list == 1 then
    return list[1]
  end
  return ("%d messages, %s to %s"):format(#list, list[1], list[#list])
end

local dispositions = {
  lost = function() return "nothing replaces it" end,
  covered = function(step) return step.by .. " replaces it, among others" end,
  replaced = function(step) return step.by .. " replaced it" end,
  undone = function(step)
    return "it was inserted by compaction " .. (step.compaction.uncompacts or "?")
  end,
}

local sayings = {}

function sayings.said(step)
  if step.recalled then
    return ("%s (memory) was written on %s and entered the context; it quotes %s."):format(step.key,
      time(step.time), recalled.text(step.recalled))
  end
  return ("%s (%s) was added on %s and entered the context."):format(step.key,
    step.role or "a message", time(step.time))
end

function sayings.written(step)
  return ("%s (%s) was inserted by %s; it replaces %s."):format(step.key,
    step.role or "a message", compaction(step.compaction), keys(step.stands_for))
end

function sayings.left(step)
  local told = step.compaction.instructions
  return ("%s was removed by %s%s: %s."):format(step.key, compaction(step.compaction),
    told and (", which was told %q"):format(told) or "", dispositions[step.disposition](step))
end

function sayings.restored(step)
  return ("%s was restored by %s."):format(step.key, compaction(step.compaction))
end

function sayings.elsewhere(step)
  return ("It is not on the path to the head: the two paths part at %s."):format(step.at)
end

function sayings.no_message(step)
  if step.type == "tombstone" then
    return step.key .. " was lost to damage: a tombstone takes its place."
  end
  return ("%s is an entry of type %s, which never enters the context%s."):format(step.key,
    step.type, step.type == "compaction" and
    (": messages that it inserted are called %s.1, %s.2 …"):format(step.key, step.key) or "")
end

function sayings.orphan(step)
  return ("%s is in the context list, but the model does not see it: it is a result, and its "
    .. "call %s."):format(step.key, step.by and ("in %s is not in the context"):format(step.by)
    or "is unknown or was answered already")
end

function sayings.unanswered(step)
  return ("A call in %s was never answered: the model sees \"not answered\" for it."):format(
    step.key)
end

function sayings.moved(step)
  return ("%s answered its call late: it is shown behind %s, where the call is."):format(step.key,
    step.by or "its call")
end

local function verdict(of)
  if of.in_context then
    return "The model sees it."
  elseif of.shown then
    return ("The model sees %s instead."):format(of.shown)
  end
  return "The model does not see it."
end

local meta = { __name = "sessile.Explanation" }

function meta.__tostring(self)
  return self.text
end

--- Adds the sentences to what the core's why() returned. of: the entry that found.key names, if it
--- is one.
function why.make(found, of)
  local lines = {}
  local quoted = of and recalled.of(of.data)
  for i, step in ipairs(found.steps) do
    if quoted and step.key == found.key then
      step.recalled = quoted
    end
    step.text = sayings[step.kind](step)
    lines[i] = step.text
  end
  found.verdict = verdict(found)
  lines[#lines + 1] = found.verdict
  found.text = table.concat(lines, "\n")
  return setmetatable(found, meta)
end

return why
