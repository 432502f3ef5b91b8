--- fixtures: recorded conversations, found by name or by pattern, and read as turns.
--
-- Fixtures are never changed.

local import = require "sessile.import"
local parts = require "sessile.import.parts"
local sessile = require "sessile"

local fixtures = {}

---@class sessile.testing.fixture
---@field name string
---@field turns sessile.Message[][]
---@field path string?

--- A recording: a file of messages, or anything else that import can tell. Raises when it
--- cannot be read. What providers reported as usage is left out: that tells how large the recorded
--- context was, and the policy under test makes another.
---@param path string
---@return sessile.testing.fixture
function fixtures.load(path)
  local records, message = import.open(path)
  if not records then
    error(("fixture %s: %s"):format(path, message), 0)
  end
  local turns = {}
  for record in records do
    if record.kind == "turn" then
      local turn = {}
      for i, text in ipairs(record.messages) do
        turn[i] = sessile.json(parts.without(text, "usage"))
      end
      turns[#turns + 1] = turn
    end
  end
  return { name = path:match("([^/]+)%.%w+$") or path, turns = turns, path = path }
end

-- A shell's pattern as Lua's: * and ? within one folder.
local function pattern_of(glob)
  local escaped = glob:gsub("[%^%$%(%)%%%.%[%]%+%-]", "%%%0")
  return "^" .. escaped:gsub("%*", "[^/]*"):gsub("%?", "[^/]") .. "$"
end

--- The files that a pattern names, in order. Only the last part may hold * and ?.
---@param glob string
---@return string[]
function fixtures.files(glob)
  local has_lfs, lfs = pcall(require, "lfs")
  if not has_lfs then
    error("each_fixture needs the Lua module lfs, which comes with busted", 0)
  end
  local folder, last = glob:match("^(.*)/([^/]*)$")
  folder, last = folder or ".", last or glob
  local pattern, found = pattern_of(last), {}
  if lfs.attributes(folder, "mode") == "directory" then
    for name in lfs.dir(folder) do
      if name:find(pattern) and name:sub(1, 1) ~= "." then
        found[#found + 1] = folder .. "/" .. name
      end
    end
  end
  table.sort(found)
  return found
end

--- A fixture by its name (spec/fixtures/NAME.jsonl) or path, or what is one already: turns, or
--- messages, which are cut where a user speaks.
---@return sessile.testing.fixture
function fixtures.of(what)
  if type(what) == "string" then
    local path = what:find("[/.]") and what or ("spec/fixtures/%s.jsonl"):format(what)
    return fixtures.load(path)
  end
  if type(what) ~= "table" then
    error("a fixture is a name, a path, or a list of turns or messages", 3)
  end
  if what.turns then
    return what
  end
  local first = what[1]
  if type(first) == "table" and first.role == nil and first[1] ~= nil then
    return { name = what.name or "turns", turns = what }
  end
  local turns = {}
  for _, message in ipairs(what) do
    local opens = message.role == "user" and #turns > 0
      and not (#turns == 1 and turns[1][#turns[1]].role == "system")
    if #turns == 0 or opens then
      turns[#turns + 1] = {}
    end
    table.insert(turns[#turns], message)
  end
  return { name = what.name or "messages", turns = turns }
end

return fixtures
