-- sessile.core reads the options that it is given as they are: no metamethod runs, and the table
-- that a caller gave is not changed.
-- Files only: it is about arguments.

local core = require "sessile.core"
local sessile = require "sessile"
local temp = require "spec.support.temp"

local PLAIN = { key_source = "plain" }

-- A table whose absent fields are new strings, which nothing else keeps.
local function strange(fields)
  return setmetatable(fields, { __index = function(_, name)
    return ("%s is made up: %s"):format(name, ("x"):rep(100))
  end })
end

describe("the binding", function()
  local store

  before_each(function() store = assert(core.open("ram:", PLAIN)) end)
  after_each(function() store:close() end)

  it("asks no metamethod for an option", function()
    local other = assert(core.open("ram:", strange { key_source = "plain", limits = strange {} }))
    local s = assert(other:create(strange { id = "a", agent_info = strange { version = "1" } }))
    assert.equal("main", s:info().agent)
    assert(s:append { role = "user", content = "x" })
    assert.equal(1, #assert(s:messages(strange {})))
    assert.equal(1, #assert(other:list(strange { limit = 5 })))
    assert(s:checkpoint(strange { name = "one" }))
    assert.equal(1, #assert(s:checkpoints(strange {})))
    local run = assert(s:turn({ { role = "user", content = "y" } },
      strange { triggers = strange { messages = 5 } }))
    assert.is_true(run:step())
    run:close()
    s:close()
    other:close()
  end)

  it("refuses the URL of a store with a zero byte in it, and makes nothing", function()
    local folder = temp.dir()
    for _, url in ipairs { folder .. "/a\0b", "sqlite:" .. folder .. "/a\0b", "ram:\0" } do
      for _, open in ipairs { sessile.open, core.open, core.keys_init } do
        local opened, message, code = open(url, { key = open == sessile.open and false or nil })
        assert.is_nil(opened)
        assert.equal("EINVALID", code)
        assert.matches("zero byte", message)
      end
    end
    assert.same({}, temp.files(folder))
    temp.clean()
  end)

  it("leaves the table of options as it was", function()
    local info = { version = "1", tools = { "a", "b" } }
    local given = { id = "a", agent_info = info, metadata = { a = 1 } }
    assert(store:create(given)):close()
    assert.same({ id = "a", agent_info = info, metadata = { a = 1 } }, given)
    assert.same({ version = "1", tools = { "a", "b" } }, info)
  end)
end)
