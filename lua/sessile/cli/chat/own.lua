--- own: the chat's own commands.
--
-- Owns: what each does, and whether it can be typed before there is a session (`alone`). `run` gets
-- the chat and what was typed after the name. Must never ask a model without showing that it waits.

local entries = require "sessile.cli.entries"
local facts = require "sessile.facts"
local hints = require "sessile.cli.hints"
local models = require "sessile.cli.models"
local registry = require "sessile.cli.registry"
local slash = require "sessile.cli.chat.slash"
local terminal = require "sessile.cli.terminal"

local own = {}

-- Prints a sentence, wrapped at the width of the terminal.
local function say_words(self, text)
  self:say(terminal.wrap(text, terminal.columns() or 80, "  "))
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
  local width = 0
  for _, row in ipairs(rows) do
    width = math.max(width, #row[1])
  end
  local room = math.max((terminal.columns() or 80) - width - 4, 20)
  for _, row in ipairs(rows) do
    self:say(("  %s%s  %s"):format(row[1], (" "):rep(width - #row[1]),
      terminal.wrap(row[2], room, (" "):rep(width + 4))))
  end
  say_words(self, "As on the command line, about this session: " .. table.concat(more, " "))
  say_words(self, "To send a line that begins with /, type //. A line that ends with "
    .. "\\ continues in the next one. Tools are not run here. Ctrl-C stops an answer, Ctrl-D ends "
    .. "the chat.")
end

own.help = { about = "show this help", alone = true, run = help }
own["?"] = { alone = true, run = help }
own.quit = { about = "end the chat; everything is kept", alone = true,
  run = function(self) self.over = true end }
own.exit = { alone = true, run = own.quit.run }

own.title = { usage = "TEXT", about = "set the title of the session", alone = true,
  run = function(self, rest)
    if rest == "" then
      local title = self.session and self.session.title or ""
      return self:say(title ~= "" and terminal.line(title) or "(none)")
    end
    local session, message, code, step = self:begin()
    if not session then
      return nil, message, code, step
    end
    local ok
    ok, message, code = session:set_title(rest)
    if not ok then
      return nil, message, code
    end
  end }

own.model = { usage = "[NAME]", about = "ask another of the configured models from now on",
  alone = true, run = function(self, rest)
    if rest == "" then
      return self:say(terminal.line(self.model.name))
    end
    local found, message, code, step = models.of(self.app, rest, self.agent)
    if not found then
      return nil, message, code, step
    end
    local ok
    ok, message, code = self:settings { model = rest }
    if not ok then
      return nil, message, code
    end
    self:take_model(found)
  end }

local NO_SUMMARY = "Nothing was changed. To try again: /compact. To cut without the model: "
  .. "/compact --fallback sliding_window"

-- The words of `compact` for what was typed: options as on the command line, or instructions.
local function words_of_compact(self, rest)
  local words = {}
  if not rest:find "%-%-policy" then
    words = self.policy_name and { "--policy", self.policy_name }
      or not self.app:config():for_agent(self.session.agent).policy
      and { "--policy", "summarize" } or {} -- somebody asked for it, and named none
  end
  if self.model_typed then
    table.move({ "--model", self.model_typed }, 1, 2, #words + 1, words)
  end
  local typed, wrong = { "--", rest ~= "" and rest or nil }, nil
  if rest:find "^%-" then
    typed, wrong = slash.words(rest)
  end
  return typed and table.move(typed, 1, #typed, #words + 1, words), wrong
end

own.compact = { usage = "[OPTIONS] [INSTRUCTIONS]", about = "make the context smaller now",
  run = function(self, rest)
    local words, wrong = words_of_compact(self, rest)
    if not words then
      return nil, wrong, "EUSAGE"
    end
    local result, message, code, step = self:busy(slash.run, self,
      assert(registry.load "compact"), words)
    return result, message, code, code == "EPOLICY" and NO_SUMMARY or step
  end }

own.why = { usage = "[ENTRY]", about = "what happened to a message; alone: the compactions",
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
      table.insert(words, 1, last and last[1] and facts.of(last[1]).id or "head")
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
  self:say(("context  %s tokens%s (%s)"):format(terminal.number(tokens),
    self.window and " of " .. terminal.number(self.window) or "",
    type(about) == "table" and about.source or "counted"))
  self:say(("total    %s in, %s out, %s from a cache"):format(terminal.number(usage.input),
    terminal.number(usage.output), terminal.number(usage.cache_read)))
end }

-- The newest message of the user, and its id; nil, message, code, step.
local function last_question(self)
  local list, message, code = self.session:messages { role = "user", last = 1 }
  if not list then
    return nil, message, code
  elseif #list == 0 then
    return nil, "there is no question on this branch", "ENOTFOUND", false
  end
  return list[1], facts.of(list[1]).id
end

own.retry = { about = "ask the last question again, on a new branch", run = function(self)
  local question, id, code, step = last_question(self)
  if not question then
    return nil, id, code, step
  end
  local moved, message
  moved, message, code = self.session:branch(id, { policy = false })
  if not moved then
    return nil, message, code
  end
  return self:ask(nil)
end }

own.undo = { about = "undo the last question; it stays in the tree",
  run = function(self)
    local question, id, code, step = last_question(self)
    if not question then
      return nil, id, code, step
    end
    local list, message
    list, message, code = self.session:messages { from = id }
    if list then
      list, message, code = self.session:pop(#list)
    end
    if not list then
      return nil, message, code
    end
    self:say("· undone: " .. terminal.cut(terminal.line(question.content), 60), "dim")
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
    self:say(terminal.line(fork.id), "cyan")
    self:say(hints.fill("To continue there: sessile chat " .. hints.id(fork.id), self.app.globals),
      "dim")
    fork:close()
  end }

return own
