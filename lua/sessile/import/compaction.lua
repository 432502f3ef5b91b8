--- compaction: repeats a compaction that another agent made.
--
-- Owns: the host's policy that puts the recorded summary in the place of what it stood for. Must
-- never ask a model.
--
-- What the laws of context hold on to stays beside the summary: the system messages that open
-- the context, pinned ones, the user's last message, calls that wait, the two newest messages.

local sessile = require "sessile"

local compaction = {}

local function summary_of(text, place)
  return {
    role = "user", content = text,
    metadata = { kind = "summary",
      imported = { from = place.from, source = place.source, at = place.at } },
  }
end

--- A message that holds the summary, as JSON.
---@param text string
---@param place sessile.import.place
---@return string json
function compaction.message(text, place)
  return assert(sessile.encode(summary_of(text, place)))
end

-- What must stay, and what belongs to it by calls and results: without a first message, the two
-- newest, which the laws never let go.
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

--- Puts a summary in the place of what is older than `first` (nil: of all). Returns true; false
--- when the engine would not have it; nil, message, code when something is broken.
---@param session table
---@param text string
---@param place sessile.import.place
---@param first string?  the entry of the first message that stays
---@return boolean? done
---@return string? message
---@return string? code
function compaction.apply(session, text, place, first)
  local outcome, message, code = session:compact {
    policy = {
      name = "import",
      compact = function(state)
        if #state.messages == 0 then
          return nil
        end
        local stays, list, covers = find_staying(state, first), {}, {}
        local summary = summary_of(text, place)
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
