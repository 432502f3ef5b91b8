--- doctor_guard: what `sessile doctor` says of the guard of a store.
--
-- Must never count a call of a user's, nor read an audit to its end that takes long.

local disk = require "sessile.disk"
local guard_open = require "sessile.guard_open"
local hints = require "sessile.cli.hints"
local refusals = require "sessile.cli.refusals"
local sessile = require "sessile"
local show = require "sessile.config.show"
local terminal = require "sessile.cli.terminal"

local doctor_guard = {}

-- The control log, whose facts a view of the system's user reads.
local function control_log(add, store)
  local counts = {}
  for _, kind in ipairs { "grants", "access_keys", "locks" } do
    local rows, message, code = store[kind](store)
    if code == "EDENIED" then
      add("control log", "ok", "it can be read, and what is in it is not for you")
      return
    elseif not rows then
      add("control log", "bad", message, "See what is wrong with it: sessile check")
      return
    end
    counts[#counts + 1] = terminal.plural(#rows, (kind:gsub("s$", ""):gsub("_", " ")))
  end
  add("control log", "ok", table.concat(counts, ", "))
end

local LONGEST = 2 -- seconds of reading the audit
local OLD = 24 * 60 * 60 * 1000 -- ms

local function audit(add, app, store, wanted)
  local opts = wanted.audit
  if not opts then
    add("audit", "warn", "none: nobody can say later who did what",
      "Set one in the configuration: guard = { …, audit = true }")
    return
  end
  local url = type(opts) == "table" and opts.store
  local where = url and "in " .. show.url(url) or "in the store itself"
  local ends = os.clock() + LONGEST
  local report, message, code = store:audit_verify {
    progress = function() return os.clock() < ends end }
  if code == "ENOTFOUND" then
    add("audit", "ok", where .. ": it begins with the first event")
  elseif code == "EDENIED" then
    add("audit", "ok", where .. ", and not for you")
  elseif code == "ECANCELLED" then
    add("audit", "ok", where .. ": too long to be read to its end here",
      "Verify it: sessile audit verify --max-age 1d")
  elseif not report then
    add("audit", "bad", ("%s: %s"):format(where, message),
      "While it cannot be written nothing can be changed: see the store that it is in")
  elseif not report.holds then
    add("audit", "bad", ("%s: it is not what was written: %s"):format(where, report.why or "?"),
      "See where: sessile audit verify")
  else
    local now = app.now()
    local old = report.unsealed > 0 and now - report.unsealed_since > OLD
    add("audit", old and "warn" or "ok", ("%s: last sealed %s, %s since"):format(where,
      report.sealed and terminal.ago(report.sealed, now) or "never",
      terminal.plural(report.unsealed, "event")), old and "Seal it: sessile audit seal" or nil)
  end
end

-- Whether the place where all machines count answers: asked by counting something of nobody's.
local function limits(add, wanted)
  local rates = wanted.rate_limits
  local shared = rates and rates.shared
  if not shared then
    add("limits", "ok", rates and "counted beside the store" or "none: nothing is counted")
    return
  end
  local store = sessile.open("ram:", { key = false, guard = { profile = "standard", audit = false,
    screens = false, urls = false, rate_limits = { shared = shared, deny = true } } })
  local view = store and store:as { user = "doctor", roles = "viewer" }
  local may, message
  if view then
    may, message = view:may("doctor", { permission = "view_session", limit = "searches" })
    view:close()
  end
  if store then
    store:close()
  end
  add("limits", may and "ok" or rates.deny and "bad" or "warn", may and "counted in "
    .. show.url(shared) or ("%s: %s"):format(show.url(shared), message or "it cannot be asked"),
    not may and (rates.deny and "Until it answers, what is counted is refused"
      or "Until it answers, each machine counts by itself") or nil)
end

local function octal(mode)
  return ("%04o"):format(mode)
end

-- The key set of tokens, and its file.
local function tokens(add, wanted)
  local token = (wanted.identity or {}).token
  if not token then
    return
  end
  local seen = disk.look(token.keys)
  if not seen then
    add("tokens", "bad", "the key set is not there: " .. token.keys,
      "Name a JWKS file: guard.identity.token.keys")
  elseif seen.mode & 0x12 ~= 0 then -- 022
    add("tokens", "bad", ("%s: mode %s, others can write it, and so sign tokens"):format(
      token.keys, octal(seen.mode)), "Close it: chmod go-w " .. hints.quoted(token.keys))
  else
    local tried, message = sessile.open("ram:", { key = false, guard = { profile = "standard",
      audit = false, rate_limits = false, screens = false, identity = { token = token } } })
    if tried then
      tried:close()
    end
    add("tokens", tried and "ok" or "bad", tried and ("of %s, keys in %s, mode %s"):format(
      token.issuer, token.keys, octal(seen.mode)) or message,
      not tried and "A token is refused until this is mended" or nil)
  end
end

--- Adds the findings. store: nil: it could not be opened, or there is none. failure: {message,
--- step, rule} of a store that lets nobody in.
---@param add fun(name: string, state: string, text: string, step: string?)
function doctor_guard.check(add, app, cfg, store, failure)
  local wanted = guard_open.wanted(cfg.guard)
  local origin = cfg:origin "guard.profile"
  if failure.rule == "guard" then
    add("guard", "bad", failure.message, failure.step)
    return
  elseif type(wanted) ~= "table" then
    add("guard", "ok", wanted == "off" and "off, by " .. show.origin(origin)
      or "none: whoever has the key may do everything")
    if failure.rule ~= "control" then
      return
    end
  else
    add("guard", "ok", ("%s, by %s"):format(wanted.profile, show.origin(origin)))
  end
  if failure.rule == "control" then
    add("control log", "bad", failure.message, refusals.MEND)
  elseif store then
    control_log(add, store)
    audit(add, app, store, wanted)
  end
  if type(wanted) == "table" then
    limits(add, wanted)
    tokens(add, wanted)
  end
end

return doctor_guard
