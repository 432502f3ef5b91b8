--- filters: the options that select sessions, for commands over many sessions.
--
-- Owns: these options, their translation for store:list, and the loop that opens the selected
-- sessions one by one.

local hints = require "sessile.cli.hints"
local progress = require "sessile.cli.progress"
local terminal = require "sessile.cli.terminal"
local times = require "sessile.times"

local filters = {}

--- For the `options` of a command.
filters.options = {
  { "--status WHAT", "only sessions with this status (else all but deleted ones)", many = true,
    choices = { "active", "suspended", "archived", "expired", "deleted" } },
  { "--since WHEN", "modified since a date (2026-02-01) or an age (24h, 7d)" },
  { "--until WHEN", "modified before that" },
  { "--label NAME", "only sessions with this label", is = "label name" },
}

--- The time (ms) that was typed: a date (UTC), or an age. nil: none was.
function filters.moment(app, option, text)
  if not text then return nil end
  local ms = times.moment(text, app.now())
  if not ms then
    app.fail(("option '%s': '%s' is neither a date (2026-02-01) nor an age (24h, 7d)"):format(
      option, hints.shown(text)), "EUSAGE")
  end
  return ms
end

--- The times of --since and --until, in ms.
---@param app sessile.cli.app
---@param args table
---@return integer? since
---@return integer? till
function filters.moments(app, args)
  return filters.moment(app, "--since", args.since), filters.moment(app, "--until", args["until"])
end

--- The options as an argument of store:list.
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

--- Opens each of these sessions in turn. One that cannot be opened is reported and skipped.
---@param app sessile.cli.app
---@param store table
---@param rows table[]      of its list
---@param label string      of the bar
---@param with fun(session: table, row: table): boolean?, string?, string?  false, a sentence and
--- a code to stop
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

--- Whether the options select less than all sessions.
---@param args table
---@return boolean
function filters.are_narrow(args)
  return (args.since or args["until"] or args.user or args.label
    or args.status and #args.status > 0) and true or false
end

return filters
