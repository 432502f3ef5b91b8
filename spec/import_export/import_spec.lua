-- import: recordings become sessions, and nothing of them is lost.

local decode = require("sessile").decode
local import = require "sessile.import"
local lines_kept = require "sessile.import.kept"
local jsonl = require "sessile.import.jsonl"
local pi = require "sessile.import.pi"
local sessile = require "sessile"
local span = require("sessile.core").span
local stores = require "spec.support.stores"

-- The lines of a text, as an iterator.
local function lines_of(list)
  local i = 0
  return function()
    i = i + 1
    return list[i]
  end
end

local function collect(records)
  local all = { turn = {}, custom = {}, session = {} }
  for record in records do
    all[#all + 1] = record
    table.insert(all[record.kind], record)
  end
  return all
end

local USER = '{"type":"message","timestamp":"2025-01-01T00:00:01Z",'
  .. '"message":{"role":"user","content":[{"type":"text","text":"look\\u00e9 here"}],'
  .. '"timestamp":1}}'
local CALLS = '{"type":"message","timestamp":"2025-01-01T00:00:02Z","message":{"role":"assistant",'
  .. '"content":[{"type":"thinking","thinking":"hm","thinkingSignature":"s1"},'
  .. '{"type":"toolCall","id":"c1","name":"read","arguments":{"n": 9007199254740993, "x": 1.50}},'
  .. '{"type":"toolCall","id":"c2","name":"run","arguments":{},"partialJson":"{"},'
  .. '{"type":"text","text":"reading"}],"api":"some-api","provider":"p","model":"m-1",'
  .. '"usage":{"input":3,"output":5,"cacheRead":70,"cacheWrite":11,"cost":{"total":0.25}},'
  .. '"stopReason":"toolUse","timestamp":2}}'
local RESULT = '{"type":"message","timestamp":"2025-01-01T00:00:03Z","message":'
  .. '{"role":"toolResult",'
  .. '"toolCallId":"c1","toolName":"read","content":[{"type":"text","text":"no such file"}],'
  .. '"details":{"big":123456789012345678901234567890},"isError":true,"timestamp":3}}'
local ANSWER = '{"type":"message","timestamp":"2025-01-01T00:00:04Z","message":{"role":"assistant",'
  .. '"content":[{"type":"text","text":"it is gone"}],"model":"m-2",'
  .. '"usage":{"input":1,"output":2,"cacheRead":90,"cacheWrite":0},"timestamp":4}}'
local SPECIMEN = {
  '{"type":"session","id":"rec-1","timestamp":"2025-01-01T00:00:00Z","cwd":"/somewhere"}',
  USER,
  CALLS,
  '{"type":"thinking_level_change","timestamp":"2025-01-01T00:00:02Z","thinkingLevel":"high"}',
  RESULT,
  ANSWER,
  "this line is torn {",
  '{"type":"message","timestamp":"x","message":{"role":"user","content":"and now?"}}',
}

describe("pi", function()
  it("makes a turn of what lies between two user messages", function()
    local all = collect(pi.records(lines_of(SPECIMEN)))
    assert.equal(2, #all.turn)
    assert.equal(4, #all.turn[1].messages)
    assert.equal(1, #all.turn[2].messages)
    assert.equal("rec-1", all.session[1].id)
    assert.same({ 2, 3, 5, 6 }, all.turn[1].lines)
  end)

  it("maps calls and results, arguments as they were written", function()
    local all = collect(pi.records(lines_of(SPECIMEN)))
    local _, call = span.object(all.turn[1].messages[2])
    local calls = span.array(call.tool_calls)
    local _, first = span.object(calls[1])
    assert.equal('{"n": 9007199254740993, "x": 1.50}', span.string(first.arguments))
    assert.equal('"c1"', first.id)
    assert.matches('"partialJson":"{"', calls[2], 1, true)
    local _, result = span.object(all.turn[1].messages[3])
    assert.equal('"tool"', result.role)
    assert.equal('"c1"', result.tool_call_id)
    assert.equal('"read"', result.name)
    assert.equal("true", result.is_error)
    assert.matches("123456789012345678901234567890", result.pi, 1, true)
  end)

  it("keeps thinking blocks, and where calls stood", function()
    local all = collect(pi.records(lines_of(SPECIMEN)))
    local _, call = span.object(all.turn[1].messages[2])
    assert.equal('[{"type":"thinking","thinking":"hm","thinkingSignature":"s1"},'
      .. '{"type":"text","text":"reading"}]', call.content)
    local _, kept = span.object(call.pi)
    assert.equal("[1,2]", kept.calls_at)
  end)

  it("has usage on each message, and on the turn the last one and the sum", function()
    local all = collect(pi.records(lines_of(SPECIMEN)))
    local _, call = span.object(all.turn[1].messages[2])
    assert.equal('{"input":3,"output":5,"cache_read":70,"cache_write":11,"cost":0.25}',
      call.usage)
    assert.matches('"cost":{"total":0.25}', call.pi, 1, true)
    assert.equal('{"input":1,"output":2,"cache_read":90,"cache_write":0,"total":'
      .. '{"input":4,"output":7,"cache_read":160,"cache_write":11}}', all.turn[1].usage)
    assert.equal("m-2", all.turn[1].model)
    assert.is_nil(all.turn[2].usage)
  end)

  it("keeps every line that is no message, whole, and where it stood", function()
    local all = collect(pi.records(lines_of(SPECIMEN)))
    assert.equal(3, #all.custom)
    local tail = (',"source":"%s"}'):format(lines_kept.digest("pi", SPECIMEN[1]))
    assert.equal('{"from":"pi","at":1,"line":' .. SPECIMEN[1] .. tail, all.custom[1].json)
    assert.equal('{"from":"pi","at":4,"line":' .. SPECIMEN[4] .. tail, all.custom[2].json)
    assert.equal('{"from":"pi","at":7,"text":"this line is torn {"' .. tail, all.custom[3].json)
  end)

  it("does not map what it would have to lose something of", function()
    for _, line in ipairs {
      '{"type":"message","message":{"role":"user","role":"user","content":"x"}}',
      '{"type":"message","message":{"role":"bashExecution","output":"ls"}}',
      '{"type":"message","message":{"role":"assistant","content":[{"type":"toolCall","id":7}]}}',
      '{"type":"message","message":{"role":"user","content":42}}',
      '{"type":"message","message":"text"}',
      "[]", "null", '"\255"',
    } do
      local all = collect(pi.records(lines_of { line }))
      assert.equal(0, #all.turn, line)
      assert.equal(1, #all.custom, line)
      assert.is_true(span.valid(all.custom[1].json))
    end
  end)
end)

describe("jsonl", function()
  it("takes plain messages as they stand", function()
    local list = {
      '{"role":"system","content":"be brief"}',
      '{"role":"user","content":"1.50 or 9007199254740993?"}',
      '{"content":"both","role":"assistant","usage":{"prompt_tokens":7,"completion_tokens":2}}',
      '{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"}]}',
      '{"role":"user","content":"next"}',
      '{"kind":"something else"}',
    }
    local all = collect(jsonl.records(lines_of(list)))
    assert.equal(3, #all.turn)
    assert.same({ list[1] }, all.turn[1].messages)
    assert.same({ list[2], list[3], list[4] }, all.turn[2].messages)
    assert.matches('^{"input":7,"output":2,', all.turn[2].usage)
    assert.equal(('{"from":"jsonl","at":6,"line":%s,"source":"%s"}'):format(list[6],
      lines_kept.digest("jsonl", list[1])), all.custom[1].json)
  end)

  it("takes entries that we exported", function()
    local all = collect(jsonl.records(lines_of {
      '{"id":"00000000","parent_id":null,"type":"session","data":{"session":"s1","title":"T"}}',
      '{"id":"00000001","type":"message","data":{"role":"user","content":"a"}}',
      '{"id":"00000002","type":"message","data":{"role":"assistant","content":"b"}}',
      '{"id":"00000003","type":"turn","data":{"usage":{"input":5},"model":"m"}}',
      '{"id":"00000004","type":"custom","data":{"mine":1}}',
      '{"id":"00000005","type":"compaction","data":{"context":[]}}',
    }))
    assert.equal("s1", all.session[1].id)
    assert.equal("T", all.session[1].title)
    assert.equal(1, #all.turn)
    assert.equal('{"input":5}', all.turn[1].usage)
    assert.equal("m", all.turn[1].model)
    assert.equal('{"mine":1}', all.custom[2].json)
    assert.equal(3, #all.custom)
  end)
end)

describe("custom data", function()
  it("keeps lines that are not UTF-8 as their bytes", function()
    assert.equal('{"from":"pi","b64":"/wBh"}', lines_kept.custom({ from = "pi" }, "\255\0a"))
    assert.equal('{"from":"pi","b64":"/w=="}', lines_kept.custom({ from = "pi" }, "\255"))
    assert.equal('{"from":"pi","b64":"/2E="}', lines_kept.custom({ from = "pi" }, "\255a"))
  end)
end)

describe("import into a session", function()
  local store

  stores.each_test(function()
    store = stores.ram()
  end)

  local function texts_of(session)
    local all = {}
    for entry in session:entries() do
      all[#all + 1] = entry.json
    end
    return table.concat(all, "\n")
  end

  it("writes one turn for each recorded one, under the recorded id, without a policy", function()
    local session, counts = assert(import.into(store, pi.records(lines_of(SPECIMEN)),
      { from = "pi" }))
    assert.equal("rec-1", session.id)
    assert.same({
      messages = 5, turns = 2, customs = 3, refused = 0, compactions = 0, summaries = 0,
      branches = 0, strays = 0, before = 0,
      unread = 1, first = { at = 7, why = "it is not JSON" },
    }, counts)
    local types = {}
    for entry in session:entries() do
      types[entry.type] = (types[entry.type] or 0) + 1
    end
    assert.equal(2, types.turn)
    assert.equal(5, types.message)
    assert.equal(3, types.custom)
    assert.is_nil(types.compaction)
    local list = session:messages()
    assert.equal(5, #list)
    assert.equal("c1", list[3].tool_call_id)
  end)

  it("finds every text and every line again", function()
    local session = assert(import.into(store, pi.records(lines_of(SPECIMEN)), { from = "pi" }))
    local all = texts_of(session)
    for _, text in ipairs {
      "look\\u00e9 here", "reading", "no such file", "it is gone", "and now?", "hm",
      "9007199254740993", "123456789012345678901234567890", SPECIMEN[1], SPECIMEN[4],
      "this line is torn {", "some-api", '"cost":{"total":0.25}', "toolUse",
    } do
      assert.truthy(all:find(text, 1, true), text)
    end
  end)

  it("answers a call that was never answered, in the context only", function()
    local session = assert(import.into(store, pi.records(lines_of(SPECIMEN)), { from = "pi" }))
    local list, info = session:context()
    assert.equal(1, info.unanswered)
    assert.equal(6, #list)
    assert.equal(5, #session:messages())
  end)

  it("takes another id, and refuses one that is another's", function()
    local session = assert(import.into(store, pi.records(lines_of(SPECIMEN)),
      { from = "pi", id = "mine" }))
    assert.equal("mine", session.id)
    for _, other in ipairs { { "jsonl", jsonl, '{"role":"user","content":"x"}' },
      { "pi", pi, USER } } do
      local none, _, code = import.into(store, other[2].records(lines_of { other[3] }),
        { from = other[1], id = "mine" })
      assert.is_nil(none)
      assert.equal("EEXISTS", code)
    end
  end)

  it("keeps what the engine does not take as a message, and continues", function()
    local session, counts = assert(import.into(store, jsonl.records(lines_of {
      '{"role":"user","content":"good"}',
      '{"role":"assistant","content":"one","content":"two"}',
      '{"role":"assistant","content":"good too"}',
      '{"deep":' .. ("["):rep(127) .. ("]"):rep(127) .. "}",
    }), { from = "jsonl" }))
    assert.equal(2, counts.messages)
    assert.equal(1, counts.refused)
    assert.equal(2, #session:messages())
    local all = texts_of(session)
    assert.truthy(all:find('\\"one\\"', 1, true))
    assert.truthy(all:find('\\"two\\"', 1, true))
  end)

  it("makes nothing of nothing", function()
    local none, message, code = import.into(store, pi.records(lines_of { "", "  " }),
      { from = "pi" })
    assert.is_nil(none)
    assert.is_string(message)
    assert.equal("EINVALID", code)
    assert.same({}, store:list())
  end)

  it("tells the format by the first line, and says when it cannot", function()
    local path = os.tmpname()
    local function write(text)
      local file <close> = assert(io.open(path, "w"))
      file:write(text)
    end
    write(SPECIMEN[1] .. "\n")
    assert.equal("pi", select(2, import.open(path)))
    write '{"role":"user","content":"x"}\n'
    assert.equal("jsonl", select(2, import.open(path)))
    write "once upon a time\n"
    local _, message, code = import.open(path)
    assert.equal("EINVALID", code)
    assert.is_string(message)
    os.remove(path)
    assert.equal("ENOTFOUND", select(3, import.open(path)))
    assert.equal("EINVALID", select(3, import.open "/"))
  end)
end)

describe("a recording", function()
  -- Each text of a recorded message, in order: of content blocks, and of call arguments.
  local function texts_in(raw, into)
    local _, fields = span.object(raw)
    into[#into + 1] = span.string(fields.content)
    for _, block in ipairs(span.array(fields.content) or {}) do
      local _, own = span.object(block)
      local text = span.string(own.text) or span.string(own.thinking) or own.arguments
      if text then
        into[#into + 1] = text
      end
    end
  end

  -- How many messages a file holds, and how many calls went without an answer, by its own
  -- lines. What is called last may still be answered and is not counted.
  local function counts_of(path)
    local messages, dead, open = 0, 0, {}
    for line in io.lines(path) do
      local _, fields = span.object(line)
      if span.string(fields.type) == "message" then
        messages = messages + 1
        local _, message = span.object(fields.message)
        if message.toolCallId then
          open[span.string(message.toolCallId)] = nil
        else
          for _ in pairs(open) do
            dead = dead + 1
          end
          open = {}
        end
        for _, block in ipairs(span.array(message.content) or {}) do
          local _, own = span.object(block)
          if span.string(own.type) == "toolCall" then
            open[span.string(own.id)] = true
          end
        end
      end
    end
    return messages, dead
  end

  local function comes_in_whole(path, expected, unanswered)
    local store = assert(sessile.open("ram:", { key = false }))
    local session, counts = assert(import.into(store, assert(import.open(path)), { from = "pi" }))
    assert.equal(expected, counts.messages)
    assert.equal(0, counts.refused)
    assert.equal(expected, #session:messages())
    for _ = 1, counts.compactions do
      assert(session:uncompact()) -- what was compacted away counts too
    end
    local _, info = session:context()
    assert.equal(unanswered, info.unanswered)
    assert.equal(0, info.orphans)

    local messages, customs = {}, {}
    for entry in session:entries() do
      local _, fields = span.object(entry.json)
      if entry.type == "message" then
        messages[#messages + 1] = fields.data
      elseif entry.type == "custom" then
        local _, data = span.object(fields.data)
        customs[data.line or data.text] = true
      end
    end
    local at = 0
    for line in io.lines(path) do
      local _, fields = span.object(line)
      if span.string(fields.type) ~= "message" then
        assert.is_true(customs[line])
      else
        at = at + 1
        local texts = {}
        texts_in(fields.message, texts)
        local message = decode(messages[at])
        local kept = {}
        if type(message.content) == "string" then
          kept[message.content] = true
        else
          for _, block in ipairs(message.content) do
            kept[block.text or block.thinking or block] = true
          end
        end
        for _, call in ipairs(message.tool_calls or {}) do
          kept[call.arguments] = true
        end
        for _, text in ipairs(texts) do
          assert.is_true(kept[text])
        end
      end
    end
    assert.equal(expected, at)
    session:close()
    store:close()
  end

  it("comes in whole: 31 messages, 1 call without an answer, 1 at the end", function()
    comes_in_whole("spec/fixtures/pi-small.jsonl", 31, 1)
  end)

  -- A recording of one's own, any version of pi.
  local path = os.getenv "SESSILE_PI_SESSION"
  if path and path ~= "" then
    it("of one's own comes in whole", function()
      comes_in_whole(path, counts_of(path))
    end)
  end

  it("is counted as its lines say", function()
    assert.same({ 31, 1 }, { counts_of "spec/fixtures/pi-small.jsonl" })
  end)
end)
