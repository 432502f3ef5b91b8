-- reasoning.lua: what a model thought, as an OpenAI-compatible endpoint reports it: as text
-- (`reasoning_content`, `reasoning`), or as `reasoning_details`, a list of objects, some of them
-- signed or encrypted. A provider refuses a signed one that comes back changed.

local answers = require "sessile.answers"

local reasoning = {}

local DETAILS = "reasoning_details"

-- The objects of a list; nil: there are none.
local function details_of(given)
  local list = {}
  for _, detail in ipairs(type(given) == "table" and given or {}) do
    list[#list + 1] = type(detail) == "table" and detail or nil
  end
  return #list > 0 and list or nil
end

--- Copies the reasoning of a message of an endpoint into ours. An empty text is kept with calls:
--- it has to go back with them.
function reasoning.read(said, message)
  for _, name in ipairs(answers.reasoning_members) do
    local text = said[name]
    message[name] = type(text) == "string" and (message.tool_calls or text ~= "") and text or nil
  end
  message[DETAILS] = details_of(said[DETAILS])
end

--- Copies the reasoning that goes back to the endpoint: text with the calls that it led to, also if
--- it is empty, because endpoints that reason refuse such a message without it, and in other
--- messages some endpoints refuse it; details always, because who sends them wants them back.
function reasoning.write(message, added)
  for _, name in ipairs(added.tool_calls and answers.reasoning_members or {}) do
    added[name] = type(message[name]) == "string" and message[name] or nil
  end
  added[DETAILS] = details_of(message[DETAILS])
end

-- ---------------------------------------------------------------- streamed

local Pieces = {}
Pieces.__index = Pieces

--- Joins streamed reasoning.
function reasoning.pieces()
  return setmetatable({ texts = {}, details = {} }, Pieces)
end

-- The members that come in pieces.
local JOINED = { "text", "summary" }

-- The detail that a piece continues: the newest of its index, if it is of its kind. Some providers
-- number all details 0, so that only a change of the kind shows that one has ended. A signature
-- ends a text, and encrypted data comes whole.
local function place_of(self, piece)
  for i = #self.details, 1, -1 do
    local detail = self.details[i]
    if detail.given.index == piece.index then
      local ended = type(piece.data) == "string"
        or type(detail.given.signature) == "string" and type(piece.text) == "string"
          and piece.text ~= ""
      return not ended and detail.given.type == piece.type and detail or nil
    end
  end
end

-- Returns the bytes of text that the piece has.
local function take_detail(self, piece)
  local detail = place_of(self, piece)
  if not detail then
    detail = { given = {}, parts = {} }
    table.insert(self.details, detail)
  end
  local size = 0
  for name, value in pairs(piece) do
    size = size + (type(value) == "string" and #value or 8)
    if type(value) ~= "userdata" or detail.given[name] == nil then -- null replaces nothing
      detail.given[name] = value
    end
  end
  for _, name in ipairs(JOINED) do
    if type(piece[name]) == "string" then
      detail.parts[name] = detail.parts[name] or {}
      table.insert(detail.parts[name], piece[name])
    end
  end
  return size
end

--- Adds a piece of an answer. Returns the text to show, or nil, and how many bytes are kept more.
--- Some endpoints send the same text in several members: it is shown once.
function Pieces:take(delta)
  local size, shown = 0, {}
  for _, name in ipairs(answers.reasoning_members) do
    local text = delta[name]
    if type(text) == "string" then
      size = size + #text
      self.texts[name] = self.texts[name] or {}
      table.insert(self.texts[name], text)
    end
  end
  for _, piece in ipairs(details_of(delta[DETAILS]) or {}) do
    size = size + take_detail(self, piece)
    for _, name in ipairs(JOINED) do
      shown[#shown + 1] = type(piece[name]) == "string" and piece[name] or nil
    end
  end
  local text = answers.reasoning(delta) or table.concat(shown)
  return text ~= "" and text or nil, size
end

--- Puts all of it into a message.
function Pieces:write(message)
  local said = { [DETAILS] = {} }
  for name, parts in pairs(self.texts) do
    said[name] = table.concat(parts)
  end
  for i, detail in ipairs(self.details) do
    for name, parts in pairs(detail.parts) do
      detail.given[name] = table.concat(parts)
    end
    said[DETAILS][i] = detail.given
  end
  reasoning.read(said, message)
end

return reasoning
