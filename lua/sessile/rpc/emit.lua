--- emit: types and clients for other languages, from the registry.

local emit = {}

local TYPES = { ts = "sessile.rpc.emit_ts", py = "sessile.rpc.emit_py",
  lua = "sessile.rpc.emit_lua" }
local CLIENTS = { node = "sessile.rpc.client_node", python = "sessile.rpc.client_python",
  nvim = "sessile.rpc.client_nvim" }

--- The types, as a file of the language.
---@param language "ts"|"py"|"lua"
---@return string
function emit.types(language)
  return require(TYPES[language]).types()
end

--- A client of one file, with types.
---@param language "node"|"python"|"nvim"
---@return string
function emit.client(language)
  return require(CLIENTS[language]).text()
end

return emit
