-- What a session refuses to do with facts, forks and checkpoints: each time a sentence that names
-- the thing and says what to do, and nothing has changed. In Lua and at the command line.
-- Own guard: with one, a refusal leaves an event.

local cli = require "spec.support.cli"
local temp = require "spec.support.temp"
local user = require("spec.support.messages").user
local sessile = require "sessile"

local dir, store, mine, theirs

-- Something was refused: with that code, and with these words in the sentence.
local function refused(code, words, value, message, got)
  assert.is_nil(value)
  assert.equal(code, got, message)
  assert.truthy(message:find(words, 1, true), message)
  return message
end

local function spoil(name, word)
  local path = ("%s/agents/main/%s.jsonl"):format(dir, name)
  local text = cli.read(path)
  local at = assert(text:find(word, 1, true))
  cli.write(path, text:sub(1, at - 1) .. word:upper() .. text:sub(at + #word))
end

-- A command line on the same store, that has to fail so.
local function told(status, words, command)
  local before = temp.snapshot(dir)
  local out, err, code = cli.sessile(("%s --store %s --plain"):format(command, dir))
  assert.equal(status, code, err)
  assert.equal("", out)
  assert.truthy(err:find(words, 1, true), err)
  cli.no_traceback(err)
  assert.equal(before, temp.snapshot(dir))
end

local before -- the store's bytes, when the test is to leave them alone

before_each(function()
  cli.begin()
  dir = temp.dir() .. "/store"
  store = assert(sessile.open(dir, { key = false }))
  mine, theirs = assert(store:create "mine"), assert(store:create "theirs")
  for i = 1, 6 do
    assert(mine:append(user("word" .. i)))
    assert(theirs:append(user("other" .. i)))
    assert(theirs:append(user("more" .. i)))
  end
  before = nil
end)

after_each(function()
  if before then
    assert.equal(before, temp.snapshot(dir))
  end
  store:close()
  cli.finish()
  temp.clean()
end)

describe("a checkpoint of another session", function()
  it("is not found by its id or name", function()
    local id = assert(theirs:checkpoint { name = "halfway", state = { step = 3 } })
    local head = mine:head()
    before = temp.snapshot(dir)
    for _, method in ipairs { mine.restore, mine.delete_checkpoint } do
      refused("ENOTFOUND", ('session "mine": there is no checkpoint %s'):format(id),
        method(mine, id))
      refused("ENOTFOUND", "session mine has no checkpoint 'halfway'",
        method(mine, "halfway"))
    end
    refused("ENOTFOUND", "there is no checkpoint 00000001", mine:restore "00000001")
    assert.equal(head, mine:head())
    told(3, "session mine has no checkpoint 'halfway'", "restore mine halfway --yes")
    told(3, "no checkpoint", ("restore mine %s --yes"):format(id))
    told(3, "no checkpoint", ("checkpoint rm mine %s"):format(id))
    -- and what to type next is for the same store
    local hint = temp.kind == "postgres" and "--plain mine" -- a password is never shown
      or ("checkpoints --store %s --plain mine"):format(temp.url(dir))
    told(3, hint, "restore mine halfway --yes")
  end)

  it("is told by its row, though one of mine has its id", function()
    for i = 1, 6 do
      assert(mine:append(user("again" .. i)))
    end
    assert(mine:checkpoint { state = "mine" })
    assert(theirs:checkpoint { state = "theirs" })
    local row, own = theirs:checkpoints()[1], mine:checkpoints()[1]
    assert.equal(row.id, own.id)
    assert.equal("theirs", row.session)
    assert.equal("main", row.agent)
    before = temp.snapshot(dir)
    refused("EINVALID", 'is of session "theirs"', mine:restore(row))
    refused("EINVALID", 'is of session "theirs"', mine:delete_checkpoint(row))
    assert.equal(before, temp.snapshot(dir))
    before = nil
    assert.equal("mine", assert(mine:restore(own)).state)
    assert.is_true(mine:delete_checkpoint(own))
    assert.has_error(function() mine:restore {} end)
  end)
end)

describe("a label", function()
  it("on nothing is refused", function()
    before = temp.snapshot(dir)
    for _, method in ipairs { "label", "unlabel", "pin", "unpin" } do
      local words = method:find "^un" and "0000003f" or "there is no entry 0000003f"
      refused("ENOTFOUND", words, mine[method](mine, "0000003f",
        method:find "label" and "here" or nil))
    end
    assert.same({}, mine:labels())
    told(3, "there is no entry 0000003f", "label mine 3f here")
    told(3, "there is no entry 0000003f", "pin mine 3f")
    told(3, "is not an entry of session mine", "label mine nothing here")
  end)
end)

describe("a branch or a fork", function()
  it("from nothing is refused before anybody is asked", function()
    before = temp.snapshot(dir)
    refused("ENOTFOUND", "the nearest that can are", mine:branch "0000003f")
    refused("ENOTFOUND", "0000003f", mine:fork("0000003f", { id = "new" }))
    told(3, "the nearest that can are", "branch mine 3f")
    told(3, "0000003f", "fork mine 3f --id new")
  end)
end)

describe("a fork of a damaged session", function()
  it("is of the part that can be read, which the refusal names", function()
    temp.files_only "one is damaged"
    mine:close()
    spoil("mine", "word4")
    before = temp.snapshot(dir)
    mine = assert(store:resume "mine")
    for _, entry in ipairs { "00000004", "00000006", false } do
      local message = refused("EDAMAGED", "fork it at 00000003", mine:fork(entry or nil,
        { id = "new" }))
      local _, times = message:gsub("sessile check mine %-%-salvage", "")
      assert.equal(1, times, message)
    end
    refused("ENOTFOUND", "new", store:resume "new")
    local other <close> = assert(sessile.open "ram:")
    refused("EDAMAGED", "damaged", other:put(mine))
    told(5, "fork it at 00000003", "fork mine --id new")
    told(5, "fork it at 00000003", "fork mine 6 --id new")
    before = nil
    local fork = assert(mine:fork "00000003")
    assert.is_nil(fork.damage)
    assert.equal(3, #fork:messages())
    assert(fork:append(user "on"))
  end)
end)

describe("a session that is suspended", function()
  it("is not restored, nor branched, whatever is forced", function()
    local id = assert(mine:checkpoint { name = "early", state = 1 })
    assert(mine:append(user "late"))
    assert(mine:suspend { reason = "an approval" })
    local head, pause = mine:head(), mine:suspended().id
    before = temp.snapshot(dir)
    refused("ESUSPENDED", "an approval", mine:restore(id))
    refused("ESUSPENDED", "an approval", mine:restore("early", { force = true }))
    refused("ESUSPENDED", "an approval", mine:branch "00000001")
    assert.equal(head, mine:head())
    assert.equal(pause, mine:suspended().id)
    told(1, "an approval", "restore mine early --yes")
    told(1, "an approval", "restore mine early --yes --force")
    told(1, "an approval", "branch mine 1 --yes")
    before = nil
    assert(mine:cancel())
    assert.equal(1, assert(mine:restore(id)).state)
  end)

  it("is refused by its code at the command line too", function()
    assert(mine:checkpoint { name = "early" })
    assert(mine:suspend { reason = "an approval" })
    local _, err, code = cli.sessile(("--json restore mine early --yes --store %s --plain")
      :format(dir))
    assert.equal(1, code, err)
    assert.truthy((err):find("ESUSPENDED", 1, true), err)
  end)
end)

describe("a checkpoint that is not what was written", function()
  it("is refused, and the session stays where it is", function()
    temp.files_only "a checkpoint is changed"
    assert(mine:checkpoint { name = "first", state = { plan = "goodplan" } })
    assert(mine:append(user "word7"))
    mine:close()
    spoil("mine", "goodplan")
    mine = assert(store:resume "mine")
    local head = mine:head()
    before = temp.snapshot(dir)
    local value, message, code = mine:restore "first"
    assert.is_nil(value)
    assert.is_string(message)
    assert.is_true(code == "EDAMAGED" or code == "ENOTFOUND", code)
    assert.equal(head, mine:head())
  end)
end)

-- A log that held such bytes would be damaged: its lines are JSON.
describe("text that is not UTF-8", function()
  local STRINGS = { "\xff\xfe", "\xc3", "ends in \xe2\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
    "\xc0\x80", "a\x80b" }
  local shrink = { policy = "sliding_window", window = 40 }

  local function with(more)
    for name, value in pairs(shrink) do
      more[name] = value
    end
    return more
  end

  it("is refused by a run, and nothing is written", function()
    before = temp.snapshot(dir)
    for _, text in ipairs(STRINGS) do
      refused("EINVALID", "the instructions are not UTF-8",
        mine:compact(with { instructions = text }))
      refused("EINVALID", "the instructions are not UTF-8",
        mine:branch("00000001", { instructions = text }))
      refused("EINVALID", "the event is not UTF-8",
        mine:turn({ { role = "assistant", content = "x" } }, { event = text }))
      refused("EINVALID", "the model's name is not UTF-8",
        mine:turn({ { role = "assistant", content = "x" } }, { model_name = text }))
    end
  end)

  it("is refused at the command line, and the session exports as JSON", function()
    for _, text in ipairs(STRINGS) do
      told(1, "the instructions are not UTF-8",
        "compact mine --policy sliding_window --window 40 " .. cli.quote(text))
    end
    local out = cli.done("export mine - --format json --store " .. dir .. " --plain")
    assert.equal(7, #assert(sessile.decode(out)).entries)
  end)

  it("is refused as the name of a host's policy, and the log stays writable", function()
    local s = assert(store:create { id = "named" })
    assert(s:append(user "before"))
    for _, text in ipairs(STRINGS) do
      local policy = { name = text, compact = function() error "no" end }
      for _, opts in ipairs { { policy = policy }, { policy = "tiered", fallback = policy } } do
        local _, message, code = s:compact(opts)
        assert.equal("EINVALID", code)
        assert.truthy(message:find("a policy's name", 1, true), message)
      end
    end
    assert(s:append(user "after"))
    s:close()
    s = assert(store:resume "named")
    assert.equal(2, #s:messages())
    s:close()
  end)

  it("is printed as U+FFFD where an id holds it", function()
    for i, text in ipairs(STRINGS) do
      local s = assert(store:create { id = text, agent = "agent" .. text })
      assert(s:append(user "text"))
      s:close()
      local where = (" --store %s --plain --agent %s"):format(dir, cli.quote("agent" .. text))
      local shown = text:gsub("[\x80-\xff]", "\u{FFFD}")
      for _, command in ipairs { "export %s - --format json", "--json info %s", "--json show %s",
        "--json stats %s", "--json log %s", "--json context %s", "--json tree %s" } do
        local out = cli.done(command:format(cli.quote(text)) .. where)
        assert.truthy(utf8.len(out), ("%d: %s"):format(i, command))
        local value = assert(sessile.decode(out), out)
        if command:find "export" or command:find "info" then
          assert.equal(shown, value.id, command)
        end
      end
      local rows = assert(sessile.decode((cli.done("--json list" .. where))))
      assert.equal(shown, (rows.sessions or rows)[1].id)
    end
  end)
end)
