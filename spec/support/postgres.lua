-- postgres.lua: the PostgreSQL server of a run of specs, and schemas of it to fill. The first that
-- asks for the server starts it (tests/support/postgres); it is gone when the run ends.

local quote = require("spec.support.shell").quote

local postgres = {}

local found, reason
local places = {}

-- Run by hand, a spec is the owner of its server.
local function state()
  local folder, owner = os.getenv("SESSILE_TEST_RUN"), os.getenv("SESSILE_TEST_RUN_PID")
  if folder and owner then
    return folder, owner
  end
  local stat = assert(io.open("/proc/self/stat"))
  owner = stat:read("n")
  stat:close()
  folder = os.tmpname()
  os.remove(folder)
  return folder, owner
end

--- The server: a table of `url` (a role that owns its database), `tcp` (the same, with TLS),
--- `admin` (the superuser), `ca` (certificate for verify-full, "" without TLS) and `folder`.
--- nil and the reason, for pending(), when there is none.
function postgres.server()
  if found == nil then
    local root = os.getenv("SESSILE_ROOT") or "."
    local folder, owner = state()
    local pipe = assert(io.popen(("%s start %s %s"):format(
      quote(root .. "/tests/support/postgres"), quote(folder), owner)))
    local said = {}
    for line in pipe:lines() do
      local name, value = line:match("^SESSILE_TEST_POSTGRES_?(%u*)=(.*)")
      if name then
        said[name] = value
      end
    end
    pipe:close()
    found = said[""] and {
      url = said[""], tcp = said.TCP, admin = said.ADMIN, ca = said.CA, folder = said.FOLDER,
    } or false
    reason = said.ABSENT or "tests/support/postgres did not say where its server is"
  end
  if not found then
    return nil, reason
  end
  return found
end

--- A URL of a schema that nobody else has, over `base` (default: the server's url).
function postgres.place(base)
  base = base or assert(postgres.server()).url
  -- os.tmpname: a name that no other process has
  local name = os.tmpname()
  os.remove(name)
  local schema = "spec_" .. name:match("[^/]*$"):lower():gsub("%W", "_") .. "_" .. #places
  places[#places + 1] = { base = base, schema = schema }
  return base .. (base:find("?", 1, true) and "&" or "?") .. "schema=" .. schema, schema
end

--- Runs SQL by psql over a URL without `schema=`; what it prints, unaligned, or nil and why.
function postgres.sql(url, text)
  local name = os.tmpname()
  local pipe = assert(io.popen(("LD_PRELOAD= psql -XAtq -v ON_ERROR_STOP=1 %s -c %s 2>%s"):format(
    quote(url), quote(text), name)))
  local out = pipe:read("a")
  local ok = pipe:close()
  local file = assert(io.open(name))
  local err = file:read("a")
  file:close()
  os.remove(name)
  if not ok then
    return nil, err
  end
  return (out:gsub("\n$", ""))
end

--- Drops every schema that place() named.
function postgres.clean()
  for i = #places, 1, -1 do
    postgres.sql(places[i].base, "drop schema if exists " .. places[i].schema .. " cascade")
    places[i] = nil
  end
end

return postgres
