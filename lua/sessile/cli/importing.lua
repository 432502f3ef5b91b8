--- importing: imports one recording, and reports what it brought.
--
-- Owns: the counts as sentences and as JSON. Must never run a policy: a recording is imported
-- unchanged.

local agent_folders = require "sessile.cli.agent_folders"
local hints = require "sessile.cli.hints"
local import = require "sessile.import"
local terminal = require "sessile.cli.terminal"

local importing = {}

-- The numbers of branches, compactions and lines that are not messages, as text.
local function others(counts)
  local text = ""
  local function also(n, word, what, words)
    if n > 0 then
      text = ("%s; %s%s"):format(text, terminal.plural(n, word, words), what)
    end
  end
  also(counts.branches, "branch point", "")
  also(counts.compactions, "compaction", "")
  also(counts.summaries, "summary", " kept as a message", "summaries")
  also(counts.customs - counts.unread, "other line", " kept as custom")
  also(counts.strays, "message", " whose parent is not there")
  if counts.separate then
    text = ("%s\nits parent %s is not in the store: it stays a separate session, also when that "
      .. "one is imported later"):format(text, terminal.line(counts.separate))
  end
  if counts.unread == 0 then
    return text
  end
  return text .. ("\n%s could not be read as %s, kept as custom; first: line %d: %s"):format(
    terminal.plural(counts.unread, "line"), counts.unread == 1 and "a message" or "messages",
    math.abs(counts.first.at or 0), terminal.line(counts.first.why))
    .. (counts.looks_like and "\n" .. counts.looks_like or "")
end

--- What an import brought, as a sentence.
---@param counts sessile.import.counts
---@return string
function importing.said(counts)
  if counts.unchanged or counts.before > 0
    and counts.messages + counts.customs + counts.compactions == 0 then
    return "nothing new to import"
  end
  return ("%s in %s%s%s"):format(terminal.plural(counts.messages, "message"),
    terminal.plural(counts.turns, "turn"), counts.before > 0
      and (" after %s that were there"):format(terminal.number(counts.before)) or "",
    others(counts))
end

--- What an import brought, for --json.
---@param id string
---@param from string
---@param file string?
---@param counts sessile.import.counts
---@return table
function importing.as_json(id, from, file, counts)
  return {
    id = id, from = from, file = file, messages = counts.messages, turns = counts.turns,
    customs = counts.customs, refused = counts.refused, unread = counts.unread,
    first_unread = counts.first, branches = counts.branches, compactions = counts.compactions,
    summaries = counts.summaries, strays = counts.strays, before = counts.before,
    separate_from = counts.separate,
    resumed = counts.resumed or false, unchanged = counts.unchanged or false,
  }
end

--- Imports an open recording. more: options of import.into; titles: of agent_folders.titles.
---@param app sessile.cli.app
---@param store table
---@param file string
---@param records sessile.import.records
---@param more table
---@param titles (fun(path: string, id: string?): string?)?
---@return string? id
---@return sessile.import.counts|string counts_or_message
---@return string? code
---@return string? step
function importing.one(app, store, file, records, more, titles)
  titles = titles or agent_folders.titles()
  more.agent, more.user = app.globals.agent, app.globals.user
  more.title_of = function(id) return titles(records.path or file, id) end
  local session, counts, code = import.into(store, records, more)
  records.opened:close()
  if not session then
    return nil, ("%s: %s"):format(hints.shown(file), counts), code,
      (code == "EEXISTS" or code == "ECONFLICT") and "Give it another name: --id ID" or nil
  end
  local id = session.id
  local ok, message
  ok, message, code = session:close()
  return ok and id, ok and counts or message, code
end

return importing
