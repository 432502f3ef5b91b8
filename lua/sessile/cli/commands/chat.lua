--- chat: talks to the configured model in a session.
--
-- Owns: the start of a chat (session, model, system prompt), and the single exchange of a pipe.
-- Must never create a session before something is said.

local chat = require "sessile.cli.chat"
local common = require "sessile.cli.common"
local hints = require "sessile.cli.hints"
local models = require "sessile.cli.models"
local options = require "sessile.cli.options"
local stores = require "sessile.cli.stores"
local terminal = require "sessile.cli.terminal"

-- The session with that name, if there is one, and a function that makes it.
local function session_of(app, name, policy)
  local store = app:need_store(true, { policy = policy }) -- a wrong one fails here
  local function make()
    local session, message, code = store:create { id = name, agent = app.globals.agent,
      user = app.globals.user }
    if not session and code == "EEXISTS" and name then -- made meanwhile
      session = app:session(name)
    end
    return session and app:keep(session), message, code,
      code == "EEXISTS" and "It is another agent's: choose another name." or nil
  end
  if name then
    local session, message, code, step = app:session(name)
    if session or code ~= "ENOTFOUND" or name == "last" or step then
      return app:keep(app.try(session, message, code, step)), make
    end
  end
  return nil, make
end

-- The text of --system.
local function system_of(given)
  local path = given and given:match "^@(.+)$"
  if not path then
    return given
  end
  local file, why = io.open(path, "rb")
  if not file then
    return nil, "the system prompt cannot be read: " .. why, "EUSAGE"
  end
  local text = file:read "a"
  file:close()
  if not text then
    return nil, ("the system prompt cannot be read: %s is no file"):format(hints.shown(path)),
      "EUSAGE"
  end
  return (text:gsub("\n$", ""))
end

local function as_json(app, session, outcome, made)
  local usage = outcome.usage or {}
  local last = outcome.compactions[#outcome.compactions]
  app:print_json {
    session = session.id, created = made, status = outcome.status, text = outcome.text,
    ids = app.array(outcome.ids), error = outcome.error, code = outcome.code,
    kept = outcome.kept, usage = { input = usage.input, output = usage.output },
    compaction = last and last.compaction,
  }
end

-- One exchange: the answer goes to stdout, everything else to stderr.
local function once(app, talk, text)
  local made = not talk.session
  local show, reason, finish = chat.printer(app)
  local given = { stopped = function() return false end }
  if not app.json then
    given.show, given.reason = show, reason
  end
  local outcome, message, code, step = talk:exchange(given, text)
  if not app.json then
    finish()
  end
  app.try(outcome, message, code, step)
  local session = talk.session
  for _, one in ipairs(outcome.compactions) do
    app:note("Compacted: " .. terminal.change(one.tokens))
  end
  common.note_refusal(app, outcome.policy)
  if app.json then
    as_json(app, session, outcome, made)
  end
  if outcome.status ~= "completed" then
    return nil, outcome.error or outcome.reason or outcome.status, outcome.code,
      ("What you said is kept: sessile show %s"):format(hints.id(session.id))
  elseif made and not app.json then
    app:note("To continue: sessile chat " .. hints.id(session.id))
  end
end

local function is_talk()
  return terminal.is_terminal(0) and terminal.is_terminal(1)
end

-- The message of a single exchange; nil: a person types in a chat.
local function said_once(app, args)
  if args.once then
    return args.once
  elseif is_talk() then
    if app.json then
      return nil, "--json is for one exchange", "EUSAGE",
        "Pass the message with --once TEXT, or in a pipe."
    end
    return nil
  elseif terminal.is_terminal(0) then
    app:note "Type the message, then Ctrl-D."
  end
  local text = common.standard_input(app)
  if not text:find "%S" then
    return nil, "there is no message: standard input is empty", "EUSAGE",
      "Pass the message with --once TEXT, or in a pipe."
  end
  return (text:gsub("\r?\n$", ""))
end

-- The place of the store for the history of typed lines; nil: no history file.
local function place_of(app, args)
  local url, folder = stores.place(app.globals)
  local store = app:store()
  if args.no_history or not store or store.sealed then
    return nil
  end
  return folder or url
end

--- Talks in a session. `resume` uses it too. make: makes the session if there is none.
local function talk_in(app, args, session, make)
  local agent = session and session.agent or app.globals.agent
  local model = app.try(models.of_session(app, session, args.model, agent))
  local talk = chat.new { app = app, session = session, make = make, name = args.id, agent = agent,
    policy = options.policy(args.policy, args.option or {}), policy_name = args.policy,
    model_typed = args.model, system = args.system_text, place = place_of(app, args) }
  talk:take_model(model)
  if args.text then
    return once(app, talk, args.text)
  end
  talk:say(("%s · %s · /help · tools are not run here"):format(
    terminal.line(session and session.id or args.id or "a new session"),
    terminal.line(model.name)), "dim")
  talk:run()
end

return {
  summary = "talk to the configured model in a session",
  usage = "chat [ID] [--model NAME] [--policy P] [--system TEXT | @FILE] [--once TEXT]",
  examples = [[
    sessile chat bug-42                                     continue this session, or create it
    git diff | sessile chat review --system 'Review this.'  one exchange in a pipe
    sessile chat last --once 'and in one sentence?'         one more question]],
  arguments = { { "id", "a session's id, a prefix of it, its title, or `last`; or the id of "
    .. "a new one", "?" } },
  options = {
    models.option,
    { "--policy P", "the policy that compacts (else as configured)" },
    common.that_policy_option,
    { "--system TEXT", "the system message; @FILE: read it from a file" },
    { "--once TEXT", "one exchange; the answer goes to standard output" },
    { "--no-history", "keep no history of typed lines" },
  },
  about = [[
    Configure the model first: model = { endpoint = "https://…/v1", name = "…", key =
    { env = "API_KEY" } }, { command = { "program" } } or a name among `models`; see
    `sessile config`. A new session is made with your first message, which is on disk
    before the model is asked. Ctrl-C stops an answer: the part that arrived is kept,
    with a mark. The model's reasoning is kept too, and shown dimmed on a terminal.
    /help lists the commands. Tools are not run. The arrow keys recall lines that you
    typed. For a store that is not sealed, these lines are kept in
    $XDG_STATE_HOME/sessile/history, which only you can read; a sealed session keeps its
    own.]],
  talk_in = talk_in,
  is_talk = is_talk,
  run = function(app, args)
    local message, code, step
    args.text, message, code, step = said_once(app, args)
    if message then
      return nil, message, code, step
    end
    args.system_text, message, code = system_of(args.system)
    if message then
      return nil, message, code
    end
    if args.model then -- a wrong one fails before anything is made
      app.try(models.of(app, args.model))
    elseif not app:config() or not (app:config().model or next(app:config().models)
        or app:config().agents) then
      app.try(models.of(app))
    end
    local policy = common.policy(app, args.policy, args.option)
    return talk_in(app, args, session_of(app, args.id, policy))
  end,
}
