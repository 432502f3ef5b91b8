--- asserts: assertions for luassert: assert.tool_pairs, .within_budget, .keeps, .lawful, .golden.
--
-- A failure is a sentence that names the message, the turn or the law.

local facts = require "sessile.facts"
local golden = require "sessile.testing.golden"
local properties = require "sessile.testing.properties"

local asserts = {}

local function tool_pairs(result)
  for _, law in ipairs { 1, 2 } do
    local what, turn = properties.broken(result, law)
    if what then
      return false, ("law %d%s: %s"):format(law, turn and (", turn %d"):format(turn) or "", what)
    end
  end
  return true
end

local function within_budget(result)
  if not result.window then
    return false, "the result was made without a window: give policy:run one"
  end
  for i, outcome in ipairs(result.outcomes) do
    if outcome.cannot_fit then
      return false, ("after turn %d the context is %d tokens too large"):format(i,
        outcome.cannot_fit)
    end
  end
  local wrong = properties.budget(result)
  return wrong == nil, wrong
end

local function lawful(result)
  local refusal = result.refusals[1]
  if refusal then
    return false, ("turn %d: %s refused%s: %s"):format(refusal.turn, refusal.policy or "policy",
      refusal.law and (" by law %d"):format(refusal.law) or "", refusal.message)
  end
  for _, law in ipairs(properties.laws) do
    local what = properties.broken(result, law[1])
    if what then
      return false, ("law %d: %s"):format(law[1], what)
    end
  end
  return true
end

-- Things that a spec can ask to be kept, by name: which messages of the path they are.
local kinds = {
  system = function(m) return m.role == "system" or m.role == "developer" end,
  errors = function(m) return m.is_error == true or m.isError == true end,
  users = function(m) return m.role == "user" end,
  tools = function(m) return m.role == "tool" end,
}

local function last_user(messages)
  for i = #messages, 1, -1 do
    local m = messages[i]
    if properties.is_said(m) then
      return { m }
    end
  end
  return {}
end

local function wanted(messages, what)
  if what == "last_user" then
    return last_user(messages)
  end
  local list = {}
  for _, m in ipairs(messages) do
    local hit
    if kinds[what] then
      hit = kinds[what](m)
    else
      hit = facts.within(m).key == what
        or (type(m.content) == "string" and m.content:find(what, 1, true))
    end
    if hit then
      list[#list + 1] = m
    end
  end
  return list
end

local function keeps(result, list)
  local there = {}
  for _, m in ipairs(result.context) do
    there[facts.within(m).key or false] = true
  end
  for _, what in ipairs(type(list) == "table" and list or { list }) do
    local list_of = wanted(result.messages, what)
    if #list_of == 0 and not kinds[what] and what ~= "last_user"
      and #wanted(result.context, what) == 0 then
      return false, ("'%s' is in no message: name system, last_user, users, errors, tools, a key, "
        .. "or a part of a text"):format(what)
    end
    for _, m in ipairs(list_of) do
      local key = facts.within(m).key
      if not there[key] then
        return false, ("%s: message %s (%s) is not in the context"):format(what, key, m.role)
      end
    end
  end
  return true
end

local all = {
  tool_pairs = tool_pairs, within_budget = within_budget, lawful = lawful, keeps = keeps,
  golden = golden.check,
}

--- Adds them to luassert. May be called again.
function asserts.install()
  local luassert = require "luassert"
  local say = require "say"
  for name, check in pairs(all) do
    local positive = "assertion." .. name .. ".positive"
    local negative = "assertion." .. name .. ".negative"
    say:set(positive, "%s")
    say:set(negative, "%s")
    luassert:register("assertion", name, function(state, arguments)
      local ok, what = check(table.unpack(arguments, 1, arguments.n))
      -- The sentence is all that is shown: a result has hundreds of lines.
      arguments[1], arguments.n = what or (name .. " holds, and should not"), 1
      arguments.nofmt = { true }
      return ok
    end, positive, negative)
  end
end

asserts.all = all

return asserts
