-- Where a count of tokens comes from, how well it is known, and what is in it.

local sessile = require "sessile"

local store, s

local function open(opts)
  opts = opts or {}
  opts.key = false
  store = assert(sessile.open("ram:", opts))
  s = assert(store:create())
end

-- How many tokens, and by what; the margin holds them.
local function told(tokens, info)
  assert(tokens, info)
  assert.equal(tokens, info.tokens)
  assert.is_true(info.low <= tokens and tokens <= info.high)
  return tokens, info.source
end

local function have_encodings()
  local _, info = assert(sessile.open("ram:", { key = false, encoding = "o200k_base" })):count "x"
  return info.source == "exact"
end

local TOOLS = { { type = "function", ["function"] = {
  name = "get_current_weather", description = "Get the current weather in a given location",
  parameters = { type = "object", required = { "location" }, properties = {
    location = { type = "string", description = "The city and state, e.g. San Francisco, CA" },
    unit = { type = "string", description = "The unit of temperature to return",
      enum = { "celsius", "fahrenheit" } } } } } } }

describe("the model's own encoding", function()
  setup(function()
    assert(have_encodings(), "the encodings are not built: make")
  end)

  it("is found by the name of the model", function()
    for name, expected in pairs {
      ["gpt-4o"] = "o200k_base", ["openai/gpt-4o-mini-2024-07-18"] = "o200k_base",
      ["azure/gpt-4.1"] = "o200k_base", ["gpt-5.1-codex"] = "o200k_base",
      ["o3-mini"] = "o200k_base",
      ["ft:gpt-4o:acme::1"] = "o200k_base", ["gpt-4-turbo"] = "cl100k_base",
      ["gpt-35-turbo"] = "cl100k_base", ["text-embedding-3-small"] = "cl100k_base",
      ["claude-sonnet-4-5"] = false, ["o100"] = false, ["gpt-40"] = false, ["llama3.1"] = false,
    } do
      open { model_name = name }
      assert(s:append { role = "user", content = "x" })
      assert.equal(expected and "exact" or "estimate", select(2, told(s:tokens())), name)
      local json
      for entry in s:entries() do
        json = entry.json
      end
      assert.equal(expected or "estimate", json:match '"tokens":%[%d+,"([^"]+)"', name)
    end
  end)

  it("counts a request as OpenAI's own cookbook does", function()
    -- the two examples of that page, and what the API had reported for them
    open { model_name = "gpt-4o" }
    local list = {
      { role = "system", content = "You are a helpful, pattern-following assistant that translates "
        .. "corporate jargon into plain English." },
      { role = "system", name = "example_user", content = "New synergies will help drive top-line "
        .. "growth." },
      { role = "system", name = "example_assistant", content = "Things working well together will "
        .. "increase revenue." },
      { role = "system", name = "example_user", content = "Let's circle back when we have more "
        .. "bandwidth to touch base on opportunities for increased leverage." },
      { role = "system", name = "example_assistant", content = "Let's talk later when we're less "
        .. "busy about how to do better." },
      { role = "user", content = "This late pivot means we don't have time to boil the ocean for "
        .. "the client deliverable." },
    }
    assert.equal(124, (told(store:count_messages(list))))
    assert.equal(129, (told(store:count_messages(list, { model = "gpt-4" }))))
    local two = { { role = "system", content = "You are a helpful assistant that can answer to "
      .. "questions about the weather." },
      { role = "user", content = "What's the weather like in San Francisco?" } }
    assert.equal(101, (told(store:count_messages(two, { tools = TOOLS }))))
    assert.equal(105, (told(store:count_messages(two, { tools = TOOLS, model = "gpt-4" }))))
  end)

  it("is taken from what settings and turns say when the store names no model", function()
    open()
    assert(s:settings { model = "gpt-4o" })
    assert(s:append { role = "user", content = "hello world" })
    assert.same({ 6 + 3, "exact" }, { told(s:tokens()) })
    assert(s:turn({ { role = "user", content = "hello world" } }, { model_name = "claude-opus-4" }))
    assert.equal("estimate", select(2, told(s:tokens())))
    -- what was counted stays; for another model the context is counted again
    assert.same({ 2 * 6 + 3, "exact" }, { told(s:tokens { model = "gpt-4o" }) })
    assert.same({ 2 * 6 + 3, "exact" }, { told(s:tokens { model = "gpt-4" }) })
  end)

  it("that is not there leaves the count to the next rung, and is told", function()
    open { encoding = "no_such_base" }
    local tokens, info = store:count "hello"
    assert.equal("estimate", info.source)
    assert.matches("no_such_base", info.missing)
    assert.is_true(tokens > 0)
    assert(s:append { role = "user", content = "hello" }) -- never an error of a write
    open { encoding = "no_such_base", count = function() return 7 end }
    assert.same({ 7, "host" }, { told(store:count "hello") })
  end)
end)

describe("the host's counter", function()
  it("counts each text of a message where no encoding is known", function()
    local seen = {}
    open { count = function(text)
      seen[#seen + 1] = text
      return 100
    end }
    assert(s:append { role = "user", content = "one \"two\"" })
    assert.same({ "one \"two\"" }, seen)
    assert.same({ 104, "host" }, { told(s:tokens()) })
    assert(s:append { role = "user", content = { { type = "text", text = "a" },
      { type = "text", text = "b" } } })
    assert.equal(308, (told(s:tokens())))
  end)

  it("that fails or cannot say leaves the estimate", function()
    for _, count in ipairs { function() error "no" end, function() return -1 end, function() end,
      function() return "many" end, function() return coroutine.yield() end } do
      open { count = count }
      assert.equal("estimate", select(2, told(store:count "hello")))
      assert(s:append { role = "user", content = "hello" })
      assert.equal("estimate", select(2, told(s:tokens())))
    end
  end)
end)

describe("a count", function()
  it("before and after a compaction is the one that the session has", function()
    open()
    assert(s:append { role = "system", content = "be brief" })
    local sent = 900 -- a system prompt and tools that no message holds
    for n = 1, 12 do
      local said = ("some words of question %d "):format(n):rep(12)
      assert(s:append { role = "user", content = said })
      sent = sent + 120
      assert(s:append { role = "assistant", content = said,
        usage = { input = sent, output = 110 } })
      sent = sent + 110
    end
    local before, info = s:tokens()
    assert.equal("usage", info.source)
    local policy = { "sliding_window", messages = 8 }
    local tried = assert(s:plan { policy = policy })
    assert.equal(before, tried.tokens.before)
    local done = assert(s:compact { policy = policy })
    assert.same(tried.tokens, done.tokens)
    local after = s:tokens()
    assert.same({ before = before, after = after }, done.tokens)
    assert.is_true(after > 900 and after < before)
    local back = assert(s:uncompact())
    assert.same({ before = after, after = s:tokens() }, back.tokens)
  end)

  it("has system prompt and tools in it, once", function()
    open()
    assert(s:append { role = "user", content = "hello" })
    local bare = told(s:tokens())
    local system = told(s:tokens { system = "Answer in one word, and never in two." })
    local tools = told(s:tokens { tools = TOOLS })
    assert.is_true(system > bare + 5)
    assert.is_true(tools > bare + 30)
    -- what was reported has them in it
    assert(s:turn({ { role = "assistant", content = "a" } },
      { usage = { input = 90, output = 9 } }))
    assert.same({ 99, "usage" }, { told(s:tokens { tools = TOOLS, system = "x" }) })
    local ok, message, code = s:tokens { tools = { a = 1 } }
    assert.is_nil(ok)
    assert.matches("JSON array", message)
    assert.equal("EINVALID", code)
  end)

  it("of a context says what room is left", function()
    open { window = 1000, reserve = 100 }
    assert(s:append { role = "user", content = "hello" })
    local _, info = s:context()
    assert.equal(900 - info.tokens, info.room)
    _, info = s:context { window = 5000, reserve = 0 }
    assert.equal(5000 - info.tokens, info.room)
    open()
    _, info = s:context()
    assert.is_nil(info.room)
    assert.has_error(function() s:context { modle = "x" } end)
  end)

  it("learns from what was reported, and keeps it after a compaction", function()
    open()
    local all = 5000 -- a system prompt and tools that are no messages
    for i = 1, 12 do
      local text = ("the river and the stone, number %d of them all "):format(i):rep(8)
      assert(s:turn({ { role = "user", content = text }, { role = "assistant", content = "yes" } },
        { policy = false }))
      -- this model has two tokens for each that we count
      for _, message in ipairs(s:messages { last = 2 }) do
        all = all + 2 * message.tokens
      end
      assert(s:append { role = "assistant", content = "", usage = { input = all, output = 1 } })
    end
    assert(s:compact { policy = { compact = function(state)
      state:keep_last(2, "messages")
      return state
    end } })
    local tokens, source = told(s:tokens())
    assert.equal("fitted", source)
    assert.is_true(tokens > 4000 and tokens < 7000, tokens)
  end)

  it("says of the same messages what was reported, whatever the newest ones take", function()
    open()
    local all = 0
    for i = 1, 100 do
      -- the model has few tokens for the long texts of the beginning, many for the later ones
      local words = ("stone %d in the river "):format(i):rep(i <= 40 and 60 or 4)
      assert(s:turn({ { role = "user", content = words } }, { policy = false }))
      local counted = s:messages({ last = 1 })[1].tokens
      all = all + math.floor(counted * (i <= 40 and 0.7 or 1.4))
      assert(s:append { role = "assistant", content = "", usage = { input = all, output = 1 } })
    end
    for _, more in ipairs { false, "one more question about the stone in the river" } do
      if more then
        assert(s:append { role = "user", content = more })
      end
      local before, source = told(s:tokens())
      assert.equal("usage", source)
      local outcome = assert(s:compact { policy = { compact = function(state)
        state:keep_last(10, "messages")
      end } })
      assert.is_true(outcome.tokens.after < before / 4)
      assert(s:uncompact())
      local after, info = s:tokens()
      assert.equal("fitted", info.source)
      assert.is_true(info.low <= before and before <= info.high,
        ("%d is not in %d..%d (%d)"):format(before, info.low, info.high, after))
      assert.is_true(math.abs(after - before) <= 8)
      local id = s:messages({ last = 1 })[1].id
      assert(s:branch(id)) -- back to where the report is of the whole context
    end
  end)
end)

describe("a policy", function()
  it("sees counts in the model's own tokens, in the library and in a worker", function()
    local path = os.tmpname() .. ".lua"
    local file <close> = assert(io.open(path, "w"))
    file:write [[return { name = "looks", version = 1, truncate = function(state, ctx)
      state.vars = { tokens = state.tokens, text = ctx.count(("river stone "):rep(50)) }
    end }]]
    file:close()
    local seen = {}
    for i, isolation in ipairs { "none", "worker" } do
      open { isolation = isolation }
      local plain = store:count(("river stone "):rep(50))
      local all, counted = 300, 0
      for turn = 1, 9 do
        local text = ("the river, turn %d "):format(turn):rep(20)
        assert(s:turn({ { role = "user", content = text } }, { policy = false }))
        counted = counted + s:messages { last = 1 }[1].tokens
        all = all + 2 * s:messages { last = 1 }[1].tokens
        assert(s:append { role = "assistant", content = "", usage = { input = all } })
        counted = counted + s:messages { last = 1 }[1].tokens
      end
      assert(s:turn({ { role = "user", content = "so" } }, { policy = path }))
      local json
      for entry in s:entries() do
        json = entry.json:match '"vars":(%b{})' or json
      end
      local tokens = math.tointeger(tonumber(json:match '"tokens":(%d+)'))
      local text = math.tointeger(tonumber(json:match '"text":(%d+)'))
      assert.is_true(tokens > 1.7 * counted and tokens < 2.1 * counted + 20, json)
      assert.is_true(text > 1.7 * plain and text < 2.1 * plain, json)
      seen[i] = json
    end
    assert.equal(seen[1], seen[2])
    os.remove(path)
  end)

  -- Nine turns of a model with two tokens for each that we count, and `beside` for what is no
  -- message: a system prompt, tools.
  local function reported(beside)
    local all = beside
    for turn = 1, 9 do
      local text = ("the river, turn %d "):format(turn):rep(20)
      assert(s:turn({ { role = "user", content = text } }, { policy = false }))
      all = all + 2 * s:messages { last = 1 }[1].tokens
      assert(s:append { role = "assistant", content = "", usage = { input = all } })
    end
    return all
  end

  it("has the room that a system prompt and tools leave", function()
    local seen
    local function looks(state)
      seen = { reserve = state.reserve, tokens = state.tokens }
    end
    for _, beside in ipairs { 0, 4000, 900000 } do
      open { window = 20000, reserve = 1000 }
      reported(beside)
      assert(s:compact { policy = { compact = looks } })
      -- what was reported may be wrong: half of the room stays
      local expected = 1000 + math.min(beside, 9500)
      assert.is_true(math.abs(seen.reserve - expected) < 200, seen.reserve)
      assert.is_true(seen.tokens < 5000, seen.tokens)
    end
  end)

  it("is asked to compact when messages and what goes beside them are a share of the window",
    function()
      local fired = {}
      open()
      local window = 600 + reported(0) * 11 // 10
      for _, beside in ipairs { 0, 600 } do
        open { window = window, triggers = { share = 0.8 }, policy = { compact = function(state)
          fired[beside] = true
          state:keep_last(4, "messages")
        end } }
        reported(beside)
        assert(s:turn { { role = "user", content = "so" } })
      end
      assert.same({ [600] = true }, fired)
    end)

  it("is told of in the tokens that the session says it has", function()
    open()
    reported(4000)
    local was = told(s:tokens())
    local result = assert(s:compact { policy = { compact = function(state)
      state:keep_last(4, "messages")
    end } })
    local is = told(s:tokens())
    assert.is_true(math.abs(result.tokens.before - was) < 40, result.tokens.before .. " " .. was)
    assert.is_true(math.abs(result.tokens.after - is) < 40, result.tokens.after .. " " .. is)
    assert.is_true(is > 4000)
    local back = assert(s:uncompact())
    assert.is_true(math.abs(back.tokens.after - was) < 40, back.tokens.after)
  end)
end)
