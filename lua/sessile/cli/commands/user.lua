--- user export, user erase: all that a store keeps of a user.
--
-- Owns: the folder of an export, which is complete or not there, and the question before an
-- erasure.

local ask = require "sessile.cli.ask"
local files = require "sessile.files"
local hints = require "sessile.cli.hints"
local own_files = require "sessile.cli.own_files"
local system = require "sessile.system"
local terminal = require "sessile.cli.terminal"

local commands = {}

local USER = { "user", "the user", is = "user", field = "whose" }

-- Removes what an interrupted export has left.
local function clear(place)
  for _, folder in ipairs { "/sessions", "/memory", "" } do
    for _, name in ipairs(system.kind(place .. folder) == "folder"
      and system.files(place .. folder) or {}) do
      os.remove(("%s%s/%s"):format(place, folder, name))
    end
    os.remove(place .. folder)
  end
end

commands["user export"] = {
  summary = "write all that the store keeps of a user into a folder",
  usage = "user export USER DIR",
  examples = [[
    sessile user export ann ann-export  sessions, memories and consents, for the user]],
  arguments = { USER, { "dir", "the folder, which must not be there yet", is = "folder" } },
  about = [[
    Each session and each memory is there as JSON and as Markdown. manifest.json lists the
    files with their SHA-256, and sessions that could not be read. Only you can read the
    folder; it is not encrypted, and `sessile user erase` does not reach it.]],
  run = function(app, args)
    local place = (args.dir:gsub("(.)/+$", "%1"))
    local half = place .. ".tmp"
    if system.kind(place) then
      app.fail(("%s is there already"):format(hints.shown(place)), "EEXISTS",
        "Name another folder.")
    end
    local store = app:need_store()
    clear(half)
    app.try_or({ ENOTFOUND = "Create its parent folder first." }, files.folder(half))
    local done, message, code = store:export_user(args.whose, function(name, text)
      return own_files.write(half .. "/" .. name, text)
    end)
    local moved, why
    if done then
      moved, why = os.rename(half, place)
    end
    if not moved then
      clear(half)
      app.fail(message or why, code or "EIO")
    end
    done.user, done.folder = args.whose, place
    app:result(done, ("%s, %s: %s\n"):format(terminal.plural(done.sessions, "session"),
      terminal.plural(done.memories, "memory", "memories"), terminal.line(place)))
    app:note(("What is in %s is not encrypted."):format(terminal.line(place)))
    if done.failed > 0 then
      return nil, ("%s could not be exported"):format(terminal.plural(done.failed, "session")),
        "EDAMAGED", "manifest.json says which, and why."
    end
  end,
}

local function print_receipt(app, receipt, dry_run)
  local rows = {
    { dry_run and "would be removed" or "removed", ("%s, %s, %s"):format(
      terminal.plural(receipt.sessions, "session"),
      terminal.plural(receipt.memories, "memory", "memories"), terminal.bytes(receipt.bytes)) },
    { "of memories for all", ("%d entries that came from these sessions"):format(
      receipt.shared_entries) },
    { dry_run and "would end" or "ended", ("%s, %s, %s, %s"):format(
      terminal.plural(receipt.consents, "consent"), terminal.plural(receipt.grants, "grant"),
      terminal.plural(receipt.access_keys, "access key"), terminal.plural(receipt.locks, "lock")) },
    { "secret", not receipt.shredded and "none: this store is plain, nothing is shredded"
      or dry_run and "would be destroyed" or "destroyed: no copy of the logs opens" },
    { "not reached", ("%d sessions of others made from the user's, %d of no user"):format(
      receipt.forks, receipt.without_user) },
    { "", "what others say of the user, backups, exports, a model's provider" },
  }
  if receipt.unreadable > 0 then
    rows[#rows + 1] = { "", ("%d logs that do not say whose they are: sessile check"):format(
      receipt.unreadable) }
  end
  if receipt.before then
    table.insert(rows, 1, { "erased before", ("%s; nothing of the user came since"):format(
      terminal.exact(receipt.before)) })
  end
  if not dry_run then
    rows[#rows + 1] = { "proof", not receipt.event and "none: this store keeps no audit"
      or receipt.json:find(',"proof":{', 1, true) and "in the receipt, of event " .. receipt.event
      or "not sealed yet: sessile audit prove " .. receipt.event }
  end
  for _, row in ipairs(rows) do
    app:out(("%-20s %s\n"):format(row[1], row[2]))
  end
end

commands["user erase"] = {
  summary = "erase a user: the secret, sessions, memories, and what agents keep from them",
  usage = "user erase USER [--dry-run] [--receipt FILE] [--yes]",
  examples = [[
    sessile user erase ann --dry-run                     what would go, and what would not
    sessile user erase ann --receipt ann.json --yes      with a receipt, in a script]],
  arguments = { USER },
  options = { { "--dry-run", "only say what would be removed" },
    { "--receipt FILE", "write the receipt into this file" }, ask.option },
  about = [[
    Destroys the user's secret, removes the logs, and ends grants, access keys and locks.
    Afterwards nothing opens the logs, in backups neither. What a hold keeps is refused
    before anything is removed. After an interruption, run it again: the receipt counts all
    of it. The receipt does not name the user. Where the store has an audit, the receipt
    has a proof for whoever has the root key: sessile audit prove --check FILE --root KEY]],
  run = function(app, args)
    local store = app:need_store()
    local steps = { ENOTFOUND = "See whose sessions there are: sessile list --all --json",
      EDENIED = "See what is held: sessile hold list",
      EIO = "Run it again: it is harmless.", EBUSY = "Run it again." }
    if not args.dry_run then
      ask.must(app, args, ("Erase %s, for ever"):format(hints.shown(args.whose)))
    end
    local receipt = app.try_or(steps,
      store:erase_user(args.whose, { dry_run = args.dry_run or nil }))
    if args.receipt then
      app.try(own_files.write(args.receipt, receipt.json .. "\n", true))
    end
    if app.json then
      return app:out(receipt.json .. "\n")
    end
    print_receipt(app, receipt, args.dry_run)
  end,
}

return commands
