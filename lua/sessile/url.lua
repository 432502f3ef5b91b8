-- url.lua: whether a text names a URL that leads inwards, and whether an address does.

local core = require "sessile.core"
local options = require "sessile.options"

local url = {}

local check_options = options.shape("sessile.url_check",
  { allow = "strings", only_allowed = "boolean", resolve = "boolean" })

--- See meta.lua.
function url.check(text, opts)
  options.expect("string", text, "sessile.url_check: a text")
  return core.url_check(text, options.check("sessile.url_check", opts, check_options))
end

local address_options = options.shape("sessile.address_check",
  { allow = "strings", port = "count" })

--- See meta.lua.
function url.address_check(address, opts)
  options.expect("string", address, "sessile.address_check: an address")
  local given = options.check("sessile.address_check", opts, address_options)
  return core.address_check(address, given)
end

return url
