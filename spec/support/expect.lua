-- expect.lua: what many specs expect of a text, of two lists, and of a call that is refused.

local assert = require "luassert"

local expect = {}

--- That a text contains a part, taken literally. `about`: what the text is of, for the failure.
function expect.has(text, part, about)
  assert.truthy(text:find(part, 1, true),
    ("%s%q\nis not in\n%s"):format(about and about .. ": " or "", part, text))
end

--- That it does not.
function expect.has_not(text, part)
  assert.is_nil(text:find(part, 1, true), text)
end

--- That a text contains each of some parts, or none of them.
function expect.has_all(text, parts)
  for _, part in ipairs(parts) do
    expect.has(text, part)
  end
end

function expect.has_none(text, parts)
  for _, part in ipairs(parts) do
    expect.has_not(text, part)
  end
end

--- That two lists are equal. A failure shows the first items that differ, and not both lists.
function expect.same_items(expected, found)
  for i = 1, math.max(#expected, #found) do
    assert.equal(expected[i], found[i])
  end
end

--- That a call returned nil, a sentence and this code. Returns the sentence.
--- expect.refused("ENOTFOUND", store:resume "none")
function expect.refused(code, value, message, got)
  assert.is_nil(value)
  assert.is_string(message)
  assert.not_equal("", message)
  assert.equal(code, got, message)
  return message
end

return expect
