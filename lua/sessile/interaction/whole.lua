-- whole.lua: a transcript in a session that is written as one turn at the end.
--
-- Nothing is in the log before that, so a loop that died cannot be continued. A loop that pauses
-- writes its messages first, and is continued step by step (steps.lua).

local options = require "sessile.options"
local steps = require "sessile.interaction.steps"
local transcript = require "sessile.interaction.transcript"

local memory = transcript.in_memory

local whole = setmetatable({}, { __index = memory })
whole.__index = whole
-- What is recalled for the input stands before it.
whole.writes_at_end = true

--- A transcript that writes all messages as one turn at the end.
function whole.new(session, writing)
  local self = transcript.memory()
  self.session, self.writing, self.pauses = session, writing, {}
  return setmetatable(self, whole)
end

function whole:context()
  if not self.base then
    local before, info, code, retry_ms, rule = self.session:context()
    if not before then
      return nil, info, code, retry_ms, rule
    end
    self.before, self.base = before, info.head
  end
  return memory.context(self), { head = self.base }
end

-- The turn's usage is that of the last request, which gives the size of the context. `total` is the
-- sum of all requests. Both are reported by the provider.
function whole:answer(message, about)
  memory.answer(self, message)
  if not about.final then
    return true
  end
  local usage = about.usage and options.add({ total = about.total }, about.usage)
  local written, why, code, retry_ms, rule = transcript.write_turn(self, self.list, usage, about)
  if written then
    self.list = {}
  end
  return written, why, code, retry_ms, rule
end

function whole:paused(_, call, pause)
  self.pauses[#self.pauses + 1] = { call = call, pause = pause }
  return true
end

-- The messages so far are written as a turn without policy, so that the loop can be continued.
function whole:rest(pause)
  memory.rest(self)
  local list = self.list
  if #list > 0 then
    local written, message, code, retry_ms, rule = transcript.write_turn(self, list, nil, {})
    if not written then
      return nil, message, code, retry_ms, rule
    end
    self.list, self.wrote = {}, written.ids
    local _, at = transcript.waiting(list)
    for _, one in ipairs(self.pauses) do
      local id
      id, message, code, retry_ms, rule = steps.paused(self, { message = written.ids[at] },
        one.call, one.pause)
      if not id then
        return nil, message, code, retry_ms, rule
      end
    end
  end
  return transcript.suspend(self, pause)
end

function whole:pause()
  return self.session:suspended()
end

function whole:leave()
  if not self.unsaved and #self.list > 0 then
    self.unsaved = { messages = self.list, options = transcript.turn_options(self, {}) }
  end
end

function whole:compact(given)
  local done, message, code, retry_ms, rule = self.session:compact(given)
  if done then
    self.base, self.rewritten = nil, self.rewritten + 1
  end
  return done, message, code, retry_ms, rule
end

-- Open calls of an earlier loop are in the log.
whole.open = steps.open

return whole
