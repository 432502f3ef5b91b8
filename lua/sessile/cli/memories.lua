--- memories: what the commands about long-term memory share.
--
-- Owns: which memory and which entry is meant, and how rows are printed: values on one line,
-- without control characters. Must never create a memory unless a command adds to it.

local hints = require "sessile.cli.hints"
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

--- What an audit finds, in words.
memories.LOOKS = { order = "looks like an order", secret = "looks like a secret",
  address = "has an address", lowered = "says more than its source" }

--- Opens the memory; closed when the command ends. more: further options of store:memory.
function memories.open(app, args, more)
  local opts = { agent = args.agent, user = args.user, must_exist = more == nil }
  for name, value in pairs(more or {}) do
    opts[name] = value
  end
  local store = app:need_store(more ~= nil)
  local steps = { ENOTFOUND = "Add the first entry: sessile memory add " .. hints.shown(args.agent)
    .. " TEXT" }
  local memory, message, code = store:memory(opts)
  if code == "ENOTFOUND" and more and args.user then
    app.fail(("%s has not consented to be remembered: nothing was written"):format(
      hints.shown(args.user)), "EDENIED", memories.CONSENT)
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

--- The entry that is meant: a key, or else a number.
function memories.which(memory, text)
  local row, message, code = memory:read(text)
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

--- Rows as a table, or as JSON.
function memories.print_rows(app, rows, first, cell)
  if app.json then
    return app:print_json(app.array(rows))
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
    local row, message, code = memories.which(memory, args.entry)
    if code == "ENOTFOUND" and method == "restore" then -- of a key without a live entry: its newest
      local rows = memory:history(args.entry)
      row = rows and rows[1]
    end
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
