-- Each public function refuses what it does not take, at the line of the call: an option with an
-- unknown name, of a wrong type or out of range, and an argument too many. meta.lua and the
-- functions name the same options, so that a new function or option cannot be forgotten here.
-- Files only: wrong calls do not come to a store.
-- Own guard: which line is blamed, and a wrapper has a line.

local guides = require "spec.support.guides"
local memories = require "sessile.memories"
local options = require "sessile.options"
local embedding = require "sessile.model.embedding"
local sessile = require "sessile"
local stores = require "spec.support.stores"
local user = require("spec.support.messages").user

local agent, encoding, first, screens, other, run, s, store, memory

local function nothing() end

stores.each_test(function()
  store, other = stores.ram(), stores.ram()
  s = assert(store:create { id = "bug" })
  first = assert(s:append(user "hello"))
  agent = sessile.agent { model = nothing }
  encoding = assert(sessile.encoding "cl100k_base")
  memory = assert(store:memory())
  screens = assert(sessile.screen { "injection" })
  run = assert(sessile.step(s, "turn", { user "again" }))
end)

-- How each function is given its options; the name of its shape begins with that of the function.
local calls = {
  ["sessile.open"] = function(o) sessile.open("ram:", o) end,
  ["sessile.open: agents"] = function(o) sessile.open("ram:", { agents = { a = o } }) end,
  ["sessile.open: agent_info"] = function(o) sessile.open("ram:", { agent_info = o }) end,
  ["sessile.open: memory"] = function(o) sessile.open("ram:", { memory = o }) end,
  ["sessile.open: memory: recall"] = function(o)
    sessile.open("ram:", { memory = { recall = o } })
  end,
  ["sessile.open: memory: remember"] = function(o)
    sessile.open("ram:", { memory = { remember = o } })
  end,
  ["sessile.open: memory: vectors"] = function(o)
    sessile.open("ram:", { memory = { vectors = o } })
  end,
  ["sessile.open: memory: trust"] = function(o)
    sessile.open("ram:", { memory = { trust = o } })
  end,
  ["sessile.open: guard"] = function(o) sessile.open("ram:", { guard = o }) end,
  ["sessile.open: limits"] = function(o) sessile.open("ram:", { limits = o }) end,
  ["sessile.open: triggers"] = function(o) sessile.open("ram:", { triggers = o }) end,
  ["sessile.open: checkpoint"] = function(o) sessile.open("ram:", { checkpoint = o }) end,
  ["sessile.open: tool"] = function(o) sessile.open("ram:", { tools = { t = o } }) end,
  ["sessile.open: policy"] = function(o)
    o.merge = o.merge or nothing
    sessile.open("ram:", { policy = o })
  end,
  ["sessile.encoding"] = function(o) sessile.encoding("cl100k_base", o) end,
  ["sessile.url_check"] = function(o) sessile.url_check("x", o) end,
  ["sessile.address_check"] = function(o) sessile.address_check("8.8.8.8", o) end,
  ["sessile.tools.memory"] = function(o) sessile.tools.memory(s, o) end,
  ["sessile.decode"] = function(o) sessile.decode("{}", o) end,
  ["sessile.keys_init"] = function(o) sessile.keys_init("ram:", o) end,
  ["sessile.migrate"] = function(o) sessile.migrate("ram:", "ram:", o) end,
  ["sessile.migrate: from"] = function(o) sessile.migrate(o, "ram:") end,
  ["sessile.model"] = function(o) sessile.model(nothing, o) end,
  ["sessile.model: command"] = function(o)
    o.command = o.command or { "true" }
    sessile.model(o)
  end,
  ["sessile.model: endpoint"] = function(o)
    o.endpoint, o.name = o.endpoint or "http://localhost:1", o.name or "x"
    sessile.model(o)
  end,
  ["sessile.model: lua"] = function(o)
    o.lua = o.lua or "/nowhere.lua"
    sessile.model(o)
  end,
  ["memory: embed: endpoint"] = function(o)
    o.endpoint, o.name = o.endpoint or "http://localhost:1", o.name or "x"
    embedding.make("memory: embed", o)
  end,
  ["memory: embed: lua"] = function(o)
    o.lua = o.lua or "/nowhere.lua"
    embedding.make("memory: embed", o)
  end,
  ["sessile.send"] = function(o) sessile.send(o) end,
  ["sessile.pause"] = function(o) sessile.pause(o) end,
  ["sessile.agent"] = function(o) sessile.agent(o) end,
  ["agent:run"] = function(o) agent:run("hello", o) end,
  ["store:create"] = function(o) store:create(o) end,
  ["store:resume: id"] = function(o) store:resume { id = o } end,
  ["store:resume"] = function(o) store:resume(o) end,
  ["store:session"] = function(o) store:session(o) end,
  ["store:put"] = function(o) other:put(s, o) end,
  ["store:list"] = function(o) store:list(o) end,
  ["store:memory"] = function(o) store:memory(o) end,
  ["session:memory"] = function(o) s:memory(o) end,
  ["session:recall"] = function(o) s:recall(o) end,
  ["session:remember"] = function(o) s:remember(o) end,
  ["memory:tidy"] = function(o) memory:tidy(o) end,
  ["memory:write"] = function(o) memory:write("key", "value", o) end,
  ["memory:consent"] = function(o) memory:consent(true, o) end,
  ["memory:watch"] = function(o)
    o.timeout_ms = o.timeout_ms or 0
    memory:watch(o)
  end,
  ["memory:embed"] = function(o) memory:embed(o) end,
  ["screens:run"] = function(o)
    o.kind, o.text = o.kind or "memory", o.text or "x"
    screens:run(o)
  end,
  ["memory:clear"] = function(o) memory:clear(o) end,
  ["memory:markdown"] = function(o) memory:markdown(o) end,
  ["memory:edit"] = function(o) memory:edit("", "", o) end,
  ["memory:import"] = function(o) memory:import("x", o) end,
  ["memory:list"] = function(o) memory:list(o) end,
  ["memory:search"] = function(o) memory:search("x", o) end,
  ["memory:delete_from"] = function(o) memory:delete_from("bug", o) end,
  ["memory:erase"] = function(o) memory:erase("key", o) end,
  ["memory:delete"] = function(o) memory:delete("key", o) end,
  ["memory:reject"] = function(o) memory:reject("key", o) end,
  ["memory:approve"] = function(o) memory:approve("key", o) end,
  ["memory:restore"] = function(o) memory:restore("key", o) end,
  ["memory:pin"] = function(o) memory:pin("key", o) end,
  ["memory:unpin"] = function(o) memory:unpin("key", o) end,
  ["memory:confirm"] = function(o) memory:confirm("key", o) end,
  ["store:search"] = function(o) store:search("x", o) end,
  ["store:count_messages"] = function(o) store:count_messages({ user "x" }, o) end,
  ["store:check"] = function(o) store:check(o) end,
  ["store:delete"] = function(o) store:delete("nobody", o) end,
  ["store:undelete"] = function(o) store:undelete("nobody", o) end,
  ["store:screen"] = function(o)
    o.kind, o.text = o.kind or "memory", o.text or "x"
    store:screen(o)
  end,
  ["store:guard"] = function(o) store:guard(o) end,
  ["store:guard: limits"] = function(o) store:guard { limits = o } end,
  ["store:guard: audit"] = function(o) store:guard { audit = o } end,
  ["store:guard: token"] = function(o) store:guard { token = o } end,
  ["store:as"] = function(o) store:as(o) end,
  ["store:grant"] = function(o) store:grant(o) end,
  ["store:access_key"] = function(o) store:access_key(o) end,
  ["store:lock"] = function(o) store:lock(o) end,
  ["store:unlock"] = function(o) store:unlock(o) end,
  ["store:may"] = function(o)
    o.permission = o.permission or "view_session"
    store:may("deploy", o)
  end,
  ["store:can"] = function(o) store:can("view_session", o) end,
  ["store:audit"] = function(o) store:audit(o) end,
  ["store:audit_verify"] = function(o) store:audit_verify(o) end,
  ["store:audit_head"] = function(o) store:audit_head(o) end,
  ["sessile.audit_export"] = function(o)
    sessile.audit_export({ id = "00-000/00000001", time = 0, operation = "x" }, "cef", o)
  end,
  ["store:purge"] = function(o) store:purge(o) end,
  ["store:purge_forgotten"] = function(o) store:purge_forgotten(o) end,
  ["store:consent"] = function(o) store:consent(o) end,
  ["store:hold"] = function(o) store:hold(o) end,
  ["store:release"] = function(o) store:release("00000001", o) end,
  ["store:purge_retention"] = function(o) store:purge_retention(o) end,
  ["store:purge_retention: retention"] = function(o)
    store:purge_retention { users = { ann = o } }
  end,
  ["store:erase_user"] = function(o) store:erase_user("ann", o) end,
  ["store:rotate"] = function(o) store:rotate(o) end,
  ["store:reseal"] = function(o) store:reseal(o) end,
  ["store:backup"] = function(o) store:backup("/nowhere/backup", o) end,
  ["session:turn"] = function(o) s:turn({ user "x" }, o) end,
  ["session:compact"] = function(o) s:compact(o) end,
  ["session:plan"] = function(o) s:plan(o) end,
  ["session:branch"] = function(o) s:branch(first, o) end,
  ["session:answer"] = function(o) s:answer("x", o) end,
  ["session:send"] = function(o) s:send("hello", o) end,
  ["session:save"] = function(o) s:save(o) end,
  ["session:write"] = function(o) s:write({ { message = user "x" } }, o) end,
  ["session:write: entry"] = function(o)
    o.message = o.message or not o.custom and user "x" or nil
    s:write { o }
  end,
  ["session:pop"] = function(o) s:pop(1, o) end,
  ["session:messages"] = function(o) s:messages(o) end,
  ["session:context"] = function(o) s:context(o) end,
  ["session:entries"] = function(o) s:entries(o) end,
  ["session:tree"] = function(o) s:tree(o) end,
  ["session:tokens"] = function(o) s:tokens(o) end,
  ["session:usage"] = function(o) s:usage(o) end,
  ["session:watch"] = function(o) s:watch(o) end,
  ["session:uncompact"] = function(o) s:uncompact(first, o) end,
  ["session:suspend"] = function(o) s:suspend(o) end,
  ["session:checkpoint"] = function(o) s:checkpoint(o) end,
  ["session:checkpoints"] = function(o) s:checkpoints(o) end,
  ["session:restore"] = function(o) s:restore("x", o) end,
  ["session:fork"] = function(o) s:fork(o) end,
  ["session:child"] = function(o) s:child(o) end,
  ["session:merge"] = function(o)
    o.summary = o.summary == nil and "x" or o.summary
    s:merge(o)
  end,
  ["session:discard"] = function(o) s:discard(o) end,
  ["session:export"] = function(o)
    o.write = o.write or nothing
    s:export(o)
  end,
}

local function function_of(name)
  return name:match "^[^:]+:%a+" or name:match "^[^:]+"
end

-- A call raises at a line of this function, and names the public one and the words.
local function raises(call, who, words, ...)
  local ok, message = pcall(call, ...)
  assert.is_false(ok, ("%s took it: %s"):format(who, words))
  local at, text = message:match "options_spec%.lua:(%d+): (.*)"
  local about = debug.getinfo(call, "S")
  assert.truthy(at, message)
  assert.is_true(about.linedefined <= tonumber(at) and tonumber(at) <= about.lastlinedefined,
    message)
  assert.equal(who, text:sub(1, #who), message)
  assert.truthy(text:find(words, 1, true), message)
end

local NEGATIVE = { count = -1, positive = -1, timeout = -7, span = -1, moment = -1 }

describe("options", function()
  it("are declared by each function that takes some, and walked here", function()
    for name in pairs(options.shapes) do
      assert.is_function(calls[name], name)
    end
    for name in pairs(calls) do
      assert.is_table(options.shapes[name], name)
    end
  end)

  for name, call in pairs(calls) do
    local who, shape = function_of(name), options.shapes[name]

    it("have known names: " .. name, function()
      raises(call, who, "zzzzzz", { zzzzzz = 1 })
    end)

    it("have their types: " .. name, function()
      for option, kind in pairs(shape) do
        local wrong = coroutine.create(nothing) -- it is nothing that any option takes
        local ok, message = pcall(call, { [option] = wrong })
        if kind ~= "any" then
          raises(call, who, option, { [option] = wrong })
        elseif not ok then
          assert.matches("options_spec%.lua:%d+: ", message)
        end
      end
    end)

    it("have their ranges: " .. name, function()
      for option, kind in pairs(shape) do
        if type(kind) == "table" then
          raises(call, who, option, { [option] = "zzzzzz" })
        end
        for one in type(kind) == "string" and kind:gmatch "%a+" or nothing do
          if NEGATIVE[one] then
            raises(call, who, option, { [option] = NEGATIVE[one] })
            raises(call, who, option, { [option] = 0 / 0 })
            raises(call, who, option, { [option] = math.huge })
          end
        end
        if kind == "positive" then
          raises(call, who, option, { [option] = 0 })
        end
      end
    end)
  end

  it("that had another name once are told by the new one", function()
    local function call() store:create { checkpoint = { seconds = 5 } } end
    raises(call, "store:create", "unknown option 'seconds', did you mean 'interval'?")
    local function short() store:list { agen = "x" } end
    raises(short, "store:list", "did you mean 'agent'?")
  end)

  it("are times in all spellings", function()
    assert.equal(1, #assert(store:list { since = "24h" }))
    assert.equal(0, #assert(store:list { ["until"] = "24h" }))
    assert.equal(1, #assert(store:list { since = "2020-02-29" }))
    assert.has_error(function() store:list { since = "2021-02-29" } end)
    assert(s:set_timeout "2s")
    assert(s:set_timeout(-1))
    assert.is_false(s:watch { timeout_ms = "1ms" })
    assert(s:set_ttl "24h")
    assert(store:purge { retention = "24h", dry_run = true })
  end)

  it("of a turn's usage are counts, by any provider's name", function()
    for _, wrong in ipairs { { input = "12" }, { output_tokens = -1 }, { cacheRead = 1.5 } } do
      local function call() s:turn({ user "x" }, { usage = wrong }) end
      raises(call, "session:turn", "option 'usage': " .. next(wrong))
    end
    assert(s:turn({ user "x" }, { usage = { prompt_tokens = 3, details = "as it says",
      cache_read_input_tokens = sessile.null } }))
    assert.equal(3, s:usage().input)
  end)

  it("of 0 are no limit, wherever a number limits", function()
    assert.equal(2, #s:messages { limit = 0, last = 0 })
    assert.equal(1, #store:list { limit = 0 })
    local hits = 0
    for _ in store:search("hello", { limit = 0 }) do hits = hits + 1 end
    assert.equal(1, hits)
    local _, info = s:context { window = 0 }
    assert.is_nil(info.room)
  end)
end)

-- ---------------------------------------------------------------- meta.lua

-- "Store:create" as errors call it: "store:create".
local function lower(name)
  return (name:gsub("^%u", string.lower))
end

-- {class = {own = {field = true}, parents = {class, …}}}
local function classes_of(text)
  local classes, current = {}, nil
  for line in text:gmatch "[^\n]+" do
    local name, parents = line:match "^%-%-%-@class (sessile%.[%w]+):?(.*)$"
    local field = line:match "^%-%-%-@field ([%w_]+)%??%s"
    if name then
      current = { own = {}, parents = {} }
      classes[name] = current
      for parent in parents:gmatch "sessile%.%w+" do
        table.insert(current.parents, parent)
      end
    elseif field and current then
      current.own[field] = true
    elseif not line:find "^%-%-%-" then
      current = nil
    end
  end
  return classes
end

local function add_fields(set, classes, name)
  options.add(set, classes[name].own)
  for _, parent in ipairs(classes[name].parents) do
    add_fields(set, classes, parent)
  end
end

-- What the parameters of a function that are tables of options have: {option = true}, or nil.
local function annotated(block, classes)
  local set
  for param, kind in block:gmatch "@param (%w+)%?? ([^@]+)" do
    if param == "opts" or param == "options" or param == "given" or param == "which" then
      set = set or {}
      for class in kind:gmatch "sessile%.%u%w+" do
        if classes[class] then add_fields(set, classes, class) end
      end
      for field in (kind:match "%b{}" or ""):gmatch "([%w_]+): " do
        set[field] = true
      end
    end
  end
  return set
end

local meta = guides.read "lua/sessile/meta.lua"
local classes = classes_of(meta)

-- The options of each function that takes some: {["Store:create"] = {option = true}, …}
local documented = {}
for block, name in meta:gmatch "\n\n(%-%-%-.-)function ([%w_.:]+)%(" do
  documented[name] = annotated(block:match ".*\n\n(.-)$" or block, classes)
end

describe("meta.lua", function()
  for name, set in pairs(documented) do
    local who = lower(name):gsub("^anyMemory:", "memory:"):gsub("^tools%.", "sessile.%0")
    if not name:find "^State:" and not name:find "^Memories:" and name ~= "shared_verdict" then
      it("names the options of " .. who, function()
        local shape = options.shapes[who]
        assert.is_table(shape, who .. " has no shape")
        for option in pairs(set) do
          assert.truthy(shape[option], ("%s does not take '%s'"):format(who, option))
        end
        for option in pairs(shape) do
          assert.is_true(set[option], ("%s takes '%s', undocumented"):format(who, option))
        end
      end)
    end
  end

  for class, name in pairs {
    ["sessile.Limits"] = "sessile.open: limits", ["sessile.AgentInfo"] = "sessile.open: agent_info",
    ["sessile.AgentSettings"] = "sessile.open: agents", ["sessile.Tool"] = "sessile.open: tool",
    ["sessile.Triggers"] = "sessile.open: triggers", ["sessile.Place"] = "sessile.migrate: from",
    ["sessile.CheckpointRules"] = "sessile.open: checkpoint",
    ["sessile.HostPolicy"] = "sessile.open: policy",
    ["sessile.ModelCommand"] = "sessile.model: command",
    ["sessile.ModelEndpoint"] = "sessile.model: endpoint",
    ["sessile.ModelFile"] = "sessile.model: lua", ["sessile.WriteEntry"] = "session:write: entry",
  } do
    it("names the fields of " .. name, function()
      local set = {}
      add_fields(set, classes, class)
      for option in pairs(set) do
        assert.truthy(options.shapes[name][option], ("%s: '%s'"):format(name, option))
      end
      for option in pairs(options.shapes[name]) do
        assert.is_true(set[option], ("%s: '%s', undocumented"):format(name, option))
      end
    end)
  end
end)

-- They take what one memory takes, and some calls take `share` to say which one is meant.
describe("the memories of a session", function()
  for name, call in pairs(calls) do
    local method = name:match "^memory:(.*)$"
    if method and memories.methods[method] then
      it("take the documented options: " .. name, function()
        memory = assert(s:memory())
        local set = documented["Memories:" .. method]
          or meta:find("\nMemories." .. method .. " = shared_verdict\n", 1, true)
            and documented.shared_verdict
          or documented["AnyMemory:" .. method]
        local takes_share = not select(2, pcall(call, { share = "zzzzzz" })):find "unknown"
        assert.equal(takes_share, set.share == true)
        for option in pairs(set) do
          assert.truthy(option == "share" or options.shapes[name][option], option)
        end
        for option, kind in pairs(options.shapes[name]) do
          assert.is_true(set[option], option)
          if kind ~= "any" then
            raises(call, name, option, { [option] = coroutine.create(nothing) })
          end
        end
      end)
    end
  end
end)

-- ---------------------------------------------------------------- arguments

local function public()
  return {
    ["sessile."] = { sessile }, ["sessile.key."] = { sessile.key },
    ["sessile.tools."] = { sessile.tools },
    ["store:"] = { require "sessile.store".methods, function() return store end },
    ["session:"] = { require "sessile.session".methods, function() return s end },
    ["run:"] = { require "sessile.host".methods, function() return run end },
    ["agent:"] = { require "sessile.interaction.agent".methods, function() return agent end },
    ["encoding:"] = { require "sessile.encoding".methods, function() return encoding end },
    ["memory:"] = { require "sessile.memory".methods, function() return memory end },
  }
end

describe("an argument", function()
  for prefix, about in pairs(public()) do
    for name, call in pairs(about[1]) do
      if type(call) == "function" then
        local this = about[2]

        it("too many is refused: " .. prefix .. name, function()
          if name == "step" and not this then return end -- of sessile: as the kind of run takes
          local function more()
            local ten = { 1, 2, 3, 4, 5, 6, 7, 8, 9, { user = "ann" } }
            if this then return nil, call(this(), table.unpack(ten)) end
            return nil, call(table.unpack(ten))
          end
          raises(more, prefix .. name, "got more")
        end)

        it("of any type raises nowhere but at the call: " .. prefix .. name, function()
          if name == "close" or name == "watch" then return end -- one ends it, one waits
          local wrong = {
            7, -1, true, "", "ram:", "/proc/nowhere", {}, { 1 }, { zzz = 1 }, nothing, io.stdout,
            coroutine.create(nothing),
          }
          for i = 1, #wrong + 1 do
            for j = #wrong + 1, 1, -1 do
              local function try()
                if this then return nil, call(this(), wrong[i], wrong[j]) end
                return nil, call(wrong[i], wrong[j])
              end
              local ok, message = pcall(try)
              assert.is_true(ok or tostring(message):find "options_spec%.lua:%d+: " ~= nil,
                ("%s%s(%s, %s): %s"):format(prefix, name, tostring(wrong[i]),
                  tostring(wrong[j]), tostring(message)))
            end
          end
        end)
      end
    end
  end
end)
