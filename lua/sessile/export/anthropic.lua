--- anthropic: the conversation as a request of Anthropic's Messages API: {"system", "messages"}.
--
-- Owns: the form of a message, the alternation of user and assistant, and the separate system
-- prompt. Must never write what that API refuses: see conversation.lua. A session that was imported
-- from a document gets the other members of the document back.

local blocks_in = require "sessile.export.anthropic_message"
local conversation = require "sessile.export.conversation"
local span = require("sessile.core").span

-- ---------------------------------------------------------------- turns

local Writer = {}
Writer.__index = Writer

-- Writes the message that was collected.
local function flush(self)
  local role, text, blocks = self.role, self.text, self.blocks
  self.role, self.text, self.blocks = nil, nil, {}
  if not role then
    return
  elseif self.first and role == "assistant" then
    self.write '\n{"role":"user","content":"(The conversation begins with an answer.)"}'
    self.first, self.begun = false, true
  end
  self.write(('%s{"role":"%s","content":%s}'):format(self.first and "\n" or ",\n", role,
    text or "[" .. table.concat(blocks, ",") .. "]"))
  self.first = false
end

-- Adds to the message of that role. text: the original content, if it is the only one.
local function add(self, role, blocks, text)
  if #blocks == 0 then
    self.empty = self.empty + 1
    return
  elseif self.role ~= role then
    flush(self)
    self.role, self.text = role, text
  else
    self.text = nil
  end
  for _, block in ipairs(blocks) do
    self.blocks[#self.blocks + 1] = block
  end
end

function Writer:put(said)
  local blocks = {}
  if said.role == "tool" and #said.results > 0 then
    for i, result in ipairs(said.results) do
      blocks[i] = blocks_in.result(result, self)
    end
    return add(self, "user", blocks)
  elseif said.role == "system" then
    self.system_later = self.system_later + 1
  end
  blocks = blocks_in.blocks(said, self)
  if said.role ~= "assistant" then
    return add(self, "user", blocks, said.role ~= "tool" and said.text or nil)
  end
  for _, call in ipairs(said.calls) do
    blocks[#blocks + 1] = blocks_in.call(call, self)
  end
  return add(self, "assistant", blocks, #said.calls == 0 and said.text or nil)
end

-- The system messages at the beginning: a single one unchanged, several as blocks.
local function system_of(list, counts)
  if #list == 1 then
    local content = list[1].fields.content
    return list[1].text and span.string(content):find "%S" and content
      or #blocks_in.blocks(list[1], counts) > 0 and "[" .. table.concat(blocks_in.blocks(list[1], {
        left_out = 0 }), ",") .. "]" or nil
  end
  local blocks = {}
  for _, said in ipairs(list) do
    for _, block in ipairs(blocks_in.blocks(said, counts)) do
      blocks[#blocks + 1] = block
    end
  end
  return #blocks > 0 and "[" .. table.concat(blocks, ",") .. "]" or nil
end

---@param source table  of sessile.export.source
---@param write fun(chunk: string)
---@return {notes: string[]}
return function(source, write)
  local rest, imported = conversation.rest(source, "anthropic")
  local self = setmetatable({ write = write, first = true, blocks = {}, left_out = 0, empty = 0,
    wrapped = 0, system_later = 0 }, Writer)
  local opening, is_list = {}, nil
  local function begin()
    local system = system_of(opening, self)
    is_list = imported and #rest == 0 and not system
    write(is_list and "[" or "{")
    write(system and '"system":' .. system .. ",\n" or "")
    write(is_list and "" or '"messages":[')
    opening = nil
  end
  local mended = conversation.each(source, function(said)
    if opening and said.role == "system" then
      opening[#opening + 1] = said
    else
      if opening then
        begin()
      end
      self:put(said)
    end
  end)
  if opening then
    begin()
  end
  flush(self)
  conversation.finish(write, rest, is_list, { messages = true, system = true })
  local notes = {}
  conversation.tell(mended, notes)
  conversation.tell_left_out(self, notes)
  conversation.note(notes, self.wrapped,
    "%d call has arguments that are not an object: they were put into one",
    "%d calls have arguments that are not objects: they were put into objects")
  conversation.note(notes, self.system_later,
    "%d system message comes after others: it is the user's there",
    "%d system messages come after others: they are the user's there")
  if self.begun then
    notes[#notes + 1] = "a message of the user was put before the answer that came first"
  end
  return { notes = notes }
end
