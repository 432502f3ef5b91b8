-- Several processes that do everything at once to one session of a sealed store: nothing that was
-- acknowledged is lost or there twice, and all of it has one order, which everybody sees.
--
-- 4 processes of 60 operations; with SESSILE_SOAK=1, 8 of 1,500, three times. The seed is in what
-- a failure says; SEED=… takes its place.

local cli = require "spec.support.cli"
local temp = require "spec.support.temp"
local sessile = require "sessile"

local soak = os.getenv "SESSILE_SOAK"
local rounds, writers, operations = 1, 4, 60
if soak then
  rounds, writers, operations = 3, 8, 1500
end
local secret = "hex:" .. ("5e"):rep(32)

local on_path = { message = true, turn = true, branch_summary = true, compaction = true }

-- What the entries say, read in their order: the head, and every fact in force. Says also where
-- an entry is out of order: not under the head that the log had come to.
local function fold(s)
  local f = { list = {}, labels = {}, settings = {}, checkpoints = {}, texts = {}, moves = 0 }
  for entry in assert(s:entries()) do
    local id, data = entry.id, entry.data
    assert.equal(("%08x"):format(#f.list), id)
    f.list[#f.list + 1] = entry
    f.list[id] = entry
    if #f.list > 1 then
      assert.is_table(f.list[entry.parent_id], id .. " has no parent")
    end
    if entry.type ~= "label" and entry.type ~= "tombstone" and #f.list > 1 then
      assert.equal(f.head, entry.parent_id, id .. " is not where the log had come to")
    end
    if entry.type == "head" then
      f.head, f.moves = data.head, f.moves + 1
    elseif on_path[entry.type] or #f.list == 1 then
      f.head = id
    elseif entry.type == "label" then
      f.labels[entry.parent_id .. " " .. data.label] = not data.off or nil
    elseif entry.type == "metadata" then
      f.title = data.title or f.title
      for name, value in pairs(data.settings or {}) do
        f.settings[name] = value
      end
    elseif entry.type == "checkpoint" then
      f.checkpoints[id] = true
    elseif entry.type == "tombstone" then
      f.checkpoints[data.withdraws] = nil
    end
    if data.content then
      f.texts[data.content] = (f.texts[data.content] or 0) + 1
    end
  end
  return f
end

local function set_of(list, text)
  local set = {}
  for _, value in ipairs(list) do
    set[text(value)] = true
  end
  return set
end

-- The handle shows what its log says.
local function shows(s, f)
  assert.equal(f.head, s:head())
  assert.same(f.labels, set_of(s:labels(), function(l) return l.id .. " " .. l.name end))
  assert.same(f.settings, s:settings() or {})
  assert.equal(f.title or "", s.title)
  assert.same(f.checkpoints, set_of(s:checkpoints(), function(c) return c.id end))
  assert.is_true(#s:checkpoints() <= 8) -- as every writer asked
  for _, checkpoint in ipairs(s:checkpoints()) do
    assert.is_true(checkpoint.sound)
  end
  local path = assert(s:path())
  for i = 2, #path do
    assert.equal(path[i - 1], f.list[path[i]].parent_id)
  end
  assert.equal(f.head, path[#path])
end

-- Each line of a writer has its entry, once, and they stand in the order of the lines.
local function acknowledged(path, f)
  local count, newest, put, last = 0, "00000000", {}, nil
  local function is(id, kind)
    assert.is_table(f.list[id], kind .. " " .. id .. " is lost")
    assert.is_true(id > newest, id .. " is before " .. newest)
    newest = id
    return f.list[id]
  end
  for line in io.lines(path) do
    local kind, a, b, c = line:match "^(%l+)\t?([^\t]*)\t?([^\t]*)\t?([^\t]*)$"
    count = count + (kind ~= "refused" and 1 or 0)
    last = kind
    if kind == "message" then
      assert.equal(b, is(a, kind).data.content)
      assert.equal(1, f.texts[b])
    elseif kind == "turn" then
      local one, two = b:match "(%x+) (%x+)"
      assert.equal(c .. ".1", is(one, kind).data.content)
      assert.equal(c .. ".2", is(two, kind).data.content)
      assert.equal(tonumber(one, 16) + 1, tonumber(two, 16))
      assert.same({ first = one, count = 2 }, is(a, kind).data)
      assert.equal(1, f.texts[c .. ".1"])
    elseif kind == "checkpoint" then
      assert.equal(b, is(a, kind).data.state)
    elseif kind == "label" then
      put[a .. " " .. b] = true
    elseif kind == "settings" or kind == "title" then
      put[kind .. " " .. a] = true
    end
  end
  assert.equal("done", last)
  return count, put
end

describe("processes on one session of a sealed store", function()
  after_each(function()
    cli.finish()
    temp.clean()
  end)

  it("lose nothing, and make one order", function()
    for round = 1, rounds do
      local seed = tonumber(os.getenv "SEED") or os.time() * 1000 + round
      local home, dir = cli.begin(), temp.dir() .. "/store"
      local key = sessile.key.secret(secret)
      local store <close> = assert(sessile.open(dir, { key = key }))
      local watcher <close> = assert(store:create "s")
      assert(watcher:append { role = "user", content = "first" })
      local ok, why = pcall(function()
        local parts = {}
        for i = 1, writers do
          parts[i] = ("SESSILE_KEY=%s %s run spec/support/mixing_writer.lua %s w%d %d %d "
            .. ">%s/w%d 2>%s/err%d &"):format(secret, cli.quote(cli.binary),
            cli.quote(temp.url(dir)), i, seed + i, operations, home, i, home, i)
        end
        assert(os.execute(table.concat(parts, "\n") .. "\nwait"))
        for i = 1, writers do
          assert.equal("", cli.read(("%s/err%d"):format(home, i)))
        end

        local fresh <close> = assert(store:resume "s")
        local f = fold(fresh)
        shows(fresh, f)
        shows(watcher, f) -- which was open all the time
        local total, facts = 0, {}
        for i = 1, writers do
          local count, put = acknowledged(("%s/w%d"):format(home, i), f)
          total = total + count
          for name in pairs(put) do
            facts[name] = true
          end
        end
        assert.is_true(total > writers * operations / 2, "most was refused")
        for _, entry in ipairs(f.list) do
          local data = entry.data
          if entry.type == "label" and not data.off then
            facts[entry.parent_id .. " " .. data.label] = nil
          elseif entry.type == "metadata" then
            facts["title " .. tostring(data.title)] = nil
            facts["settings " .. tostring((data.settings or {}).ours)] = nil
          end
        end
        assert.same({}, facts, "facts that were acknowledged are not in the log")
        assert.is_true(f.moves > 0)
        local out = cli.sessile("check --store " .. dir, nil, "env SESSILE_KEY=" .. secret)
        assert.matches("nothing is damaged\n$", out)
      end)
      assert(ok, ("SEED=%d: %s"):format(seed, tostring(why)))
      cli.finish()
    end
  end)
end)
