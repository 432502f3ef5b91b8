-- recall.lua: entries of a session's memories quoted in its context: `session:recall`.
--
-- The engine finds them, judges them and writes the message; a `recall` hook of the memory's policy
-- may choose among them. Here the options are checked, and the memories of the session are opened:
-- those that are there.

local embed = require "sessile.memory_embed"
local memory_runs = require "sessile.memory_runs"
local options = require "sessile.options"
local remember = require "sessile.remember"
local settings = require "sessile.memory_settings"

local recall = {}
local methods = {}
recall.methods = methods

local call_options = options.shape("session:recall", settings.recall_fields, {
  question = "string", vector = "table|no", model = "string", weight = "any", entries = "table",
  dry_run = "boolean", policy = "any",
})

-- Rows as the engine names entries; names: of the memories that are open.
local function items_of(rows, names)
  local items = {}
  for i, row in ipairs(rows) do
    if type(row) ~= "table" or type(row.id) ~= "string" then
      options.misuse(("session:recall: option 'entries': number %d is no row"):format(i))
    end
    for at, name in ipairs(names) do
      if name == (row.memory or names[1]) then
        items[#items + 1] = { memory = at - 1, id = row.id }
      end
    end
  end
  return items
end

local function find_only(self, found, opts)
  local rows, message, code, retry_ms, rule = self._core:recall_find(found.handles, opts)
  if not rows then
    return nil, message, code, retry_ms, rule
  end
  for _, row in ipairs(rows) do
    row.memory = found.names[row.memory + 1]
  end
  return { found = #rows, recalled = 0, entries = rows }
end

--- Quotes what its memories have about a question in the context, behind the newest message.
--- Returns {id=, recalled=, found=, not_fitting=, not_allowed=, denied=, tokens=}, and `message` if
--- a hook or an embedder failed on the way; with dry_run nothing is written, and `entries` has what
--- was found.
function methods:recall(given)
  local opts = options.check("session:recall", given, call_options)
  settings.read_recall(opts, function(name, what)
    options.misuse(("session:recall: option '%s': %s"):format(name, what))
  end)
  local own = settings.of(self._store, self.agent)
  local chosen, message, code, retry_ms, rule =
    memory_runs.policy("session:recall", self._store, self.agent, opts.policy)
  if not chosen then
    return nil, message, code, retry_ms, rule
  end
  opts = options.add(options.add({ weight = own.weight }, own.recall or nil), opts)
  local found
  found, message, code, retry_ms, rule = remember.memories(self)
  if not found then
    return nil, message, code, retry_ms, rule
  end
  local of_run, ask = embed.recall(own, found.of, found.names, opts)
  if opts.dry_run then
    return find_only(self, found, opts)
  end
  opts.items, opts.entries = opts.entries and items_of(opts.entries, found.names), nil
  local run
  run, message, code, retry_ms, rule =
    self._core:recall_run(found.handles, opts, { policy = chosen.handle,
    embed_model = of_run.embed_model, embed_dims = of_run.embed_dims })
  if not run then
    return nil, message, code, retry_ms, rule
  end
  local about = memory_runs.about(self, self.agent, self._model, chosen)
  about.memory, about.embed = found.of, ask
  local outcome
  outcome, message, code, retry_ms, rule = memory_runs.drive(run, about)
  if not outcome then
    return nil, message, code, retry_ms, rule
  end
  outcome.recall.message = outcome.message ~= "" and outcome.message or of_run.why
  return outcome.recall
end

return recall
