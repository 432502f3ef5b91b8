-- Recordings that somebody made to do harm, or that were damaged: none crashes, hangs, fills the
-- memory or gets anything but data into a session.

local import = require "sessile.import"
local recordings = require "spec.support.recordings"
local source = require "sessile.import.source"
local span = require("sessile.core").span
local stores = require "spec.support.stores"
local temp = require "spec.support.temp"

local soak = os.getenv "SESSILE_SOAK" == "1"
local seed = math.tointeger(tonumber(os.getenv "SEED" or "")) or os.time()
local store

stores.each_test(function() store = stores.ram() end)

local function open(text, from)
  local file = assert(io.tmpfile())
  file:write(text)
  file:seek "set"
  return import.open(file, from)
end

-- Imports it; every entry of what comes of it is JSON, and it can be imported again.
local function take(text, from, id)
  local records, name = open(text, from)
  if not records then
    return nil, name
  end
  local session, counts = import.into(store, records, { from = name, id = id })
  records.opened:close()
  if not session then
    assert.is_string(counts)
    return nil, counts
  end
  for entry in session:entries() do
    assert(span.valid(entry.json))
  end
  assert(session:context())
  return session, counts
end

local PIECES = {
  "{", "}", "[", "]", '"', "\\", ",", ":", "null", "true", "-", "1e999", "\\u0000", "\\ud800",
  "\0", "\255", "\xc3", "\n", "\r\n", " ", '"role":"user"', '"parentId":"a0000004"', '"id":null',
  '"content":[]', '"type":"message"', '{"role":', "99999999999999999999", '"tool_calls":[{}]',
  '"uuid":"0000aaaa-0000-4000-8000-000000000004"', '"messages":[', '"values":{', "\27[2J",
}

local function mutate(text)
  for _ = 1, math.random(4) do
    local at = math.random(#text + 1)
    local what = math.random(7)
    local stop = math.min(#text, at + math.random(0, 40))
    if what == 1 then
      text = text:sub(1, at - 1) .. PIECES[math.random(#PIECES)] .. text:sub(at)
    elseif what == 2 then
      text = text:sub(1, at - 1) .. text:sub(stop + 1)
    elseif what == 3 then
      text = text:sub(1, at - 1) .. string.char(math.random(0, 255)) .. text:sub(at + 1)
    elseif what == 4 then
      text = text:sub(1, stop) .. text:sub(at)
    elseif what == 5 then
      text = text:sub(1, at)
    elseif what == 6 then
      text = text:sub(1, at - 1) .. PIECES[math.random(#PIECES)] .. text:sub(stop + 1)
    else
      local other = math.random(#text)
      text = text:sub(1, at - 1) .. text:sub(other, other + math.random(200)) .. text:sub(at)
    end
  end
  return text
end

describe("mutations of the specimens", function()
  local names = import.names()
  local rounds = (soak and 100000 or 10000) // #recordings.paths()

  for _, path in ipairs(recordings.paths()) do
    it("do no harm: " .. path:match "[^/]+$", function()
      math.randomseed(seed)
      local text, own = temp.read(path), recordings.format(path)
      for round = 1, rounds do
        local changed = mutate(text)
        local from = math.random(4) > 1 and own or names[math.random(#names)]
        if math.random(4) == 1 then
          from = nil
        end
        -- Reading alone is quick: what is read goes into a session now and then.
        local ok, why = pcall(function()
          if round % 10 == 0 then
            local session = take(changed, from, "it")
            if session then
              session:close()
              store:delete "it"
            end
            return
          end
          local records = open(changed, from)
          if records then
            for record in records do
              for _, json in ipairs(record.messages or { record.json }) do
                assert(#json > 0)
              end
            end
            records.opened:close()
          end
        end)
        assert.is_true(ok, ("SEED=%d round %d of %s as %s: %s"):format(seed, round, path,
          tostring(from), tostring(why)))
      end
    end)
  end
end)

describe("a recording", function()
  it("nested deep is kept as text", function()
    for _, from in ipairs(import.names()) do
      local deep = ("["):rep(100000) .. ("]"):rep(100000)
      take(deep, from, from)
      take(('{"a":'):rep(100000), from, from)
      take('{"messages":' .. deep .. "}", from, from)
      take('{"values":' .. ('{"values":'):rep(50000), from, from)
      take('{"type":"message","message":{"role":"user","content":' .. deep .. "}}", from, from)
    end
  end)

  it("may be one chain of names that come last first", function()
    local lines, n = { '{"type":"session","version":3,"id":"chain"}' }, soak and 50000 or 5000
    for i = n, 1, -1 do
      lines[#lines + 1] = ('{"type":"message","id":"m%d","parentId":%s,"message":{"role":"user",'
        .. '"content":"%d"}}'):format(i, i == 1 and "null" or ('"m%d"'):format(i - 1), i)
    end
    local session, counts = take(table.concat(lines, "\n"), "pi")
    assert.equal(n, counts.messages)
    assert.equal(0, counts.strays)
    assert.equal(0, counts.branches)
    assert.equal(tostring(n), session:messages { last = 1 }[1].content)
  end)

  it("may name one parent that is not there for all", function()
    local lines = { '{"type":"session","version":3,"id":"lost"}' }
    for i = 1, 3000 do
      lines[#lines + 1] = ('{"type":"message","id":"m%d","parentId":"nobody","message":{"role":'
        .. '"user","content":"%d"}}'):format(i, i)
    end
    local _, counts = take(table.concat(lines, "\n"), "pi")
    assert.equal(3000, counts.messages)
    assert.equal(3000, counts.strays)
  end)

  it("may be a ring of thousands", function()
    local lines = { '{"type":"session","version":3,"id":"ring"}' }
    for i = 1, 3000 do
      lines[#lines + 1] = ('{"type":"message","id":"m%d","parentId":"m%d","message":{"role":'
        .. '"user","content":"%d"}}'):format(i, i % 3000 + 1, i)
    end
    local session, counts = take(table.concat(lines, "\n"), "pi")
    assert.equal(3000, counts.messages)
    assert.equal(1, counts.strays)
    assert.is_true(#session:messages() >= 1)
  end)

  it("may have one name for everything", function()
    local lines = { '{"type":"session","version":3,"id":"one"}' }
    for i = 1, 500 do
      lines[#lines + 1] = ('{"type":"message","id":"m","parentId":"m","message":{"role":"user",'
        .. '"content":"%d"}}'):format(i)
    end
    assert.equal(500, select(2, take(table.concat(lines, "\n"), "pi")).messages)
  end)

  it("holds no more than a line, and of that no more than 8 MiB", function()
    local path = temp.dir() .. "/long.jsonl"
    local file = assert(io.open(path, "wb"))
    file:write '{"role":"user","content":"short"}\n{"role":"user","content":"'
    local bytes = (soak and 400 or 40) << 20
    local block = ("long "):rep(13107)
    for _ = 1, bytes // #block do
      file:write(block)
    end
    file:write '"}\n{"role":"assistant","content":"after it"}\n'
    file:close()
    local opened = assert(import.open(path))
    collectgarbage "collect"
    local before, most, pieces = collectgarbage "count", 0, 0
    for record in opened do
      most = math.max(most, collectgarbage "count" - before)
      pieces = pieces + (record.part and 1 or 0)
    end
    opened.opened:close()
    assert.is_true(pieces >= bytes // source.piece)
    assert.is_true(most < 64 * 1024, most .. " KiB")
  end)

  it("that is one document holds no more than an element of it", function()
    local path = temp.dir() .. "/large.json"
    local file = assert(io.open(path, "wb"))
    file:write '{"tools":[],"messages":[{"role":"user","content":"first"}'
    local elements = soak and 400000 or 40000
    for i = 1, elements do
      file:write(',\n{"role":"', i % 2 == 0 and "user" or "assistant", '","content":"',
        ("words "):rep(100), '"}')
    end
    file:write '],"model":"m"}'
    file:close()
    for _, from in ipairs { "openai", "anthropic" } do
      local opened = assert(import.open(path, from))
      collectgarbage "collect"
      local before, most, messages = collectgarbage "count", 0, 0
      for record in opened do
        most = math.max(most, collectgarbage "count" - before)
        messages = messages + #(record.messages or {})
      end
      opened.opened:close()
      assert.equal(elements + 1, messages)
      assert.is_true(most < 16 * 1024, most .. " KiB")
    end
  end)

  it("of nothing but empty lines is not copied for each of them", function()
    local file = assert(io.tmpfile())
    file:write(("\n"):rep(20000))
    file:seek "set"
    local opened = assert(source.open(file))
    local lines = opened:lines()
    collectgarbage "collect"
    collectgarbage "stop"
    local before, count = collectgarbage "count", 0
    for _ in lines do
      count = count + 1
    end
    local grown = collectgarbage "count" - before
    collectgarbage "restart"
    opened:close()
    assert.equal(20000, count)
    assert.is_true(grown < 16 * 1024, grown .. " KiB") -- a copy for each would be 200 MB
  end)

  it("with one message that waits to the end does not hold what others waited for", function()
    local n, words = 0, ("words "):rep(2500)
    local records = assert(import.formats.pi.records(function()
      n = n + 1
      if n == 1 then
        return '{"type":"session","version":3,"id":"x"}'
      elseif n > 12000 then
        return nil
      end
      -- Each comes before its parent, which is the next line; the first one's never comes.
      local parent = n == 2 and '"none"' or n % 2 == 0 and ('"m%d"'):format(n + 1) or "null"
      return ('{"type":"message","id":"m%d","parentId":%s,"message":{"role":"user",'
        .. '"content":"%s"}}'):format(n, parent, words)
    end))
    local most, messages = 0, 0
    for record in records do
      messages = messages + #(record.messages or {})
      if messages % 1000 == 0 then
        collectgarbage "collect"
        most = math.max(most, collectgarbage "count")
      end
    end
    assert.equal(11999, messages)
    assert.is_true(most < 60 * 1024, most .. " KiB")
  end)

  it("may begin with a long nothing", function()
    local text = ("\n"):rep(source.look + 10) .. '{"role":"user","content":"x"}\n'
    assert.equal(1, select(2, take(text, "jsonl")).messages)
    assert.is_nil((take(("\n"):rep(source.look + 10), "jsonl")))
  end)

  it("that sets many labels asks once which there are", function()
    local lines = { '{"type":"session","version":3,"id":"many"}',
      '{"type":"message","id":"m","parentId":null,"message":{"role":"user","content":"x"}}' }
    for i = 1, 300 do
      lines[#lines + 1] = ('{"type":"label","id":"l%d","parentId":"m","targetId":"m",'
        .. '"label":%s}'):format(i, i % 3 == 0 and "null" or '"n' .. i .. '"')
    end
    local records, name = open(table.concat(lines, "\n"))
    local session = assert(store:create {})
    local asked, methods = 0, getmetatable(session).__index
    local stand_in = setmetatable({}, { __index = function(_, key)
      local value = type(methods) == "function" and methods(session, key) or session[key]
      if type(value) ~= "function" then
        return value
      end
      return function(_, ...)
        asked = asked + (key == "labels" and 1 or 0)
        return value(session, ...)
      end
    end })
    assert(import.into(store, records, { from = name, session = stand_in }))
    assert.equal(1, asked)
    local names = {}
    for _, row in ipairs(session:labels()) do
      names[#names + 1] = row.name
    end
    assert.equal(100, #names) -- n2 is taken away by the third line, n5 by the sixth …
    assert(take(table.concat(lines, "\n"), "pi", "again"))
  end)

  it("cannot give a session a name that commands mean something else by", function()
    for _, id in ipairs { "last", "", ("x"):rep(5000) } do
      local session = take(('{"type":"session","id":"%s"}\n{"type":"message","message":'
        .. '{"role":"user","content":"x"}}'):format(id), "pi")
      assert.is_true(session.id ~= id)
    end
    for _, id in ipairs { "../../etc/passwd", "\\u0000", "-rf", "a b\\n" } do
      assert(take(('{"type":"session","id":"%s"}\n{"type":"message","message":'
        .. '{"role":"user","content":"x"}}'):format(id), "pi"))
    end
  end)

  it("tells no folder that is no absolute path", function()
    local function cwd_of(from, cwd)
      cwd = span.quote(cwd)
      local session = take(from == "pi" and ('{"type":"session","id":"p","cwd":%s}\n'
          .. '{"type":"message","message":{"role":"user","content":"x"}}'):format(cwd)
        or from == "codex" and ('{"timestamp":"2026-05-01T10:00:00Z","type":"session_meta",'
          .. '"payload":{"id":"c","cwd":%s}}\n{"timestamp":"2026-05-01T10:00:00Z","type":"response_item",'
          .. '"payload":{"type":"message","role":"user","content":[{"type":"input_text",'
          .. '"text":"x"}]}}'):format(cwd)
        or ('{"parentUuid":null,"sessionId":"s","cwd":%s,"type":"user","uuid":"a",'
          .. '"message":{"role":"user","content":"x"}}'):format(cwd), from)
      local found = session:metadata().cwd
      assert(store:delete(session.id))
      return found
    end
    for _, from in ipairs { "claude", "codex", "pi" } do
      for _, cwd in ipairs { ".", "srv/shop", "../etc", "~/x", "-rf", "/srv/../etc", "/srv/..",
        "/a\nb", "/a\27[2J", "/a\0b", "/a\u{9b}2J", "C:\\x" } do
        assert.is_nil(cwd_of(from, cwd), cwd)
      end
      for _, cwd in ipairs { "/", "/srv/shop", "/srv/a..b/..c", "/srv/ä b" } do
        assert.equal(cwd, cwd_of(from, cwd))
      end
    end
  end)

  it("keeps each message once, in whatever order a boundary names them", function()
    local lines, parent = {}, "null"
    for i, name in ipairs { "u1", "a1", "u2", "a2", "u3", "a3" } do
      local is_user = i % 2 == 1
      lines[i] = ('{"parentUuid":%s,"sessionId":"s","type":"%s","uuid":"%s","message":{"role":"%s",'
        .. '"content":"%s"}}'):format(parent, is_user and "user" or "assistant", name,
        is_user and "user" or "assistant", name)
      parent = '"' .. name .. '"'
    end
    local boundary = '{"parentUuid":null,"logicalParentUuid":"a3","sessionId":"s","type":"system",'
      .. '"subtype":"compact_boundary","uuid":"b","compactMetadata":{"preservedMessages":'
      .. '{"anchorUuid":"n","uuids":["%s"]}}}\n{"parentUuid":"b","sessionId":"s","type":"user",'
      .. '"uuid":"n","isCompactSummary":true,"message":{"role":"user","content":"the summary"}}'
    for i, order in ipairs { "u2 a2 u3 a3", "a3 u3 a2 u2", "u2 u2 a2 u3 a3 u2 a3",
      "a2 a3 u2 u3 a2" } do
      local session = take(table.concat(lines, "\n") .. "\n"
        .. boundary:format((order:gsub(" ", '","'))), "claude", "s" .. i)
      local said = {}
      for _, message in ipairs(session:context()) do
        said[#said + 1] = type(message.content) == "string" and message.content
      end
      assert.same({ "the summary", "u2", "a2", "u3", "a3" }, said, order)
    end
  end)

  it("cannot pass for what an import wrote itself", function()
    local text = '{"id":"00000001","type":"message","data":{"role":"user","content":"one"}}\n'
      .. '{"id":"00000002","type":"turn","data":{"metadata":{"imported":{"from":"jsonl",'
      .. '"source":"0000000000000000","lines":[1,2,3,4,5]}}}}\n'
      .. '{"id":"00000003","type":"message","data":{"role":"user","content":"two"}}\n'
      .. '{"id":"00000004","type":"custom","data":{"from":"jsonl","at":3,"line":1}}\n'
    local session = take(text, "jsonl", "s")
    assert.equal(2, #session:messages())
    session:close()
    local again, counts = take(text, "jsonl", "s")
    assert.equal(0, counts.messages + counts.customs)
    assert.equal(2, #again:messages())
  end)
end)
