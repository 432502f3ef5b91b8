-- keys.lua: methods of a store for its keys: show, rotate, reseal, and forget a user.
--
-- No secret is held here: a new one is given by its source, like open's `key`.

local key = require "sessile.key"
local pool = require "sessile.memory_pool"
local object = require "sessile.object"
local options = require "sessile.options"

local keys = {}

--- Facts about the store's keys; never a key.
function keys:keys()
  return self._core:keys()
end

local rotate_options = options.shape("store:rotate", { key = "any", make = "boolean" })

--- Starts a new epoch, whose key seals new sessions; with `key`, changes the secret of the store
--- and starts no epoch. Returns the newest epoch, and whether it is new.
function keys:rotate(given)
  local opts = options.check("store:rotate", given, rotate_options)
  if opts.key == nil then
    if opts.make then
      options.misuse("store:rotate: make wants a key: sessile.key.file(path)")
    end
    local epoch, message, code, retry_ms, rule = self._core:rotate()
    return epoch, message or true, code, retry_ms, rule
  end
  local source, value, code = key.resolve("store:rotate", opts.key)
  if not source then
    return nil, value, code
  elseif source == "plain" then
    options.misuse("store:rotate: key: a store that is sealed cannot become a plain one")
  end
  local epoch, message, failed, retry_ms, rule = self._core:rotate {
    key_source = source, key = value, make = opts.make,
  }
  return epoch, message or false, failed, retry_ms, rule
end

local reseal_options =
  options.shape("store:reseal", { suite = "string", progress = "callable" })

--- Seals the logs of older epochs again with the newest one. Returns the final state.
function keys:reseal(given)
  local opts = options.check("store:reseal", given, reseal_options)
  local work, message, code, retry_ms, rule = self._core:reseal(opts.suite)
  if not work then
    return nil, message, code, retry_ms, rule
  end
  return object.drive(work, function(state)
    state.failure = nil
    if opts.progress then
      opts.progress(state)
    end
  end)
end

--- Makes every session and memory of a user unreadable for ever, also in copies of the logs.
--- Returns the number of these logs.
function keys:forget(user)
  options.expect("string", user, "store:forget: the name of a user")
  pool.close(self, user)
  return self._core:forget(user)
end

return keys
