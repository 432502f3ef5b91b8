-- Tokens in Lua: JWTs of an identity provider say who a view is of.
-- Own guard: it sets them.

local expect = require "spec.support.expect"
local jwt = require "spec.support.jwt"
local sessile = require "sessile"
local temp = require "spec.support.temp"

local SENTENCE = "the credential is not accepted"

describe("a token", function()
  local store, keys

  local function guarded(token)
    token.issuer, token.audience, token.keys = "https://id.example", "sessile", keys
    assert(store:guard { token = token, limits = true, roles = {
      reader = { "view_session", all = true },
    } })
  end

  local function claims(more, exp)
    return ('{"iss":"https://id.example","aud":"sessile","sub":"ann","exp":%d%s}'):format(
      exp or os.time() + 600, more or "")
  end

  local function view(payload)
    local made = assert(store:as { token = jwt.sign(payload) })
    finally(function() made:close() end)
    return made
  end

  temp.each_test(function(dir)
    keys = temp.write(dir .. "/jwks.json", jwt.keys(), "600")
    store = assert(sessile.open("ram:", { key = false }))
  end)
  after_each(function() store:close() end)

  it("says user, roles, agents and actor", function()
    guarded {}
    local ann = view(claims ',"roles":["editor","of-nobody"],"agents":["co*"],"act":{"sub":"bot"}')
    local who = assert(ann:who())
    assert.same({ "ann", "bot", "token", { "co*" } },
      { who.user, who.actor, who.method, who.agents })
    assert(ann:session { id = "a", agent = "coder" }:append { role = "user", content = "x" })
    expect.refused("EDENIED", ann:session { id = "a", agent = "main" })
    assert.equal(1, #store:list())
  end)

  it("has its claims where the guard is told they are", function()
    guarded { user = "email", roles = "/realm/roles" }
    local eve = view(claims ',"email":"eve@example.org","realm":{"roles":["reader"]}')
    assert.same({ "eve@example.org", true }, { eve:who().user, eve:who().all })
  end)

  it("is refused with one sentence, whatever is wrong", function()
    guarded {}
    local good = jwt.sign(claims())
    local wrong = {
      "x", "a.b.c", good:sub(1, -2), good .. "A", good:gsub("^.", "X"),
      jwt.sign(claims(), ("k"):rep(36)),
      jwt.sign(claims(), nil, '{"alg":"none","kid":"spec"}'),
      jwt.sign(claims(), nil, '{"alg":"HS256","kid":"other"}'),
      jwt.sign(claims(nil, os.time() - 3600)),
      jwt.sign(claims(nil, os.time() + 90000)),
      jwt.sign((claims():gsub("id.example", "evil.example"))),
      jwt.sign((claims():gsub('"sessile"', '"other"'))),
      jwt.sign "{}",
    }
    for _, token in ipairs(wrong) do
      assert.equal(SENTENCE, expect.refused("EDENIED", store:as { token = token }))
    end
    assert.truthy(view(claims()))
  end)

  it("is waited for when a source failed too often", function()
    guarded {}
    for _ = 1, 10 do
      expect.refused("EDENIED", store:as { token = "a.b.c", source = "10.0.0.1" })
    end
    local _, _, code, retry_ms, rule = store:as { token = jwt.sign(claims()), source = "10.0.0.1" }
    assert.same({ "ELIMIT", "failures" }, { code, rule })
    assert.is_true(retry_ms > 0)
    local other = assert(store:as { token = jwt.sign(claims()), source = "10.0.0.2" })
    other:close()
  end)

  it("renews a view of the same user, with what both give", function()
    guarded {}
    local ann = view(claims ',"roles":["editor"]')
    local s = assert(ann:session "a")
    assert(s:append { role = "user", content = "x" })
    local bob = jwt.sign((claims():gsub("ann", "bob")))
    assert.equal(SENTENCE, expect.refused("EDENIED", ann:renew { token = bob }))
    assert(ann:renew { token = jwt.sign(claims(',"roles":["viewer"]', os.time() + 1200)) })
    assert.equal(1, #s:messages())
    expect.refused("EDENIED", s:append { role = "user", content = "x" })
  end)

  it("wants a guard that knows its issuer", function()
    assert(store:guard())
    expect.has(expect.refused("EINVALID", store:as { token = "a.b.c" }), "no tokens")
    local other = assert(sessile.open("ram:", { key = false }))
    local message = expect.refused("EINVALID", other:guard { token = { issuer = "i" } })
    expect.has(message, "keys")
    other:close()
  end)
end)
