-- shipped.lua: what is expected of every policy that ships.

local assert = require "luassert"
local transcript = require "spec.support.transcript"

local shipped = {}

--- That no outcome has a refusal of the policy.
function shipped.none_refused(outcomes)
  for _, outcome in ipairs(outcomes) do
    assert.is_nil(outcome.policy.refused)
  end
end

--- That the newest `count` messages of two contexts are the same, byte for byte.
function shipped.same_end(before, after, count)
  for i = 0, count - 1 do
    assert.equal(before[#before - i].json, after[#after - i].json)
  end
end

--- Plays turns without a policy and compacts once with a policy, as session:compact takes it. That
--- it is not refused, and leaves only the pairs broken that were: none, or the one of open work.
--- Returns the context after and before, the outcome and the session.
function shipped.compacted(policy, turns, open)
  local session = assert(transcript.session { policy = false })
  transcript.play(session, turns)
  local before = session:context()
  local outcome = assert(session:compact { policy = policy })
  assert.is_nil(outcome.policy.refused)
  local after = session:context()
  assert.equal(open and "1 calls have no result" or nil, transcript.broken_pair(after))
  return after, before, outcome, session
end

--- That a policy which compacts work that is not done leaves the call that still waits, and what
--- follows it. The last of the 17 messages is what the engine shows for the missing result.
function shipped.leaves_open_work(policy, model)
  local session = assert(transcript.session { model = model })
  transcript.play(session, transcript.open_work(150), { policy = false })
  local before = session:context()
  local outcome = session:compact { policy = policy }
  assert.is_true(outcome.policy.applied)
  shipped.same_end(before, session:context(), 17)
end

--- That no session opens with one of these options of a policy. Returns the sentences.
function shipped.refuses_options(name, list)
  local messages = {}
  for i, options in ipairs(list) do
    options[1] = name
    local session, message, code = transcript.session { policy = options }
    assert.is_nil(session)
    assert.equal("EINVALID", code)
    messages[i] = message
  end
  return messages
end

--- That the bundled conversation is played under a policy without a refusal, whatever the window.
--- model(): the model of one session, if it has one. check(session, outcomes): what else holds.
function shipped.never_refused(name, model, check)
  for _, window in ipairs { 1000, 4000, 8000, 16000, 32000 } do
    local session, outcomes = transcript.under({ policy = name, window = window,
      model = model and model() }, transcript.turns())
    shipped.none_refused(outcomes)
    assert.is_nil(transcript.broken_pair(session:context()))
    if check then
      check(session, outcomes)
    end
  end
end

return shipped
