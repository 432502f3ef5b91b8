-- recall.lua: entries of a session's memories quoted in its context: `session:recall`.
--
-- The engine finds them, judges them and writes the message. Here the options are checked, and the
-- memories of the session are opened: those that are there.

local memories = require "sessile.memories"
local options = require "sessile.options"
local settings = require "sessile.memory_settings"

local recall = {}
local methods = {}
recall.methods = methods

local call_options = options.shape("session:recall", settings.recall_fields, {
  question = "string", vector = "table", model = "string", weight = "any", entries = "table",
  dry_run = "boolean",
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

--- Quotes what its memories have about a question in the context, behind the newest message.
--- Returns {id=, recalled=, found=, not_fitting=, not_allowed=, denied=, tokens=}; with dry_run
--- nothing is written, and `entries` has what was found.
function methods:recall(given)
  local opts = options.check("session:recall", given, call_options)
  settings.read_recall(opts, function(name, what)
    options.misuse(("session:recall: option '%s': %s"):format(name, what))
  end)
  local own = settings.of(self._store, self.agent)
  opts = options.add(options.add({ weight = own.weight }, own.recall or nil), opts)
  local of = self._recalled_from
  if not of then
    of = memories.open(self._store, self.agent, self.user)
    rawset(self, "_recalled_from", of)
  end
  local handles, names, code = memories.handles(of)
  if not handles then
    return nil, names, code
  end
  if opts.dry_run then
    local rows, message
    rows, message, code = self._core:recall_find(handles, opts)
    if not rows then
      return nil, message, code
    end
    for _, row in ipairs(rows) do
      row.memory = names[row.memory + 1]
    end
    return { found = #rows, recalled = 0, entries = rows }
  end
  opts.items, opts.entries = opts.entries and items_of(opts.entries, names), nil
  return self._core:recall(handles, opts)
end

return recall
