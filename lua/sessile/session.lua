-- session.lua: the session handle: reading, single writes, and its fields. The other methods come
-- from the files listed at the end.
--
-- Every call returns new tables; no message is kept here.

local agents = require "sessile.agents"
local annotate = require "sessile.annotate"
local checkpoints = require "sessile.checkpoints"
local export = require "sessile.export"
local family = require "sessile.family"
local life = require "sessile.life"
local memories = require "sessile.memories"
local object = require "sessile.object"
local names = require "sessile.names"
local options = require "sessile.options"
local recall = require "sessile.recall"
local remember = require "sessile.remember"
local runs = require "sessile.runs"
local why = require "sessile.why"

local session = {}

local methods = {}
session.methods = methods

-- The functions of the core that need no help from here. meta.lua documents them.
object.forward(methods, "head leaves event_count clear sync life labels pending_runs subsessions")

-- ---------------------------------------------------------------- reading

local messages_options = options.shape("session:messages", {
  from = "string", at = "string", limit = "count", last = "count", role = options.roles,
})

--- Every message from the root to the head, compacted or not, oldest first.
function methods:messages(given)
  local opts, message, code, retry_ms, rule =
    names.check(self, "session:messages", given, messages_options, "from", "at")
  if not opts then
    return nil, message, code, retry_ms, rule
  end
  return self._core:messages(opts)
end

local context_options = options.shape("session:context", {
  at = "string", model = "string", tools = "table", system = "string", window = "count",
  reserve = "count",
})

--- The messages that the model would get, and {tokens, low, high, source, head, dropped, orphans,
--- unanswered, lost}; with a window also room, the tokens left in it less the reserve. model, tools
--- and system are as for tokens().
function methods:context(given)
  local opts, message, code, retry_ms, rule =
    names.check(self, "session:context", given, context_options, "at")
  if not opts then
    return nil, message, code, retry_ms, rule
  end
  local list, info
  list, info, code, retry_ms, rule = self._core:context(opts.at)
  if not list then
    return nil, info, code, retry_ms, rule
  end
  if opts.model or opts.tools or opts.system then
    local tokens, counted
    tokens, counted, code, retry_ms, rule = self._core:tokens { model = opts.model,
      tools = opts.tools, system = opts.system, at = opts.at }
    if not tokens then
      return nil, counted, code, retry_ms, rule
    end
    options.add(info, counted)
  end
  local own = self._core:info()
  local window = opts.window or own and own.window or 0
  if window > 0 then
    info.room = window - (opts.reserve or own and own.reserve or 0) - info.tokens
  end
  return list, info
end

-- The methods that pass the id of an entry to the core: a caller may give an id, or a label that
-- only this entry has. path without an entry is the path to the head.
for _, name in ipairs { "entry", "path", "children", "siblings" } do
  methods[name] = function(self, given)
    if name == "path" and given == nil then
      return self._core:path()
    end
    local id, message, code, retry_ms, rule = names.entry(self, "session:" .. name, given)
    if not id then
      return nil, message, code, retry_ms, rule
    end
    return self._core[name](self._core, id)
  end
end

local entries_options = options.shape("session:entries", {
  types = "strings", after = "string", before = "string", limit = "count", reverse = "boolean",
})

--- An iterator over the entries in the order of the log, or backwards. It raises if one cannot be
--- read. types: only entries of these; after, before: only those between these two entries; limit:
--- the largest number of entries; reverse: the newest first.
function methods:entries(given)
  local opts, message, code, retry_ms, rule =
    names.check(self, "session:entries", given, entries_options, "after", "before")
  if not opts then
    return nil, message, code, retry_ms, rule
  end
  local iterator
  iterator, message, code, retry_ms, rule = self._core:entries(opts)
  if not iterator then
    return nil, message, code, retry_ms, rule
  end
  return iterator, nil, nil, iterator
end

-- ---------------------------------------------------------------- the tree

--- The newest entry on the paths of both.
function methods:common_ancestor(a, b)
  local second
  local first, message, code, retry_ms, rule = names.entry(self, "session:common_ancestor", a)
  if first then
    second, message, code, retry_ms, rule = names.entry(self, "session:common_ancestor", b)
  end
  if not second then
    return nil, message, code, retry_ms, rule
  end
  return self._core:common_ancestor(first, second)
end

local tree_options =
  options.shape("session:tree", { types = "strings", labelled = "boolean" })

-- The fields of a node that are read on first use: `entry`, and its `timestamp`.
local function node_meta(self)
  return {
    __name = "sessile.Node",
    __index = function(node, key)
      if key ~= "entry" and key ~= "timestamp" then
        return nil
      end
      local entry, message, code = self._core:entry(node.id)
      if not entry then
        options.misuse(("node.%s: %s: %s"):format(key, code, message))
      end
      rawset(node, "entry", entry)
      rawset(node, "timestamp", entry.timestamp)
      return rawget(node, key)
    end,
  }
end

--- The entries as a tree: {root, current, nodes = {id → node}, list}. types: only these types;
--- labelled: only entries with a label. The parent of an entry is its nearest ancestor in the tree.
function methods:tree(given)
  local opts = options.check("session:tree", given, tree_options)
  local list, message, code, retry_ms, rule = self._core:tree(opts.types, opts.labelled)
  if not list then
    return nil, message, code, retry_ms, rule
  end
  local labels
  labels, message, code, retry_ms, rule = self._core:labels()
  if not labels then
    return nil, message, code, retry_ms, rule
  end
  local meta, tree = node_meta(self), { list = list, nodes = {} }
  for _, node in ipairs(list) do
    tree.nodes[node.id] = setmetatable(node, meta)
    node.labels = {}
    if node.is_head then
      tree.current = node.id
    end
  end
  for _, label in ipairs(labels) do
    local node = tree.nodes[label.id]
    if node then
      node.labels[#node.labels + 1] = label.name
    end
  end
  tree.current = tree.current or self._core:head()
  tree.root = tree.nodes["00000000"]
  return tree
end

local tokens_options = options.shape("session:tokens",
  { model = "string", tools = "table", system = "string", at = "string" })

--- Tokens of the context, and {tokens, low, high, source}. model: count for this model; tools,
--- system: sent in addition to the messages; at: an entry instead of the head.
function methods:tokens(given)
  local opts, message, code, retry_ms, rule =
    names.check(self, "session:tokens", given, tokens_options, "at")
  if not opts then
    return nil, message, code, retry_ms, rule
  end
  return self._core:tokens(opts)
end

local usage_options = options.shape("session:usage", { by = { "day", "model",
  "agent", "day_and_model" } })

--- The usage that providers reported, over the whole log: {input, output, cache_read, cache_write};
--- with `by`, a list of groups.
function methods:usage(given)
  return self._core:usage(options.check("session:usage", given, usage_options).by)
end

-- ---------------------------------------------------------------- writing

--- Appends one message as a commit of its own; no policy runs. Returns its id.
function methods:append(message)
  options.expect("table", message, "session:append: a message")
  local enabled, reason, denied = agents.check_enabled(self._store, self.agent)
  if not enabled then
    return nil, reason, denied
  end
  remember.said(self)
  return self._core:append(message)
end

--- Appends an entry of the host, which never enters the context. Returns its id.
function methods:custom(data, source)
  options.expect("table", data, "session:custom: a table")
  options.expect("string?", source, "session:custom: a source")
  return self._core:custom(data, source)
end

local write_options = options.shape("session:write", { base = "string" })
local entry_options = options.shape("session:write: entry",
  { message = "table", custom = "table", source = "string" })

--- Writes messages and custom entries in one commit: {{message = …}, {custom = …, source = …}, …}.
--- No policy runs, and they are no turn. Returns their ids. base: the head that the caller knows.
function methods:write(entries, given)
  options.expect("table", entries, "session:write: a list of entries")
  local list, says = {}, false
  for i, entry in ipairs(entries) do
    list[i] = options.check("session:write: entry", entry, entry_options)
    if (entry.message == nil) == (entry.custom == nil) then
      options.misuse(("session:write: entry %d: either a message or custom expected"):format(i))
    end
    says = says or entry.message ~= nil
  end
  local opts, message, code, retry_ms, rule =
    names.check(self, "session:write", given, write_options, "base")
  if not opts then
    return nil, message, code, retry_ms, rule
  end
  if says then
    local enabled, reason, denied = agents.check_enabled(self._store, self.agent)
    if not enabled then
      return nil, reason, denied
    end
    remember.said(self)
  end
  return self._core:write(list, opts.base)
end

local pop_options = options.shape("session:pop", { base = "string" })

--- Takes the newest n messages (nil: one) off the conversation, in one step; returns them, oldest
--- first. base: the head that the caller knows; ECONFLICT if somebody has written since.
function methods:pop(n, given)
  n = n == nil and 1 or options.value("session:pop: how many messages", n, "positive")
  local opts, message, code, retry_ms, rule =
    names.check(self, "session:pop", given, pop_options, "base")
  if not opts then
    return nil, message, code, retry_ms, rule
  end
  return self._core:pop(n, opts.base)
end

--- Sets the title; s.title = … does the same and raises if it fails.
function methods:set_title(title)
  options.expect("string", title, "session:set_title: a string")
  return self._core:set_title(title)
end

--- Sets how many milliseconds its calls wait for another writer; -1: for ever.
function methods:set_timeout(timeout_ms)
  local ms = options.value("session:set_timeout: timeout_ms", timeout_ms, "timeout")
  return self._core:set_timeout(ms)
end

local watch_options =
  options.shape("session:watch", { after = "string", timeout_ms = "timeout" })

--- Waits until others have written entries after `after`, or after everything this handle has read.
--- Returns true, or false after timeout_ms (nil: no limit), and the id of the newest entry, which
--- is the next `after`. Nothing else runs in this Lua state meanwhile.
function methods:watch(given)
  local opts = options.check("session:watch", given, watch_options)
  local ok, message, code, retry_ms, rule = names.fields(self, "session:watch", opts, "after")
  if not ok then
    return nil, message, code, retry_ms, rule
  end
  return self._core:watch(opts)
end

-- ---------------------------------------------------------------- explaining

--- Why a message is in the context, or not: its history step by step.
function methods:why(key)
  local found, message, code, retry_ms, rule = names.message(self, "session:why", key)
  local of
  if found then
    of = not found:find(".", 1, true) and self._core:entry(found)
    found, message, code, retry_ms, rule = self._core:why(found)
  end
  if not found then
    return nil, message, code, retry_ms, rule
  end
  return why.make(found, of)
end

local uncompact_options = options.shape("session:uncompact", { dry_run = "boolean" })

--- Undoes a compaction: the one given, or the newest one in force. Returns the messages that
--- returned and those that left.
function methods:uncompact(id, given)
  local opts, message, code, retry_ms, rule =
    names.entry_and_options(self, "session:uncompact", id, given, uncompact_options)
  if not opts then
    return nil, message, code, retry_ms, rule
  end
  return self._core:uncompact(opts.entry, opts.dry_run)
end

--- The compactions on the path and the refusals between them, oldest first.
function methods:log()
  return self._core:compactions()
end

--- The long-term memories of its user and its agent, read as one.
function methods:memory(given)
  return memories.open(self._store, self.agent, self.user, given)
end

-- ---------------------------------------------------------------- methods of other files

for _, more in ipairs {
  family.methods, runs.methods, checkpoints.methods, export.methods, annotate.methods, life.session,
  recall.methods, remember.methods,
} do
  options.add(methods, more)
end

--- Whether a value is a session.
function session.is(value)
  return type(value) == "table" and rawget(value, "_core") ~= nil
    and value.turn == methods.turn
end

--- Starts a run of that kind; the caller steps it.
function session.begin(self, kind, ...)
  if not session.is(self) then
    options.misuse("sessile.step: a session expected")
  end
  if not runs.starters[kind] then
    options.misuse('sessile.step: "turn", "compact", "plan", "branch" or "answer" expected')
  end
  return runs.starters[kind](self, ...)
end

-- ---------------------------------------------------------------- the handle

--- Closes the session. Closing it again has no effect. If memory.remember says so, what was said is
--- remembered first, and its outcome is the second value.
function methods:close()
  local remembered = not self._closed and remember.on_close(self) or nil
  rawset(self, "_closed", true)
  if self._recalled_from then
    self._recalled_from:close()
  end
  local ok, message, code, retry_ms, rule = self._core:close()
  if not ok then
    return nil, message, code, retry_ms, rule
  end
  return true, remembered
end

local function fixed(name)
  return function(self)
    return self._info[name]
  end
end

local meta = object.class {
  name = "sessile.Session",
  methods = methods,
  readers = {
    id = fixed "id",
    agent = fixed "agent",
    user = fixed "user",
    created = fixed "created",
    torn = function(self) return (self._core:info() or self._info).torn end,
    -- of a fork, of a child: {id, agent, user, entry, tag}
    origin = function(self) return family.link(self._info, "origin") end,
    parent = function(self) return family.link(self._info, "parent") end,
    -- nil, or {code, message, lost}: it can be read, not written
    damage = function(self) return self._info.damage end,
    -- records that are in this handle alone: only over an adapter
    unsaved = function(self)
      local unsaved = self._core.unsaved
      return unsaved and unsaved(self._core) or 0
    end,
    modified = function(self) return (self._core:modified()) end,
    title = function(self) return (self._core:title()) end,
  },
  writers = {
    title = function(self, title)
      local ok, message, code = self:set_title(title)
      if not ok then
        options.misuse(("%s: %s"):format(code, message))
      end
    end,
  },
  text = function(self)
    return ("%q"):format(self._info.id):gsub("\\\n", "\\n")
      .. (self._closed and " (closed)" or "")
  end,
}

--- Wraps an opened core session. defaults: store, store_core, policy and fallback (resolved,
--- or false), triggers (resolved, or false), model (or false), settings (of its loops), adopt
--- (makes a session of another core session of the store).
function session.wrap(handle, defaults)
  local self = { _core = handle, _info = handle:info(), _closed = false }
  for name, value in pairs(defaults) do
    self["_" .. name] = value
  end
  return setmetatable(self, meta)
end

return session
