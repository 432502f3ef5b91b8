-- Which keys a memory takes, and that what it refuses is what is escaped where entries are quoted.

local characters = require "sessile.characters"
local stores = require "spec.support.stores"

after_each(stores.clean)

describe("a key of a memory", function()
  local m

  before_each(function()
    m = assert(stores.ram():memory "coder")
  end)

  local function refused(key, code, words)
    local id, message, got = m:write(key, "a value")
    assert.is_nil(id)
    assert.equal(code, got)
    assert.matches(words, message)
    assert.equal(0, m:stats().entries)
  end

  it("of 10 KB, or that is not UTF-8, is refused", function()
    refused(("k"):rep(10240), "ELIMIT", "the key has 10240 bytes, the limit %[memory_key%] is 200")
    refused("caf\xe9", "EINVALID", "the key is not UTF%-8")
  end)

  it("has no character that nobody sees, and the message says which one", function()
    refused("a\u{202e}b", "EINVALID", "U%+202E")
    refused("a\u{85}", "EINVALID", "U%+0085")
    refused("\u{e0041}", "EINVALID", "U%+E0041")
    refused("two\nlines", "EINVALID", "U%+000A")
    assert(m:write("نامه\u{200c}ها", "joined")) -- Persian needs U+200C
    assert(m:write("\u{2764}\u{fe0f}", "an emoji"))
  end)

  it("may have exactly what is not escaped in a quotation", function()
    local wrong = {}
    for code = 0, 0xE0010 do -- the last range is one, to U+E0FFF
      local is_near = code < 0x300 or characters.is_hidden(code) or characters.is_hidden(code + 1)
        or characters.is_hidden(math.max(code - 1, 0))
      if is_near and (code < 0xD800 or code > 0xDFFF) then
        local id = m:write("k" .. utf8.char(code), "v")
        if (id == nil) ~= characters.is_hidden(code) then
          wrong[#wrong + 1] = ("U+%04X"):format(code)
        end
      end
    end
    assert.same({}, wrong)
    assert.equal([["\u003ca\u202eb\\\"\n\udb40\udc41"]],
      characters.quoted "<a\u{202e}b\\\"\n\u{e0041}")
  end)
end)

describe("a verdict about a key", function()
  local m

  before_each(function()
    m = assert(stores.ram():memory "coder")
  end)

  it("restores what ended last, if nothing of it is live", function()
    local first = assert(m:write("editor", "vim"))
    assert(m:write("editor", "emacs"))
    assert(m:write("editors", "many"))
    assert(m:restore(first))
    assert(m:delete "editor") -- vim, which is older, but was live
    assert.is_true(m:restore "editor")
    assert.equal("vim", m:read "editor".value)
    assert.is_false(m:restore "editor")
    assert.equal("ENOTFOUND", select(3, m:restore "edit"))
  end)

  it("approves or rejects what waits", function()
    assert(m:write("editor", "vim"))
    assert(m:write("editor", "emacs", { pending = true }))
    assert.is_true(m:approve "editor")
    assert.equal("emacs", m:read "editor".value)
    assert(m:write("shell", "fish", { pending = true }))
    assert.is_true(m:reject "shell")
    assert.equal(0, #m:pending())
    assert.equal("ENOTFOUND", select(3, m:delete "shell"))
  end)
end)

describe("an error of a memory", function()
  it("speaks of the memory, not of a session", function()
    local store = stores.ram()
    local m = assert(store:memory "coder")
    for _, found in ipairs {
      { store:memory { agent = ("a"):rep(10000) } },
      { store:memory { agent = "coder", user = ("u"):rep(10000) } },
      { m:write(nil, "x", { metadata = { big = ("x"):rep(9 << 20) } }) },
      { m:write(nil, "caf\xe9") },
      { m:write(nil, ("x"):rep(70000)) },
    } do
      assert.is_nil(found[1])
      assert.is_nil(found[2]:find "session", found[2])
    end
    assert.equal(0, m:stats().entries)
  end)
end)
