-- A memory as Markdown: what is rendered is parsed to the same entries, and an edit of the text is
-- exactly its entries, whatever they contain and whoever writes meanwhile.

local stores = require "spec.support.stores"
local view = require "sessile.memory_view"

local SEED = tonumber(os.getenv "SEED") or os.time()
local KINDS = { "fact", "episode", "reflection", "procedure" }
local PIECES = { "a", "tea", " ", "  ", "\n", "\r", "\t", "\\", "\\n", "\\x41", "*", "**", "**: ",
  "- ", "# ", "## Facts", "<!-- 2a -->", "-->", "\u{202e}", "\u{200b}", "\u{85}", "é", "猫", "\1",
  "\127", "\"", "'", "{", "}", "\\u{41}", ":", "%d", "\u{10ffff}", "x" }

after_each(stores.clean)

local function text(random, most, without)
  local parts = {}
  for i = 1, random(1, most) do
    local piece = PIECES[random(1, #PIECES)]
    parts[i] = without and piece:find(without) and "k" or piece
  end
  return table.concat(parts)
end

-- The entries of a memory: "kind key value", sorted.
local function entries(rows)
  local list = {}
  for i, row in ipairs(rows) do
    list[i] = ("%s|%s|%s"):format(row.kind, row.key or "", row.value)
  end
  table.sort(list)
  return list
end

local function filled(random, m, count)
  for i = 1, count do
    local key = random(1, 2) == 1 and text(random, 4, "[%c\xc2\xe2]") .. i or nil
    assert(m:write(key, text(random, 8), { kind = KINDS[random(1, 4)] }))
  end
end

local function lines_of(markdown)
  local list = {}
  for line in markdown:gmatch "[^\n]*\n" do
    list[#list + 1] = line
  end
  return list
end

describe("a memory as Markdown, seed " .. SEED, function()
  math.randomseed(SEED)
  local random = math.random
  local store, m

  before_each(function()
    store = stores.ram()
    m = assert(store:memory { agent = "co\"der", user = "ann", consent = "yes" })
  end)

  it("names itself, and has a heading for each kind, then keys", function()
    assert(m:write("editor", "prefers vim"))
    assert(m:write(nil, "likes tea"))
    assert(m:write("deploy", "make, then\nmake install", { kind = "procedure" }))
    assert.equal('# Memory of "co\\"der" for "ann", 3 entries\n\n## Facts\n\n'
      .. "- **editor**: prefers vim <!-- 2 -->\n- likes tea <!-- 3 -->\n\n## Episodes\n\n"
      .. "## Reflections\n\n## Procedures\n\n"
      .. "- **deploy**: make, then\\nmake install <!-- 4 -->\n", (m:markdown()))
    assert.matches("0 entries of 2020%-02%-01\n", (m:markdown { day = "2020-02-01" }))
    assert.matches("3 entries of %d+%-%d+%-%d+\n", (m:markdown { day = "today" }))
  end)

  it("is parsed to what was rendered, and unchanged changes nothing", function()
    for _ = 1, 60 do
      filled(random, m, random(0, 6))
      local rows, markdown = assert(m:list()), assert(m:markdown())
      local items = assert(view.parse(markdown))
      assert.same(entries(rows), entries(items))
      local log = m:stats().log_entries
      assert.same({ written = 0, replaced = 0, deleted = 0 }, m:edit(markdown, markdown))
      assert.equal(log, m:stats().log_entries)
    end
  end)

  it("is edited to exactly what the new text says, as one commit", function()
    for round = 1, 60 do
      filled(random, m, random(1, 5))
      local markdown = assert(m:markdown())
      local expected, new = {}, {}
      local items = assert(view.parse(markdown))
      local at_line = {}
      for _, item in ipairs(items) do
        at_line[item.line] = item
      end
      local deletes, writes = 0, 0
      for n, line in ipairs(lines_of(markdown)) do
        local item = at_line[n]
        local what = item and random(1, 4)
        if not item or what <= 2 then
          new[#new + 1] = line
        elseif what == 3 then
          deletes = deletes + 1
        else
          item.value = "changed " .. round .. item.id
          new[#new + 1] = ("- %s%s <!-- %x -->\n"):format(item.key
            and line:match "^%- (%*%*.-%*%*: )" or "", item.value, tonumber(item.id, 16))
          writes = writes + 1
        end
        if item and what ~= 3 then
          expected[#expected + 1] = item
        end
        if line:find "^## Episodes" then
          new[#new + 1] = "- a new one, " .. round .. "\n"
          expected[#expected + 1] = { kind = "episode", value = "a new one, " .. round }
          writes = writes + 1
        end
      end
      local log = m:stats().log_entries
      local done = assert(m:edit(markdown, table.concat(new), { by = "ann" }))
      assert.same({ deletes, writes }, { done.deleted, done.written + done.replaced })
      assert.same(entries(expected), entries(m:list()))
      assert.equal(log + writes + (deletes > 0 and 1 or 0), m:stats().log_entries)
    end
  end)

  it("keeps what a line does not show, and whose words it is now", function()
    local id = assert(m:write("editor", "vim", { also = "IDE", importance = 0.5, ttl = "1h",
      metadata = { place = "home" }, source = "tool",
      from = { { session = "bug-42", first = "00000002", last = "00000003" } } }))
    assert(m:pin(id))
    assert(m:write(nil, "tea"))
    local markdown = m:markdown()
    local log = m:stats().log_entries
    assert(m:edit(markdown, (markdown:gsub("vim", "emacs"):gsub("tea", "milk")), { by = "ann" }))
    local row = assert(m:read "editor")
    assert.same({ "emacs", "IDE", 0.5, "home", "user", "replaced" }, { row.value, row.also,
      row.importance, row.metadata.place, row.source, m:get(id).state })
    assert.is_true(row.expires > 0 and row.expires - row.time <= 3600000)
    assert.is_true(row.pinned)
    assert.same(m:get(id).from, row.from)
    assert.equal("bug-42", row.from[1].session)
    assert.same({ id }, row.replaces)
    assert.equal(log + 3, m:stats().log_entries) -- two entries and the pin
  end)

  it("escapes what nobody sees, in values of whoever wrote them", function()
    assert(m:write(nil, "a\u{3164}b\u{e0041}c\u{200d}d"))
    assert.matches("a\\u{3164}b\\u{e0041}c\u{200d}d <!", m:markdown())
  end)

  it("moves a line to another kind, another key, and takes a freed key", function()
    assert(m:write("a", "one"))
    assert(m:write("b", "two"))
    local markdown = m:markdown()
    local edited = markdown:gsub("%- %*%*a%*%*.-\n", ""):gsub("%*%*b%*%*", "**a**")
    assert(m:edit(markdown, edited))
    assert.equal("two", m:read "a".value)
    assert.is_nil(m:read "b")
    markdown = m:markdown()
    assert(m:edit(markdown, (markdown:gsub(" <!%-%- %x+ %-%->", ""))))
    assert.same({ "fact|a|two" }, entries(m:list()))
  end)

  it("conflicts with what was written meanwhile, shows both, and writes nothing", function()
    assert(m:write("editor", "vim"))
    assert(m:write(nil, "tea"))
    local markdown = m:markdown()
    local other = assert(store:memory { agent = "co\"der", user = "ann" })
    assert(other:write("editor", "nano"))
    local log = m:stats().log_entries
    local both = markdown:gsub("vim", "emacs"):gsub("tea", "milk")
    local done, message, code = m:edit(markdown, both)
    assert.is_nil(done)
    assert.equal("ECONFLICT", code)
    assert.matches("emacs", message)
    assert.matches("nano", message)
    assert.equal(log, m:stats().log_entries)
    -- what others did elsewhere is no conflict
    assert(m:edit(markdown, (markdown:gsub("tea", "milk"))))
    assert.same({ "fact|editor|nano", "fact||milk" }, entries(m:list()))
    -- a new key that somebody else has taken
    markdown = m:markdown()
    assert(other:write("shell", "zsh"))
    local taken = markdown:gsub("## Facts\n", "%0- **shell**: bash\n")
    done, message, code = m:edit(markdown, taken)
    assert.is_nil(done)
    assert.same("ECONFLICT", code)
    assert.matches("bash.*zsh", message)
    assert(other:delete "shell")
    local id = assert(m:list()[1]).id
    markdown = m:markdown()
    assert(other:delete(id))
    done, message, code = m:edit(markdown, (markdown:gsub("%- milk[^\n]*\n", "")))
    assert.is_nil(done)
    assert.equal("ECONFLICT", code)
    assert.matches("deleted", message)
  end)

  -- What somebody else does to a memory between a look at it and an edit.
  local function meddle(other, round)
    local rows, touched = other:list(), {}
    for n = 1, random(1, 3) do
      local row = #rows > 0 and rows[random(1, #rows)]
      local what = random(1, 4)
      if not row or what == 1 then
        assert(other:write(nil, ("theirs %d.%d"):format(round, n)))
      elseif not touched[row.id] then
        touched[row.id] = true
        if what == 2 then
          assert(other:delete(row.id))
        elseif what == 3 then
          assert(other:write(row.key, ("theirs, in its place %d.%d"):format(round, n),
            { replaces = { row.id } }))
        else
          other:pin(row.id) -- no conflict
          touched[row.id] = nil
        end
      end
    end
    return touched
  end

  it("is edited wholly or not at all while others write", function()
    local other = assert(store:memory { agent = "co\"der", user = "ann" })
    local made, conflicts = 0, 0
    for round = 1, 80 do
      filled(random, m, random(1, 3))
      local markdown = assert(m:markdown())
      local lines, at_line = lines_of(markdown), {}
      for _, item in ipairs(assert(view.parse(markdown))) do
        at_line[item.line] = item
      end
      local mine, new, values = {}, {}, {}
      for n, line in ipairs(lines) do
        local item = at_line[n]
        local what = item and random(1, 6)
        if what == 1 then
          mine[item.id] = "deleted"
        elseif what == 2 then
          local value = ("mine %d.%s"):format(round, item.id)
          mine[item.id], values[#values + 1] = "replaced", value
          new[#new + 1] = ("- %s%s <!-- %x -->\n"):format(item.key
            and line:match "^%- (%*%*.-%*%*: )" or "", value, tonumber(item.id, 16))
        else
          new[#new + 1] = line
        end
      end
      local theirs = meddle(other, round)
      local before = entries(m:list())
      local done, message, code = m:edit(markdown, table.concat(new), { by = "ann" })
      local clash = false
      for id in pairs(mine) do
        clash = clash or theirs[id] ~= nil
      end
      assert.equal(not clash, done ~= nil, message)
      if done then
        made = made + 1
        for id, state in pairs(mine) do
          assert.equal(state, m:get(id).state)
        end
        local live = {}
        for _, row in ipairs(m:list()) do
          live[row.value] = true
        end
        for _, value in ipairs(values) do
          assert.is_true(live[value])
        end
      else
        conflicts = conflicts + 1
        assert.equal("ECONFLICT", code)
        assert.same(before, entries(m:list()))
      end
      for id in pairs(theirs) do
        assert.not_equal("live", m:get(id).state)
      end
    end
    assert.is_true(made > 0 and conflicts > 0)
  end)

  for name, change in pairs {
    ["line 1: "] = { "^# Memory", "Memory" },
    ["line 3: the heading is Facts"] = { "## Facts", "## Facs" },
    ["line 5: the entry has no text"] = { "one", " " },
    ["line 6: \"%- an entry\""] = { "\n\n## Ep", "\nnonsense\n\n## Ep" },
    ["line 5: ff is no entry that was shown"] = { "<!%-%- %x+ %-%->", "<!-- ff -->" },
    ["line 6: the number 2 is on line 5"] = { "(%- one[^\n]*\n)", "%1%1" },
    ["line 7: the key of line 6"] = { "(%- one[^\n]*\n)", "%1- **k**: a\n- **k**: b\n" },
    ["line 2: an entry stands below a heading"] = { "\n\n## Facts", "\n- x\n## Facts" },
    ["line 5: the text is not UTF%-8"] = { "one", "\xff" },
  } do
    it("refuses nonsense: " .. name, function()
      assert(m:write(nil, "one"))
      local markdown = m:markdown()
      local edited, n = markdown:gsub(change[1], change[2], 1)
      assert.equal(1, n)
      local done, message, code = m:edit(markdown, edited)
      assert.is_nil(done)
      assert.equal("EINVALID", code)
      assert.matches(name, message)
      assert.same({ "fact||one" }, entries(m:list()))
    end)
  end

  it("refuses an empty text, and one of arbitrary bytes, without an error", function()
    assert(m:write(nil, "one"))
    local markdown = m:markdown()
    assert.equal("EINVALID", (select(3, m:edit(markdown, ""))))
    for _ = 1, 300 do
      local bytes = {}
      for i = 1, random(1, 60) do
        bytes[i] = random(1, 3) == 1 and string.char(random(0, 255)) or PIECES[random(1, #PIECES)]
      end
      view.parse((random(1, 2) == 1 and "# Memory of\n## Facts\n- " or "") .. table.concat(bytes))
    end
    assert.same({ "fact||one" }, entries(m:list()))
  end)
end)
