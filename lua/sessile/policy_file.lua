-- policy_file.lua: what the file of a policy says of itself: its table, and which hooks it has.
--
-- Must never run a hook: the file is loaded in an environment with only what a table constructor
-- needs. A file that others can write is not loaded here at all. The engine decides what a policy
-- is; this only describes it.

local dialect = require "sessile.dialect"
local has_system, system = pcall(require, "sessile.system")
local paths = require "sessile.paths"
local policy = require "sessile.policy"

local policy_file = {}

--- The hooks of contexts, and those of memories, in the order in which they run.
policy_file.context_hooks = { "merge", "summarize", "truncate", "should_compact", "flush",
  "compact", "branch_summary" }
policy_file.memory_hooks = { "remember", "admit", "tidy", "recall" }

--- The path of a policy's file, or nil. policy_path: folders, `:` between; nil: the usual ones.
function policy_file.find(name, policy_path)
  if name:find "/" or name:find "%.lua$" then
    return paths.expand(name)
  end
  local list = {}
  for folder in (policy_path or paths.policy_path()):gmatch "[^:]+" do
    list[#list + 1] = ("%s/%s.lua"):format(folder, name)
  end
  return paths.readable(list)
end

--- The table that a source returns; {}: none, or it needs more than a table constructor does.
function policy_file.table_of(source, path)
  local env = { math = dialect.math, string = string, table = dialect.table,
    utf8 = dialect.utf8, ipairs = ipairs, pairs = pairs, tostring = tostring,
    tonumber = tonumber, type = type, select = select,
    assert = assert, error = error, setmetatable = setmetatable,
    require = function() return {} end }
  local chunk = load(source, "@" .. path, "t", env)
  local ok, value = pcall(chunk or error)
  return ok and type(value) == "table" and value or {}
end

--- The table of a policy's file; {}: it cannot be read, or others can write it.
function policy_file.read(name, policy_path)
  local path = policy_file.find(name, policy_path)
  path = path and has_system and system.real(path) or path
  local file = path and (not has_system or system.is_own(path)) and io.open(path)
  if not file then
    return {}
  end
  local source = file:read "a"
  file:close()
  return policy_file.table_of(source, path)
end

local function add_hooks(set, spec, policy_path, depth)
  if type(spec) == "string" then
    local value = policy_file.read(spec, policy_path)
    for name in pairs(policy.hooks) do
      set[name] = set[name] or value[name] ~= nil or nil
    end
    spec = value.chain or type(value[1]) == "table" and value or nil
    if type(spec) ~= "table" then
      return
    end
  elseif type(spec) ~= "table" then
    return
  elseif type(spec[1]) == "string" and #spec == 1 then
    return add_hooks(set, spec[1], policy_path, depth + 1)
  end
  for name in pairs(policy.hooks) do
    set[name] = set[name] or spec[name] ~= nil or nil
  end
  for _, step in ipairs(depth < 8 and spec or {}) do
    add_hooks(set, step, policy_path, depth + 1)
  end
end

--- The hooks of a policy as sessile.open takes it, as a set: {remember = true, …}.
function policy_file.hooks(spec, policy_path)
  local set = {}
  add_hooks(set, spec, policy_path, 1)
  return set
end

--- Whether a policy has a hook of memories, and whether it has one of contexts.
function policy_file.kinds(spec, policy_path)
  local set = policy_file.hooks(spec, policy_path)
  local is_memory, is_context = false, false
  for _, name in ipairs(policy_file.memory_hooks) do
    is_memory = is_memory or set[name] ~= nil
  end
  for _, name in ipairs(policy_file.context_hooks) do
    is_context = is_context or set[name] ~= nil
  end
  return is_memory, is_context
end

return policy_file
