-- subagents.lua: an agent that gives work to sub-agents. Each has a session of its own, which is
-- linked to the agent's session; only the result is added there.
--
--     build/bin/sessile run examples/subagents.lua
--
-- The model is a script unless an endpoint is configured: see model.lua.
local sessile = require "sessile"
local model = dofile((arg[0]:match "^.*/" or "./") .. "model.lua")

-- ------------------------------------------------------------------ the model's script

local findings = {
  ["the cache"] = "I measured it. The cache asks 40,000 times at start: 38 of the 40 seconds.",
  ["the log"] = "I measured it. The log is written in the background: nothing.",
}

local function script(request)
  local last = request.messages[#request.messages].content
  if request.purpose == "child_summary" then
    return last:match "%[assistant%] I measured it%. ([^\n]+)"
  elseif last:find "^Look into " then
    return findings[last:match "^Look into ([^:]+):"] or "There is no such thing here."
  end
  local known = {}
  for _, message in ipairs(request.messages) do
    known[#known + 1] = message.content:match "^The (%w+) asks"
  end
  return ("It is the %s: ask once, for all of them."):format(known[1])
end

-- ------------------------------------------------------------------ the program

local ask = model.choose(script)
local store <close> = assert(sessile.open("ram:", {
  model = function(request)
    if coroutine.isyieldable() then
      coroutine.yield() -- where a real model function would wait for its answer
    end
    return ask(request)
  end,
}))
local session = assert(store:session "why-so-slow")
assert(session:append { role = "user", content = "Why does the service take 40 s to start?" })

-- The work of a sub-agent. Its session begins empty (context = true: with the context of this one)
-- and stays when the work is done, as a record.
local function look_into(topic)
  local child = assert(session:child { agent = "searcher", title = topic })
  local outcome = assert(child:send("Look into " .. topic .. ": what does it cost at start?"))
  print(("%-17s  %s"):format(topic, outcome.text or outcome.error))
  return { session = child, useful = outcome.status == "completed"
    and not outcome.text:find "no such thing" }
end

-- All run concurrently: while one waits for the model, the others continue.
local threads, results = {}, {}
for i, topic in ipairs { "the cache", "the log", "the licence check" } do
  threads[i] = coroutine.create(function() results[i] = look_into(topic) end)
end
local waiting
repeat
  waiting = 0
  for _, thread in ipairs(threads) do
    if coroutine.status(thread) ~= "dead" then
      assert(coroutine.resume(thread))
      waiting = waiting + 1
    end
  end
until waiting == 0

-- The result of each becomes a message, which the model writes, or is discarded.
for _, result in ipairs(results) do
  if result.useful then
    local id = assert(result.session:merge { summary = true })
    print("merged             " .. session:entry(id).data.content)
  else
    assert(result.session:discard { reason = "led nowhere" })
    print("discarded          " .. result.session.title)
  end
  assert(result.session:close())
end

local outcome = assert(session:send "So, what is it?")
assert(outcome.status == "completed", outcome.error)
print("answer             " .. outcome.text .. "\n")

for _, row in ipairs(assert(session:subsessions())) do
  local child <close> = assert(store:resume { id = row.id, agent = row.agent })
  print(("%-18s %-10s %d messages, begun by '%s'"):format(child.title, row.state,
    #child:messages(), child.parent.id))
end
print(("%-18s %-10s %d messages"):format(session.id, "", #session:messages()))
