-- Recordings of other agents and of providers' APIs: what each becomes, and that nothing is lost.

local cli = require "spec.support.cli"
local core = require "sessile.core"
local import = require "sessile.import"
local kept = require "sessile.import.kept"
local recordings = require "spec.support.recordings"
local sessile = require "sessile"
local span = require("sessile.core").span
local stores = require "spec.support.stores"
local temp = require "spec.support.temp"

local folder = "spec/fixtures/import/"
local store

stores.each_test(function() store = stores.ram() end)

local function load(name)
  return assert(recordings.into(store, folder .. name))
end

-- "role: text" of each message, calls and results by their ids.
local function said(list)
  local out = {}
  for i, message in ipairs(list) do
    local words = {}
    local content = message.content
    for _, block in ipairs(type(content) == "table" and content or { { text = content } }) do
      words[#words + 1] = block.text or block.thinking or block.tool_use_id or block.id
        or block.type
    end
    for _, call in ipairs(message.tool_calls or {}) do
      words[#words + 1] = call.id
    end
    words[#words + 1] = message.tool_call_id
    out[i] = message.role .. ": " .. table.concat(words, ", ")
  end
  return out
end

local function customs_of(session)
  local out = {}
  for entry in session:entries { types = { "custom" } } do
    local _, fields = span.object(entry.json)
    out[#out + 1] = kept.read(fields.data) or { line = fields.data }
  end
  return out
end

describe("the format of a recording", function()
  for _, path in ipairs(recordings.paths()) do
    it("is recognized by its content: " .. path:match "[^/]+$", function()
      local records, from = assert(import.open(path))
      records.opened:close()
      assert.equal(recordings.format(path), from)
    end)
  end

  it("is asked for when nothing tells it, with what the file looks like", function()
    for text, words in pairs {
      ["once upon a time\n"] = "its first line is not JSON",
      ['{"colour":"red","size":3}\n'] = "it is JSON with colour, size",
      ["[1,2,3]"] = "it is JSON", ["\0\1\2\3"] = "it is no text", ["\n \n"] = "it is empty",
    } do
      local path = temp.dir() .. "/it"
      temp.write(path, text)
      local none, message, code = import.open(path)
      assert.is_nil(none)
      assert.equal("EINVALID", code)
      assert.truthy(message:find(words, 1, true), message)
    end
  end)
end)

describe("nothing is lost of", function()
  -- Each string and number in it, as written.
  local function scalars(raw, into)
    local kind = span.kind(raw)
    if kind == "object" then
      for _, member in ipairs(assert(span.object(raw))) do
        scalars(member.raw, into)
      end
    elseif kind == "array" then
      for _, one in ipairs(assert(span.array(raw))) do
        scalars(one, into)
      end
    elseif kind == "string" or kind == "number" then
      into[#into + 1] = raw:match "^%s*(.-)%s*$"
    end
  end

  for _, path in ipairs(recordings.paths()) do
    it(path:match "[^/]+$", function()
      local session = assert(recordings.into(store, path))
      local log = table.concat(recordings.log(session), "\n")
      local text = temp.read(path)
      local values = {}
      if span.valid(text) then
        scalars(text, values)
      else
        for line in text:gmatch "[^\n]+" do
          if span.valid(line) then
            scalars(line, values)
          else
            local found = false
            for _, custom in ipairs(customs_of(session)) do
              found = found or custom.line == line
            end
            for value in (found and "" or line):gmatch '"([^"]*[\x80-\xFF][^"]*)"' do
              found = log:find(core.base64(value), 1, true) ~= nil
            end
            assert.is_true(found, line)
          end
        end
      end
      for _, value in ipairs(values) do
        -- As it stands; or inside of a text that holds JSON: arguments, lines that are refused.
        local inside = value:gsub('^"(.*)"$', "%1")
        if not log:find(inside, 1, true) then
          local again = span.quote(value):sub(2, -2):gsub('^\\"(.*)\\"$', "%1")
          local decoded = span.quote(span.string(value) or value):sub(2, -2)
          assert.truthy(log:find(again, 1, true) or log:find(decoded, 1, true)
            or value:find '^"[%w_]+"$' or value == '"<synthetic>"', value)
        end
      end
    end)
  end
end)

describe("a recording", function()
  it("of another format than --from says is refused, and told", function()
    local other = folder .. "openai.json"
    for from, name in pairs { pi = "claude.jsonl", openai = "claude.jsonl", jsonl = "pi-tree.jsonl",
      claude = "codex.jsonl", anthropic = "pi-tree.jsonl" } do
      local none, message, code = recordings.into(store, folder .. name, { from = from })
      assert.same({ nil, "EINVALID" }, { none, code })
      local format = recordings.format(name)
      assert.truthy(message:find(("looks like %s: use --from %s"):format(format, format), 1, true),
        message)
    end
    assert.same({}, store:list())
    local _, counts = assert(recordings.into(store, other, { from = "codex" }))
    assert.truthy(counts.looks_like:find("looks like openai", 1, true))
    _, counts = assert(recordings.into(store, other))
    assert.is_nil(counts.looks_like)
  end)

  it("may begin with a byte order mark", function()
    for _, name in ipairs { "pi-tree.jsonl", "claude.jsonl", "openai.json", "jsonl.jsonl" } do
      local path = temp.dir() .. "/" .. name
      temp.write(path, "\u{FEFF}" .. temp.read(folder .. name))
      local _, expected = assert(recordings.into(store, folder .. name, { id = "x" .. name }))
      local session, counts = assert(recordings.into(store, path, { id = name }))
      assert.same(expected, counts)
      session:close()
      counts = select(2, recordings.into(store, path, { id = name, skip_unchanged = true }))
      assert.is_true(counts.unchanged)
    end
    local path = temp.dir() .. "/utf16.json"
    temp.write(path, "\xFF\xFE[\0{\0")
    assert.truthy(select(2, import.open(path)):find("iconv", 1, true))
    temp.write(path, '{"sessile_export":1,"exported":"2026-01-01T00:00:00Z",\n"entries":[]}\n')
    assert.truthy(select(2, import.open(path)):find("--format jsonl", 1, true))
  end)

  it("with a message over the limit says which, and what the limit is", function()
    local path = temp.dir() .. "/long.jsonl"
    temp.write(path, '{"role":"user","content":"x"}\n{"role":"user","content":"'
      .. ("y"):rep(9 << 20) .. '"}\n')
    local _, counts = assert(recordings.into(store, path))
    assert.equal(2, counts.first.at)
    assert.truthy(counts.first.why:find("longer than 8323072 bytes", 1, true))
  end)
end)

-- The times of all messages, compacted or not.
local function times_of(session)
  local list = {}
  for entry in session:entries { types = { "message" } } do
    list[#list + 1] = entry.data.timestamp or false
  end
  return list
end

describe("messages keep their times:", function()
  for name, first in pairs {
    ["pi-tree.jsonl"] = 1770112802000, ["claude.jsonl"] = 1772352000000,
    ["codex.jsonl"] = 1775034000100, ["langgraph.json"] = 1777629602000,
  } do
    it(name, function()
      local session = load(name)
      local times = times_of(session)
      assert.equal(first, times[1])
      for _, time in ipairs(times) do
        assert.is_truthy(time)
      end
      for _, message in ipairs(session:context()) do
        assert.is_truthy(message.timestamp) -- summaries too
      end
    end)
  end

  it("an exported log", function()
    local path = temp.dir() .. "/it.jsonl"
    local entry = '{"id":"0000000%d","parent_id":"0000000%d",'
      .. '"timestamp":"2026-05-01T09:00:00.000Z","type":"message","data":%s}\n'
    temp.write(path, entry:format(1, 0, '{"role":"user","content":"a"}')
      .. entry:format(2, 1, '{"role":"user","content":"b","timestamp":5}'))
    assert.same({ 1777626000000, 5 }, times_of(assert(recordings.into(store, path))))
  end)
end)

-- Tools return any bytes, and some agents write them as they come.
describe("a message that is not UTF-8 comes in", function()
  local function comes_in(name, text, expected)
    local path = temp.dir() .. "/it." .. name
    temp.write(path, text)
    local session, counts = assert(recordings.into(store, path))
    assert.equal(0, counts.unread + counts.refused)
    local last
    for _, message in ipairs(session:messages()) do
      last = message.metadata and message.metadata.bytes and message or last
    end
    assert.truthy(last.json:find(expected, 1, true), last.json)
    assert.same({ { at = expected:find "^\"text\"" and "/content/0/text" or "/content",
      b64 = core.base64 "caf\xE9 \u{10FF41}\n" } }, last.metadata.bytes)
    local again = select(2, recordings.into(store, path, { id = session.id }))
    assert.equal(0, again.messages + again.customs)
  end

  for name, lines in pairs {
    pi = {
      '{"type":"session","version":3,"id":"b","timestamp":"2026-02-03T10:00:00.000Z"}',
      '{"type":"message","id":"1","parentId":null,"message":{"role":"user",'
        .. '"content":"\u{10FF41}"}}',
      '{"type":"message","id":"2","parentId":"1","message":{"role":"toolResult","toolCallId":"c",'
        .. '"toolName":"t","content":[{"type":"text","text":"caf\xE9 \u{10FF41}\\n"}]}}',
    },
    claude = {
      '{"uuid":"1","parentUuid":null,"sessionId":"s","type":"user","message":{"role":"user",'
        .. '"content":"caf\xE9 \u{10FF41}\\n"},"isMeta":true}',
    },
    codex = {
      '{"timestamp":"2026-04-01T09:00:00.000Z","type":"session_meta","payload":{"id":"x"}}',
      '{"timestamp":"2026-04-01T09:00:00.000Z","type":"response_item","payload":{"type":'
        .. '"function_call_output","call_id":"c","output":"caf\xE9 \u{10FF41}\\n"}}',
    },
    jsonl = { '{"role":"user","content":"caf\xE9 \u{10FF41}\\n"}' },
    openai = { '[{"role":"user","content":"caf\xE9 \u{10FF41}\\n"}]' },
    langgraph = { '[{"type":"human","content":"caf\xE9 \u{10FF41}\\n"}]' },
  } do
    it("from " .. name, function()
      comes_in(name, table.concat(lines, "\n"),
        name == "pi" and '"text":"caf\u{FFFD} \u{10FF41}\\n"' or '"caf\u{FFFD} \u{10FF41}\\n"')
    end)
  end

  it("and a line that is no message keeps its bytes", function()
    local path = temp.dir() .. "/it.jsonl"
    temp.write(path, '{"role":"user","content":"x"}\n{"type":"note","text":"\xE9 \u{10FF41}"}\n')
    local session = assert(recordings.into(store, path))
    assert.equal('{"type":"note","text":"\xE9 \u{10FF41}"}', customs_of(session)[1].line)
  end)
end)

describe("pi", function()
  it("has its compaction, whatever `keep_min` the store has", function()
    local careful <close> = assert(sessile.open("ram:", { key = false, keep_min = 50 }))
    local _, counts = assert(recordings.into(careful, folder .. "pi-tree.jsonl"))
    assert.same({ 1, 0 }, { counts.compactions, counts.summaries })
  end)

  it("version 3 is a tree with its labels, title, settings and compaction", function()
    local session, counts = load "pi-tree.jsonl"
    assert.same({ 13, 1, 1, 0, 0 }, { counts.messages, counts.branches, counts.compactions,
      counts.unread, counts.refused })
    assert.equal("11111111-2222-4333-8444-555555555555", session.id)
    assert.equal("The orchard", session.title)
    assert.same({ model = "m-large", thinking = "medium" }, session:settings())
    assert.same({}, session:labels()) -- it was set, and taken away again
    assert.same({
      "user: How many apple trees stand in the north field, and how many of them are older than "
        .. "ten years?",
      "assistant: The list is in trees.csv., call_1",
      "tool: field,kind,planted\nnorth,apple,2009\nnorth,apple,2019\nsouth,pear,2011, call_1",
      "assistant: Two apple trees stand in the north field; one of them was planted in 2009.",
      "user: Pruning was planned for March; the person wants something else.",
      "user: Plan new trees instead.", "assistant: Three plums along the fence.",
      "user: Good. Write it down.", "assistant: Written.",
    }, said(session:messages()))
    assert.same({ "user: Trees counted: 2 apples.", "user: Plan new trees instead.",
      "assistant: Three plums along the fence.", "user: Good. Write it down.",
      "assistant: Written." }, said(session:context()))
    assert.equal(2, #session:leaves())
  end)

  it("a compaction keeps what it kept there, also from the last message of a turn", function()
    local path, lines = temp.dir() .. "/kept.jsonl", {
      '{"type":"session","version":3,"id":"kept","timestamp":"2026-02-03T10:00:00.000Z"}' }
    for i = 1, 6 do
      lines[#lines + 1] = ('{"type":"message","id":"%08x","parentId":%s,"timestamp":'
        .. '"2026-02-03T10:00:0%d.000Z","message":{"role":"%s","content":"%s"}}'):format(i,
        i > 1 and ('"%08x"'):format(i - 1) or "null", i, i % 2 == 1 and "user" or "assistant",
        i == 1 and ("a long story "):rep(50) or "words " .. i)
    end
    lines[#lines + 1] = '{"type":"compaction","id":"00000007","parentId":"00000006",'
      .. '"timestamp":"2026-02-03T10:00:09.000Z","summary":"a story","firstKeptEntryId":"00000002"}'
    temp.write(path, table.concat(lines, "\n") .. "\n")
    local session, counts = assert(recordings.into(store, path))
    assert.equal(1, counts.compactions)
    assert.same({ "user: a story", "assistant: words 2", "user: words 3", "assistant: words 4",
      "user: words 5", "assistant: words 6" }, said(session:context()))
  end)

  it("parents that come later, never or in a ring lose nothing and end", function()
    local session, counts = load "pi-orphans.jsonl"
    assert.equal(8, counts.messages)
    assert.equal(3, counts.strays)
    local path = {}
    for _, node in ipairs(session:tree({ types = { "message" } }).list) do
      path[node.entry.data.content[1] and node.entry.data.content[1].text
        or node.entry.data.content] = node
    end
    local first = path["first, though it stands third"]
    local third = path["third, though it stands first"]
    assert.truthy(table.concat(session:path(third.id), " "):find(first.id, 1, true))
    assert.is_nil(table.concat(session:path(path["z follows itself"].id), " ")
      :find(first.id, 1, true))
  end)
end)

describe("claude", function()
  it("lines of one message are one, results follow it, beside it stand side chains", function()
    local session, counts = load "claude.jsonl"
    assert.equal("0000aaaa-1111-4222-8333-444444444444", session.id)
    assert.equal("Mending the gate", session.title)
    assert.same({ 13, 1, 0 }, { counts.messages, counts.compactions, counts.unread })
    assert.same({
      "user: <command-name>/init</command-name>",
      "user: Why does the gate not close? Look at both hinges.",
      "assistant: Two hinges, two reads., toolu_1, toolu_2",
      "user: toolu_1", "user: toolu_2", "assistant: The lower hinge is rusty.",
      "user: No: clean it.", "assistant: Cleaned: it closes now.",
      "user: And the upper one?", "assistant: API Error: overloaded",
    }, said(session:messages()))
    assert.same({ "user: The lower hinge was rusty and was cleaned.", "user: No: clean it.",
      "assistant: Cleaned: it closes now.", "user: And the upper one?",
      "assistant: API Error: overloaded" }, said(session:context()))
    for _, node in ipairs(session:tree({ types = { "message" } }).list) do
      local content = node.entry.data.content
      if content == "Find out what oil the shed holds." then
        assert.equal(2, #session:path(node.id)) -- the header and itself
      end
    end
    assert.equal(3, #session:leaves()) -- the side chain, what was said again, the conversation
    assert.equal(0, select(2, session:context()).unanswered)
    local list = session:messages()
    assert.equal("meta", list[1].metadata.kind)
    assert.equal(1772352001250, list[2].timestamp)
    assert.same({ input = 4, output = 80, cache_read = 0, cache_write = 900 }, list[3].usage)
  end)
end)

describe("codex", function()
  it("items of the assistant are one message, and its calls are answered", function()
    local session, counts = load "codex.jsonl"
    assert.equal("0195-codex-specimen", session.id)
    assert.same({ 10, 1, 0 }, { counts.messages, counts.compactions, counts.unread })
    local list = session:messages()
    assert.same({
      "developer: Work in /srv/mill.",
      "user: <environment_context>\n<cwd>/srv/mill</cwd>\n</environment_context>",
      "user: How fast does the wheel turn?, input_image",
      "assistant: reasoning, call_w, call_l, call_p",
      'tool: {"output":"12 turns a minute","metadata":{"exit_code":0}}, call_w',
      "tool: Wed, call_l", "tool: patched, call_p",
      "assistant: web_search_call, Twelve turns a minute.",
      "user: And when the pond is low?", "assistant: Seven.",
    }, said(list))
    assert.equal("example-codex", list[4].model)
    assert.equal("*** Begin Patch\n*** End Patch\n", list[4].tool_calls[3].arguments)
    assert.same({ model = "example-codex", thinking = "high" }, session:settings())
    assert.same({ input = 400, output = 50, cache_read = 600, cache_write = 0 },
      (function(u) return { input = u.input, output = u.output, cache_read = u.cache_read,
        cache_write = u.cache_write } end)(session:usage()))
    assert.equal(0, select(2, session:context()).unanswered)
  end)

  it("a compaction leaves the recorded context", function()
    local path, lines = temp.dir() .. "/compacted.jsonl", {}
    local function add(kind, payload)
      lines[#lines + 1] = ('{"timestamp":"2026-04-01T09:00:%02d.000Z","type":"%s","payload":%s}')
        :format(#lines, kind, payload)
    end
    local function message(role, text)
      return ('{"type":"message","role":"%s","content":[{"type":"%s_text","text":"%s"}]}'):format(
        role, role == "user" and "input" or "output", text)
    end
    add("session_meta", '{"id":"compacted"}')
    for i = 1, 4 do
      add("response_item", message("user", "question " .. i))
      add("response_item", message("assistant", ("answer %d "):format(i):rep(40)))
    end
    add("compacted", ('{"message":"","replacement_history":[%s]}'):format(table.concat({
      message("user", "question 2"), message("user", "question 4"),
      message("user", "What was done: four answers."),
      '{"type":"compaction","encrypted_content":"x"}' }, ",")))
    add("response_item", message("user", "question 5"))
    temp.write(path, table.concat(lines, "\n") .. "\n")
    local session, counts = assert(recordings.into(store, path))
    assert.same({ 9, 1, 0 }, { counts.messages, counts.compactions, counts.summaries })
    local context = session:context()
    local ids = {}
    for i, one in ipairs(context) do
      ids[i] = one.content[1].text:sub(1, 11)
    end
    -- The newest messages stay with any compaction.
    assert.same({ "question 2", "question 4", "answer 4 an", "What was do", "question 5" }, ids)
    assert.equal("summary", context[4].metadata.kind)
    assert.is_nil(context[1].metadata)
    session:close()
    counts = select(2, recordings.into(store, path))
    assert.equal(0, counts.messages + counts.compactions + counts.customs)
    session = assert(store:resume "compacted")
    assert(session:branch(session:entries { types = { "compaction" } }().id, { policy = false }))
    assert(session:uncompact())
    assert.equal(8, #session:context())
  end)

  it("a message of the model that only the recorded context has is quoted", function()
    local path = temp.dir() .. "/quoted.jsonl"
    local function item(kind, role, text)
      local message = ('{"type":"message","role":"%s","content":[{"type":"text","text":"%s"}]}')
        :format(role, text)
      return kind == "" and message
        or ('{"timestamp":"2026-04-01T09:00:00.000Z","type":"%s","payload":%s}'):format(kind,
          message)
    end
    local lines = { '{"type":"session_meta","payload":{"id":"quoted"}}' }
    for i = 1, 4 do
      lines[#lines + 1] = item("response_item", "user", "question " .. i)
      lines[#lines + 1] = item("response_item", "assistant", ("answer %d "):format(i):rep(40))
    end
    lines[#lines + 1] = '{"type":"compacted","payload":{"message":"","replacement_history":['
      .. item("", "user", "question 1") .. "," .. item("", "assistant", "In short: four.") .. "]}}"
    temp.write(path, table.concat(lines, "\n") .. "\n")
    local session = assert(recordings.into(store, path))
    local context = session:context()
    local one = context[4] -- the newest messages stay with any compaction
    assert.same({ "user", "[assistant]\nIn short: four.", "summary", "assistant" },
      { one.role, one.content, one.metadata.kind, one.metadata.imported.role })
    assert.same({ "question 1", "question 4" },
      { context[1].content[1].text, context[2].content[1].text })
  end)

  it("the first form has bare items", function()
    local session, counts = load "codex-first.jsonl"
    assert.equal("0001-codex-first", session.id)
    assert.equal(1, counts.unread)
    assert.same({ "user: List the sacks.", "assistant: rs_1, call_1",
      "tool: rye wheat, call_1", "assistant: Rye and wheat." }, said(session:messages()))
  end)
end)

describe("openai", function()
  it("a request's messages, calls with their arguments as they were", function()
    local session, counts = load "openai.json"
    assert.same({ 9, 2, 0 }, { counts.messages, counts.unread, counts.refused })
    local list = session:messages()
    assert.equal('{"line": "east", "id": 9007199254740993}', list[3].tool_calls[1].arguments)
    assert.equal("not even JSON", list[3].tool_calls[2].arguments)
    assert.equal("note", list[3].tool_calls[3].name)
    assert.equal(0, select(2, session:context()).unanswered)
    assert.equal("example-gpt", session:settings().model)
    local _, rest = span.object(customs_of(session)[1].line)
    assert.equal('"example-gpt"', rest.model)
    assert.equal("0.70", rest.temperature)
  end)

  it("items of the Responses API, instructions first", function()
    local session = load "openai-responses.json"
    assert.same({ "system: Be kind.", "user: Which bus goes to the lake?",
      "assistant: rs_9, call_9", "tool: line 7, call_9", "assistant: Line 7." },
      said(session:messages()))
  end)

  it("a bare list", function()
    assert.equal(5, #load("openai-list.json"):messages())
  end)
end)

describe("anthropic", function()
  it("a request's messages as they are, the system prompt first wherever it stood", function()
    local session, counts = load "anthropic.json"
    assert.same({ 6, 2 }, { counts.messages, counts.unread })
    assert.same({ "system: You know wells.", "user: How deep is the well?",
      "assistant: Ask the tool., One moment., toolu_w", "user: toolu_w, Well?",
      "assistant: Eleven metres.", "user: " },
      said(session:messages()))
    assert.equal(0, select(2, session:context()).unanswered)
  end)
end)

describe("langgraph", function()
  it("a history is a tree of what its states have in common", function()
    local session, counts = load "langgraph.json"
    assert.equal("thread-bees", session.id)
    assert.same({ 6, 1, 1 }, { counts.messages, counts.branches, counts.unread })
    assert.same({ "user: How many bees?", "assistant: , call_h", "tool: no bees, call_h",
      "assistant: None at all." }, said(session:messages()))
    local list = session:messages()
    assert.equal('{"hive":2}', list[2].tool_calls[1].arguments)
    assert.same({ input = 40, output = 5, cache_read = 60, cache_write = 0 }, list[2].usage)
    assert.is_true(list[3].is_error)
  end)

  it("one state, messages in the constructors' form", function()
    local session = load "langgraph-state.json"
    assert.equal("thread-honey", session.id)
    assert.same({ "user: Is the honey ripe?", "assistant: Not yet." }, said(session:messages()))
  end)
end)

describe("LangChain's messages_to_dict", function()
  it("comes in whole", function()
    local session, counts = load "langgraph-dict.json"
    assert.same({ 6, 0 }, { counts.messages, counts.unread })
    assert.same({ "system: You know clouds.", "user: Will it rain?", "assistant: , call_s",
      "tool: grey, call_s", "assistant: Take a coat.", "user: Will it rain?" },
      said(session:messages()))
    assert.equal('{"hour": 6}', session:messages()[3].tool_calls[1].arguments:gsub("%s+", " "):gsub(
      "{ ", "{"):gsub(" }", "}"))
  end)
end)

describe("a file for fine-tuning", function()
  it("has every conversation, each from the root", function()
    local session, counts = load "finetune.jsonl"
    assert.same({ 10, 2 }, { counts.messages, counts.unread })
    assert.same({ "user: Red breast?", "assistant: A robin." }, said(session:messages()))
    local list = {}
    for _, leaf in ipairs(session:leaves()) do
      assert(session:branch(leaf.id or leaf, { policy = false }))
      list[#list + 1] = #session:messages()
    end
    table.sort(list)
    assert.same({ 2, 3, 5 }, list)
    local again = select(2, recordings.into(store, folder .. "finetune.jsonl", { id = session.id }))
    assert.equal(0, again.messages + again.customs)
  end)
end)

describe("our own export", function()
  it("comes in with its branches", function()
    local session, counts = load "jsonl-exported.jsonl"
    assert.equal(1, counts.branches)
    assert.same({ "user: left or right?", "assistant: right" }, said(session:messages()))
    assert.equal(2, #session:leaves())
  end)
end)

describe("on the command line", function()
  cli.each_test()

  it("a file for fine-tuning is said to be one session with branches", function()
    local _, err = cli.done("import " .. folder .. "finetune.jsonl")
    assert.truthy(err:find("Each conversation of the file is a branch from the root", 1, true), err)
  end)

  it("a folder becomes sessions, and those that are unchanged are skipped", function()
    local home = cli.home()
    os.execute(("mkdir %s/there %s/there/deeper && cp %s*.json* %s/there"):format(home, home,
      folder, home))
    os.execute(("mkfifo %s/there/pipe.jsonl"):format(home))
    local files = #recordings.paths()
    local out, err = cli.done(("import %s/there"):format(home))
    assert.equal(files, select(2, out:gsub("\n", "")))
    assert.truthy(err:find(("%d sessions (%d new), "):format(files, files), 1, true), err)
    assert.truthy(cli.done("show openai-list"):find("blue letter", 1, true))
    local report = cli.json(("import %s/there"):format(home))
    assert.equal(files, report.unchanged)
    assert.equal(files, #report.imports)
    cli.write(home .. "/there/bad.jsonl", "nothing that is known\n")
    local before
    before, err = cli.sessile(("import %s/there"):format(home))
    assert.equal("", before)
    assert.truthy(err:find("1 of " .. files + 1 .. " files could not be imported", 1, true), err)
  end)

  it("--into adds to a session, and says what is wrong with the words", function()
    local home = cli.home()
    cli.done("import " .. folder .. "pi-tree.jsonl --id tree")
    local counts = cli.json("import " .. folder .. "openai-list.json --into tree")
    assert.equal("tree", counts.id)
    assert.equal(5, counts.messages)
    assert.equal(0, cli.json("import " .. folder .. "openai-list.json --into tree").messages)
    assert.equal(14, #cli.json "show tree")
    for words, part in pairs {
      ["import " .. folder .. "openai-list.json --into tree --id x"] = "give one of them",
      ["import " .. folder .. " --id x"] = "have their own names",
      ["import " .. folder .. "openai.json --from nonsense"] = "must be one of",
    } do
      local _, err, code = cli.sessile(words)
      assert.equal(2, code, words)
      assert.truthy(err:find(part, 1, true), err)
    end
    local _, err, code = cli.sessile("import " .. folder .. "openai.json --into nobody")
    assert.equal(3, code)
    assert.truthy(err:find("nobody", 1, true), err)
    os.execute("mkdir " .. home .. "/empty")
    assert.equal(3, select(3, cli.sessile("import " .. home .. "/empty")))
  end)

  it("a message that repeats an earlier one comes in from another source, not again from the same",
    function()
      local home, say = cli.home(), '{"role":"user","content":"go on"}\n'
      cli.write(home .. "/one.jsonl", say)
      cli.write(home .. "/two.jsonl", say)
      cli.done "new --id talk"
      local function brings(words, input)
        return cli.json(("import %s --into talk"):format(words), input).messages
      end
      assert.equal(1, brings(home .. "/one.jsonl"))
      assert.equal(1, brings(home .. "/two.jsonl"))
      assert.equal(0, brings(home .. "/one.jsonl"))
      cli.write(home .. "/one.jsonl", say .. say)
      assert.equal(1, brings(home .. "/one.jsonl"))
      os.execute(("ln -s two.jsonl %s/link.jsonl"):format(home))
      assert.equal(0, brings(home .. "/link.jsonl"))
      -- What comes out of a pipe has no name: it is new each time.
      assert.equal(1, brings("- --from jsonl", say))
      assert.equal(1, brings("- --from jsonl", say))
      assert.equal(5, #cli.json "show talk")
      local document = '[{"role":"user","content":"go on"}]'
      cli.write(home .. "/three.json", document)
      cli.write(home .. "/four.json", document)
      assert.equal(1, brings(home .. "/three.json"))
      assert.equal(1, brings(home .. "/four.json"))
      assert.equal(0, brings(home .. "/three.json"))
    end)

  it("an entry that repeats an earlier one comes in from another log, not again from the same",
    function()
      local home = cli.home()
      for _, name in ipairs { "one", "two" } do
        cli.write(home .. "/" .. name .. ".jsonl",
          '{"id":"00000001","type":"custom","data":{"mine":1}}\n'
          .. '{"id":"00000002","type":"message","data":{"role":"user","content":"hello"}}\n')
      end
      cli.done "new --id talk"
      local function customs()
        local count = 0
        for _ in cli.done "export talk --format jsonl":gmatch '"mine"' do
          count = count + 1
        end
        return count
      end
      for i, name in ipairs { "one", "two", "one", "two" } do
        cli.done(("import %s/%s.jsonl --into talk"):format(home, name))
        assert.equal(math.min(i, 2), customs())
      end
    end)

  it("a recording that names itself is known by its name wherever its file is", function()
    local home = cli.home()
    cli.done "new --id talk"
    os.execute(("cp %spi-tree.jsonl %s/moved.jsonl"):format(folder, home))
    assert.equal(13, cli.json("import " .. folder .. "pi-tree.jsonl --into talk").messages)
    assert.equal(0, cli.json(("import %s/moved.jsonl --into talk"):format(home)).messages)
  end)

  it("a document from a pipe is read as from a file", function()
    local text = cli.read(folder .. "anthropic.json")
    assert.equal(6, cli.json("import - --id a", text).messages)
    assert.equal(6, #cli.json "show a")
  end)
end)
