-- `sessile rpc`: the server is killed while it writes, and what was asked is asked again, with the
-- same base and the same name. Nothing that was acknowledged is lost, nothing is there twice.

local cli = require "spec.support.cli"
local rpc = require "spec.support.rpc"

local SOAK = os.getenv "SESSILE_SOAK" == "1"
local KILLS = SOAK and 2000 or 100

cli.each_test()

describe("a server that is killed", function()
  it(("loses and doubles nothing: %d times"):format(KILLS), function()
    local client = rpc.start()
    client:call("session/create", { id = "s" })
    local head, acknowledged = "00000000", 0
    local state = os.time()
    print("# seed " .. state)
    local written = 0
    client:call("session/create", { id = "noise" })
    for i = 1, KILLS do
      local turn = { session = "s", base = head, once = "turn " .. i, messages = {
        { role = "user", content = "question " .. i },
        { role = "assistant", content = "answer " .. i },
      } }
      local pid = client:pid()
      state = state * 6364136223846793005 + 1442695040888963407
      for _ = 1, (state >> 33) % 12 do -- so that it is killed before the turn, in it or after it
        client:send("session/append",
          { session = "noise", message = { role = "user", content = "n" } })
      end
      client:send("session/turn", turn)
      os.execute("kill -9 " .. pid)
      client:stop()
      client = rpc.start()
      local outcome = client:call("session/turn", turn)
      assert.equal(2, #outcome.ids)
      written = written + (outcome.again and 1 or 0)
      head, acknowledged = outcome.turn, acknowledged + 1
    end
    local messages = client:call("session/messages", { session = "s" })
    assert.equal(2 * acknowledged, #messages)
    for i, one in ipairs(messages) do
      assert.equal((i % 2 == 1 and "question " or "answer ") .. (i + 1) // 2, one.message.content)
    end
    print(("# figure: turns that were written when the server was killed = %d of %d"):format(
      written, KILLS))
    client:stop()
  end)
end)
