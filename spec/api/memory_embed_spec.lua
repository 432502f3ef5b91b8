-- Embeddings of long-term memory: who embeds, what it may answer, and what a wrong answer costs.
-- The embedder here is a table of synonyms: two texts without a shared word meet.

local fails = require("spec.support.expect").refused
local endpoints = require "spec.support.endpoints"
local expect = require "spec.support.expect"
local stores = require "spec.support.stores"
local temp = require "spec.support.temp"
local sessile = require "sessile"
local has = expect.has

local has_http = pcall(require, "socket")

require "sessile.model.http".pause = 0.02 -- nobody waits for the tries here

local TOPICS = { { "cat", "kitten", "feline" }, { "car", "engine", "automobile" },
  { "tea", "cup", "brew" } }

local function vector_of(text)
  local vector = { 0.1 }
  for t, words in ipairs(TOPICS) do
    vector[t + 1] = 0
    for _, word in ipairs(words) do
      vector[t + 1] = vector[t + 1] + (text:find(word, 1, true) and 1 or 0)
    end
  end
  return vector
end

local function synonyms(texts)
  local vectors = {}
  for i, text in ipairs(texts) do
    vectors[i] = vector_of(text)
  end
  return vectors
end

-- A memory with three entries, in a store where this embeds.
local function memory_with(embed, more)
  local given = { embed = embed, name = "syn", dims = 4 }
  if type(embed) == "table" then
    given = { embed = embed }
  end
  for name, value in pairs(more or {}) do
    given[name] = value
  end
  -- a store of files can change a log, as `erase` does
  local store = given.vectors
    and stores.open(temp.dir() .. "/store", { key = false, memory = given })
    or stores.ram { memory = given }
  local m = assert(store:memory "coder")
  local ids = {}
  for i, value in ipairs { "a kitten naps", "the engine starts", "a cup of green" } do
    ids[i] = assert(m:write(nil, value))
  end
  return m, ids, store
end

local function values(rows)
  local list = {}
  for i, row in ipairs(rows) do
    list[i] = row.value
  end
  return table.concat(list, "|")
end

-- Wrong answers, and what is said of them.
local WRONG = {
  { "nothing", function() end, "nothing was returned" },
  { "a reason", function() return nil, "no money" end, "no money" },
  { "an error", function() error "out of tea" end, "out of tea" },
  { "a text", function() return "0.1 0.2" end, "a string was returned" },
  { "too few", function(texts) return { table.unpack(synonyms(texts), 2) } end,
    "came for %d text" },
  { "too many", function(texts)
    local all = synonyms(texts)
    all[#all + 1] = all[1]
    return all
  end, "vectors came for %d text" },
  { "another size", function(texts)
    local all = synonyms(texts)
    table.remove(all[#all])
    return all
  end, "has 3 dimensions, not 4" },
  { "NaN", function(texts)
    local all = synonyms(texts)
    all[#all][2] = 0 / 0
    return all
  end, "not finite" },
  { "infinity", function(texts)
    local all = synonyms(texts)
    all[1][1] = -math.huge
    return all
  end, "not finite" },
  { "more than a float holds", function(texts)
    local all = synonyms(texts)
    all[1][1] = 1e39
    return all
  end, "not finite" },
  { "zeros", function(texts)
    local all = synonyms(texts)
    all[#all] = { 0, 0, 0, 0 }
    return all
  end, "has zeros only" },
  { "texts in a vector", function(texts)
    local all = synonyms(texts)
    all[1][3] = "0.5"
    return all
  end, "has a string as its number 3" },
  { "an empty vector", function(texts)
    local all = synonyms(texts)
    all[1] = {}
    return all
  end, "has no numbers" },
}

describe("an embedder", function()
  after_each(stores.clean)

  it("finds what shares no word with the question", function()
    local purposes = {}
    local m, ids = memory_with(function(texts, ctx)
      purposes[#purposes + 1] = ("%s %d %s %s"):format(ctx.purpose, #texts, ctx.model, ctx.dims)
      return synonyms(texts)
    end)
    local rows, info = m:search "my automobile"
    assert.equal(0, #rows)
    assert.same({ words = true, vectors = false,
      why = "no entry has a vector of 'syn' with 4 dimensions yet: embed them" }, info.legs)
    assert.same({ verdict = "applied", embedded = 3, to_embed = 0, model = "syn" }, m:embed())
    rows, info = m:search "my automobile"
    assert.equal("the engine starts", values(rows))
    assert.is_true(rows[1].cos > 0.9)
    assert.same({ words = true, vectors = true }, info.legs)
    assert.same({ verdict = "unchanged", embedded = 0, to_embed = 0, model = "syn" }, m:embed())
    assert.same({ "question 1 syn 4", "entry 3 syn 4" }, purposes) -- a question is asked once
    assert.same({ { name = "syn", dims = 4, vectors = 3, live = 3, missing = 0, used = true } },
      m:models())
    -- words do not gate vectors, nor vectors words
    rows = m:search("which green automobile", { limit = 2 })
    assert.equal("a cup of green|the engine starts", values(rows))
    -- by words alone
    rows, info = m:search("my automobile", { vector = false })
    assert.equal(0, #rows)
    assert.same({ words = true, vectors = false }, info.legs)
    info = select(2, m:search("my automobile", { weight = 0 }))
    has(info.legs.why, "weight of vectors is 0")
    assert.is_true(m:delete(ids[2]))
    assert.equal(0, #m:search "my automobile")
  end)

  it("costs a search the vectors alone when it answers wrongly", function()
    for _, wrong in ipairs(WRONG) do
      local broken = false
      local m = memory_with(function(texts) return (broken and wrong[2] or synonyms)(texts) end)
      assert(m:embed())
      broken = true
      local rows, info = m:search "kitten automobile"
      assert.equal("a kitten naps", values(rows), wrong[1])
      assert.is_false(info.legs.vectors)
      has(info.legs.why, wrong[3]:format(1))
      broken = false
      rows, info = m:search "kitten automobile"
      assert.equal(2, #rows, wrong[1])
      assert.is_true(info.legs.vectors)
    end
  end)

  it("ends a run with a wrong answer, and the next goes on", function()
    for _, wrong in ipairs(WRONG) do
      local calls = 0
      local m = memory_with(function(texts)
        calls = calls + 1
        return (calls == 2 and wrong[2] or synonyms)(texts)
      end)
      local shown = {}
      local done = assert(m:embed { batch = 1, on_progress = function(a, b)
        shown[#shown + 1] = a .. "/" .. b
      end })
      assert.equal("refused", done.verdict, wrong[1])
      has(done.message, wrong[3]:format(1))
      assert.same({ 1, 2 }, { done.embedded, done.to_embed })
      assert.same({ "0/3", "1/3", "1/3" }, shown)
      assert.equal(1, m:models()[1].live)
      done = assert(m:embed { batch = 1 })
      assert.same({ "applied", 2, 0 }, { done.verdict, done.embedded, done.to_embed })
      assert.equal("the engine starts", values(m:search "automobile"))
    end
  end)

  it("may be another one: strangers are ignored until all is embedded again", function()
    local m = memory_with(synonyms)
    assert(m:embed())
    local function other(texts)
      local vectors = synonyms(texts)
      for _, vector in ipairs(vectors) do
        vector[5] = 0.2
      end
      return vectors
    end
    local done = assert(m:embed { embed = other, name = "new", batch = 2 })
    assert.equal(3, done.embedded)
    assert.same({ "syn", "new" }, { m:models()[1].name, m:models()[2].name })
    assert.equal("the engine starts", values(m:search "automobile")) -- by the one configured
    local store = stores.ram { memory = { embed = other, name = "syn" } }
    m = assert(store:memory "coder")
    local id = assert(m:write(nil, "the engine starts"))
    assert(m:embed("syn", { id }, { { 1, 0, 0 } })) -- the same name, other dimensions
    local rows, info = m:search "engine"
    assert.equal("the engine starts", values(rows))
    has(info.legs.why, "5 dimensions")
    assert.equal(1, assert(m:embed { dims = 5, embed = other, name = "syn" }).embedded)
    assert.is_true(select(2, m:search "automobile").legs.vectors)
  end)

  it("is asked once for both memories of a session, and for a recall", function()
    local asked = {}
    local store = stores.ram { memory = { name = "syn", embed = function(texts, ctx)
      asked[#asked + 1] = ctx.purpose
      return synonyms(texts)
    end } }
    local s = assert(store:session { id = "one", agent = "coder", user = "ann" })
    local both = assert(s:memory { consent = "yes" })
    for _, value in ipairs { "a kitten naps", "a cup of green" } do
      assert(both:write(nil, value))
    end
    for _, value in ipairs { "the engine starts", "some other thing" } do
      assert(both:write(nil, value, { share = true }))
    end
    local done = assert(both:embed())
    assert.same({ "applied", 4, 0 }, { done.verdict, done.embedded, done.to_embed })
    local rows, info = both:search "feline automobile"
    assert.equal(2, #rows)
    assert.is_true(info.legs.vectors)
    both:search "feline automobile"
    assert.same({ "entry", "entry", "question" }, asked)
    assert(s:append { role = "user", content = "where is my automobile?" })
    local told = assert(s:recall { near = 0.5 })
    assert.equal(1, told.recalled)
    assert.is_nil(told.message)
    has(s:context()[2].content, "the engine starts")
    assert.equal("question", asked[4])
    local found = assert(s:recall { near = 0.5, question = "feline", dry_run = true })
    assert.equal("a kitten naps", values(found.entries))
  end)

  it("costs a recall the vectors alone", function()
    local _, _, store = memory_with(function() return nil, "no money" end)
    local s = assert(store:session { id = "one", agent = "coder" })
    assert(s:append { role = "user", content = "does the kitten nap?" })
    local told = assert(s:recall())
    assert.equal(1, told.recalled)
    has(told.message, "no money")
    told = assert(s:recall { question = "the engine?" })
    assert.equal(1, told.recalled)
    has(told.message, "no money")
  end)

  it("is refused at the line of the call when it cannot be one", function()
    for text, given in pairs {
      ["got number"] = { embed = 3 },
      ["command=, endpoint= or lua="] = { embed = { name = "x" } },
      ["without a table, with name="] = { embed = { function() end, name = "x" } },
      ["one of command"] = { embed = { endpoint = "http://localhost", lua = "x", name = "x" } },
      ["name: say which"] = { embed = { endpoint = "http://localhost" } },
      ["http://"] = { embed = { endpoint = "localhost", name = "x" } },
      ["dims"] = { embed = synonyms, dims = 0 },
      ["give both in one place"] = { dims = 3 },
      ["put and search"] = { embed = synonyms, vectors = { put = print } },
      ["search"] = { vectors = { serach = print } },
    } do
      local ok, message = pcall(stores.ram, { memory = given })
      assert.is_false(ok, text)
      has(message, text)
      has(message, "memory")
    end
    local m = assert(stores.ram():memory "coder")
    has(fails("EINVALID", m:embed()), "nobody embeds here")
    local off = assert(stores.ram { memory = { embed = synonyms } }:memory "coder")
    off._settings.enabled = false
    fails("EDENIED", off:embed())
  end)
end)

-- ---------------------------------------------------------------- an endpoint

local function http(name, test)
  it(name, function()
    if not has_http then
      return pending "the package lua-socket is not installed"
    end
    test()
  end)
end

local function body(vectors, indices)
  local data = {}
  for i, vector in ipairs(vectors) do
    data[i] = { object = "embedding", embedding = vector, index = indices and indices[i] or i - 1 }
  end
  return sessile.encode { object = "list", data = data, model = "m" }
end

local function said(status, text, headers)
  return ("json(%d, [==[%s]==], %q)"):format(status, text, headers or "")
end

local ALL = synonyms { "a kitten naps", "the engine starts", "a cup of green" }

-- A memory whose embedder is an endpoint that answers so; and what serve() has for requests.
local function memory_at(chunks, more)
  local port, requests = endpoints.serve(chunks)
  local embed = { endpoint = ("http://127.0.0.1:%d/v1/"):format(port), name = "m", dims = 4 }
  for name, value in pairs(more or {}) do
    embed[name] = value
  end
  local m, ids = memory_with(embed)
  return m, requests, ids
end

describe("an endpoint that embeds", function()
  after_each(stores.clean)
  teardown(temp.clean)

  http("is asked as any OpenAI-compatible one, and its `index` counts", function()
    local m, requests = memory_at({
      said(200, body({ ALL[3], ALL[1], ALL[2] }, { 2, 0, 1 })),
      said(200, body { vector_of "automobile" }),
    }, { key = sessile.key.secret "tell-nobody" })
    assert.equal(3, assert(m:embed()).embedded)
    assert.equal("the engine starts", values(m:search "automobile"))
    local request = requests(1)
    has(request, "POST /v1/embeddings HTTP")
    has(request, "authorization: Bearer tell-nobody")
    local sent = sessile.decode(request:match "\n(%b{})")
    assert.equal("m", sent.model)
    assert.equal(4, sent.dimensions)
    assert.equal("a kitten naps|the engine starts|a cup of green", table.concat(sent.input, "|"))
    has(requests(2), '"automobile"')
  end)

  http("says of each wrong answer what is wrong", function()
    local nothing = sessile.null
    for what, text in pairs {
      ["the answer is not JSON"] = '{"data": [NaN',
      ["is not JSON"] = '{"data":[{"index":0,"embedding":[NaN,1,1,1]}]}',
      ["the answer has no list `data`"] = '{"object":"list"}',
      ["no list `data`"] = "[]",
      ["0 vectors came for 3 texts"] = '{"data":[]}',
      ["2 vectors came for 3 texts"] = body { ALL[1], ALL[2] },
      ["4 vectors came for 3 texts"] = body { ALL[1], ALL[2], ALL[3], ALL[3] },
      ["has the `index` 1 twice"] = body(ALL, { 0, 1, 1 }),
      ["an `index` of no text"] = body(ALL, { 0, 1, 3 }),
      ["number 1 of `data` has an `index` of no text"] = body(ALL, { -1, 1, 2 }),
      ["number 2 of `data` is no object"] = '{"data":[{"embedding":[1]},7,{"embedding":[1]}]}',
      ["vector 2 of 3 has 3 dimensions, not 4"] = body { ALL[1], { 1, 2, 3 }, ALL[3] },
      ["vector 3 of 3 has zeros only"] = body { ALL[1], ALL[2], { 0, 0, 0, 0 } },
      ["vector 1 of 3 is a string"] = body { "AACAPw==", ALL[2], ALL[3] },
      ["vector 2 of 3 is a userdata"] = body { ALL[1], nothing, ALL[3] },
      ["has a string as its number 2"] = body { ALL[1], { 1, "x", 1, 1 }, ALL[3] },
      ["not finite"] = '{"data":[{"embedding":[1e39,1,1,1]},{"embedding":[1,1,1,1]},'
        .. '{"embedding":[1,1,1,1]}]}',
    } do
      local m = memory_at { said(200, text) }
      local done = assert(m:embed())
      assert.equal("refused", done.verdict, what)
      has(done.message, what)
      assert.same({}, m:models())
      assert.equal("a kitten naps", values(m:search("kitten", { vector = false })))
    end
  end)

  http("is asked again when that may help, and never elsewhere", function()
    local good = said(200, body(ALL))
    local m = memory_at { said(503, "busy"), said(429, "slow", "retry-after: 0\r\n"), good }
    assert.equal(3, assert(m:embed()).embedded)
    m = memory_at({ said(302, "", "location: http://127.0.0.1:9/\r\n") },
      { key = sessile.key.secret "tell-nobody" })
    local done = assert(m:embed())
    has(done.message, "sends us elsewhere")
    m = memory_at({ said(401, '{"error":{"message":"wrong key tell-nobody"}}') },
      { key = sessile.key.secret "tell-nobody" })
    done = assert(m:embed())
    has(done.message, "answered 401: wrong key")
    assert.is_nil(done.message:find("tell-nobody", 1, true))
    m = memory_with { endpoint = "http://example.invalid/v1", name = "m",
      key = sessile.key.secret "tell-nobody" }
    has(assert(m:embed()).message, "use https")
  end)

  http("is asked without `dimensions` if it does not know them", function()
    local m, requests = memory_at {
      said(400, '{"error":{"message":"dimensions is not supported","param":"dimensions"}}'),
      said(200, body(ALL)) }
    assert.equal(3, assert(m:embed()).embedded)
    has(requests(1), "dimensions")
    assert.is_nil(requests(2):find("dimensions", 1, true))
  end)

  http("gets less of a text that is too long for it", function()
    local port, requests = endpoints.serve {
      said(413, "too large"),
      said(400, '{"error":{"message":"maximum context length is 512 tokens",'
        .. '"code":"context_length_exceeded"}}'),
      said(200, body { vector_of "kitten", vector_of "engine" }) }
    local store = stores.ram { memory = { embed = { name = "m",
      endpoint = ("http://127.0.0.1:%d/v1"):format(port) } } }
    local m = assert(store:memory "coder")
    assert(m:write(nil, "kitten " .. ("é"):rep(600)))
    assert(m:write(nil, "engine"))
    assert.equal(2, assert(m:embed()).embedded)
    local sent = sessile.decode(requests(3):match "\n(%b{})").input
    assert.equal("engine", sent[2])
    assert.is_true(#sent[1] <= 304 and #sent[1] > 290 and utf8.len(sent[1]) ~= nil)
  end)
end)

-- ---------------------------------------------------------------- an outside index

-- A vector store of a few lines, which forgets nothing by itself.
local function outside_index()
  local index = { has = {}, calls = {} }
  index.put = function(entries, ctx)
    index.calls[#index.calls + 1] = ("put %d %s %s"):format(#entries, ctx.agent, ctx.model)
    for _, entry in ipairs(entries) do
      index.has[entry.id] = entry.vector
    end
    return true
  end
  index.search = function(vector, ctx)
    local hits = {}
    for id, own in pairs(index.has) do
      local score = 0
      for i, number in ipairs(own) do
        score = score + number * vector[i]
      end
      hits[#hits + 1] = { id = id, score = score }
    end
    table.sort(hits, function(a, b) return a.score > b.score end)
    return { table.unpack(hits, 1, ctx.limit) }
  end
  index.remove = function(ids)
    for _, id in ipairs(ids) do
      index.has[id] = nil
    end
    return true
  end
  return index
end

describe("an outside index", function()
  after_each(stores.clean)

  local function count(index)
    local n = 0
    for _ in pairs(index.has) do
      n = n + 1
    end
    return n
  end

  local function with(index)
    return memory_with(synonyms, { vectors = { put = index.put, search = index.search,
      remove = index.remove } })
  end

  it("has the vectors, and is asked in their place", function()
    local index = outside_index()
    local m, ids = with(index)
    assert.equal(3, assert(m:embed()).embedded)
    assert.same({ "put 3 coder syn" }, index.calls)
    local rows, info = m:search "automobile"
    assert.equal("the engine starts", rows[1].value)
    assert.is_true(info.legs.vectors)
    index.has[ids[2]] = vector_of "tea" -- what it says counts
    assert.not_equal("the engine starts", m:search "automobile"[1].value)
  end)

  it("is asked by a recall that says its question", function()
    local index = outside_index()
    local m, ids, store = with(index)
    assert(m:embed())
    index.has[ids[3]] = vector_of "automobile"
    local s = assert(store:session { id = "one", agent = "coder" })
    assert(s:append { role = "user", content = "hello" })
    local found = assert(s:recall { question = "automobile", near = 1, dry_run = true })
    assert.same({ ids[3], ids[2] }, { found.entries[1].id, found.entries[2].id })
    -- without `near` a score alone finds nothing: its scale is unknown
    found = assert(s:recall { question = "automobile", dry_run = true })
    assert.equal(0, found.found)
    m._settings.vectors.search = function() error "broken" end
    local told = assert(s:recall { question = "the kitten" })
    assert.equal(1, told.recalled)
    has(told.message, "broken")
  end)

  it("hears of deletions, restorations and erasures", function()
    local index = outside_index()
    local m, ids = with(index)
    assert(m:embed())
    assert(m:delete(ids[1]))
    assert.is_nil(index.has[ids[1]])
    assert(m:restore(ids[1]))
    assert.same(vector_of "kitten", index.has[ids[1]])
    assert.equal(1, assert(m:erase(ids[2])))
    assert.is_nil(index.has[ids[2]])
    assert.equal(2, count(index))
    assert.equal(2, m:clear())
    assert.equal(0, count(index))
  end)

  it("may be stale, foreign or wrong: that makes no hit and fails no search", function()
    local index = outside_index()
    local m, ids = with(index)
    assert(m:embed())
    local remove = index.remove
    m._settings.vectors.remove = function() return nil, "offline" end
    assert(m:delete(ids[2]))
    index.has.ffffffff, index.has["no id"], index.has["00001234"] = { 9, 9, 9, 9 }, { 9, 9, 9, 9 },
      { 9, 9, 9, 9 }
    assert.is_not_nil(index.has[ids[2]])
    assert.is_nil(values(m:search "automobile"):find("engine", 1, true))
    local erased, info = m:erase(ids[2])
    assert.equal(1, erased)
    has(info.outside, "offline")
    m._settings.vectors.remove = remove
    for text, search in pairs {
      ["raised"] = function() error "broken" end,
      ["returned nothing"] = function() end,
      ["offline"] = function() return nil, "offline" end,
      ["returned a string"] = function() return "x" end,
      ["hit 1 has no score"] = function() return { { id = ids[1] } } end,
      ["hit 2 has no score"] = function()
        return { { id = ids[1], score = 1 }, { id = ids[3], score = 0 / 0 } }
      end,
      ["hit 1 has no id"] = function() return { { score = 1 } } end,
    } do
      m._settings.vectors.search = search
      local rows
      rows, info = m:search "kitten"
      assert.equal("a kitten naps", values(rows), text)
      assert.is_false(info.legs.vectors)
      has(info.legs.why, text)
    end
  end)

  it("that does not take vectors leaves them to the next run", function()
    local index = outside_index()
    local m = with(index)
    local put = m._settings.vectors.put
    m._settings.vectors.put = function() return nil, "disk full" end
    local done = assert(m:embed())
    assert.equal("refused", done.verdict)
    has(done.message, "disk full")
    assert.same({}, m:models())
    m._settings.vectors.put = put
    assert.equal(3, assert(m:embed()).embedded)
    assert.equal(3, count(index))
  end)
end)
