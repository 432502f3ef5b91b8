-- How well a memory finds what answers a question: entries and questions in English and German,
-- written for this test (spec/fixtures/memory). The questions were not changed after the first
-- measurement; those that fail are in the figures.

local stores = require "spec.support.stores"

after_each(stores.clean)

-- The entries of a file, and its questions with the labels of the entries that answer them.
local function read(language)
  local entries, questions, known = {}, {}, {}
  for line in io.lines("spec/fixtures/memory/" .. language .. ".txt") do
    local label, kind, day = line:match "^%[([%w-]+)%] (%l+) (%d+%-%d+%-%d+)$"
    local entry = entries[#entries]
    if label then
      assert(not known[label], label)
      known[label] = true
      entries[#entries + 1] = { label = label, kind = kind, day = day }
    elseif line:find "^%? " then
      local text, others = line:sub(3):match "^(.-) > (.*)$"
      local answers = { [entry.label] = true }
      for other in (others or ""):gmatch "%S+" do
        answers[other] = true
      end
      questions[#questions + 1] = { text = text or line:sub(3), answers = answers }
    elseif line:find "^also: " then
      entry.also = line:sub(7)
    elseif line ~= "" and line:sub(1, 1) ~= "#" then
      assert(not entry.value, line)
      entry.value = line
    end
  end
  for _, question in ipairs(questions) do
    for label in pairs(question.answers) do
      assert(known[label], label)
    end
  end
  return entries, questions
end

-- The entries in a new memory. Facts and procedures have keys, as an agent would give them.
local function written(entries, language, without_also)
  local m = assert(stores.ram():memory { agent = "coder", language = language })
  local labels = {}
  for _, entry in ipairs(entries) do
    local slot = (entry.kind == "fact" or entry.kind == "procedure") and entry.label or nil
    local id = assert(m:write(slot, entry.value, { kind = entry.kind, holds_from = entry.day,
      also = not without_also and entry.also or nil }))
    labels[id] = entry.label
  end
  return m, labels
end

-- R@k: the share of the questions with an answer among the best k. MRR: the mean of 1 / the place
-- of the first answer, 0 where there is none.
local function measured(entries, questions, language, without_also)
  local m, labels = written(entries, language, without_also)
  local at1, at5, mrr = 0, 0, 0
  for _, question in ipairs(questions) do
    local hits = assert(m:search(question.text, { limit = #entries }))
    for place, hit in ipairs(hits) do
      if question.answers[labels[hit.id]] then
        at1 = at1 + (place == 1 and 1 or 0)
        at5 = at5 + (place <= 5 and 1 or 0)
        mrr = mrr + 1 / place
        break
      end
    end
  end
  return { at1 = at1 / #questions, at5 = at5 / #questions, mrr = mrr / #questions }
end

local function shown(name, it)
  print(("# figure: %s = R@1 %.3f, R@5 %.3f, MRR %.3f"):format(name, it.at1, it.at5, it.mrr))
end

-- Measured: R@1 0.789, R@5 0.946, MRR 0.860 in English; 0.633, 0.835, 0.721 in German. A floor is
-- about two questions below: a change of the ranking that costs more is seen. Raise the floors
-- after a change that gains.
local floors = {
  english = { at1 = 0.775, at5 = 0.93, mrr = 0.85, other = "german" },
  german = { at1 = 0.618, at5 = 0.82, mrr = 0.71, other = "english" },
}

for _, language in ipairs { "english", "german" } do
  local floor = floors[language]
  describe("a memory in " .. language, function()
    local entries, questions = read(language)
    local whole

    setup(function()
      whole = measured(entries, questions, language)
      stores.clean()
      shown(("%d questions, %d entries, %s"):format(#questions, #entries, language), whole)
    end)

    it("finds the entry that answers a question", function()
      assert.is_true(#questions >= 100)
      for name, least in pairs { at1 = floor.at1, at5 = floor.at5, mrr = floor.mrr } do
        assert.is_true(whole[name] >= least, ("%s is %.3f"):format(name, whole[name]))
      end
    end)

    -- Measured: R@5 0.782 in English, 0.683 in German.
    it("finds more by what entries have as also", function()
      local without = measured(entries, questions, language, true)
      shown("without also", without)
      assert.is_true(whole.at1 >= without.at1 + 0.05)
      assert.is_true(whole.at5 >= without.at5 + 0.1)
      assert.is_true(whole.mrr >= without.mrr + 0.08)
    end)

    -- Measured: R@5 0.884 for English entries as if German, 0.777 the other way.
    it("finds more by the stems and stop words of its own language", function()
      local other = measured(entries, questions, floor.other)
      shown("as if " .. floor.other, other)
      assert.is_true(whole.at1 >= other.at1 + 0.04)
      assert.is_true(whole.at5 >= other.at5 + 0.04)
      assert.is_true(whole.mrr >= other.mrr + 0.04)
    end)
  end)
end
