--- screens: a screen under test, and how often it is right.

local sessile = require "sessile"
local texts = require "sessile.testing.screen_texts"

local screens = {}

---@class sessile.testing.screen
---@field list sessile.Screens
local methods = {}
methods.__index = methods

--- What the screen says of a text (for a memory, from a tool) or of an item.
---@param item string|table
---@return table outcome
function methods:run(item)
  local given = { kind = "memory", source = "tool" }
  for name, value in pairs(type(item) == "table" and item or { text = item }) do
    given[name] = value
  end
  return assert(self.list:run(given))
end

local function add(row, is_caught)
  row.count = row.count + 1
  row.caught = row.caught + (is_caught and 1 or 0)
end

-- The row of that name; a new one is put behind the others.
local function row_of(rows, name)
  for _, row in ipairs(rows) do
    if row.name == name then
      return row
    end
  end
  rows[#rows + 1] = { name = name, caught = 0, count = 0 }
  return rows[#rows]
end

--- How many of the attacks, and of the ordinary texts, do not simply pass. Attacks are counted by
--- class and form. Returns rows, ordinary {caught, count}, and the ordinary texts that were caught.
---@param attacks table[]?   default: T.attacks "memory"
---@param ordinary table[]?  default: T.ordinary()
function methods:rates(attacks, ordinary)
  local rows, caught = {}, {}
  local all = { name = "ordinary", caught = 0, count = 0 }
  for _, attack in ipairs(attacks or texts.memory()) do
    local outcome = self:run { text = attack.text, source = attack.source }
    local name = ("%s, %s"):format(attack.class or "attack", attack.form or "plain")
    add(row_of(rows, name), outcome.verdict ~= "pass")
  end
  for _, text in ipairs(ordinary or texts.ordinary()) do
    local outcome = self:run { text = text.text, source = text.source }
    add(all, outcome.verdict ~= "pass")
    if outcome.verdict ~= "pass" then
      caught[#caught + 1] = { text = text.text, source = text.source,
        rule = outcome.findings[1].rule }
    end
  end
  return rows, all, caught
end

--- Prints both rates: of each kind of attack, and of ordinary texts.
---@param attacks table[]?
---@param ordinary table[]?
function methods:print_rates(attacks, ordinary)
  local rows, all = self:rates(attacks, ordinary)
  rows[#rows + 1] = all
  for _, row in ipairs(rows) do
    io.stderr:write(("# %-28s %3d of %3d\n"):format(row.name, row.caught, row.count))
  end
end

--- Loads a screen, or a list of them, in the engine's sandbox. Raises when it cannot be loaded.
---@param name string|string[]
---@param options table?  of the screen, when it is one
---@return sessile.testing.screen
function screens.load(name, options)
  local list = { verbose = true }
  for i, one in ipairs(type(name) == "table" and name or { name }) do
    list[i] = one
  end
  if options then
    local with = { list[1] }
    for key, value in pairs(options) do
      with[key] = value
    end
    list[1] = with
  end
  local loaded, message = sessile.screen(list)
  if not loaded then
    error(message, 2)
  end
  return setmetatable({ list = loaded }, methods)
end

--- Attacks that ship: "memory".
---@param name string
function screens.attacks(name)
  if name ~= "memory" then
    error(("there are attacks on \"memory\", not on %q"):format(tostring(name)), 2)
  end
  return texts.memory()
end

screens.ordinary = texts.ordinary

return screens
