-- chat, resume and answer, as somebody types them, with models that are programs.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local guarded = require "spec.support.guarded"
local has = expect.has
local sessile, done, json = cli.sessile, cli.done, cli.json
local home

-- A model that is a shell script.
local function model(name, script)
  cli.write(("%s/%s.sh"):format(home, name), script)
  return ('%s = { command = { "/bin/sh", "%s/%s.sh" }, window = 5000 }'):format(name, home, name)
end

local function configure(...)
  cli.configure(('return { key = false, model = "echo", '
    .. "models = { %s } }"):format(table.concat({ ... }, ", ")))
end

cli.each_test(function(path)
  home = path
  configure(
    model("echo", ([[cat >%s/request; printf 'I hear you']]):format(home)),
    model("rich", [[cat >/dev/null
      printf '{"content":"\\u001b[2Jboo\\u202e","usage":{"input":7,"output":2}}']]),
    model("deep", [[cat >/dev/null
      printf '{"content":"It is 4.","reasoning_content":"2 and 2"}']]),
    model("bad", "echo 'no quota' >&2; exit 1"),
    model("half", "printf 'half of it'; exit 1"))
end)

describe("chat", function()
  it("makes a session, asks, and keeps both", function()
    local out, err = done "chat talk --once 'hello there'"
    assert.equal("I hear you\n", out)
    has(err, "To continue: ")
    has(err, "chat talk")
    out = done("chat talk", "and a pipe\n")
    assert.equal("I hear you\n", out)
    local messages = json "show talk"
    assert.equal(4, #messages)
    assert.equal("and a pipe", messages[3].message.content)
    local request = cli.read(home .. "/request")
    has(request, "hello there")
    has(request, "and a pipe")
  end)

  it("recalls what memories have, when that is configured", function()
    local function ask(setting, id)
      cli.configure(('return { key = false, model = "echo", models = { %s }, memory = %s }')
        :format(model("echo", ("cat >%s/request; printf ok"):format(home)), setting))
      assert.equal("ok\n", done(("chat %s --once 'which seats?'"):format(id)))
      return cli.read(home .. "/request")
    end
    done "memory add main 'prefers aisle seats'"
    assert.is_nil(ask("{}", "a"):find "aisle")
    assert.is_nil(ask("{ enabled = true, recall = false }", "b"):find "aisle")
    local request = ask("{ enabled = true }", "c")
    assert.is_true(request:find "which seats" < request:find "prefers aisle seats")
    assert.equal("memory", json("show c")[2].message.metadata.kind)
    assert.is_nil(ask("{ enabled = true, recall = { limit = 1, trust = 'system' } }", "d")
      :find "aisle")
    cli.configure "return { memory = { recall = { share = 7 } } }"
    has(select(2, sessile "config"), "'memory.recall.share': a number from 0 to 1 expected, got 7")
  end)

  it("prints one exchange as JSON", function()
    local got = json "chat talk --model rich --once hi"
    assert.equal("talk", got.session)
    assert.is_true(got.created)
    assert.equal("completed", got.status)
    assert.same({ input = 7, output = 2 }, got.usage)
    assert.equal(2, #got.ids)
  end)

  it("keeps the answer although somebody else wrote while the model thought", function()
    done "new --id talk"
    configure(model("echo", ("cat >/dev/null; %s append talk meanwhile >/dev/null; printf done")
      :format(cli.binary)))
    assert.equal("done\n", done "chat talk --once hi")
    local said = {}
    for i, row in ipairs(json "show talk") do
      said[i] = row.message.content
    end
    assert.same({ "hi", "meanwhile", "done" }, said)
  end)

  it("tells that the policy was refused, and keeps the answer", function()
    cli.write(home .. "/broken.lua",
      'return { name = "broken", version = 1, truncate = function() error "no" end }')
    local out, err = done(("chat talk --policy %s/broken.lua --once hi"):format(home))
    assert.equal("I hear you\n", out)
    has(err, "the policy broken failed: ")
  end)

  it("tells a model what it is, once", function()
    cli.write(home .. "/prompt", "Be brief.\n")
    for _ = 1, 2 do
      done(("chat talk --system @%s/prompt --once hi"):format(home))
    end
    local messages = json "show talk"
    assert.equal("Be brief.", messages[1].message.content)
    assert.equal(5, #messages)
  end)

  it("shows nothing that a terminal would obey", function()
    assert.equal("boo\n", done "chat talk --model rich --once hi")
  end)

  it("keeps the model's reasoning, and prints the answer alone", function()
    assert.equal("It is 4.\n", done "chat talk --model deep --once hi")
    assert.equal("2 and 2", json("show talk")[2].message.reasoning_content)
    has(done "show talk", "(thinking) 2 and 2")
  end)

  it("names no command that does not exist", function()
    cli.write(home .. "/known.lua", [[ -- its modules need those of the executable
      local slash = require "sessile.cli.chat.slash"
      local known = { names = slash.names(require "sessile.cli.chat.own"), told = {} }
      for _, name in ipairs(require "sessile.cli.registry".names()) do
        known.told[name] = slash.here({ session = { id = "talk" } },
          ("Then: sessile %s talk 7."):format(name))
      end
      print(require "sessile".encode(known))]])
    local known = cli.decoded((done(("run %s/known.lua"):format(home))))
    local names, count = {}, 0
    for _, name in ipairs(known.names) do
      names[name] = true
    end
    for _, file in ipairs { "init", "own", "slash", "flow", "lines", "exchange" } do
      local text = cli.read(("lua/sessile/cli/chat/%s.lua"):format(file)):gsub("%-%-[^\n]*", "")
      for name in text:gmatch "%f[%w/]/(%l+)%f[%W]" do
        assert.truthy(names[name], ("%s.lua: /%s"):format(file, name))
        count = count + 1
      end
    end
    assert.truthy(count > 5)
    for name, told in pairs(known.told) do -- what commands tell to do next
      local typed = told:match "^Then: /(%l+) 7%.$"
      assert.truthy(typed == name and names[name] or told == "Then: type a message 7."
        or told == ("Then: sessile %s talk 7."):format(name), told)
    end
  end)

  it("keeps what was said when the model fails, and what it said until then", function()
    cli.fails(1, "chat talk --model bad --once 'still here?'", "failed with exit code 1: no quota",
      "What you said is kept")
    assert.equal("still here?", json("show talk")[1].message.content)
    local out, err, code = sessile "chat half --model half --once hm"
    has(err, "failed with exit code 1")
    assert.equal("half of it\n", out)
    assert.equal(1, code)
    local kept = json("show half")[2].message
    assert.equal("half of it", kept.content)
    assert.is_true(kept.metadata.interrupted)
  end)

  it("refuses what cannot be, before anything is made", function()
    local function refused(words, input, exit, part)
      local out, err, code = sessile(words, input)
      assert.equal("", out)
      assert.equal(exit, code)
      has(err, part)
      return err
    end
    local err = refused("chat talk --model rcih --once hi", nil, 2, "there is no model 'rcih'")
    has(err, "Did you mean `rich`?")
    refused("chat talk", "  \n", 2, "there is no message")
    refused("chat talk --policy nosuch --once hi", nil, 3, "there is no policy 'nosuch'")
    refused("chat talk --system @/no/such --once hi", nil, 2, "the system prompt cannot be read")
    refused("--config /dev/null --plain chat talk --once hi", nil, 3, "no model is configured")
    assert.equal(3, select(3, sessile "info talk"))
  end)
end)

describe("resume", function()
  before_each(function()
    done "chat talk --once 'the question'"
  end)

  it("shows where a session stands, and changes nothing without a terminal", function()
    done "rename talk 'Slow start'"
    done "checkpoint talk 'step one'"
    local before = json "info talk"
    local out = done "sessions resume talk"
    for _, part in ipairs { "talk  Slow start", "agent       main", "messages    2,", "step one",
      "user\n  the question", "assistant\n  I hear you" } do
      has(out, part)
    end
    assert.equal(before.head, json("info talk").head)
    assert.equal(2, json("info talk").messages)
  end)

  it("shows the last checkpoint's state, and continues from there when asked to", function()
    done "checkpoint talk 'step one' --state '{\"step\":1,\"odd\":\"\\u001b[31m\"}'"
    has(done "resume talk", "no messages since")
    local at = json("info talk").head
    done "chat talk --once 'a wrong turn'"
    local out, err = done "resume talk"
    has(out, "2 messages came after it")
    has(out, 'its state   {"step":1,"odd":"')
    assert.falsy(out:find("\27", 1, true))
    has(err, "sessile resume talk --from last")
    local got = json "resume talk"
    assert.equal(2, got.checkpoint.after)
    assert.equal(1, got.checkpoint.state.step)

    local refused_out, why, code = sessile "resume talk --from last"
    assert.equal("", refused_out)
    assert.equal(2, code)
    has(why, "Nothing was changed")
    assert.equal(4, json("info talk").messages)

    out = done "resume talk --from last --yes"
    has(out, "no messages since")
    assert.falsy(out:find("a wrong turn", 1, true))
    assert.equal(2, json("info talk").messages)
    assert.equal(at, json("info talk").head)
    done "chat talk --once 'another way'"
    assert.equal(4, json("info talk").messages)
    assert.equal(3, select(3, sessile "resume talk --from nosuch --yes"))
  end)

  it("leaves out what lies between a question and the newest messages", function()
    local lines = { '{"role":"user","content":"do it all"}' }
    for n = 1, 20 do
      lines[#lines + 1] = ('{"role":"assistant","content":"step %02d"}'):format(n)
    end
    done("import - --from jsonl --id steps", table.concat(lines, "\n"))
    local out = done "resume steps"
    for _, part in ipairs { "do it all", "18 messages between", "step 19", "step 20" } do
      has(out, part)
    end
    assert.falsy(out:find("step 18", 1, true))
    has(done "show steps --last 21", "do it all")
    assert.equal(21, #json "resume steps".last)
  end)

  it("tells a program the same", function()
    local got, info = json "resume talk", json "info talk"
    assert.equal(info.messages, got.messages)
    assert.equal(info.agent, got.agent)
    assert.equal(info.created, got.created)
    assert.equal("I hear you", got.last[2].message.content)
    assert.same({}, got.open_calls)
  end)

  it("tells of calls that nobody answered, and of a pause", function()
    cli.write(home .. "/call.lua", [[local store = require "sessile".open(arg[1],
        { key = false, guard = os.getenv "TEST_GUARD" })
      assert(store:resume "talk":append { role = "assistant", content = "", tool_calls = {
        { id = "c9", name = "deploy", arguments = "{}" } } })]])
    done(("run %s/call.lua %s"):format(home, cli.store()))
    done "suspend talk 'may I?'"
    local out, err = done "resume talk"
    has(out, "open call   deploy (c9)")
    has(out, "waits for   may I?")
    has(err, "sessile answer talk")
    local got = json "resume talk"
    assert.equal("c9", got.open_calls[1].id)
    assert.equal("may I?", got.suspension.reason)
  end)

  it("says what is not there", function()
    cli.fails(3, "resume nosuch", "there is no session 'nosuch'")
  end)
end)

describe("the configured model", function()
  before_each(function()
    done "new --id long"
    for i = 1, 12 do
      done(("append long --role %s -"):format(i % 2 == 1 and "user" or "assistant"),
        ("message %d "):format(i) .. ("word "):rep(200))
    end
  end)

  local policy = "--policy summarize --option preserve_recent=2"

  it("is asked by compact", function()
    local got = json("compact long " .. policy .. " keep names")
    assert.equal("applied", got.verdict)
    assert.is_nil(got.model)
    has(cli.read(home .. "/request"), "keep names")
    has(done "context long", "I hear you")
  end)

  it("is missed by compact when there is none", function()
    guarded.unguarded_only "it has a configuration of its own"
    cli.fails(1, "--config /dev/null --plain compact long " .. policy, "no model is configured")
  end)

  it("answers a pending run", function()
    done("compact long --defer " .. policy)
    local out = done "answer long --ask"
    has(out, "tokens")
    has(done "context long", "I hear you")
    cli.fails(3, "answer long --ask", "has no pending run")
  end)

  it("answers a pending run once, and nothing beside it", function()
    done("compact long --defer " .. policy)
    cli.fails(2, "answer long --ask text", "--ask and --model exclude an answer")
    cli.fails(2, "answer long --model nosuch", "there is no model 'nosuch'")
    assert.equal("applied", json("answer long --model echo").verdict)
  end)
end)
