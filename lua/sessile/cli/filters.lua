--- filters: the options that say which sessions are meant, of commands over many of them.
--
-- Owns: those options, what of the typed values a list or a search is asked for, and how all of
-- those sessions are opened one by one. Must
-- never guess at a moment that is none.

local hints = require "sessile.cli.hints"
local progress = require "sessile.cli.progress"
local terminal = require "sessile.cli.terminal"
local times = require "sessile.times"

local filters = {}

--- For a command's table of options.
filters.options = {
  { "--status WHAT", "only sessions with this status (else all but deleted ones)", many = true,
    choices = { "active", "suspended", "archived", "expired", "deleted" } },
  { "--since WHEN", "modified since a date (2026-02-01) or an age (24h, 7d)" },
  { "--until WHEN", "modified before that" },
  { "--user NAME", "only sessions of this user", is = "user" },
  { "--label NAME", "only sessions with this label", is = "label name" },
}

-- A moment as typed, in ms: a date (UTC), or a span that ends now.
local function moment(app, option, text)
  if not text then return nil end
  local year, month, day = text:match "^(%d%d%d%d)%-(%d%d)%-(%d%d)$"
  if year then
    local ms = times.date(tonumber(year), tonumber(month), tonumber(day))
    if ms then return ms end
  end
  local span = not year and times.ms(text)
  if not span then
    app.fail(("option '%s': '%s' is neither a date (2026-02-01) nor an age (24h, 7d)"):format(
      option, hints.shown(text)), "EUSAGE")
  end
  return app.now() - span
end

--- The moments that --since and --until name, in ms.
---@param app sessile.cli.app
---@param args table
---@return integer? since
---@return integer? till
function filters.moments(app, args)
  return moment(app, "--since", args.since), moment(app, "--until", args["until"])
end

--- What the options ask for, as store:list takes it.
---@param app sessile.cli.app
---@param args table
---@return table asked
function filters.asked(app, args)
  local since, till = filters.moments(app, args)
  return {
    user = args.user, label = args.label, since = since, ["until"] = till,
    status = args.status and #args.status > 0 and args.status or nil,
  }
end

--- Opens each of these sessions in turn. One that cannot be opened is told of, and left out.
---@param app sessile.cli.app
---@param store table
---@param rows table[]      of its list
---@param label string      of the bar
---@param with fun(session: table, row: table): boolean?, string?, string?  false, a sentence and
--- a code: stop
---@return boolean? ok
---@return string? message
---@return string? code
function filters.each(app, store, rows, label, with)
  local show, finish = progress.bar(app, label)
  for i, row in ipairs(rows) do
    show(i - 1, #rows)
    local session, message, code = nil, row.message, row.status
    if row.id then
      session, message, code = store:resume {
        id = row.id, agent = row.agent, user = row.user ~= "" and row.user or nil,
      }
    end
    local ok = true
    if session then
      ok, message, code = with(session, row)
      session:close()
    end
    if ok == false then
      finish()
      return nil, message, code
    elseif not session then
      finish()
      app:note(("%s is not counted: %s"):format(hints.shown(row.id or "a log"),
        terminal.line(message or "?")))
    end
  end
  finish()
  return true
end

--- Whether they ask for less than all.
---@param args table
---@return boolean
function filters.are_narrow(args)
  return (args.since or args["until"] or args.user or args.label
    or args.status and #args.status > 0) and true or false
end

return filters
