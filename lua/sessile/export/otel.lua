--- otel: the session as a trace, OTLP in JSON: what it did and when, for what watches agents.
--
-- A turn is a span `invoke_agent`, a model's answer `chat`, a call and its result `execute_tool`, a
-- compaction `sessile.compact`. Ids are hashes of the session and the entry, so the same session is
-- the same trace whenever it is exported. Times are those of the messages. What was said is in it
-- only with `content`.
--
-- The conventions for GenAI are in development: NAMES has all of their names, SCHEMA their version.

local core = require "sessile.core"
local parts = require "sessile.export.parts"
local span = core.span
local speaker = require "sessile.speaker"
local times = require "sessile.times"

local SCHEMA = "https://opentelemetry.io/schemas/1.41.0"

local NAMES = {
  operation = "gen_ai.operation.name", agent = "gen_ai.agent.name",
  session = "gen_ai.conversation.id", model = "gen_ai.response.model",
  provider = "gen_ai.provider.name", tool = "gen_ai.tool.name", call = "gen_ai.tool.call.id",
  input = "gen_ai.usage.input_tokens", output = "gen_ai.usage.output_tokens",
  cache_read = "gen_ai.usage.cache_read.input_tokens",
  cache_write = "gen_ai.usage.cache_creation.input_tokens",
  said = "gen_ai.input.messages", answered = "gen_ai.output.messages",
  arguments = "gen_ai.tool.call.arguments", result = "gen_ai.tool.call.result",
  failure = "error.type", entry = "sessile.entry", policy = "sessile.policy",
  reason = "sessile.reason", before = "sessile.tokens.before", after = "sessile.tokens.after",
}

local INTERNAL, CLIENT = 1, 3
local FAILED = 2

-- Names of the counts in a provider's report.
local COUNTS = {
  input = { "input", "input_tokens", "prompt_tokens" },
  output = { "output", "output_tokens", "completion_tokens" },
  cache_read = { "cache_read", "cacheRead", "cache_read_input_tokens" },
  cache_write = { "cache_write", "cacheWrite", "cache_creation_input_tokens" },
}

-- ---------------------------------------------------------------- ids and times

local function hash(...)
  return core.sha256(table.concat({ "sessile", ... }, "\0"))
end

local MOST = 2 ^ 47 -- ms: the nanoseconds are a number of 64 bits

local function is_whole(value)
  return type(value) == "number" and value >= 0 and value < MOST and value % 1 == 0
end

-- ms of "2026-02-01T10:11:12.345Z", or of a number; nil: it is no time.
local function moment(value)
  if is_whole(value) and value > 0 then
    return value
  elseif type(value) ~= "string" then
    return nil
  end
  local y, m, d, hour, minute, second, rest =
    value:match "^(%d%d%d%d)%-(%d%d)%-(%d%d)T(%d%d):(%d%d):(%d%d)(.*)$"
  local day = y and times.date(tonumber(y), tonumber(m), tonumber(d))
  if not day then
    return nil
  end
  local ms = (rest:match "^%.(%d+)" or ""):sub(1, 3)
  return day + ((hour * 60 + minute) * 60 + second) * 1000
    + tonumber(ms .. ("0"):rep(3 - #ms))
end

local function time_of(entry)
  local data = entry.data
  return moment(type(data) == "table" and data.timestamp) or moment(entry.timestamp) or 0
end

-- ---------------------------------------------------------------- spans

local function attribute(list, name, value)
  local shown_value = is_whole(value) and ('"intValue":"%d"'):format(value)
    or type(value) == "string" and value ~= "" and '"stringValue":' .. span.quote(value)
  if shown_value then
    list[#list + 1] = ('{"key":%s,"value":{%s}}'):format(span.quote(NAMES[name]), shown_value)
  end
end

local Trace = {}
Trace.__index = Trace

-- Writes a span. of: {entry, sub?, name, kind, from, to, parent?, failed?, attributes = {…}}; an
-- attribute is {name, value}.
function Trace:span(of)
  local list = {}
  attribute(list, "session", self.session)
  attribute(list, "entry", of.entry)
  for _, one in ipairs(of.attributes) do
    attribute(list, one[1], one[2])
  end
  local parent = of.parent and ('"parentSpanId":"%s",'):format(self:span_id(of.parent)) or ""
  self.write(('%s{"traceId":"%s","spanId":"%s",%s"name":%s,"kind":%d,'
    .. '"startTimeUnixNano":"%d000000","endTimeUnixNano":"%d000000","attributes":[%s]%s}'):format(
    self.count > 0 and ",\n" or "", self.id, self:span_id(of.entry, of.sub), parent,
    span.quote(of.name), of.kind, of.from, math.max(of.from, of.to), table.concat(list, ","),
    of.failed and (',"status":{"code":%d}'):format(FAILED) or ""))
  self.count = self.count + 1
end

function Trace:span_id(entry, sub)
  return hash("span", self.id, entry, sub or ""):sub(1, 16)
end

local function usage(list, report)
  for name, known in pairs(type(report) == "table" and COUNTS or {}) do
    for _, field in ipairs(known) do
      local n = report[field]
      if is_whole(n) then
        list[#list + 1] = { name, n }
        break
      end
    end
  end
  table.sort(list, function(a, b) return NAMES[a[1]] < NAMES[b[1]] end)
  return list
end

-- A message as the conventions write it.
local function shown(data)
  local list = core.array {}
  for i, part in ipairs(parts.of(data)) do
    list[i] = part.kind == "call" and { type = "tool_call", id = part.id, name = part.name,
      arguments = part.text } or { type = part.kind == "thinking" and "reasoning" or "text",
      content = part.text }
  end
  return core.text(core.array { { role = speaker.of(data), parts = list } })
end

-- ---------------------------------------------------------------- what happened

-- The turn that an entry belongs to: that of its parent.
function Trace:turn_of(entry)
  return self.turns[self.turn_at[entry.parent_id]]
end

local function begin_turn(self, entry)
  local turn = { entry = entry.id, from = time_of(entry), to = time_of(entry) }
  self.turns[entry.id], self.order[#self.order + 1] = turn, turn
  return turn
end

-- The calls of an answer wait for their results.
local function note_calls(self, entry, turn)
  for i, part in ipairs(parts.of(entry.data)) do
    if part.kind == "call" then
      local call = { entry = entry.id, sub = tostring(i), from = time_of(entry), name = part.name,
        id = part.id, turn = turn and turn.entry, arguments = self.content and part.text or nil }
      self.calls[#self.calls + 1] = call
      self.open[part.id or call] = call
    end
  end
end

local function end_call(self, call, to, result)
  call.is_over = true
  self:span { entry = call.entry, sub = call.sub, parent = call.turn, kind = INTERNAL,
    name = "execute_tool " .. call.name, from = call.from, to = to,
    failed = result and result.error, attributes = {
      { "operation", "execute_tool" }, { "tool", call.name }, { "call", call.id },
      { "failure", result and result.error and "_OTHER" }, { "arguments", call.arguments },
      { "result", self.content and result and result.text } } }
  call.arguments = nil
end

local function answer(self, entry, turn)
  local data = entry.data
  local attributes = usage({}, data.usage)
  table.move({ { "operation", "chat" }, { "agent", self.agent }, { "model", data.model },
    { "provider", data.provider }, { "answered", self.content and shown(data) } }, 1, 5,
    #attributes + 1, attributes)
  self:span { entry = entry.id, parent = turn and turn.entry, kind = CLIENT,
    name = type(data.model) == "string" and "chat " .. data.model or "chat",
    from = self.time_at[entry.parent_id] or time_of(entry), to = time_of(entry),
    attributes = attributes }
  note_calls(self, entry, turn)
end

local function results(self, entry)
  for _, part in ipairs(parts.of(entry.data)) do
    local call = part.kind == "result" and self.open[part.id or ""]
    if call and not call.is_over then
      end_call(self, call, time_of(entry), part)
    end
  end
end

local handlers = {}

function handlers.message(self, entry)
  local turn = speaker.asks(entry.data) and begin_turn(self, entry) or self:turn_of(entry)
  self.turn_at[entry.id] = turn and turn.entry
  local who = speaker.of(entry.data)
  if who == "assistant" or who == "model" then
    answer(self, entry, turn)
  else
    results(self, entry)
  end
  local metadata = entry.data.metadata
  local is_note = type(metadata) == "table" and metadata.kind ~= nil -- no work of the agent
  if turn and not is_note then
    turn.to = math.max(turn.to, time_of(entry))
  end
end

function handlers.turn(self, entry)
  local turn = self:turn_of(entry)
  local report = turn and entry.data.usage
  if type(report) == "table" then
    turn.usage = type(report.total) == "table" and report.total or report
  end
end

function handlers.compaction(self, entry)
  local turn, row = self:turn_of(entry), self.rows[entry.id] or {}
  local tokens = type(row.tokens) == "table" and row.tokens or {}
  self:span { entry = entry.id, parent = turn and turn.entry, kind = INTERNAL,
    name = "sessile.compact", from = time_of(entry), to = time_of(entry), attributes = {
      { "policy", row.policy }, { "reason", row.reason }, { "before", tokens.before },
      { "after", tokens.after } } }
end

-- The turns, once each has all its messages; and the calls that nothing answered.
local function finish(self, source)
  for _, call in ipairs(self.calls) do
    if not call.is_over then
      end_call(self, call, call.from)
    end
  end
  for _, turn in ipairs(self.order) do
    local attributes = usage({}, turn.usage)
    local said = self.content and shown(source:entry(turn.entry).data)
    table.move({ { "operation", "invoke_agent" }, { "agent", self.agent }, { "said", said } }, 1, 3,
      #attributes + 1, attributes)
    self:span { entry = turn.entry, kind = INTERNAL, name = "invoke_agent " .. self.agent,
      from = turn.from, to = turn.to, attributes = attributes }
  end
end

---@param source table  of sessile.export.source
---@param write fun(chunk: string)
return function(source, write)
  local session, facts = source.session, source.facts
  local self = setmetatable({ write = write, count = 0, content = source.content,
    session = facts.id, agent = facts.agent, turns = {}, order = {}, turn_at = {}, time_at = {},
    calls = {}, open = {}, rows = {},
    id = hash("trace", session.agent, session.user or "", session.id, tostring(session.created))
      :sub(1, 32) }, Trace)
  for _, row in ipairs(facts.compactions) do
    self.rows[row.id] = row
  end
  write(('{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":'
    .. '{"stringValue":"sessile"}}]},"scopeSpans":[{"scope":{"name":"sessile"},"schemaUrl":%s,'
    .. '"spans":[\n'):format(span.quote(SCHEMA)))
  for entry in source:entries() do
    self.turn_at[entry.id] = self.turn_at[entry.parent_id]
    local handle = type(entry.data) == "table" and handlers[entry.type]
    if handle then
      handle(self, entry)
    end
    self.time_at[entry.id] = entry.type == "message" and time_of(entry)
      or self.time_at[entry.parent_id]
  end
  finish(self, source)
  write("\n]}]}]}\n")
end
