--- session_read: session/…: what is read of a session.

local core = require "sessile.core"
local facts = require "sessile.facts"

-- Entries of a log, as text, and where to go on. limit: 0: all.
local function entries(request, params, s)
  local list, last = {}, nil
  local iterator, message, code, closing = s:entries { types = params.types, after = params.after,
    before = params.before, limit = params.limit, reverse = params.reverse }
  if not iterator then
    return nil, message, code
  end
  local _ <close> = closing
  for entry in iterator do
    list[#list + 1] = core.json(facts.of(entry).json)
    last = entry.id
    if #list % 256 == 0 then
      request:breathe()
    end
  end
  local is_cut = params.limit and params.limit > 0 and #list == params.limit
  return { entries = list, next = is_cut and last or nil }
end

local function export(params, s)
  local pieces = {}
  local done, message, code, retry_ms, rule = s:export {
    format = params.format, to = params.to, context = params.context, cwd = params.cwd,
    redact = params.redact, content = params.content, write = function(piece)
      pieces[#pieces + 1] = piece
      return true
    end,
  }
  if not done then
    return nil, message, code, retry_ms, rule
  end
  return { format = done.format, text = table.concat(pieces), redacted = done.redacted,
    notes = done.notes }
end

return function(method)
  local count = { model = "string?", tools = "json?", system = "string?", at = "Id?" }

  method("session/context", "the messages that the model would get", {
    at = "Id?", model = "string?", tools = "json?", system = "string?", window = "integer?",
    reserve = "integer?",
  }, "Context", { run = function(_, params, s)
    local list, info, code, retry_ms, rule = s:context { at = params.at, model = params.model,
      tools = params.tools, system = params.system, window = params.window,
      reserve = params.reserve }
    if not list then
      return nil, info, code, retry_ms, rule
    end
    info.messages = list
    return info
  end })

  method("session/messages", "every message from the root to the head, compacted or not", {
    from = "Id?", at = "Id?", limit = "integer?", last = "integer?", role = "string?",
  }, "Read[]")

  method("session/entries", "the entries in the order of the log, or backwards", {
    types = "string[]?", after = "Id?", before = "Id?", limit = "integer?", reverse = "boolean?",
  }, "Entries", { run = entries })

  method("session/entry", "one entry", { entry = "Id" }, "json", { args = { "entry" } })

  method("session/tree", "the entries as a tree; some types, or those with a label", {
    types = "string[]?", labelled = "boolean?",
  }, "Tree", { run = function(_, params, s)
    local tree, message, code, retry_ms, rule =
      s:tree { types = params.types, labelled = params.labelled }
    if not tree then
      return nil, message, code, retry_ms, rule
    end
    return { current = tree.current, nodes = tree.list }
  end })

  method("session/path", "the ids from the header to an entry; without one, to the head", {
    entry = "Id?",
  }, "string[]", { args = { "entry" } })

  method("session/head", "the id of the head", {}, "string")

  method("session/labels", "the labels in force", {}, "Label[]")

  method("session/tokens", "the tokens of the context", count, "Tokens",
    { run = function(_, params, s)
      local tokens, info, code, retry_ms, rule = s:tokens { model = params.model,
        tools = params.tools, system = params.system, at = params.at }
      return tokens and info, info, code, retry_ms, rule
    end })

  method("session/usage", "what providers reported; with `by`, in groups", {
    by = "'day'|'model'|'agent'|'day_and_model'?",
  }, "UsageReport", { run = function(_, params, s)
    local usage, message, code, retry_ms, rule = s:usage { by = params.by }
    if not usage then
      return nil, message, code, retry_ms, rule
    end
    return params.by and { groups = usage } or usage
  end })

  method("session/why", "why a message is in the context, or not", { entry = "Id" }, "Explanation",
    { args = { "entry" } })

  method("session/log", "the compactions on the path, and refusals", {}, "Compaction[]")

  method("session/checkpoints", "the checkpoints that are kept, newest first", {
    name = "string?", named = "boolean?", since = "Time?", ["until"] = "Time?",
    reason = "'manual'|'periodic'|'event'|'threshold'?",
  }, "Checkpoint[]")

  method("session/parked", "the runs that wait for an answer from elsewhere", {}, "Parked[]",
    { call = "pending_runs" })

  method("session/export", "the session as a document", {
    format = "string?", to = "string?", context = "boolean?", cwd = "string?",
    redact = "boolean?", content = "boolean?",
  }, "Exported", { run = function(_, params, s) return export(params, s) end })
end
