-- family.lua: sessions made from other sessions: forks and children, and merging a child.
--
-- This is the part in Lua: options, and asking the model for a child's summary. The engine writes
-- the entries. No session is ever deleted here.

local agents = require "sessile.agents"
local core = require "sessile.core"
local dialect = require "sessile.dialect"
local inherited = require "sessile.inherited"
local names = require "sessile.names"
local options = require "sessile.options"
local settings = require "sessile.interaction.settings"

local utf8 = dialect.utf8

local family = {}

local methods = {}
family.methods = methods

local new_options = {
  id = "string", agent = "string", user = "string", title = "string", metadata = "table",
  uuid = { "v4", "v7" }, model = "callable",
}

-- Makes a session with new(), a function of the core. Its policy, fallback, triggers, model and
-- settings are those given, else those that the store has for its agent, else those of this one.
local function make(self, who, opts, new)
  local taken = settings.over(self._settings, settings.take(who, opts))
  local enabled, why, denied = agents.check_enabled(self._store, opts.agent or self.agent)
  if not enabled then
    return nil, why, denied
  end
  local agent = opts.agent ~= self.agent and opts.agent or nil
  local own, theirs, message, code, retry_ms, rule = agents.resolve(self._store, who, agent, opts)
  if not own then
    return nil, message, code, retry_ms, rule
  end
  inherited.fill(opts, theirs)
  local handle
  handle, message, code, retry_ms, rule = new()
  if not handle then
    return nil, message, code, retry_ms, rule
  end
  local defaults = inherited.merge(own, theirs, self)
  defaults.settings = taken
  return self._adopt(self._store, handle, defaults)
end

-- ---------------------------------------------------------------- forks

local fork_options =
  options.shape("session:fork", inherited.kinds, settings.kinds, new_options)

--- A new session of the same store with everything up to an entry (its id or label; nil: the
--- head). fork(options) forks at the head.
function methods:fork(entry, given)
  local opts, message, code, retry_ms, rule =
    names.entry_and_options(self, "session:fork", entry, given, fork_options)
  if not opts then
    return nil, message, code, retry_ms, rule
  end
  return make(self, "session:fork", opts, function()
    return self._core:fork(opts.entry, opts)
  end)
end

-- ---------------------------------------------------------------- children

local child_options = options.shape("session:child", fork_options, { context = "boolean" })

--- A session for a sub-agent, linked to this one. context = true: it starts as a fork at the head;
--- else it is empty.
function methods:child(given)
  local opts = options.check("session:child", given, child_options)
  local child, message, code, retry_ms, rule = make(self, "session:child", opts, function()
    return self._core:child(opts.context, opts)
  end)
  if child then
    rawset(child, "_parent", self)
  end
  return child, message, code, retry_ms, rule
end

-- Calls use(parent) with the handle that made this child, or with a new one.
local function with_parent(self, who, into, use)
  local link = self._info.parent
  if not link then
    return nil, who .. ": this session is not a child of another one", "EINVALID"
  end
  local parent = into or self._parent
  if parent and not parent._closed then
    return use(parent)
  end
  local message, code, retry_ms, rule
  parent, message, code, retry_ms, rule = self._store:resume {
    id = link.id, agent = link.agent, user = link.user,
  }
  if not parent then
    return nil, message, code, retry_ms, rule
  end
  return dialect.closing(parent, use)
end

local PROMPT = "You are given the record of a task that was handed to an assistant. Say what "
  .. "came of it, for the one who handed it over: results, decisions, files and names that "
  .. "matter, and what is still open. Leave out how it was done. Answer with that text alone."

local function text_of(content)
  if type(content) ~= "table" then
    return tostring(content or "")
  end
  local parts = {}
  for _, block in ipairs(content) do
    parts[#parts + 1] = type(block) == "table" and type(block.text) == "string" and block.text
      or nil
  end
  return table.concat(parts, "\n")
end

-- The child's context as one text.
local function record_of(self)
  local context, message, code, retry_ms, rule = self._core:context()
  if not context then
    return nil, message, code, retry_ms, rule
  end
  local parts = {}
  for _, one in ipairs(context) do
    local calls = {}
    for _, call in ipairs(type(one.tool_calls) == "table" and one.tool_calls or {}) do
      calls[#calls + 1] = ("\n(calls %s %s)"):format(tostring(call.name),
        tostring(call.arguments))
    end
    parts[#parts + 1] = ("[%s] %s%s"):format(one.role, text_of(one.content),
      table.concat(calls))
  end
  return table.concat(parts, "\n\n")
end

-- The summary of a child; nil, message, code.
local function summarize(self, opts)
  local model = opts.model or self._model
  if not model then
    return nil, "session:merge: summary = true needs a model, and none is configured: give "
      .. "model =, or the text itself as summary =", "EINVALID"
  end
  local record, message, code, retry_ms, rule = record_of(self)
  if not record then
    return nil, message, code, retry_ms, rule
  end
  local ok, text, why = pcall(model, {
    purpose = "child_summary", max_tokens = opts.max_tokens or 1500,
    messages = {
      { role = "system", content = opts.prompt or PROMPT },
      { role = "user", content = record },
    },
  }, { session = self, reason = "policy" })
  if type(text) == "table" and text.content ~= nil then
    text = text_of(text.content)
  end
  if not ok or type(text) ~= "string" or not text:find "%S" then
    return nil, ("session:merge: the model gave no summary (%s): nothing was merged"):format(
      tostring(not ok and text or why or "no text")), "EPOLICY"
  end
  return text
end

-- A name as JSON can have it: text, or {b64 =}, as logs have it.
local function as_text(name)
  return utf8.len(name) and name or { b64 = core.base64(name) }
end

local merge_options = options.shape("session:merge", {
  summary = "string|boolean", role = options.roles, metadata = "table", into = "table",
  model = "callable", prompt = "string", max_tokens = "positive",
})

--- Appends the result of this child to its parent, as a message that starts no turn. summary: the
--- text, or true to ask the model. Returns the message's id in the parent.
function methods:merge(given)
  local opts = options.check("session:merge", given, merge_options)
  if not opts.summary then
    options.misuse("session:merge: summary expected: a text, or true to ask the model")
  end
  local text = opts.summary
  if text == true then
    local message, code, retry_ms, rule
    text, message, code, retry_ms, rule = summarize(self, opts)
    if not text then
      return nil, message, code, retry_ms, rule
    end
  end
  local metadata = options.add(
    { kind = "child_summary", child = as_text(self.id), agent = as_text(self.agent) },
    opts.metadata)
  return with_parent(self, "session:merge", opts.into, function(parent)
    local enabled, why, denied = agents.check_enabled(parent._store, parent.agent)
    if not enabled then
      return nil, why, denied
    end
    return parent._core:merged(self._core, {
      role = opts.role or "user", content = text, metadata = metadata,
    })
  end)
end

local discard_options =
  options.shape("session:discard", { reason = "string", into = "table" })

--- Records in the parent that this child has no result. The child does not change.
function methods:discard(given)
  local opts = options.check("session:discard", given, discard_options)
  return with_parent(self, "session:discard", opts.into, function(parent)
    return parent._core:discarded(self._core, opts.reason)
  end)
end

--- A copy of a link to another session in a session's header; nil: there is none.
function family.link(info, name)
  local link = info[name]
  return link and {
    id = link.id, agent = link.agent, user = link.user, entry = link.entry, tag = link.tag,
  }
end

return family
