-- elsewhere.lua: the same specs over another backend. With TEST_STORE=sqlite, postgres or grpc
-- (tests/run --store) a spec that opens a folder, or `ram:`, gets a database in its place, a place
-- of its own for each folder; so does the executable that it runs. Stores that name their backend,
-- and a host's, stay what they are.
--
-- Must never change what a spec expects: what holds of files alone says so, by files_only().

local elsewhere = { kind = os.getenv "TEST_STORE" }
if elsewhere.kind == "" or elsewhere.kind == "file" then
  elsewhere.kind = nil
end

local count = 0

local function hash(path)
  local sum = 0
  for i = 1, #path do
    sum = (sum * 31 + path:byte(i)) % 0x100000000
  end
  return ("%08x"):format(sum)
end

-- A server of the records of a database below path, which ends soon after that folder, or this
-- process. It has no key, and no home where it could find one.
local function serve(path, socket)
  local config = socket .. ".lua"
  local file <close> = assert(io.open(config, "w"))
  file:write 'return { serve = { services = { "records" } } }'
  file:close()
  assert(os.execute(([[
    mkdir -p %s
    (HOME=/nonexistent SESSILE_CONFIG=%s %s --store sqlite:%s/sessions.db serve --listen unix:%s \
      >%s.log 2>&1 & server=$!
      while kill -0 $PPID 2>/dev/null && test -d %s; do sleep 1; done
      kill $server) </dev/null >/dev/null 2>&1 &
    for i in $(seq 200); do grep -q Serving %s.log && exit 0; sleep 0.05; done
    cat %s.log >&2; exit 1]])
    :format(path, config, os.getenv "SESSILE_BIN" or "sessile", path, socket, socket, path, socket,
      socket)))
end

local places = {
  sqlite = function(path) return "sqlite:" .. path .. "/sessions.db" end,

  -- A schema's name has 63 bytes at most, and no capitals here, which a shell need not quote.
  postgres = function(path)
    local server = assert(require("spec.support.postgres").server())
    local name = path:gsub("%u", "%0_"):lower():gsub("[^%w_]", "_"):sub(-48)
    return ("%s?schema=t%s%s"):format(server.url, hash(path), name)
  end,
  grpc = function(path)
    local socket = os.getenv "TMPDIR" .. ("/grpc-%s.sock"):format(hash(path))
    local there = io.popen("test -S " .. socket .. " && echo yes")
    if there:read "a" == "" then
      serve(path, socket)
    end
    there:close()
    return "grpc://" .. socket
  end,
}

--- Where a store is that a spec would have in a folder: `where` itself, unless TEST_STORE says
--- otherwise. What is given to another process is given through this.
function elsewhere.url(where)
  local place = places[elsewhere.kind]
  if not place or type(where) ~= "string" then
    return where
  elseif where == "ram:" then
    count = count + 1
    return place(("%s/ram-%d"):format(os.getenv "TMPDIR" or "/tmp", count))
  end
  local scheme, rest = where:match "^(%a[%w+.-]+):(.*)"
  if scheme == "file" then
    where = rest
  elseif scheme or where == "" then
    return where
  end
  return place((where:gsub("/+$", "")))
end

--- In a test: it is about files, which a database has none of.
function elsewhere.files_only(why)
  if elsewhere.kind then
    -- `pending`, as a test has it: busted gives it to the files of specs alone.
    require "busted.core"().pending("about files: " .. why)
  end
end

--- sessile.open, from here on, of this process.
function elsewhere.install()
  if not places[elsewhere.kind] then
    assert(not elsewhere.kind, "TEST_STORE: sqlite, postgres, grpc or file")
    return
  end
  local sessile = require "sessile"
  local open = sessile.open
  sessile.open = function(where, options)
    if where == nil and type(options) == "table" then
      where = options.store
    end
    if where == "ram:" and (options == nil or type(options) == "table" and options.key == nil) then
      local given = { key = false }
      for name, value in pairs(options or {}) do
        given[name] = value
      end
      options = given
    end
    return open(elsewhere.url(where), options)
  end
  local init = sessile.keys_init
  sessile.keys_init = function(where, options)
    return init(elsewhere.url(where), options)
  end
end

return elsewhere
