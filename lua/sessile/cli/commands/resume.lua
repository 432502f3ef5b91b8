--- resume: where a session stands, and then the conversation itself.
--
-- Owns what somebody must know who comes back: what was said last, what waits, the last
-- checkpoint with its state. Without a terminal it only shows. Must never change anything before a
-- line is typed, unless --from says to go back first.

local ask = require "sessile.cli.ask"
local chat = require "sessile.cli.commands.chat"
local entries = require "sessile.cli.entries"
local hints = require "sessile.cli.hints"
local models = require "sessile.cli.models"
local render = require "sessile.cli.render"
local span = require("sessile.core").span
local terminal = require "sessile.cli.terminal"
local transcript = require "sessile.interaction.transcript"

-- The last thing that the user said, and what came after it.
local function last_exchange(list)
  local from = #list
  while from > 1 and list[from].role ~= "user" do
    from = from - 1
  end
  return table.move(list, math.max(from, 1), #list, 1, {})
end

-- Moves the head back to a checkpoint, after asking. Its id; false: somebody said no.
local function go_back(app, args, session)
  local which, message, code, step = entries.checkpoint(session, args.from)
  if not which then
    return nil, message, code, step
  end
  local go
  go, message, code, step = ask.sure(app, args, ("Move the head of %s back to '%s'"):format(
    hints.shown(session.id), hints.shown(args.from)))
  if not go then
    return go, message, code, step
  end
  local restored
  restored, message, code = session:restore(which)
  if not restored then
    return nil, message, code, code == "ECONFLICT"
      and ("To go back anyway: sessile restore %s %s --force"):format(hints.id(session.id),
        which) or nil
  end
  for _, warning in ipairs(restored.warnings) do
    app:note("Note: " .. terminal.line(warning))
  end
  return which
end

-- A checkpoint, the newest unless one is named: its row, its state as it was kept, and how many
-- messages came after it (nil: it stands on another branch).
local function checkpoint_of(session, list, wanted)
  local rows, message, code = session:checkpoints()
  local point = rows and rows[1]
  for _, row in ipairs(wanted and rows or {}) do
    point = row.id == wanted and row or point
  end
  if not point then
    return rows and {}, message, code
  end
  local entry, before
  entry, message, code = session:entry(point.id)
  if entry then
    before, message, code = session:messages { at = point.head }
  end
  if not before then
    return nil, message, code
  end
  local _, fields = span.object(entry.json)
  local _, data = span.object(fields.data)
  local last = list[#before]
  local is_ours = #before == 0 or last and last.id == before[#before].id
  return { row = point, state = data.state, after = is_ours and #list - #before or nil }
end

local function collect(session, wanted)
  local list, message, code = session:messages()
  local tokens, pause, pending_runs, point
  if list then tokens, message, code = session:tokens() end
  if tokens then pending_runs, message, code = session:pending_runs() end
  if pending_runs then point, message, code = checkpoint_of(session, list, wanted) end
  if not point then
    return nil, message, code
  end
  pause, message, code = session:suspended()
  if not pause and message then
    return nil, message, code
  end
  return {
    list = list, last = last_exchange(list), tokens = tokens, pause = pause,
    pending_runs = pending_runs, calls = transcript.waiting(list) or {},
    checkpoint = point.row and point,
  }
end

local function as_json(app, session, known)
  local messages, calls = {}, {}
  for i, one in ipairs(known.last) do
    messages[i] = render.json(app, one)
  end
  for i, call in ipairs(known.calls) do
    calls[i] = { id = call.id, name = call.name }
  end
  local point, pause = known.checkpoint, known.pause
  app:print_json {
    session = session.id, agent = session.agent, title = session.title,
    created = session.created, modified = session.modified, messages = #known.list,
    tokens = known.tokens, head = session:head(), last = app.array(messages),
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

-- What is said of the last checkpoint.
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
  -- A question may have led to a hundred calls: the header above is to be seen, too.
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
  name = "resume",
  summary = "show where a session stands, and continue the chat",
  usage = "resume [ID] [--from CHECKPOINT] [--model NAME] [--yes]",
  examples = {
    { "sessile resume", "the newest session" },
    { "sessile resume bug-42 --from last",
      "go back to the last checkpoint; later entries become a branch" },
    { "sessile resume bug-42 | less", "without a terminal: only show it" },
  },
  arguments = { { "id", "a session's id, a prefix of it, its title, or `last`", "?" } },
  options = {
    { "--from CHECKPOINT", "go back to it first: its name, number, or `last`" },
    models.option, { "--no-history", "keep no history of typed lines" }, ask.option,
  },
  about = "A session continues at its head, so messages after a checkpoint are not lost. The\n"
    .. "last checkpoint is shown with the state kept in it. --from goes back to a checkpoint\n"
    .. "and asks first; in the chat this is /restore. If you say something else while tool\n"
    .. "calls are open, they are answered with what is known about them.",
  run = function(app, args)
    local session, message, code, step = app:session(args.id or "last")
    if not session then
      return nil, message, code, step
    end
    local _ <close> = app.closing(session)
    local known, from
    if args.from then
      from, message, code, step = go_back(app, args, session)
      if from == nil then
        return nil, message, code, step
      elseif not from then
        return ask.no(app)
      end
    end
    known, message, code = collect(session, from)
    if not known then
      return nil, message, code
    elseif app.json then
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
