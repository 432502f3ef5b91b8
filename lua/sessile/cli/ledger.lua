--- ledger: the result of a replay as tables.
--
-- Owns: the columns. Must never compute a figure that is not in the ledger.

local terminal = require "sessile.cli.terminal"

local ledger = {}

local number = terminal.number

local function heading_painter(paint)
  return function(cell, _, heading)
    return heading and paint(cell, "bold") or cell
  end
end

--- One row for each compaction.
---@param of sessile.replay.ledger
---@param paint fun(text: string, colour: string): string
---@return string
function ledger.compactions(of, paint)
  local rows = {}
  for i, c in ipairs(of.compactions) do
    local saved = c.before > 0 and (c.before - c.after) * 100 // c.before or 0
    rows[i] = {
      number(c.turn), number(c.before), number(c.after), ("%d %%"):format(saved),
      number(c.dropped), terminal.line(c.reason or ""), terminal.line(c.policy or ""),
    }
  end
  return terminal.table({ "TURN>", "BEFORE>", "AFTER>", "SAVED>", "REMOVED>", "REASON", "POLICY" },
    rows, heading_painter(paint))
end

--- One line for each refusal.
---@param of sessile.replay.ledger
---@return string[]
function ledger.refusals(of)
  local lines = {}
  for i, refusal in ipairs(of.refusals) do
    lines[i] = ("turn %d: %s was refused%s: %s"):format(refusal.turn,
      terminal.line(refusal.policy or "?"),
      refusal.law and (" by law %d"):format(refusal.law) or "",
      terminal.line(refusal.message or ""))
  end
  return lines
end

local HEADINGS = {
  "TURNS>", "MESSAGES>", "COMPACTIONS>", "REMOVED>", "REFUSED>", "TOO BIG>", "PEAK>", "END>",
  "ALL>", "BYTES>", "ENGINE MS>", "POLICY MS>", "FILE",
}

-- The columns to leave out on a narrow terminal, in this order.
local LESS = { "POLICY MS", "ENGINE MS", "BYTES", "TOO BIG", "END", "MESSAGES" }

local function left(of)
  local n = 0
  for _, compaction in ipairs(of.compactions) do
    n = n + compaction.dropped
  end
  return n
end

local function ms(us)
  return ("%.1f"):format(us / 1000)
end

--- One row for each replay.
---@param replays {file: string, ledger: sessile.replay.ledger}[]
---@param paint fun(text: string, colour: string): string
---@return string
function ledger.totals(replays, paint)
  local rows = {}
  for i, replay in ipairs(replays) do
    local of = replay.ledger
    rows[i] = {
      number(of.turns), number(of.messages), number(#of.compactions), number(left(of)),
      number(#of.refusals), number(#of.cannot_fit), number(of.peak), number(of.tokens),
      number(of.all), of.bytes and number(of.bytes) or "-", ms(of.engine_us),
      ms(of.policy_us), terminal.line(replay.file),
    }
  end
  return terminal.table(HEADINGS, rows, heading_painter(paint), terminal.columns(), LESS)
end

return ledger
