--- demo: shows the main features on a bundled transcript.
--
-- It has five scenes (seal, replay, remember, kill, what is left) in a temporary folder. It never
-- touches another store, key or network, and every number it prints is read back from the disk.

local demo_recall = require "sessile.demo_recall"
local diff = require "sessile.cli.diff"
local import = require "sessile.import"
local ledgers = require "sessile.cli.ledger"
local render = require "sessile.cli.render"
local replay = require "sessile.replay"
local sessile = require "sessile"
local terminal = require "sessile.cli.terminal"

local demo = {}

local WINDOW, RESERVE = 16000, 1000
local ROUNDS = 5
local SESSION = "slow-start"

-- ---------------------------------------------------------------- the system

local function quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

-- What a shell command prints.
local function output(command)
  local pipe <close> = assert(io.popen(command))
  return pipe:read "a"
end

-- Makes a folder. It is removed when what is returned is closed, or when this process is gone,
-- however it ended (a closed pipe, Ctrl-C, SIGKILL): a shell that no signal of ours ends waits for
-- that. The same shell makes it, so that at no time it is there without the shell. nil: it cannot.
local function guarded(folder)
  local name = quote(folder)
  local guard = assert(io.popen(("trap '' HUP INT PIPE TERM; exec >/dev/null 2>&1; "
    .. "mkdir -m 700 -- %s || exit 1; cat; rm -rf -- %s || { sleep 1; rm -rf -- %s; }")
    :format(name, name, name), "w"))
  local made = os.execute(("for i in $(seq 200); do [ -d %s ] && exit 0; sleep 0.01; done; exit 1")
    :format(name))
  if not made then
    guard:close()
  end
  return made and guard
end

local function write_file(path, text)
  local file <close> = assert(io.open(path, "w"))
  assert(file:write(text))
end

--- The path of the transcript: in the source tree, or where it was installed.
---@return string?
function demo.transcript()
  local here = assert(package.searchpath("sessile.demo", package.path)):match "^(.*)/[^/]*$"
  for _, place in ipairs { "/../../examples/", "/../../../sessile/" } do
    local path = here .. place .. "demo-session.jsonl"
    local file = io.open(path)
    if file then
      file:close()
      return (path:gsub("/[^/.]+/%.%.%f[/]", ""):gsub("/[^/.]+/%.%.%f[/]", ""))
    end
  end
  return nil
end

local function random_hex(bytes)
  local file <close> = assert(io.open("/dev/urandom", "rb"))
  return (assert(file:read(bytes)):gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

-- ---------------------------------------------------------------- scenes

local function first_words(path)
  for record in assert(import.open(path)) do
    for _, raw in ipairs(record.messages or {}) do
      local message = sessile.decode(raw)
      if message.role == "user" then
        return render.text(message):match "^%S+ %S+ %S+ %S+ %S+"
      end
    end
  end
end

local function count_matches(phrase, place)
  return tonumber((output(("grep -rhF -- %s %s | wc -l"):format(quote(phrase), quote(place)))))
end

-- Scene 1: sealed as it is written; only the key opens it.
local function seal(show, scene)
  show.heading "1. Seal it: nobody can read it on the disk"
  local records = assert(import.open(scene.transcript))
  local session, counts = import.into(scene.store, records, { from = "jsonl", id = "original" })
  assert(session, counts)
  session:close()
  local file = output(("find %s -name 'original*.jsonl' -o -name '=*.jsonl'"):format(
    quote(scene.folder))):match "[^\n]+"
  local phrase = assert(first_words(scene.transcript), "the transcript has no user message")
  show.line("The bundled transcript: %d messages in %d turns.", counts.messages, counts.turns)
  show.line("“%s” occurs in %d line of the transcript", phrase,
    count_matches(phrase, scene.transcript))
  show.line("and in %d lines of the files of the store. A line of the store:",
    count_matches(phrase, scene.folder .. "/store"))
  local line
  for text in io.lines(file) do
    line = text
    if #line > 2000 then break end
  end
  show.line("  %s… (%s)", terminal.line(line:sub(1, 72)), terminal.bytes(#line))
end

-- Scene 2: a policy decides after each turn what the model sees next.
local function replay_turns(show, scene)
  show.heading(("2. Replay it under the policy `tiered`, for a window of %s tokens"):format(
    terminal.number(WINDOW)))
  local shown = false
  local ledger, session = replay.run(assert(import.open(scene.transcript)), {
    store = scene.store, id = SESSION, title = "Slow start", policy = "tiered",
    window = WINDOW, reserve = RESERVE,
    on_turn = function(ledger, outcome, current)
      if shown or not (outcome.policy and outcome.policy.applied) then
        return
      end
      shown = true
      show.line("The first compaction, after turn %d (- left, ~ shortened, + new):", ledger.turns)
      local before = assert(current:context { at = outcome.turn })
      local after = assert(current:context())
      local text = diff.text(diff.compare(before, after, outcome.removals), show.paint,
        show.columns, 3)
      local lines = 0
      for line in text:gmatch "[^\n]+" do
        lines = lines + 1
        if lines <= 14 then show.line("  %s", line) end
      end
      if lines > 14 then show.line("  … and %d lines more", lines - 14) end
      show.line ""
    end,
  })
  assert(ledger, session)
  show.line("All compactions, in tokens:")
  for line in ledgers.compactions(ledger, show.paint):gmatch "[^\n]+" do
    show.line("  %s", line)
  end
  for _, line in ipairs(ledgers.refusals(ledger)) do
    show.line("  %s", line)
  end
  show.line ""
  show.line("The model sees %d messages, %s tokens. The session keeps all %d, %s tokens.",
    ledger.context, terminal.number(ledger.tokens), ledger.messages, terminal.number(ledger.all))
  session:close()
end

-- The notes of the model, and whose words the engine found them to be.
local function remember(show, scene)
  local session = assert(scene.store:resume(SESSION))
  local outcome = assert(session:remember { model = demo_recall.note })
  session:close()
  show.line("A scripted model notes what will be useful. The engine checks whose words that is:")
  for _, change in ipairs(outcome.changes) do
    show.line("  %-5s  %-7s  %s", change.source, change.state, terminal.cut(change.value,
      show.columns - 20))
  end
  show.line "(tool: most of its words are those of a tool's output, so it waits for a person)\n"
end

-- Scene 3: what was said is remembered, and quoted in another session.
local function recall(show, scene)
  show.heading "3. Remember it: the next session begins with what this one learned"
  remember(show, scene)
  local session = assert(scene.store:create { id = "next-week" })
  local rows = demo_recall.ask(session, scene.transcript)
  show.line "The same questions in a new session. Behind the first one stands:"
  for line in assert(session:entry(rows[1].recall_id)).data.content:gmatch "[^\n]+" do
    show.line("  %s", terminal.cut(line, show.columns - 2))
  end
  session:close()
  local sum, cells = { 0, 0, 0, 0, 0 }, {}
  for i, row in ipairs(rows) do
    local figures = { row.recalled, row.requests, row.tokens, row.new, row.new_in_system }
    cells[i] = { terminal.cut(row.question:match "[^\n]*", 40) }
    for k, figure in ipairs(figures) do
      sum[k], cells[i][k + 1] = sum[k] + figure, terminal.number(figure)
    end
  end
  show.line "\nEach request begins with the one before. NEW are the tokens behind that:"
  local text = terminal.table({ "QUESTION", "RECALLED>", "REQUESTS>", "TOKENS>", "NEW>",
    "IN THE SYSTEM MESSAGE>" }, cells, function(cell, _, heading)
    return heading and show.paint(cell, "bold") or cell
  end)
  for line in text:gmatch "[^\n]+" do
    show.line("  %s", line)
  end
  show.line("Of %s tokens %s are in no prompt cache; with the notes in the system message, %s.",
    terminal.number(sum[3]), terminal.number(sum[4]), terminal.number(sum[5]))
end

-- What the second process runs: it appends for ever, and says each id once it is safe.
local WRITER = [=[
local sessile = require "sessile"
local store = assert(sessile.open(arg[1], { key = sessile.key.file(arg[2]) }))
local session = assert(store:session { id = arg[3] })
io.write(io.open("/proc/self/stat"):read "n", "\n")
io.flush()
local padding = (" all work and no play"):rep(12000)
for n = 1, math.huge do
  local id = assert(session:append { role = "assistant", content = n .. padding })
  io.write(id, " ", n, "\n")
  io.flush()
end
]=]

local function kill_once(scene, round, script)
  local command = ("exec %s run %s %s %s %s"):format(quote(scene.executable), quote(script),
    quote(scene.folder .. "/store"), quote(scene.key), "killed")
  local pipe = assert(io.popen(command))
  local pid = assert(math.tointeger(pipe:read "n"), "the second process did not start")
  local said = {}
  local function take(line)
    local id, n = line:match "^(%x+) (%d+)$"
    if id then said[#said + 1] = { id = id, n = n } end
  end
  pipe:read "l"
  for _ = 1, 4 + 3 * round do
    take(assert(pipe:read "l", "the second process ended too early"))
  end
  os.execute(("kill -9 %d"):format(pid))
  for line in pipe:lines() do
    take(line)
  end
  local _, how, number = pipe:close()
  return said, ("%s %d"):format(how, number)
end

-- Reopens and reads back each entry that was acknowledged.
local function look_again(scene, said)
  local session = assert(scene.store:resume "killed")
  local found = 0
  for _, one in ipairs(said) do
    local entry = session:entry(one.id)
    local content = entry and entry.data.content
    if content and content:match "^%d+" == one.n then
      found = found + 1
    end
  end
  local torn = session.torn
  local extra = tonumber(session:head(), 16) - tonumber(said[#said].id, 16)
  session:close()
  return found, torn, extra
end

-- Scene 4: kill -9, in the middle of an append when chance has it so.
local function kill(show, scene)
  show.heading(("4. Kill a writer with SIGKILL %d times, and see what is left"):format(ROUNDS))
  local script = scene.folder .. "/writer.lua"
  write_file(script, WRITER)
  local rows, all, lost, torn_bytes, torn_count = {}, 0, 0, 0, 0
  for round = 1, ROUNDS do
    local said, how = kill_once(scene, round, script)
    local found, torn, extra = look_again(scene, said)
    all, lost = all + #said, lost + #said - found
    torn_bytes, torn_count = torn_bytes + torn, torn_count + (torn > 0 and 1 or 0)
    rows[round] = {
      ("%d"):format(round), how, ("%d"):format(#said), said[#said].id, ("%d"):format(found),
      extra > 0 and ("%d more, written but not yet acknowledged"):format(extra)
        or torn > 0 and ("%s of a torn line set aside"):format(terminal.bytes(torn)) or "",
    }
  end
  local text = terminal.table({ "RUN>", "ENDED BY", "ACKNOWLEDGED>", "LAST", "FOUND>", "NOTE" },
    rows, function(cell, _, heading) return heading and show.paint(cell, "bold") or cell end)
  for line in text:gmatch "[^\n]+" do
    show.line("  %s", line)
  end
  show.line ""
  show.line("Acknowledged: %d. Lost: %d.", all, lost)
  if torn_count > 0 then
    local files = output(("find %s -name '*.torn-*' | wc -l"):format(quote(scene.folder)))
    show.line("%d append%s cut off: %s were set aside in %d file%s, not deleted.",
      torn_count, torn_count == 1 and " was" or "s were", terminal.bytes(torn_bytes),
      math.tointeger(tonumber(files)), math.tointeger(tonumber(files)) == 1 and "" or "s")
  else
    show.line("This time no append was cut off, so nothing had to be set aside.")
  end
  return lost == 0
end

-- Scene 5: the sessions, and the end of the tree of one of them.
local function look_back(show, scene)
  show.heading "5. `sessile list` and `sessile tree slow-start`"
  local rows = {}
  for i, row in ipairs(assert(scene.store:list())) do
    rows[i] = { row.id, terminal.number(row.messages), terminal.bytes(row.bytes), row.status }
  end
  local text = terminal.table({ "ID", "MESSAGES>", "SIZE>", "STATUS" }, rows,
    function(cell, _, heading) return heading and show.paint(cell, "bold") or cell end)
  for line in text:gmatch "[^\n]+" do
    show.line("  %s", line)
  end
  show.line "\n  …"
  local tree = output(("%s tree %s --store %s --key-file %s | tail -n 8"):format(
    quote(scene.executable), SESSION, quote(scene.folder .. "/store"), quote(scene.key)))
  for line in tree:gmatch "[^\n]+" do
    show.line("  %s", line)
  end
  show.line "(● the model sees it, ○ it was compacted away and is still in the session)"
end

-- ---------------------------------------------------------------- the whole

local function play(show, scene)
  write_file(scene.key, "hex:" .. random_hex(32) .. "\n")
  assert(os.execute("chmod 600 " .. quote(scene.key)))
  scene.store = assert(sessile.open(scene.folder .. "/store", {
    key = sessile.key.file(scene.key),
    -- min: these questions are long, and a note has few of their words
    memory = { enabled = true, policy = "memory", remember = false, recall = { min = 0.05 } },
  }))
  seal(show, scene)
  replay_turns(show, scene)
  recall(show, scene)
  local kept = kill(show, scene)
  look_back(show, scene)
  scene.store:close()
  return kept
end

---@class sessile.demo.options
---@field out fun(text: string)
---@field paint fun(text: string, colour: string): string
---@field executable string
---@field columns integer?

--- Plays it. out(text) is called for what is shown; executable is this program, for the
--- second process. Returns true when everything acknowledged was found again.
---@param options sessile.demo.options
---@return boolean? kept
---@return string? message
---@return string? code
function demo.run(options)
  local transcript = demo.transcript()
  if not transcript then
    return nil, "the transcript examples/demo-session.jsonl is missing", "ENOTFOUND"
  end
  local folder = ("%s/sessile-demo.%s"):format(os.getenv "TMPDIR" or "/tmp", random_hex(6))
  local guard = guarded(folder)
  if not guard then
    return nil, "a temporary folder cannot be created: check $TMPDIR", "EIO"
  end
  local first = true
  local show = { paint = options.paint, columns = options.columns or 100 }
  function show.line(format, ...)
    options.out((select("#", ...) > 0 and format:format(...) or format) .. "\n")
  end
  function show.heading(text)
    options.out((first and "" or "\n") .. options.paint(text, "bold") .. "\n\n")
    first = false
  end
  local scene = {
    folder = folder, key = folder .. "/key", transcript = transcript,
    executable = options.executable,
  }
  local ok, kept = xpcall(play, debug.traceback, show, scene)
  guard:close()
  if not ok then
    return nil, kept, "EIO"
  end
  return kept
end

return demo
