-- Lists of screens: what a file may say, what a verdict does, and what a screen that fails does.

local cli = require "spec.support.cli"
local sessile = require "sessile"

local home

setup(function() home = cli.begin() end)

local count = 0
-- A screen with this body of a table, loaded; or nil and the message.
local function screen(body, more)
  count = count + 1
  local path = ("%s/s%d.lua"):format(home, count)
  cli.write(path, "return {" .. body .. "}")
  local list = more or {}
  table.insert(list, 1, path)
  return sessile.screen(list)
end

local function run(list, text, more)
  local item = { kind = "memory", source = "tool", text = text }
  for name, value in pairs(more or {}) do
    item[name] = value
  end
  return assert(list:run(item))
end

describe("a verdict", function()
  it("is refuse when a pattern matches and nothing else is said", function()
    local s = assert(screen [[name = "s", patterns = { a = "tea" }]])
    local outcome = run(s, "I like TEA")
    assert.equal("refuse", outcome.verdict)
    assert.same({ { verdict = "refuse", screen = "s", rule = "a", removed = 0 } },
      outcome.findings)
    assert.equal("pass", run(s, "I like coffee").verdict)
    assert.same({}, run(s, "I like coffee").findings)
  end)

  it("can be the file's action", function()
    assert.equal("flag", run(assert(screen [[patterns = { a = "x" }, action = "flag"]]),
      "x").verdict)
    local outcome = run(assert(screen [[patterns = { a = "x+" }, action = "redact"]]), "axxbx")
    assert.equal("redact", outcome.verdict)
    assert.equal("a[removed: a]b[removed: a]", outcome.text)
    assert.equal(2, outcome.findings[1].removed)
  end)

  it("of a function names a rule and places", function()
    local s = assert(screen [[name = "s", rules = { "second" }, patterns = { a = "x", b = "y" },
      screen = function(item)
        if item.matches.b then return "redact", "second", { item.matches.b[1], { 1, 1 } } end
        return "flag", "a"
      end]])
    assert.equal("[removed: second]b[removed: second]y", run(s, "abyy").text)
    assert.equal("a", run(s, "x").findings[1].rule)
  end)

  it("that redacts without places removes what the rule's pattern matched, or all", function()
    local s = assert(screen [[name = "s", patterns = { a = "x", b = "y" },
      screen = function(item) return "redact", item.size == 3 and "a" or "s" end]])
    assert.equal("[removed: a]y ", run(s, "xy ").text)
    assert.equal("[removed: s]..", run(s, "xy..").text)
  end)

  it("removes the whole of a character, and nothing else", function()
    local s = assert(screen [[always = true, rules = { "r" },
      screen = function() return "redact", "r", { { 3, 3 }, { 7, 7 } } end]])
    assert.equal("a[removed: r]bc[removed: r]", run(s, "aäbcü").text)
  end)

  it("of the first screen that refuses ends it; flags before it stay", function()
    cli.write(home .. "/one.lua", [[return { patterns = { f = "x" }, action = "flag" }]])
    cli.write(home .. "/two.lua", [[return { patterns = { r = "x" } }]])
    cli.write(home .. "/three.lua", [[return { patterns = { z = "x" }, action = "flag" }]])
    local s = assert(sessile.screen { home .. "/one.lua", home .. "/two.lua",
      home .. "/three.lua" })
    local outcome = run(s, "x")
    assert.equal("refuse", outcome.verdict)
    assert.equal("f", outcome.findings[1].rule)
    assert.equal("r", outcome.findings[2].rule)
    assert.is_nil(outcome.findings[3])
    assert.is_nil(outcome.text)
  end)

  it("that redacts is what the next screen sees", function()
    cli.write(home .. "/hide.lua", [[return { patterns = { h = "secret" }, action = "redact" }]])
    cli.write(home .. "/after.lua", [[return { patterns = { again = "secret" } }]])
    local s = assert(sessile.screen { home .. "/hide.lua", home .. "/after.lua" })
    local outcome = run(s, "a secret b")
    assert.equal("redact", outcome.verdict)
    assert.equal("a [removed: h] b", outcome.text)
  end)
end)

describe("an item", function()
  it("is read by the function", function()
    local s = assert(screen([[rules = { "r" }, always = true, on = { "memory", "message" },
      screen = function(item, ctx)
        local all = { item.kind, item.role or "-", item.source, item.author, item.key, item.size,
          item.text, #item.urls, ctx.options.word }
        error(table.concat(all, "|"), 0)
      end, options = { word = { type = "string", default = "w" } }]], { verbose = true }))
    assert.equal("memory|-|tool|ann|k|5|ab  c|0|w",
      run(s, "ab  c", { author = "ann", key = "k" }).findings[1].message)
    assert.equal("message|user|user|||1|x|0|w", run(s, "x",
      { kind = "message", role = "user", source = "user" }).findings[1].message)
  end)

  it("cannot be written, nor ctx, nor kept", function()
    for _, body in ipairs { "item.text = 1", "item.matches.a = 1", "item.matches.a[1][1] = 1",
      "ctx.options.x = 1" } do
      local s = assert(screen([[patterns = { a = "x" }, screen = function(item, ctx) ]] .. body
        .. " end"))
      assert.equal("failed", run(s, "x").findings[1].rule)
    end
    local s = assert(screen [[patterns = { a = "." },
      screen = function(item) kept = kept or item; if kept ~= item then return "refuse" end end]])
    assert.equal("pass", run(s, "one").verdict)
    assert.equal("pass", run(s, "two").verdict)
  end)

  it("is for the kinds and roles that the file names", function()
    local s = assert(screen [[patterns = { a = "x" }, on = { "message:tool", "title" }]])
    assert.equal("refuse", run(s, "x", { kind = "message", role = "tool" }).verdict)
    assert.equal("pass", run(s, "x", { kind = "message", role = "user" }).verdict)
    assert.equal("refuse", run(s, "x", { kind = "title" }).verdict)
    assert.equal("pass", run(s, "x").verdict)
    local path = home .. "/kinds.lua"
    cli.write(path, [[return { patterns = { a = "x" }, on = { "message:tool" } }]])
    s = assert(sessile.screen { { path, on = { "message" } } })
    assert.equal("refuse", run(s, "x", { kind = "message", role = "user" }).verdict)
  end)

  it("of JSON is seen without its escapes, and stays JSON", function()
    local s = assert(screen [[patterns = { a = 'b"c|ignore' }, action = "redact"]])
    local text = [[{ "k" : "a\"b\"c\\ \u0069gnore\n", "n":[ "\u00e4ignor\u0065ü" ] }]]
    local outcome = run(s, text, { json = true })
    assert.equal([[{ "k" : "a\"[removed: a]\\ [removed: a]\n", "n":[ "\u00e4[removed: a]ü" ] }]],
      outcome.text)
    assert.equal("pass", run(s, text).verdict) -- the same bytes, as a text
  end)

  it("of JSON is refused when what would be removed is a name or a number", function()
    local s = assert(screen [[patterns = { a = "secret|4111" }, action = "redact"]])
    for _, text in ipairs { [[{"secret":1}]], [[{"n":4111}]], [=[["x secret",4111]]=] } do
      local outcome = run(s, text, { json = true })
      assert.equal("refuse", outcome.verdict)
      assert.equal("what it would remove is not inside of a text", outcome.findings[1].message)
    end
    assert.equal([=[["x [removed: a]","4"]]=], run(s, [=[["x secret","4"]]=], { json = true }).text)
  end)

  it("of JSON has words removed that reach over several strings", function()
    local s = assert(screen [[patterns = { a = "one.*two" }, action = "redact"]])
    assert.equal([=[["x [removed: a]","[removed: a] y"]]=],
      run(s, [=[["x one","two y"]]=], { json = true }).text)
  end)

  it("is refused as an argument when it is none", function()
    local s = assert(screen [[patterns = { a = "x" }]])
    local _, message, code = s:run { kind = "memory", text = "a\xff" }
    assert.equal("EINVALID", code)
    assert.truthy(message:find "UTF%-8")
    _, _, code = s:run { kind = "metadata", text = "{", json = true }
    assert.equal("EINVALID", code)
    assert.error(function() s:run { kind = "nothing", text = "x" } end)
    assert.error(function() s:run { kind = "memory" } end)
    assert.error(function() s:run { kind = "memory", text = "x", source = "nobody" } end)
  end)
end)

describe("a screen that fails", function()
  local function fails(body, part, text)
    local outcome = run(assert(screen(body)), text or "the text itself")
    assert.equal("refuse", outcome.verdict)
    assert.equal("failed", outcome.findings[1].rule)
    assert.truthy(outcome.findings[1].message:find(part, 1, true), outcome.findings[1].message)
  end

  it("refuses", function()
    fails([[patterns = { a = "t" }, screen = function() error "no" end]], "it raised an error")
    fails([[patterns = { a = "t" }, screen = function() while true do end end]],
      "5000000 instructions")
    fails([[patterns = { a = "t" }, screen = function() return "maybe" end]], "raised")
    fails([[patterns = { a = "t" }, screen = function() return true end]], "raised")
    fails([[patterns = { a = "t" }, screen = function() return "flag", "unknown" end]],
      "a rule that its file does not declare")
    fails([[patterns = { a = "t" }, screen = function() return "redact", "a", { { 0, 1 } } end]],
      "raised")
    fails([[patterns = { a = "t" }, screen = function() return "redact", "a", { { 1, 99 } } end]],
      "raised")
    fails([[patterns = { a = "t" }, screen = function() return ("x"):rep(1 << 26) end]], "")
    fails([[patterns = { a = "(a+)+$" }]], "tries too many ways", ("a"):rep(50) .. "!")
  end)

  it("never quotes the text, in an error nor in a rule", function()
    for _, body in ipairs { "error(item.text, 0)", "error(item.text)", "error({})",
      "return 'flag', item.text", "return item.text" } do
      local s = assert(screen([[patterns = { a = "t" }, screen = function(item) ]] .. body
        .. " end"))
      local outcome = run(s, "tell nobody")
      assert.equal("refuse", outcome.verdict)
      assert.is_nil(sessile.encode(outcome.findings):find("nobody", 1, true))
    end
  end)

  it("flags if its file says so", function()
    local s = assert(screen [[patterns = { a = "t" }, on_error = "flag",
      screen = function() error "no" end]])
    assert.equal("flag", run(s, "text").verdict)
  end)

  it("does not fail the next time", function()
    local s = assert(screen [[patterns = { a = "t" }, screen = function(item)
      if item.size > 4 then while true do end end return "flag" end]])
    assert.equal("failed", run(s, "too long").findings[1].rule)
    assert.equal("a", run(s, "t").findings[1].rule)
  end)
end)

describe("the file of a screen", function()
  local function refused(body, part, code)
    local list, message, got = screen(body)
    assert.is_nil(list)
    assert.equal(code or "EPOLICY", got)
    assert.truthy(message:find(part, 1, true), message)
  end

  it("is checked when it is loaded", function()
    refused([[patterns = { a = "(" }]], "the pattern 'a' is wrong at byte")
    refused([[patterns = { ["a b"] = "x" }]], "the name of a pattern")
    refused([[patterns = { a = 1 }]], "patterns.a is a string")
    refused([[pattern = { a = "x" }]], "not 'pattern'")
    refused([[patterns = { a = "x" }, on = { "memories" }]], "not of 'memories'")
    refused([[patterns = { a = "x" }, on = { "message:nobody" }]], "there is no role 'nobody'")
    refused([[patterns = { a = "x" }, on = {}]], "on is a list of kinds")
    refused([[patterns = { a = "x" }, action = "pass"]], "action is")
    refused([[patterns = { a = "x" }, on_error = "pass"]], "on_error is")
    refused([[patterns = { a = "x" }, rules = { "a b" }]], "a rule is")
    refused([[patterns = { a = "x" }, always = true]], "always is for a screen with a function")
    refused([[name = "s"]], "a screen has patterns or a function")
    refused([[name = "two words", patterns = { a = "x" }]], "the name of a screen")
    refused([[screen = 1]], "screen is a function")
    refused([[error "wrong"]], ":1: wrong")
  end)

  it("has options that are declared", function()
    local path = home .. "/option.lua"
    cli.write(path, [[return { patterns = { a = "x" },
      options = { action = { type = "string", default = "flag", values = { "flag", "refuse" } } },
      screen = function(_, ctx) return ctx.options.action end }]])
    assert.equal("flag", run(assert(sessile.screen { path }), "x").verdict)
    local s = assert(sessile.screen { { path, action = "refuse" } })
    assert.equal("refuse", run(s, "x").verdict)
    local _, message, code = sessile.screen { { path, action = "drop" } }
    assert.equal("EINVALID", code)
    assert.truthy(message:find("option action must be one of", 1, true), message)
    _, message, code = sessile.screen { { path, acton = "flag" } }
    assert.equal("EINVALID", code)
    assert.truthy(message:find("did you mean 'action'?", 1, true), message)
  end)

  it("can require what lies beside it", function()
    cli.write(home .. "/words.lua", [[return { words = { "tea", "coffee" } }]])
    local s = assert(screen [[patterns = { a = table.concat(require "words".words, "|") },
      screen = function() return "flag", #require "words".words == 2 and "a" or "b" end]])
    assert.equal("a", run(s, "coffee").findings[1].rule)
  end)

  it("is not used when others can write it", function()
    local path = home .. "/open.lua"
    cli.write(path, [[return { patterns = { a = "x" } }]])
    os.execute(("chmod o+w %s"):format(path))
    local _, message, code = sessile.screen { path }
    assert.equal("EDENIED", code)
    assert.truthy(message:find("can be written by others", 1, true), message)
  end)

  it("is found by name, or said to be missing", function()
    assert.truthy(sessile.screen { "no_orders" })
    local _, message, code = sessile.screen { "no_order" }
    assert.equal("ENOTFOUND", code)
    assert.truthy(message:find("there is no screen 'no_order': did you mean 'no_orders'?", 1,
      true), message)
    assert.error(function() sessile.screen "no_orders" end)
    assert.error(function() sessile.screen { 7 } end)
    assert.error(function() sessile.screen { "no_orders", paths = "x" } end)
    _, _, code = sessile.screen {}
    assert.equal("EINVALID", code)
  end)
end)
