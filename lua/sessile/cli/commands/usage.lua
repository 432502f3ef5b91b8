--- usage: the tokens that providers reported, for one session or all.
--
-- Owns: the sums over sessions, and their cost. Must never estimate a number of tokens that was not
-- reported, nor a cost without a price.

local common = require "sessile.cli.common"
local filters = require "sessile.cli.filters"
local prices = require "sessile.prices"
local terminal = require "sessile.cli.terminal"

local number = terminal.number

-- What a group cost: {usd, reported, complete}. What reports say comes first; the rest is counted
-- at the price of the model, and unpriced names it when it has none.
local function cost_of(group, own, unpriced)
  local counted = prices.cost(group.uncosted, prices.of(group.model, own))
  if not counted then
    unpriced[group.model] = true
  end
  return { usd = group.cost + (counted or 0), reported = group.cost, complete = counted ~= nil }
end

local function add(groups, group, cost, key)
  local known = groups[key]
  if not known then
    known = { key = key, reports = 0, input = 0, output = 0, cache_read = 0, cache_write = 0,
      cost = { usd = 0, reported = 0, complete = true } }
    groups[key], groups[#groups + 1] = known, known
  end
  for _, field in ipairs(prices.fields) do
    known[field] = known[field] + group[field]
  end
  known.reports = known.reports + group.reports
  local sum = known.cost
  sum.usd, sum.reported = sum.usd + cost.usd, sum.reported + cost.reported
  sum.complete = sum.complete and cost.complete
end

-- Adds the reports of a session. about: {by, within, own (prices), unpriced}.
local function gather(groups, session, about)
  local list, message, code = session:usage { by = "day_and_model" }
  if not list then
    return false, message, code
  end
  for _, group in ipairs(list) do
    if about.within(group.key) then
      local keys = { day = group.key, model = group.model, agent = session.agent }
      add(groups, group, cost_of(group, about.own, about.unpriced), keys[about.by] or "all")
    end
  end
  return true
end

local function sort(groups, by)
  table.sort(groups, function(a, b)
    if by == "day" then return a.key < b.key end
    local x, y = a.input + a.output, b.input + b.output
    if x ~= y then return x > y end
    return a.key < b.key
  end)
end

local function as_json(app, id, by, groups, total)
  local list = {}
  for _, group in ipairs { total, table.unpack(groups) } do
    local cost = group.cost -- sums of millionths; no digits that addition made up
    cost.usd, cost.reported = tonumber(("%.6f"):format(cost.usd)),
      tonumber(("%.6f"):format(cost.reported))
  end
  for i, group in ipairs(groups) do
    list[i] = by and group or nil
  end
  app:print_json {
    session = id, by = by, total = total, groups = by and app.array(list) or nil,
  }
end

-- "$1.27"; with a "+" when a part has no price; "?" when nothing is known.
local function dollars(cost)
  if cost.usd == 0 and not cost.complete then
    return "?"
  end
  return ((cost.usd < 0.995 and cost.usd ~= 0) and "$%.4f%s" or "$%.2f%s"):format(cost.usd,
    cost.complete and "" or "+")
end

local HEADINGS = { day = "DAY", model = "MODEL", agent = "AGENT" }

local function print_groups(app, by, groups, total)
  local rows = {}
  local function row(group, name)
    rows[#rows + 1] = {
      name, number(group.reports), number(group.input), number(group.output),
      number(group.cache_read), number(group.cache_write), dollars(group.cost),
    }
  end
  for _, group in ipairs(by and groups or {}) do
    row(group, group.key == "" and "(nobody says)" or terminal.line(group.key))
  end
  row(total, "all")
  app:print_table({ HEADINGS[by] or "", "REPORTS>", "INPUT>", "OUTPUT>", "CACHE READ>",
    "CACHE WRITE>", "COST>" }, rows, { "REPORTS>", "CACHE WRITE>", "CACHE READ>" })
end

-- Where the costs come from, unless recordings reported all of them.
local function tell_prices(app, sum, unpriced)
  local names = {}
  for name in pairs(unpriced) do
    names[#names + 1] = name == "" and "(nobody says)" or terminal.line(name)
  end
  table.sort(names)
  if #names > 0 then
    app:note(("Without a price: %s. Set it in the configuration: prices = { [\"…\"] = { input = …, "
      .. "output = … } }, in dollars for a million tokens."):format(table.concat(names, ", ")))
  end
  if sum.cost.usd > sum.cost.reported then
    app:note(("Counted with list prices of %s, but for what recordings report and your own prices.")
      :format(prices.date))
  end
end

-- A function that tells whether a day ("2026-02-01") is between two times.
local function days_between(since, till)
  local first = since and terminal.day(since)
  local last = till and terminal.day(till - 1)
  return function(day)
    return (not first or day >= first) and (not last or day <= last)
  end
end

return {
  summary = "show the tokens that providers reported, for one session or all",
  usage = "usage [ID] [--by day|model|agent] [--since WHEN] [--until WHEN]",
  examples = [[
    sessile usage bug-42                one session, with all its branches
    sessile usage --by day --since 30d  the store, day by day
    sessile usage --by model --json     for a program]],
  arguments = {
    common.session_as { more = "; default: all", count = "?" },
  },
  options = {
    { "--by WHAT", "group by", choices = { "day", "model", "agent" } },
    { "--since WHEN", "from a date (2026-02-01) or an age (24h, 7d)" },
    { "--until WHEN", "before that day" },
  },
  about = [[
    Shows what providers reported, over the whole log. `sessile info ID` shows what the
    context takes now. Days are in UTC.

    A cost that a recording reports is taken as it is. Other tokens are counted at the
    price of their model: one of `prices` in the configuration, else the list price that
    ships. A sum with a model that has no price ends in "+".]],
  run = function(app, args)
    local since, till = filters.moments(app, args)
    local groups, about = {}, { by = args.by, within = days_between(since, till),
      own = app:config() and app:config():value "prices", unpriced = {} }
    local session = args.id and app:open(args.id)
    if session then
      app.try(gather(groups, session, about))
    else
      local store = app:need_store()
      app.try(filters.each(app, store, app.try(app:list(store, {})), "reading", function(each)
        return gather(groups, each, about)
      end))
    end
    sort(groups, args.by)
    local total, nothing = {}, { reports = 0, input = 0, output = 0, cache_read = 0,
      cache_write = 0 }
    add(total, nothing, { usd = 0, reported = 0, complete = true }, "all")
    for _, group in ipairs(groups) do
      add(total, group, group.cost, "all")
    end
    local sum = total[1]
    sum.key = nil
    if app.json then
      return as_json(app, session and session.id or nil, args.by, groups, sum)
    end
    print_groups(app, args.by, groups, sum)
    tell_prices(app, sum, about.unpriced)
    if sum.reports == 0 then
      io.stdout:flush()
      app:note("No provider reported anything" .. ((since or till) and " in that time." or
        ". A turn that is given a usage is counted; what a context takes: sessile info."))
    end
  end,
}
