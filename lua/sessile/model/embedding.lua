-- embedding.lua: asks for the embeddings of texts, of whatever kind who embeds is: a function, a
-- program, an OpenAI-compatible endpoint, a file.
--
-- Answers are not trusted: each is a list of as many vectors as there are texts, all of one size,
-- of finite numbers that are not all zero, or it is a failure that says what is wrong.

local answers = require "sessile.answers"
local dialect = require "sessile.dialect"
local command = require "sessile.model.command"
local core = require "sessile.core"
local http = require "sessile.model.http"
local options = require "sessile.options"
local specs = require "sessile.model.spec"

local math, utf8 = dialect.math, dialect.utf8

local embedding = {}

local MEMBERS = { "dimensions" } -- that not every endpoint knows
local SHORTEST = 256             -- bytes to which a text that is too long is cut

-- ---------------------------------------------------------------- answers

-- What is wrong with a vector; nil: nothing.
local function wrong_with(vector)
  if type(vector) ~= "table" then
    return ("is a %s, not a list of numbers"):format(type(vector))
  elseif #vector == 0 then
    return "has no numbers"
  end
  local all = 0
  for i = 1, #vector do
    local number = vector[i]
    if type(number) ~= "number" then
      return ("has a %s as its number %d"):format(type(number), i)
    elseif number ~= number or number == math.huge or number == -math.huge then
      return "has a number that is not finite"
    end
    all = math.max(all, math.abs(number))
  end
  if all == 0 then
    return "has zeros only"
  elseif all > 3.4e38 then
    return "has a number that is not finite" -- as a float
  end
end

--- Checks an answer to `count` texts: returns it; nil and what is wrong. dims: nil: any.
function embedding.check(vectors, count, dims)
  if vectors == nil or vectors == false then
    return nil, "nothing was returned"
  elseif type(vectors) ~= "table" then
    return nil, ("a %s was returned, not a list of vectors"):format(type(vectors))
  elseif #vectors ~= count then
    return nil, ("%d %s for %d %s"):format(#vectors, #vectors == 1 and "vector came"
      or "vectors came", count, count == 1 and "text" or "texts")
  end
  for i, vector in ipairs(vectors) do
    local wrong = wrong_with(vector)
    if wrong then
      return nil, ("vector %d of %d %s"):format(i, count, wrong)
    elseif #vector ~= (dims or #vectors[1]) then
      return nil, ("vector %d of %d has %d dimensions, not %d"):format(i, count, #vector,
        dims or #vectors[1])
    end
  end
  return vectors
end

-- The vectors of an endpoint's answer, in the order of the texts; nil and what is wrong.
local function decode(text, count)
  local body, why = answers.decode(text)
  if body == nil and why then
    return nil, "the answer is not JSON"
  end
  local data = type(body) == "table" and body.data
  if type(data) ~= "table" or #data == 0 and next(data) ~= nil then
    return nil, "the answer has no list `data`"
  elseif #data ~= count then
    return embedding.check(data, count)
  end
  local vectors = {}
  for i, one in ipairs(data) do
    local index = type(one) == "table" and one.index
    if type(one) ~= "table" then
      return nil, ("number %d of `data` is no object"):format(i)
    elseif index == nil or index == core.null then
      index = i - 1
    end
    index = math.type(index) == "integer" and index or type(index) == "number"
      and math.tointeger(index)
    if not index or index < 0 or index >= count then
      return nil, ("number %d of `data` has an `index` of no text"):format(i)
    elseif vectors[index + 1] then
      return nil, ("`data` has the `index` %d twice"):format(index)
    end
    vectors[index + 1] = one.embedding == nil and core.null or one.embedding
  end
  return vectors
end

-- ---------------------------------------------------------------- the kinds

local kinds = {}

kinds.endpoint = {
  options = options.shape("memory: embed: endpoint", http.options,
    { dims = "positive", window = "count", max_tokens = "positive" }),
}

function kinds.endpoint.make(who, given)
  return http.make(who, options.check(who, given, kinds.endpoint.options), "/embeddings")
end

-- Reads the answer to `about.count` texts.
local function read(self, wire, about, secrets)
  local parts, failure = {}, {}
  for piece in http.pieces(wire, about, failure) do
    parts[#parts + 1] = piece
  end
  local text = table.concat(parts)
  if failure.code then
    return nil, failure
  elseif wire:status() ~= 200 then
    return nil, http.refusal(self, wire, text, secrets, MEMBERS)
  end
  local vectors, why = decode(text, about.count)
  if not vectors then
    return nil, { code = "EIO", message = http.short(secrets, why) }
  end
  return vectors
end

function kinds.endpoint.ask(self, request, about)
  about.count, about.wait = #request.texts, self.wait
  return http.ask(self, about, function()
    local body = core.text { model = self.name, input = request.texts,
      dimensions = not self.without.dimensions and request.dims or nil }
    if not body then
      return nil, { code = "EINVALID", message = "the texts are not UTF-8" }
    end
    return http.try(self, body, about, read)
  end)
end

kinds.command = { make = command.make }

-- The answer: a list of vectors, or an object with `vectors` or `error`.
function kinds.command.ask(self, request, about)
  local out, message, code = command.run(self, request, about)
  if not out then
    return nil, message, code
  end
  local body, why = answers.decode(out)
  if body == nil and why then
    return nil, ("the program %s printed no JSON"):format(self.words[1]), "EIO"
  elseif type(body) == "table" and body.error ~= nil and body.error ~= core.null then
    local said = body.error
    return nil, tostring(type(said) == "table" and said.message or said), "EIO"
  end
  return type(body) == "table" and body.vectors or body
end

-- Asks; texts that are too long for the model are cut and asked for again, the longest first: an
-- entry that is too long must not keep all others from being embedded.
local function ask_fitting(kind, self, request, about)
  while true do
    local vectors, message, code = kind.ask(self, request, about)
    local longest = 0
    for _, text in ipairs(request.texts) do
      longest = math.max(longest, #text)
    end
    if vectors or code ~= "EOVERFLOW" or longest <= SHORTEST then
      return vectors, message, code
    end
    local most, cut = math.max(SHORTEST, math.floor(longest / 2)), {}
    for i, text in ipairs(request.texts) do
      cut[i] = #text <= most and text or text:sub(1, utf8.offset(text, 0, most + 1) - 1)
    end
    request = options.add(options.add({}, request), { texts = cut })
  end
end

-- ---------------------------------------------------------------- making one

local file_options = options.shape("memory: embed: lua",
  { lua = "string", name = "string", dims = "positive", window = "count" })

kinds.lua = {
  make = function(who, given) return options.check(who, given, file_options) end,
}

-- Raises if this cannot be who embeds. Nothing is run or read.
local function verify(who, spec)
  if options.callable(spec) then
    return
  elseif type(spec) ~= "table" then
    options.misuse(("%s: a function, or a table with command=, endpoint= or lua=, expected, got %s")
      :format(who, type(spec)))
  end
  local found
  for name, kind in pairs(kinds) do
    if spec[name] ~= nil then
      found = not found and kind or options.misuse(who .. ": one of command=, endpoint= and lua= "
        .. "expected")
    end
  end
  if not found then
    options.misuse(who .. ": command=, endpoint= or lua= expected in it; a function is given "
      .. "without a table, with name= and dims= beside it")
  end
  found.make(who, spec)
end

-- What a function of the host returned, or raised.
local function call(ask, request, about)
  local ok, vectors, message, code = pcall(ask, request.texts, { purpose = request.purpose,
    model = request.model, dims = request.dims, cancelled = about.stopped })
  if not ok then
    return nil, "it raised: " .. tostring(vectors), "EPOLICY"
  elseif not vectors and message ~= nil then
    return nil, tostring(message), type(code) == "string" and code or "EIO"
  end
  return vectors
end

-- A function that asks the kind, as kinds.endpoint.ask without self; nil, message, code.
local function asking(who, spec)
  local ask, kind, code = specs.kind(who, spec, file_options)
  if ask then
    return function(request, about) return call(ask, request, about) end
  elseif ask == nil then
    return nil, kind, code
  end
  local self, message
  kind = kinds[kind]
  self, message, code = kind.make(who, spec)
  if not self then
    return nil, message, code
  end
  return function(request, about) return ask_fitting(kind, self, request, about) end
end

--- Who embeds: {name=, dims=, ask=}. spec: a function, or a table as sessile.model takes, which may
--- have `name` and `dims`; name, dims: if it has none. Raises for wrong options.
---
--- ask(texts, about) returns a list of vectors; nil, message, code. about: purpose ("entry" or
--- "question"), stopped. What asks is made at the first call, so that a program or library that is
--- missing costs the answer alone.
function embedding.make(who, spec, name, dims)
  verify(who, spec)
  local known = options.callable(spec) and {} or spec
  local made = { name = known.name or name or "default", dims = known.dims or dims }
  local ask
  function made.ask(texts, about)
    local message, code
    if not ask then
      ask, message, code = asking(who, spec)
    end
    if not ask then
      return nil, message, code
    end
    local vectors
    vectors, message, code = ask({ texts = texts, model = made.name, dims = made.dims,
      purpose = about.purpose }, about)
    if vectors == nil and message ~= nil then
      return nil, message, code
    end
    vectors, message = embedding.check(vectors, #texts, made.dims)
    return vectors, message, not vectors and "EIO" or nil
  end
  return made
end

return embedding
