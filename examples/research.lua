-- research.lua: one question, two answers: a branch from an earlier point, a fork of each branch,
-- and a comparison.
--
--     build/bin/sessile run examples/research.lua
--
-- The model is a script unless an endpoint is configured: see model.lua.
local sessile = require "sessile"
local model = dofile((arg[0]:match "^.*/" or "./") .. "model.lua")

-- ------------------------------------------------------------------ the model's script

local says = {
  ["Research AI safety techniques."] =
    "There are two families: watching a model from outside, and shaping what it wants.",
  ["How would one watch it?"] = "Read its activations, log what it does, and stop it in time.",
  ["Actually, let's focus on alignment."] =
    "Then: learn from preferences, write the principles down, and test with adversaries.",
  ["Say in one line what was found on this way."] = function(messages)
    local found = messages[#messages - 1].content
    return found:match "adversaries" and "alignment: it wants the right thing, hard to verify"
      or "monitoring: easy to verify, and too late when it is slow"
  end,
}

local function script(request)
  local last = request.messages[#request.messages].content
  if last:find "^Compare both approaches" then
    local first, second = last:match "1%) (.-) 2%) (.*)"
    return ("Use both: %s; %s."):format(first:match "^%w+", second:match "^%w+")
  elseif request.purpose == "branch_summary" then
    return "Looked into watching from outside; left for alignment."
  end
  local answer = assert(says[last], last)
  return type(answer) == "function" and answer(request.messages) or answer
end

-- ------------------------------------------------------------------ the program

local store <close> = assert(sessile.open("ram:", { model = model.choose(script) }))
local session = assert(store:session "safety")

local function ask(s, question)
  local outcome = assert(s:send(question))
  assert(outcome.status == "completed", outcome.error)
  print(("%-9s user   %s\n%-9s agent  %s"):format(s.id, question, "", outcome.text))
  return outcome
end

local start = ask(session, "Research AI safety techniques.").head
assert(session:label(start, "the fork in the road"))
local monitoring = ask(session, "How would one watch it?").head

-- Back to the first answer. Later messages stay in the log. The model summarizes them, so that this
-- branch knows about the other one.
local back = assert(session:branch(start, { summary = true }))
print(("%-9s (back to '%s'; the model is told: %s)"):format("", session:labels()[1].name,
  back.summary))
local alignment = ask(session, "Actually, let's focus on alignment.").head

-- The tree: where the two branches part, and where they end.
local ways = assert(session:leaves())
assert(session:common_ancestor(monitoring, alignment) == start)

-- A fork of each is a separate session: new messages there are not added here.
local findings = {}
for i, way in ipairs { { "watch", monitoring }, { "align", alignment } } do
  local fork <close> = assert(session:fork(way[2], { id = way[1] }))
  findings[i] = ask(fork, "Say in one line what was found on this way.").text
end
ask(session, ("Compare both approaches. 1) %s 2) %s"):format(
  findings[1], findings[2]))

print(("\n%d ways from '%s', %d sessions, %d messages on this way"):format(#ways,
  session:labels()[1].name, #store:list(), #session:messages()))
local function show(node, depth)
  if node.entry.data.content then
    print(("%s%s %s: %s"):format(("  "):rep(depth), node.on_path and "*" or "-",
      node.type == "message" and node.role or "summary", node.entry.data.content))
  end
  for _, child in ipairs(node.children) do
    show(child, depth + (#node.children > 1 and 1 or 0))
  end
end
show(session:tree().root, 0)
