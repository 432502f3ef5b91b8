-- `sessile rpc`: random calls, made over rpc in one store and by the module in another. Both come
-- to the same: results, errors, and messages as they are stored.

local cli = require "spec.support.cli"
local rpc = require "spec.support.rpc"
local sessile = require "sessile"

local SOAK = os.getenv "SESSILE_SOAK" == "1"
local CALLS = SOAK and 10000 or 600

local state

local function random(most)
  state = state * 6364136223846793005 + 1442695040888963407
  return (state >> 33) % most + 1
end

local function any_id()
  return ("%08x"):format(random(40) - 1)
end

local function any_message()
  local roles = { "user", "assistant", "system", "tool", "nobody" }
  return { role = roles[random(9) == 9 and 5 or random(3)],
    content = ("word %d "):format(random(99)):rep(random(4)),
    n = random(3) == 1 and random(1000) / 8 or nil }
end

local function any_messages()
  local list = sessile.array {}
  for i = 1, random(3) do
    list[i] = any_message()
  end
  return list
end

-- A call: the method, its parameters, and the same by the module.
local calls = {
  function()
    local message = any_message()
    return "session/append", { message = message }, function(s) return s:append(message) end
  end,
  function(s)
    local messages, base = any_messages(), random(3) == 1 and s:head() or nil
    if random(9) == 1 then
      base = any_id()
    end
    local given = { base = base, on_conflict = random(3) == 1 and "append" or nil }
    return "session/turn", { messages = messages, base = base, on_conflict = given.on_conflict },
      function(other)
        local outcome, message, code = other:turn(messages, given)
        return outcome and outcome.ids, message, code
      end, function(outcome) return outcome.ids end
  end,
  function()
    local entries = { { custom = { kind = "k", n = random(9) } }, { message = any_message() } }
    return "session/write", { entries = entries }, function(s) return s:write(entries) end
  end,
  function()
    local n = random(3)
    return "session/pop", { n = n }, function(s)
      local list, message, code = s:pop(n)
      return list and #list, message, code
    end, function(list) return #list end
  end,
  function()
    local id = any_id()
    return "session/branch", { entry = id }, function(s)
      local outcome, message, code = s:branch(id)
      return outcome and outcome.head, message, code
    end, function(outcome) return outcome.head end
  end,
  function()
    local id, name = any_id(), "label " .. random(4)
    return "session/label", { entry = id, name = name }, function(s) return s:label(id, name) end
  end,
  function()
    local id = any_id()
    return "session/unlabel", { entry = id }, function(s) return s:unlabel(id) end
  end,
  function()
    local id = any_id()
    return "session/pin", { entry = id }, function(s) return s:pin(id) end
  end,
  function()
    local keep = random(6)
    local policy = { "sliding_window", messages = keep }
    local theirs = { name = "sliding_window", options = { messages = keep } }
    return "session/compact", { policy = theirs },
      function(s)
        local outcome, message, code = s:compact { policy = policy }
        return outcome and outcome.policy.verdict, message, code
      end, function(outcome) return outcome.policy.verdict end
  end,
  function()
    return "session/uncompact", {}, function(s)
      local done, message, code = s:uncompact()
      return done and done.restored, message, code
    end, function(done) return done.restored end
  end,
  function()
    local name = "c" .. random(3)
    return "session/checkpoint", { name = name, state = { n = 1.5 } }, function(s)
      return s:checkpoint { name = name, state = { n = 1.5 } }
    end
  end,
  function()
    local name = "c" .. random(4)
    return "session/restore", { checkpoint = name }, function(s)
      local done, message, code = s:restore(name)
      return done and done.state, message, code
    end, function(done) return done.state end
  end,
  function()
    return "session/clear", {}, function(s) return s:clear() end
  end,
  function()
    local id = any_id()
    return "session/path", { entry = id }, function(s) return s:path(id) end
  end,
}

cli.each_test()

describe("a random call", function()
  it(("comes to the same over rpc and in the module: %d of them"):format(CALLS), function()
    state = os.time()
    print("# seed " .. state)
    local store = assert(sessile.open("ram:"))
    local s = assert(store:create { id = "s" })
    local client = rpc.start()
    client:call("store/open", { name = "r", url = "ram:" })
    client:call("session/create", { id = "s", store = "r" })
    for i = 1, CALLS do
      local method, params, here, seen = calls[random(#calls)](s)
      params.session, params.store = "s", "r"
      local result, failure = client:try(method, params)
      local ok, mine, message, code = pcall(here, s)
      local what = ("call %d, %s %s"):format(i, method, sessile.encode(params))
      if ok and mine ~= nil then
        assert.is_nil(failure, what .. (failure and ": " .. failure.message or ""))
        assert.same(mine, seen and seen(result) or result, what)
      elseif ok then
        assert.is_table(failure, what .. ": " .. tostring(message))
        assert.equal(code, "E" .. failure.data.status, what)
        assert.equal(message, failure.message, what)
      else
        assert.is_table(failure, what)
      end
    end
    for _, part in ipairs { "messages", "context" } do
      local list = s[part](s)
      local theirs = client:call("session/" .. part, { session = "s", store = "r" })
      theirs = theirs.messages or theirs
      assert.equal(#list, #theirs)
      for i, one in ipairs(list) do
        local facts = sessile.of(one)
        assert.equal(facts.key, theirs[i].key)
        assert.equal(facts.tokens, theirs[i].tokens)
        assert.equal(facts.json, sessile.encode(theirs[i].message))
      end
    end
    client:stop()
    store:close()
  end)
end)
