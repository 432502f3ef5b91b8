-- annotate.lua: methods of a session for labels, pins, settings, metadata and pauses.
--
-- Nothing is cached here: the engine is asked each time.

local names = require "sessile.names"
local options = require "sessile.options"
local outcome = require "sessile.outcome"

local methods = {}

-- ---------------------------------------------------------------- labels

local PIN = "pinned"

-- The id of an entry; nil, message, code.
local function named(self, who, id, name)
  if type(id) == "string" and type(name) ~= "string" then
    options.misuse(who .. ": a name expected, got " .. type(name))
  end
  return names.entry(self, who, id)
end

-- Calls the core's function with an entry and a label.
local function put(self, who, core, id, name)
  local entry, message, code, retry_ms, rule = named(self, who, id, name)
  if not entry then
    return nil, message, code, retry_ms, rule
  end
  return self._core[core](self._core, entry, name)
end

--- Puts a label on an entry. Does nothing if it has this label already.
function methods:label(id, name)
  return put(self, "session:label", "label", id, name)
end

--- Removes a label (ENOTFOUND if the entry does not have it); without a name all labels of the
--- entry, but not a pin, nor what a screen put ("screen:RULE").
function methods:unlabel(id, name)
  if name ~= nil then
    return put(self, "session:unlabel", "unlabel", id, name)
  end
  local labels, message, code, retry_ms, rule
  id, message, code, retry_ms, rule = named(self, "session:unlabel", id, PIN)
  if not id then
    return nil, message, code, retry_ms, rule
  end
  labels, message, code, retry_ms, rule = self._core:labels()
  if not labels then
    return nil, message, code, retry_ms, rule
  end
  local gone = false
  for _, label in ipairs(labels) do
    if label.id == id:lower() and label.name ~= PIN and not label.name:find "^screen:" then
      local ok
      ok, message, code, retry_ms, rule = self._core:unlabel(id, label.name)
      if not ok then
        return nil, message, code, retry_ms, rule
      end
      gone = true
    end
  end
  if not gone then
    return nil, ('session "%s": entry %s has no label'):format(self.id, id), "ENOTFOUND"
  end
  return true
end

--- Keeps a message in the context, unedited by policies.
function methods:pin(id)
  return put(self, "session:pin", "label", id, PIN)
end

--- Removes the pin.
function methods:unpin(id)
  return put(self, "session:unpin", "unlabel", id, PIN)
end

-- ---------------------------------------------------------------- members

local function members(self, kind, object)
  if object ~= nil and type(object) ~= "table" then
    options.misuse(("session:%s: a table expected, got %s"):format(kind, type(object)))
  end
  return self._core[kind](self._core, object)
end

--- Returns the settings. With a table, sets its members and keeps the others; sessile.null removes
--- one.
function methods:settings(object)
  return members(self, "settings", object)
end

--- Returns the metadata; with a table, sets members like settings.
function methods:metadata(object)
  return members(self, "metadata", object)
end

-- ---------------------------------------------------------------- pauses

local suspend_options =
  options.shape("session:suspend", { reason = "string", state = "any" })

--- Pauses the session: until resume_with or cancel, adding to the conversation fails with
--- ESUSPENDED, in any process. Returns the outcome, status "paused".
function methods:suspend(given)
  local opts = options.check("session:suspend", given, suspend_options)
  local head, message, code, retry_ms, rule = self._core:head()
  if not head then
    return nil, message, code, retry_ms, rule
  end
  local id
  id, message, code, retry_ms, rule = self._core:suspend(opts.reason, opts.state)
  if not id then
    return nil, message, code, retry_ms, rule
  end
  return outcome.paused(self, head, id)
end

--- The pause: {id, time, reason, state}; nil: the session is not paused.
function methods:suspended()
  local pause, message, code, retry_ms, rule = self._core:suspended()
  if pause == false then
    return nil
  end
  return pause, message, code, retry_ms, rule
end

--- Ends the pause and appends messages (one, a list, or none) as one commit. Returns their ids.
function methods:resume_with(messages)
  options.expect("table?", messages, "session:resume_with: a message or a list")
  local list = messages or {}
  if #list == 0 and next(list) ~= nil then
    list = { messages }
  end
  local first, message, code, retry, rule = self._core:resume_with(list)
  if not first then
    return nil, message, code, retry, rule
  end
  local ids = {}
  for i = 1, #list do
    ids[i] = ("%08x"):format(tonumber(first, 16) + i - 1)
  end
  return ids
end

--- Ends the pause and every pending run, and appends nothing.
function methods:cancel(reason)
  options.expect("string?", reason, "session:cancel: a string")
  return self._core:cancel(reason)
end

return { methods = methods }
