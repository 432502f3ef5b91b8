-- The clock of this machine, and that of the store's server: what `sessile doctor` says of them.
-- A process is given another clock than the server has, which here is on the same machine.

local cli = require "spec.support.cli"
local decode = require("sessile").decode
local postgres = require "spec.support.postgres"
local temp = require "spec.support.temp"

local CLOCKED = cli.binary:gsub("/bin/sessile$", "/clock/sessile")
local MINUTE = 60 * 1000

-- The finding about the server's clock, by a process whose clock is wrong by that much; nil: none.
local function found(place, wrong_ms)
  local dir = temp.dir()
  local pipe = assert(io.popen(("env HOME=%s XDG_DATA_HOME=%s XDG_CONFIG_HOME=%s "
    .. "SESSILE_TEST_NOW=%d %s --plain --store %s --json doctor 2>%s/err"):format(dir, dir, dir,
    os.time() * 1000 + wrong_ms, cli.quote(CLOCKED), cli.quote(place), dir)))
  local out = pipe:read "a"
  pipe:close()
  for _, one in ipairs(assert(decode(out), cli.read(dir .. "/err")).findings) do
    if one.name == "server's clock" then
      return one
    end
  end
  return nil
end

-- A store of that kind with a session in it.
local function made(place)
  local store <close> = assert(require("sessile").open(place, { key = false }))
  assert(store:create())
  return place
end

describe("the clock of a store's server", function()
  after_each(temp.clean)

  if not postgres.server() then
    pending("there is no PostgreSQL server here")
    return
  end
  after_each(postgres.clean)

  it("is compared with this machine's", function()
    local place = made((postgres.place()))
    assert.equal("ok", found(place, 0).state)
    local ahead = found(place, 90 * MINUTE)
    assert.equal("warn", ahead.state)
    assert.matches("is 90 minutes ahead of that of the store's server", ahead.text)
    assert.matches("expire too late", ahead.text)
    local behind = found(place, -26 * 60 * MINUTE)
    assert.equal("warn", behind.state)
    assert.matches("minutes behind that of the store's server", behind.text)
    assert.matches("expire too early", behind.text)
    assert.equal("ok", found(place, 30 * 1000).state)
  end)
end)

describe("a store without a server", function()
  it("has no other clock", function()
    assert.is_nil(found(made(temp.dir() .. "/store"), 90 * MINUTE))
    temp.clean()
  end)
end)
