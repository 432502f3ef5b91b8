-- memory_embed.lua: the vectors of a memory: who embeds is asked for them, and an outside index is
-- kept beside it.
--
-- A failure costs the vectors' leg of a search, never the search: words find what they find.

local dialect = require "sessile.dialect"
local embedding = require "sessile.model.embedding"
local memory_runs = require "sessile.memory_runs"
local options = require "sessile.options"

local utf8 = dialect.utf8

local embed = {}

local QUESTIONS = 8  -- whose vectors a handle keeps
local LONGEST = 8000 -- bytes of a question that are embedded, as of an entry
local ASKED, TIMES = 100, 4 -- hits of an outside index: at least; of the limit

-- Calls a function of `memory.vectors`: its result; nil and why there is none.
local function call(vectors, name, what, context)
  local ok, result, message = pcall(vectors[name], what, context)
  if not ok then
    return nil, ("memory.vectors.%s raised: %s"):format(name, tostring(result))
  elseif result == nil or result == false then
    return nil, message ~= nil and ("memory.vectors.%s: %s"):format(name, tostring(message))
      or nil
  end
  return result
end

-- What such a function is told beside.
local function context_of(memory, more)
  local user = memory._user
  return options.add({ agent = memory._agent, user = user and user ~= "" and user or nil }, more)
end

-- ---------------------------------------------------------------- questions

--- The vector of a question: {vector=, model=}; or {why=}: there is none, and why, unless nobody
--- embeds here. own: settings; kept: a table in which vectors are kept.
function embed.question(own, kept, question, weight)
  local who = own.embed
  if not who then
    return {}
  elseif weight == 0 then
    return { why = "the weight of vectors is 0" }
  elseif not question:find "%S" then
    return { why = "the question is empty" }
  end
  local text = question
  if #text > LONGEST then
    text = text:sub(1, (utf8.len(text) and utf8.offset(text, 0, LONGEST + 1) or LONGEST + 1) - 1)
  end
  for i, known in ipairs(kept) do
    if known.text == text then
      table.insert(kept, 1, table.remove(kept, i))
      return known
    end
  end
  local vectors, message = who.ask({ text }, { purpose = "question" })
  if not vectors then
    return { why = "the question was not embedded: " .. message }
  end
  local found = { text = text, vector = vectors[1], model = who.name }
  table.insert(kept, 1, found)
  kept[QUESTIONS + 1] = nil
  return found
end

-- What the outside index answers: a list of {id, score}; nil and why not.
local function search_outside(memory, vectors, found, limit)
  local hits, why = call(vectors, "search", found.vector, context_of(memory, {
    model = found.model, limit = math.max(ASKED, TIMES * limit) }))
  if not hits then
    return nil, why or "memory.vectors.search returned nothing"
  elseif type(hits) ~= "table" then
    return nil, ("memory.vectors.search returned a %s, not a list"):format(type(hits))
  end
  local list = {}
  for i, hit in ipairs(hits) do
    local id, score = type(hit) == "table" and hit.id, type(hit) == "table" and hit.score
    if type(score) ~= "number" or score ~= score or math.abs(score) > 3.4e38 then
      return nil, ("memory.vectors.search: hit %d has no score"):format(i)
    elseif type(id) ~= "string" then
      return nil, ("memory.vectors.search: hit %d has no id"):format(i)
    elseif id:find "^%x%x%x%x%x%x%x%x$" and id:lower() ~= "ffffffff" then -- else it is not here
      list[#list + 1] = { id = id, score = score }
    end
  end
  return list
end

-- Why there was no leg of vectors though there is a vector; nil: there was one.
local function why_none(memory, found, rows)
  for _, row in ipairs(rows) do
    if (row.cos or 0) ~= 0 then
      return nil
    end
  end
  for _, model in ipairs(memory._core:models() or {}) do
    if model.live > 0 and (found.model == nil or model.name == found.model)
      and model.dims == #found.vector then
      return nil
    end
  end
  return found.model and ("no entry has a vector of '%s' with %d dimensions yet: embed them")
    :format(found.model, #found.vector) or "no entry has a vector"
end

--- Searches a memory. found: of embed.question, or {vector=, model=} that the caller gave (given =
--- true). Returns rows and {legs = {words=, vectors=, why=}}; nil, message, code.
function embed.search(memory, question, opts, found, limit)
  local legs = { words = true, vectors = found.vector ~= nil, why = found.why }
  local vectors = memory._settings.vectors
  opts.vector, opts.model = found.vector or nil, found.model
  if found.vector and vectors then
    opts.vector = nil
    opts.outside, legs.why = search_outside(memory, vectors, found, limit)
    legs.vectors = opts.outside ~= nil
  end
  local rows, message, code, retry_ms, rule = memory._core:search(question, opts)
  if not rows and found.vector and not found.given and not rule then
    -- the vector does not fit what is here: that costs its leg alone
    opts.vector, opts.outside, legs.vectors, legs.why = nil, nil, false, message
    rows, message, code, retry_ms, rule = memory._core:search(question, opts)
  elseif rows and opts.vector then
    legs.why = why_none(memory, found, rows)
    legs.vectors = legs.why == nil
  end
  if not rows then
    return nil, message, code, retry_ms, rule
  end
  return rows, { legs = legs }
end

--- Prepares a recall from the memories of a session (of: sessile.Memories; names: those that are
--- open). Sets what it is about in opts. Returns options of the run, and who embeds in it: if the
--- call does not say the question, the engine knows it and asks.
function embed.recall(own, of, names, opts)
  local who = own.embed
  if not who or opts.vector ~= nil or opts.entries or opts.weight == 0 then
    opts.vector = opts.vector or nil
    return {}
  end
  local found
  local function ask(texts)
    found = embed.question(own, of._questions, texts[1])
    return found.vector and { found.vector }, found.why
  end
  if not opts.question or opts.question == "" then
    return { embed_model = who.name, embed_dims = who.dims }, ask
  elseif not ask { opts.question } then
    return { why = found.why }
  elseif not own.vectors then
    opts.vector, opts.model = found.vector, found.model
    return {}
  end
  local all = {}
  for at, name in ipairs(names) do
    local list, why = search_outside({ _agent = of._agent, _user = name == "user" and of._user },
      own.vectors, found, opts.limit or 0)
    if not list then
      return { why = why }
    end
    for _, hit in ipairs(list) do
      hit.memory = at - 1
      all[#all + 1] = hit
    end
  end
  opts.outside = all
  return {}
end

-- ---------------------------------------------------------------- the run

-- Puts the vectors of entries into the outside index: true; or nil and why it does not have them.
local function put(memory, ids, vectors, model)
  local index = memory._settings.vectors
  if not index then
    return true
  end
  local entries = {}
  for i, vector in ipairs(vectors) do
    entries[i] = { id = ids[i], vector = vector }
  end
  local done, why = call(index, "put", entries, context_of(memory,
    { model = model, dims = #vectors[1] }))
  return done, not done and (why or "memory.vectors.put returned nothing") or nil
end

-- The run to its end: its outcome; nil, message, code. opts: checked; dry: nobody is asked.
local function drive(memory, who, opts, dry, ask)
  local run, message, code, retry_ms, rule = memory._core:embed_run { embed_model = who.name,
    embed_dims = who.dims, embed_batch = opts.batch, dry_run = dry, timeout_ms = opts.timeout_ms }
  if not run then
    return nil, message, code, retry_ms, rule
  end
  return memory_runs.drive(run, { embed = ask })
end

local run_options = options.shape("memory:embed", {
  embed = "any", name = "string", dims = "positive", batch = "positive", dry_run = "boolean",
  timeout_ms = "timeout", on_progress = "callable",
})

--- Embeds the live entries that have no vector of the model, batch by batch, each durable when it
--- came. Returns {verdict=, embedded=, to_embed=, model=, message=}; nil, message, code.
--- on_progress(embedded, of) is called before each batch, and at the end.
function embed.run(memory, given)
  local opts = options.check("memory:embed", given, run_options)
  local who = memory._settings.embed
  if opts.embed ~= nil then
    who = embedding.make("memory:embed: option 'embed'", opts.embed, opts.name, opts.dims)
  end
  if not who then
    return nil, "nobody embeds here: say who, as memory = { embed = … }, or embed = …", "EINVALID"
  end
  local progress, asked, all = opts.on_progress or function() end, 0, nil
  if opts.on_progress then
    local before, message, code, retry_ms, rule = drive(memory, who, opts, true)
    if not before then
      return nil, message, code, retry_ms, rule
    end
    all = before.to_embed
  end
  local outcome, message, code, retry_ms, rule =
    drive(memory, who, opts, opts.dry_run, function(texts, request)
    progress(asked, all)
    local vectors, why = who.ask(texts, request)
    local done = vectors
    if vectors then
      -- before the entries count as embedded, so that what fails is tried again
      done, why = put(memory, request.ids, vectors, who.name)
    end
    asked = asked + #texts
    return done and vectors, why
  end)
  if not outcome then
    return nil, message, code, retry_ms, rule
  end
  progress(outcome.embedded, all)
  return { verdict = outcome.verdict, embedded = outcome.embedded, to_embed = outcome.to_embed,
    model = who.name, message = outcome.message ~= "" and outcome.message or nil }
end

-- ---------------------------------------------------------------- the outside index

-- The text of an entry, as the engine's run has it (engine/memory_run/embed.c).
local function text_of(row)
  local text = (row.key and row.key ~= "" and row.key .. ": " or "") .. row.value
    .. (row.also and row.also ~= "" and "\n" .. row.also or "")
  return #text <= LONGEST and text or text:sub(1, utf8.offset(text, 0, LONGEST + 1) - 1)
end

--- Puts an entry that is live again into the outside index. What fails is found by its words.
function embed.put_again(memory, id)
  local who, vectors = memory._settings.embed, memory._settings.vectors
  local row = who and vectors and vectors.remove and memory._core:get(id)
  if row and row.state == "live" then
    local found = who.ask({ text_of(row) }, { purpose = "entry" })
    return found and put(memory, { id }, found, who.name)
  end
end

--- Tells the outside index that entries are gone. true; or nil and why it still has them.
function embed.remove(memory, ids)
  local vectors = memory._settings.vectors
  if not vectors or not vectors.remove or #ids == 0 then
    return true
  end
  local done, why = call(vectors, "remove", ids, context_of(memory))
  return done or nil, not done and (why or "memory.vectors.remove returned nothing") or nil
end

-- The ids of what was erased, as a set and a list; the list without those of `known`.
local function erased(memory, known)
  local set, list = {}, {}
  for _, row in ipairs(memory._core:list { states = { "erased" } } or {}) do
    set[row.id] = true
    list[#list + 1] = not (known and known[row.id]) and row.id or nil
  end
  return set, list
end

--- Erases, and tells the outside index what is gone. erase: does it. Returns what that returns, and
--- {outside = why} if the index still has the vectors.
function embed.erase(memory, erase)
  local vectors = memory._settings.vectors
  local before = vectors and vectors.remove and erased(memory)
  local count, message, code, retry_ms, rule = erase()
  if not count then
    return nil, message, code, retry_ms, rule
  elseif not vectors then
    return count
  elseif not vectors.remove then
    return count, { outside = "memory.vectors has no remove" }
  end
  local _, ids = erased(memory, before)
  local done, why = embed.remove(memory, ids)
  return count, not done and { outside = why } or nil
end

return embed
