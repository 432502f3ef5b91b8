--- access grant, access revoke, access list, access lock, access unlock: who was given what.
--
-- Must never show a key.

local hints = require "sessile.cli.hints"
local terminal = require "sessile.cli.terminal"

local commands = {}

--- What these commands open: a store with a guard. create: it is made, so that somebody can be
--- given something before the first session.
function commands.store(app, create)
  local store = app:need_store(create)
  if not app.globals.guarded then
    app.fail("this store has no guard: nobody is asked who they are", "EUSAGE",
      "Set one: sessile guard init")
  end
  return store
end

--- The end of what lasts so long; nil: none.
function commands.ends(app, span)
  return span and app.now() + span or nil
end

--- The result of what gives a role, or the end of the command, with the roles if it is not one.
function commands.try_role(app, value, message, code, ...)
  local is_role = code == "EINVALID" and message:find("role", 1, true)
  return app.try_or({ EINVALID = is_role and "See the roles: sessile access roles" or nil },
    value, message, code, ...)
end

commands.FOR = { "--for TIME", "how long, as 90d or 12h (default: until it is ended)", time = true }
commands.AGENTS = { "--only AGENT", "only with this agent, or with all whose names begin so if it "
  .. "ends with `*`; may be repeated", many = true, is = "agent" }

local function day(ms)
  return ms and ms > 0 and terminal.day(ms) or "no end"
end

local function list_of(names)
  return names and #names > 0 and terminal.line(table.concat(names, ", ")) or "all"
end

-- ---------------------------------------------------------------- grants

-- The next step when there is no session to share: whose the one of that id is, if there is one.
local function whose(app, store, id)
  for _, row in ipairs(app:list(store, { prefix = id }) or {}) do
    if row.id == id and row.user ~= "" and row.user ~= app.globals.user then
      return ("The session %s is of %s: say so with --user"):format(hints.shown(id),
        hints.shown(row.user))
    end
  end
  return "Whose it is is said by --user and --agent: sessile list"
end

commands["access grant"] = {
  summary = "give a user a role, everywhere or on one session",
  usage = "access grant WHO ROLE [--group] [--on ID] [--only AGENT] [--for TIME]",
  examples = [[
    sessile access grant ann editor --only 'code*' --for 90d  with some agents, for a while
    sessile access grant bob viewer --on bug-42 --user ann    one session, which is ann's
    sessile access grant support viewer --group               all of a token's group]],
  arguments = { { "who", "a user", is = "user" },
    { "role", "viewer, editor, admin, auditor, or one of yours" } },
  options = {
    { "--group", "WHO is a role, or a group of a token: all who have it" },
    { "--on ID", "on this session alone; --agent and --user say whose it is", is = "session" },
    commands.AGENTS, commands.FOR,
  },
  about = [[
    A grant is in force within a second, in other processes too. It adds to what a token
    or an access key gives. Its id, which is printed, ends it: sessile access revoke ID.]],
  run = function(app, args)
    if not args.on and (app.globals.agent or app.globals.user) then
      return nil, "--agent and --user say whose session --on names", "EUSAGE",
        "For some agents: --only coder."
    end
    local store = commands.store(app, true)
    local id, message, code, retry_ms, rule = store:grant {
      user = not args.group and args.who or nil, holders = args.group and args.who or nil,
      role = args.role, agents = #args.only > 0 and args.only or nil, session = args.on,
      agent = args.on and app.globals.agent, owner = args.on and app.globals.user,
      ["until"] = commands.ends(app, args["for"]),
    }
    if code == "ENOTFOUND" and args.on then
      return nil, message, code, whose(app, store, args.on)
    end
    commands.try_role(app, id, message, code, retry_ms, rule)
    app:result({ id = id }, id .. "\n")
  end,
}

commands["access revoke"] = {
  summary = "end a grant",
  usage = "access revoke ID",
  examples = "sessile access revoke 0000002a  its id is that of `sessile access list`",
  arguments = { { "grant", "the id of a grant" } },
  run = function(app, args)
    app.try_or({ ENOTFOUND = "See what is in force: sessile access list" },
      commands.store(app):ungrant(args.grant))
    app:result({ id = args.grant, revoked = true }, ("Grant %s has ended.\n"):format(
      terminal.line(args.grant)))
  end,
}

-- ---------------------------------------------------------------- what is there

local function grant_row(one)
  return { "grant", terminal.line(one.id), one.user and terminal.line(one.user)
    or ("all of %s"):format(terminal.line(one.holders)), terminal.line(one.role),
    one.session and "session " .. terminal.line(one.session) or list_of(one.agents),
    day(one["until"]) }
end

local function key_row(one)
  return { "key", terminal.line(one.id), one.user and terminal.line(one.user) or "nobody",
    list_of(one.roles), list_of(one.agents), day(one.expires) }
end

local function lock_row(one)
  return { "lock", one.key and terminal.line(one.key) or "", one.user and terminal.line(one.user)
    or "", "", one.reason and terminal.line(one.reason) or "", "no end" }
end

commands["access list"] = {
  summary = "show who was given what: grants, access keys and locks",
  usage = "access list [USER]",
  examples = [[
    sessile access list      grants, keys and locks
    sessile access list ann  what is hers]],
  arguments = { { "who", "only of this user", "?", is = "user" } },
  about = [[
    Without the permission manage_access: the grants to you, and those on your sessions.]],
  run = function(app, args)
    local store = commands.store(app)
    local found, rows = {}, {}
    local kinds = { { "grants", grant_row } }
    if store:can "manage_access" then
      kinds[2], kinds[3] = { "access_keys", key_row }, { "locks", lock_row }
    end
    for _, kind in ipairs(kinds) do
      local name, row_of = kind[1], kind[2]
      found[name] = {}
      for _, one in ipairs(app.try(store[name](store))) do
        if not args.who or one.user == args.who then
          table.insert(found[name], one)
          rows[#rows + 1] = row_of(one)
        end
      end
    end
    if app.json then
      app:print_json { grants = app.array(found.grants),
        keys = found.access_keys and app.array(found.access_keys),
        locks = found.locks and app.array(found.locks) }
    elseif #rows == 0 then
      app:note(("Nothing was given%s."):format(args.who and " to " .. hints.shown(args.who) or ""))
    else
      app:print_table({ "WHAT", "ID", "WHO", "ROLE", "WHERE", "UNTIL" }, rows, { "UNTIL" },
        { [2] = "cyan" })
    end
  end,
}

-- ---------------------------------------------------------------- locks

local function whom(args)
  return { user = not args.key and args.who or nil, key = args.key and args.who or nil }
end

local KEY = { "--key", "WHO is the id of an access key" }

commands["access lock"] = {
  summary = "lock a user, or an access key, out",
  usage = "access lock WHO [--key] [--reason TEXT]",
  examples = [[
    sessile access lock bob --reason "left us"  a user, whatever the credential
    sessile access lock du3nq7oafk2bx4me --key  an access key, by its id]],
  arguments = { { "who", "a user", is = "user" } },
  options = { KEY, { "--reason TEXT", "why, for people" } },
  about = [[
    Whatever credential somebody has, every call is denied from the next second on. A
    running turn is finished. `sessile access unlock` ends it.]],
  run = function(app, args)
    local what = whom(args)
    what.reason = args.reason
    app.try_or({ EINVALID = "See the ids: sessile access key list" },
      commands.store(app, true):lock(what))
    app:result({ who = args.who, locked = true }, ("%s is locked out.\n"):format(
      terminal.line(args.who)))
  end,
}

commands["access unlock"] = {
  summary = "end a lock",
  usage = "access unlock WHO [--key]",
  examples = "sessile access unlock bob  and bob's credentials are accepted again",
  arguments = { { "who", "a user", is = "user" } },
  options = { KEY },
  run = function(app, args)
    app.try_or({ ENOTFOUND = "See who is locked out: sessile access list" },
      commands.store(app):unlock(whom(args)))
    app:result({ who = args.who, locked = false }, ("%s is not locked out any more.\n"):format(
      terminal.line(args.who)))
  end,
}



return commands
