--- copy: copies a whole session into another store.
--
-- Owns: the choice of the other store and its key. Must never change the session that is copied.

local common = require "sessile.cli.common"
local hints = require "sessile.cli.hints"
local stores = require "sessile.cli.stores"

return {
  summary = "copy a whole session into another store, and print its id there",
  usage = "copy ID STORE [--id NEW] [--to-key-file FILE | --to-plain]",
  examples = [[
    sessile copy bug-42 /mnt/backup  every entry and branch, with the same ids
    sessile copy last ./shared --to-key-file ./shared.key --id case-7
      sealed with the other store's key]],
  arguments = {
    common.session_as { field = "session" },
    { "to", "the other store: a folder or file:FOLDER; created if missing", is = "folder" },
  },
  options = {
    { "--id NEW", "its id there (default: the same)" },
    { "--to-key-file FILE", "the other store's key (else $SESSILE_KEY, else your key file)" },
    { "--to-plain", "the other store is not sealed" },
    { "--to-agent NAME", "its agent there (default: the same)" },
  },
  about = [[
    The copy includes labels, checkpoints, settings and every branch. It is sealed with
    the keys of the other store. Later changes to one session do not affect the other.]],
  run = function(app, args)
    common.check_new_id(app, args.id)
    common.at_most_one(app, args, { "--to-plain", "--to-key-file" })
    local session = app:open(args.session)
    local there = {
      store = args.to, key_file = args.to_key_file, plain = args.to_plain,
      timeout = app.globals.timeout, network = app.globals.network,
      token_file = app.globals.token_file, -- the same guard, and who they are there
      configured = { guard = app.try(app:config()).guard },
    }
    local store = app:keep(app.try(stores.open(there, true, {
      on_policy_error = function() end, -- app:store() has warned of it
    })))
    local copy = app:keep(app.try_or({
      EEXISTS = ("Give it another name there: sessile copy %s %s --id NEW"):format(
        hints.id(session.id), hints.quoted(args.to)),
    }, store:put(session, { id = args.id, agent = args.to_agent })))
    app:result({ session = session.id, id = copy.id, agent = copy.agent, store = args.to },
      app.id_line(copy.id))
  end,
}
