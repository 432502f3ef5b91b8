--- copy: a session, whole, into another store.
--
-- Owns: which store and which key are meant on the other side. Must never change the session
-- that is copied.

local hints = require "sessile.cli.hints"
local sessions = require "sessile.cli.sessions"

return {
  name = "copy",
  summary = "copy a whole session into another store, and print its id there",
  usage = "copy SESSION STORE [--id NEW] [--to-key-file FILE | --to-plain]",
  examples = {
    { "sessile copy bug-42 /mnt/backup", "every entry and branch, with the same ids" },
    { "sessile copy last ./shared --to-key-file ./shared.key --id case-7",
      "sealed with the other store's key" },
  },
  arguments = {
    { "session", "a session: its id, a prefix of it, its title, a label, or `last`" },
    { "to", "the other store: a folder or file:FOLDER; created if missing", is = "folder" },
  },
  options = {
    { "--id NEW", "its id there (default: the same)" },
    { "--to-key-file FILE", "the other store's key (else $SESSILE_KEY, else your key file)" },
    { "--to-plain", "the other store is not sealed" },
    { "--to-agent NAME", "its agent there (default: the same)" },
  },
  about = "The copy includes labels, checkpoints, settings and every branch. It is sealed with\n"
    .. "the keys of the other store. Later changes to one session do not affect the other.",
  run = function(app, args)
    if args.id == "last" then
      return nil, "the id 'last' is taken: it always means the newest session", "EUSAGE"
    elseif args.to_plain and args.to_key_file then
      return nil, "--to-plain and --to-key-file exclude each other", "EUSAGE"
    end
    local session, message, code, step = app:session(args.session)
    if not session then
      return nil, message, code, step
    end
    local _ <close> = app.closing(session)
    local there = {
      store = args.to, key_file = args.to_key_file, plain = args.to_plain,
      timeout = app.globals.timeout, network = app.globals.network,
    }
    local store
    store, message, code, step = sessions.open(there, true)
    if not store then
      return nil, message, code, step
    end
    local copy
    copy, message, code = store:put(session, { id = args.id, agent = args.to_agent })
    if not copy then
      store:close()
      return nil, message, code, code == "EEXISTS"
        and ("Give it another name there: sessile copy %s %s --id NEW"):format(
          hints.id(session.id), hints.quoted(args.to)) or nil
    end
    local id, agent = copy.id, copy.agent
    copy:close()
    store:close()
    if app.json then
      app:print_json { session = session.id, id = id, agent = agent, store = args.to }
    else
      app:out_id(id)
    end
  end,
}
