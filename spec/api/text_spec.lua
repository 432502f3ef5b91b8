-- sessile.core: hashes, base64, and the parts of a JSON text as they stand in it.

local core = require "sessile.core"
local span = core.span

local function hex(bytes)
  return (bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

describe("sha256", function()
  it("is the hash of FIPS 180-4", function()
    for text, sum in pairs {
      [""] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
      abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
      abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq =
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
      [("a"):rep(1000000)] = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
    } do
      local digits, bytes = core.sha256(text)
      assert.equal(sum, digits)
      assert.equal(sum, hex(bytes))
    end
  end)
end)

describe("base64", function()
  it("is that of RFC 4648", function()
    for bytes, text in pairs { [""] = "", f = "Zg==", fo = "Zm8=", foo = "Zm9v",
      foob = "Zm9vYg==", fooba = "Zm9vYmE=", foobar = "Zm9vYmFy",
      ["\255\0a"] = "/wBh", ["\251\255\190"] = "+/++" } do
      assert.equal(text, core.base64(bytes))
      assert.equal(bytes, core.base64_bytes(text))
    end
  end)

  it("is nothing else", function()
    for _, text in ipairs { "Z", "Zg", "Zg=", "Zh==", "Zm8", "Zm9=", "Zm9v\n", " Zm9v", "Zm9v=",
      "====", "Zm-_", "Z===", "Zg==Zg==", "Zm9\0" } do
      assert.is_nil(core.base64_bytes(text), text)
    end
  end)

  it("is what it was, for any bytes", function()
    local all = {}
    for c = 0, 255 do
      all[#all + 1] = string.char(c)
    end
    local bytes = table.concat(all):rep(300)
    for cut = 0, 5 do
      local part = bytes:sub(1, #bytes - cut)
      assert.equal(part, core.base64_bytes(core.base64(part)))
    end
  end)
end)

describe("span", function()
  it("takes what is JSON and nothing else", function()
    for _, text in ipairs {
      "{}", "[]", "0", "-0.5e+3", '"\\ud83d\\ude00"', '{"a":[1,{"b":null}]}', " [ 1 , true ] ",
    } do
      assert.is_true(span.valid(text), text)
    end
    for _, text in ipairs {
      "", "{", "[1,]", "01", "1.", '"a', '"\t"', '{"a"}', '{"a":1,}', "tru", "[1]x", '"\\x"',
      '{"a":1 "b":2}', '"\255"', '{a:1}', "'a'", ("["):rep(129) .. ("]"):rep(129),
    } do
      assert.is_false(span.valid(text), text)
    end
  end)

  it("gives values as they are written", function()
    local members, fields = span.object '{"n": 9007199254740993, "f":1.50,"a\\u0062":[ 1 ]}'
    assert.equal("9007199254740993", fields.n)
    assert.equal("1.50", fields.f)
    assert.equal("[ 1 ]", fields.ab)
    assert.equal('"a\\u0062"', members[3].raw_key)
    assert.same({ "1", '"x,]"', "{}" }, span.array '[1, "x,]" ,{}]')
  end)

  it("gives each member, the last of a name by its name", function()
    local members, fields = span.object ' { "a" : 1.0 ,\n"b":"x" , "a" :[ 2 , {} ] } '
    assert.same({ { key = "a", raw_key = '"a"', raw = "1.0" },
      { key = "b", raw_key = '"b"', raw = '"x"' },
      { key = "a", raw_key = '"a"', raw = "[ 2 , {} ]" } }, members)
    assert.same({ a = "[ 2 , {} ]", b = '"x"' }, fields)
    assert.same({ {}, {} }, { span.object "{}" })
    assert.same({}, span.array " [ ] ")
    assert.is_nil(span.object "[1]")
    assert.is_nil(span.array '{"a":1}')
    assert.is_nil(span.object '{"a":1}}')
    assert.is_nil(span.array '["\255"]')
    assert.is_nil(span.object(nil))
    local deep = ("["):rep(span.max_depth) .. ("]"):rep(span.max_depth)
    assert.same({ deep:sub(2, -2) }, span.array(deep))
    assert.is_nil(span.array("[" .. deep .. "]"))
  end)

  it("tells a value by how it begins", function()
    for text, kind in pairs { ["{"] = "object", ["\n [1"] = "array", ['"'] = "string",
      ["-1"] = "number", ["0"] = "number", ["true"] = "true", ["f"] = "false", null = "null" } do
      assert.equal(kind, span.kind(text))
    end
    assert.is_nil(span.kind "")
    assert.is_nil(span.kind "  ")
    assert.is_nil(span.kind "x")
  end)

  it("takes a string for one when nothing is around it", function()
    for _, raw in ipairs { "", "a", "1", '"a', 'a"', '"a" ', ' "a"', '"a""b"', '"\\"', '["a"]' } do
      assert.is_nil(span.string(raw), raw)
    end
    assert.is_nil(span.string(nil))
    assert.equal("", span.string '""')
    assert.equal('"a\\u0001\\u007f\\n\255"', span.quote "a\1\127\n\255")
  end)

  it("reads and writes strings", function()
    assert.equal("é😀\n/", span.string '"\\u00e9\\ud83d\\ude00\\n\\/"')
    assert.equal("\u{FFFD}", span.string '"\\ud800"')
    for _, text in ipairs { "", "a\"b\\", "\0\1\31\127", "é😀", "\r\n\t" } do
      assert.equal(text, span.string(span.quote(text)))
    end
  end)
end)
