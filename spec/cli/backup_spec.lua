-- sessile backup and backup restore: a store in one file, made while others write, and put back.
-- Own guard: logs are counted, of which a guard has two more; writers open the store by themselves.

local cli = require "spec.support.cli"
local lists = require "spec.support.lists"
local temp = require "spec.support.temp"
local sessile = require "sessile"

local home

cli.each_test(function(path) home = path end)

local function key()
  return sessile.key.file(home .. "/config/sessile/key")
end

local function store_of(url)
  return assert(sessile.open(url or home .. "/data/sessile", { key = key() }))
end

local function texts(store, id, user)
  local s = assert(store:resume { id = id, user = user or "" })
  local list = {}
  for entry in s:entries() do
    list[#list + 1] = entry.json
  end
  s:close()
  return list
end

describe("sessile backup", function()
  it("makes a file that any command can look into, and says what it holds", function()
    cli.done "new --id talk --title 'What was said'"
    cli.done "append talk hello"
    local before = temp.snapshot(home .. "/data/sessile/agents")
    local out, err = cli.done(("backup %s/b.db"):format(home))
    assert.matches("1 session in", out)
    assert.matches("keep the secret", out)
    assert.matches("sessile --store sqlite:", err, 1, true)
    assert.matches("What was said", (cli.done(("list --store sqlite:%s/b.db"):format(home))))
    assert.matches("hello", (cli.done(("show talk --store sqlite:%s/b.db"):format(home))))
    assert.equal(before, temp.snapshot(home .. "/data/sessile/agents"))
    -- Nothing of it is to be read in the file, and only its owner may read that.
    local bytes = temp.read(home .. "/b.db")
    assert.is_nil(bytes:find("hello", 1, true))
    assert.is_nil(bytes:find("What was said", 1, true))
    local pipe <close> = io.popen(("ls %s; stat -c %%a %s/b.db"):format(home, home))
    local listed = pipe:read "a"
    assert.matches("600", listed)
    assert.is_nil(listed:find "part") -- nothing else is left beside it
    assert.is_nil(listed:find "b%.db%-")
  end)

  it("gives no name to a file that another program still has open", function()
    cli.done "new --id talk"
    cli.done "append talk hello"
    local part = home .. "/b.db.part"
    local busy
    local store = store_of()
    local done, message, code = store:backup(home .. "/b.db", {
      progress = function(state)
        if not busy and state.stage == "verifying" then
          -- A reader that begins now, and stays: so the write-ahead log stays as well.
          busy = assert(sessile.open("sqlite:" .. part, { key = key() }))
          assert(busy:list())
        end
        return true
      end,
    })
    assert.is_not_nil(busy)
    assert.is_nil(done)
    assert.equal("EBUSY", code)
    assert.matches("another program has it open", message, 1, true)
    busy:close()
    assert(store:backup(home .. "/b.db"))
    store:close()
    assert.matches("hello", (cli.done(("show talk --store sqlite:%s/b.db"):format(home))))
  end)

  it("is no copy of itself", function()
    local url = ("sqlite:%s/own.db"):format(home)
    cli.done(("new --id talk --store %s"):format(url))
    local _, err, status = cli.sessile(("backup %s/own.db --update --store %s"):format(home, url))
    assert.not_equal(0, status)
    assert.matches("lead to the same store", err, 1, true)
  end)

  it("makes nothing when the file for the secrets is there already", function()
    cli.done "new --id talk"
    temp.write(home .. "/b.keys", "mine")
    local _, err, status = cli.sessile(("backup %s/b.db --keys %s/b.keys"):format(home, home))
    assert.not_equal(0, status)
    assert.matches("b.keys is there already", err, 1, true)
    assert.is_nil(io.open(home .. "/b.db"))
    assert.equal("mine", temp.read(home .. "/b.keys"))
  end)

  it("does not put its file beside a write-ahead log of another", function()
    cli.done "new --id talk"
    temp.write(home .. "/b.db-wal", "what an older database had not taken in")
    local _, err, status = cli.sessile(("backup %s/b.db"):format(home))
    assert.not_equal(0, status)
    assert.matches("b.db-wal is left from a database that is gone", err, 1, true)
    os.remove(home .. "/b.db-wal")
    cli.done(("backup %s/b.db"):format(home))
  end)

  it("writes over nothing, and says how to add to it", function()
    cli.done "new --id a"
    cli.done(("backup %s/b.db"):format(home))
    local bytes = temp.read(home .. "/b.db")
    cli.fails(1, ("backup %s/b.db"):format(home), "--update")
    assert.equal(bytes, temp.read(home .. "/b.db"))
    cli.done "new --id b"
    cli.done "append a more"
    local done = cli.json(("backup %s/b.db --update"):format(home))
    assert.equal(1, done.copied)
    assert.equal(1, done.continued)
    assert.matches("more", (cli.done(("show a --store sqlite:%s/b.db"):format(home))))
  end)

  it("follows a store whose keys were rotated, and no other one", function()
    cli.done "new --id a"
    cli.done(("backup %s/b.db"):format(home))
    cli.done "keys rotate"
    cli.done "new --id b"
    cli.done "append b resealed"
    assert.equal(1, cli.json(("backup %s/b.db --update"):format(home)).copied)
    assert.matches("resealed", (cli.done(("show b --store sqlite:%s/b.db"):format(home))))
    assert.equal(2, #cli.json(("keys status --store sqlite:%s/b.db"):format(home)).epochs)
    cli.done(("new --id c --store %s/other"):format(home))
    local _, err, code = cli.sessile(("backup %s/b.db --update --store %s/other"):format(home,
      home))
    assert.equal(6, code)
    assert.matches("not a copy of this store", err)
    -- Once all is resealed the old keys are dropped: that backup is of another time.
    cli.done "keys reseal"
    _, err, code = cli.sessile(("backup %s/b.db --update"):format(home))
    assert.equal(6, code)
    assert.matches("make a new copy", err)
    cli.done(("show b --store sqlite:%s/b.db"):format(home))
  end)

  it("tells a disk that is full, a folder that may not be written", function()
    cli.done "new --id a"
    local _, err, code = cli.sessile "backup /proc/none.db"
    assert.is_true(code == 7 or code == 1 or code == 3, err)
    cli.no_traceback(err)
    cli.write(home .. "/file", "")
    _, err, code = cli.sessile(("backup %s/file/b.db"):format(home))
    assert.not_equal(0, code)
    assert.matches("file", err, 1, true)
    -- A limit on the size of files stands in for a full disk.
    for n = 1, 20 do
      cli.done(("append a %s"):format(("x"):rep(20000) .. n))
    end
    _, err, code = cli.sessile(("backup %s/b.db"):format(home), nil,
      "sh -c 'trap \"\" XFSZ; ulimit -f 200; exec \"$@\"' sh")
    assert.equal(1, code, err)
    assert.is_nil(io.open(home .. "/b.db"))
    cli.no_traceback(err)
    cli.done(("backup %s/b.db"):format(home))
  end)
end)

describe("a backup while others write", function()
  -- Writes to its own sessions, and makes forks and children; says in a file what was
  -- acknowledged, before it goes on.
  local WRITER = [[
    local sessile = require "sessile"
    local place, key, name, log = ...
    local store = assert(sessile.open(place, { key = sessile.key.file(key) }))
    local said = assert(io.open(log, "w"))
    local s = assert(store:session(name))
    for n = 1, 100000 do
      local id = assert(s:append { role = "user", content = name .. " " .. n })
      said:write(name, " ", n, "\n")
      said:flush()
      if n % 10 == 0 then
        assert(s:fork(id, { id = name .. "-fork-" .. n })):close()
        local child = assert(s:child { id = name .. "-child-" .. n })
        assert(child:append { role = "user", content = "child" })
        child:close()
        os.execute "sleep 0.1" -- others are to get on as well
      end
    end
  ]]

  it("has all that was acknowledged before, and what it names; and checks clean", function()
    cli.done "new --id first"
    cli.write(home .. "/writer.lua", WRITER)
    local pids = {}
    for n = 1, 3 do
      local pipe <close> = io.popen(
        ("HOME=%s %s run %s/writer.lua %s/data/sessile %s/config/sessile/key w%d %s/said%d "
          .. ">/dev/null 2>%s/wrong%d & echo $!"):format(home, cli.binary, home, home, home, n,
          home, n, home, n))
      pids[n] = pipe:read "n"
    end
    local function acknowledged(n)
      local file <close> = io.open(home .. "/said" .. n)
      local last = 0
      for number in (file and file:read "a" or ""):gmatch "w%d (%d+)\n" do
        last = math.max(last, tonumber(number))
      end
      return last
    end
    for _ = 1, 600 do
      if acknowledged(1) > 20 and acknowledged(2) > 20 and acknowledged(3) > 20 then
        break
      end
      os.execute "sleep 0.1"
    end
    local before, found = {}, {}
    for round = 1, 3 do
      for n = 1, 3 do
        before[n] = acknowledged(n)
      end
      local out = cli.json(("backup %s/b.db%s"):format(home, round > 1 and " --update" or ""))
      assert.equal(0, out.conflicts + out.failed + out.damaged)
      found[round] = { table.unpack(before) }
      local store = store_of("sqlite:" .. home .. "/b.db")
      local ids = {}
      for _, row in ipairs(assert(store:list())) do
        ids[row.id] = true
      end
      for n = 1, 3 do
        local s = assert(store:resume("w" .. n))
        local have = lists.field(s:messages(), "content")
        for i = 1, #have do
          assert.equal(("w%d %d"):format(n, i), have[i])
        end
        assert.is_true(#have >= before[n], ("%d of %d"):format(#have, before[n]))
        for _, child in ipairs(assert(s:subsessions())) do
          assert.is_true(ids[child.id], child.id)
        end
        s:close()
      end
      for id in pairs(ids) do
        local s = assert(store:resume(id))
        if s.origin then
          assert.is_true(ids[s.origin.id], s.origin.id)
        end
        s:close()
      end
      store:close()
      cli.done(("check --store sqlite:%s/b.db"):format(home))
    end
    for n = 1, 3 do
      os.execute("kill -9 " .. pids[n])
      assert.equal("", temp.read(home .. "/wrong" .. n))
      assert.is_true(found[3][n] > found[1][n]) -- they wrote all the while
    end
  end)
end)

describe("a backup that is killed", function()
  it("leaves no file of that name, and continues", function()
    cli.done "new --id first"
    local store = store_of()
    for n = 1, 60 do
      local s = assert(store:create { id = "s" .. n })
      for i = 1, 20 do
        assert(s:append { role = "user", content = i .. ("x"):rep(3000) })
      end
      s:close()
    end
    local first = texts(store, "s60")
    store:close()
    local killed = 0
    for i = 1, 15 do
      local _, _, code = cli.sessile(("backup %s/b.db"):format(home), nil,
        ("timeout -s KILL 0.%03d"):format(10 + 10 * i))
      killed = killed + (code == 137 and 1 or 0)
      if io.open(home .. "/b.db") then -- whole, whatever became of the command since
        break
      end
      assert.equal(137, code)
    end
    assert.is_true(killed > 1)
    if not io.open(home .. "/b.db") then
      local done = cli.json(("backup %s/b.db"):format(home))
      assert.equal(61, done.verified)
    end
    store = store_of("sqlite:" .. home .. "/b.db")
    assert.equal(61, #assert(store:list()))
    assert.same(first, texts(store, "s60"))
    store:close()
  end)
end)

describe("sessile backup restore", function()
  it("puts a store back as it was", function()
    cli.done "new --id talk --title 'A talk'"
    cli.done "append talk hello"
    cli.done "new --id gone"
    cli.done "delete gone --soft --yes"
    cli.done(("backup %s/b.db"):format(home))
    local logs = temp.read(home .. "/data/sessile/agents/main/talk.jsonl")
    cli.fails(1, ("backup restore %s/b.db"):format(home), "--into")
    os.execute(("rm -rf %s/data/sessile"):format(home))
    assert.matches("2 sessions", (cli.done(("backup restore %s/b.db"):format(home))))
    assert.equal(logs, temp.read(home .. "/data/sessile/agents/main/talk.jsonl"))
    assert.matches("hello", (cli.done "show talk"))
    cli.done "undelete gone"
  end)

  it("adds what is missing and overwrites nothing with --into", function()
    cli.done "new --id kept"
    cli.done "append kept before"
    cli.done "new --id lost"
    cli.done(("backup %s/b.db"):format(home))
    cli.done "append kept after"
    cli.done "delete lost --yes"
    cli.done(("backup restore %s/b.db --into"):format(home))
    assert.matches("after", (cli.done "show kept"))
    cli.done "show lost"
  end)

  it("says when there is no backup there, or something else", function()
    cli.done "new --id a"
    local before = temp.snapshot(home .. "/data")
    local _, err, code = cli.sessile(("backup restore %s/none.db --store %s/x"):format(home, home))
    assert.equal(3, code)
    assert.matches("there is no backup", err)
    cli.write(home .. "/text", ("no database\n"):rep(1000))
    _, err, code = cli.sessile(("backup restore %s/text --store %s/x"):format(home, home))
    assert.not_equal(0, code)
    assert.matches("text", err, 1, true)
    cli.no_traceback(err)
    assert.equal(before, temp.snapshot(home .. "/data"))
    assert.is_nil(io.open(home .. "/none.db"))
  end)
end)

describe("users' secrets kept apart", function()
  local function fill()
    cli.done "new --id mine"
    local store = store_of()
    local s = assert(store:create { id = "hers", user = "ann" })
    assert(s:append { role = "user", content = "private" })
    s:close()
    return store
  end

  it("are in no backup, and come back with their own file", function()
    fill():close()
    local out = cli.done(("backup %s/b.db --keys %s/b.keys"):format(home, home))
    assert.matches("apart", out)
    local store = store_of("sqlite:" .. home .. "/b.db")
    local s, message, code = store:resume { id = "hers", user = "ann" }
    assert.is_nil(s)
    assert.equal("EDAMAGED", code) -- nobody was forgotten
    assert.matches("bring back a copy of it", message)
    assert.equal(0, assert(store:purge_forgotten()).sessions)
    assert(store:resume "mine"):close()
    store:close()
    os.execute(("rm -rf %s/data/sessile"):format(home))
    cli.done(("backup restore %s/b.db --keys %s/b.keys"):format(home, home))
    store = store_of()
    assert.equal("private",
      assert(store:resume { id = "hers", user = "ann" }):messages()[1].content)
    store:close()
  end)

  it("of who was forgotten leave a backup when it is brought up to date", function()
    local store = fill()
    cli.done(("backup %s/b.db"):format(home))
    local there = store_of("sqlite:" .. home .. "/b.db")
    assert(there:resume { id = "hers", user = "ann" }):close()
    there:close()
    assert(store:forget "ann")
    store:close()
    local done = cli.json(("backup %s/b.db --update"):format(home))
    assert.equal(1, done.users_removed)
    there = store_of("sqlite:" .. home .. "/b.db")
    local s, _, code = there:resume { id = "hers", user = "ann" }
    assert.is_nil(s)
    assert.equal("ESEALED", code)
    there:close()
  end)

  -- Runs a command in the folder of the store, with the name of ann's secret as "$1".
  local function damage(command)
    assert(os.execute(("cd %s/data/sessile && set -- user-* && %s"):format(home, command)))
  end

  local function read_hers(url)
    local store = store_of(url)
    local text, message, code = store:resume { id = "hers", user = "ann" }
    if text then
      text = text:messages()[1].content
    end
    store:close()
    return text, message, code
  end

  -- What is wrong with the secret in the store, and what a backup says of it.
  local losses = {
    { "whose name has a flipped bit", 'mv "$1" "U${1#u}"', "missing in the source" },
    { "that is gone", 'rm "$1"', "missing in the source" },
    { "that is gone, beside a marker that somebody planted",
      [[rm "$1"; umask 077; echo '{"sessile_forgotten":1}' >"forgotten-${1#user-}"]],
      "missing in the source" },
    { "with a flipped bit", [[sed -i 's/"s":"../"s":"==/' "$1"]], "or damaged there" },
  }

  for _, apart in ipairs { false, true } do
    for _, loss in ipairs(losses) do
      it(("%s stay in a backup%s, which fails"):format(loss[1], apart and " of their own" or ""),
        function()
          temp.files_only "a secret is a file"
          fill():close()
          local keys = apart and (" --keys %s/b.keys"):format(home) or ""
          cli.done(("backup %s/b.db%s"):format(home, keys))
          damage(loss[2])
          for _ = 1, 2 do
            local out, err, code = cli.sessile(("backup %s/b.db --update%s --json"):format(home,
              keys))
            assert.equal(5, code, err)
            assert.matches('"users_kept":%s*1', out)
            assert.matches('"users_removed":%s*0', out)
            assert.matches("user%-", out)
            assert.matches(loss[3], out, 1, true)
          end
          os.execute(("rm -rf %s/data/sessile"):format(home))
          cli.done(("backup restore %s/b.db%s"):format(home, keys))
          assert.equal("private", (read_hers()))
        end)
    end
  end

  it("are replaced in a backup when the user was forgotten and came back", function()
    local store = fill()
    cli.done(("backup %s/b.db"):format(home))
    assert(store:forget "ann")
    local s = assert(store:create { id = "again", user = "ann" })
    assert(s:append { role = "user", content = "new" })
    s:close()
    store:close()
    local done = cli.json(("backup %s/b.db --update"):format(home))
    assert.equal(0, done.users_kept)
    local url = ("sqlite:%s/b.db"):format(home)
    local text, _, code = read_hers(url)
    assert.is_nil(text)
    assert.equal("ESEALED", code)
    store = store_of(url)
    assert.equal("new", assert(store:resume { id = "again", user = "ann" }):messages()[1].content)
    store:close()
  end)

  it("stay in a backup when a lost one was made again", function()
    temp.files_only "a secret is a file"
    fill():close()
    cli.done(("backup %s/b.db"):format(home))
    damage 'mv "$1" "U${1#u}"'
    local store = store_of()
    assert(store:create { id = "again", user = "ann" }):close()
    store:close()
    local _, _, code = read_hers()
    assert.equal("EDAMAGED", code)
    local out, _, status = cli.sessile(("backup %s/b.db --update --json"):format(home))
    assert.equal(5, status)
    assert.matches("is another one in the source", out, 1, true)
    assert.equal("private", (read_hers(("sqlite:%s/b.db"):format(home))))
  end)

  it("hide no damage of a first line where they are kept apart", function()
    fill():close()
    cli.done(("backup file:%s/b --keys %s/b.keys"):format(home, home))
    local function copy(to)
      local done = assert(sessile.migrate({ url = home .. "/b", key = key() }, home .. to))
      return done.forgotten, done.damaged
    end
    assert.same({ 1, 0 }, { copy "/one" })
    local damaged = [[sed -i '1s/"key":"../"key":"==/' %s/b/agents/main/=*.jsonl]]
    assert(os.execute(damaged:format(home)))
    assert.same({ 0, 1 }, { copy "/two" })
  end)
end)
