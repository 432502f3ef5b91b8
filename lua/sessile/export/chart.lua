--- chart: a chart of tokens: the context after each turn, and what each turn added.
--
-- Owns: its numbers and the SVG. Stored text in it must be escaped. It has classes instead of
-- styles, because the content security policy of the page forbids inline styles.

local text = require "sessile.export.text"

local chart = {}

local WIDTH, MOST_BARS = 1000, 240

---@class sessile.export.turn
---@field id string       the entry that begins it
---@field said integer    tokens of users, models and the rest
---@field tools integer   tokens of results
---@field context integer tokens of the context when it ended

---@class sessile.export.mark
---@field kind "c"|"p"      a compaction, a checkpoint
---@field id string
---@field at number         number of turns before it
---@field after integer?    tokens of the context then
---@field title string      not yet harmless

local RESULTS = { tool = true, ["function"] = true }

--- The data of the chart.
---@param nodes sessile.Node[]  path entries, oldest first
---@param after table<string, integer>  compactions: tokens of the context after them
---@param titles table<string, string>  of compactions
---@return sessile.export.turn[] turns
---@return sessile.export.mark[] marks
---@return table<string, number> at  after how many turns each entry stands
function chart.read(nodes, after, titles)
  local turns, marks, at, context = {}, {}, {}, 0
  for _, node in ipairs(nodes) do
    if node.type == "message" and (node.starts_turn and not (turns[#turns] or {}).fresh
      or #turns == 0) then
      turns[#turns + 1] = { id = node.id, said = 0, tools = 0, context = context, fresh = true }
    end
    local turn = turns[#turns]
    if node.type == "message" or node.type == "branch_summary" then
      context = context + node.tokens
      if turn then
        local which = RESULTS[node.speaker] and "tools" or "said"
        turn[which] = turn[which] + node.tokens
        turn.context = context
        turn.fresh = node.starts_turn and turn.fresh
      end
    elseif node.type == "compaction" then
      context = after[node.id] or context
      marks[#marks + 1] = { kind = "c", id = node.id, at = #turns, after = context,
        title = titles[node.id] or "Compaction" }
    end
    at[node.id] = #turns
  end
  return turns, marks, at
end

local function round(n)
  return ("%.1f"):format(n):gsub("%.0$", "")
end

-- Combines neighbours into one bar if there are too many turns.
local function bars_of(turns)
  local each = math.max(1, math.ceil(#turns / MOST_BARS))
  local bars = {}
  for i = 1, #turns, each do
    local bar = { id = turns[i].id, first = i, last = math.min(i + each - 1, #turns), said = 0,
      tools = 0 }
    for j = bar.first, bar.last do
      bar.said, bar.tools = bar.said + turns[j].said, bar.tools + turns[j].tools
    end
    bars[#bars + 1] = bar
  end
  return bars
end

-- The size of the context as points of a line: flat within a turn, down at a compaction.
local function edge_of(turns, marks, most)
  local points, next_mark = {}, 1
  local function point(at, tokens)
    points[#points + 1] = ("%s %s"):format(round(at / #turns * WIDTH),
      round(100 - tokens / most * 96))
  end
  point(0, 0)
  for i, turn in ipairs(turns) do
    local context = turn.context
    point(i - 0.5, context)
    while marks[next_mark] and marks[next_mark].at <= i do
      local mark = marks[next_mark]
      if mark.kind == "c" then
        point(mark.at, context)
        point(mark.at, mark.after)
        context = mark.after
      end
      next_mark = next_mark + 1
    end
    if i == #turns then
      point(i, context)
    end
  end
  return points
end

--- The chart as two SVGs; nil if there is nothing to draw.
---@param turns sessile.export.turn[]
---@param marks sessile.export.mark[]  in the order of `at`
---@param number fun(n: number): string
---@return {context: string, turns: string, most: integer, most_turn: integer, each: integer}?
function chart.draw(turns, marks, number)
  local bars, most, most_bar = bars_of(turns), 0, 0
  for _, turn in ipairs(turns) do
    most = math.max(most, turn.context)
  end
  for _, bar in ipairs(bars) do
    most_bar = math.max(most_bar, bar.said + bar.tools)
  end
  if #turns < 2 or most == 0 or most_bar == 0 then
    return nil
  end
  local points = edge_of(turns, marks, most)
  local out = {
    ('<svg class="chart context" viewBox="0 0 %d 100" preserveAspectRatio="none" role="group" '
      .. 'aria-label="Tokens of the context, turn by turn">'):format(WIDTH),
    ('<path class="area" d="M0 100L%sL%d 100Z"/><path class="edge" d="M%s"/>'):format(
      table.concat(points, "L"), WIDTH, table.concat(points, "L")),
  }
  for _, mark in ipairs(marks) do
    local x = round(mark.at / #turns * WIDTH)
    out[#out + 1] = ('<a href="#e-%s"><title>%s</title><path class="rule %s" d="M%s 0V100"/>'
      .. '<rect class="hot" x="%s" y="0" width="12" height="100"/></a>'):format(mark.id,
      text.html(mark.title), mark.kind, x, round(mark.at / #turns * WIDTH - 6))
  end
  out[#out + 1] = "</svg>"
  local context = table.concat(out)
  out = {
    ('<svg class="chart turns" viewBox="0 0 %d 100" preserveAspectRatio="none" role="group" '
      .. 'aria-label="Tokens that each turn added">'):format(WIDTH),
  }
  local step = WIDTH / #bars
  for i, bar in ipairs(bars) do
    local x, wide = round((i - 1) * step + step * 0.12), round(step * 0.76)
    local tools, said = bar.tools / most_bar * 98, bar.said / most_bar * 98
    local which = bar.first == bar.last and ("Turn %d"):format(bar.first)
      or ("Turns %d to %d"):format(bar.first, bar.last)
    out[#out + 1] = ('<a href="#e-%s" tabindex="-1"><title>%s: %s tokens, %s of them results of '
      .. 'tools</title><rect class="tools" x="%s" y="%s" width="%s" height="%s"/><rect '
      .. 'class="said" x="%s" y="%s" width="%s" height="%s"/><rect class="hot" x="%s" y="0" '
      .. 'width="%s" height="100"/></a>'):format(bar.id, which, number(bar.said + bar.tools),
      number(bar.tools), x, round(100 - tools - said), wide, round(tools), x, round(100 - said),
      wide, round(said), round((i - 1) * step), round(step))
  end
  out[#out + 1] = "</svg>"
  return { context = context, turns = table.concat(out), most = most, most_turn = most_bar,
    each = bars[1].last }
end

return chart
