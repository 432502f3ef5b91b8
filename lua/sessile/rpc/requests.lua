--- requests: a request that runs: a coroutine that may ask the client and waits for its answer.
--
-- Owns: which coroutine is which request, what each waits for. Must never block: a request that
-- waits gives the server back.

local requests = {}
requests.__index = requests

local CANCELLED = "cancelled"

--- A request. server: loop.lua. id: its JSON text; nil: a notification.
function requests.new(server, id, method, text)
  return setmetatable({ server = server, id = id, method = method, text = text,
    cancelled = false }, requests)
end

-- Lets the server go on until it resumes this request. what: "ask", "time" or "turn".
local function wait(self, what)
  self.waits = what
  local answer, why = coroutine.yield()
  self.waits = nil
  return answer, why
end

--- Asks the client, and waits: the JSON text of its result; nil and why there is none.
---@param method string
---@param params table
---@return string? result
---@return string? why
function requests:ask(method, params)
  if self.cancelled then
    return nil, CANCELLED
  elseif self.server.ended then
    return nil, "the client has ended its input: nobody can be asked"
  end
  self.server:send_ask(self, method, params)
  return wait(self, "ask")
end

--- Waits for a time; others are answered meanwhile.
---@param seconds number
function requests:sleep(seconds)
  self.due = self.server.now() + seconds
  wait(self, "time")
end

--- Lets others be answered, and goes on.
function requests:breathe()
  self:sleep(0)
end

--- Waits until is_free() says so.
function requests:wait_until(is_free)
  while not is_free() do
    self:sleep(0.005)
  end
end

--- Tells it that its client does not want it any more.
function requests:cancel()
  self.cancelled = true
  if self.waits == "ask" then
    self.server:resume(self, nil, CANCELLED)
  end
end

return requests
