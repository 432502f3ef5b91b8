--- complete: completion of a command line.
--
-- Owns: which word is being completed, by the commands' tables, and the candidates: commands,
-- options, choices, and the sessions, labels, checkpoints and agents of the store. Must never print
-- anything else, wait for another writer, create a store, or offer a name with characters that a
-- terminal executes or hides.

local options = require "sessile.cli.options"
local paths = require "sessile.paths"
local registry = require "sessile.cli.registry"
local render = require "sessile.cli.render"
local system = require "sessile.system"
local terminal = require "sessile.cli.terminal"

local complete = {}

local MOST = 200 -- names of a store
local FEW = 20 -- entries, newest first

---@class sessile.cli.candidate
---@field [1] string   the word
---@field [2] string?  what it is

-- ---------------------------------------------------------------- names of a store

local kinds = {}

-- Adds a candidate, unless it has characters that a terminal executes or hides.
local function add(list, word, about)
  if word ~= "" and terminal.line(word) == word and #list < MOST then
    list[#list + 1] = { word, about and terminal.cut(terminal.line(about), 60) }
  end
end

local function rows_of(app, which)
  local store = app:store()
  which.limit = which.limit or MOST
  return store and app:list(store, which) or {}
end

local function add_sessions(app, list, word, status)
  for _, row in ipairs(rows_of(app, { prefix = word, status = status })) do
    if row.id then
      add(list, row.id, row.title ~= "" and row.title or nil)
    end
  end
  if word == "" or #list > 0 then
    return
  end
  for _, row in ipairs(rows_of(app, { search = word, status = status })) do
    if row.title and row.title:sub(1, #word) == word then
      add(list, row.title, row.id)
    end
  end
end

local function add_labels(list, session, before)
  add(list, before .. "head", "the newest entry")
  local seen = {}
  for _, label in ipairs(session:labels() or {}) do
    if not seen[label.name] then
      seen[label.name] = true
      add(list, before .. label.name, "label of " .. label.id)
    end
  end
end

function kinds.session(app, list, word)
  local name = word:match "^(.+)@[^@]*$"
  local session = name and app:session(name)
  if session then
    add_labels(list, session, name .. "@")
    session:close()
  else
    add_sessions(app, list, word)
    if ("last"):sub(1, #word) == word then
      table.insert(list, 1, { "last", "the newest" })
    end
  end
end

kinds["deleted session"] = function(app, list, word)
  add_sessions(app, list, word, "deleted")
end

local function session_before(app, before)
  return before.session and app:session(before.session)
end

function kinds.entry(app, list, word, before)
  local session = session_before(app, before)
  if not session then
    return
  end
  add_labels(list, session, "")
  local messages = before.about and session:messages { last = FEW } or {}
  for i = #messages, 1, -1 do
    local key = render.facts(messages[i]).key
    if key and key:sub(1, #word) == word then
      add(list, key, render.role(messages[i]) .. ": " .. render.brief(messages[i], 50))
    end
  end
  session:close()
end

function kinds.checkpoint(app, list, _, before)
  local session = session_before(app, before)
  for _, row in ipairs(session and session:checkpoints() or {}) do
    add(list, row.name and row.name ~= "" and row.name or row.id, row.reason)
  end
  if session then
    session:close()
  end
end

-- Completes names that the sessions of the store have. names_of(row): the names of one session.
local function distinct(names_of)
  return function(app, list)
    local seen = { [""] = true }
    for _, row in ipairs(rows_of(app, { limit = 1000 })) do
      for _, name in ipairs(names_of(row)) do
        if not seen[name] then
          seen[name] = true
          add(list, name)
        end
      end
    end
  end
end

kinds.agent = distinct(function(row) return { row.agent } end)
kinds.user = distinct(function(row) return { row.user } end)
kinds["label name"] = distinct(function(row) return row.labels or {} end)

function kinds.policy(_, list)
  for folder in paths.policy_path():gmatch "[^:]+" do
    for _, file in ipairs(system.files(folder) or {}) do
      add(list, file:match "^([^_].*)%.lua$" or "")
    end
  end
end

function kinds.screen(_, list)
  for folder in paths.screen_path():gmatch "[^:]+" do
    for _, file in ipairs(system.files(folder) or {}) do
      add(list, file:match "^([^_].*)%.lua$" or "")
    end
  end
end

function kinds.command(_, list, _, before)
  local typed = table.concat(before.words or {}, " ")
  complete.commands(list, typed)
end

-- ---------------------------------------------------------------- commands

--- Adds the words that may follow `typed` in the name of a command.
---@param list sessile.cli.candidate[]
---@param typed string  "" or the first word
function complete.commands(list, typed)
  local seen = {}
  local names = typed == "sessions" and registry.of_sessions() or registry.typed()
  local start = (typed == "" or typed == "sessions") and "" or typed .. " "
  for _, name in ipairs(names) do
    local word = name:sub(1, #start) == start and name:sub(#start + 1):match "^%S+"
    if word and not seen[word] then
      seen[word] = true
      local command = registry.load(start .. word)
      add(list, word, command and command.summary or nil)
    end
  end
  if typed == "" then
    add(list, "sessions", "the same commands, those about sessions")
  end
end

local function choices(list, row)
  for _, choice in ipairs(row.choices or {}) do
    add(list, choice)
  end
end

local function value(app, list, row, word, before)
  choices(list, row)
  local kind = options.kind(row)
  if kinds[kind] then
    kinds[kind](app, list, word, before)
  end
  return kind == "file" and "files" or kind == "folder" and "folders" or nil
end

-- ---------------------------------------------------------------- the line

local function option_table(command)
  local by_flag, rows = {}, {}
  for _, group in ipairs { command and command.options or {}, options.global } do
    for _, row in ipairs(group) do
      local read = options.read(row[1])
      rows[#rows + 1] = { row = row, read = read }
      for _, flag in ipairs(read.words) do
        by_flag[flag] = by_flag[flag] or rows[#rows]
      end
    end
  end
  return by_flag, rows
end

-- Parses what was typed before the word that is completed: the command, its words, the option whose
-- value comes next, the global options.
local function walk(before)
  local seen = { words = {}, globals = {}, given = {} }
  local by_flag, rows = option_table(nil)
  local name, waits
  for i, word in ipairs(before) do
    if waits then
      seen.globals[waits.read.field], waits = word, nil
    elseif word:sub(1, 1) == "-" and word ~= "-" and not seen.ended then
      local flag, given = word:match "^(%-%-[^=]+)=(.*)$"
      local option = by_flag[flag or word]
      seen.ended = word == "--"
      if option then
        seen.given[option] = true
        if given or not option.read.value then
          seen.globals[option.read.field] = given or true
        else
          waits = option
        end
      end
    elseif not seen.command then
      -- "sessions" only precedes a name; "keys" is the first word of a name
      name = name and name .. " " .. word or word ~= "sessions" and word or nil
      seen.sessions = seen.sessions or word == "sessions"
      local following = before[i + 1]
      if name and not (following and registry.load(name .. " " .. following)) then
        seen.command = registry.load(name)
        by_flag, rows = option_table(seen.command)
        if not seen.command and name:find " " then
          seen.lost = true
        end
      end
    else
      seen.words[#seen.words + 1] = word
    end
  end
  seen.name, seen.waits, seen.by_flag, seen.rows = name, waits, by_flag, rows
  return seen
end

-- The row of the argument that follows `count` others.
local function argument_after(command, count)
  local rows = command.arguments or {}
  local last = rows[#rows]
  return rows[count + 1] or (last and (last[3] == "*" or last[3] == "+") and last or nil)
end

local function option_words(list, seen)
  for _, option in ipairs(seen.rows) do
    if not seen.given[option] or option.row.many then
      local words = option.read.words
      add(list, words[#words], option.row[2])
    end
  end
end

-- What the candidates depend on: the session among the words of the command, and these words.
local function context_of(seen, about)
  local session
  for i, word in ipairs(seen.words) do
    local row = argument_after(seen.command, i - 1)
    if row and options.kind(row) == "session" then
      session = word
    end
  end
  return { session = session, words = seen.words, about = about }
end

-- If `word` is "--flag=…": the option, what follows the "=", and the flag.
local function assigned(seen, word)
  local flag, rest = word:match "^(%-%-[^=]+)=(.*)$"
  return flag and not seen.ended and seen.by_flag[flag], rest, flag
end

local function collect(app, seen, word, about)
  local list, place = {}, nil
  local option, rest, flag = assigned(seen, word)
  app.globals = {
    store = seen.globals.store, key_file = seen.globals.key_file, timeout = 0,
    plain = seen.globals.plain, agent = seen.globals.agent,
    user = seen.globals.user, network = seen.globals.network,
  }
  if seen.command and seen.command.raw and #seen.words > 0 then
    return {}, "files"
  elseif seen.waits or option then
    local before = seen.command and context_of(seen, about) or {}
    place = value(app, list, (seen.waits or option).row, option and rest or word, before)
    for _, candidate in ipairs(option and list or {}) do
      candidate[1] = flag .. "=" .. candidate[1]
    end
  elseif word:sub(1, 1) == "-" and not seen.ended then
    option_words(list, seen)
  elseif not seen.command then
    if not seen.lost then
      complete.commands(list, seen.name or seen.sessions and "sessions" or "")
    end
  else
    local row = argument_after(seen.command, #seen.words)
    if row then
      place = value(app, list, row, word, context_of(seen, about))
    end
    if #seen.words == 0 and seen.name == seen.command.name then
      complete.commands(list, seen.name) -- `label` is one, and begins `label rm`
    end
  end
  return list, place
end

--- The candidates for the last word of a command line.
---@param app sessile.cli.app   its globals are replaced by those that were typed
---@param typed string[]        the words after the program's name; the last is not finished
---@param about boolean?        the shell shows descriptions
---@return sessile.cli.candidate[] candidates  those that begin with the word
---@return string? place        "files", "folders": the shell adds those of the disk
function complete.line(app, typed, about)
  local before = table.move(typed, 1, #typed - 1, 1, {})
  local word = typed[#typed] or ""
  app.note = function() end
  local list, place = collect(app, walk(before), word, about)
  local fitting, seen = {}, {}
  for _, candidate in ipairs(list) do
    if candidate[1]:sub(1, #word) == word and not seen[candidate[1]] then
      seen[candidate[1]] = true
      fitting[#fitting + 1] = candidate
    end
  end
  return fitting, place
end

return complete
