-- recall, the policy: which of what was found is quoted, and in which order.

local T = require "sessile.testing"

local policy = T.load "recall"

-- In a memory of two entries no word that both have tells them from others.
local others = { "trains", "vim", "tabs", "windows", "Cologne", "music", "chess", "dogs" }

local function quoted(question, entries, options)
  options = options or {}
  options.memory = T.memory { entries = others }
  local result = policy:recall(question, entries, options)
  assert.is_nil(result.message)
  local values = {}
  for i, row in ipairs(result.rows) do
    values[i] = row.value
  end
  return values, result
end

describe("recall", function()
  T.laws(policy)

  it("quotes the better answer first", function()
    assert.same({ "the tea is green tea from Uji", "the tea is black" },
      (quoted("which green tea?", { "the tea is green tea from Uji", "the tea is black" })))
    assert.same({ "the tea is green tea from Uji", "the tea is black" },
      (quoted("which green tea?", { "the tea is black", "the tea is green tea from Uji" })))
  end)

  it("quotes one of entries with nearly the same words: the most trusted, or newest", function()
    assert.same({ "Ann prefers green tea!" }, (quoted("which tea?", {
      { value = "Ann prefers green tea", source = "agent" }, "Ann prefers green tea!",
      { value = "ann prefers green tea.", source = "agent" } })))
    assert.same({ "ANN PREFERS GREEN TEA" }, (quoted("which tea?",
      { "Ann prefers green tea", "ANN PREFERS GREEN TEA" })))
  end)

  it("puts the more trusted of equally good ones first", function()
    local values = quoted("who likes tea?", {
      "Ann likes tea", { value = "Bob likes tea", source = "agent" }, "Eve likes tea" })
    assert.equal("Bob likes tea", values[3])
  end)

  it("leaves what is at the start where it is, and does not quote it twice", function()
    local values = quoted("which tea?", {
      { value = "answer in French", kind = "procedure" },
      { value = "the tea is green", pinned = true }, "the tea is green!", "the tea is from Uji" },
      { start = true })
    assert.same({ "the tea is green", "answer in French", "the tea is from Uji" }, values)
  end)

  it("quotes at most as many as its option says", function()
    local entries = {}
    for i = 1, 20 do
      entries[i] = ("tea number %d is %s"):format(i, ("abcdefghijklmnopqrst"):sub(i, i):rep(5))
    end
    assert.equal(8, #quoted("which tea?", entries))
    local result = T.load("recall", { limit = 2 }):recall("which tea?", entries)
    assert.equal(2, #result.rows)
  end)

  it("writes a block that quotes the entries, one a line", function()
    local _, result = quoted("which tea?", { "the tea is green\nand hot" })
    local _, lines = result.block:gsub("\n", "")
    assert.equal(1, lines)
    assert.truthy(result.block:find([["the tea is green\nand hot"]], 1, true))
  end)
end)
