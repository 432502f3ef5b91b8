-- object.lua: what all handles of the module share: the metatable with methods, readable and
-- writable fields, __close, __tostring and __name; closing; methods that only call the core; and
-- the loop of long operations.
--
-- There is no __gc: the core's userdata frees what a handle owns when it is collected. A method may
-- still use the userdata after the handle is unreachable, as in store:session "s":append(message);
-- a handle that closed it when collected would break such a call.
--
-- A handle's own state is in fields that start with an underscore. Assigning to a field that cannot
-- be set raises an error, so that a misspelled `s.titel = …` is noticed.

local dialect = require "sessile.dialect"
local options = require "sessile.options"

local object = {}

--- Adds methods without arguments that only call the method of the same name of what is in `_core`.
function object.forward(methods, names)
  for name in names:gmatch "%S+" do
    methods[name] = function(self)
      return self._core[name](self._core)
    end
  end
end

-- Closes what is in `_core`. It may be closed already.
local function close(self)
  self._core:close()
  return true
end

local function to_its_end(work, progress)
  local failures = {}
  while true do
    local done, state, code = work:step()
    if done == nil then
      return nil, state, code
    end
    failures[#failures + 1] = state.failure
    local go_on = not progress or progress(state)
    if done then
      state.failure, state.failures = nil, failures
      return state
    elseif go_on == false then
      return nil, "the copy was stopped before its end", "ECANCELLED"
    end
  end
end

--- Steps a long operation of the core to its end, and closes it. progress(state), when given,
--- is called after each step; if it returns false, the operation stops. Returns the last state
--- with the list of all failures.
function object.drive(work, progress)
  return dialect.closing(work, to_its_end, progress)
end

--- Makes a metatable.
--- spec: name, methods, readers ({field = function(self)}), writers ({field =
--- function(self, value)}), text (function(self)). methods.close returns true, or nil, message,
--- code; when there is none, it closes `_core`. close: for __close alone, when there is no method.
function object.class(spec)
  local methods, readers, writers = spec.methods, spec.readers or {}, spec.writers or {}
  local meta = { __name = spec.name }
  if not spec.close then
    methods.close = methods.close or close
  end

  function meta.__index(self, key)
    local method = methods[key]
    if method ~= nil then
      return method
    end
    local read = readers[key]
    if read then
      return read(self)
    end
    return nil
  end

  function meta.__newindex(self, key, value)
    local write = writers[key]
    if not write then
      options.misuse(("%s has no field '%s' that can be set"):format(spec.name, tostring(key)))
    end
    write(self, value)
  end

  function meta.__tostring(self)
    return ("%s: %s"):format(spec.name, spec.text(self))
  end

  -- A close that fails is told, unless an error is already on its way.
  function meta.__close(self, failure)
    local ok, message = (spec.close or methods.close)(self)
    if not ok and failure == nil then
      error(message, 0)
    end
  end

  return meta
end

return object
