-- The host's pause: a session that waits for an answer, whoever comes with it, and when.

local stores = require "spec.support.stores"
local messages = require "spec.support.messages"
local cli = require "spec.support.cli"
local sessile = require "sessile"

local user, assistant, contents = messages.user, messages.assistant, messages.contents

local function refused(value, message, code)
  assert.is_nil(value)
  assert.equal("ESUSPENDED", code)
  return message
end

stores.each_kind("a paused session in", function(open)
  local s

  before_each(function()
    s = stores.with_turn(open(), "s",
      { user "delete the table?", assistant "asking first" })
  end)

  it("is an outcome with what it waits for", function()
    assert.is_nil(s:suspended())
    local outcome = assert(s:suspend { reason = "approval", state = { step = 3 } })
    assert.equal("paused", outcome.status)
    assert.same({}, outcome.ids)
    assert.equal(s:head(), outcome.head)
    assert.equal(2, #outcome.context)
    assert.equal("suspend", s:entry(outcome.suspension).type)
    local pause = s:suspended()
    assert.equal(outcome.suspension, pause.id)
    assert.equal("approval", pause.reason)
    assert.same({ step = 3 }, pause.state)
    assert.is_true(pause.time >= s.modified and pause.time <= os.time() * 1000 + 2000)
  end)

  it("takes nothing that would add to it, and says why", function()
    assert(s:suspend { reason = "an approval by ann" })
    assert.matches("an approval by ann", refused(s:append(user "x")), 1, true)
    refused(s:turn { user "x" })
    refused(s:compact { policy = { compact = function(state) state:drop(1) end } })
    refused(s:clear())
    refused(s:suspend { reason = "again" })
    assert.same({ "delete the table?", "asking first" }, contents(s:messages()))
  end)

  it("is read, labelled and named all the same", function()
    assert(s:suspend())
    assert.equal(2, #s:context())
    assert(s:label("00000001", "here"))
    assert(s:settings { model = "m" })
    s.title = "waits"
    assert.equal("", s:suspended().reason)
    assert.is_nil(s:suspended().state)
  end)

  it("continues with one message, a list, or none", function()
    assert(s:suspend { reason = "1" })
    assert.same({ "00000006" }, s:resume_with(user "yes"))
    assert(s:suspend { reason = "2" })
    assert.same({ "00000009", "0000000a" }, s:resume_with { user "a", assistant "b" })
    assert(s:suspend { reason = "3" })
    assert.same({ "0000000d" }, s:resume_with(sessile.json '{"role":"user","content":"j"}'))
    assert(s:suspend { reason = "4" })
    assert.same({}, s:resume_with())
    assert.same({ "delete the table?", "asking first", "yes", "a", "b", "j" },
      contents(s:messages()))
    assert.is_nil(s:suspended())
    local _, _, code = s:resume_with(user "too late")
    assert.equal("ENOTFOUND", code)
  end)

  it("stays paused when the answer is no message", function()
    assert(s:suspend { reason = "x" })
    local value, _, code = s:resume_with { { content = "no role" } }
    assert.is_nil(value)
    assert.equal("EINVALID", code)
    assert.is_table(s:suspended())
    assert.has_error(function() s:resume_with "yes" end)
  end)

  it("stays paused when the reason for its end is too long", function()
    assert(s:suspend { reason = "approval" })
    local _, message, code = s:cancel(("x"):rep(8 * 1024 * 1024 + 1))
    assert.equal("ELIMIT", code)
    assert.truthy(message:find("[message]", 1, true))
    assert.equal("approval", assert(s:suspended()).reason)
  end)

  it("is cancelled with nothing said", function()
    assert(s:suspend { reason = "x" })
    assert.is_true(s:cancel "nobody answered")
    assert.is_nil(s:suspended())
    assert(s:append(user "on"))
    local _, _, code = s:cancel()
    assert.equal("ENOTFOUND", code)
  end)
end)

describe("a pause that outlives its process", function()
  local path

  before_each(function()
    path = cli.begin() .. "/store"
  end)

  after_each(cli.finish)

  -- Another process does this to the session `s` of the store.
  local function elsewhere(code)
    cli.write(path .. ".lua", ([[
      local sessile = require "sessile"
      local store = assert(sessile.open(%q, { key = false, guard = os.getenv "TEST_GUARD" }))
      local s = assert(store:session "s")
      %s
      store:close()
    ]]):format(cli.url(path), code))
    return cli.done("run " .. cli.quote(path .. ".lua"))
  end

  it("is answered in another one", function()
    elsewhere [[ s:append { role = "user", content = "go?" }
      assert(s:suspend { reason = "approval", state = { tool = "rm", n = 9007199254740993 } }) ]]
    assert.equal("approval rm 9007199254740993\n", (elsewhere [[ local p = s:suspended()
      io.write(p.reason, " ", p.state.tool, " ", p.state.n, "\n")
      local _, _, code = s:append { role = "user", content = "x" }
      assert(code == "ESUSPENDED") ]]))
    local store <close> = assert(sessile.open(path, { key = false }))
    local s = assert(store:resume "s")
    refused(s:append(user "x"))
    elsewhere [[ assert(s:resume_with { role = "user", content = "yes" }) ]]
    assert.is_nil(s:suspended()) -- the handle that was open sees it
    assert(s:append(user "on"))
    assert.same({ "go?", "yes", "on" }, contents(s:messages()))
  end)

  it("is seen on the command line, which adds nothing either", function()
    elsewhere [[ assert(s:suspend { reason = "approval" }) ]]
    local at = "--plain --store " .. cli.quote(path) .. " "
    local _, err, code = cli.sessile(at .. "append s x")
    assert.equal(1, code)
    assert.matches("sessile info .* s\n", err)
    local info = cli.json(at .. "info s")
    assert.equal("suspended", info.status)
    assert.equal("approval", info.suspension.reason)
    assert.matches("approval %(entry 00000001.*sessile answer", (cli.done(at .. "info s")))
  end)

  it("is begun, shown, answered and cancelled on the command line", function()
    elsewhere [[ assert(s:turn { { role = "assistant", content = "", tool_calls = {
      { id = "c1", name = "rm", arguments = {} } } } }) ]]
    local at = "--plain --store " .. cli.quote(path) .. " "
    local id = cli.done(at .. [[suspend s 'approval by ann' --state '{"step": 3}']])
    assert.matches("^%x+\n$", id)
    assert.matches("ESUSPENDED", select(2, cli.sessile(at .. "suspend s --json")))
    local shown = cli.done(at .. "answer s")
    assert.truthy(shown:find("approval by ann", 1, true), shown)
    assert.truthy(shown:find('{"step":3}', 1, true), shown)
    assert.equal("3", tostring(cli.json(at .. "answer s").suspension.state.step))
    cli.done(at .. "answer s 'go ahead'")
    assert.equal("active", cli.json(at .. "info s").status)
    cli.done(at .. "suspend s")
    cli.done(at .. "answer s - --call c1", "denied\n")
    cli.done(at .. "suspend s again")
    assert.equal("active", cli.json(at .. "cancel s 'nobody came'").status)
    local said = cli.json(at .. "show s")
    assert.equal("denied", said[#said].message.content)
    assert.equal("c1", said[#said].message.tool_call_id)
    assert.equal("go ahead", said[#said - 1].message.content)
    local _, err, code = cli.sessile(at .. "answer s late")
    assert.equal(3, code)
    assert.matches("is not suspended", err)
    assert.equal(3, (select(3, cli.sessile(at .. "cancel s"))))
    _, err, code = cli.sessile(at .. "suspend s why --state '{'")
    assert.equal(2, code)
    assert.matches("%-%-state", err)
    assert.equal("active", cli.json(at .. "info s").status)
  end)
end)
