--- guard: guard status, whoami: whether a store has a guard, what it consists of, and
--- who is asking.
--
-- Must never show a credential.

local guard_open = require "sessile.guard_open"
local profiles = require "sessile.profiles"
local show = require "sessile.config.show"
local terminal = require "sessile.cli.terminal"

local commands = {}

local NO_GUARD = "There is no guard: whoever has the key of the store may do everything.\n"

local function capital(text)
  return text:sub(1, 1):upper() .. text:sub(2)
end

-- Rows of a name and a text, which is broken at the width of a terminal.
local function print_rows(app, rows)
  local widest = 0
  for _, row in ipairs(rows) do
    widest = math.max(widest, #row[1])
  end
  local columns = terminal.columns()
  for _, row in ipairs(rows) do
    app:out(("%-" .. widest .. "s  %s\n"):format(row[1], terminal.wrap(row[2],
      columns and math.max(columns - widest - 2, 30), (" "):rep(widest + 2))))
  end
end

-- ---------------------------------------------------------------- whoami

local METHODS = {
  os = "os: whom the system lets open this store",
  key = "an access key", token = "a token",
}

local function words(list, none)
  return list and #list > 0 and terminal.line(table.concat(list, ", ")) or none
end

commands.whoami = {
  summary = "show who you are to the store, and what you may",
  usage = "whoami",
  examples = [[
    sessile whoami                           whom the store takes you for
    sessile whoami --token-file ./tok        the same for a token, or an access key
    sessile whoami --json | jq .permissions  what you may, for a program]],
  about = [[
    Who you are is said by a token or an access key in $SESSILE_TOKEN or in the file of
    --token-file, which others may not read. Without one you are whoever the system lets
    open the store, and may do everything.]],
  run = function(app)
    local store, message, code, step, _, rule = app:store()
    if rule == "guard" then
      app:result({ guard = true, host = false, configured = false, permissions = app.array {} },
        capital(message) .. ": you may do nothing.\n")
      app:note(step)
      return
    elseif not store then
      app.fail(message, code, step, rule)
    elseif not guard_open.is_on(store) then
      app:result({ guard = false, host = true }, NO_GUARD)
      return
    end
    local who = app.try(store:who())
    local method = app.globals.method
    local roles = method == "os" and { "admin" } or nil
    if app.json then
      app:print_json { guard = true, host = false, user = who.user, actor = who.actor,
        roles = roles and app.array(roles), permissions = app.array(who.permissions),
        agents = who.agents and app.array(who.agents) or nil, session = who.session,
        scope = who.all and "all" or "own", method = method, expires = who.expires }
      return
    end
    print_rows(app, {
      { "user", who.user and terminal.line(who.user) or "none" },
      { "acting", who.actor and terminal.line(who.actor) or "nobody for you" },
      { "by", METHODS[method] or terminal.line(method) },
      { "role", words(roles, "those of the credential, and of grants") },
      { "may", words(who.permissions, "nothing") },
      { "agents", words(who.agents, "all") },
      { "sessions", who.session and "only " .. terminal.line(who.session)
        or who.all and "of all users" or "your own" },
      { "until", who.expires and terminal.exact(who.expires) .. " UTC" or "no end" },
      { "guard", app:config():value "guard.profile" },
    })
  end,
}

-- ---------------------------------------------------------------- guard status

local SEAT_BELT = "whoever has the key of the store has the data. On the command line, and in a "
  .. "program that opens the store, a guard is a seat belt. For those whom a service serves it is "
  .. "a wall."

local function roles_of(wanted)
  local names = { "viewer", "editor", "admin", "auditor" }
  for name in pairs(wanted.roles or {}) do
    names[#names + 1] = name
  end
  table.sort(names)
  return table.concat(names, ", ")
end

local function limits_of(wanted)
  local rates = {}
  for rule, rate in pairs(wanted.rate_limits or {}) do
    rates[#rates + 1] = profiles.is_rule[rule] and ("%s %s"):format(rule, rate) or nil
  end
  table.sort(rates)
  return #rates > 0 and table.concat(rates, ", ") or "none"
end

local function audit_of(wanted)
  local audit = wanted.audit
  if not audit then
    return "none"
  end
  local opts = type(audit) == "table" and audit or {}
  return ("%s; %s%s%s"):format(
    opts.store and "in " .. terminal.line(show.url(opts.store)) or "in the store itself",
    opts.sync and "synced before a call returns" or "it survives a kill of the process",
    opts.reads == false and "; not of reads" or "",
    opts.closed and "; nothing is read while it cannot be written" or "")
end

local function screens_of(wanted)
  local names = {}
  for i, step in ipairs(wanted.screens or {}) do
    names[i] = type(step) == "table" and step[1] or step
  end
  return words(names, "none")
end

local function urls_of(wanted)
  local kinds = {}
  for kind, verdict in pairs(wanted.urls or {}) do
    if type(verdict) == "string" then
      kinds[#kinds + 1] = ("%s %s"):format(kind, verdict)
    end
  end
  table.sort(kinds)
  return #kinds > 0 and "that lead inwards: " .. table.concat(kinds, ", ") or "all pass"
end

local function tokens_of(wanted)
  local token = (wanted.identity or {}).token
  return token and ("of %s, keys in %s"):format(terminal.line(token.issuer),
    terminal.line(token.keys)) or "none are accepted; access keys are"
end

-- What the store itself says: {root =, gone =, state =, why =, step =}. gone: that its audit was
-- removed. state: "set", or why it lets nobody in: "unset", the configuration sets no guard;
-- "damaged", its control log is; nil: there is no store, or no guard.
local function asked(app, wanted)
  if wanted == "off" then -- opening it would switch its guard off
    return {}
  end
  local store, message, code, step, absent, rule = app:store()
  if store then
    local found = { state = wanted and "set" or nil }
    if wanted and wanted.audit then
      local why, kind
      found.root, why, kind = store:audit_root()
      found.gone = kind == "EDAMAGED" and why or nil
    end
    return found
  elseif absent then
    return {}
  elseif rule ~= "guard" and rule ~= "control" then
    app.fail(message, code, step, rule)
  end
  return { state = rule == "guard" and "unset" or "damaged", why = message, step = step }
end

local SHOWN = { "roles", "require_principal", "plain", "rate_limits", "audit", "consent", "screens",
  "urls", "authorize" }

commands["guard status"] = {
  summary = "show whether the store has a guard, and what it consists of",
  usage = "guard status",
  examples = [[
    sessile guard status                          what is on, and what is not
    sessile guard status --json | jq -r .profile  the profile, for a program]],
  about = [[
    A guard is set by `guard` in your configuration: see `sessile guard init`. A store that
    was guarded once stays so: without a guard in the configuration nothing can be done
    with it, which is said here.]],
  run = function(app)
    local cfg = app.try(app:config())
    local wanted = guard_open.wanted(cfg.guard)
    local is_set = type(wanted) == "table"
    local found = asked(app, wanted)
    if app.json then
      local rows = { on = is_set, profile = is_set and wanted.profile or wanted or nil,
        store = found.state, why = found.why }
      for _, name in ipairs(is_set and SHOWN or {}) do
        rows[name] = wanted[name]
      end
      if is_set then
        rows.tokens, rows.audit_root = (wanted.identity or {}).token ~= nil, found.root
        rows.audit_gone = found.gone ~= nil or nil
      end
      app:print_json(rows)
      return
    end
    if not is_set then
      app:out(found.why and capital(found.why) .. ".\n" or NO_GUARD)
      app:note(found.step or "Set one: sessile guard init")
      return
    end
    print_rows(app, {
      { "guard", ("%s, from %s"):format(wanted.profile,
        terminal.line(show.origin(cfg:origin "guard.profile"))) },
      { "store", found.why or found.state and "it is guarded, and its control log can be read"
        or "there is none yet" },
      { "means", SEAT_BELT },
      { "roles", terminal.line(roles_of(wanted)) .. "; what they may: sessile access roles" },
      { "host", wanted.require_principal and "the store's own handle makes views, and nothing else"
        or "the store's own handle may do everything" },
      { "plain", wanted.plain and "a store that is not sealed opens"
        or "a store that is not sealed does not open" },
      { "limits", limits_of(wanted) },
      { "audit", audit_of(wanted) },
      { "root key", found.root or found.gone and app.paint("GONE", "red") .. ": "
        .. terminal.line(found.gone) or found.why and "not known while the store cannot be used"
        or "none yet: the audit begins with the first event" },
      { "screens", screens_of(wanted) },
      { "URLs", urls_of(wanted) },
      { "tokens", tokens_of(wanted) },
      { "rule", wanted.authorize and terminal.line(wanted.authorize) or "none of your own" },
      { "consent", wanted.consent and "memory of a user is for those who consent" or "not asked" },
    })
    if found.step then
      app:note(found.step)
    end
  end,
}

return commands
