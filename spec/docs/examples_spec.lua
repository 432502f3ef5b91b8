-- Every example runs from the project's root, without arguments, and says what it promises.
-- Files only: examples have folders of their own.

local built = require "spec.support.built"
local example = require "spec.support.example"
local lists = require "spec.support.lists"
local temp = require "spec.support.temp"
local build, command, lines_of = example.build, example.command, example.lines_of
local run, done = example.shell, example.done

describe("examples/embed.c", function()
  teardown(temp.clean)

  it("prints the newest turns, after closing and opening again", function()
    local out = done(build .. "/examples/embed")
    local lines = lines_of(out)
    assert.truthy(lines[3]:find("4 messages left", 1, true))
    assert.same({
      '{"role":"user","content":"What is that called?"}',
      '{"role":"assistant","content":"Sessile."}',
    }, { table.unpack(lines, 4) })
  end)

  it("keeps its sessions, sealed, in a folder that is given", function()
    local dir = temp.dir()
    done(("%s/examples/embed %s/store"):format(build, dir))
    assert.is_true(#temp.files(dir) > 0)
    assert.is_nil(temp.snapshot(dir):find("barnacle", 1, true))
  end)

  it("leaves nothing behind without one", function()
    local dir = temp.dir()
    done(("TMPDIR=%s %s/examples/embed"):format(dir, build))
    assert.same({}, temp.files(dir))
  end)

  it("says what is wrong and fails when the policy is not there", function()
    local out, err, status = run(("%s/examples/embed %s no/such.lua"):format(build, temp.dir()))
    assert.equal("", out)
    assert.truthy(err:find("^embed: NOTFOUND: "))
    assert.equal(1, status)
  end)
end)

describe("examples/needs.c", function()
  it("continues when its model fails, and with what it says", function()
    local out = done(build .. "/examples/needs")
    local compacted = {}
    for _, line in ipairs(lines_of(out)) do
      local before, after, text = line:match "^compacted: (%d+) tokens %-> (%d+), '(.*)'$"
      if before then
        assert.is_true(tonumber(after) < tonumber(before))
        compacted[#compacted + 1] = text
      end
    end
    assert.matches("summarize failed: the model gave no summary: the model cannot be reached; "
      .. "sliding_window ran instead\n", out, 1, true)
    assert.same({ "", "Barnacles were explained: they settle once, for life." }, compacted)
    assert.matches("\n%d+ messages in the context, the first: {.*Barnacles were explained", out)
  end)
end)

describe("examples/keep_last_spec.lua", function()
  it("passes", function()
    local out, err, status = run(command .. " policy test examples/keep_last_spec.lua")
    assert.equal(0, status, out .. err)
    assert.matches("%d%d successes / 0 failures / 0 errors / 0 pending", out)
  end)
end)

describe("examples/hello.lua", function()
  it("prints the context of a session", function()
    local out = done(command .. " run examples/hello.lua")
    local lines = lines_of(out)
    assert.equal("1\tuser\tWho are you?", lines[1])
    assert.equal("2\tassistant\tA barnacle. What I said stays said.", lines[2])
    assert.truthy(lines[3]:find("^%d+ tokens$"))
  end)

  it("is ten lines of code", function()
    local count = 0
    for _, line in ipairs(lines_of(temp.read "examples/hello.lua")) do
      count = count + (line:find "^%-%-" and 0 or 1)
    end
    assert.is_true(count <= 12)
  end)
end)

describe("examples/own_store.lua", function()
  teardown(temp.clean)

  local said = {
    "saved\ttrue",
    "another handle\tECONFLICT",
    "user\tWhen is high tide?",
    "assistant\tAt noon. I was here for the last one.",
    "user\tThank you.",
  }

  it("keeps sessions and tells the one who was too late", function()
    local dir = temp.dir()
    local out = done(("TMPDIR=%s %s run examples/own_store.lua"):format(dir, command))
    assert.same(said, lines_of(out))
    assert.is_true(os.execute("rmdir " .. dir))
  end)

  it("keeps them in text files of a folder that is given", function()
    local dir = temp.dir()
    done(("%s run examples/own_store.lua %s"):format(command, dir))
    local files = temp.files(dir)
    assert.equal(1, #files)
    local lines = lines_of(temp.read(files[1]))
    assert.equal(5, #lines)
    assert.truthy(lines[2]:find("When is high tide?", 1, true))
  end)
end)

describe("examples/agent.lua", function()
  it("reads, waits for a person, writes and ends", function()
    local out = done(command .. " run examples/agent.lua")
    local lines = lines_of(out)
    assert.equal("0 start      ", lines[1])
    local said = {}
    for _, line in ipairs(lines) do
      if not line:find "^%d+ [%a_]+ *%a*$" then
        said[#said + 1] = line
      end
    end
    assert.same({ "? may I write VERSION?", "= VERSION was written.",
      "6 messages, VERSION is 2.0" }, said)
  end)
end)

describe("examples/", function()
  local root = built.root

  it("has nothing that is long, or that its page does not list", function()
    local page = temp.read(root .. "/examples/README.md")
    local seen = 0
    for _, path in ipairs(temp.files(root .. "/examples")) do
      local name = path:match "/examples/([^/]+)$"
      if name and (name:find "%.lua$" or name:find "%.c$") then
        seen = seen + 1
        local _, count = temp.read(path):gsub("\n", "")
        assert.is_true(count < 120, ("%s has %d lines"):format(name, count))
        assert.truthy(page:find(("| [%s](%s) |"):format(name, name), 1, true), name)
      end
    end
    assert.is_true(seen > 5)
  end)
end)

describe("examples/demo-session.jsonl", function()
  it("is a conversation of turns, with one call that was never answered", function()
    local transcript = require "spec.support.transcript"
    local session = assert(transcript.session {})
    transcript.play(session, transcript.turns())
    local _, info = session:context()
    assert.equal(1, info.unanswered)
    assert.equal(0, info.orphans)
    assert.equal(90, #session:messages())
    assert.is_true(info.tokens > 25000 and info.tokens < 35000)
  end)

  it("comes back letter by letter", function()
    local transcript = require "spec.support.transcript"
    local session = assert(transcript.session {})
    transcript.play(session, transcript.turns(nil, true))
    local texts = lists.field(session:messages(), "json")
    assert.equal(temp.read(transcript.demo), table.concat(texts, "\n") .. "\n")
  end)
end)
