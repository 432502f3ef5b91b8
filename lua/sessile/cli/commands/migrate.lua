--- migrate: all sessions of one store into another.
--
-- Owns: which two stores are meant, and which keys. Must never change the one that is copied.

local moving = require "sessile.cli.moving"
local paths = require "sessile.paths"
local sessile = require "sessile"
local sessions = require "sessile.cli.sessions"

-- The other store, as sessile.migrate takes it.
local function target(app, args)
  local key
  if args.to_plain then
    key = false
  elseif args.to_key_file then
    key = sessile.key.file(args.to_key_file)
  end
  return {
    url = args.to, key = key, timeout_ms = app.globals.timeout, network = app.globals.network,
  }
end

local STEPS = {
  EEXISTS = "To keep them, or to continue an earlier run, add --into: existing sessions are never "
    .. "overwritten.",
  EINVALID = "Sealed there: --to-sealed, or --to-key-file FILE. Not sealed there: --to-plain.",
  ESEALED = "The key of FROM comes from SESSILE_KEY or --key-file FILE, that of TO from "
    .. "--to-key-file FILE.",
}

return {
  name = "migrate",
  summary = "copy all sessions of a store into another store of any kind",
  usage = "migrate FROM TO [--to-key-file FILE | --to-plain | --to-sealed] [--into]",
  examples = {
    { "sessile migrate ./sessions sqlite:sessions.db",
      "copy the sealed bytes; the same key opens them" },
    { "sessile migrate sqlite:a.db postgres://host/db", "run it, stop the writers, run it again" },
    { "sessile migrate old new --to-key-file new.key", "seal the copy with another key" },
  },
  arguments = {
    { "from", "the store to copy: a folder, " .. paths.store_forms(true), is = "folder" },
    { "to", "the other store: created if missing", is = "folder" },
  },
  options = {
    { "--to-key-file FILE", "the other store is sealed with this key" },
    { "--to-plain", "the other store is not sealed" },
    { "--to-sealed", "the other store is sealed, although this one is not" },
    { "--into", "the other store may have sessions, which stay as they are" },
    { "--replace", "replace sessions that differ there; keep their old logs" },
  },
  about = "FROM is only read, and others may write to it meanwhile. To copy what they wrote, run\n"
    .. "the command again. Ids, branches, labels, checkpoints and deletions are copied, and\n"
    .. "the whole copy is read back. If the command is interrupted, run it again to continue.",
  run = function(app, args)
    local asked = 0
    for _, name in ipairs { "to_plain", "to_sealed", "to_key_file" } do
      asked = asked + (args[name] and 1 or 0)
    end
    if asked > 1 then
      return nil, "--to-plain, --to-sealed and --to-key-file exclude each other", "EUSAGE"
    elseif app.globals.store then
      return nil, "migrate takes both stores as arguments, not --store", "EUSAGE"
    end
    for _, url in ipairs { args.from, args.to } do
      local ok, wrong, kind, step = moving.check(url)
      if not ok then
        return nil, wrong, kind, step
      end
    end
    local from, message, code, step = sessions.as_place(app, args.from)
    if not from then
      return nil, message, code, step
    end
    local done
    done, message, code, step = moving.run(app, function(report)
      return sessile.migrate(from, target(app, args), {
        change = asked > 0, into = args.into, replace = args.replace, progress = report,
      })
    end)
    if not done then
      if code == "ENOTFOUND" then
        return nil, ("%s: %s"):format(moving.shown(args.from), message), code,
          "Name the store to copy first, then the other one."
      end
      if message:find("lead to the same store", 1, true) then
        return nil, message, code, "Name two stores: the one to copy, then the other one."
      end
      return nil, message, code, step or STEPS[code]
    end
    local to = moving.shown(args.to)
    if app.json then
      moving.json(app, done, { from = moving.shown(args.from), to = to })
    else
      moving.tell(app, done, to)
    end
    return moving.verdict(done)
  end,
}
