-- encoding.lua: exact token counts: `sessile.encoding`.
--
-- A handle of the core, with checked arguments and the folders in which encodings are searched for.

local core = require "sessile.core"
local object = require "sessile.object"
local options = require "sessile.options"
local paths = require "sessile.paths"

local encoding = {}
local methods = {}

local function check_text(who, text)
  options.expect("string", text, who .. ": a text")
  return text
end

function methods:count(text)
  return self._core:count(check_text("encoding:count", text))
end

function methods:encode(text)
  return self._core:encode(check_text("encoding:encode", text))
end

function methods:decode(ids)
  options.expect("table", ids, "encoding:decode: a list of ids")
  return self._core:decode(ids)
end

local meta = object.class {
  name = "sessile.Encoding",
  methods = methods,
  readers = { name = function(self) return self._core:name() end },
  text = function(self) return self._core:name() or "closed" end,
}
encoding.methods = methods

-- The folders given, then the default ones.
local function folders(given)
  local list = {}
  for _, folder in ipairs(type(given) == "string" and { given } or given or {}) do
    list[#list + 1] = paths.expand(folder)
  end
  list[#list + 1] = paths.encodings()
  return table.concat(list, ":")
end

local open_options =
  options.shape("sessile.encoding", { pattern = "string", folders = "string|strings" })

--- See meta.lua.
function encoding.open(name, opts)
  check_text("sessile.encoding", name)
  local given = options.check("sessile.encoding", opts, open_options)
  local handle, message, code, retry_ms, rule = core.encoding(paths.expand(name),
    { pattern = given.pattern, folders = folders(given.folders) })
  if not handle then
    return nil, message, code, retry_ms, rule
  end
  return setmetatable({ _core = handle }, meta)
end

return encoding
