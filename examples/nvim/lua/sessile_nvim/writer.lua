--- writer: keeps a session equal to a list of messages that somebody else owns and changes.
--
-- The list is compared with what was written: what is new is appended as one turn. Where the list
-- does not continue what was written (an answer was regenerated, a message edited), the session
-- branches at the last message that is the same, and the other branch stays. One turn is on its
-- way at a time; what comes meanwhile is in the next one. Nothing waits.

local LOST = require("sessile_nvim.server").LOST

local writer = {}
writer.__index = writer

local ROOT = "00000000"
local names = 0

-- A name that no other turn has.
local function once()
  names = names + 1
  return ("nvim-%x-%x-%d"):format(vim.loop.os_getpid(), vim.loop.hrtime(), names)
end

--- A writer. options: server, session (a name), list (the messages as they are now), mark (an id
--- and the size of a message; nil: it is not stored), write (a message as it is stored), create
--- (fields of session/open for a new session), turn (fields of each turn), on_turn(outcome),
--- notify(text).
function writer.new(options)
  local self = setmetatable(options, writer)
  self.written = {} -- {id, size, entry}, in the order of the list
  self.after = {}   -- functions that wait until all is written
  self.held = 0
  return self
end

--- Takes over a session that is there: base: the entry to go on from. entries: of each message of
--- the list that is stored, its id, or false if a policy wrote it; what is behind them is new.
function writer:continue(base, entries)
  self.base, self.written = base, {}
  local n = 0
  for _, message in ipairs(self.list()) do
    local id, size = self.mark(message)
    if id and n < #entries then
      n = n + 1
      self.written[n] = { id = id, size = size, entry = entries[n] }
    end
  end
end

--- How many messages are as they were written, those behind them, and their marks.
---@return integer
---@return table[]
---@return table[]
function writer:compare()
  local written, mark, n, new, marks = self.written, self.mark, 0, {}, {}
  for _, message in ipairs(self.list()) do
    local id, size = mark(message)
    if id then
      local next_one = #new == 0 and written[n + 1]
      if next_one and next_one.id == id and next_one.size == size then
        n = n + 1
      else
        new[#new + 1], marks[#marks + 1] = message, { id = id, size = size }
      end
    end
  end
  return n, new, marks
end

-- Calls those who waited until everything is written, or cannot be.
local function settle(self, failure)
  local waiting = self.after
  self.after = {}
  for _, done in ipairs(waiting) do
    done(failure)
  end
end

local function failed(self, what, failure)
  self.busy = false
  if failure.code == LOST and not failure.stays then
    return self:save() -- asks again: `once` sees to it that it is written once
  end
  if failure.code ~= LOST then
    self.pending = nil -- refused: the next save compares from the start
  end
  self.notify(("%s is not stored yet: %s: %s"):format(self.session.id, what, failure.message))
  settle(self, failure)
end

-- Where to go on after a turn. One that had been written before does not tell whether the head is
-- behind it, or on the branch of another editor.
local function base_after(self, outcome)
  local function go_on(base)
    self.base, self.busy = base, false
    if self.on_turn then
      self.on_turn(outcome)
    end
    self:save()
  end
  if not outcome.again or outcome.head == outcome.turn then
    return go_on(outcome.head)
  end
  self.server:call("session/path", { session = self.session }, function(path)
    go_on(path and vim.tbl_contains(path, outcome.turn) and outcome.head or outcome.turn)
  end)
end

-- Sends the turn that is pending.
local function send(self)
  local pending = self.pending
  self.busy = true
  self.server:call("session/turn", pending.params, function(outcome, failure)
    if failure then
      return failed(self, "session/turn", failure)
    end
    for i, mark in ipairs(pending.marks) do
      mark.entry = outcome.ids[i]
      self.written[pending.from + i] = mark
    end
    self.pending = nil
    base_after(self, outcome)
  end)
end

-- Opens the session, or makes it: then its root is known.
local function open(self)
  self.busy = true
  local params = vim.tbl_extend("force", self.create and self.create() or {},
    { session = self.session, create = true })
  self.server:call("session/open", params, function(session, failure)
    self.busy = false
    if failure then
      return failed(self, "session/open", failure)
    end
    self.base = session.head
    self:save()
  end)
end

-- Moves the head to where the list and what was written part.
local function branch(self, n)
  local entry = n == 0 and ROOT or self.written[n].entry
  if not entry then -- a policy wrote what is before: the whole list is written again
    n, entry = 0, ROOT
  end
  self.busy = true
  self.server:call("session/branch", { session = self.session, entry = entry },
    function(outcome, failure)
      self.busy = false
      if failure then
        return failed(self, "session/branch", failure)
      end
      self.base = outcome.head
      for i = #self.written, n + 1, -1 do
        self.written[i] = nil
      end
      self:save()
    end)
end

--- Writes what is new. done(failure), if given, is called when everything is written, or cannot be.
function writer:save(done)
  self.after[#self.after + 1] = done
  if self.busy or self.held > 0 then
    return
  elseif self.pending then
    return send(self)
  end
  local n, new, marks = self:compare()
  if n < #self.written then
    return branch(self, n)
  elseif #new == 0 then
    return settle(self)
  elseif not self.base then
    return open(self)
  end
  local messages = vim.tbl_map(self.write, new)
  self.pending = { from = n, marks = marks,
    params = vim.tbl_extend("force", self.turn or {}, { session = self.session, base = self.base,
      once = once(), on_conflict = "branch", messages = messages }) }
  send(self)
end

--- Nothing is written until it is released as often: a policy works on what is written.
function writer:hold()
  self.held = self.held + 1
end

function writer:release()
  self.held = self.held - 1
  self:save()
end

--- Writes what is new and sees to it that the head is where this list ends: another editor may have
--- moved it. done() is called while the writer is held, and releases it; or done(failure).
function writer:at_head(done)
  self:save(function(failure)
    if failure or not self.base then
      return done(failure or { message = "nothing was said yet" })
    end
    self:hold()
    local function ready(why)
      if why then
        self:release()
      end
      done(why)
    end
    self.server:call("session/head", { session = self.session }, function(head, why)
      if why or head == self.base then
        return ready(why)
      end
      self.server:call("session/branch", { session = self.session, entry = self.base },
        function(outcome, reason)
          self.base = outcome and outcome.head or self.base
          ready(reason)
        end)
    end)
  end)
end

return writer
