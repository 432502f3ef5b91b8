-- loops.lua: models that say what a spec told them, and what a loop did as short texts.

local loops = {}

--- A model that gives these answers in order and remembers what it was asked. An answer is a
--- text, a message, or a function of the request and its ctx.
function loops.model(answers)
  local self = { requests = {}, calls = 0 }
  return setmetatable(self, { __call = function(_, request, ctx)
    self.calls = self.calls + 1
    self.requests[self.calls] = request
    local answer = answers[self.calls]
    if answer == nil then
      error("the model was asked more often than the spec said")
    elseif type(answer) == "function" then
      return answer(request, ctx)
    end
    return answer
  end })
end

--- A message of the model that calls tools: call{"look", "c1"}, each {name, id, arguments}.
function loops.call(...)
  local message = { role = "assistant", content = "", tool_calls = {} }
  for i, one in ipairs { ... } do
    message.tool_calls[i] = { name = one[1], id = one[2], arguments = one[3] or "{}" }
  end
  return message
end

--- A list, and a function that adds each event to it: "type" or "type tool".
function loops.trace()
  local list = {}
  return list, function(event)
    list[#list + 1] = event.type .. (event.call and " " .. event.call.id or "")
  end
end

--- Each message as "role: content", calls as "role: content [ids]".
function loops.lines(messages)
  local list = {}
  for i, message in ipairs(messages) do
    local ids = {}
    for j, call in ipairs(message.tool_calls or {}) do
      ids[j] = call.id
    end
    list[i] = ("%s: %s%s"):format(message.role, tostring(message.content),
      #ids > 0 and " [" .. table.concat(ids, " ") .. "]" or "")
  end
  return list
end

--- Runs functions as coroutines, one step each, round and round, until all have ended. Raises
--- what one of them raises. Returns how often each was resumed.
function loops.schedule(...)
  local threads, turns = {}, {}
  for i, f in ipairs { ... } do
    threads[i], turns[i] = coroutine.create(f), 0
  end
  local left = #threads
  while left > 0 do
    left = 0
    for i, thread in ipairs(threads) do
      if coroutine.status(thread) ~= "dead" then
        turns[i] = turns[i] + 1
        local ok, why = coroutine.resume(thread)
        if not ok then
          error(why, 0)
        end
        left = left + 1
      end
    end
  end
  return turns
end

return loops
