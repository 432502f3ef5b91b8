--- usage: the tokens that providers reported, for one session or all.
--
-- Owns: the sums over sessions. Must never estimate a number that was not reported.

local common = require "sessile.cli.common"
local filters = require "sessile.cli.filters"
local terminal = require "sessile.cli.terminal"

local FIELDS = { "input", "output", "cache_read", "cache_write" }

local number = terminal.number

local function add(groups, group, key)
  local known = groups[key]
  if not known then
    known = { key = key, reports = 0, input = 0, output = 0, cache_read = 0, cache_write = 0 }
    groups[key], groups[#groups + 1] = known, known
  end
  for _, field in ipairs(FIELDS) do
    known[field] = known[field] + group[field]
  end
  known.reports = known.reports + group.reports
end

-- Adds the reports of a session; by day if `by` is nil.
local function gather(groups, session, by, within)
  local list, message, code = session:usage { by = by or "day" }
  if not list then
    return false, message, code
  end
  for _, group in ipairs(list) do
    if by == "agent" or by == "model" or within(group.key) then
      local key = group.key
      if by == "agent" and key == "" then key = session.agent end
      add(groups, group, by and key or "all")
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
  for i, group in ipairs(groups) do
    list[i] = by and group or nil
  end
  app:print_json {
    session = id, by = by, total = total, groups = by and app.array(list) or nil,
  }
end

local HEADINGS = { day = "DAY", model = "MODEL", agent = "AGENT" }

local function print_groups(app, by, groups, total)
  local rows = {}
  local function row(group, name)
    rows[#rows + 1] = {
      name, number(group.reports), number(group.input), number(group.output),
      number(group.cache_read), number(group.cache_write),
    }
  end
  for _, group in ipairs(by and groups or {}) do
    row(group, group.key == "" and "(nobody says)" or terminal.line(group.key))
  end
  row(total, "all")
  app:print_table({ HEADINGS[by] or "", "REPORTS>", "INPUT>", "OUTPUT>", "CACHE READ>",
    "CACHE WRITE>" }, rows, { "REPORTS>", "CACHE WRITE>", "CACHE READ>" })
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
    context takes now. Days are in UTC. --since and --until work with days, not with --by
    model or agent.]],
  run = function(app, args)
    local since, till = filters.moments(app, args)
    if (since or till) and args.by and args.by ~= "day" then
      return nil, ("--since and --until count days: they do not go with --by %s"):format(args.by),
        "EUSAGE"
    end
    local groups, within = {}, days_between(since, till)
    local session = args.id and app:open(args.id)
    if session then
      app.try(gather(groups, session, args.by, within))
    else
      local store = app:need_store()
      app.try(filters.each(app, store, app.try(app:list(store, {})), "reading", function(each)
        return gather(groups, each, args.by, within)
      end))
    end
    sort(groups, args.by)
    local total = {}
    for _, group in ipairs(groups) do
      add(total, group, "all")
    end
    if #total == 0 then
      add(total, { input = 0, output = 0, cache_read = 0, cache_write = 0, reports = 0 }, "all")
    end
    local sum = total[1]
    sum.key = nil
    if app.json then
      return as_json(app, session and session.id or nil, args.by, groups, sum)
    end
    print_groups(app, args.by, groups, sum)
    if sum.reports == 0 then
      io.stdout:flush()
      app:note("No provider reported anything" .. ((since or till) and " in that time." or
        ". A turn that is given a usage is counted; what a context takes: sessile info."))
    end
  end,
}
