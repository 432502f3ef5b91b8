--- checkpoint: makes or removes a checkpoint.
--
-- Must never change the state that it was given.

local sessile = require "sessile"

local common = require "sessile.cli.common"
local entries = require "sessile.cli.entries"
local hints = require "sessile.cli.hints"
local span = require("sessile.core").span

local function read_state(app, args)
  local text = args.state == "-" and common.standard_input(app) or args.state
  if text and not span.valid(text) then
    app.fail("the state is not JSON", "EUSAGE", "Quote a text: --state '\"step 3\"'")
  end
  return text and sessile.json(text)
end

return {
  summary = "record where a session stands, to go back to it later",
  usage = "checkpoint ID [NAME] [--state JSON | --state -]",
  examples = [[
    sessile checkpoint bug-42 'before the rewrite'    with a name; these are removed last
    agent --dump | sessile checkpoint last --state -  with the state of an agent
    sessile checkpoint rm bug-42 0000002a             remove one]],
  arguments = {
    common.session_as { more = "; `rm`: remove one" },
    { "name", "its name; after `rm`, the session", "?" },
    { "entry", "after `rm`: the checkpoint's name, number or label", "?" },
  },
  options = {
    { "--state JSON", "the state that restore returns; `-`: standard input" },
  },
  run = function(app, args)
    local remove = args.id == "rm"
    if remove ~= (args.entry ~= nil) then
      return nil, "say: checkpoint ID [NAME], or: checkpoint rm ID CHECKPOINT", "EUSAGE"
    end
    local state = not remove and read_state(app, args) or nil
    local session = app:open(remove and args.name or args.id)
    local entry
    if remove then
      entry = app.try_or({ ENOTFOUND = "See them: sessile checkpoints " .. hints.id(session.id) },
        session:delete_checkpoint(app.try(entries.checkpoint(session, args.entry))))
    else
      entry = app.try(session:checkpoint { name = args.name, state = state })
    end
    app:result({ session = session.id, checkpoint = remove and args.entry or entry,
      removed = remove or nil }, not remove and entry .. "\n" or nil)
  end,
}
