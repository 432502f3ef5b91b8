--- memories: what the commands about long-term memory share.
--
-- Owns: which memory and which entry is meant, and how rows are printed: values on one line,
-- without control characters. Must never create a memory unless a command adds to it.

local hints = require "sessile.cli.hints"
local named = require "sessile.memory_named"
local terminal = require "sessile.cli.terminal"

local memories = {}

memories.KINDS = { "fact", "episode", "reflection", "procedure" }
memories.STATES = { "live", "pending", "replaced", "deleted", "rejected", "expired", "erased" }

memories.agent = { "agent", "the agent that remembers", is = "agent" }
memories.entry = { "entry", "an entry: its key, or its number" }
memories.user = { "--user USER", "what is kept for this user (else what the agent keeps for all)" }
memories.kind = { "--kind KIND", "of this kind", choices = memories.KINDS }
memories.by = { "--by NAME", "who decides" }
memories.reason = { "--reason TEXT", "why" }

memories.CONSENT = "Say in which words the user consented: --consent WORDS"

local FORGOTTEN = "To remove what is left and start again: sessile purge --forgotten"

--- What an audit finds, in words.
memories.LOOKS = { order = "looks like an order", secret = "looks like a secret",
  address = "has an address", screen = "is stopped by a screen",
  lowered = "says more than its source" }

--- Opens the memory; closed when the command ends. more: further options of store:memory.
function memories.open(app, args, more)
  local opts = { agent = args.agent, user = args.user, must_exist = more == nil }
  for name, value in pairs(more or {}) do
    opts[name] = value
  end
  if args.agent == "" then
    app.fail("the name of the agent is empty", "EUSAGE", "Name the agent: sessile memory show main")
  end
  local store = app:need_store(more ~= nil)
  local steps = {
    ENOTFOUND = ("Add the first entry: sessile memory add %s TEXT%s"):format(
      hints.shown(args.agent), args.user
        and (" --user %s --consent WORDS"):format(hints.quoted(args.user)) or ""),
  }
  local memory, message, code = store:memory(opts)
  if code == "ENOTFOUND" and more and args.user then
    app.fail(("%s has not consented to be remembered: nothing was written"):format(
      hints.shown(args.user)), "EDENIED", memories.CONSENT)
  end
  if code == "ESEALED" and args.user then -- a wrong key of the store would not open the store
    steps.ESEALED = message:find("this user was forgotten", 1, true) and FORGOTTEN
      or "See what does not open: sessile check"
  end
  app:keep(app.try_or(steps, memory, message, code))
  app:tell_damage(memory)
  return memory
end

-- An id in full, from the number that people type.
local function full(text)
  return #text <= 8 and text:find "^%x+$" and ("%08x"):format(tonumber(text, 16)) or text
end

--- The entry of an id, in full or as people type it.
function memories.by_id(memory, text)
  return memory:get(full(text))
end

--- The entry that is meant: a key, or else a number. to: the verdict that it gets, if any.
function memories.which(memory, text, to)
  local row, message, code = named.row(memory, text, to)
  if row or code ~= "ENOTFOUND" then
    return row, message, code
  end
  local id = full(text)
  if id == text and not text:find "^%x%x%x%x%x%x%x%x$" then
    return nil, message, code
  end
  return memory:get(id)
end

--- An id as people type it.
function memories.short(id)
  return (id:gsub("^0+(.)", "%1"))
end

--- The next step when there is no such entry.
function memories.entry_steps(args)
  return { ENOTFOUND = ("See them: sessile memory show %s%s"):format(hints.shown(args.agent),
    args.user and " --user " .. hints.shown(args.user) or "") }
end

--- Rows as a table, or as JSON. none: what is said if there are none.
function memories.print_rows(app, rows, first, cell, none)
  if app.json then
    return app:print_json(app.array(rows))
  elseif #rows == 0 and none then
    return app:note(none)
  end
  local lines = {}
  for i, row in ipairs(rows) do
    lines[i] = { memories.short(row.id), cell(row), row.kind, terminal.line(row.key or ""),
      terminal.line(row.value) }
  end
  app:print_table({ "id", first, "kind", "key", "value" }, lines, true)
end

--- The state of an entry in words.
function memories.state_of(row)
  return row.state .. (row.pinned and ", pinned" or "")
end

--- The run of a command that gives a verdict about one entry. method: of memory.
function memories.verdict(method)
  return function(app, args)
    local memory = memories.open(app, args)
    local row, message, code = memories.which(memory, args.entry,
      method == "restore" and "restored" or nil)
    row = app.try_or(memories.entry_steps(args), row, message, code)
    local changed
    changed, message, code = memory[method](memory, row.id,
      { reason = args.reason, by = args.by })
    if changed == nil then
      app.fail(message, code)
    end
    app:result { agent = args.agent, id = row.id, changed = changed }
    if not changed then
      app:note "Nothing was changed: it was so already."
    end
  end
end

return memories
