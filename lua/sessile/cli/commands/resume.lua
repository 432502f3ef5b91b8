--- resume: shows where a session stands, and continues the chat.
--
-- Shows the last exchange, open questions and calls, and the last checkpoint with its state.
-- Without a terminal it does not chat. Must never change anything before a line is typed, except
-- for --from.

local ask = require "sessile.cli.ask"
local chat = require "sessile.cli.commands.chat"
local common = require "sessile.cli.common"
local entries = require "sessile.cli.entries"
local facts = require "sessile.facts"
local hints = require "sessile.cli.hints"
local models = require "sessile.cli.models"
local render = require "sessile.cli.render"
local span = require("sessile.core").span
local speaker = require "sessile.speaker"
local terminal = require "sessile.cli.terminal"
local transcript = require "sessile.interaction.transcript"

-- The last message of the user and all later messages.
local function last_exchange(list)
  local from = #list
  while from > 1 and not speaker.asks(list[from]) do
    from = from - 1
  end
  return table.move(list, math.max(from, 1), #list, 1, {})
end

-- Moves the head back to a checkpoint, after asking. Its id.
local function go_back(app, args, session)
  local which = app.try(entries.checkpoint(session, args.from))
  ask.must(app, args, ("Move the head of %s back to '%s'"):format(hints.shown(session.id),
    hints.shown(args.from)))
  local restored = app.try_or({
    ECONFLICT = ("To go back anyway: sessile restore %s %s --force"):format(hints.id(session.id),
      which),
  }, session:restore(which))
  for _, warning in ipairs(restored.warnings) do
    app:note("Note: " .. terminal.line(warning))
  end
  return which
end

-- The checkpoint `wanted`, or the newest: its row, its state, and how many messages came after it
-- (nil if it is on another branch).
local function checkpoint_of(app, session, list, wanted)
  local rows = app.try(session:checkpoints())
  local point = rows[1]
  for _, row in ipairs(wanted and rows or {}) do
    point = row.id == wanted and row or point
  end
  if not point then
    return nil
  end
  local entry = app.try(session:entry(point.id))
  local before = app.try(session:messages { at = point.head })
  local _, fields = span.object(entry.json)
  local _, data = span.object(fields.data)
  local last = list[#before]
  local is_ours = #before == 0 or last and facts.of(last).id == facts.of(before[#before]).id
  return { row = point, state = data.state, after = is_ours and #list - #before or nil }
end

local function collect(app, session, wanted)
  local list = app.try(session:messages())
  local tokens = app.try(session:tokens())
  local pending_runs = app.try(session:pending_runs())
  local point = checkpoint_of(app, session, list, wanted)
  local pause, message, code = session:suspended()
  app.try(not message, message, code)
  return {
    list = list, last = last_exchange(list), tokens = tokens, pause = pause,
    pending_runs = pending_runs, calls = transcript.waiting(list) or {},
    checkpoint = point,
  }
end

local function as_json(app, session, known)
  local calls = {}
  for i, call in ipairs(known.calls) do
    calls[i] = { id = call.id, name = call.name }
  end
  local point, pause = known.checkpoint, known.pause
  app:print_json {
    session = session.id, agent = session.agent, title = session.title,
    created = session.created, modified = session.modified, messages = #known.list,
    tokens = known.tokens, head = session:head(), last = render.list(app, known.last),
    open_calls = app.array(calls), pending_runs = #known.pending_runs,
    suspension = pause and { id = pause.id, time = pause.time, reason = pause.reason },
    checkpoint = point and {
      id = point.row.id, name = point.row.name, time = point.row.time, head = point.row.head,
      sound = point.row.sound, state = point.state and app.raw(point.state), after = point.after,
    },
  }
end

local LONGEST, MOST = 12, 1200 -- lines and columns of one message
local ENDS = 3 -- messages shown of the last exchange: the question, and the newest ones

-- Shows the checkpoint.
local function show_checkpoint(app, line, point, id)
  local row, after = point.row, point.after
  line("checkpoint", ("%s, %s, at %s; %s"):format(row.name and terminal.line(row.name)
    or "without a name", terminal.ago(row.time, app.now()), row.id,
    not row.sound and "it is DAMAGED" or not after and "on another branch"
    or after == 0 and "no messages since" or after == 1 and "1 message came after it"
    or terminal.number(after) .. " messages came after it"))
  if point.state then
    line("its state", terminal.cut(terminal.line(point.state), MOST))
  end
  if row.sound and after ~= 0 then
    app:note(("To continue from the checkpoint: sessile resume %s --from last"):format(id))
  end
end

local function shown(app, message)
  local text = terminal.cut(terminal.safe(render.text(message)):gsub("%s+$", ""), MOST)
  local lines = {}
  for line in (text .. "\n"):gmatch "(.-)\n" do
    lines[#lines + 1] = line
  end
  if #lines > LONGEST then
    lines[LONGEST] = ("… (%d more lines)"):format(#lines - LONGEST + 1)
  end
  app:out(app.paint(render.role(message), render.colour(message)) .. "\n")
  for i = 1, math.min(#lines, LONGEST) do
    if lines[i] ~= "" or i < #lines then
      app:out("  " .. lines[i] .. "\n")
    end
  end
  for _, call in ipairs(render.calls(message)) do
    app:out(("  → %s(%s)\n"):format(terminal.line(call.name),
      terminal.cut(terminal.line(call.arguments), 60)))
  end
end

local function show(app, session, known)
  local now, id = app.now(), hints.id(session.id)
  local function line(name, text)
    app:out(("%s  %s\n"):format(app.paint(("%-10s"):format(name), "dim"), text))
  end
  line("session", app.paint(terminal.line(session.id), "cyan")
    .. (session.title ~= "" and "  " .. terminal.line(session.title) or ""))
  line("agent", terminal.line(session.agent))
  line("created", terminal.ago(session.created, now))
  line("messages", ("%s, %s tokens in the context"):format(terminal.number(#known.list),
    terminal.number(known.tokens)))
  if known.checkpoint then
    show_checkpoint(app, line, known.checkpoint, id)
  end
  for _, call in ipairs(known.calls) do
    line("open call", terminal.line(("%s (%s): nobody answered it yet"):format(
      tostring(call.name), call.id)))
  end
  if known.pause then
    line("waits for", ("%s, %s"):format(known.pause.reason ~= ""
      and terminal.line(known.pause.reason) or "an answer", terminal.ago(known.pause.time, now)))
  end
  if #known.pending_runs > 0 then
    line("pending", ("%d question%s to a model"):format(#known.pending_runs,
      #known.pending_runs == 1 and "" or "s"))
  end
  -- A question may have led to a hundred calls; the header must stay visible.
  local between = #known.last - ENDS > 1 and #known.last - ENDS or 0
  for i, message in ipairs(known.last) do
    if i == 1 or i > between + 1 then
      app:out "\n"
      shown(app, message)
    elseif i == 2 then
      app:out(app.paint(("\n… %s messages between: sessile show %s --last %d\n"):format(
        terminal.number(between), id, #known.last), "dim"))
    end
  end
  if known.pause or #known.pending_runs > 0 then
    app:note("Answer it: sessile answer " .. id)
  end
end

return {
  summary = "show where a session stands, and continue the chat",
  usage = "resume [ID] [--from CHECKPOINT] [--model NAME] [--yes]",
  examples = [[
    sessile resume                     the newest session
    sessile resume bug-42 --from last  go back to the last checkpoint; later entries become a branch
    sessile resume bug-42 | less       without a terminal: only show it]],
  arguments = { common.newest },
  options = {
    { "--from CHECKPOINT", "go back to it first: its name, number, or `last`" },
    models.option, { "--no-history", "keep no history of typed lines" }, ask.option,
  },
  about = [[
    A session continues at its head, so messages after a checkpoint are not lost. The
    last checkpoint is shown with the state kept in it. --from goes back to a checkpoint
    and asks first; in the chat this is /restore. If you say something else while tool
    calls are open, they are answered with what is known about them.]],
  run = function(app, args)
    local session = app:open(args.id or "last")
    local from = args.from and go_back(app, args, session)
    local known = collect(app, session, from)
    if app.json then
      return as_json(app, session, known)
    end
    show(app, session, known)
    local talks = chat.is_talk() and not known.pause and not session.damage
    if not talks then
      return
    end
    if not models.of_session(app, session, args.model) and not args.model then
      app:note("To continue, configure a model; see: sessile help chat")
      return
    end
    app:out "\n"
    return chat.talk_in(app, args, session)
  end,
}
