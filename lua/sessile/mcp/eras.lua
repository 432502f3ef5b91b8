-- eras.lua: the revisions of the protocol, and what differs between them.
--
-- Up to 2025-11-25 a client begins with `initialize`. From 2026-07-28 on each request says its
-- revision in `_meta`, and each result says what kind of result it is. The era of a request is told
-- by that request alone: nothing is remembered of those before it.

local core = require "sessile.core"

local eras = {}

--- The revisions that `initialize` may agree on, newest first.
eras.LEGACY = { "2025-11-25", "2025-06-18", "2025-03-26" }
--- Those of requests that name theirs.
eras.MODERN = { "2026-07-28" }

local META = "io.modelcontextprotocol/"

--- All revisions, newest first.
---@return string[]
function eras.all()
  local list = table.move(eras.MODERN, 1, #eras.MODERN, 1, core.array {})
  return table.move(eras.LEGACY, 1, #eras.LEGACY, #list + 1, list)
end

local function has(list, wanted)
  for _, one in ipairs(list) do
    if one == wanted then
      return true
    end
  end
  return false
end

--- The revision that `initialize` answers: the client's, or the newest one.
---@param wanted any
---@return string
function eras.agreed(wanted)
  return has(eras.LEGACY, wanted) and wanted or eras.LEGACY[1]
end

--- The era of a request. nil, code, message, data: the revision that it names is not spoken here,
--- or something is missing that its revision wants.
---@param method string
---@param params table
---@return "legacy"|"modern"|nil era
---@return integer? code
---@return string? message
---@return table? data
function eras.of(method, params)
  local meta = type(params._meta) == "table" and params._meta or {}
  local version = meta[META .. "protocolVersion"]
  if version == nil then
    return method == "server/discover" and "modern" or "legacy" -- a probe may say nothing
  elseif has(eras.LEGACY, version) then
    return "legacy"
  elseif not has(eras.MODERN, version) then
    return nil, -32022, "Unsupported protocol version", { supported = eras.all(),
      requested = type(version) == "string" and version:sub(1, 40) or "?" }
  elseif type(meta[META .. "clientCapabilities"]) ~= "table" and method ~= "server/discover" then
    return nil, -32602, ("_meta: '%sclientCapabilities' is missing: an object, which may be empty")
      :format(META)
  end
  return "modern"
end

--- A result as its era has it.
---@param era "legacy"|"modern"
---@param result table
---@param server_info table
---@param ttl_ms integer?  of a result that a client may keep: for how long
---@return table
function eras.shaped(era, result, server_info, ttl_ms)
  if era == "modern" then
    result.resultType = "complete"
    result._meta = { [META .. "serverInfo"] = server_info }
    if ttl_ms then
      result.ttlMs, result.cacheScope = ttl_ms, "private"
    end
  end
  return result
end

return eras
