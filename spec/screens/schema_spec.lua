-- JSON Schema as a screen. It is built where a C++ compiler and valijson are; without it these
-- tests are pending, and what is said then is tested.

local paths = require "sessile.paths"
local sessile = require "sessile"

if not paths.schema_library() then
  describe("a schema", function()
    it("is not part of this build, and says so", function()
      local list, message, code = sessile.screen { schemas = { metadata = { type = "object" } } }
      assert.is_nil(list)
      assert.equal("EUNSUPPORTED", code)
      assert.truthy(message:find("libvalijson-dev", 1, true), message)
    end)
    pending("is checked: schema.so was not built")
  end)
  return
end

local function says(schema, value, more)
  local item = { kind = "metadata", json = true, text = assert(sessile.encode(value)) }
  for name, one in pairs(more or {}) do
    item[name] = one
  end
  local list = assert(sessile.screen { schemas = { [more and more.as or "metadata"] = schema } })
  item.as = nil
  local outcome = assert(list:run(item))
  return outcome.verdict, outcome.findings[1]
end

local TICKET = {
  type = "object", required = { "id" }, additionalProperties = false,
  properties = {
    id = { type = "integer", minimum = 1 },
    ["a/b~c"] = { type = "array", items = { type = "string", pattern = "^[a-zäöü]+$" } },
    day = { type = "string", format = "date" },
  },
}

describe("a schema", function()
  it("lets what is valid pass, and names the place of what is not", function()
    assert.equal("pass", (says(TICKET, { id = 1, ["a/b~c"] = { "grün" }, day = "2026-11-27" })))
    local verdict, found = says(TICKET, { id = 1, ["a/b~c"] = { "x", "Y" } })
    assert.equal("refuse", verdict)
    assert.equal("schema", found.screen)
    assert.equal("schema", found.rule)
    assert.equal("/a~1b~0c/1", found.pointer)
    verdict, found = says(TICKET, {})
    assert.equal("refuse", verdict)
    assert.is_nil(found.pointer) -- the whole
    assert.truthy(found.message:find("required property 'id'", 1, true), found.message)
    assert.equal("refuse", (says(TICKET, { id = 0 })))
    assert.equal("refuse", (says(TICKET, { id = 1, day = "2026-13-01" })))
  end)

  it("never quotes the text", function()
    for _, value in ipairs { { id = 1, nobody = 2 }, { id = "nobody" },
      { id = 1, day = "nobody" } } do
      local _, found = says(TICKET, value)
      assert.is_nil(found.message:find("nobody", 1, true), found.message)
    end
  end)

  it("is of one kind, or of one kind of custom entries", function()
    local list = assert(sessile.screen { schemas = {
      state = { type = "object" }, ["custom:ticket"] = { type = "array" } } })
    local function verdict(kind, key, text)
      return assert(list:run { kind = kind, key = key, text = text, json = true }).verdict
    end
    assert.equal("pass", verdict("state", nil, "{}"))
    assert.equal("refuse", verdict("state", nil, "[]"))
    assert.equal("pass", verdict("custom", "ticket", "[]"))
    assert.equal("refuse", verdict("custom", "ticket", "{}"))
    assert.equal("pass", verdict("custom", "other", "{}"))
    assert.equal("pass", verdict("metadata", nil, "[]"))
  end)

  it("comes before the screens", function()
    local list = assert(sessile.screen { "injection", schemas = { memory = { type = "array" } } })
    local outcome = assert(list:run { kind = "memory", json = true, text = '"; drop table x"' })
    assert.equal("refuse", outcome.verdict)
    assert.equal("schema", outcome.findings[1].screen)
    assert.is_nil(outcome.findings[2])
  end)

  it("knows drafts 4 and 7", function()
    local draft4 = { ["$schema"] = "http://json-schema.org/draft-04/schema#", maximum = 3,
      exclusiveMaximum = true }
    assert.equal("refuse", (says(draft4, 3)))
    assert.equal("pass", (says(draft4, 2)))
    assert.equal("refuse", (says({ exclusiveMaximum = 3 }, 3)))
    assert.equal("refuse", (says({ const = 1 }, 2)))
    assert.equal("refuse", (says({ ["if"] = { type = "string" }, ["then"] = { minLength = 2 } },
      "x")))
  end)

  it("that is wrong, or refers elsewhere, is refused", function()
    for _, case in ipairs {
      { '{"type": "objekt"}', "" }, { "{", "the schema" }, { "7", "it is no object" },
      { '{"$ref": "http://example.org/s.json"}', "remote" },
      { '{"$ref": "file:///etc/passwd"}', "remote" },
      { '{"pattern": "("}', "patterns cannot be compiled" },
      { '{"minLength": -1}', "" }, { '{"maximum": 1e999}', "too large" },
    } do
      local list, message, code = sessile.screen { schemas = { metadata = case[1] } }
      assert.is_nil(list, case[1])
      assert.equal("EINVALID", code)
      assert.truthy(message:find(case[2], 1, true), message)
    end
  end)

  it("that could go on for ever refuses", function()
    local function failed(schema, value)
      local verdict, found = says(schema, value)
      assert.equal("refuse", verdict)
      assert.equal("failed", found.rule)
      return found.message
    end
    assert.truthy(failed('{"allOf": [{"$ref": "#"}]}', 1):find "itself without end")
    assert.truthy(failed('{"pattern": "^(a+)+$"}', ("a"):rep(60) .. "!"):find "tries too many")
    local many = {}
    for i = 1, 3000 do many[i] = i end
    assert.truthy(failed('{"uniqueItems": true}', many):find "too many steps")
    assert.truthy(failed('{"type": "array"}', sessile.json(("["):rep(200) .. ("]"):rep(200)))
      :find "depth")
  end)

  it("does not fall over a long text", function()
    local long = ("a"):rep(2000000)
    assert.equal("pass", (says('{"pattern": "^.*a$"}', long:sub(1, 60000))))
    assert.equal("pass", (says('{"maxLength": 2000000}', long)))
    assert.equal("refuse", (says('{"type": "string", "format": "date"}', ("1"):rep(2000000))))
    local verdict, found = says('{"pattern": "a"}', long)
    assert.equal("refuse", verdict)
    assert.truthy(found.message:find "longer than 64 KiB")
  end)
end)
