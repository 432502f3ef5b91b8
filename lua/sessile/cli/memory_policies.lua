--- memory_policies: `policy replay` and `policy try` for policies of memories.
--
-- Owns: how their proposals are printed. Must never write to a store.

local facts = require "sessile.facts"
local hints = require "sessile.cli.hints"
local memories = require "sessile.cli.memories"
local memory_replay = require "sessile.memory_replay"
local policy_file = require "sessile.policy_file"
local recordings = require "sessile.cli.recordings"
local sessile = require "sessile"
local terminal = require "sessile.cli.terminal"

local memory_policies = {}

--- Whether a policy has hooks of memories and none of contexts.
function memory_policies.is_one(chosen)
  local is_memory, is_context = policy_file.kinds(chosen)
  return is_memory and not is_context
end

--- A proposed change as words: what, whose words, and the text.
function memory_policies.line_of(change)
  local what = change["do"] == "write" and (change.state == "live" and "new" or change.state)
    or change["do"]
  local parts = { what }
  parts[#parts + 1] = change.source and "(" .. change.source .. ")" or nil
  parts[#parts + 1] = change.key and terminal.line(change.key) .. ":" or nil
  if change.value then
    parts[#parts + 1] = '"' .. terminal.line(change.value) .. '"'
  end
  local ids = {}
  for i, id in ipairs(change.replaces or change.ids or {}) do
    ids[i] = memories.short(id)
  end
  if #ids > 0 then
    parts[#parts + 1] = (change.replaces and "in place of " or "") .. table.concat(ids, ", ")
  end
  parts[#parts + 1] = change.why and "- " .. terminal.line(change.why) or nil
  return table.concat(parts, " ")
end

local function print_events(app, ledger)
  local rows = {}
  for _, event in ipairs(ledger.events) do
    for _, row in ipairs(event.recalled) do
      rows[#rows + 1] = { tostring(event.turn), "recalled", memories.short(row.id) .. ' "'
        .. terminal.line(row.value) .. '"' }
    end
    for _, change in ipairs(event.changes) do
      rows[#rows + 1] = { tostring(event.turn), "remembered", memory_policies.line_of(change) }
    end
    if event.refused then
      rows[#rows + 1] = { tostring(event.turn), "refused", terminal.line(event.refused) }
    end
  end
  if #rows > 0 then
    app:print_table({ "TURN>", "", "" }, rows)
    app:out "\n"
  end
end

--- Replays recordings, one after the other, with one memory.
function memory_policies.replay(app, args, chosen, files)
  local replay = memory_replay.new { policy = chosen, hooks = policy_file.hooks(chosen),
    model = args.answer and function() return args.answer end }
  local totals, list = {}, {}
  for i, file in ipairs(files) do
    local records, why, code, step = recordings.open(file, args.from)
    local ledger = nil
    if records then
      step = nil
      ledger, why, code = replay:run(records)
    end
    if ledger and ledger.messages == 0 then
      ledger, why, code = nil, "there is no message in it, so there is nothing to replay",
        "EINVALID"
    end
    if not ledger then
      replay:close()
      return nil, records and ("%s: %s"):format(hints.shown(file), why) or why, code, step
    end
    totals[i] = { hints.shown(file), tostring(ledger.turns), tostring(ledger.model_calls),
      tostring(ledger.recalled), tostring(ledger.written), tostring(ledger.pending),
      tostring(ledger.ended), tostring(ledger.confirmed), tostring(ledger.refused) }
    if app.json then
      ledger.file, ledger.events = file, app.array(ledger.events)
      list[i] = ledger
    else
      print_events(app, ledger)
    end
  end
  if app.json then
    app:print_json { policy = args.name, replays = app.array(list) }
  else
    app:print_table({ "FILE", "TURNS>", "ASKED>", "RECALLED>", "NEW>", "PENDING>", "ENDED>",
      "CONFIRMED>", "REFUSED>" }, totals)
  end
  replay:close()
end

-- The session, or if its agent has no memory yet, a copy of it in memory: a dry run needs one to be
-- judged against, and must not make it.
local function with_memory(app, session)
  local memory, _, code = app:need_store():memory { agent = session.agent, must_exist = true }
  if memory then
    memory:close()
  end
  if code ~= "ENOTFOUND" or session.user and session.user ~= "" then
    return session
  end
  local store = assert(sessile.open("ram:", { key = false, memory = { enabled = true } }))
  local copy = assert(store:create { agent = session.agent })
  for _, message in ipairs(app.try(session:messages())) do
    app.try(copy:append(sessile.json(facts.of(message).json)))
  end
  return copy
end

--- What a policy would remember of a session now, and what the laws say.
function memory_policies.try(app, args, chosen, steps)
  local session = with_memory(app, app:open(args.id))
  local asked = 0
  local outcome = app.try_or(steps, session:remember { policy = chosen, dry = true,
    model = function()
      asked = asked + 1
      return args.answer, "`policy try` asks no model"
    end })
  if app.json then
    app:print_json(outcome)
    return outcome.verdict == "refused" and 1 or 0
  end
  for line in (outcome.log or ""):gmatch "[^\n]+" do
    app:note(terminal.line(line))
  end
  if outcome.verdict == "refused" then
    return nil, ("%s refused: %s"):format(terminal.line(outcome.policy or args.name),
      terminal.line(outcome.message or "")), "EPOLICY", asked > 0 and not args.answer
        and "Nothing was written. To play the model: --answer '1 | fact | - | A statement. | -'"
        or "Nothing was written."
  end
  for _, change in ipairs(outcome.changes or {}) do
    app:out(memory_policies.line_of(change) .. "\n")
  end
  app:note(("%s heard; nothing was written."):format(
    terminal.plural(outcome.heard, "message")))
end

return memory_policies
