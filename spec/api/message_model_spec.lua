-- What a message may be, and that it comes back as it was given: from the handle that wrote it,
-- after the store was opened again, in a fork, and in a copy in another store.

local cli = require "spec.support.cli"
local lists = require "spec.support.lists"
local stores = require "spec.support.stores"
local temp = require "spec.support.temp"
local sessile = require "sessile"

local dir, store, s

local function open()
  store = stores.open(dir, { key = sessile.key.secret("hex:" .. ("a7"):rep(32)) })
  s = assert(store:session "s")
end

stores.each_test(function()
  dir = temp.dir() .. "/store"
  open()
end)

-- Calls check(messages, where) with every way the messages can be read.
local function everywhere(check)
  check(assert(s:messages()), "here")
  store:close()
  open()
  check(assert(s:messages()), "opened again")
  check(assert(s:context()), "the context")
  check(assert(assert(s:fork()):messages()), "a fork")
  local other <close> = assert(sessile.open "ram:")
  check(assert(assert(other:put(s)):messages()), "a copy")
end

local function texts(list)
  return lists.field(list, "json")
end

-- Appends these texts: each is read as it was given, everywhere.
local function kept(given)
  for _, text in ipairs(given) do
    assert(s:append(sessile.json(text)))
  end
  everywhere(function(list, where)
    assert.same(given, texts(list), where)
  end)
end

describe("a role", function()
  it("is one of seven, in every way a message is written", function()
    local names = "system, developer, user, assistant, model, tool, function"
    for _, role in ipairs { "king", "User", "", "user ", 3, true, {} } do
      local message = { role = role, content = "x" }
      for _, write in ipairs { s.append, function(_, m) return s:turn { m } end } do
        local done, why, code = write(s, message)
        assert.is_nil(done)
        assert.equal("EINVALID", code)
        assert.truthy(why:find(names, 1, true), why)
      end
    end
    local done, why, code = s:append { content = "x" }
    assert.is_nil(done)
    assert.equal("EINVALID", code)
    assert.matches('no "role"', why)
    assert.same({}, s:messages())
    assert.equal(0, s:event_count())
  end)

  it("is text in what is kept", function()
    local given = {}
    for i, role in ipairs { "system", "developer", "user", "assistant", "model", "function" } do
      given[i] = ('{"role":"%s","content":"hello"}'):format(role)
    end
    kept(given)
  end)
end)

describe("an author", function()
  it("stays with the message, and is nowhere when there is none", function()
    assert(s:append { role = "assistant", content = "mine", author = "orchestrator" })
    assert(s:append { role = "assistant", content = "nobody's" })
    everywhere(function(list, where)
      assert.equal("orchestrator", list[1].author, where)
      assert.is_nil(list[2].author, where)
      assert.is_nil(list[2].json:find("author", 1, true), where)
    end)
  end)

  it("is not made up by the command line", function()
    cli.begin()
    cli.done "new --id s"
    cli.done "append s x"
    local out = cli.done "--json show s"
    cli.finish()
    assert.truthy(out:find('"role":"user"', 1, true), out)
    assert.is_nil(out:find('"author"', 1, true), out)
  end)
end)

describe("tool calls", function()
  it("keep the output that a tool's message carries, to the byte", function()
    local output = [[{"a": 1.50, "list":[ 1,2 ],"text":"caf\u00e9 \"quoted\"","none":null}]]
    local call = { id = "call_7", name = "read_file", output = output }
    assert(s:append { role = "assistant", content = "", tool_calls = {
      { id = "call_7", name = "read_file", arguments = '{"path": "x"}' } } })
    assert(s:append { role = "tool", content = "", tool_call_id = "call_7",
      tool_calls = { call } })
    assert(s:append { role = "function", name = "read_file", content = "", tool_calls = { call } })
    everywhere(function(list, where)
      assert.equal('{"path": "x"}', list[1].tool_calls[1].arguments, where)
      assert.equal("call_7", list[2].tool_call_id, where)
      for i = 2, 3 do
        assert.same({ call }, list[i].tool_calls, where)
        assert.equal(output, list[i].tool_calls[1].output, where)
      end
    end)
  end)
end)

describe("content", function()
  it("may be blocks of any type, in their order", function()
    local blocks = {
      { type = "text", text = "what is this?" },
      { type = "image", source = { type = "base64", media_type = "image/png", data = "iVBORw0K" } },
      { type = "image_url", image_url = { url = "https://example.org/a.png", detail = "low" } },
      { type = "input_audio", input_audio = { data = "UklGRg==", format = "wav" } },
      { type = "of_tomorrow", weird = { true, 1.5, { deep = "er" } } },
      { type = "text", text = "and this?" },
    }
    assert(s:append { role = "user", content = blocks })
    assert(s:append { role = "user", content = {} })
    everywhere(function(list, where)
      assert.same(blocks, list[1].content, where)
      assert.same({}, list[2].content, where)
      assert.truthy(list[2].json:find('"content":[]', 1, true), where)
      assert.is_true(list[1].tokens > list[2].tokens)
    end)
  end)
end)

describe("what is not known", function()
  it("is kept as it was written, at every depth", function()
    local given = {
      '{"role":"user","content":"x","zeta":1,"alpha":{"null":null,"big":12345678901234567890,'
        .. '"float":1.10,"empty":{},"none":[]},"id":"mine","parentId":"theirs"}',
      '{"x":[[[]]],"role":"assistant","content":null,"reasoning_content":"hm","refusal":null,'
        .. '"tool_calls":[{"id":"1","type":"function","arguments":"{}","name":"f","index":0}]}',
    }
    kept(given)
  end)
end)

describe("usage", function()
  local function totals(where)
    local sum = assert(where:usage())
    return sum.input, sum.output
  end

  it("is the message's when only it says so, and the turn's when that does", function()
    assert(s:append { role = "assistant", content = "a", usage = { input = 3, output = 4 } })
    assert.same({ 3, 4 }, { totals(s) })
    assert(s:turn({ { role = "user", content = "q" },
      { role = "assistant", content = "b", usage = { input = 30, output = 40 } } }))
    assert.same({ 33, 44 }, { totals(s) })
    -- a turn's own is the bill: it stands for those of its messages
    assert(s:turn({ { role = "assistant", content = "c", usage = { input = 100, output = 100 } } },
      { usage = { input = 200, output = 300 } }))
    assert.same({ 233, 344 }, { totals(s) })
    assert.same({ input = 100, output = 100 }, s:messages { last = 1 }[1].usage)
    store:close()
    open()
    assert.same({ 233, 344 }, { totals(s) })
    assert.same({ 233, 344 }, { totals(assert(s:fork())) })
  end)

  it("is understood in the names of several providers, and kept in them", function()
    local given = { prompt_tokens = 7, completion_tokens = 2, total_tokens = 9,
      completion_tokens_details = { reasoning_tokens = 1 } }
    assert(s:append { role = "assistant", content = "a", usage = given })
    assert(s:append { role = "assistant", content = "b",
      usage = { input_tokens = 10, output_tokens = 20, cache_read_input_tokens = 5 } })
    assert.same({ input = 17, output = 22, cache_read = 5, cache_write = 0 }, s:usage())
    assert.same(given, s:messages()[1].usage)
  end)

  -- the groups of one kind, and their sum
  local function grouped(by)
    local list, sum = {}, { input = 0, output = 0, cache_read = 0, cache_write = 0 }
    for i, group in ipairs(assert(s:usage { by = by })) do
      list[i] = ("%s %d %d %d"):format(group.key, group.reports, group.input, group.output)
      for name in pairs(sum) do
        sum[name] = sum[name] + group[name]
      end
      assert.is_true(group.first <= group.last)
    end
    return list, sum
  end

  it("says of a group which part of it reports no cost", function()
    assert(s:append { role = "assistant", content = "a", usage = { input = 1, output = 2 } })
    assert(s:append { role = "assistant", content = "b",
      usage = { input = 3, output = 4, cache_read = 5, cost = 0.25 } })
    local group = assert(s:usage { by = "agent" })[1]
    assert.equal(0.25, group.cost)
    assert.equal(4, group.input)
    assert.same({ input = 1, output = 2, cache_read = 0, cache_write = 0 }, group.uncosted)
  end)

  it("is grouped by model, day and agent, and the groups add up", function()
    assert(s:append { role = "assistant", content = "a", usage = { input = 1, output = 2 } })
    assert(s:settings { model = "configured" })
    assert(s:append { role = "assistant", content = "a", usage = { input = 3, output = 4 } })
    assert(s:append { role = "assistant", content = "a", model = "said",
      usage = { input = 5, output = 6 } })
    -- the turn's own stands for its messages', under the name it gives
    assert(s:turn({ { role = "assistant", content = "b", model = "part",
      usage = { input = 100, output = 100 } } },
      { usage = { input = 10, output = 20, total = { input = 30, output = 40 } },
        model_name = "turned" }))
    assert(s:turn({ { role = "assistant", content = "c", usage = { input = 7, output = 8 } } }))
    local by_model, sum = grouped "model"
    assert.same({ "turned 1 30 40", "configured 2 10 12", "said 1 5 6", " 1 1 2" }, by_model)
    assert.same(s:usage(), sum)
    local by_day
    by_day, sum = grouped "day"
    assert.matches("^%d%d%d%d%-%d%d%-%d%d %d", by_day[1])
    assert.same(s:usage(), sum)
    local by_agent
    by_agent, sum = grouped "agent"
    assert.same({ "main 5 46 60" }, by_agent)
    assert.same(s:usage(), sum)
    assert.has_error(function() s:usage { by = "hour" } end,
      [[session:usage: option 'by': "day", "model", "agent" or "day_and_model" expected, ]]
        .. [[got "hour"]])
    assert.same({}, assert(store:create()):usage { by = "day" })
  end)

  it("counts what was said on every branch", function()
    local first = assert(s:append { role = "user", content = "q" })
    assert(s:append { role = "assistant", content = "a", usage = { input = 1, output = 10 } })
    assert(s:branch(first))
    assert(s:append { role = "assistant", content = "b", usage = { input = 1, output = 20 } })
    assert.same({ 2, 30 }, { totals(s) })
  end)
end)
