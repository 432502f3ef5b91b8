-- Whole stores copied into others: unchanged, resealed, interrupted, while others write.
-- Own guard: logs are counted, of which a guard has two more.

local cli = require "spec.support.cli"
local kinds = require "spec.support.kinds"
local messages = require "spec.support.messages"
local temp = require "spec.support.temp"
local sessile = require "sessile"

local user, assistant = messages.user, messages.assistant

local K1, K2 = sessile.key.secret("hex:" .. ("1a"):rep(32)),
  sessile.key.secret("hex:" .. ("2b"):rep(32))

-- A store with something of everything that has to come along.
local function fill(store)
  local talk = assert(store:create { id = "talk", title = "A talk", metadata = { n = 1 } })
  for n = 1, 30 do
    assert(talk:turn({ user("question " .. n), assistant("answer " .. n) },
      { usage = { input = n, output = 2 * n } }))
  end
  local at = assert(talk:turn { user "branch here", assistant "yes" }).ids[1]
  assert(talk:label(at, "mark"))
  assert(talk:checkpoint { state = { step = 1 }, name = "here" })
  assert(talk:branch "0000000a")
  assert(talk:append(user "another way"))
  assert(talk:fork(at, { id = "fork" })):close()
  local child = assert(talk:child { id = "child", agent = "searcher" })
  assert(child:append(user "look it up"))
  child:close()
  talk:close()
  local asleep = assert(store:create { id = "asleep", ttl = "30d" })
  assert(asleep:append(user "wait"))
  assert(asleep:suspend { reason = "a person decides" })
  asleep:close()
  assert(store:create { id = "gone" }):close()
  assert(store:delete("gone", { soft = true }))
  local theirs = assert(store:create { id = "of ann", user = "ann" })
  assert(theirs:append(user "private"))
  theirs:close()
end

-- What a reader sees of a store, as one value.
local function seen(store)
  local all = {}
  for _, status in ipairs { "active", "suspended", "archived", "expired", "deleted" } do
    for _, row in ipairs(assert(store:list { status = status })) do
      local one = {
        status = row.status, title = row.title, entries = row.entries, messages = row.messages,
        created = row.created, modified = row.modified, labels = row.labels, ttl = row.ttl,
      }
      if status ~= "deleted" then
        local s = assert(store:resume { id = row.id, agent = row.agent, user = row.user or "" })
        one.head, one.texts = s:head(), {}
        for entry in s:entries() do
          one.texts[#one.texts + 1] = entry.json
        end
        one.context = {}
        for i, message in ipairs(assert(s:context())) do
          one.context[i] = message.content
        end
        s:close()
      end
      all[("%s/%s"):format(row.agent, row.id)] = one
    end
  end
  return all
end

-- Names, bytes and times of all that is under a folder.
local function frozen(folder)
  local pipe <close> = assert(io.popen(
    ("cd %s && find . -printf '%%p %%s %%T@ %%C@\\n' | LC_ALL=C sort"):format(folder)))
  return pipe:read "a" .. temp.snapshot(folder)
end

local function logs(folder)
  local list = {}
  for _, path in ipairs(temp.files(folder)) do
    if path:find "%.jsonl$" or path:find "/keyring$" or path:find "/user%-[^/]*$" then
      list[path:sub(#folder + 1)] = temp.read(path)
    end
  end
  return list
end

local function count(map)
  local n = 0
  for _ in pairs(map) do
    n = n + 1
  end
  return n
end

describe("a store copied as it stands", function()
  local folder, from

  temp.each_test(function(path)
    folder = path
    from = folder .. "/from"
    local store = assert(sessile.open(from, { key = K1 }))
    fill(store)
    store:close()
  end)

  it("is the same bytes, and the source is not touched", function()
    os.execute(("rm -f %s/agents/*/*.idx %s/agents/*/.catalog"):format(from, from))
    local before = frozen(from)
    local done = assert(sessile.migrate({ url = from, key = K1 }, folder .. "/to"))
    assert.equal(before, frozen(from))
    assert.is_true(done.as_it_stands and done.moment)
    assert.is_false(done.unopened)
    assert.equal(6, done.copied)
    assert.equal(6, done.verified)
    assert.equal(1, done.users)
    assert.same(logs(from), logs(folder .. "/to"))
    local a, b = assert(sessile.open(from, { key = K1 })),
      assert(sessile.open(folder .. "/to", { key = K1 }))
    assert.same(seen(a), seen(b))
    assert.equal(0, assert(b:check()).damaged or 0)
    assert(assert(b:resume "talk"):append(user "and on it goes"))
    a:close()
    b:close()
  end)

  it("wants no key, and says that nothing was opened", function()
    -- No key is configured for this process: the default one is looked for and not there.
    local home <const> = cli.begin()
    local out, err, code = cli.sessile(("migrate %s %s/to"):format(from, home))
    assert.equal(0, code, err)
    assert.matches("as they stand", out)
    assert.matches("only their bytes were compared", err)
    assert.same(logs(from), logs(home .. "/to"))
    cli.finish()
  end)

  it("brings what came since, and names what differs", function()
    local to = folder .. "/to"
    assert(sessile.migrate({ url = from, key = K1 }, to))
    local store = assert(sessile.open(from, { key = K1 }))
    local s = assert(store:resume "talk")
    for n = 1, 300 do
      assert(s:append(user("more " .. n)))
    end
    s:close()
    assert(store:create { id = "new" }):close()
    store:close()
    local other = assert(sessile.open(to, { key = K1 }))
    assert(assert(other:resume "fork"):append(user "gone on by itself"))
    assert(assert(other:resume { id = "of ann", user = "ann" }):append(user "one way"))
    other:close()
    store = assert(sessile.open(from, { key = K1 }))
    assert(assert(store:resume { id = "of ann", user = "ann" }):append(user "another way"))
    store:close()

    local there = logs(to)
    local done = assert(sessile.migrate({ url = from, key = K1 }, to))
    assert.equal(1, done.copied)
    assert.equal(1, done.continued)
    assert.equal(1, done.conflicts)
    assert.equal(4, done.kept)
    assert.equal("ECONFLICT", done.failures[1].code)
    local a, b = logs(from), logs(to)
    assert.equal(a["/agents/main/talk.jsonl"], b["/agents/main/talk.jsonl"])
    assert.equal(there["/agents/main/fork.jsonl"], b["/agents/main/fork.jsonl"])
    local name = "/" .. "agents/" .. done.failures[1].log .. ".jsonl"
    assert.equal(there[name], b[name])

    done = assert(sessile.migrate({ url = from, key = K1 }, to, { replace = true }))
    assert.equal(1, done.replaced)
    assert.equal(0, done.conflicts)
    assert.equal(a[name], logs(to)[name])
    local kept = io.popen("cat " .. to .. "/agents/main/*.replaced-*"):read "a"
    assert.equal(there[name], kept)
  end)

  it("does not copy a write that was never finished, nor mend it in the source", function()
    local path = from .. "/agents/main/talk.jsonl"
    local whole = temp.read(path)
    local last = whole:match "[^\n]*\n$"
    temp.write(path, whole .. last:sub(1, #last // 2))
    local before = frozen(from)
    local done = assert(sessile.migrate({ url = from, key = K1 }, folder .. "/to"))
    assert.equal(#last // 2, done.unfinished)
    assert.equal(0, done.damaged)
    assert.equal(before, frozen(from))
    assert.equal(whole, temp.read(folder .. "/to/agents/main/talk.jsonl"))
  end)

  it("names what is damaged, carries it as it is, and continues with the rest", function()
    local path = from .. "/agents/main/talk.jsonl"
    local text = temp.read(path)
    local at = #text // 2
    temp.write(path, text:sub(1, at - 1) .. (text:sub(at, at) == "A" and "B" or "A")
      .. text:sub(at + 1))
    local done = assert(sessile.migrate({ url = from, key = K1 }, folder .. "/to"))
    assert.equal(1, done.damaged)
    assert.equal("main/talk", done.failures[1].log)
    assert.equal("EDAMAGED", done.failures[1].code)
    assert.same(logs(from), logs(folder .. "/to"))
    -- If it were resealed it would be another session: it is left out, and named.
    done = assert(sessile.migrate({ url = from, key = K1 }, { url = folder .. "/new", key = K2 }))
    assert.equal(1, done.damaged)
    assert.equal(5, done.copied)
    assert.equal("EDAMAGED", done.failures[1].code)
    assert.is_nil(io.open(folder .. "/new/agents/main/talk.jsonl"))
  end)

  it("tells a log that was cut off by its index", function()
    local store = assert(sessile.open(from, { key = K1 }))
    local s = assert(store:create { id = "long" })
    for n = 1, 700 do
      assert(s:append(user("line " .. n)))
    end
    s:close()
    store:close()
    local path = from .. "/agents/main/long.jsonl"
    local lines = {}
    for line in temp.read(path):gmatch "[^\n]*\n" do
      lines[#lines + 1] = line
    end
    temp.write(path, table.concat(lines, "", 1, 100))
    local done = assert(sessile.migrate({ url = from, key = K1 }, folder .. "/to"))
    assert.equal(1, done.damaged)
    assert.equal("ETRUNCATED", done.failures[1].code)
    assert.equal("main/long", done.failures[1].log)
  end)

  it("leaves users forgotten", function()
    local store = assert(sessile.open(from, { key = K1 }))
    assert(store:forget "ann")
    store:close()
    local done = assert(sessile.migrate({ url = from, key = K1 }, folder .. "/to"))
    assert.equal(1, done.forgotten)
    assert.equal(0, done.users)
    assert.same(logs(from), logs(folder .. "/to"))
    done = assert(sessile.migrate({ url = from, key = K1 }, { url = folder .. "/new", key = K2 }))
    assert.equal(1, done.forgotten)
    assert.equal(0, #done.failures)
  end)
end)

describe("between two kinds of store", function()
  after_each(kinds.clean)

  kinds.each(function(from_name, from)
    kinds.each(function(to_name, to)
      it(("%s to %s: everything comes along"):format(from_name, to_name), function()
        if from.reason or to.reason then
          return pending(from.reason or to.reason)
        end
        local from_url, to_url = from.place(), to.place()
        local store = assert(sessile.open(from_url, { key = from.key }))
        fill(store)
        local before = seen(store)
        store:close()
        local change = (from.key == false) ~= (to.key == false)
        local given = to.key == from.key and { url = to_url } or { url = to_url, key = to.key }
        if change then
          local done, message, code = sessile.migrate({ url = from_url, key = from.key }, given)
          assert.is_nil(done)
          assert.equal("EINVALID", code, message)
        end
        local done = assert(sessile.migrate({ url = from_url, key = from.key }, given,
          { change = change }))
        assert.equal(not change, done.as_it_stands)
        assert.equal(6, done.copied)
        assert.equal(6, done.verified)
        store = assert(sessile.open(to_url, { key = to.key }))
        assert.same(before, seen(store))
        store:close()
        -- More of it, brought by another run.
        store = assert(sessile.open(from_url, { key = from.key }))
        assert(assert(store:resume "talk"):turn { user "since", assistant "then" })
        before = seen(store)
        store:close()
        done = assert(sessile.migrate({ url = from_url, key = from.key }, given,
          { change = change, into = true }))
        assert.equal(1, done.continued)
        assert.equal(5, done.kept)
        store = assert(sessile.open(to_url, { key = to.key }))
        assert.same(before, seen(store))
        store:close()
      end)
    end)
  end)
end)

describe("a store that is resealed", function()
  temp.each_test()

  it("adds to a store with sessions only when that is said", function()
    local folder = temp.dir()
    local a = assert(sessile.open(folder .. "/a", { key = K1 }))
    assert(a:create { id = "one" }):close()
    assert(assert(a:create { id = "both" }):append(user "of a"))
    local b = assert(sessile.open(folder .. "/b", { key = K2 }))
    assert(b:create { id = "two" }):close()
    assert(assert(b:create { id = "both" }):append(user "of b"))
    local _, _, code = sessile.migrate(a, b)
    assert.equal("EEXISTS", code)
    local done = assert(sessile.migrate(a, b, { into = true }))
    assert.equal(1, done.copied)
    assert.equal(1, done.conflicts)
    assert.equal("main/both", done.failures[1].log)
    assert.equal("of b", assert(b:resume "both"):messages()[1].content)
    a:close()
    b:close()
  end)

  it("needs both keys", function()
    local folder = temp.dir()
    local a = assert(sessile.open(folder .. "/a", { key = K1 }))
    assert(a:create { id = "one" }):close()
    a:close()
    local _, message, code = sessile.migrate({ url = folder .. "/a", key = K2 }, folder .. "/b")
    assert.equal("ESEALED", code, message)
    assert.is_nil(io.open(folder .. "/b/keyring"))
  end)
end)

describe("a copy that is killed", function()
  local home

  cli.each_test(function(path) home = path end)

  for _, way in ipairs {
    { "as it stands", "" }, { "resealed", "--to-key-file HOME/other.key --into" },
    { "in a database", "", "sqlite:HOME/to.db" },
  } do
    it("continues, " .. way[1], function()
      local to = (way[3] or "HOME/to"):gsub("HOME", home)
      cli.done "new --id first"
      local store = assert(sessile.open(home .. "/data/sessile",
        { key = sessile.key.file(home .. "/config/sessile/key"), durability = "none" }))
      for n = 1, 40 do
        local s = assert(store:create { id = "s" .. n })
        for i = 1, 25 do
          assert(s:turn { user(("%d.%d "):format(n, i) .. ("x"):rep(2000)), assistant "yes" })
        end
        s:close()
      end
      local before = seen(store)
      store:close()
      cli.write(home .. "/other.key", "hex:" .. ("2c"):rep(32) .. "\n")
      os.execute(("chmod 600 %s/other.key"):format(home))
      local words = ("migrate %s/data/sessile %s %s"):format(home, to,
        (way[2]:gsub("HOME", home)))
      local killed = 0
      for i = 1, 20 do
        local _, _, code = cli.sessile(words, nil, ("timeout -s KILL 0.%03d"):format(8 + 7 * i))
        killed = killed + (code == 137 and 1 or 0)
      end
      assert.is_true(killed > 2, killed .. " of 20 were killed")
      local out = cli.json(words)
      assert.equal(0, out.conflicts)
      assert.equal(41, out.verified)
      local key = way[2] ~= "" and home .. "/other.key" or home .. "/config/sessile/key"
      store = assert(sessile.open(to, { key = sessile.key.file(key) }))
      local after = seen(store)
      store:close()
      assert.same(before, after)
      assert.equal(41, count(after))
    end)
  end
end)

describe("sessile migrate", function()
  local home

  cli.each_test(function(path)
    home = path
    cli.done "new --id a"
    cli.done "append a hello"
  end)

  it("says what is wrong with the two stores it is given", function()
    local from = home .. "/data/sessile"
    for words, said in pairs {
      [from .. " " .. from .. "/"] = { 1, "same store" },
      [from .. "/none " .. home .. "/to"] = { 3, "there is no store" },
      [from .. " ram:"] = { 2, "is gone when" },
      ["ram: " .. from] = { 2, "is gone when" },
      [from .. " sqlit:" .. home .. "/x"] = { 1, "no store for" },
      [from] = { 2, "to" },
      [from .. " " .. home .. "/to --to-plain"] = { 0, "" },
      [from .. " " .. home .. "/to --to-plain --to-sealed"] = { 2, "exclude each other" },
      [from .. " " .. home .. "/to --store x"] = { 2, "not --store" },
    } do
      local _, err, code = cli.sessile("migrate " .. words)
      assert.equal(said[1], code, words .. "\n" .. err)
      assert.truthy(err:find(said[2], 1, true), words .. "\n" .. err)
      cli.no_traceback(err)
    end
  end)

  it("refuses to make plain of sealed unless it is said", function()
    cli.done("--plain --store " .. home .. "/plain new --id x")
    local _, err, code = cli.sessile(("migrate %s/data/sessile %s/plain --into"):format(home, home))
    assert.equal(1, code)
    assert.matches("would be plain there", err)
    assert.matches("--to-plain", err, 1, true)
    cli.done(("migrate %s/data/sessile %s/plain --into --to-plain"):format(home, home))
    assert.matches("hello", (cli.done("--plain --store " .. home .. "/plain show a")))
  end)

  it("ends with the code of damage when there is some", function()
    local path = home .. "/data/sessile/agents/main/a.jsonl"
    cli.done "append a more"
    cli.done "append a still"
    local text = temp.read(path)
    local at = text:find('"s":"', text:find("\n", 1, true), true) + 40
    temp.write(path, text:sub(1, at - 1) .. (text:sub(at, at) == "A" and "B" or "A")
      .. text:sub(at + 1))
    local out, err, code = cli.sessile(("migrate %s/data/sessile %s/to"):format(home, home))
    assert.equal(5, code, out .. err)
    assert.matches("main/a", err, 1, true)
    assert.matches("damaged", err)
  end)

  it("never shows a password", function()
    local url = "postgres://someone:swordfish@127.0.0.1:1/none?connect_timeout=1"
    for _, words in ipairs {
      url .. " " .. home .. "/to", home .. "/data/sessile '" .. url .. "'",
    } do
      local out, err, code = cli.sessile("migrate " .. words)
      assert.not_equal(0, code)
      assert.is_nil((out .. err):find("swordfish", 1, true), err)
    end
  end)
end)
