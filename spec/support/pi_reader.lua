-- pi_reader.lua: what the pi coding agent gives a model of a session file (version 3).

local sessile = require "sessile"

local pi_reader = {}

local function texts(content)
  if type(content) == "string" then
    return content
  end
  local out = {}
  for _, block in ipairs(content or {}) do
    out[#out + 1] = block.text or block.type == "toolCall" and "call " .. block.id or nil
  end
  return table.concat(out, " ")
end

-- The text that a line adds to the context; nil if it adds none.
local function text_of(line)
  if line.type == "message" then
    return texts(line.message.content)
  elseif line.type == "custom_message" then
    return texts(line.content)
  end
  return line.type == "branch_summary" and line.summary or nil
end

--- The texts of the messages in the order in which the model gets them. The file is continued at
--- its last line. After a compaction on the path to it the model gets its summary, the path's
--- messages from its firstKeptEntryId, and what follows.
function pi_reader.context(text)
  local lines, last = {}, nil
  for raw in text:gmatch "[^\n]+" do
    local line = assert(sessile.decode(raw))
    if line.type ~= "session" then
      assert(line.id and not lines[line.id], "no id, or one that is there: " .. raw)
      assert(line.parentId == sessile.null or lines[line.parentId], "no parent before: " .. raw)
      lines[line.id], last = line, line
    end
  end
  local path, compaction = {}, nil
  while last do
    table.insert(path, 1, last)
    compaction = compaction or last.type == "compaction" and last
    last = last.parentId ~= sessile.null and lines[last.parentId] or nil
  end
  local out, kept = { compaction and compaction.summary or nil }, not compaction
  for _, line in ipairs(path) do
    kept = kept or line.id == compaction.firstKeptEntryId or line == compaction
    out[#out + 1] = kept and text_of(line) or nil
  end
  return out
end

return pi_reader
