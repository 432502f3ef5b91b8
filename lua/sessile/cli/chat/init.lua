--- chat: a conversation with a model, line by line.
--
-- Owns: the loop (prompt, line, answer), the chat's own commands, the reports. Must never run a
-- tool. Ctrl-C stops an answer or drops a line; Ctrl-D ends the chat.

local entries = require "sessile.cli.entries"
local exchange = require "sessile.cli.chat.exchange"
local hints = require "sessile.cli.hints"
local line = require "sessile.line"
local lines = require "sessile.cli.chat.lines"
local models = require "sessile.cli.models"
local registry = require "sessile.cli.registry"
local slash = require "sessile.cli.chat.slash"
local terminal = require "sessile.cli.terminal"

local chat = {}

-- ---------------------------------------------------------------- what is said of it

local function say(self, text, colour)
  self.app:out((colour and self.app.paint(text, colour) or text) .. "\n")
end

local function failed(self, message, _, step)
  say(self, "! " .. terminal.safe(tostring(message)):gsub("[%s.]+$", "") .. ".", "red")
  if step then
    say(self, terminal.safe(hints.fill(slash.here(self, step), self.app.globals)))
  end
end

-- 1234 as "1.2k".
local function short(n)
  if n < 1000 then return ("%d"):format(n) end
  return (n < 99950 and "%.1fk" or "%.0fk"):format(n / 1000)
end

local function prompt_of(self)
  local session, paint = self.session, self.app.paint
  local function part(text, colour)
    local painted = paint(text, colour)
    return painted == text and text
      or painted:gsub("\27%[%d+m", "\1%0\1") -- what takes no room
  end
  local name = terminal.line(session.title ~= "" and session.title or session.id)
  local tokens = session:tokens()
  local window = self.window and "/" .. short(self.window) or ""
  return ("%s %s > "):format(part(terminal.cut(name, 24), "bold"),
    part(("%s %s%s"):format(terminal.cut(terminal.line(self.model.name), 24),
      tokens and short(tokens) or "?", window), "dim"))
end

-- Reports a compaction, and the command that shows it.
local function tell_compaction(self, outcome)
  local tokens, policy = outcome.tokens or {}, outcome.policy or {}
  if tokens.before and tokens.after then
    say(self, ("· compacted by %s: %s → %s tokens, %d messages left the context; /why says which")
      :format(terminal.line(policy.name or "a policy"), terminal.number(tokens.before),
        terminal.number(tokens.after), #(outcome.removals or policy.removals or {})), "dim")
  end
end

local function tell(self, outcome)
  for _, one in ipairs(outcome.compactions) do
    tell_compaction(self, one)
  end
  local policy = outcome.policy
  if policy and policy.refused then
    say(self, ("· the policy %s was refused: %s"):format(terminal.line(policy.name or "?"),
      terminal.line(policy.message or "?")), "yellow")
  end
  local metadata = outcome.reply and outcome.reply.metadata
  if type(metadata) == "table" and metadata.finish_reason then
    say(self, ("· the answer ended early: %s"):format(terminal.line(metadata.finish_reason)),
      "yellow")
  end
  if outcome.status == "completed" then
    return
  elseif outcome.code == "ECANCELLED" then
    say(self, outcome.kept and "· stopped; the answer so far is kept, marked as interrupted"
      or "· stopped before the answer began; your message is kept (/retry asks again)", "dim")
  else
    failed(self, outcome.error or outcome.reason or outcome.status, outcome.code,
      (outcome.kept and "The answer so far is kept, marked as interrupted. " or "")
      .. "Your message is kept: /retry asks again.")
  end
end

-- One question and its answer on the terminal.
local function ask(self, text)
  local last
  line.busy(true)
  local ok, outcome, message, code = pcall(exchange.run, {
    session = self.session, model = self.model, policy = self.policy, window = self.window,
    reserve = self.reserve, stopped = line.interrupted,
    show = function(piece)
      last = piece:sub(-1)
      self.app:out(piece)
      io.stdout:flush()
    end,
  }, text)
  line.busy(false)
  if not ok then
    error(outcome, 0)
  elseif last and last ~= "\n" then
    self.app:out "\n"
  end
  if not outcome then
    return nil, message, code
  end
  tell(self, outcome)
end

-- ---------------------------------------------------------------- the chat's own commands

local own = {}

-- Prints words, wrapped at the width of the terminal.
local function say_words(self, text)
  local columns = terminal.columns() or 80
  local row = ""
  for word in text:gmatch "%S+" do
    if row ~= "" and terminal.width(row) + 1 + terminal.width(word) >= columns then
      say(self, row)
      row = "  " .. word
    else
      row = row == "" and word or row .. " " .. word
    end
  end
  say(self, row)
end

local function help(self)
  local rows = {}
  for name, row in pairs(own) do
    if row.about then
      rows[#rows + 1] = { "/" .. name .. (row.usage and " " .. row.usage or ""), row.about }
    end
  end
  table.sort(rows, function(a, b) return a[1] < b[1] end)
  local more = {}
  for _, name in ipairs(slash.names(own)) do
    more[#more + 1] = not own[name] and "/" .. name or nil
  end
  for _, row in ipairs(rows) do
    say(self, ("  %-26s %s"):format(row[1], row[2]))
  end
  say_words(self, "As on the command line, about this session: " .. table.concat(more, " "))
  say_words(self, "To send a line that begins with /, type //. \\ at the end goes on in "
    .. "the next. Tools are not run here. Ctrl-C stops an answer, Ctrl-D ends the chat.")
end

own.help = { about = "this", run = help }
own["?"] = { run = help }
own.quit = { about = "end the chat; everything is kept", run = function(self) self.over = true end }
own.exit = { run = own.quit.run }

own.title = { usage = "TEXT", about = "call the session so", run = function(self, rest)
  if rest == "" then
    return say(self, terminal.line(self.session.title ~= "" and self.session.title or "(none)"))
  end
  local ok, message, code = self.session:set_title(rest)
  if not ok then
    return nil, message, code
  end
end }

own.model = { usage = "[NAME]", about = "ask another of the configured models from now on",
  run = function(self, rest)
    if rest == "" then
      return say(self, terminal.line(self.model.name))
    end
    local found, message, code, step = models.of(self.app, rest, self.session.agent)
    if not found then
      return nil, message, code, step
    end
    local ok
    ok, message, code = self.session:settings { model = rest }
    if not ok then
      return nil, message, code
    end
    chat.take_model(self, found)
  end }

own.compact = { usage = "[INSTRUCTIONS]", about = "make the context smaller now",
  run = function(self, rest)
    local words = {}
    if self.policy_name then
      words = { "--policy", self.policy_name }
    elseif not self.app:config():for_agent(self.session.agent).policy then
      words = { "--policy", "summarize" } -- somebody asked for it, and named none
    end
    words[#words + 1] = self.model_typed and "--model" or nil
    words[#words + 1] = self.model_typed
    words[#words + 1] = "--"
    words[#words + 1] = rest ~= "" and rest or nil
    return slash.run(self, assert(registry.load "compact"), words)
  end }

own.why = { usage = "[ENTRY]", about = "what became of a message; alone: what was compacted",
  run = function(self, rest)
    local command = assert(registry.load(rest == "" and "log" or "why"))
    return slash.run(self, command, rest == "" and {} or { rest })
  end }

own.label = { usage = "[ENTRY] NAME", about = "name an entry; alone: the newest message",
  run = function(self, rest)
    local words, wrong = slash.words(rest)
    if not words then
      return nil, wrong, "EUSAGE"
    elseif #words == 1 then
      local last = self.session:messages { last = 1 }
      table.insert(words, 1, last and last[1] and last[1].id or "head")
    end
    local first = words[1]
    local name = (first == "rm" or first == "list") and "label " .. first or "label"
    if name ~= "label" then
      table.remove(words, 1)
    end
    return slash.run(self, assert(registry.load(name)), words)
  end }

own.usage = { about = "tokens of the context, and of all requests", run = function(self)
  local tokens, about = self.session:tokens()
  local usage, message, code = self.session:usage()
  if not tokens or not usage then
    return nil, message or about, code
  end
  say(self, ("context  %s tokens%s (%s)"):format(terminal.number(tokens),
    self.window and " of " .. terminal.number(self.window) or "",
    type(about) == "table" and about.source or "counted"))
  say(self, ("in all   %s in, %s out, %s from a cache"):format(terminal.number(usage.input),
    terminal.number(usage.output), terminal.number(usage.cache_read)))
end }

-- The newest message of the user.
local function last_question(self)
  local list, message, code = self.session:messages { role = "user", last = 1 }
  if not list then
    return nil, message, code
  elseif #list == 0 then
    return nil, "nothing was said yet", "ENOTFOUND", false
  end
  return list[1]
end

own.retry = { about = "ask the last question again, on a new branch", run = function(self)
  local question, message, code, step = last_question(self)
  if not question then
    return nil, message, code, step
  end
  local moved
  moved, message, code = self.session:branch(question.id, { policy = false })
  if not moved then
    return nil, message, code
  end
  return ask(self, nil)
end }

own.undo = { about = "undo the last question; it stays in the tree",
  run = function(self)
    local question, message, code, step = last_question(self)
    if not question then
      return nil, message, code, step
    end
    local before = self.session:messages { at = question.id, last = 2 } or {}
    local moved
    if #before > 1 then
      moved, message, code = self.session:branch(before[1].id, { policy = false })
    else
      moved, message, code = self.session:clear()
    end
    if not moved then
      return nil, message, code
    end
    say(self, "· took back: " .. terminal.cut(terminal.line(question.content), 60), "dim")
  end }

own.fork = { usage = "[ENTRY]", about = "a new session from here, or from an entry",
  run = function(self, rest)
    local at, message, code, step
    if rest ~= "" then
      at, message, code, step = entries.find(self.session, rest)
      if not at then
        return nil, message, code, step
      end
    end
    local fork
    fork, message, code = self.session:fork(at)
    if not fork then
      return nil, message, code
    end
    say(self, terminal.line(fork.id), "cyan")
    say(self, hints.fill("To continue there: sessile chat " .. hints.id(fork.id), self.app.globals),
      "dim")
    fork:close()
  end }

local function complete(text)
  local typed = text:match "^/(%S*)$"
  local list = {}
  for _, name in ipairs(typed and slash.names(own) or {}) do
    if name:sub(1, #typed) == typed then
      list[#list + 1] = "/" .. name
    end
  end
  if #list == 1 then
    list[1] = list[1] .. " "
  end
  return list
end

-- ---------------------------------------------------------------- the loop

--- Sets the model, and its window.
function chat.take_model(self, model)
  local config, agent = self.app:config(), self.session.agent
  local function configured(name)
    local value = config:value(("agents.%s.%s"):format(agent, name))
    return value ~= nil and value or config:value(name)
  end
  self.model = model
  self.window = configured "window" or model.window
  self.reserve = configured "reserve"
end

-- A line, joined with the next one if it ends with a backslash; nil and "end" or "interrupted".
local function read(self)
  local text, why = self.lines.read(prompt_of(self), complete)
  while text and text:sub(-1) == "\\" do
    local more
    more, why = self.lines.read("… ", complete)
    text = more and text:sub(1, -2) .. "\n" .. more
  end
  return text, why
end

--- Runs the chat until it ends. self: app, session, policy, policy_name, model_typed, place (the
--- store of the history file, or nil). Call take_model first.
function chat.run(self)
  self.lines = lines.open(self.session, self.place)
  while not self.over do
    local text, why = read(self)
    if why == "end" then
      break
    elseif text and text:find "%S" then
      self.lines.add(text)
      local result, message, code, step
      if text:sub(1, 1) == "/" and text:sub(1, 2) ~= "//" then
        result, message, code, step = slash.execute(self, text:sub(2), own)
      else
        result, message, code = ask(self, (text:gsub("^//", "/")))
      end
      if result == nil and message then
        failed(self, message, code, step)
      end
    end
  end
  say(self, hints.fill("To continue later: sessile chat " .. hints.id(self.session.id),
    self.app.globals), "dim")
end

return chat
