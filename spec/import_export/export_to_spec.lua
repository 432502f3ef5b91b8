-- Sessions written as other agents and APIs have them: what came from there goes back equal, and
-- nothing is written that the API would refuse.

local cli = require "spec.support.cli"
local recordings = require "spec.support.recordings"
local span = require("sessile.core").span
local stores = require "spec.support.stores"
local temp = require "spec.support.temp"

local folder = "spec/fixtures/import/"
local canonical = recordings.canonical
local store

stores.each_test(function() store = stores.ram() end)

local function written(path, to)
  local session = assert(recordings.into(store, path, { id = path .. to }))
  local text, done = recordings.exported(session, to)
  return text, done, session
end

local function lines_of(text)
  local out = {}
  for line in text:gmatch "[^\n]+" do
    out[#out + 1] = span.valid(line) and canonical(line) or line
  end
  return out
end

local function same(expected, found)
  for i = 1, math.max(#expected, #found) do
    assert.equal(expected[i], found[i])
  end
end

-- The text of a document as a session's export, through a file.
local function there_and_back(text, to)
  local path = temp.dir() .. "/it.json"
  temp.write(path, text)
  local session = assert(recordings.into(store, path, { from = to, id = path }))
  local back = recordings.exported(session, to)
  session:close()
  return back
end

describe("a recording of pi goes back as it came", function()
  local paths = { "spec/fixtures/pi-small.jsonl", folder .. "pi-tree.jsonl" }
  paths[#paths + 1] = (os.getenv "SESSILE_PI_SESSION" or "") ~= ""
    and os.getenv "SESSILE_PI_SESSION" or nil
  for _, path in ipairs(paths) do
    it("line for line: " .. path:match "[^/]+$", function()
      local text, done = written(path, "pi")
      same(lines_of(temp.read(path)), lines_of(text))
      assert.same({}, done.notes)
    end)
  end

  it("in another order where messages waited for their parents", function()
    local path = folder .. "pi-orphans.jsonl"
    local expected, found = lines_of(temp.read(path)), lines_of((written(path, "pi")))
    table.sort(expected)
    table.sort(found)
    same(expected, found)
  end)

  it("with lines that are no JSON, no text, or too long", function()
    local path = temp.dir() .. "/odd.jsonl"
    temp.write(path, table.concat({
      '{"type":"session","version":3,"id":"odd","timestamp":"2026-01-01T00:00:00.000Z"}',
      "torn {", "bytes \255\254",
      '{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"x"}}',
      '{"type":"custom","id":"b","id":"b","parentId":"a"}', ("long "):rep(2 << 20), "",
    }, "\n"))
    local text = written(path, "pi")
    same(lines_of(temp.read(path)), lines_of(text))
  end)

  it("as a tree when a list has become one", function()
    local session = assert(recordings.into(store, "spec/fixtures/pi-small.jsonl"))
    local list = session:messages()
    session:branch(list[3].id)
    session:append { role = "user", content = "another way" }
    session:label(list[3].id, "here")
    local text, done = recordings.exported(session, "pi")
    assert.equal(1, #done.notes)
    local seen, messages = {}, 0
    for _, line in ipairs(lines_of(text)) do
      local _, fields = span.object(line)
      local kind = span.string(fields.type)
      if kind == "session" then
        assert.equal("3", fields.version)
      else
        assert.is_string(span.string(fields.id))
        assert.is_nil(seen[fields.id])
        assert.is_true(fields.parentId == "null" or seen[fields.parentId] ~= nil, line)
        seen[fields.id] = kind
        messages = messages + (kind == "message" and 1 or 0)
      end
    end
    assert.equal(32, messages)
    local path = temp.dir() .. "/tree.jsonl"
    temp.write(path, text)
    local again = assert(recordings.into(store, path, { id = "again" }))
    local last = again:messages()
    assert.equal("another way", last[#last].content[1].text)
    assert.equal(4, #last)
    assert.equal("here", again:labels()[1].name)
  end)
end)

describe("a document of an API goes back as it came", function()
  local random

  local function pick(list)
    return list[random(#list)]
  end

  local function text()
    return pick { '"plain"', '"\\u00e9\\ud83d\\ude00 \\"q\\""', '"two\\nlines"', '"\\u0000"' }
  end

  local function number()
    return pick { "1.50", "9007199254740993", "-0", "1e400", "12345678901234567890" }
  end

  local function openai_document()
    local out, n = {}, 0
    out[1] = random(2) == 1 and '{"role":"system","content":' .. text() .. "}" or nil
    for _ = 1, random(6) do
      out[#out + 1] = ('{"role":"user","content":%s}'):format(pick { text(),
        '[{"type":"text","text":' .. text()
          .. '},{"type":"image_url","image_url":{"url":"x:y"}}]' })
      if random(2) == 1 then
        n = n + 2
        out[#out + 1] = ('{"role":"assistant","content":%s,"tool_calls":[{"id":"c%d","type":'
          .. '"function","function":{"name":"f","arguments":%s}},{"id":"c%d","type":"function",'
          .. '"function":{"name":"g","arguments":"{}","strict":true},"index":%s}]}'):format(
          pick { "null", text() }, n, span.quote('{"n":' .. number() .. "}"), n + 1, number())
        out[#out + 1] = ('{"role":"tool","tool_call_id":"c%d","content":%s}'):format(n + 1, text())
        out[#out + 1] = ('{"role":"tool","tool_call_id":"c%d","content":%s}'):format(n, text())
      end
      out[#out + 1] = ('{"content":%s,"role":"assistant","refusal":null,"score":%s}'):format(text(),
        number())
    end
    local list = "[" .. table.concat(out, ",") .. "]"
    return random(3) == 1 and list or ('{"model":"m","messages":%s,"temperature":%s,"tools":[]}')
      :format(list, number())
  end

  local function anthropic_document()
    local out, n = {}, 0
    for _ = 1, random(6) do
      out[#out + 1] = ('{"role":"user","content":%s}'):format(pick { text():gsub("\\u0000", "x"),
        '[{"type":"text","text":"t","cache_control":{"type":"ephemeral"}}]' })
      if random(2) == 1 then
        n = n + 1
        out[#out + 1] = ('{"role":"assistant","content":[{"type":"thinking","thinking":%s,'
          .. '"signature":"s"},{"type":"text","text":"a"},{"type":"tool_use","id":"t%d",'
          .. '"name":"f","input":{"n":%s}}]}'):format(text(), n, number())
        out[#out + 1] = ('{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d",'
          .. '"is_error":%s,"content":%s}]}'):format(n, pick { "true", "false" }, text())
      end
      out[#out + 1] = ('{"role":"assistant","content":%s}'):format(pick { '"said"',
        '[{"type":"text","text":"b"}]' })
    end
    local list = "[" .. table.concat(out, ",") .. "]"
    return random(4) == 1 and list or ('{"messages":%s,"system":%s,"max_tokens":%s,"tools":[]}')
      :format(list, pick { '"be kind"', '[{"type":"text","text":"k"}]' }, number())
  end

  for name, make in pairs { openai = openai_document, anthropic = anthropic_document } do
    it(name .. ", whatever is in it", function()
      local seed = math.tointeger(tonumber(os.getenv "SEED" or "")) or os.time()
      math.randomseed(seed)
      random = math.random
      for round = 1, os.getenv "SESSILE_SOAK" == "1" and 2000 or 60 do
        local document = make()
        assert.equal(canonical(document), canonical(there_and_back(document, name)),
          ("SEED=%d round %d"):format(seed, round))
      end
    end)
  end
end)

-- What an API would refuse of a list of messages; nil: nothing.
local RULES = {}

function RULES.openai(list)
  local open = {}
  for i, raw in ipairs(list) do
    local _, fields = span.object(raw)
    local role = span.string(fields.role)
    if role == "tool" then
      local id = span.string(fields.tool_call_id)
      if not open[id] then
        return "a result of no call", raw
      end
      open[id] = nil
    else
      if next(open) then
        return "a call without its result before message " .. i, raw
      elseif fields.content == "null" and not fields.tool_calls then
        return "no content", raw
      end
      for _, call in ipairs(span.array(fields.tool_calls or "[]")) do
        local _, own = span.object(call)
        open[span.string(own.id)] = true
      end
    end
  end
end

function RULES.anthropic(list)
  local open, before = {}, "assistant"
  for i, raw in ipairs(list) do
    local _, fields = span.object(raw)
    local role = span.string(fields.role)
    if role ~= (before == "user" and "assistant" or "user") then
      return "it is not their turn", raw
    end
    before = role
    local blocks = span.array(fields.content) or { fields.content }
    if #blocks == 0 or blocks[1] == '""' then
      return "no content", raw
    end
    for _, block in ipairs(blocks) do
      local _, own = span.object(block)
      own = type(own) == "table" and own or {}
      if span.string(own.type) == "tool_result" then
        if not open[own.tool_use_id] then
          return "a result of no call", raw
        end
        open[own.tool_use_id] = nil
      elseif next(open) and role == "user" then
        return "a call without its result before message " .. i, raw
      end
    end
    if role == "user" and next(open) then
      return "a call without its result in message " .. i, raw
    end
    for _, block in ipairs(role == "assistant" and blocks or {}) do
      local _, own = span.object(block)
      if type(own) == "table" and span.string(own.type) == "tool_use" then
        if not span.string(own.id):find "^[%w_-]+$" or span.kind(own.input) ~= "object" then
          return "a call of another form", raw
        end
        open[own.id] = true
      end
    end
  end
end

local function messages_in(text)
  local _, fields = span.object(text)
  return span.array(type(fields) == "table" and fields.messages or text)
end

describe("what is written for", function()
  local paths = recordings.paths()
  paths[#paths + 1] = "spec/fixtures/pi-small.jsonl"
  for _, to in ipairs { "openai", "anthropic", "pi" } do
    it(to .. " is taken there, whatever it came from", function()
      for _, path in ipairs(paths) do
        local text, _, session = written(path, to)
        if RULES[to] then
          assert.is_true(span.valid(text), path)
          local wrong, where = RULES[to](messages_in(text))
          assert.is_nil(wrong, ("%s: %s: %s"):format(path, tostring(wrong), tostring(where)))
        end
        local file = temp.dir() .. "/out"
        temp.write(file, text)
        local again, counts = recordings.into(store, file, { from = to, id = path .. to .. "2" })
        assert(again, counts)
        assert.equal(0, counts.refused, path)
        if to == "pi" then -- which has no system messages among the others
          local said = #session:messages() - #session:messages { role = "system" }
          assert.is_true(said <= #again:messages(), path)
        else
          assert.equal(0, counts.unread, path)
        end
      end
    end)
  end

  it("an API says what was mended", function()
    local session = assert(store:create "mended")
    for _, message in ipairs {
      { role = "assistant", content = "an answer to nothing" },
      { role = "user", content = "go" },
      { role = "assistant", content = "", tool_calls = {
        { id = "a:1", name = "f", arguments = "no json" }, { id = "b", name = "f",
          arguments = "{}" } } },
      { role = "tool", tool_call_id = "b", content = "done" },
      { role = "user", content = "what of the other?" },
      { role = "tool", tool_call_id = "a:1", content = "late" },
      { role = "tool", tool_call_id = "nobody's", content = "stray" },
      { role = "system", content = "a word from the host" },
      { role = "assistant", content = "" },
      { role = "assistant", content = "well" },
    } do
      assert(session:append(message))
    end
    for to, count in pairs { openai = 2, anthropic = 6 } do
      local text, done = recordings.exported(session, to)
      assert.is_nil(RULES[to](messages_in(text)))
      assert.truthy(text:find("not answered", 1, true))
      assert.is_nil(text:find("stray", 1, true))
      assert.equal(count, #done.notes, table.concat(done.notes, "\n"))
      assert.equal("1 call has no answer: it is answered 'not answered'", done.notes[1])
      assert.equal("2 results answer no call and are left out", done.notes[2])
    end
  end)
end)

describe("on the command line", function()
  cli.each_test()

  it("--to writes it, says what was mended, and knows the names", function()
    cli.done("import " .. folder .. "claude.jsonl --id c")
    local out = cli.done "export c --to anthropic"
    assert.equal(8, #messages_in(out))
    local file = cli.home() .. "/out.json"
    local report = cli.json("export c " .. file .. " --to openai")
    assert.equal("openai", report.format)
    assert.equal(1, #report.notes)
    assert.equal(10, #messages_in(cli.read(file)))
    local _, err = cli.done("export c " .. cli.home() .. "/out.jsonl --to pi")
    assert.truthy(err:find("(pi", 1, true), err)
    local code
    _, err, code = cli.sessile "export c --to nobody"
    assert.equal(2, code)
    assert.truthy(err:find("anthropic", 1, true) and err:find("openai", 1, true), err)
  end)
end)
