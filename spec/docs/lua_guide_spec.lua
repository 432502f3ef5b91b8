-- lua/README.md: its programs, run as they stand there.
-- Files only: what is read there is a folder.

local example = require "spec.support.example"
local guides = require "spec.support.guides"
local temp = require "spec.support.temp"

-- Standard output, standard error and exit status of the first Lua program under a heading.
local function run(heading)
  local guide = guides.read "lua/README.md"
  local section = assert(guide:match("\n## " .. heading .. "\n(.*)$"))
  local dir = temp.dir()
  temp.write(dir .. "/program.lua", assert(section:match "\n```lua\n(.-)\n```"))
  return example.shell(("%s run %s/program.lua"):format(example.command, dir))
end

describe("lua/README.md", function()
  teardown(temp.clean)

  it("shows a store of the host's that keeps a turn", function()
    local out, err, status = run "A store of your own"
    assert.equal("", err)
    assert.equal(0, status)
    assert.equal("true\n3\t0\n", out)
  end)

  it("shows URLs that are refused, and allowed", function()
    local out, err, status = run "URLs from elsewhere"
    assert.equal(0, status, err)
    assert.equal("EDENIED\tloopback\thttp://0x7f.1:6379\ntrue\n", out:match "^[^\n]*\n[^\n]*\n")
    assert.matches("\nnil\t.*%[not%-allowed%].*\tEDENIED\t", out)
  end)

  it("shows a store with a guard", function()
    local out, err, status = run "Who may do what"
    assert.equal(0, status, err)
    assert.equal("", out)
  end)

  it("shows a memory that finds, and is undone", function()
    local out, err, status = run "Long%-term memory"
    assert.equal(0, status, err)
    assert.equal("00000003\tprefers emacs now\t1.0\nlive\tprefers emacs now\n" ..
      "replaced\tprefers vim\n", out)
  end)

  it("shows an agent that runs", function()
    local out, err, status = run "Sending messages, and agents"
    assert.equal(0, status, err)
    assert.equal("completed\tThere are 3.\n4\n", out)
    local events = {}
    for event in err:gmatch "%d (%S+)\n" do
      events[#events + 1] = event
    end
    assert.same({ "start", "message", "context", "model", "message", "tool_start", "tool_end",
      "context", "model", "message", "turn", "done" }, events)
  end)
end)
