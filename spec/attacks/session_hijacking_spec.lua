-- Somebody knows the id of a session, and resumes it with a token that is no good.
-- Own guard: it sets one.

local attacks = require "spec.support.attacks"
local expect = require "spec.support.expect"
local jwt = require "spec.support.jwt"
local stores = require "spec.support.stores"

local SENTENCE = "the credential is not accepted"

local function claims(user, exp)
  return ('{"iss":"https://id.example","aud":"sessile","sub":"%s","exp":%d,"roles":["editor"]}')
    :format(user, exp)
end

local function base64url(text)
  local digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
  local bits = text:gsub(".", function(c)
    local made = {}
    for i = 7, 0, -1 do made[#made + 1] = c:byte() >> i & 1 end
    return table.concat(made)
  end)
  bits = bits .. ("0"):rep(-#bits % 6)
  return (bits:gsub("%d%d%d%d%d%d", function(six)
    local at = tonumber(six, 2) + 1
    return digits:sub(at, at)
  end))
end

describe("a session whose id somebody knows", function()
  local store, now

  stores.each_test(function()
    store = attacks.store()
    now = os.time()
    local ann = assert(store:as { token = jwt.sign(claims("ann", now + 600)) })
    assert(ann:session "bug-42":append { role = "user", content = "my card ends with 1881" })
    ann:close()
  end)

  local function bad_tokens()
    local good = jwt.sign(claims("ann", now + 600))
    local header, _, signature = good:match "^([^.]+)%.([^.]+)%.(.+)$"
    return {
      expired = jwt.sign(claims("ann", now - 600)),
      altered = ("%s.%s.%s"):format(header, base64url(claims("eve", now + 600)), signature),
      none = base64url '{"alg":"none"}' .. "." .. base64url(claims("ann", now + 600)) .. ".",
      ["of another key"] = jwt.sign(claims("ann", now + 600), ("k"):rep(32)),
    }
  end

  it("is not opened by a token that is expired, altered or signed by nobody", function()
    for about, token in pairs(bad_tokens()) do
      local view, message, code = store:as { token = token, source = "203.0.113.7" }
      expect.refused("EDENIED", view, message, code)
      assert.equal(SENTENCE, message, about)
    end
  end)

  it("is another session to a user with a good token", function()
    local bob = assert(store:as { token = jwt.sign(claims("bob", now + 600)) })
    finally(function() bob:close() end)
    expect.refused("ENOTFOUND", bob:resume "bug-42")
    expect.refused("EDENIED", bob:resume { id = "bug-42", user = "ann" })
  end)

  it("has each failure in the audit, with the reason and without the token", function()
    local count = 0
    for _, token in pairs(bad_tokens()) do
      store:as { token = token, source = "203.0.113.7" }
      count = count + 1
    end
    local tried = attacks.events(store, { operation = "authenticate", outcome = "failure" })
    assert.equal(count, #tried)
    for _, event in ipairs(tried) do
      assert.equal("203.0.113.7", event.source)
      assert.is_string(event.rule)
    end
    for _, token in pairs(bad_tokens()) do
      attacks.says_nothing(store, token:match "([^.]+)%.?$")
    end
  end)
end)
