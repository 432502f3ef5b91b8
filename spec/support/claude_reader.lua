-- claude_reader.lua: what Claude Code gives a model of a session file. The file is continued at its
-- last line that no other one follows. A boundary has no parent; the messages that its
-- preservedMessages name are linked behind the anchor, in their order, and what followed the anchor
-- follows them.

local sessile = require "sessile"

local claude_reader = {}

local function texts(content)
  if type(content) == "string" then
    return content
  end
  local out = {}
  for _, block in ipairs(content) do
    out[#out + 1] = block.text or block.type == "tool_use" and "call " .. block.id
      or block.type == "tool_result" and texts(block.content) or nil
  end
  return table.concat(out, " ")
end

local function parent_of(line)
  return line.parentUuid ~= sessile.null and line.parentUuid or nil
end

-- Links what a boundary keeps.
local function link(lines, order, parents, kept)
  local before = kept.anchorUuid
  for _, uuid in ipairs(kept.uuids) do
    assert(lines[uuid], "a message that is kept is not there: " .. uuid)
    parents[uuid], before = before, uuid
  end
  for _, uuid in ipairs(order) do
    if parents[uuid] == kept.anchorUuid and uuid ~= kept.uuids[1] then
      parents[uuid] = before
    end
  end
end

--- The lines in the order in which the model gets them.
function claude_reader.path(text)
  local lines, order, parents, session = {}, {}, {}, nil
  for raw in text:gmatch "[^\n]+" do
    local line = assert(sessile.decode(raw))
    session = session or line.sessionId
    assert(line.sessionId == session, "a line of another session")
    if line.uuid then
      assert(not lines[line.uuid], "the uuid is there twice: " .. raw)
      assert(line.isSidechain == false and line.timestamp and line.cwd, raw)
      lines[line.uuid], order[#order + 1], parents[line.uuid] = line, line.uuid, parent_of(line)
    end
  end
  for _, uuid in ipairs(order) do
    local kept = (lines[uuid].compactMetadata or {}).preservedMessages
    if kept then
      link(lines, order, parents, kept)
    end
  end
  local path, seen, followed, last = {}, {}, {}, nil
  for _, parent in pairs(parents) do
    followed[parent] = true
  end
  for _, uuid in ipairs(order) do
    last = not followed[uuid] and uuid or last
  end
  while last do
    assert(not seen[last], "a circle")
    seen[last] = true
    table.insert(path, 1, lines[last])
    last = parents[last]
    assert(not last or lines[last], "no such parent")
  end
  return path
end

--- The texts of the messages in the order in which the model gets them.
function claude_reader.context(text)
  local out = {}
  for _, line in ipairs(claude_reader.path(text)) do
    out[#out + 1] = line.message and texts(line.message.content)
  end
  return out
end

return claude_reader
