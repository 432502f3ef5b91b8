--- audit verify, audit root, audit head, audit seal, audit prove: whether the audit is what was
--- written.
--
-- Owns: where the root key and the anchors come from, and how they are written and read back.

local hints = require "sessile.cli.hints"
local json = require "sessile.cli.json"
local progress = require "sessile.cli.progress"
local sessile = require "sessile"
local terminal = require "sessile.cli.terminal"

local commands = {}

local STEPS = {
  ENOTFOUND = "An audit begins with the first event, in a store with a guard",
  EDAMAGED = "Its logs are in the folder guard.audit: bring back a copy of them. Who removed them?",
}

-- ---------------------------------------------------------------- keys and anchors

local ROOT = { "--root KEY", "the root key: 64 hex digits, or a file that has them" }

-- All of a file.
local function read(app, path)
  local file, message = io.open(path, "rb")
  if not file then
    app.fail(("cannot read %s"):format(terminal.line(message)), "EIO")
  end
  local text = file:read "a" or ""
  file:close()
  return text
end

-- The root key that was given, or that of the store (nil), and where it is from.
local function root_of(app, args)
  local given, from = args.root, "--root"
  if not given then
    given, from = os.getenv "SESSILE_AUDIT_ROOT", "$SESSILE_AUDIT_ROOT"
  end
  if not given or given == "" then
    return nil, "the store itself"
  elseif given:find "^%x+$" and #given == 64 then
    return given:lower(), from
  end
  local file = io.open(given, "rb")
  local key = file and (file:read(1000) or ""):match "^%s*(%x+)%s*$"
  if file then file:close() end
  if not key or #key ~= 64 then
    app.fail(("%s is neither a root key, which has 64 hex digits, nor a file with one"):format(
      hints.shown(given)), "EUSAGE",
      "Where the audit is written: sessile audit root")
  end
  return key:lower(), terminal.line(given)
end

-- The anchors of a file that `audit head` wrote: lines with lane, epoch and hash.
local function anchors_of(app, path)
  local list, text = {}, path and read(app, path) or ""
  if text:find "^%s*%[" then -- as --json has them
    text = text:gsub("%s+", ""):gsub("{(.-)}", function(one)
      return ("%s %s %s\n"):format(one:match '"lane":(%d+)' or "?",
        one:match '"epoch":(%d+)' or "?", one:match '"hash":"(%x+)"' or "?")
    end):gsub("[%[%],]", "")
  end
  for line in text:gmatch "[^\n]+" do
    local lane, epoch, hash = line:match "^%s*(%d+)%s+(%d+)%s+(%x+)%s*$"
    if hash and #hash == 64 then
      list[#list + 1] = { lane = tonumber(lane), epoch = tonumber(epoch), hash = hash:lower() }
    end
  end
  if path and #list == 0 then
    app.fail(("%s has no anchors"):format(hints.shown(path)), "EUSAGE",
      "They are made by: sessile audit head > FILE")
  end
  return path and list or nil
end

-- ---------------------------------------------------------------- verify

-- How a copy is opened: without an audit of its own, so that nothing is written to it.
local function of_copy(app)
  local profile = app.try(app:config()):value "guard.profile"
  return profile and profile ~= "off" and { guard = { profile = profile, audit = false } } or nil
end

local function ago(app, ms)
  return terminal.ago(ms, app.now())
end

local function change(lost)
  if lost.is_event then
    return ("event %s names entry %s, which is not there"):format(lost.event, lost.entry)
  end
  local what = lost.entry == "00000000" and "made" or "entry " .. lost.entry
  return ("%s: %s, without an event%s"):format(terminal.line(lost.session or "?"), what,
    lost.owner and ", of " .. lost.owner:sub(1, 12) .. "…" or "")
end

-- What a deep verification has found.
local function tell_deep(line, app, report)
  line("changes", ("%s in %s: %s"):format(terminal.plural(report.changes, "change"),
    terminal.plural(report.logs, "session"), app.paint(report.complete and "each has its event"
      or ("%d WITHOUT EVENT, %d GONE"):format(report.without_event, report.without_change),
      report.complete and "green" or "red")))
  for _, lost in ipairs(report.lost) do
    line("  " .. (lost.is_event and "gone" or "unknown"),
      ("%s  %s"):format(terminal.exact(lost.time), change(lost)))
  end
  if report.outside > 0 then
    line("not compared", terminal.plural(report.outside, "change")
      .. " from before the audit, with the guard off, or migrated")
  end
  if report.unread > 0 then
    line("not opened", terminal.plural(report.unread, "session"))
  end
end

local function tell(app, report, from)
  local function line(label, text)
    app:out(("%-12s %s\n"):format(label, text))
  end
  local empty = report.events + report.unsealed == 0
  line("audit", app.paint(not report.holds and "DOES NOT HOLD" or empty and "has no event"
    or "chain intact", not report.holds and "red" or empty and "yellow" or "green"))
  if not report.holds then
    if report.where then
      line("first bad", report.where)
    end
    line("why", terminal.line(report.why))
  end
  line("sealed", ("%s in %s, %s%s"):format(terminal.plural(report.events, "event"),
    terminal.plural(report.seals, "seal"), terminal.plural(report.lanes, "lane"),
    report.sealed and ", last " .. ago(app, report.sealed) or ""))
  line("not sealed", report.unsealed == 0 and "0 events"
    or ("%s, the oldest %s"):format(terminal.plural(report.unsealed, "event"),
      ago(app, report.unsealed_since)))
  if report.other_lanes > 0 then
    line("other keys", ("%s of a copy, not verified by this key"):format(
      terminal.plural(report.other_lanes, "lane")))
  end
  line("root key", from)
  if report.complete ~= nil then
    tell_deep(line, app, report)
  end
end

local function advise(app, report)
  if report.own_root and report.holds then
    app:note("The key was taken from the store itself, where it can be replaced together with "
      .. "the audit. Keep it elsewhere, and give it: sessile audit verify --root KEY")
  end
  if report.cut_lanes > 0 and report.holds then
    app:note(("Old logs of %s were removed by the retention. What is left fits together; that it "
      .. "is what was written, only an anchor from elsewhere proves: --anchor FILE"):format(
      terminal.plural(report.cut_lanes, "lane")))
  end
end

commands["audit verify"] = {
  summary = "read all of the audit, and compare it with its seals",
  usage = "audit verify [--deep] [--root KEY] [--anchor FILE] [--copy] [--max-age TIME]",
  examples = [[
    sessile audit verify --root 1f0c…             with the key that was kept elsewhere
    sessile audit verify --anchor head.txt        and nothing that head.txt has seen is missing
    sessile audit verify --deep                   and each change of a session has its event
    sessile audit verify --max-age 1h             and nothing older than an hour is unsealed
    sessile audit verify --copy --store backup    a backup, where no seeds are]],
  options = {
    ROOT,
    { "--anchor FILE", "what `sessile audit head` printed, kept elsewhere" },
    { "--copy", "this is a copy of the store, which has no seeds" },
    { "--deep", "look for each change of the sessions in the events, too" },
    { "--max-age TIME", "fail if events that are older are not sealed: 90, 5m, 1h",
      time = true },
  },
  about = [[
    The key comes from --root, else from $SESSILE_AUDIT_ROOT, else from the store itself,
    which proves less. What is verified is not changed, and others may write meanwhile.
    With a guard, verifying is an event itself; nothing is written to a --copy. The exit
    code is 5 if the audit does not hold; the first event that is wrong is named. What
    came since the last seal can be changed by anyone who has the keys of the store.

    --deep reads every session and names entries that no event tells of: somebody wrote
    around the guard, or a process was killed between a change and its event. It also
    names events whose entry or session is gone without a deletion. Memories are not
    compared.]],
  run = function(app, args)
    local store = app:need_store(nil, args.copy and of_copy(app))
    local root, from = root_of(app, args)
    local anchors = anchors_of(app, args.anchor)
    local show, finish = progress.bar(app, "verifying")
    local report, message, code = store:audit_verify {
      root = root, anchors = anchors, copy = args.copy, deep = args.deep, max_age = args.max_age
        and args.max_age / 1000, progress = function(at)
        if (at.logs_of or 0) > 0 then
          show(at.logs, at.logs_of)
        else
          show(at.bytes, at.bytes_of)
        end
      end,
    }
    finish()
    app.try_or(STEPS, report, message, code)
    if app.json then
      report.root_from = from
      app:print_json(report)
    else
      tell(app, report, from)
      app:flush()
      advise(app, report)
    end
    return report.holds and report.complete ~= false and 0 or 5
  end,
}

-- ---------------------------------------------------------------- the rest

commands["audit root"] = {
  summary = "print the public key that vouches for the audit",
  usage = "audit root",
  examples = [[sessile audit root > /elsewhere/audit.key  to be kept where the store is not]],
  about = [[
    It is no secret. Who has it can verify the audit, and cannot forge it. Write it down
    when the audit is made: later, nothing tells whether it is still the same.]],
  run = function(app)
    local root = app.try_or(STEPS, app:need_store():audit_root())
    app:result({ root = root }, root .. "\n")
  end,
}

commands["audit head"] = {
  summary = "print the last seals: anchors, to be kept elsewhere",
  usage = "audit head [--root KEY] [--copy]",
  examples = [[
    sessile audit head > /elsewhere/head.txt                  once a day
    sessile audit verify --anchor /elsewhere/head.txt  later: nothing of that is missing]],
  options = { ROOT, { "--copy", "this is a copy of the store, which has no seeds" } },
  about = [[
    The audit is verified first. A seal is 64 hex digits for each lane; whoever has the
    store and all its keys cannot remove or replace what came before it unseen.]],
  run = function(app, args)
    local root = root_of(app, args)
    local heads = app.try_or(STEPS,
      app:need_store(nil, args.copy and of_copy(app)):audit_head { root = root, copy = args.copy })
    if app.json then
      return app:print_json(app.array(heads))
    elseif #heads == 0 then
      return app:note "Nothing is sealed yet: sessile audit seal"
    end
    local rows = {}
    for i, head in ipairs(heads) do
      rows[i] = { tostring(head.lane), tostring(head.epoch), head.hash }
    end
    app:print_table({ "LANE>", "EPOCH>", "HASH" }, rows)
  end,
}

commands["audit seal"] = {
  summary = "seal what was written to the audit",
  usage = "audit seal",
  examples = [[sessile audit seal && sessile audit head  before a backup]],
  about = [[
    Events are sealed a minute after the last seal, with the next event. This seals them
    now: from then on nobody can change them unseen.]],
  run = function(app)
    app.try_or(STEPS, app:need_store():audit_seal())
    app:result({ sealed = true }, "Everything is sealed.\n")
  end,
}

-- Compares a proof with the root key, and shows its event.
local function check(app, args)
  local event, key = sessile.audit_check(read(app, args.check))
  if not event then
    app.fail(key, "EDAMAGED", "It proves nothing. Make another: sessile audit prove EVENT")
  end
  local root = root_of(app, args)
  if root and root ~= key then
    app.fail(("the proof does not lead to this root key, but to %s"):format(key), "EDAMAGED",
      "It is of another audit, or begins later. In the store: sessile audit verify --root KEY")
  end
  if app.json then
    return app:print_json { key = key, is_root = root ~= nil, event = event }
  end
  app:out(root and "The event is in the audit that this root key vouches for.\n"
    or "The event is in the audit that this key vouches for.\n")
  for _, row in ipairs {
    { "key", key }, { "event", tostring(event.operation or "") },
    { "outcome", tostring(event.outcome or "") }, { "time", tostring(event.timestamp or "") },
    { "details", event.details and json.line(event.details) or "" },
  } do
    app:out(("%-9s %s\n"):format(row[1], terminal.line(row[2])))
  end
  if not root then
    app:flush()
    app:note "Compare the key with the root key that you have: --root KEY"
  end
end

commands["audit prove"] = {
  summary = "make a proof that an event is in the audit, or check a proof or a receipt",
  usage = "audit prove EVENT | audit prove --check FILE [--root KEY]",
  examples = [[
    sessile audit prove 00-000/0000002a > proof.json        for somebody without the store
    sessile audit prove --check proof.json --root 1f0c…     the event, if that key vouches for it
    sessile audit prove --check receipt.json --root r.key   a receipt of `sessile user erase`]],
  arguments = { { "event", "the id of an event, as `sessile audit tail --json` has it", "?" } },
  options = { { "--check FILE", "check a proof, or a receipt; no store is opened" }, ROOT },
  about = [[
    A proof shows one event, and the seals that lead to it from the root key. Whoever checks
    it needs the root key, from --root or $SESSILE_AUDIT_ROOT, and it has to come from
    elsewhere: anybody can make an audit, and proofs, with a key of their own. Without a root
    key, the key that vouches is printed, to be compared. A lane with more than 10000 seals,
    or whose first logs were removed, gives proofs that begin later and have another key:
    verify the audit itself.]],
  run = function(app, args)
    if (args.event ~= nil) == (args.check ~= nil) then
      return nil, "an event to be proven, or --check FILE", "EUSAGE"
    elseif args.check then
      return check(app, args)
    end
    app:out(app.try_or({ ESUSPENDED = "Seal it first: sessile audit seal",
      ENOTFOUND = "Their ids: sessile audit tail --json" },
      app:need_store():audit_prove(args.event)) .. "\n")
  end,
}

return commands
