--- coverage: which lines of a policy ran.
--
-- The sandbox of policies has no debug library. So the hooks of the policy file run as a host's
-- functions, where Lua's line hook sees them, under the same engine and the same laws. This happens
-- only with `sessile policy test --coverage`, and only for files of the user. No spec may depend on
-- it.

local options = require "sessile.options"

local has_system, system = pcall(require, "sessile.system")

local coverage = {}

local hooks = { "merge", "summarize", "truncate", "should_compact", "flush", "compact",
  "branch_summary", "remember", "tidy", "recall", "admit" }
local seen = {} -- path -> {line -> times}
local lines = {} -- path -> list of lines of the source

local wanted = false

--- From now on policies are watched.
function coverage.start()
  wanted = true
end

-- Options as declared, with their defaults.
local function options_of(declared, given)
  local out = {}
  for name, about in pairs(declared or {}) do
    out[name] = about.default
  end
  return options.add(out, given)
end

local function watch(path)
  return function(_, line)
    local of = seen[path]
    of[line] = (of[line] or 0) + 1
  end
end

local function wrap(path, hook)
  return function(...)
    local function done(...)
      debug.sethook()
      return ...
    end
    debug.sethook(watch(path), "l")
    return done(hook(...))
  end
end

--- A host policy in place of a policy file, when coverage is wanted and the file can be run
--- that way (a chain, and a file that requires others, cannot); else nil.
function coverage.watched(policy, given)
  if not wanted or type(policy) ~= "string" or not policy:find "%.lua$"
    or not has_system or not system.is_own(policy) then
    return nil
  end
  local file = io.open(policy)
  local source = file and file:read "a"
  if file then
    file:close()
  end
  local chunk = source and load(source, "@" .. policy, "t", setmetatable({}, {
    __index = function(_, name)
      if name == "require" then
        error("not here", 0)
      end
      return _G[name]
    end,
  }))
  local ok, value = pcall(chunk or error)
  if not ok or type(value) ~= "table" or value.chain or type(value[1]) == "table" then
    return nil
  end
  seen[policy] = seen[policy] or {}
  if not lines[policy] then
    lines[policy] = {}
    for line in (source .. "\n"):gmatch "(.-)\n" do
      table.insert(lines[policy], line)
    end
  end
  local host = { name = value.name, options = options_of(value.options, given) }
  for _, name in ipairs(hooks) do
    if value[name] then
      host[name] = wrap(policy, value[name])
    end
  end
  return host
end

-- The lines of the functions of a source that a run can reach.
local function reachable(path)
  local source = table.concat(lines[path], "\n")
  local set = {}
  local function visit(fn)
    for line in pairs(debug.getinfo(fn, "L").activelines or {}) do
      set[line] = true
    end
    local i = 1
    while true do
      local name, value = debug.getupvalue(fn, i)
      if not name then
        break
      end
      if type(value) == "function" and not set[value]
        and debug.getinfo(value, "S").source == "@" .. path then
        set[value] = true
        visit(value)
      end
      i = i + 1
    end
  end
  local value = load(source, "@" .. path)()
  for _, name in ipairs(hooks) do
    if value[name] then
      visit(value[name])
    end
  end
  local list = {}
  for line in pairs(set) do
    if type(line) == "number" then
      list[#list + 1] = line
    end
  end
  table.sort(list)
  return list
end

--- What ran, as text, for each file: its share, and the lines that did not.
function coverage.report()
  local out = {}
  local paths = {}
  for path in pairs(seen) do
    paths[#paths + 1] = path
  end
  table.sort(paths)
  for _, path in ipairs(paths) do
    local all, missed, ran = reachable(path), {}, 0
    for _, line in ipairs(all) do
      if seen[path][line] then
        ran = ran + 1
      else
        missed[#missed + 1] = line
      end
    end
    out[#out + 1] = ("%s: %d of %d lines ran (%.0f %%)"):format(path, ran, #all,
      100 * ran / math.max(1, #all))
    for _, line in ipairs(missed) do
      out[#out + 1] = ("  %4d  %s"):format(line, lines[path][line] or "")
    end
  end
  return table.concat(out, "\n")
end

return coverage
