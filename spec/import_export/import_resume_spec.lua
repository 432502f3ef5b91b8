-- An import that was stopped, wherever it was, and begun again: nothing twice, nothing missing.

local cli = require "spec.support.cli"
local import = require "sessile.import"
local recordings = require "spec.support.recordings"
local sessile = require "sessile"
local stores = require "spec.support.stores"
local temp = require "spec.support.temp"

local soak = os.getenv "SESSILE_SOAK" == "1"
local store

stores.each_test(function() store = stores.ram() end)

-- The first line that differs says enough.
local function same(expected, found)
  for i = 1, math.max(#expected, #found) do
    assert.equal(expected[i], found[i])
  end
end

local function whole(path)
  local session = assert(recordings.into(store, path, { id = "whole" }))
  local log = recordings.log(session)
  session:close()
  return log
end

-- What a session holds, wherever it stands in the log: how many entries of each type but moves of
-- the head, which may be made once more, and what its tree and its facts come to.
local function held(session)
  local found = { types = {}, said = {}, labels = {}, title = session.title,
    settings = session:settings(), leaves = #session:leaves(), context = #session:context() }
  for entry in session:entries() do
    if entry.type ~= "head" then
      found.types[entry.type] = (found.types[entry.type] or 0) + 1
    end
  end
  for i, message in ipairs(session:messages()) do
    found.said[i] = message.json
  end
  for i, label in ipairs(session:labels()) do
    found.labels[i] = label.name
  end
  return found
end

describe("an import", function()
  for _, path in ipairs(recordings.paths()) do
    it("that is stopped after any record continues to the same session: " .. path:match "[^/]+$",
      function()
        local expected = whole(path)
        local stops = 0
        repeat
          stops = stops + 1
          local records, from = assert(import.open(path))
          local inner, count = getmetatable(records).__call, 0
          local stopped = setmetatable({}, { __index = records, __call = function()
            count = count + 1
            if count > stops then
              error "stopped here"
            end
            return inner(records)
          end })
          local id = "stopped-" .. stops
          local ended = pcall(import.into, store, stopped, { from = from, id = id })
          local session, counts = assert(recordings.into(store, path, { id = id }))
          same(expected, recordings.log(session))
          assert.equal(ended or nil, ended and counts.resumed or nil)
          session:close()
        until ended
      end)
  end

  -- Between two writes of one record as well.
  for _, name in ipairs { "pi-tree.jsonl", "claude.jsonl" } do
    it("that ends after any write continues to the same session: " .. name, function()
      local path = "spec/fixtures/import/" .. name
      local session = assert(recordings.into(store, path, { id = "whole" }))
      local expected, stops = held(session), 0
      session:close()
      local methods, kept, left = require "sessile.session".methods, {}, math.huge
      for _, method in ipairs { "turn", "custom", "label", "unlabel", "branch", "compact",
        "settings", "set_title", "metadata" } do
        local inner = methods[method]
        kept[method] = inner
        methods[method] = function(...)
          if left == 0 then
            error "ended here"
          end
          left = left - 1
          return inner(...)
        end
      end
      local ok, why = pcall(function()
        repeat
          stops = stops + 1
          local id = "ended-" .. stops
          left = stops
          local ended = pcall(recordings.into, store, path, { id = id })
          left = math.huge
          session = assert(recordings.into(store, path, { id = id }))
          assert.same(expected, held(session))
          session:close()
        until ended
      end)
      for method, inner in pairs(kept) do
        methods[method] = inner
      end
      assert(ok, why)
      assert.is_true(stops > 5)
    end)
  end

  it("that was stopped where it had just gone back to branch ends where it would have", function()
    local lines = { '{"type":"session","version":3,"id":"x"}' }
    for i, parent in ipairs { "null", '"m1"', '"m2"', '"m1"', '"m4"' } do
      lines[i + 1] = ('{"type":"message","id":"m%d","parentId":%s,"message":{"role":"%s",'
        .. '"content":"words %d"}}'):format(i, parent, i % 2 == 1 and "user" or "assistant", i)
    end
    local path = temp.dir() .. "/x.jsonl"
    temp.write(path, table.concat(lines, "\n", 1, 4) .. "\n")
    local session = assert(recordings.into(store, path, { id = "stopped" }))
    assert(session:branch("00000002", { policy = false }))
    session:close()
    temp.write(path, table.concat(lines, "\n") .. "\n")
    session = assert(recordings.into(store, path, { id = "stopped" }))
    local said = {}
    for i, message in ipairs(session:context()) do
      said[i] = message.content
    end
    assert.equal("words 1, words 4, words 5", table.concat(said, ", "))
  end)

  it("knows a recording again by the name that earlier versions gave it", function()
    local session = assert(recordings.into(store, "spec/fixtures/import/openai.json"))
    local seen = 0
    for entry in session:entries() do
      if entry.type == "turn" then
        assert.equal("c5970411b282497c", entry.data.metadata.imported.source)
        seen = seen + 1
      end
    end
    session:close()
    assert.equal(3, seen)
  end)

  it("of a file that has grown brings what is new, and twice nothing", function()
    local path = temp.dir() .. "/growing.jsonl"
    recordings.bulk(path, 6)
    local text, types = temp.read(path), {}
    for _, line in ipairs(whole(path)) do
      local kind = line:match '"type":"(%a+)"'
      types[kind] = (types[kind] or 0) + 1
    end
    local cut = 1
    for line in text:gmatch "[^\n]*\n" do
      temp.write(path, text:sub(1, cut + #line - 1))
      cut = cut + #line
      local session = recordings.into(store, path, { id = "growing" })
      if session then -- the first line alone is no conversation
        session:close()
      end
    end
    local session, counts = assert(recordings.into(store, path, { id = "growing" }))
    assert.equal(0, counts.messages)
    local now = {}
    for entry in session:entries() do
      now[entry.type] = (now[entry.type] or 0) + 1
    end
    assert.equal(types.message, now.message)
    assert.equal(types.custom, now.custom)
    assert.equal(types.head, now.head)
    assert.equal(counts.before, now.message)
  end)

  it("of a file that was changed where it had been read is refused, and nothing is written",
    function()
      local path = temp.dir() .. "/changed.jsonl"
      recordings.bulk(path, 6)
      local text = temp.read(path)
      local session = assert(recordings.into(store, path))
      local before = #recordings.log(session)
      session:close()
      temp.write(path, (text:gsub("question 2, 1", "another question 2, 1"))
        .. text:match "[^\n]+\n$")
      local none, message, code = recordings.into(store, path)
      assert.is_nil(none)
      assert.equal("ECONFLICT", code)
      assert.truthy(message:find("changed", 1, true), message)
      assert.equal(before, #recordings.log(assert(store:resume "bulk")))
    end)

  it("leaves the head where somebody has gone on with the session", function()
    local path = temp.dir() .. "/mine.jsonl"
    recordings.bulk(path, 4)
    local text = temp.read(path)
    temp.write(path, text:match("^(.-)[^\n]*question 4"))
    local session = assert(recordings.into(store, path))
    session:append { role = "user", content = "my own words" }
    local head = session:head()
    session:close()
    temp.write(path, text)
    local counts
    session, counts = assert(recordings.into(store, path))
    assert.equal(3, counts.messages)
    assert.equal(head, session:head())
    local last = session:messages()
    assert.equal("my own words", last[#last].content)
  end)

  it("into a session that is there continues from its head, once", function()
    local path = temp.dir() .. "/more.jsonl"
    recordings.bulk(path, 2)
    local session = assert(store:create "there")
    session:append { role = "user", content = "before" }
    for round = 1, 2 do
      local _, counts = assert(recordings.into(store, path, { session = session }))
      assert.equal(round == 1 and 6 or 0, counts.messages)
    end
    local list = session:messages()
    assert.equal(7, #list)
    assert.equal("before", list[1].content)
    local other = temp.dir() .. "/other.jsonl"
    temp.write(other, '{"role":"user","content":"from elsewhere"}\n')
    assert(recordings.into(store, other, { session = session }))
    assert.equal(8, #session:messages())
  end)
end)

describe("an import that is killed", function()
  cli.each_test()

  it("and begun again makes the session that one without a kill makes", function()
    local path, kills = cli.home() .. "/bulk.jsonl", 0
    local messages = recordings.bulk(path, soak and 20000 or 1500)
    cli.done("--plain import " .. path .. " --id whole")
    local seconds = soak and 0.3 or 0.03
    for _ = 1, soak and 60 or 12 do
      local _, _, code = os.execute(("env -u SESSILE_KEY -u SESSILE_STORE HOME=%s "
        .. "XDG_DATA_HOME=%s/data XDG_CONFIG_HOME=%s/config timeout -s KILL %g %s --plain "
        .. "import %s --id killed >%s/out 2>&1"):format(cli.home(), cli.home(), cli.home(), seconds,
        cli.binary, path, cli.home()))
      kills = kills + (code ~= 0 and 1 or 0)
      seconds = seconds + (soak and 0.1 or 0.01)
    end
    cli.done("--plain import " .. path .. " --id killed")
    assert.is_true(kills > 0, "it was never killed")
    local plain = assert(sessile.open(cli.home() .. "/data/sessile", { key = false }))
    local one = assert(plain:resume "whole")
    local other = assert(plain:resume "killed")
    same(recordings.log(one), recordings.log(other))
    local count = 0
    for entry in other:entries() do
      count = count + (entry.type == "message" and 1 or 0)
    end
    assert.equal(messages, count)
    plain:close()
  end)
end)
