--- access explain: whether a user may do something, and what decides.
--
-- Must never change anything, nor look whether a session is there.

local access = require "sessile.cli.commands.access"
local core = require "sessile.core"
local registry = require "sessile.cli.registry"
local roles = require "sessile.cli.roles"
local terminal = require "sessile.cli.terminal"

local function matches(pattern, name)
  return pattern == name or pattern:sub(-1) == "*"
    and name:sub(1, #pattern - 1) == pattern:sub(1, -2)
end

local function any_matches(patterns, name)
  for _, pattern in ipairs(patterns) do
    if matches(pattern, name) then
      return true
    end
  end
  return #patterns == 0
end

-- Why something that gives a role does not allow the operation; nil: it does.
local function against(role_of, source, asked)
  local role = role_of(source.role)
  if source.ended then
    return source.ended
  elseif not role then
    return "there is no such role"
  elseif not role.may[asked.permission] then
    return ("%s does not have %s"):format(source.role, asked.permission)
  elseif roles.WHOLE[asked.permission] then
    return (source.session or #(source.agents or {}) > 0)
      and "it concerns the whole store, and this is for a part of it"
      or not role.all and ("it concerns all users, and %s is for one's own"):format(source.role)
      or nil
  elseif source.session then
    local on = asked.id == source.session and asked.agent == (source.agent or asked.agent)
      and asked.owner == (source.owner or asked.owner)
    return not on and "it is on the session " .. source.session
      or asked.permission == "create_session" and "it is on a session that there is"
      or nil
  elseif not any_matches(source.agents or {}, asked.agent) then
    return "it is only with " .. table.concat(source.agents, ", ")
  elseif not role.all and asked.owner ~= asked.user then
    return ("%s is for one's own sessions"):format(source.role)
  end
  return nil
end

-- Why an access key is not accepted any more; nil: it is.
local function ended(key, locked, now)
  if locked[key.id] then
    return "it is locked out"
  elseif key.expires and key.expires > 0 and key.expires <= now then
    return "it has expired"
  end
end

-- All that gives the user a role: {what, role, agents, session, ended, …}. locked: keys that are.
local function sources_of(app, store, asked, given, locked)
  local list, held = {}, {}
  for _, role in ipairs(given) do
    held[role] = true
    list[#list + 1] = { what = "--role " .. role, role = role }
  end
  for _, key in ipairs(app.try(store:access_keys())) do
    local why = ended(key, locked, app.now())
    for _, role in ipairs(key.user == asked.user and key.roles or {}) do
      held[role] = held[role] or not why
      list[#list + 1] = { what = "key " .. key.id, role = role, agents = key.agents, ended = why,
        device = key.device }
    end
  end
  for _, grant in ipairs(app.try(store:grants())) do
    if grant.user == asked.user or grant.holders and held[grant.holders] then
      list[#list + 1] = { what = "grant " .. grant.id, role = grant.role, agents = grant.agents,
        session = grant.session, agent = grant.agent, owner = grant.owner }
    end
  end
  return list
end

-- The lock of the user, nil: there is none; and the ids of access keys that are locked, as a set.
local function locks_of(app, store, user)
  local own, keys = nil, {}
  for _, lock in ipairs(app.try(store:locks())) do
    own = lock.user == user and lock or own
    if lock.key then
      keys[lock.key] = true
    end
  end
  return own, keys
end

local function asked_of(app, args)
  local known = {}
  for _, name in ipairs(core.permissions()) do
    known[name] = true
  end
  if not known[args.permission] then
    local near = registry.nearest(args.permission, core.permissions())
    app.fail(("there is no permission '%s'"):format(terminal.line(args.permission)), "EUSAGE",
      near and ("Did you mean `%s`?"):format(near)
        or "There are: " .. table.concat(core.permissions(), ", "))
  end
  return { user = args.who, permission = args.permission, id = args.id,
    agent = app.globals.agent or app:config().agent or "main",
    owner = app.globals.user or args.who }
end

local function about(asked)
  return ("%s %s%s"):format(terminal.line(asked.permission),
    asked.id and "on " .. terminal.line(asked.id) or "on the sessions",
    (" of %s with the agent %s"):format(terminal.line(asked.owner), terminal.line(asked.agent)))
end

return {
  summary = "show whether a user may do something, and what decides",
  usage = "access explain WHO PERMISSION [ID] [--role ROLE]",
  examples = [[
    sessile access explain ann delete_session                  on ann's own sessions
    sessile access explain bob view_session bug-42 --user ann  a session of ann's
    sessile access explain ann view_session --role auditor     if a token gave that role]],
  arguments = {
    { "who", "a user", is = "user" },
    { "permission", "as view_session: see `sessile access roles`" },
    { "id", "a session, which need not exist", "?" },
  },
  options = { { "--role ROLE", "as if the credential gave this role; may be repeated",
    many = true } },
  about = [[
    The roles of a token are known when it is shown, and not before: say them with --role.
    --agent and --user say whose session it is; without them it is WHO's own.]],
  run = function(app, args)
    local store = access.store(app)
    local asked = asked_of(app, args)
    local role_of = roles.teller(app)
    local lock, locked = locks_of(app, store, args.who)
    local sources, allowed = sources_of(app, store, asked, args.role, locked), false
    for _, source in ipairs(sources) do
      source.against = against(role_of, source, asked)
      allowed = allowed or not source.against
    end
    allowed = allowed and not lock
    if app.json then
      local rows = {}
      for i, source in ipairs(sources) do
        rows[i] = { what = source.what, role = source.role, allows = not source.against,
          because = source.against, device = source.device }
      end
      app:print_json { allowed = allowed, locked = lock ~= nil, sources = app.array(rows) }
      return
    end
    app:out(("%s: %s %s %s\n"):format(app.paint(allowed and "yes" or "no", allowed and "green"
      or "red"), terminal.line(args.who), allowed and "may" or "may not", about(asked)))
    if lock then
      app:out(("  lock  %s\n"):format(lock.reason and terminal.line(lock.reason) or "no reason"))
    end
    for _, source in ipairs(sources) do
      app:out(("  %s  %s\n"):format(terminal.line(source.what), source.against
        and "no: " .. terminal.line(source.against)
        or ("yes: %s%s"):format(terminal.line(source.role), source.device
          and ", with the device " .. terminal.line(source.device) or "")))
    end
    if #sources == 0 then
      app:out "  nothing gives this user a role\n"
    end
  end,
}
