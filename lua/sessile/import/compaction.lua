--- compaction: repeats a compaction that another agent made.
--
-- Owns: the policy that replaces the same messages by the recorded summary. Must never ask a model.
--
-- Messages that the laws of context protect stay beside the summary: system messages at the
-- beginning, pinned ones, the user's last message, open calls, the two newest messages.

local sessile = require "sessile"

local compaction = {}

local function summary_of(text, place, time)
  return {
    role = "user", content = text, timestamp = time,
    metadata = { kind = "summary",
      imported = { from = place.from, source = place.source, at = place.at } },
  }
end

--- A message that holds the summary, as JSON.
---@param text string
---@param place sessile.import.place
---@param time integer?
---@return string json
function compaction.message(text, place, time)
  return assert(sessile.encode(summary_of(text, place, time)))
end

-- The messages that must stay, with their calls and results. Without a first message these are the
-- two newest, which the laws protect.
local function find_staying(state, first)
  local messages, stays = state.messages, {}
  local last, question = messages[#messages], nil
  for i = #messages, 1, -1 do
    question = messages[i].id and messages[i].turn == last.turn and i or question
  end
  for i = 1, #messages do
    local is_newer = first and messages[i].id and messages[i].id >= first
    if is_newer or i > #messages - 2 or i == question or messages[i].pinned or messages[i].open then
      for _, k in ipairs(state:pairs_of(i)) do
        stays[k] = true
      end
    end
  end
  return stays
end

--- Replaces all messages before `first` (nil: all messages) by a summary. Returns true; false if
--- the engine refuses it; nil, message, code on another failure.
---@param session table
---@param text string
---@param place sessile.import.place
---@param first string?  the entry of the first message that stays
---@param time integer?
---@return boolean? done
---@return string? message
---@return string? code
function compaction.apply(session, text, place, first, time)
  local outcome, message, code = session:compact {
    policy = {
      name = "import",
      compact = function(state)
        if #state.messages == 0 then
          return nil
        end
        local stays, list, covers = find_staying(state, first), {}, {}
        local summary = summary_of(text, place, time)
        for i, one in ipairs(state.messages) do
          if stays[i] then
            list[#list + 1] = one
          else
            if #covers == 0 then
              list[#list + 1] = summary
            end
            covers[#covers + 1] = one
          end
        end
        summary.covers = covers
        return #covers > 0 and { messages = list } or nil
      end,
    },
    fallback = false, window = 0,
  }
  if not outcome then
    if code == "EINVALID" or code == "ELIMIT" then
      return false
    end
    return nil, message, code
  end
  return outcome.policy ~= nil and outcome.policy.applied == true
end

return compaction
