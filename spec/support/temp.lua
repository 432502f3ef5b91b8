-- temp.lua: folders that specs may fill, and what they ask of files. Everything it makes is
-- under the system's temporary folder and goes with temp.clean().

local busted = require "busted"
local elsewhere = require "spec.support.elsewhere"
local guarded = require "spec.support.guarded"
local shell = require "spec.support.shell"

local temp = {
  files_only = elsewhere.files_only, url = elsewhere.url, kind = elsewhere.kind,
}

local made = {}

--- A store's place as a word of a shell's command that stands in single quotes itself.
function temp.word(path)
  return (elsewhere.url(path):gsub("[?&]", "\\%0"))
end

local quote = shell.quote

--- A new empty folder, mode 0700.
function temp.dir()
  local path = os.tmpname()
  os.remove(path)
  assert(os.execute("mkdir -m 700 " .. quote(path)))
  made[#made + 1] = path
  return path
end

--- Removes every folder made so far.
function temp.clean()
  for i = #made, 1, -1 do
    os.execute("rm -rf " .. quote(made[i]))
    made[i] = nil
  end
end

--- In a describe, or a spec: removes the folders after each test. Calls set_up(dir) before it, if
--- there is one, with a new folder.
function temp.each_test(set_up)
  if set_up then
    busted.before_each(function() set_up(temp.dir()) end)
  end
  busted.after_each(temp.clean)
end

--- In a spec of policy files: a function that writes one, by its name, into a folder of each test,
--- with this mode unless it is given another. set_up(dir) as in temp.each_test.
function temp.policies(mode, set_up)
  local folder
  temp.each_test(function(path)
    folder = path
    if set_up then set_up(path) end
  end)
  return function(name, source, other_mode)
    return temp.write(("%s/%s.lua"):format(folder, name), source, other_mode or mode)
  end
end

function temp.read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("a")
  file:close()
  return text
end

function temp.write(path, text, mode)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
  if mode then
    assert(os.execute(("chmod %s %s"):format(mode, quote(path))))
  end
  return path
end

--- Paths of the plain files under a folder, sorted.
function temp.files(dir)
  local pipe = assert(io.popen("find " .. quote(dir) .. " -type f | LC_ALL=C sort"))
  local list = {}
  for line in pipe:lines() do
    list[#list + 1] = line
  end
  pipe:close()
  return list
end

-- Every entry of every session of a store, as it is kept.
local function entries(url)
  local parts = {}
  local store <close> = assert(require "sessile".open(url, { key = false }))
  for _, found in ipairs(assert(store:list())) do
    local session, _, code = store:resume { id = found.id, agent = found.agent, user = found.user }
    parts[#parts + 1] = found.id .. " " .. (code or "")
    if session then
      for entry in assert(session:entries()) do
        parts[#parts + 1] = entry.json
      end
      session:close()
    end
  end
  return table.concat(parts, "\n")
end

-- A refusal leaves an event, too.
local function is_the_guards(path)
  return path:find "/guard%.%l+/" or path:find "/audit%-%d+$" or path:find "/%.limits$"
end

--- What is in the folder of a plain store, as one string: names and bytes, but for what a list
--- remembers once logs have settled, and what its guard writes; of a database its entries. Two
--- equal strings are an unchanged folder.
function temp.snapshot(dir)
  if elsewhere.kind then
    return entries(dir)
  end
  local parts = {}
  for _, path in ipairs(temp.files(dir)) do
    if not (path:find "/%.list_cache$" or guarded.profile and is_the_guards(path)) then
      parts[#parts + 1] = path .. "\n" .. temp.read(path)
    end
  end
  return table.concat(parts, "\n")
end

return temp
