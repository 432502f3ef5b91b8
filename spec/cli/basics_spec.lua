-- The command line, as somebody types it: the executable in a shell.

local decode = require("sessile").decode
local terminal = require "sessile.cli.terminal"

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local guarded = require "spec.support.guarded"
local binary, quote, read, write = cli.binary, cli.quote, cli.read, cli.write
local sessile, done, json, no_traceback = cli.sessile, cli.done, cli.json, cli.no_traceback
local home

cli.each_test(function(path) home = path end)

describe("a bare sessile", function()
  it("says what is here and what to type next, and makes nothing", function()
    guarded.unguarded_only "there is no configuration"
    cli.files_only "the default folder"
    local out = done ""
    assert.truthy(out:find("No sessions yet", 1, true))
    assert.truthy(out:find("sessile new", 1, true))
    assert.is_nil(io.open(home .. "/data"))
    assert.is_nil(io.open(home .. "/config"))
    done "new --id one"
    assert.truthy(done(""):find("1 session in", 1, true))
  end)
end)

describe("new and append", function()
  it("print ids, alone, on stdout", function()
    local out, err = done "new --id bug-42 --title 'Slow start'"
    assert.equal("bug-42\n", out)
    expect.has(err, ("A key for your sessions was made: %s/config/sessile/key. Keep a copy")
      :format(cli.home()))
    out, err = done "append bug-42 'why is it slow?'"
    assert.equal("00000001\n", out)
    assert.equal("", err)
    assert.equal("00000002\n", done("append bug-42 - --role assistant", "it reads twice\n"))
    assert.equal(2, (select(3, sessile "append bug-42"))) -- standard input is empty
    local list = json "show bug-42"
    assert.equal("why is it slow?", list[1].message.content)
    assert.equal("it reads twice", list[2].message.content)
    assert.equal("assistant", list[2].message.role)
  end)

  it("make ids of their own", function()
    assert.matches("^%x+%-%x+%-7%x+%-%x+%-%x+\n$", (done "new"))
    assert.matches("^%x+%-%x+%-4%x+%-%x+%-%x+\n$", (done "new --uuid-v4"))
  end)

  it("say EXISTS with a next step", function()
    done "new --id one"
    local out, err, code = sessile "new --id one"
    assert.equal("", out)
    assert.equal(1, code)
    assert.matches("^sessile: .+\n.+\n$", err)
    no_traceback(err)
  end)
end)

describe("names of sessions", function()
  before_each(function()
    done "new --id alpha-one --title 'First one'"
    done "new --id alpha-two --title Second"
    done "new --id beta --agent coder"
  end)

  it("are ids, unique beginnings, titles and last", function()
    for _, name in ipairs { "alpha-one", "alpha-o", "'First one'" } do
      done(("append %s text"):format(name))
    end
    assert.equal(3, #json "show alpha-one")
    assert.equal(3, #json "show last")
  end)

  it("are looked for in all agents, unless one is named", function()
    done "append beta text"
    local _, err, code = sessile "append beta text --agent main"
    assert.equal(3, code)
    assert.truthy(err:find("beta", 1, true))
  end)

  it("are not guessed", function()
    cli.fails(2, "show alpha", "alpha-one", "alpha-two")
  end)

  it("that are nobody's are NOTFOUND: exit code 3, and a next step", function()
    local err = cli.fails(3, "show nope", "sessile list")
    assert.matches("^sessile: there is no session 'nope'%.\n", err)
  end)
end)

describe("show", function()
  before_each(function()
    done "new --id s"
  end)

  it("shows the newest, and one entry", function()
    for n = 1, 5 do
      done(("append s 'text %d'"):format(n))
    end
    assert.equal(2, #json "show s --last 2")
    assert.truthy(done("show s@3"):find("text 3", 1, true))
    assert.is_nil(done("show s@3"):find("text 4", 1, true))
    assert.equal("00000003", json("show s@3").id)
    assert.equal(3, (select(3, sessile "show s@77")))
  end)

  it("strips what a terminal would obey", function()
    local hostile = "a\27[31mb\27]0;title\7c\8d\u{202e}e\u{9b}2Jf\127g"
    done("append s -", hostile)
    local out = done "show s"
    assert.truthy(out:find("ab0;titlecde2Jfg", 1, true), ("%q"):format(out))
    assert.is_nil(out:find "[%z\1-\8\11-\31\127]")
    assert.is_nil(out:find("\u{202e}", 1, true))
    assert.equal(hostile, json("show s")[1].message.content)
    for _, words in ipairs { "tree s", "context s" } do
      assert.is_nil(done(words):find "[%z\1-\8\11-\31\127]", words)
    end
  end)

  it("strips it from titles and ids too", function()
    done "new --id 'x\27[2J' --title 'evil\27]0;t\7'"
    local out = done "list"
    assert.is_nil(out:find "[%z\1-\8\11-\31\127]")
  end)
end)

describe("import, tree, context, compact", function()
  local lines = {
    '{"role":"system","content":"be brief"}',
  }
  for n = 1, 24 do
    lines[#lines + 1] = ('{"role":"user","content":"question %d"}'):format(n)
    lines[#lines + 1] = ('{"role":"assistant","content":"","tool_calls":'
      .. '[{"id":"c%d","name":"read","arguments":"{}"}]}'):format(n)
    lines[#lines + 1] = ('{"role":"tool","tool_call_id":"c%d","content":"%s"}'):format(n,
      ("output and more "):rep(50))
    lines[#lines + 1] = ('{"role":"assistant","content":"answer %d"}'):format(n)
  end

  before_each(function()
    write(home .. "/talk.jsonl", table.concat(lines, "\n") .. "\n")
    done("import " .. home .. "/talk.jsonl --from jsonl --id talk")
  end)

  it("import says what came in", function()
    local out, err = done("import " .. home .. "/talk.jsonl --id other")
    assert.equal("other\n", out)
    assert.truthy(err:find("97 messages in 25 turns", 1, true), err)
    assert.equal(97, json("import - --from jsonl --id third", read(home .. "/talk.jsonl")).messages)
    assert.equal(3, (select(3, sessile("import " .. home .. "/nothing.jsonl"))))
    write(home .. "/another.jsonl", lines[2] .. "\n")
    assert.equal(1, (select(3, sessile("import " .. home .. "/another.jsonl --id talk"))))
    err = select(2, done("import " .. home .. "/talk.jsonl --id talk"))
    assert.truthy(err:find("nothing new", 1, true), err)
  end)

  it("tree shows types, roles, words, tokens and the head", function()
    local out = done "tree talk"
    for _, text in ipairs { "session", "system", "question 24", "→ read", "← head", "turn" } do
      assert.truthy(out:find(text, 1, true), text)
    end
    local tree = json "tree talk"
    assert.equal(97 + 25 + 1 + 1, #tree.entries) -- and where the import stopped
    assert.equal(tree.head, tree.entries[#tree.entries - 1].id)
  end)

  it("compact --dry-run shows a difference and writes nothing", function()
    local before = json "tree talk"
    local out, err = done "compact talk --policy sliding_window --window 3000 --dry-run"
    assert.matches("\n%- %x+", "\n" .. out)
    assert.truthy(out:find("tokens", 1, true))
    assert.truthy(err:find("Nothing was written", 1, true))
    assert.same(before, json "tree talk")
    assert.is_true(json("compact talk --policy sliding_window --window 3000 --dry-run").dry_run)
  end)

  it("compact says tokens before and after; show keeps everything", function()
    local out = done "compact talk --policy sliding_window --window 3000"
    assert.matches("^[%d,]+ → [%d,]+ tokens", out)
    local context = json "context talk"
    assert.is_true(#context.messages < 97)
    assert.is_true(context.dropped > 0)
    assert.equal(97, #json "show talk")
    local tree = done "tree talk"
    assert.truthy(tree:find("compaction", 1, true))
    assert.truthy(tree:find("○", 1, true))
  end)

  it("compact without a policy says how to name one", function()
    local _, err, code = sessile "compact talk"
    assert.equal(1, code)
    assert.truthy(err:find("policy list", 1, true))
    cli.fails(3, "compact talk --policy no_such")
  end)

  it("policy replay prints a ledger", function()
    local file = home .. "/talk.jsonl"
    local out = done("policy replay sliding_window " .. file .. " --window 3000")
    assert.truthy(out:find("BEFORE", 1, true))
    assert.truthy(out:find("COMPACTIONS", 1, true))
    local ledger = json("policy replay sliding_window " .. home .. " --window 3000")
    assert.equal(1, #ledger.replays)
    assert.equal(97, ledger.replays[1].messages)
    assert.is_true(#ledger.replays[1].compactions > 0)
    assert.equal(3, (select(3, sessile("policy replay no_such " .. file))))
  end)
end)

describe("list", function()
  it("has short ids, dates, sizes; and JSON", function()
    done "new --id 018f0000-0000-7000-8000-000000000001 --title 'Träger 漢字'"
    done "new --id 018f0000-0000-7000-8000-000000000002"
    done "append 018f0000-0000-7000-8000-000000000001 hello"
    local out = done "list"
    assert.truthy(out:find("MODIFIED", 1, true))
    assert.truthy(out:find("now", 1, true))
    assert.truthy(out:find("Träger 漢字", 1, true))
    local rows = json "list"
    assert.equal(2, #rows)
    assert.equal("active", rows[1].status)
    assert.equal(1, #json "list --limit 1")
    assert.same({}, json "list --agent nobody")
  end)

  -- Changes one letter of an early message of the plain session `hurt` in the store.
  local function damage(store)
    local pipe <close> = assert(io.popen(("find %s -name 'hurt.jsonl'"):format(store)))
    local path = pipe:read "l"
    local text = read(path)
    local at = text:find("text 2", 1, true)
    write(path, text:sub(1, at - 1) .. "tExt 2" .. text:sub(at + 6))
  end

  local function is_damaged(store)
    local out, err, code = sessile(("--plain --store %s show hurt"):format(store))
    assert.equal(5, code, out .. err)
    assert.truthy(err:find "check .*hurt %-%-salvage", err)
    assert.truthy(out:find("text 1", 1, true) and out:find("text 6", 1, true), out)
    assert.falsy(out:lower():find("text 2", 1, true))
    no_traceback(err)
    out = done(("--plain --store %s list"):format(store))
    assert.truthy(out:lower():find("damaged", 1, true), out)
  end

  -- A recording of six messages.
  local function six_texts()
    local lines = {}
    for n = 1, 6 do
      lines[n] = ('{"role":"user","content":"text %d"}'):format(n)
    end
    return table.concat(lines, "\n")
  end

  it("names a log that is damaged; reading what is left of it has exit code 5", function()
    cli.files_only "their bytes are changed"
    local store = home .. "/plain"
    done(("--plain --store %s import - --from jsonl --id hurt"):format(store),
      six_texts())
    damage(store)
    is_damaged(store)
  end)

  it("names damage to what was imported into a session that was there", function()
    cli.files_only "their bytes are changed"
    local store = home .. "/plain"
    done(("--plain --store %s new --id hurt"):format(store))
    local recording = home .. "/recording.jsonl"
    write(recording, six_texts())
    done(("--plain --store %s import %s --into hurt"):format(store, recording))
    local before = read(store .. "/agents/main/hurt.jsonl")
    done(("--plain --store %s import %s --into hurt"):format(store, recording))
    assert.equal(before, read(store .. "/agents/main/hurt.jsonl"))
    damage(store)
    is_damaged(store)
  end)

  it("says that a torn tail was set aside, once, on stderr", function()
    cli.files_only "their bytes are changed"
    local store = home .. "/plain"
    done(("--plain --store %s new --id hurt"):format(store))
    done(("--plain --store %s append hurt whole"):format(store))
    local file <close> = assert(io.open(store .. "/agents/main/hurt.jsonl", "a"))
    file:write '{"id":"00000002","parent_id":"000'
    file:close()
    local show = ("--plain --store %s show hurt"):format(store)
    local out, err = done(show)
    assert.truthy(out:find("whole", 1, true))
    assert.truthy(err:find("set aside", 1, true), err)
    local piece = err:match "set aside in (.*)%.\n"
    assert.equal('{"id":"00000002","parent_id":"000', read(piece))
    assert.equal("", (select(2, done(show))))
  end)

  it("names damage also when each message was written by a process of its own", function()
    cli.files_only "their bytes are changed"
    local store = home .. "/plain"
    done(("--plain --store %s new --id hurt"):format(store))
    for n = 1, 6 do
      done(("--plain --store %s append hurt 'text %d'"):format(store, n))
    end
    damage(store)
    is_damaged(store)
  end)
end)

describe("keys and stores", function()
  it("come from options and the environment", function()
    guarded.unguarded_only "there is no configuration"
    cli.files_only "the default folder"
    write(home .. "/key", "hex:" .. ("0"):rep(64) .. "\n")
    write(home .. "/wrong", "hex:" .. ("1"):rep(64) .. "\n")
    os.execute(("chmod 600 %s/key %s/wrong"):format(home, home))
    done(("--store %s/s --key-file %s/key new --id one"):format(home, home))
    done(("show one --store %s/s --key-file %s/key"):format(home, home))
    local _, err, code = sessile(("show one --store %s/s --key-file %s/wrong"):format(home, home))
    assert.equal(7, code)
    assert.truthy(err:find("SESSILE_KEY", 1, true))
    assert.equal(7, (select(3, sessile(("list --store %s/s --plain"):format(home)))))
    local both = ("list --store %s/s --plain --key-file %s/key"):format(home, home)
    assert.equal(2, (select(3, sessile(both))))
    local env = ("SESSILE_STORE=%s/s SESSILE_KEY=hex:%s %s list --json"):format(home,
      ("0"):rep(64), binary)
    local pipe <close> = assert(io.popen(env))
    assert.equal("one", decode(pipe:read "a")[1].id)
  end)

  it("are not made by a command that only reads", function()
    cli.files_only "the default folder"
    local _, err, code = sessile(("show x --store %s/typo"):format(home))
    assert.equal(3, code)
    assert.truthy(err:find("typo", 1, true))
    assert.is_nil(io.open(home .. "/typo"))
  end)
end)

describe("usage", function()
  it("is exit code 2, with the nearest command or option", function()
    for words, said in pairs {
      ["compcat x"] = "sessile compact", ["lst"] = "sessile list",
      ["policy lst"] = "sessile policy list", ["show x --lsat 3"] = "--last",
      ["append"] = "missing argument", ["show x --last many"] = "whole number",
      ["append x y --role king"] = "assistant", ["policy"] = "policy replay",
    } do
      cli.fails(2, words, said)
    end
  end)

  it("is listed under a heading of what it is about", function()
    local text, at = "\n" .. done "help", 0
    for _, heading in ipairs { "Sessions", "The tree", "What the model sees", "Stores and keys" } do
      local found = text:find("\n" .. heading .. "\n", at + 1, true)
      assert.is_true(found and found > at, heading)
      at = found
    end
    for _, command in ipairs(json "help") do
      assert.truthy(text:find("\n  " .. command.name .. " ", 1, true), command.name)
    end
    assert.is_nil(text:find("%]")) -- only what must be typed
  end)

  it("is explained, examples first, for every command", function()
    local all = done "help"
    for _, command in ipairs(json "help") do
      assert.truthy(all:find(command.name, 1, true))
      local text = done("help " .. command.name)
      assert.equal(text, (done(command.name .. " --help")))
      assert.truthy(select(2, text:gsub("\n  %-%-user ", "")) <= 1, text) -- its own, or that of all
      assert.is_true(text:find("Examples", 1, true) < text:find("Usage", 1, true))
    end
  end)
end)

describe("a command of one's own", function()
  it("is a Lua file in a folder", function()
    os.execute("mkdir -p " .. home .. "/config/sessile/commands")
    write(home .. "/config/sessile/commands/count.lua", [[
      return {
        summary = "how many messages a session has", usage = "count ID [--twice]",
        arguments = { { "id", "a session" } },
        options = { { "--twice", "double it" } },
        run = function(app, args)
          local session, message, code, step = app:session(args.id)
          if not session then return nil, message, code, step end
          app:out(#session:messages() * (args.twice and 2 or 1) .. "\n")
        end,
      }
    ]])
    done "new --id one"
    done "append one text"
    assert.equal("2\n", (done "count one --twice"))
    assert.truthy(done("help"):find("how many messages", 1, true))
    assert.equal(3, (select(3, sessile "count nope")))
    assert.truthy(select(2, sessile "cuont one"):find("sessile count", 1, true))
    write(home .. "/config/sessile/commands/broken.lua", "return {")
    assert.equal(1, (select(3, sessile "broken")))
    done "list"
  end)

  it("is not looked for in a relative folder, where anybody may have put it", function()
    os.execute("mkdir -p " .. home .. "/config/sessile/commands")
    write(home .. "/config/sessile/commands/count.lua", "return { run = print }")
    local command = "cd %s && HOME=%s/nowhere XDG_CONFIG_HOME=config %s%s count >stdout 2>&1"
    local _, _, code = os.execute(command:format(quote(home), quote(home),
      binary:sub(1, 1) == "/" and "" or '"$OLDPWD"/', quote(binary)))
    assert.truthy(read(home .. "/stdout"):find("no command 'count'", 1, true))
    assert.equal(2, code)
  end)
end)

describe("run", function()
  it("runs a script with the engine, its own options, its own exit code", function()
    write(home .. "/x.lua", [[
      local sessile = require "sessile"
      local store = assert(sessile.open("ram:", { key = false }))
      assert(store:create { id = "r" }):append { role = "user", content = "hi" }
      print(arg[0]:match "[^/]*$", arg[1], ..., #store:list())
      return 3
    ]])
    local out, _, code = sessile("run " .. home .. "/x.lua --json")
    assert.equal("x.lua\t--json\t--json\t1\n", out)
    assert.equal(3, code)
    assert.equal(3, (select(3, sessile "run nothing.lua")))
    assert.equal(0, (select(3, sessile("run -", "print 'hello'"))))
  end)
end)

describe("version and policies", function()
  it("are told", function()
    assert.matches("^sessile %d+%.%d+%.%d+", (done "version"))
    assert.equal(done "version", (done "--version"))
    assert.is_string(json("version").sessile)
    assert.truthy(done("policy list"):find("sliding_window", 1, true))
    assert.is_true(#json "policy list" > 1)
  end)
end)

describe("text for a terminal", function()
  it("is inert whatever it was", function()
    math.randomseed(42)
    for _ = 1, 500 do
      local bytes = {}
      for i = 1, math.random(0, 60) do
        bytes[i] = string.char(math.random(0, 255))
      end
      local safe = terminal.safe(table.concat(bytes))
      assert.is_nil(safe:find "[%z\1-\8\11-\31\127]")
      assert.is_number(utf8.len(safe))
      for _, code in utf8.codes(safe) do
        assert.is_false(code >= 0x80 and code <= 0x9F or code >= 0x202A and code <= 0x202E
          or code >= 0x2066 and code <= 0x2069)
      end
    end
  end)

  it("has a width, and is cut by it", function()
    assert.equal(4, terminal.width "漢字")
    assert.equal(1, terminal.width "e\u{301}")
    assert.equal("漢…", terminal.cut("漢字漢字", 4))
    assert.equal("abc", terminal.cut("abc", 3))
    assert.equal("1,234,567", terminal.number(1234567))
  end)

  it("says when, in words", function()
    local now = 1700000000000
    assert.equal("now", terminal.ago(now, now))
    assert.equal("5 min ago", terminal.ago(now - 300000, now))
    assert.equal("yesterday", terminal.ago(now - 90000000, now))
    assert.equal("2022-11-14", terminal.ago(now - 365 * 86400000, now))
  end)
end)
