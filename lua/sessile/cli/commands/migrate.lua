--- migrate: copies all sessions of a store into another one.
--
-- Owns: the choice of the two stores and their keys. Must never change the store that is copied.

local common = require "sessile.cli.common"
local moving = require "sessile.cli.moving"
local paths = require "sessile.paths"
local sessile = require "sessile"
local stores = require "sessile.cli.stores"

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
  summary = "copy all sessions of a store into another store of any kind",
  usage = "migrate FROM TO [--to-key-file FILE | --to-plain | --to-sealed] [--into]",
  examples = [[
    sessile migrate ./sessions sqlite:sessions.db   copy the sealed bytes; the same key opens them
    sessile migrate sqlite:a.db postgres://host/db  run it, stop the writers, run it again
    sessile migrate old new --to-key-file new.key   seal the copy with another key]],
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
  about = [[
    FROM is only read, and others may write to it meanwhile. To copy what they wrote, run
    the command again. Ids, branches, labels, checkpoints and deletions are copied, and
    the whole copy is read back. If the command is interrupted, run it again to continue.
    Where a guard is configured this needs the permission move_store, and is in the audit
    of FROM.]],
  run = function(app, args)
    local changes = common.at_most_one(app, args, { "--to-plain", "--to-sealed", "--to-key-file" })
    if app.globals.store then
      return nil, "migrate takes both stores as arguments, not --store", "EUSAGE"
    end
    app.try(moving.check(args.from))
    app.try(moving.check(args.to))
    local from, message, code, step = stores.guarded(app, args.from)
    if from == nil then
      return nil, message, code, step
    end
    from = from or app.try(stores.as_place(app, args.from))
    local done
    done, message, code, step = moving.run(app, function(report)
      return sessile.migrate(from, target(app, args), {
        change = changes, into = args.into, replace = args.replace, progress = report,
      })
    end)
    if not done then
      if code == "ENOTFOUND" then
        message = ("%s: %s"):format(moving.shown(args.from), message)
        step = "Name the store to copy first, then the other one."
      elseif message:find("lead to the same store", 1, true) then
        step = "Name two stores: the one to copy, then the other one."
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
