--- resume: where a session stands, and then the conversation itself.
--
-- Owns what somebody must know who comes back: what was said last, what waits, the last
-- checkpoint. Without a terminal it only shows. Must never change anything before a line is typed.

local chat = require "sessile.cli.commands.chat"
local hints = require "sessile.cli.hints"
local models = require "sessile.cli.models"
local render = require "sessile.cli.render"
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

local function collect(session)
  local list, message, code = session:messages()
  local tokens, pause, parked, points
  if list then tokens, message, code = session:tokens() end
  if tokens then parked, message, code = session:parked() end
  if parked then points, message, code = session:checkpoints() end
  if not points then
    return nil, message, code
  end
  pause, message, code = session:suspended()
  if not pause and message then
    return nil, message, code
  end
  return {
    list = list, last = last_exchange(list), tokens = tokens, pause = pause, parked = parked,
    calls = transcript.waiting(list) or {}, checkpoint = points[1],
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
    open_calls = app.array(calls), parked = #known.parked,
    suspension = pause and { id = pause.id, time = pause.time, reason = pause.reason },
    checkpoint = point and { id = point.id, name = point.name, time = point.time },
  }
end

local LONGEST, MOST = 12, 1200 -- lines and columns of one message

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
  local point = known.checkpoint
  if point then
    line("checkpoint", ("%s, %s, at %s"):format(point.name and terminal.line(point.name)
      or "without a name", terminal.ago(point.time, now), point.id))
  end
  for _, call in ipairs(known.calls) do
    line("open call", terminal.line(("%s (%s): nobody answered it yet"):format(
      tostring(call.name), call.id)))
  end
  if known.pause then
    line("waits for", ("%s, %s"):format(known.pause.reason ~= ""
      and terminal.line(known.pause.reason) or "an answer", terminal.ago(known.pause.time, now)))
  end
  if #known.parked > 0 then
    line("parked", ("%d question%s to a model"):format(#known.parked,
      #known.parked == 1 and "" or "s"))
  end
  for _, message in ipairs(known.last) do
    app:out "\n"
    shown(app, message)
  end
  if known.pause or #known.parked > 0 then
    app:note("Answer it: sessile answer " .. id)
  end
end

return {
  name = "resume",
  summary = "see where a session stands, and go on talking",
  usage = "resume [ID] [--model NAME]",
  examples = {
    { "sessile resume", "the newest" },
    { "sessile resume bug-42 | less", "without a terminal it only shows" },
  },
  arguments = { { "id", "a session's id, a beginning of it, its title, or `last`", "?" } },
  options = { models.option, { "--no-history", "keep no file of the lines that are typed" } },
  about = "Calls that wait for a tool are answered with what is known of them when you say\n"
    .. "something else. To go back to the checkpoint first: sessile restore, or /restore in the\n"
    .. "chat.",
  run = function(app, args)
    local session, message, code, step = app:session(args.id or "last")
    if not session then
      return nil, message, code, step
    end
    local _ <close> = setmetatable({}, { __close = function() session:close() end })
    local known
    known, message, code = collect(session)
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
      app:note("To go on, configure a model; see: sessile help chat")
      return
    end
    app:out "\n"
    return chat.talk_in(app, args, session)
  end,
}
