-- A session as a trace (`to = "otel"`): its spans, their times and parents; what was said only when
-- it is asked for, and then redacted.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local json_schema = require "spec.support.json_schema"
local sessile = require "sessile"
local stores = require "spec.support.stores"

local TEXT, SPANS = { type = "string" }, { type = "object", additionalProperties = false,
  required = { "traceId", "spanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano",
    "attributes" }, properties = {} }
for _, name in ipairs { "traceId", "spanId", "parentSpanId", "name", "startTimeUnixNano",
  "endTimeUnixNano" } do
  SPANS.properties[name] = TEXT
end
SPANS.properties.kind = { type = "integer", minimum = 1, maximum = 5 }
SPANS.properties.status = { type = "object", required = { "code" } }
SPANS.properties.attributes = { type = "array", items = { type = "object",
  required = { "key", "value" }, additionalProperties = false, properties = { key = TEXT,
    value = { type = "object", additionalProperties = false, properties = { stringValue = TEXT,
      intValue = TEXT } } } } }

local AT = 1762161263882

local function said(n, message)
  message.timestamp = AT + n * 1000
  return message
end

local function call(id)
  return { id = id, type = "function", ["function"] = { name = "grep",
    arguments = '{"password":"hunter2horse9xQ"}' } }
end

local function fill(store)
  local s = assert(store:session "talk")
  assert(s:turn({ said(0, { role = "user", content = "why? mira.canary@example.org" }),
    said(1, { role = "assistant", content = "let me look", model = "m-1", tool_calls = {
      call "a", call "b" }, usage = { input = 10, output = 3 } }),
    said(3, { role = "tool", tool_call_id = "a", content = "found" }),
    said(4, { role = "tool", tool_call_id = "b", content = "no", is_error = true }),
    said(9, { role = "assistant", content = "it is slow", model = "m-1" }) },
    { usage = { input = 20, output = 5 } }))
  assert(s:turn { said(20, { role = "user", content = "and now?" }),
    said(21, { role = "assistant", content = "", tool_calls = { call "c" } }) })
  assert(s:compact { policy = { "sliding_window", messages = 2 } })
  return s
end

-- The spans of a session, checked; and the document.
local function spans_of(s, more)
  local chunks = {}
  local given = { to = "otel", write = function(chunk) chunks[#chunks + 1] = chunk end }
  for name, value in pairs(more or {}) do
    given[name] = value
  end
  assert(s:export(given))
  local text = table.concat(chunks)
  local scope = assert(sessile.decode(text), text).resourceSpans[1].scopeSpans[1]
  expect.has(scope.schemaUrl, "https://opentelemetry.io/schemas/")
  local by_id = {}
  for _, span in ipairs(scope.spans) do
    assert.equal(nil, json_schema.wrong(span, SPANS))
    assert.matches("^%x+$", span.traceId .. span.spanId)
    assert.same({ 32, 16 }, { #span.traceId, #span.spanId })
    assert.is_nil(by_id[span.spanId])
    assert.is_true(span.startTimeUnixNano <= span.endTimeUnixNano)
    by_id[span.spanId] = span
    span.has = {}
    for _, one in ipairs(span.attributes) do
      span.has[one.key] = one.value.stringValue or math.tointeger(tonumber(one.value.intValue))
    end
  end
  for _, span in ipairs(scope.spans) do
    span.parent = span.parentSpanId and assert(by_id[span.parentSpanId]).name
  end
  return scope.spans, text
end

local function named(spans, name)
  local found = {}
  for _, span in ipairs(spans) do
    found[#found + 1] = span.name == name and span or nil
  end
  return found
end

local function seconds(span)
  return { (tonumber(span.startTimeUnixNano) // 1000000 - AT) // 1000,
    (tonumber(span.endTimeUnixNano) // 1000000 - AT) // 1000 }
end

describe("a session as a trace", function()
  local s, spans, text

  before_each(function()
    s = fill(stores.open("ram:", { key = false }))
    spans, text = spans_of(s)
  end)

  it("has a span for each turn, answer, call and compaction", function()
    local turns = named(spans, "invoke_agent main")
    assert.equal(2, #turns)
    assert.same({ 0, 9 }, seconds(turns[1]))
    assert.equal("talk", turns[1].has["gen_ai.conversation.id"])
    assert.equal(20, turns[1].has["gen_ai.usage.input_tokens"])
    local answers = named(spans, "chat m-1")
    assert.equal(2, #answers)
    assert.same({ 0, 1 }, seconds(answers[1]))
    assert.same({ 10, 3 }, { answers[1].has["gen_ai.usage.input_tokens"],
      answers[1].has["gen_ai.usage.output_tokens"] })
    assert.equal("invoke_agent main", answers[1].parent)
    local tools = named(spans, "execute_tool grep")
    assert.equal(3, #tools)
    assert.same({ 1, 3 }, seconds(tools[1]))
    assert.same({ 1, 4 }, seconds(tools[2]))
    assert.same({ nil, 2 }, { tools[1].status, tools[2].status.code })
    assert.same({ 21, 21 }, seconds(tools[3])) -- never answered
    local compactions = named(spans, "sessile.compact")
    assert.equal(1, #compactions)
    expect.has(compactions[1].has["sessile.policy"], "sliding_window")
    assert.equal(2 + 3 + 3 + 1, #spans)
  end)

  it("is the same trace when it is exported again", function()
    assert.equal(text, (select(2, spans_of(s))))
  end)

  it("has nothing of what was said, unless it is asked for, and then no secret", function()
    for _, words in ipairs { "let me look", "it is slow", "found", "mira", "hunter2" } do
      expect.has_not(text, words)
    end
    local with, whole = spans_of(s, { content = true })
    expect.has_all(whole, { "let me look", "it is slow", "found", "and now?" })
    expect.has_none(whole, { "mira", "hunter2" })
    assert.equal(#spans, #with)
    for i, span in ipairs(with) do
      assert.equal(spans[i].spanId, span.spanId)
    end
  end)

  it("has content for no other format", function()
    assert.has_error(function()
      s:export { content = true, write = function() end }
    end, 'session:export: content: expected with to = "otel"')
  end)
end)

describe("sessile export --to otel", function()
  cli.each_test()

  it("prints the trace, and refuses --content for anything else", function()
    cli.done "new --id talk"
    cli.done "append talk 'mail mira.canary@example.org'"
    expect.has_not(cli.done "export talk --to otel", "mail")
    local trace = cli.decoded((cli.done "export talk --to otel --content"))
    local spans = sessile.encode(trace.resourceSpans[1].scopeSpans[1].spans)
    expect.has(spans, "mail [email-1]")
    cli.fails(2, "export talk --content", "--to otel")
    cli.fails(2, "export --all folder --content", "--to otel")
  end)
end)
