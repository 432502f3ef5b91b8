-- A session whose name in the store is damaged: it is listed, checked, copied and mended.
-- Own guard: logs are counted, of which a guard has two more.

local kinds = require "spec.support.kinds"
local postgres = require "spec.support.postgres"
local quote = require("spec.support.shell").quote
local temp = require "spec.support.temp"
local sessile = require "sessile"

local function read(store, id)
  local s <close> = assert(store:resume(id))
  return s:messages()[1].content
end

local function shell(command, ...)
  assert(os.execute(command:format(...)))
end

-- Changes what a table of a database says, by SQL, as a flipped bit does.
local function change(url, sql)
  local path = url:match "^sqlite:(.*)"
  if path then
    shell("sqlite3 %s %s", quote(path), quote(sql))
  else
    local base, schema = url:match "^(.-)[?&]schema=([%w_]+)"
    assert(postgres.sql(base, ("set search_path = %s; %s"):format(schema, sql)))
  end
end

-- Flips a bit in the name of the blob of a user's secret; back: puts it right again.
local function flip_secret(url, back)
  local folder = url:match "^file:(.*)"
  local from, to = "user-", "User-"
  if back then
    from, to = to, from
  end
  if folder then
    shell("cd %s && for f in %s*; do mv $f %s${f#%s}; done", folder, from, to, from)
  else
    change(url, ("update blobs set name = '%s' || substr(name, 6) where substr(name, 1, 5) = '%s'")
      :format(to, from))
  end
end

-- Flips a bit in the name of session "talk", or of the folder of agent "main".
local function flip(url, what)
  local folder = url:match "^file:(.*)"
  if folder and what == "name" then
    shell("mv %s/agents/main/talk.jsonl %s/agents/main/Talk.jsonl", folder, folder)
  elseif folder then
    shell("mv %s/agents/main %s/agents/mAin", folder, folder)
  elseif what == "name" then
    change(url, "update sessions set name = 'Talk' where name = 'talk'")
  else
    change(url, "update sessions set agent = 'mAin' where name = 'talk'")
  end
end

local function row_of(list, id)
  for _, row in ipairs(list) do
    if row.id == id then
      return row
    end
  end
end

describe("a damaged name", function()
  after_each(kinds.clean)

  kinds.each(function(name, kind)
    local url, store

    local function open(at, key)
      if key == nil then
        key = kind.key
      end
      return assert(sessile.open(at or url, { key = key }))
    end

    -- Two sessions, the name of one of them damaged.
    local function spoil(what)
      url = kind.place()
      store = open()
      for _, id in ipairs { "other", "talk" } do
        local s <close> = assert(store:create(id))
        assert(s:append { role = "user", content = "of " .. id })
      end
      assert(#store:list() == 2) -- its list cache knows both
      store:close()
      flip(url, what)
      store = open()
    end

    for _, what in ipairs { "name", "agent" } do
      it(("of the %s is found, and put right, in a store of %s"):format(what, name), function()
        if kind.reason then
          return pending(kind.reason)
        end
        spoil(what)
        local row = assert(row_of(store:list(), "talk"))
        assert.equal("EDAMAGED", row.status)
        local report = assert(store:check())
        assert.is_false(report.ok)
        local found
        for _, finding in ipairs(report.findings) do
          found = found or finding.what:find "belongs at .*main/talk" and finding
        end
        assert.matches(name:find "file" and "inode %d+" or "row %d+", assert(found).what)
        assert.equal("sessile check --salvage", found.next)
        assert(store:check { salvage = true })
        assert.is_true(assert(store:check()).ok)
        assert.equal("of talk", read(store, "talk"))
        assert.equal("of other", read(store, "other"))
        assert.equal("active", row_of(store:list(), "talk").status)
        store:close()
      end)

      it(("of the %s is right in a copy of a store of %s"):format(what, name), function()
        if kind.reason then
          return pending(kind.reason)
        end
        spoil(what)
        for i, options in ipairs { {}, { change = true } } do
          local to = temp.dir() .. "/copy" .. i
          local other = sessile.key.secret("hex:" .. ("2b"):rep(32))
          local target = i == 2 and { url = to, key = other } or to
          local done = assert(sessile.migrate(store, target, options))
          assert.equal(2, done.copied)
          assert.equal(0, done.failed)
          local said = false
          for _, failure in ipairs(done.failures) do
            said = said or failure.message:find("damaged here.*main/talk") ~= nil
          end
          assert.is_true(said)
          local copy = open(to, i == 2 and other or kind.key)
          assert.equal("of talk", read(copy, "talk"))
          assert.is_true(assert(copy:check()).ok)
          copy:close()
        end
        store:close()
      end)
    end

    it("is not given to it where another session has it, in a store of " .. name, function()
      if kind.reason then
        return pending(kind.reason)
      end
      spoil "name"
      local s <close> = assert(store:create "talk")
      assert(s:append { role = "user", content = "of another" })
      s:close()
      local report = assert(store:check { salvage = true })
      assert.is_false(report.ok)
      assert.equal("of another", read(store, "talk"))
      assert.equal(3, #store:list())
      store:close()
    end)

    if kind.key then
      it("keeps the epoch that its session needs, in a store of " .. name, function()
        if kind.reason then
          return pending(kind.reason)
        end
        spoil "name"
        assert(store:rotate())
        local done = assert(store:reseal())
        assert.equal(1, done.failed)
        assert(store:check { salvage = true })
        assert.equal("of talk", read(store, "talk"))
        assert.equal(0, assert(store:reseal()).failed)
        assert.equal("of talk", read(store, "talk"))
        store:close()
      end)

      it("of a user's secret is not taken for a forgotten user, in a store of " .. name, function()
        if kind.reason then
          return pending(kind.reason)
        end
        url = kind.place()
        store = open()
        local mine = { id = "mine", user = "ann" }
        local s <close> = assert(store:create(mine))
        assert(s:append { role = "user", content = "of ann" })
        s:close()
        store:close()
        flip_secret(url)
        store = open()
        local none, message, code = store:resume(mine)
        assert.is_nil(none)
        assert.equal("EDAMAGED", code)
        assert.matches("user%-%w+%-1, a user's secret, is missing, and nothing records", message)
        local named = {}
        for _, finding in ipairs(assert(store:check()).findings) do
          named[#named + 1] = finding.severity .. ": " .. finding.what .. " " .. finding.next
        end
        assert.equal(2, #named) -- the session, and what lost its name
        assert.matches("damage: .*a user's secret, as it seems, whose name is damaged.*name back",
          table.concat(named, "\n"))
        assert.same({ sessions = 0, bytes = 0 }, assert(store:purge_forgotten()))
        store:close()
        flip_secret(url, true)
        store = open()
        do
          local back <close> = assert(store:resume(mine))
          assert.equal("of ann", back:messages()[1].content)
        end
        -- A name that cannot be put right: the user is forgotten again.
        store:close()
        flip_secret(url)
        store = open()
        assert(store:forget "ann")
        none, message, code = store:resume(mine)
        assert.is_nil(none)
        assert.equal("ESEALED", code, message)
        local to = temp.dir() .. "/copy"
        assert(sessile.migrate(store, to))
        local copy = open(to)
        assert.is_true(assert(copy:check()).ok)
        assert.equal(1, assert(copy:purge_forgotten()).sessions)
        copy:close()
        assert.equal(1, assert(store:purge_forgotten()).sessions)
        store:close()
      end)

      it("of a user's secret, also in its name, is named by a check, in a store of " .. name,
        function()
          if kind.reason then
            return pending(kind.reason)
          end
          for _, first in ipairs { "tser-", "user-!", "user-a" } do
            url = kind.place()
            store = open()
            assert(store:create { id = "mine", user = "ann" }):close()
            assert.same({}, assert(store:check()).findings)
            store:close()
            local folder = url:match "^file:(.*)"
            if folder then
              shell("cd %s && for f in user-*; do mv $f '%s'${f#user-}; done", folder, first)
            else
              change(url, ("update blobs set name = '%s' || substr(name, 6) "):format(first)
                .. "where substr(name, 1, 5) = 'user-'")
            end
            store = open()
            local found
            for _, finding in ipairs(assert(store:check()).findings) do
              found = found or finding.what:find "^a user's secret" and finding
            end
            assert.equal("damage", assert(found, first).severity)
            assert.matches("name back", found.next, 1, true)
            store:close()
          end
        end)

      it("is left out of a copy without a key, which fails, in a store of " .. name, function()
        if kind.reason then
          return pending(kind.reason)
        end
        spoil "name"
        store:close()
        local to = temp.dir() .. "/copy"
        local done = assert(sessile.migrate({ url = url }, to))
        assert.equal(1, done.copied)
        assert.equal(1, done.failed)
        assert.matches("left out", done.failures[1].message)
      end)
    end
  end)

  -- What one flipped bit makes of the other parts of a name, in a store of files.
  local parts = {
    { "suffix", "main/talk.jsonl", "main/talk.jsonm" },
    { "suffix's last letter", "main/talk.jsonl", "main/talk.jsonL" },
    { "first letter, now a dot,", "main/nalk.jsonl", "main/.alk.jsonl" },
    { "folder's first letter, now a dot,", "nain", ".ain" },
  }

  for _, part in ipairs(parts) do
    local what, from, to = table.unpack(part)
    it(("in the %s is found, copied and put right"):format(what), function()
      local key = sessile.key.secret("hex:" .. ("5e"):rep(32))
      local dir = temp.dir() .. "/store"
      local agent, id = from:match "^%a+", from:match "/(%a+)" or "talk"
      local store = assert(sessile.open(dir, { key = key }))
      local s <close> = assert(store:create { id = id, agent = agent })
      assert(s:append { role = "user", content = "of talk" })
      s:close()
      store:close()
      shell("cd %s/agents && mv %s %s", dir, from, to)
      store = assert(sessile.open(dir, { key = key }))
      assert.equal("EDAMAGED", assert(row_of(store:list(), id)).status)
      local report = assert(store:check())
      assert.is_false(report.ok)
      local done = assert(sessile.migrate(store, dir .. "2"))
      assert.equal(1, done.copied)
      assert.matches("name is damaged here", assert(done.failures[1]).message, 1, true)
      assert(store:check { salvage = true })
      assert.is_true(assert(store:check()).ok)
      for _, at in ipairs { dir, dir .. "2" } do
        local whole <close> = assert(sessile.open(at, { key = key }))
        local back <close> = assert(whole:resume { id = id, agent = agent })
        assert.equal("of talk", back:messages()[1].content)
      end
      store:close()
    end)
  end

  -- The row and the index of a database have the name each; a bit flips in one of them.
  for mask, first in pairs { [0x20] = "T", [0x10] = "d", [0x02] = "v" } do
    it(("is found where the name is %salk in one page of SQLite"):format(first), function()
      local path = temp.dir() .. "/store.db"
      local key = sessile.key.secret("hex:" .. ("5e"):rep(32))
      local store = assert(sessile.open("sqlite:" .. path, { key = key }))
      for _, id in ipairs { "other", "talk" } do
        local s <close> = assert(store:create(id))
        assert(s:append { role = "user", content = "of " .. id })
      end
      store:close()
      local whole = temp.read(path)
      local flipped, at = 0, 0
      while true do
        at = whole:find("maintalk", at + 1, true)
        if not at then
          break
        end
        flipped = flipped + 1
        local byte = string.char(whole:byte(at + 4) ~ mask)
        assert.equal(first, byte)
        temp.write(path, whole:sub(1, at + 3) .. byte .. whole:sub(at + 5))
        store = assert(sessile.open("sqlite:" .. path, { key = key }))
        local list, message = store:list()
        if list then
          assert.equal("EDAMAGED", assert(row_of(list, "talk")).status)
          assert.is_false(assert(store:check()).ok)
          assert(store:check { salvage = true })
          assert.is_true(assert(store:check()).ok)
        else
          local command = assert(message:match "`(sqlite3 .*)`")
          store:close()
          assert(os.execute(command))
          store = assert(sessile.open("sqlite:" .. path, { key = key }))
        end
        assert.equal("of talk", read(store, "talk"))
        store:close()
        for _, beside in ipairs { "-wal", "-shm" } do
          os.remove(path .. beside)
        end
      end
      assert.equal(2, flipped)
    end)
  end
end)
