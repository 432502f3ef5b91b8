-- Whatever is stored, or typed, a terminal gets text that it only shows, and a program one JSON
-- document: ids, titles, labels, words of messages, names of tools, settings, metadata and words
-- of the command line made of what a terminal obeys, hides or cannot read.
--
-- A few hundred strings; with SESSILE_SOAK=1, a million (STRINGS=n: n of them). The seed is printed
-- by a failure; SEED=… takes its place.

local cli = require "spec.support.cli"
local decode = require("sessile").decode
local span = require("sessile.core").span
local terminal = require "sessile.cli.terminal"
local json = require "sessile.cli.json"

local soak = os.getenv "SESSILE_SOAK"
local seed = tonumber(os.getenv "SEED") or os.time()
local MANY = soak and (tonumber(os.getenv "STRINGS") or 1000000)
local WANTED = MANY or 300 -- strings that go through a store and every command
local SESSIONS = soak and 40 or 8 -- a store
local home

-- What strings are made of.
local PIECES = {
  -- sequences: colours, titles, links, a clipboard, a device's answer, a terminal's reset
  "\27[31m", "\27[2J\27[H", "\27]0;owned\7", "\27]8;;http://x\27\\", "\27]52;c;cm0=\7", "\27[6n",
  "\27c", "\27P+q\27\\", "\27_G\27\\", "\27^x\27\\", "\27X\27\\", "\27", "\27[", "\27]",
  "\27[?1049h", "\27[38;5;1", "\27\27[31m", "\27[\24m", "\27(0",
  -- C0, DEL, and C1 as bytes and as characters
  "\0", "\1", "\4", "\7", "\8", "\11", "\12", "\r", "\n", "\t", "\14", "\15", "\24", "\127",
  "\u{80}", "\u{85}", "\u{9b}31m", "\u{9d}0;x\u{9c}", "\u{90}", "\x9b31m", "\x90", "\x9d",
  -- what reorders, hides, parts or joins
  "\u{202E}", "\u{202A}", "\u{2066}", "\u{2069}", "\u{200B}", "\u{200D}", "\u{200E}", "\u{2028}",
  "\u{2029}", "\u{FEFF}", "\u{061C}", "\u{E0041}", "\u{FFF9}", "\u{2060}",
  -- no UTF-8
  "\xff\xfe", "\xc3", "\xe2\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\x80", "\x80",
  -- wide, narrow, long, and what a program may take for its own
  "漢字", "e\u{301}\u{301}", "👩‍👩‍👧", "ü", ("A"):rep(300), (" "):rep(20), "--json", "-x",
  "$(touch x)", "`x`", "'", '"', "\\", "\\27[31m", "\\u001b[31m", "%s%n%1$s",
  "sessile list", "<b>", "&lt;",
  "last", "head", "@", "/", "..", "00000001", "null", "{}", "text", "words", "a",
}

local function hostile(most)
  local parts = {}
  for i = 1, math.random(1, most or 6) do
    parts[i] = PIECES[math.random(#PIECES)]
  end
  return table.concat(parts)
end

-- Without what no argument of a program can hold.
local function word(most)
  local text = hostile(most):gsub("%z", "")
  return text == "" and "x" or text
end

-- A string as Lua source, whatever is in it.
local function source(text)
  return '"' .. text:gsub(".", function(c) return ("\\%03d"):format(c:byte()) end) .. '"'
end

local function assert_inert(text, words, keeps)
  local context = ("seed %d: sessile %s\n%q"):format(seed, words, text:sub(1, 4000))
  assert.truthy(utf8.len(text), "no UTF-8: " .. context)
  local odd = text:find(keeps or "[%z\1-\8\11-\31\127]")
  assert.is_nil(odd, odd and ("byte %d at %d: %s"):format(text:byte(odd), odd, context))
  for _, code in utf8.codes(text) do
    local wrong = code >= 0x80 and code <= 0x9F or code == 0x061C
      or code >= 0x202A and code <= 0x202E or code >= 0x2066 and code <= 0x2069
    assert.is_false(wrong, ("U+%04X: %s"):format(code, context))
  end
end

-- Fills a store with sessions made of such strings. Returns their ids, and how many strings.
local function fill(ids)
  local count = 0
  local function string(most)
    count = count + 1
    return source(hostile(most))
  end
  local lines = { [[
    local sessile = require "sessile"
    local store = assert(sessile.open((...), { guard = os.getenv "TEST_GUARD" }))
    local function try(f, ...) pcall(f, ...) end
  ]] }
  local function add(format, ...)
    lines[#lines + 1] = format:format(...)
  end
  for i = 1, SESSIONS do
    ids[i] = word()
    add([[do local s = store:create { id = %s, title = %s, agent = %s, user = %s }
      if not s then s = store:create { id = %s } or assert(store:create { id = "plain %d" }) end]],
      source(ids[i]),
      string(), math.random(3) == 1 and string() or "nil",
      math.random(4) == 1 and string() or "nil", source(ids[i]), i)
    for _ = 1, 6 do
      add("try(s.append, s, { role = 'user', content = %s })", string(12))
      add([[try(s.turn, s, {
          { role = "assistant", content = %s, tool_calls = { { id = %s, type = "function",
            ["function"] = { name = %s, arguments = %s } } } },
        }, { usage = { input = 5, output = 2 }, model_name = %s, metadata = { [%s] = %s } })]],
        string(12), string(2), string(2), string(), string(), string(2), string())
      add("try(s.append, s, { role = 'tool', tool_call_id = %s, name = %s, content = %s })",
        string(2), string(2), string(12))
      add("try(s.append, s, { role = %s, content = { { type = %s, text = %s } } })", string(2),
        string(2), string())
    end
    add("try(s.label, s, s:head(), %s) try(s.label, s, s:head(), %s)", string(2), string(2))
    add("try(s.checkpoint, s, { name = %s, state = { [%s] = %s } })", string(), string(2), string())
    add("try(s.settings, s, { [%s] = %s }) try(s.metadata, s, { [%s] = { %s } })", string(2),
      string(), string(2), string())
    add("try(s.compact, s, { policy = 'sliding_window', window = 40, instructions = %s })",
      string())
    add("try(s.custom, s, %s, { [%s] = %s })", string(2), string(2), string())
    add("try(s.child, s, { agent = %s, id = %s, title = %s })", string(2), string(), string())
    add("try(s.branch, s, '00000001', { summary = %s })", string())
    if math.random(3) == 1 then
      add("try(s.suspend, s, { reason = %s, state = { %s } })", string(), string())
    end
    add("s:close() end")
    if math.random(5) == 1 then
      add("try(store.delete, store, { id = %s }, { soft = true, reason = %s })", source(ids[i]),
        string())
    end
  end
  add("store:close()")
  cli.write(home .. "/fill.lua", table.concat(lines, "\n"))
  cli.done(("run %s/fill.lua %s"):format(home, cli.store()))
  return count
end

-- Every command that prints, on a session; ID and WORD are replaced.
local COMMANDS = {
  "", "list", "list --long", "list --status deleted", "stats", "usage --by agent",
  "usage --by model", "search text", "search WORD", "check", "purge --retention 0s --dry-run",
  "keys status", "policy list", "info ID", "show ID", "show ID@1", "show ID@2", "show ID@3",
  "context ID", "tree ID", "tree ID --all", "label list ID", "checkpoints ID", "log ID",
  "log ID --all", "why ID 1", "why ID 2", "settings ID", "settings ID --metadata",
  "children ID", "stats ID", "stats ID --by day", "usage ID", "answer ID", "resume ID",
  "fixture ID --last 1", "compact ID --policy sliding_window --window 50 --dry-run",
  "delete ID", "delete ID --dry-run", "uncompact ID --dry-run", "branch ID 1",
  "restore ID WORD", "WORD", "WORD WORD", "sessions WORD", "help WORD", "list WORD",
  "list --status WORD", "list --since WORD", "--WORD", "show WORD", "show ID@WORD",
  "append ID --role WORD WORD", "label ID WORD WORD", "label rm ID WORD", "label ID 1 WORD",
  "rename ID WORD", "fork ID WORD", "fork ID 1 --id WORD", "new --id WORD --title WORD",
  "policy show WORD", "policy new WORD", "policy replay WORD WORD", "policy try WORD ID",
  "screen try WORD WORD", "screen try no_orders WORD", "screen test WORD",
  "screen try secrets WORD --option action=redact",
  "import WORD --from WORD", "import WORD", "run WORD", "settings ID WORD",
  "settings ID WORD=WORD", "checkpoint ID WORD", "checkpoints ID --name WORD",
  "forget WORD --dry-run", "undelete WORD", "export ID - --format WORD",
  "export ID - --format json", "export ID - --format jsonl",
  "compact ID --policy WORD", "compact ID --policy tiered --option WORD", "config", "doctor",
  "config trust WORD",
  "--config WORD list", "completions WORD",
  "--store WORD list", "--agent WORD list", "--key-file WORD list", "copy ID ram:WORD",
  "suspend ID WORD", "cancel ID WORD", "chat WORD --once WORD",
  "chat ID --model WORD --once WORD", "resume WORD", "__complete words show WORD",
  "__complete bash x WORD",
}

-- These print data for a program, as it is: an id alone, or a document. A terminal gets it inert.
local PRINTS_DATA = { new = true, fork = true, copy = true, import = true, export = true }

-- A document is JSON all the same, or lines of it.
local function assert_document(text, words, command)
  local where = ("seed %d: sessile %s\n%q"):format(seed, words, text:sub(1, 4000))
  if command:find "^export.*json$" then
    assert.is_true(text == "" or span.valid(text), where)
  elseif command:find "^export.*jsonl$" then
    for line in text:gmatch "[^\n]+" do
      assert.is_true(span.valid(line), where)
    end
  end
end

local function filled(command, ids)
  return (command:gsub("ID", function()
    local id = ids[math.random(#ids)]
    return (id:sub(1, 1) == "-" and "last" or cli.quote(id))
  end):gsub("WORD", function() return cli.quote((word():gsub("^%-+", "", 1))) end))
end

-- script(1) gives a command a terminal; its lines end in \r\n there.
local function has_terminal()
  return os.execute "script -qec true /dev/null </dev/null >/dev/null 2>&1" == true
end

local function run_all(ids, on_terminal)
  for _, command in ipairs(COMMANDS) do
    local words = filled(command, ids)
    local out, err, code = cli.sessile(words)
    local prints_data = PRINTS_DATA[command:match "^%l*"]
    assert_inert(prints_data and "" or out, words)
    assert_document(out, words, command)
    assert_inert(err, words)
    cli.no_traceback(err)
    assert.is_true(code >= 0 and code <= 7, words)
    if not command:find "^__complete" and not command:find "^run" and not command:find "^exp" then
      out, err = cli.sessile("--json " .. words)
      assert_inert(out, words)
      assert_inert(err, words)
      local said = ("seed %d: --json %s\n%s%s"):format(seed, words, out, err)
      assert.is_true(out == "" or span.valid(out), said)
      for line in err:gmatch "[^\n]+" do
        assert.is_true(span.valid(line), said)
      end
    end
    if on_terminal and (prints_data or math.random(10) == 1) then
      cli.write(home .. "/typed.sh", ("stty cols %d; exec %s %s </dev/null"):format(
        math.random(20, 200), cli.quote(cli.binary), words))
      out = cli.sessile("", nil, ("env NO_COLOR=1 TERM=xterm sh -c %s"):format(
        cli.quote("script -qec 'sh " .. home .. "/typed.sh' /dev/null")))
      assert_inert(out:gsub("\r+\n", "\n"), words)
    end
  end
end

describe("hostile strings", function()
  cli.each_test(function(path)
    home = path
    math.randomseed(seed)
  end)

  it("reach a terminal as text, and a program as JSON, from a store and from the command line",
    function()
      local count, on_terminal = 0, has_terminal()
      while count < WANTED do
        local ids = {}
        os.execute(("rm -rf %s/data"):format(cli.quote(home)))
        count = count + fill(ids)
        run_all(ids, on_terminal)
      end
    end)

  it("are text on one line, and the same JSON value, whatever they are made of", function()
    for _ = 1, MANY or 2000 do
      local text = hostile(10)
      local safe, line = terminal.safe(text), terminal.line(text)
      assert_inert(safe, "terminal.safe")
      assert_inert(line, "terminal.line", "[%z\1-\31\127]")
      assert.equal(safe, terminal.safe(safe), ("seed %d: %q"):format(seed, text))
      local columns = math.random(1, 40)
      assert.is_true(terminal.width(terminal.cut(line, columns)) <= columns,
        ("seed %d: %q"):format(seed, line))
      local written = json.write { text, [2] = json.raw "null" }
      assert_inert(written, "json.write")
      assert.is_true(span.valid(written), ("seed %d: %q"):format(seed, text))
      if utf8.len(text) then
        assert.equal(text, decode(written)[1])
      end
    end
  end)
end)
