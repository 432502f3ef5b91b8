-- The example policy, as its reader would test it.

local shipped = require "spec.support.shipped"
local transcript = require "spec.support.transcript"

describe("keep_last", function()
  it("keeps the system message and the newest turns", function()
    local session = assert(transcript.session { policy = { "examples/keep_last.lua", turns = 3 } })
    transcript.play(session, transcript.chat(9))
    local context = session:context()
    assert.equal("system", context[1].role)
    assert.truthy(transcript.find({ context[2] }, "question 7"))
    assert.equal(1 + 3 * 2, #context)
    assert.equal(19, #session:messages())
  end)

  it("never splits a call from its results", function()
    local session = assert(transcript.session { policy = { "examples/keep_last.lua", turns = 2 } })
    shipped.none_refused(transcript.play(session, transcript.turns()))
    assert.is_nil(transcript.broken_pair(session:context()))
  end)

  it("is what policies/README.md shows, line for line", function()
    local file = assert(io.open("examples/keep_last.lua"))
    local code = file:read("a"):match("\n(return .*)$")
    file:close()
    file = assert(io.open("policies/README.md"))
    assert.truthy(file:read("a"):find(code, 1, true))
    file:close()
  end)

  it("refuses to keep no turn at all", function()
    local session, message, code = transcript.session {
      policy = { "examples/keep_last.lua", turns = 0 },
    }
    assert.is_nil(session)
    assert.equal("EINVALID", code)
    assert.truthy(message:find("turns", 1, true))
  end)
end)
