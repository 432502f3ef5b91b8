-- The command line when something is wrong: what may not be read is no emptiness, hints work
-- when they are pasted, errors are JSON when JSON was asked for, and nothing that is odd in a
-- store or in a word hangs a command or reaches a terminal.
-- Files only: what may not be read, and what is no folder.

local cli = require "spec.support.cli"
local decode = require("sessile").decode
local expect = require "spec.support.expect"
local span = require("sessile.core").span
local has, has_not = expect.has, expect.has_not
local write = cli.write
local sessile, done, json, no_traceback = cli.sessile, cli.done, cli.json, cli.no_traceback
local home

cli.each_test(function(path) home = path end)

-- Fails with that exit code; returns what it said.
local function fails(code, words, before)
  local out, err, got = sessile(words, nil, before)
  assert.equal(code, got, words .. "\n" .. out .. err)
  assert.equal("", out)
  no_traceback(err)
  return err
end

-- Runs the command that stands in a hint, from `sessile` to the end of its line or to a `.
local function paste(err)
  local words = assert(err:match(cli.binary:gsub("%p", "%%%0") .. " ([^\n`]+)"), err)
  return sessile((words:gsub("  .*$", ""))) -- without what is said beside it
end

describe("what may not be read", function()
  -- A folder that nobody else closes: the tests' own has closed folders above it.
  local open

  before_each(function()
    local pipe <close> = assert(io.popen "mktemp -d /tmp/sessile-open.XXXXXX")
    open = pipe:read "l"
    os.execute(("chmod 755 %s; mkdir -m 700 %s/closed %s/theirs"):format(open, open, open))
  end)

  after_each(function()
    os.execute("rm -rf " .. open)
  end)

  local function alone()
    local able = cli.is_root() and os.execute(("%s %s version >/dev/null 2>&1"):format(
      cli.as_nobody, cli.binary))
    if not able then pending "needs root, to become somebody else" end
    return not able
  end

  it("is DENIED, with its path, and no empty store", function()
    if alone() then return end
    local store = open .. "/closed/store"
    done(("new --id z --plain --store %s"):format(store))
    for _, words in ipairs { "list", "show z", "", "tree", "append z text" } do
      local err = fails(7, ("--plain --store %s %s"):format(store, words),
        "env HOME=/nowhere " .. cli.as_nobody)
      has(err, store)
      has_not(err, "sessile new")
    end
  end)

  -- A plain store of nobody's with the session z, and the options that lead to it.
  local function theirs()
    os.execute(("chown 65534 %s/theirs"):format(open))
    local store = open .. "/theirs/store"
    local at = "--plain --store " .. store .. " "
    assert.equal(0, (select(3, sessile(at .. "new --id z", nil, cli.as_nobody))))
    return store, at
  end

  it("is no end of reading when it is the folder of a torn end", function()
    if alone() then return end
    local store, at = theirs()
    assert.equal(0, (select(3, sessile(at .. "append z word1", nil, cli.as_nobody))))
    assert.equal(0, (select(3, sessile(at .. "append z word2", nil, cli.as_nobody))))
    os.execute(("truncate -s -5 %s/agents/main/z.jsonl; chmod 500 %s/agents/main"):format(store,
      store))
    local out, err, code = sessile(at .. "show z", nil, cli.as_nobody)
    assert.equal(0, code, err)
    has(out, "word1")
    fails(7, at .. "append z more", cli.as_nobody)
    os.execute(("chmod 700 %s/agents/main"):format(store))
    assert.equal(0, (select(3, sessile(at .. "append z more", nil, cli.as_nobody))))
    assert.equal(0, (select(3, sessile(at .. "check z", nil, cli.as_nobody))))
  end)

  it("is named with its mode when it is the folder of the store", function()
    if alone() then return end
    local store, at = theirs()
    os.execute("chmod 0 " .. store)
    local said = fails(7, at .. "show z", cli.as_nobody)
    has(said, "the folder " .. store)
    has(said, "mode is 000: chmod u+rwx it")
  end)

  it("is DENIED for one log too", function()
    if alone() then return end
    local store, at = theirs()
    local log = store .. "/agents/main/z.jsonl"
    os.execute(("chmod 0 %s/agents/main"):format(store))
    has(fails(7, at .. "show z", cli.as_nobody), "folder main in " .. store)
    local said = fails(7, at .. "list", cli.as_nobody)
    has(said, "folder main in " .. store)
    has(said, "mode is 000: chmod u+rwx it")
    os.execute(("chmod 700 %s/agents/main; chmod 0 %s"):format(store, log))
    said = fails(7, at .. "show z", cli.as_nobody)
    has(said, log)
    has(said, "mode is 000: chmod u+rw it")
    has(fails(7, at .. "show other", cli.as_nobody), log)
    local out, err, code = sessile(at .. "list", nil, cli.as_nobody)
    assert.equal(0, code)
    has(out, "EDENIED")
    has(err, log)
    has(fails(7, at .. "list"), "another user") -- for root as well
  end)

  it("is not a folder: that is said", function()
    write(home .. "/file", "")
    for _, words in ipairs { "list", "new", "show x", "list --plain" } do
      has(fails(1, ("%s --store %s/file"):format(words, home)), "file is not a folder")
    end
  end)

  it("is nothing only where nothing is", function()
    local out, err, code = sessile(("list --store %s/none"):format(home))
    assert.equal("", out)
    assert.equal(0, code)
    has(err, "There are no sessions")
    err = fails(3, "new --store /proc/foo")
    has(err, "/proc/foo")
    has_not(err, "sessile list")
  end)

  it("has no place without a home", function()
    local away = "env -u HOME -u XDG_DATA_HOME -u XDG_CONFIG_HOME"
    for _, words in ipairs { "", "list", "new", "show x" } do
      has(fails(2, words, away), "--store")
    end
    local _, _, code = sessile(("list --plain --store %s/x"):format(home), nil, away)
    assert.equal(0, code)
  end)
end)

describe("a FIFO", function()
  it("holds nobody up", function()
    os.execute(("mkdir -p %s/s %s/config/sessile/commands; mkfifo %s/s/keyring "
      .. "%s/key %s/config/sessile/commands/pipe.lua"):format(home, home, home, home, home))
    for _, words in ipairs { "", "list", "new", "show x", "append x y", "list --plain" } do
      local err = fails(7, ("%s --store %s/s"):format(words, home), "timeout 10")
      has(err, "keyring in " .. home .. "/s is not a regular file")
    end
    has(fails(7, ("new --key-file %s/key"):format(home), "timeout 10"), home .. "/key")
    fails(2, "pipe", "timeout 10")
  end)
end)

describe("a log that lies where it does not belong", function()
  local logs, at

  before_each(function()
    at = ("--plain --store %s/s "):format(home)
    logs = home .. "/s/agents/main/"
    done(at .. "new --id ok --title Talk")
    os.execute(("cp %sok.jsonl %szz.jsonl"):format(logs, logs))
  end)

  it("is in nobody's way", function()
    for _, name in ipairs { "ok", "o", "Talk", "last", "ok@0" } do
      done(at .. "show " .. name)
    end
    done(at .. "append ok text")
    assert.equal(1, #json(at .. "show ok"))
    done(at .. "new --id ok --agent other") -- two that can be opened are still two
    has(fails(2, at .. "show ok"), "fits 2 sessions")
    done(at .. "show ok --agent main")
  end)

  it("is told when no other fits", function()
    os.remove(logs .. "ok.jsonl")
    done(at .. "new --id okay")
    has(fails(5, at .. "show ok"), "main/zz") -- and not okay, which begins so
    done(at .. "show oka")
    assert.equal(0, #json(at .. "show last"))
  end)
end)

describe("what a terminal would obey", function()
  -- Red, and the same by one character; text that runs backwards.
  local EVIL = "\27[31m\u{9b}31m\u{202e}\u{2066}"

  local function clean(text)
    assert.is_nil(text:find "[%z\1-\8\11-\31\127]", text)
    for _, part in ipairs { "\u{9b}", "\u{202e}", "\u{2066}", "\u{2069}" } do
      has_not(text, part)
    end
  end

  it("is in no message on stderr", function()
    local evil = cli.quote(home .. "/x" .. EVIL .. "y")
    for _, words in ipairs { "list", "show x", "new --id one", "new --id one", "show nope",
                             "show one", "show " .. cli.quote(EVIL), cli.quote(EVIL),
                             "list --agent " .. cli.quote(EVIL), "list --sort " .. cli.quote(EVIL),
                             "list --key-file " .. cli.quote(EVIL), "run " .. cli.quote(EVIL),
                             "import " .. cli.quote(EVIL), "policy replay " .. cli.quote(EVIL) } do
      for _, json_too in ipairs { "", " --json" } do
        local _, err = sessile(("%s --store %s%s"):format(words, evil, json_too))
        clean(err)
      end
    end
  end)

  it("is in a hint by its numbers, so that it can still be pasted", function()
    local store = home .. "/it's \\" .. EVIL .. "y"
    local _, err = done("list --store " .. cli.quote(store))
    local words = assert(err:match " (new %-%-store %$'.*')")
    local pipe <close> = assert(io.popen(("bash -c %s"):format(cli.quote(
      "printf %s " .. words:match "%-%-store (.*)"))))
    assert.equal(store, pipe:read "a")
  end)

  it("is an escape in JSON, the same value", function()
    -- \u{a0}, \u{2029} and \u{2065} stand beside those that are escaped.
    local text = "\u{7f}\u{80}\u{9f}\u{a0}é\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}\\\u{9b}"
    done("new --id one --title " .. cli.quote(EVIL))
    done("append one " .. cli.quote(text))
    for _, words in ipairs { "list", "show one", "show one@1", "tree one", "context one" } do
      local out = done("--json " .. words)
      clean(out)
      assert.is_true(span.valid(out), out)
    end
    assert.equal(EVIL, json "list"[1].title)
    assert.equal(text, json "show one"[1].message.content)
    has(done "--json show one", "\\u007f\\u0080\\u009f\u{a0}é\u{2029}\\u202a")
  end)
end)

describe("a key that does not fit", function()
  it("is named by where it came from, with the rule", function()
    for _, words in ipairs { "new", "list" } do
      if words == "list" then done "new --id one" end
      local err = fails(7, words, "env SESSILE_KEY=short")
      has(err, "SESSILE_KEY")
      has(err, "12 characters")
    end
    has(fails(7, "list", "env SESSILE_KEY='wrong wrong wrong'"), "variable SESSILE_KEY")
    write(home .. "/key", "short\n")
    os.execute(("chmod 600 %s/key"):format(home))
    has(fails(7, ("list --key-file %s/key"):format(home)), home .. "/key")
  end)

  it("is --plain that is missing, or too much", function()
    done(("--plain --store %s/plain new --id one"):format(home))
    local err = fails(7, ("list --store %s/plain"):format(home))
    has(err, "--plain")
    has_not(err, "right")
    done "new --id one"
    has(fails(7, "list --plain"), "Omit --plain")
  end)
end)

describe("ids", function()
  it("are not `last`, which is the newest", function()
    has(fails(2, "new --id last"), "newest")
    write(home .. "/talk.jsonl", '{"role":"user","content":"x"}\n')
    fails(2, ("import %s/talk.jsonl --id last"):format(home))
    done "new --id one --title last"
    done "new --id two"
    done "append last text"
    assert.equal(1, #json "show two")
  end)

  it("may look like options: hints have -- before them", function()
    done "new --id=-x"
    local _, err = done "show -- -x"
    assert.equal(0, (select(3, paste(err))))
    assert.equal(1, #json "show -- -x")
    assert.equal(0, (select(3, paste(fails(1, "new --id=-x")))))
    assert.equal(0, (select(3, paste(fails(3, "show -- -x@77")))))
  end)

  it("are real in hints, and so is the store", function()
    local at = ("--plain --store '%s/a store'"):format(home)
    done(at .. " new --id 'two words'")
    local out, err, code = paste(fails(1, at .. " new --id 'two words'"))
    assert.equal(0, code, out .. err)
    has(paste(done(at)), "two words") -- what a bare sessile says first: list
    out = paste(fails(3, at .. " show nope"))
    has(out, "two words")
  end)

  it("of thousands of bytes are cut", function()
    local long = ("a"):rep(5000)
    done "new --id one"
    for _, words in ipairs { "show " .. long, "help " .. long, long, "show one@" .. long .. "z",
                             "show x --last " .. long, "show x --" .. long } do
      local _, err = sessile(words)
      assert.is_true(#err < 1500, #err .. " bytes")
    end
  end)

  it("of entries are told from those of sessions", function()
    done "new --id bug"
    local err = fails(3, "show bug@zz")
    has(err, "'zz' is not an entry of session bug")
    has(err, "tree bug")
    has(fails(3, "show bug@77"), "session bug has no entry 00000077")
    has(fails(3, "show other@zz"), "there is no session 'other@zz'")
  end)

  it("are the same for the number that no entry has", function()
    done "new --id bug"
    done "append bug hello"
    for _, words in ipairs { "show bug@ffffffff", "fork bug@ffffffff", "label bug ffffffff x",
                             "pin bug FFFFFFFF", "uncompact bug ffffffff" } do
      has(fails(3, words), "is not an entry of session bug")
    end
  end)
end)

describe("with --json", function()
  local function error_of(code, words)
    local err = fails(code, words)
    assert.is_true(span.valid(err), err)
    return decode(err).error
  end

  it("an error is JSON, one line on stderr", function()
    assert.equal("ENOTFOUND", error_of(3, "show nope --json").code) -- not even a store
    done "new --id one"
    assert.equal("ENOTFOUND", error_of(3, "show nope --json").code)
    assert.equal("there is no session 'nope'", error_of(3, "--json show nope").message)
    assert.equal("EUSAGE", error_of(2, "show --json").code)
    assert.equal("EUSAGE", error_of(2, "shwo x --json").code)
    assert.equal("EUSAGE", error_of(2, "policy --json").code)
    assert.is_string(error_of(3, "show nope --json").next)
  end)

  it("a note is JSON too", function()
    done(("new --id one --plain --store %s/s"):format(home))
    local log = io.open(home .. "/s/agents/main/one.jsonl", "a")
    log:write '{"id":"000'
    log:close()
    local _, err = done(("show one --json --plain --store %s/s"):format(home))
    has(decode(err).note, ".torn-")
  end)

  it("help has one command, a group, or all", function()
    local show = json "help show"
    assert.equal("show", show.name)
    assert.equal("--last N", show.options[1].name)
    assert.is_true(#show.examples > 0)
    assert.equal(7, #json "help policy")
    assert.is_true(#json "help" > 10)
    assert.equal("EUSAGE", error_of(2, "help nothing --json").code)
  end)
end)

describe("hints", function()
  it("are about what is wrong", function()
    local err = fails(3, "policy replay tiered /nothing.jsonl")
    has_not(err, "--from")
    has(err, "path of a recording")
    write(home .. "/odd.jsonl", "odd\n")
    has(fails(1, ("policy replay tiered %s/odd.jsonl"):format(home)), "--from jsonl")
    write(home .. "/empty.jsonl", "")
    has(fails(1, ("import %s/empty.jsonl"):format(home)), "empty")
  end)

  it("name the option whose value is wrong", function()
    for _, value in ipairs { "x", "-1", "1.5", "''" } do
      has(fails(2, "show x --last " .. value), "option '--last'")
    end
    has(fails(2, "show x --last=-1"), "option '--last'")
    has(fails(2, "compact x --window -5"), "option '--window'")
  end)

  it("list what belongs to a group of commands", function()
    local out = done "policy --help"
    has(out, "policy replay")
    has(out, "policy list")
    has(fails(2, "policy"), "policy replay")
    has(fails(2, "policy --plain"), "policy list")
  end)

  it("name the command that a word of another program means", function()
    has(fails(2, "ls"), " list`?")
    has(fails(2, "rm one"), " delete`?")
    has(fails(2, "memroy"), " memory`?")
    has(fails(2, "polcy list"), " policy`?")
    has(fails(2, "undo one"), " uncompact`")
  end)

  it("name the option that has a format", function()
    done "new --id one"
    has(fails(2, "export one --format pi"), "--to pi")
    has(fails(2, "export one --to html"), "--format html")
    has(fails(2, "export one --format odd"), "There are: json")
  end)

  it("name the policy's file that is in this folder", function()
    done "new --id one"
    write(home .. "/frugal.lua", "return { name = 'frugal', truncate = function() end }")
    local here = ("sh -c 'cd %s && exec \"$@\"' sh"):format(home)
    for _, words in ipairs { "compact one --policy frugal", "policy try frugal one",
      "policy show frugal" } do
      has(fails(3, words, here), "./frugal.lua")
    end
    has(fails(3, "policy show other", here), "sessile policy list")
  end)

  it("know an empty list from a store that is full", function()
    done "new --id one"
    local _, err = done "list --agent nobody"
    has(err, "agent 'nobody'")
    has_not(err, "Make one")
    _, err = done "list --offset 1"
    has(err, "1 session")
    has_not(err, "Make one")
    assert.equal("", select(2, done "list --json --offset 1"))
    has(done "list --limit 0", "one") -- 0 is no limit
    has(done "list --json --limit 0", '"one"')
  end)
end)

describe("import", function()
  it("fails when nothing is a message, and makes no session", function()
    write(home .. "/garbage", "one\ntwo\n")
    local err = fails(1, ("import %s/garbage --from jsonl --id g"):format(home))
    has(err, "none of its lines is a message")
    has(err, "line 1")
    fails(1, ("import %s/garbage --from pi --id g"):format(home))
    fails(3, "show g")
    assert.same({}, json "list")
  end)

  it("says how many lines it could not read, and why the first", function()
    write(home .. "/talk", table.concat({
      '{"role":"user","content":"x"}', '{"role":"assistant","content":"y"}',
      '{"role":"king","content":"z"}', "torn {",
    }, "\n"))
    local _, err = done(("import %s/talk --id talk"):format(home))
    has(err, "2 messages in 1 turn")
    has(err, "2 lines could not be read as messages")
    has(err, 'first: line 3: unknown role "king"')
    local counts = json(("import %s/talk --id again"):format(home))
    assert.equal(2, counts.unread)
    assert.equal(3, counts.first_unread.at)
    assert.equal(2, #json "show talk")
    local tree = json "tree talk"
    -- the session, two messages, a turn, two customs, how far it was imported
    assert.equal(1 + 2 + 1 + 2 + 1, #tree.entries)
  end)
end)

describe("calls as OpenAI writes them", function()
  it("show the function's name and arguments", function()
    write(home .. "/calls.jsonl", '{"role":"user","content":"read it"}\n'
      .. '{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":'
      .. '{"name":"read_file","arguments":"{\\"path\\":\\"a\\"}"}}]}\n')
    done(("import %s/calls.jsonl --id calls"):format(home))
    has(done "show calls", '→ read_file({"path":"a"})')
    has(done "tree calls", "→ read_file")
  end)
end)

describe("calls as Anthropic writes them", function()
  it("show the tool's name and input", function()
    write(home .. "/calls.jsonl", '{"role":"user","content":"read it"}\n'
      .. '{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"read_file",'
      .. '"input":{"path":"a","lines":[1,20]}}]}\n')
    done(("import %s/calls.jsonl --id calls"):format(home))
    has(done "show calls", '→ read_file({"lines":[1,20],"path":"a"})')
  end)
end)

describe("an answer that was interrupted", function()
  it("is marked where it is read", function()
    done "new --id cut"
    done("append cut -", '{"role":"assistant","content":"It is","metadata":{"interrupted":true}}')
    has(done "show cut", "assistant (interrupted)")
    has(done "context cut", "assistant (interrupted)")
  end)
end)
