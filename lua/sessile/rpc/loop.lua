--- loop: the server: lines in, requests in their order, answers out.
--
-- Owns: the queue of requests that have not begun, the requests that wait, the questions to the
-- client. Must never wait for the client to read: while much is to be written nothing new begins,
-- and what comes is still read, up to a bound.

local core = require "sessile.core"
local dispatch = require "sessile.rpc.dispatch"
local errors = require "sessile.rpc.errors"
local frame = require "sessile.rpc.frame"
local requests = require "sessile.rpc.requests"
local system = require "sessile.system"

local loop = {}
loop.__index = loop

local OUT_MOST = 8 << 20   -- bytes to be written, beyond which nothing begins
local QUEUE_MOST = 1024    -- requests that are read before they begin
local TURN = 64            -- requests that begin before the next look at the client
local SLICE = 0.05         -- seconds between two looks at watched sessions

loop.now = system.seconds

--- A server. io: sessile.stdio; most: bytes of a line.
function loop.new(io, most)
  return setmetatable({ io = io, most = most, queue = {}, first = 1, last = 0, running = {},
    asked = {}, ask_count = 0, of_thread = {}, by_id = {}, offers = {} }, loop)
end

-- ---------------------------------------------------------------- out

-- Sends the answer to a request: a result's JSON text, or an error.
local function answer(self, request, text, failure)
  if request.id then
    self.by_id[request.id] = nil
    self.io:send(frame.answer(request.id, text, failure))
  end
end

--- Tells the client something.
function loop:notify(method, params)
  self.io:send(frame.call(nil, method, core.text(params)))
end

--- Sends a question of a request that runs.
function loop:send_ask(request, method, params)
  self.ask_count = self.ask_count + 1
  local id = ("ask-%d"):format(self.ask_count)
  self.asked[id] = request
  request.asks = id
  params.run = request.id and core.json(request.id) or core.null
  self.io:send(frame.call(('"%s"'):format(id), method, assert(core.text(params))))
end

-- ---------------------------------------------------------------- requests

--- Goes on with a request that waits; what it waited for are the arguments.
function loop:resume(request, ...)
  if request.asks then
    self.asked[request.asks] = nil
    request.asks = nil
  end
  request.due = nil
  local ok, text, failure = coroutine.resume(request.thread, ...)
  if coroutine.status(request.thread) ~= "dead" then
    return
  end
  self.running[request] = nil
  self.of_thread[request.thread] = nil
  if not ok then
    io.stderr:write("sessile rpc: a defect: ", debug.traceback(request.thread, tostring(text)),
      "\n")
    text, failure = nil, errors.protocol(errors.INTERNAL, "this is a defect of sessile",
      "standard error has more about it")
  end
  answer(self, request, text, failure)
end

--- The request whose code runs now; nil: none.
function loop:current()
  return self.of_thread[coroutine.running()]
end

local function begin(self, request)
  if request.cancelled then
    return answer(self, request, nil,
      errors.of("the request was cancelled before it began", "ECANCELLED"))
  end
  request.thread = coroutine.create(dispatch.run)
  self.running[request] = true
  self.of_thread[request.thread] = request
  self:resume(request, self, request)
end

--- Cancels the request with that id (JSON text), if there is one.
function loop:cancel(id)
  local request = self.by_id[id]
  if request then
    request:cancel()
  end
end

-- ---------------------------------------------------------------- in

local function refuse(self, id, code, message, next_step)
  self.io:send(frame.answer(id or "null", nil, errors.protocol(code, message, next_step)))
end

-- The client answers a question.
local function take_answer(self, message)
  local request = self.asked[message.id and core.span.string(message.id)]
  if not request then
    return -- late, or twice
  elseif message.error then
    local failure = core.decode(message.error, nil, 100)
    local why = type(failure) == "table" and failure.message
    return self:resume(request, nil, type(why) == "string" and why or "the client failed")
  end
  self:resume(request, message.result)
end

-- A line of the client.
local function take(self, line)
  local message, code, why, next_step = frame.read(line)
  if not message then
    return refuse(self, why.id, code, why.message, next_step)
  elseif not message.method then
    return take_answer(self, message)
  elseif message.method == "rpc/cancel" and not message.id then
    local id = dispatch.cancels(message.params)
    return id and self:cancel(id)
  elseif message.id and self.by_id[message.id] then
    return refuse(self, message.id, errors.REQUEST,
      "the id of the request is that of one that has not ended", "give each request its own id")
  end
  self.last = self.last + 1
  local request = requests.new(self, message.id, message.method, message.params)
  self.queue[self.last] = request
  if request.id then
    self.by_id[request.id] = request
  end
end

local function read(self)
  while self.last - self.first < QUEUE_MOST do
    local line, over = self.io:line()
    if line then
      if line:find "%S" then
        take(self, line)
      end
    elseif line == false then
      self.io:send(frame.answer("null", nil, errors.of(("a line has more than %d bytes "
        .. "(rpc.message): it was dropped, and the next one is read"):format(self.most),
        "ELIMIT")))
    else
      return over == "end"
    end
  end
  return false
end

-- ---------------------------------------------------------------- the loop

-- The requests whose time has come, and when the next one's comes.
local function resume_due(self)
  local now, soonest, due = self.now(), nil, {}
  for request in pairs(self.running) do
    if request.due and request.due <= now then
      due[#due + 1] = request
    elseif request.due and (not soonest or request.due < soonest) then
      soonest = request.due
    end
  end
  for _, request in ipairs(due) do
    if request.due then
      self:resume(request)
    end
  end
  return #due > 0 and now or soonest
end

local function begin_some(self)
  for _ = 1, TURN do
    if self.first > self.last or self.io:queued() >= OUT_MOST then
      return
    end
    local request = self.queue[self.first]
    self.queue[self.first] = nil
    self.first = self.first + 1
    begin(self, request)
  end
end

-- How long to wait for the client, in ms.
local function patience(self, soonest)
  if self.first <= self.last and self.io:queued() < OUT_MOST then
    return 0
  end
  local next_look = self.watches and self.watches:next_look(self.now(), SLICE)
  local at = soonest and next_look and math.min(soonest, next_look) or soonest or next_look
  return at and math.max(0, math.ceil((at - self.now()) * 1000)) or -1
end

-- Tells those that wait that nobody answers any more.
local function end_asks(self)
  for id, request in pairs(self.asked) do
    self.asked[id] = nil
    self:resume(request, nil, "the client has ended its input")
  end
end

--- One round: what came, what begins, what is due, what is written. most_ms: of waiting.
function loop:round(most_ms)
  self.ended = read(self) or self.ended or self.io:broken()
  begin_some(self)
  if self.ended and self.first > self.last then
    end_asks(self)
  end
  local soonest = resume_due(self)
  if self.watches then
    self.watches:look(self.now(), SLICE)
  end
  local wait = patience(self, soonest)
  if self.ended and self.first > self.last and not next(self.running) then
    wait = 0
  end
  if most_ms and (wait < 0 or wait > most_ms) then
    wait = most_ms
  end
  self.io:poll(wait, self.io:held() < 2 * self.most)
end

--- Answers others while the request that runs is in a call that cannot wait.
function loop:pump()
  self:round(0)
end

--- Serves until the input ends: everything that came is answered, and all answers are written.
function loop:serve()
  repeat
    self:round()
  until self.ended and self.first > self.last and not next(self.running)
  while self.io:queued() > 0 and not self.io:broken() do
    self.io:poll(-1, false)
  end
end

return loop
