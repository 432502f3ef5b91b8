-- A session's life in whole: made, filled, kept at checkpoints, closed, opened by another handle,
-- compacted, branched, forked and gone on with; over each kind of store.

local temp = require "spec.support.temp"
local user = require("spec.support.messages").user
local sessile = require "sessile"

local secret = "hex:" .. ("3c"):rep(32)

-- A host's store: a table of lists of lines, which outlives the store's handle.
local function adapter()
  local kept = {}
  return {
    load = function(id) return kept[id] end,
    save = function(id, new, was)
      local records = kept[id] or {}
      if #records ~= was then
        return false
      end
      kept[id] = table.move(new.records, 1, #new.records, was + 1, records)
      return true
    end,
  }
end

-- Each gives a function that opens the same store again and again.
local kinds = {
  ["a plain folder"] = function()
    local dir = temp.dir() .. "/store"
    return function(opts) opts.key = false return assert(sessile.open(dir, opts)) end
  end,
  ["a sealed folder"] = function()
    local dir = temp.dir() .. "/store"
    return function(opts)
      opts.key = sessile.key.secret(secret)
      return assert(sessile.open(dir, opts))
    end
  end,
  ["a host's store"] = function()
    local host = adapter()
    return function(opts) return assert(sessile.open(host, opts)) end
  end,
}

local function texts(list)
  local out = {}
  for i, message in ipairs(list) do
    out[i] = message.id .. message.json
  end
  return out
end

for kind, make in pairs(kinds) do
  describe("a session in " .. kind, function()
    local open, store, s

    -- Closes everything, as when a process ends, and opens it again.
    local function again(opts)
      if store then
        store:close()
      end
      store = open(opts or {})
      s = assert(store:session "s")
    end

    before_each(function()
      open = make()
      again()
    end)

    after_each(function()
      store:close()
      store = nil
      temp.clean()
    end)

    it("comes back from a checkpoint as it was, after it was closed", function()
      assert(s:turn({ user "one", { role = "assistant", content = "two" } },
        { usage = { input = 10, output = 5 } }))
      local state = { step = 3, done = { "a", "b" }, text = "caf\u{e9}" }
      local then_ = { head = s:head(), messages = texts(s:messages()),
        context = texts(s:context()) }
      local id = assert(s:checkpoint { name = "step 3", state = state })
      again()
      assert.same(then_.messages, texts(s:messages()))
      assert.same({ input = 10, output = 5, cache_read = 0, cache_write = 0 }, s:usage())
      assert(s:append(user "three"))
      assert(s:append(user "four"))
      again()
      assert.equal(4, #s:messages())
      local restored = assert(s:restore "step 3")
      assert.equal(id, restored.checkpoint)
      assert.same(state, restored.state)
      again()
      assert.equal(then_.head, s:head())
      assert.same(then_.messages, texts(s:messages()))
      assert.same(then_.context, texts(s:context()))
      assert.equal(4, #assert(s:tree { types = { "message" } }).list) -- what was left stays
    end)

    it("has the context of a compaction after it was closed, and before it at a checkpoint",
      function()
        for i = 1, 12 do
          assert(s:append(user("message " .. i)))
        end
        local whole = texts(s:context())
        assert(s:checkpoint { name = "whole" })
        local outcome = assert(s:compact { policy = {
          compact = function(state)
            state:keep_last(3)
            state:insert(1, user "notes")
          end,
        } })
        assert.is_true(outcome.policy.applied)
        local short = texts(s:context())
        assert.equal(4, #short)
        again()
        assert.same(short, texts(s:context()))
        assert.equal(12, #s:messages())
        assert(s:restore "whole")
        assert.same(whole, texts(s:context()))
        again()
        assert.same(whole, texts(s:context()))
      end)

    it("is gone on with by an agent that was closed between two steps of its work", function()
      local ran = {}
      local asked
      local function model(request)
        asked = request.messages
        local last = asked[#asked]
        if last.role == "user" then
          return { content = "", tool_calls = { { id = "c" .. #asked, name = "work",
            arguments = '{"on":"' .. last.content .. '"}' } } }
        end
        return "did " .. last.content
      end
      local tools = { work = { run = function(args, ctx)
        ran[#ran + 1] = args.on
        assert(ctx.session:checkpoint { name = args.on, state = { done = #ran } })
        return args.on
      end } }
      local function run(text)
        local agent = sessile.agent { session = s, model = model, tools = tools }
        local outcome = assert(agent:run(text))
        assert.equal("completed", outcome.status)
        return outcome
      end
      assert.equal("did parsing", run "parsing".text)
      again()
      assert.equal("did printing", run "printing".text)
      assert.equal("parsing", asked[1].content) -- what was said before is what it is asked with
      assert.equal("did parsing", asked[4].content)
      assert.same({ "parsing", "printing" }, ran)
      again()
      -- back in the middle of its first work: the call was made, and has no result yet
      assert.same({ done = 1 }, assert(s:restore "parsing").state)
      assert.equal(2, #s:messages())
      local outcome = run "sorting"
      assert.equal("did sorting", outcome.text)
      for _, message in ipairs(asked) do
        assert.is_nil(message.content:find("printing", 1, true))
      end
    end)

    it("continues from any entry, many times", function()
      local seed = tonumber(os.getenv "SEED") or os.time()
      math.randomseed(seed)
      local ids, parent = {}, {}
      for i = 1, 20 do
        ids[i] = assert(s:append(user("m" .. i)))
        parent[ids[i]] = ids[i - 1] or "00000000"
      end
      for i = 1, 50 do
        local where = ids[math.random(#ids)]
        assert(s:branch(where))
        if i % 10 == 0 then
          again()
          assert.equal(where, s:head(), "SEED=" .. seed)
        end
        local id = assert(s:append(user("n" .. i)))
        ids[#ids + 1], parent[id] = id, where
      end
      again()
      local tree = assert(s:tree())
      local children = {}
      for _, id in ipairs(ids) do
        assert.equal(parent[id], s:entry(id).parent_id, "SEED=" .. seed)
        local list = children[parent[id]] or {}
        children[parent[id]] = list
        list[#list + 1] = id
      end
      for id, list in pairs(children) do
        local shown = {}
        for _, node in ipairs(tree.nodes[id].children) do
          if node.type == "message" then
            shown[#shown + 1] = node.id
          end
        end
        assert.same(list, shown, "SEED=" .. seed)
        assert.same(list, s:children(id))
      end
      assert.equal(ids[#ids], tree.current)
    end)

    it("may be a value that nobody keeps, until the call on it has returned", function()
      -- a message of many pieces, and a collector in haste: it runs within the call, where
      -- nothing but the call holds the session
      local blocks = {}
      for i = 1, 2000 do
        blocks[i] = { type = "text", text = ("block %d "):format(i):rep(20) }
      end
      local message = { role = "user", content = blocks }
      finally(function() collectgarbage("incremental", 200, 100, 13) end)
      collectgarbage("incremental", 10, 1000, 6)
      assert(s:append(user "one"))
      assert(assert(s:fork(nil, { id = "fork" })):append(message))
      assert(assert(store:session "fork"):append(message))
      assert.equal(3, #assert(store:resume "fork"):messages())
    end)

    it("has nothing in common with its fork", function()
      assert(s:append(user "one"))
      assert(s:append(user "two"))
      assert(s:label("00000001", "start"))
      assert(s:settings { model = "small" })
      assert(assert(s:fork("00000001", { id = "fork" })):append(user "another"))
      again()
      local fork = assert(store:resume "fork")
      assert.equal("00000001", fork.origin.entry)
      assert.equal("s", fork.origin.id)
      assert(s:append(user "three"))
      assert(s:unlabel("00000001", "start"))
      assert(s:settings { model = "large" })
      assert(fork:pin("00000001"))
      again()
      fork = assert(store:resume "fork")
      assert.equal(3, #s:messages())
      assert.same({}, s:labels())
      assert.equal("large", s:settings().model)
      local list = fork:messages()
      assert.equal(2, #list)
      assert.equal("another", list[2].content)
      assert.equal("small", fork:settings().model)
      assert.equal(2, #fork:labels())
    end)
  end)
end

describe("a sealed session", function()
  it("shows nothing of what is kept in it, and opens with its key alone", function()
    local dir = temp.dir() .. "/store"
    local store = assert(sessile.open(dir, { key = sessile.key.secret(secret) }))
    local s = assert(store:create { id = "plainly-named", title = "canary title",
      metadata = { secret = "canary metadata" } })
    assert(s:append { role = "user", content = "canary content", author = "canary author" })
    assert(s:checkpoint { name = "canary name", state = { v = "canary state" },
      metadata = { v = "canary of a checkpoint" } })
    assert(s:checkpoint { name = "large", state = { v = ("canary large "):rep(20000) } })
    assert(s:label("00000001", "canary label"))
    assert(s:settings { model = "canary model" })
    assert(s:branch("00000000", { summary = "canary summary" }))
    assert(s:suspend { reason = "canary reason", state = "canary pause" })
    assert(assert(s:fork(nil, { id = "fork" })):append(user "canary in a fork"))
    store:close()
    local files = temp.files(dir)
    assert.is_true(#files >= (temp.kind and 1 or 2) or temp.kind == "postgres")
    for _, path in ipairs(files) do
      assert.is_nil(temp.read(path):find("canary", 1, true), path)
    end
    local other, message, code = sessile.open(dir,
      { key = sessile.key.secret("hex:" .. ("00"):rep(32)) })
    if other then
      local opened
      opened, message, code = other:resume "plainly-named"
      assert.is_nil(opened)
    end
    assert.equal("ESEALED", code, message)
    store = assert(sessile.open(dir, { key = sessile.key.secret(secret) }))
    s = assert(store:resume "plainly-named")
    assert(s:cancel())
    assert.equal("canary state", assert(s:restore "canary name").state.v)
    store:close()
    temp.clean()
  end)
end)
