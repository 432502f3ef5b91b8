--- chat: a conversation with a model, line by line.
--
-- Owns: the loop (prompt, line, answer) and the reports. The session is made with the first
-- message. Must never run a tool. Ctrl-C stops an answer or drops a line; Ctrl-D ends the chat.

local exchange = require "sessile.cli.chat.exchange"
local flow = require "sessile.cli.chat.flow"
local hints = require "sessile.cli.hints"
local line = require "sessile.line"
local lines = require "sessile.cli.chat.lines"
local own = require "sessile.cli.chat.own"
local slash = require "sessile.cli.chat.slash"
local terminal = require "sessile.cli.terminal"

---@class sessile.cli.chat
---@field app sessile.cli.app
---@field session sessile.Session?      nil until something was said
---@field make fun(): sessile.Session?, string?, string?, string?  makes the session
---@field name string?                  the session's id, if it was typed
---@field agent string?
---@field system string?                the system message, which goes before the first one
---@field policy any
---@field policy_name string?           as it was typed
---@field model_typed string?
---@field place string?                 of the store, if the history is a file
local chat = {}
chat.__index = chat

-- ---------------------------------------------------------------- the session

--- The session, which is made if there is none yet. Nil, message, code, step if it cannot be.
function chat:begin()
  if self.session then
    return self.session
  end
  local session, message, code, step = self.make()
  if not session then
    return nil, message, code, step
  end
  self.session, self.agent = session, session.agent
  local ok = true
  if self.later then
    ok, message, code = session:settings(self.later)
  end
  if not ok then
    return nil, message, code
  end
  return session
end

--- Sets settings of the session; without one, of that which is made.
function chat:settings(given)
  if self.session then
    return self.session:settings(given)
  end
  self.later = given
  return true
end

-- Adds the system message to the conversation, unless it is there already.
local function say_system(self)
  local text = self.system
  self.system = nil
  if not text or text == "" then
    return true
  end
  local list, message, code = self.session:messages { role = "system", last = 1 }
  if not list then
    return nil, message, code
  elseif list[1] and list[1].content == text then
    return true
  end
  return self.session:append { role = "system", content = text }
end

--- One question and its answer. given: show, reason, stopped, as for exchange.run. text nil: the
--- turn that is under way is continued.
function chat:exchange(given, text)
  local session, message, code, step = self:begin()
  if not session then
    return nil, message, code, step
  end
  local ok
  ok, message, code = say_system(self)
  if not ok then
    return nil, message, code
  end
  given.session, given.model, given.policy = session, self.model, self.policy
  given.window, given.reserve = self.window, self.reserve
  return exchange.run(given, text)
end

--- What prints an answer: on a terminal in lines of its width, with styles if it shows colours;
--- elsewhere unchanged. Returns show(text), reason(text) or nil, and finish().
function chat.printer(app)
  local columns = terminal.columns()
  local function out(text)
    app:out(text)
  end
  if not columns then
    local last = "\n"
    return function(text)
      last = text:sub(-1)
      out(text)
      io.stdout:flush()
    end, nil, function()
      out(last ~= "\n" and "\n" or "")
    end
  end
  local styled = app.paint("x", "dim") ~= "x"
  local answer = flow.open { out = out, columns = columns, paint = styled and app.paint or nil }
  local function shown(method)
    return function(text)
      answer[method](answer, text)
      io.stdout:flush()
    end
  end
  return shown "feed", shown "reasoning", function() answer:finish() end
end

-- ---------------------------------------------------------------- what is said of it

function chat:say(text, colour)
  self.app:out((colour and self.app.paint(text, colour) or text) .. "\n")
end

local function failed(self, message, _, step)
  self:say("! " .. terminal.sentence(terminal.safe(tostring(message))), "red")
  if step then
    self:say(terminal.safe(hints.fill(slash.here(self, step), self.app.globals)))
  end
end

local GENERATED = ("^" .. ("%x"):rep(8) .. "%-" .. ("%x"):rep(4) .. "%-7") -- an id of the engine's

-- "Slow start 62% > ": the name, if it was chosen, and how full the window is, from a half on.
local function prompt_of(self)
  local session, paint, words = self.session, self.app.paint, ""
  local function add(text, colour)
    local painted = paint(text, colour)
    words = words .. (painted == text and text
      or painted:gsub("\27%[%d+m", "\1%0\1")) .. " " -- what takes no room
  end
  local name = session and (session.title ~= "" and session.title or session.id) or self.name
  if name and not name:find(GENERATED) then
    add(terminal.cut(terminal.line(name), 24), "bold")
  end
  local tokens = session and self.window and session:tokens()
  local share = tokens and tokens * 100 // self.window or 0
  if share >= 50 then
    add(("%d%%"):format(share), share >= 90 and "yellow" or "dim")
  end
  return words .. "> "
end

-- Reports a compaction, and the command that shows it.
local function tell_compaction(self, outcome)
  local tokens, policy = outcome.tokens or {}, outcome.policy or {}
  if tokens.before and tokens.after then
    self:say(("· compacted by %s: %s, %s left the context; /why says which"):format(
      terminal.line((policy.fallback or policy).name or "a policy"), terminal.change(tokens),
      terminal.plural(#(outcome.removals or policy.removals or {}), "message")), "dim")
  end
end

local function tell(self, outcome)
  for _, one in ipairs(outcome.compactions) do
    tell_compaction(self, one)
  end
  local policy = outcome.policy
  if policy and policy.refused then
    self:say(("· the policy %s was refused: %s"):format(terminal.line(policy.name or "?"),
      terminal.line(policy.message or "?")), "yellow")
  end
  local metadata = outcome.reply and outcome.reply.metadata
  if type(metadata) == "table" and metadata.finish_reason then
    self:say(("· the answer ended early: %s"):format(terminal.line(metadata.finish_reason)),
      "yellow")
  end
  if outcome.status == "completed" then
    return
  elseif outcome.code == "ECANCELLED" then
    self:say(outcome.kept and "· stopped; the answer so far is kept, marked as interrupted"
      or "· stopped before the answer began; your message is kept (/retry asks again)", "dim")
  else
    failed(self, outcome.error or outcome.reason or outcome.status, outcome.code,
      (outcome.kept and "The answer so far is kept, marked as interrupted. " or "")
      .. "Your message is kept: /retry asks again.")
  end
end

--- Runs f(…) while the chat controls the terminal: what is typed meanwhile is not shown and is read
--- afterwards, and line.interrupted tells whether Ctrl-C was typed.
function chat:busy(f, ...)
  line.busy(true)
  self.app.stopped = line.interrupted
  local returned = table.pack(pcall(f, ...))
  self.app.stopped = nil
  line.busy(false)
  if not returned[1] then
    error(returned[2], 0)
  end
  return table.unpack(returned, 2, returned.n)
end

--- One question and its answer on the terminal.
function chat:ask(text)
  local show, reason, finish = chat.printer(self.app)
  local outcome, message, code, step = self:busy(self.exchange, self,
    { show = show, reason = reason, stopped = line.interrupted }, text)
  finish()
  if not outcome then
    return nil, message, code, step
  end
  tell(self, outcome)
end

-- ---------------------------------------------------------------- the loop

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

--- Sets the model, and its window.
function chat:take_model(model)
  local config, agent = self.app:config(), self.agent
  local function configured(name)
    local value = agent and config:value(("agents.%s.%s"):format(agent, name))
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

--- Runs the chat until it ends. Call take_model first.
function chat:run()
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
        result, message, code, step = self:ask((text:gsub("^//", "/")))
      end
      if result == nil and message then
        failed(self, message, code, step)
      end
    end
  end
  if self.session then
    self:say(hints.fill("To continue later: sessile chat " .. hints.id(self.session.id),
      self.app.globals), "dim")
  end
end

--- A chat. given: the fields of a chat.
---@param given sessile.cli.chat
---@return sessile.cli.chat
function chat.new(given)
  return setmetatable(given, chat)
end

return chat
