--- checkpoint: keeps where a session stands, with a state of the agent's own.
--
-- Owns: where the state comes from. Must never change it.

local sessile = require "sessile"

local entries = require "sessile.cli.entries"
local hints = require "sessile.cli.hints"
local span = require("sessile.core").span

local function read_state(args)
  local text = args.state
  if text == "-" then
    text = io.stdin:read "a"
    if not text then
      return nil, "standard input cannot be read", "EIO"
    end
  end
  if text and not span.valid(text) then
    return nil, "the state is not JSON", "EUSAGE", "Quote a text: --state '\"step 3\"'"
  end
  return text and sessile.json(text)
end

return {
  name = "checkpoint",
  summary = "record where a session stands, to go back to it later",
  usage = "checkpoint ID [NAME] [--state JSON | --state -]",
  examples = {
    { "sessile checkpoint bug-42 'before the rewrite'", "with a name; these are removed last" },
    { "agent --dump | sessile checkpoint last --state -", "with the state of an agent" },
    { "sessile checkpoint rm bug-42 0000002a", "remove one" },
  },
  arguments = {
    { "id", "a session: its id, a prefix of it, its title, a label, or `last`"
      .. "; `rm`: remove one" },
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
    local session, state, message, code, step
    if not remove then
      state, message, code, step = read_state(args)
      if code then
        return nil, message, code, step
      end
    end
    session, message, code, step = app:session(remove and args.name or args.id)
    if not session then
      return nil, message, code, step
    end
    local entry
    if remove then
      local which
      which, message, code, step = entries.checkpoint(session, args.entry)
      if which then
        entry, message, code = session:delete_checkpoint(which)
      end
    else
      entry, message, code = session:checkpoint { name = args.name, state = state }
    end
    local id = session.id
    session:close()
    if not entry then
      if remove and code == "ENOTFOUND" then
        step = "See them: sessile checkpoints " .. hints.id(id)
      end
      return nil, message, code, step
    elseif app.json then
      app:print_json { session = id, checkpoint = remove and args.entry or entry,
        removed = remove or nil }
    elseif not remove then
      app:out(entry .. "\n")
    end
  end,
}
