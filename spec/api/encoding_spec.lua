-- Exact token counts, as a host meets them. That they are the right ones is for
-- tests/unit/tokens/test_encoding_equal.c; where node and the npm package tiktoken are there, whole
-- conversations are compared with it here.

local sessile = require "sessile"
local built = require "spec.support.built"

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
  return path
end

local function path_of(name)
  return os.tmpname() .. "-" .. name
end

-- base64, for rank files.
local function base64(bytes)
  local alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
  return (bytes:gsub("..?.?", function(some)
    local a, b, c = some:byte(1, 3)
    local bits = a << 16 | (b or 0) << 8 | (c or 0)
    local out = {}
    for i = 0, 3 do
      local six = bits >> (18 - 6 * i) & 63
      out[#out + 1] = i <= #some and alphabet:sub(six + 1, six + 1) or "="
    end
    return table.concat(out)
  end))
end

-- A rank file of every byte, and what else is given.
local function tiktoken(tokens)
  local lines = {}
  for byte = 0, 255 do
    lines[#lines + 1] = base64(string.char(byte)) .. " " .. byte
  end
  for i, token in ipairs(tokens) do
    lines[#lines + 1] = base64(token) .. " " .. 255 + i
  end
  return table.concat(lines, "\n") .. "\n"
end

describe("an encoding", function()
  it("counts, encodes and decodes", function()
    local e <close> = assert(sessile.encoding "cl100k_base")
    assert.equal("cl100k_base", e.name)
    assert.equal("sessile.Encoding: cl100k_base", tostring(e))
    assert.equal(3, e:count "hello world!")
    assert.same({ 15339, 1917, 0 }, e:encode "hello world!")
    assert.equal("hello world!", e:decode { 15339, 1917, 0 })
    assert.same({}, e:encode "")
    assert.equal("", e:decode {})
  end)

  it("takes special tokens in a text as text, and names them when it decodes", function()
    local e = assert(sessile.encoding "o200k_base")
    assert.is_true(e:count "<|endoftext|>" > 1)
    assert.equal("<|endoftext|>", e:decode { 199999 })
  end)

  it("says which id is no token", function()
    local e = assert(sessile.encoding "o200k_base")
    local text, message, code = e:decode { 1, 200000 }
    assert.is_nil(text)
    assert.equal("EINVALID", code)
    assert.matches("o200k_base has no token 200000", message)
    assert.error(function() e:decode { "x" } end)
    assert.error(function() e:decode { -1 } end)
    assert.error(function() e:count(12) end)
  end)

  it("is closed once, and says so from then on", function()
    local e = assert(sessile.encoding "cl100k_base")
    assert.is_true(e:close())
    assert.is_true(e:close())
    local count, _, code = e:count "x"
    assert.is_nil(count)
    assert.equal("ECLOSED", code)
  end)

  it("of another name is not found, and the ones there are are named", function()
    local e, message, code = sessile.encoding "p50k"
    assert.is_nil(e)
    assert.equal("ENOTFOUND", code)
    assert.matches("p50k.*cl100k_base.*o200k_base", message)
  end)

  it("is looked for in folders that are given", function()
    local _, _, code = sessile.encoding("cl100k_base", { folders = "/nonexistent" })
    assert.is_nil(code)
    assert.error(function() sessile.encoding("cl100k_base", { folder = "x" }) end)
  end)
end)

describe("a rank file", function()
  it("is read by its path, with a pattern", function()
    local path = write(path_of "mine.tiktoken", tiktoken { "ab", "abc", " abc" })
    local e <close> = assert(sessile.encoding(path, { pattern = "cl100k_base" }))
    assert.matches("mine$", e.name)
    assert.same({ 257, 258 }, e:encode "abc abc")
    assert.same({ 256, 120 }, e:encode "abx")
    os.remove(path)
  end)

  it("may have an expression for its pattern", function()
    local path = write(path_of "mine.tiktoken", tiktoken { "ab", "ba" })
    local letters <close> = assert(sessile.encoding(path, { pattern = "." }))
    assert.same({ 97, 98, 97 }, letters:encode "aba")
    local pairs <close> = assert(sessile.encoding(path, { pattern = "\\w{2}|\\s" }))
    assert.same({ 256, 97 }, pairs:encode "aba")
    local _, message, code = sessile.encoding(path, { pattern = "(" })
    assert.equal("EINVALID", code)
    assert.matches("pattern is wrong at byte 1", message)
    os.remove(path)
  end)

  it("of no published vocabulary wants its pattern", function()
    local path = write(path_of "mine.tiktoken", tiktoken {})
    local e, message, code = sessile.encoding(path)
    assert.is_nil(e)
    assert.equal("EINVALID", code)
    assert.matches("give its pattern", message)
    os.remove(path)
  end)

  it("that is none is refused, and the line named", function()
    local path = write(path_of "x.tiktoken", tiktoken {} .. "YQ==\n")
    local _, message, code = sessile.encoding(path, { pattern = "." })
    assert.equal("EINVALID", code)
    assert.matches("line 257 is not a token", message)
    write(path, "YQ== 0\n")
    _, message, code = sessile.encoding(path, { pattern = "." })
    assert.equal("EINVALID", code)
    assert.matches("no token is the byte 0x00", message)
    write(path, tiktoken { "a" })
    _, message, code = sessile.encoding(path, { pattern = "." })
    assert.equal("EINVALID", code)
    assert.matches("tokens 97 and 256 are the same bytes", message)
    os.remove(path)
  end)
end)

describe("a file of the build", function()
  it("that is cut or changed is refused", function()
    local e = assert(sessile.encoding "cl100k_base")
    local file = assert(io.open(built.folder
      .. "/share/sessile/encodings/cl100k_base.bpe", "rb"))
    local whole = file:read "a"
    file:close()
    assert.equal(1, e:count "x")
    local path = path_of "cut.bpe"
    for _, bad in ipairs { "", whole:sub(1, 100), whole:sub(1, 3000000), whole .. "x",
      whole:sub(1, 4000000) .. "\1" .. whole:sub(4000002) } do
      write(path, bad)
      local opened, message, code = sessile.encoding(path)
      assert.is_nil(opened)
      assert.equal("EINVALID", code)
      assert.matches("make the file again", message)
    end
    write(path, whole)
    assert.equal(2, assert(sessile.encoding(path)):count "hello world")
    os.remove(path)
  end)
end)

-- The bytes as the characters of a byte-level vocabulary.
local function visible(bytes)
  local character, next = {}, 256
  for byte = 0, 255 do
    local itself = (byte >= 33 and byte <= 126) or (byte >= 161 and byte <= 172) or byte >= 174
    character[byte] = utf8.char(itself and byte or next)
    next = itself and next or next + 1
  end
  return (bytes:gsub(".", function(c) return character[c:byte()] end))
end

-- A tokenizer.json of every byte, these merges, and what is set over it.
local function tokenizer(merges, set)
  local vocab, list, id = {}, {}, 256
  for byte = 0, 255 do
    vocab[visible(string.char(byte))] = byte
  end
  for i, merge in ipairs(merges) do
    local left, right = visible(merge[1]), visible(merge[2])
    list[i] = set and set.as_pairs and { left, right } or left .. " " .. right
    vocab[left .. right] = id
    id = id + 1
  end
  local file = {
    version = "1.0",
    added_tokens = sessile.array {},
    pre_tokenizer = { type = "ByteLevel", add_prefix_space = false, use_regex = true },
    model = { type = "BPE", vocab = vocab, merges = sessile.array(list) },
  }
  for key, value in pairs(set or {}) do
    if key == "model" then
      for name, more in pairs(value) do
        file.model[name] = more
      end
    elseif key ~= "as_pairs" then
      file[key] = value
    end
  end
  return assert(sessile.encode(file))
end

describe("a tokenizer.json", function()
  local path = path_of "tokenizer.json"
  after_each(function() os.remove(path) end)

  local function open(merges, set)
    write(path, tokenizer(merges, set))
    return sessile.encoding(path)
  end
  local words = { { "a", "b" }, { " ", "ab" }, { "ab", "ab" }, { "é", "é" } }
  words[4] = { "\xc3", "\xa9" }

  it("merges as its list says, written in either way", function()
    for _, as_pairs in ipairs { false, true } do
      local e <close> = assert(open(words, { as_pairs = as_pairs }))
      assert.same({ 258, 257, 120, 259 }, e:encode "abab abxé")
      assert.equal("abab abxé", e:decode(e:encode "abab abxé"))
    end
  end)

  it("takes a token that is a whole piece at once only with ignore_merges", function()
    local merges = { { "b", "c" }, { "a", "b" }, { "ab", "c" } } -- abc: bc comes first
    local e <close> = assert(open(merges))
    assert.same({ 97, 256 }, e:encode "abc")
    local whole <close> = assert(open(merges, { model = { ignore_merges = true } }))
    assert.same({ 258 }, whole:encode "abc")
  end)

  it("cuts by its steps, one after the other", function()
    local e <close> = assert(open(words, { pre_tokenizer = { type = "Sequence",
      pretokenizers = sessile.array {
        { type = "Digits", individual_digits = true },
        { type = "Split", pattern = { String = "b" }, behavior = "Isolated", invert = false },
        { type = "Split", pattern = { Regex = "\\s" }, behavior = "Removed", invert = false },
        { type = "ByteLevel", add_prefix_space = false, use_regex = false },
      } } }))
    assert.same({ 97, 98, 49, 50, 97 }, e:encode "ab12 a")
  end)

  it("puts a space before a text where its step says so", function()
    local e <close> = assert(open(words, { pre_tokenizer = { type = "ByteLevel",
      add_prefix_space = true, use_regex = true } }))
    assert.same({ 257 }, e:encode "ab")
    assert.same({ 257 }, e:encode " ab")
    assert.same({}, e:encode "")
  end)

  it("finds added tokens in a text, but for special ones", function()
    local e <close> = assert(open(words, { added_tokens = sessile.array {
      { id = 300, content = "<x>", special = false },
      { id = 301, content = "<xx>", special = false },
      { id = 302, content = "<s>", special = true } } }))
    assert.same({ 256, 300, 301, 257 }, e:encode "ab<x><xx> ab")
    assert.same({ 60, 115, 62 }, e:encode "<s>")
    assert.equal("<s><x>", e:decode { 302, 300 })
  end)

  it("that cannot be followed exactly is refused, and what is in the way named", function()
    local byte_level = { type = "ByteLevel", add_prefix_space = false }
    for _, case in ipairs {
      { { model = { type = "Unigram" } }, "Unigram" },
      { { normalizer = { type = "NFC" } }, "NFC" },
      { { pre_tokenizer = { type = "Metaspace" } }, "Metaspace" },
      { { pre_tokenizer = { type = "Sequence", pretokenizers = sessile.array { byte_level,
        { type = "Punctuation" } } } }, "Punctuation" },
      { { pre_tokenizer = { type = "Digits" } }, "ByteLevel" },
      { { pre_tokenizer = { type = "Sequence", pretokenizers = sessile.array { { type = "Split",
        pattern = { Regex = "a" }, behavior = "MergedWithNext" }, byte_level } } },
        "MergedWithNext" },
      { { pre_tokenizer = { type = "Sequence", pretokenizers = sessile.array { { type = "Split",
        pattern = { Regex = "[a&&[b]]" }, behavior = "Isolated" }, byte_level } } },
        "intersection" },
      { { model = { byte_fallback = true } }, "byte_fallback" },
      { { model = { dropout = 0.1 } }, "dropout" },
      { { added_tokens = sessile.array { { id = 1, content = "x", lstrip = true } } }, "lstrip" },
    } do
      local e, message, code = open(words, case[1])
      assert.is_nil(e)
      assert.equal("EUNSUPPORTED", code, message)
      assert.matches(case[2], message, 1, true)
    end
  end)

  it("that is none is refused", function()
    for text, why in pairs { ["{"] = "byte", ["[]"] = "model", ["{}"] = "model",
      [tokenizer({}, { model = { merges = sessile.array { "a" } } })] = "merge 0",
      [tokenizer({}, { model = { merges = sessile.array { "a b" } } })] = "merge 0",
      [tokenizer({}, { model = { vocab = { a = 1 } } })] = "byte 0x00",
      [tokenizer({}, { model = { vocab = { a = -1 } } })] = "id" } do
      write(path, text)
      local e, message, code = sessile.encoding(path)
      assert.is_nil(e)
      assert.equal("EINVALID", code, message)
      assert.matches(why, message, 1, true)
    end
  end)
end)

describe("tiktoken itself", function()
  local script = built.root .. "/tests/tokens/tiktoken.mjs"

  -- The ids of texts by tiktoken, a line each; nil when it is not there.
  local function judge(name, texts)
    local path = path_of "texts"
    local packed = {}
    for i, text in ipairs(texts) do
      packed[i] = string.pack("<s4", text)
    end
    write(path, table.concat(packed))
    local pipe = assert(io.popen(("node '%s' ids %s '%s' 2>/dev/null"):format(script, name, path)))
    local lines = {}
    for line in pipe:lines() do
      lines[#lines + 1] = line
    end
    pipe:close()
    os.remove(path)
    return #lines > 0 and lines or nil
  end

  it("gives the lines of conversations the same tokens", function()
    if not judge("cl100k_base", { "x" }) then
      return pending "wants node and the npm package tiktoken (npm install tiktoken, NODE_PATH)"
    end
    local texts = {}
    for _, path in ipairs { "examples/demo-session.jsonl", os.getenv "TRANSCRIPT" } do
      for line in io.lines(path) do
        texts[#texts + 1] = line
        texts[#texts + 1] = line:gsub("\\n", "\n"):gsub('\\"', '"')
      end
    end
    for _, name in ipairs { "cl100k_base", "o200k_base" } do
      local e <close> = assert(sessile.encoding(name))
      local lines = judge(name, texts)
      assert.equal(#texts, #lines)
      for i, text in ipairs(texts) do
        assert.equal(lines[i], table.concat(assert(e:encode(text)), " "), text)
      end
    end
  end)
end)
