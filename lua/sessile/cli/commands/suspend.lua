--- suspend: pauses a session until somebody answers.
--
-- Owns: how a pause is given. Must never end one: that is `sessile answer` and `sessile cancel`.

local hints = require "sessile.cli.hints"

local sessile = require "sessile"

local function run(app, args, session)
  local state
  if args.state then
    local _, wrong = sessile.decode(args.state)
    if wrong then
      return nil, "--state: " .. wrong:gsub("^sessile%.decode: ", ""), "EUSAGE"
    end
    state = sessile.json(args.state)
  end
  local outcome, message, code = session:suspend { reason = args.reason, state = state }
  if not outcome then
    return nil, message, code
  elseif app.json then
    app:print_json { session = session.id, entry = outcome.suspension, reason = args.reason }
    return
  end
  app:out(outcome.suspension .. "\n")
  local id = hints.id(session.id)
  app:note(("It waits. To end the pause: sessile answer %s TEXT, or sessile cancel %s")
    :format(id, id))
end

return {
  name = "suspend",
  summary = "pause a session until somebody answers",
  usage = "suspend ID [REASON] [--state JSON]",
  examples = {
    { "sessile suspend bug-42 'approval by ann'", "then: sessile answer bug-42 'go ahead'" },
    { "sessile suspend last --state '{\"step\": 3}'", "with state for whoever continues" },
  },
  arguments = {
    { "id", "a session: its id, a prefix of it, its title, a label, or `last`" },
    { "reason", "what the session waits for", "?" },
  },
  options = { { "--state JSON", "a value to keep with the pause" } },
  about = "Reading, labels and settings work as before. Adding to the conversation fails until\n"
    .. "the pause ends. `sessile info` shows what the session waits for.",
  run = function(app, args)
    return app:with_session(args.id, function(session) return run(app, args, session) end)
  end,
}
