--- memory embed, memory stats: the vectors of a memory, and how well it is searched.
--
-- Owns: which weight of vectors is called the best. Must never ask an embedder but for `embed` and
-- for the questions of a file.

local answers = require "sessile.answers"
local hints = require "sessile.cli.hints"
local memories = require "sessile.cli.memories"
local models = require "sessile.cli.models"
local progress = require "sessile.cli.progress"
local terminal = require "sessile.cli.terminal"

local commands = {}

local NONE = "Say who embeds in the configuration: memory = { embed = { endpoint = \"…\", "
  .. "name = \"…\" } }, or name one of `models`: --model"

-- ---------------------------------------------------------------- embed

commands["memory embed"] = {
  summary = "embed what has no vector yet in an agent's memory",
  usage = "memory embed AGENT [--user USER] [--model NAME] [--batch N] [--dry-run]",
  examples = [[
    sessile memory embed coder --user ann    what was written since
    sessile memory embed coder --model mini  by this one of the configured `models`]],
  arguments = { memories.agent },
  options = { memories.user,
    { "--model NAME", "by this one of `models` (default: memory.embed)" },
    { "--batch N", "texts of one request (default: 64)", integer = true },
    { "--dry-run", "say how many there are, ask nobody" } },
  about = [[
    Each answer is written when it comes: a command that was interrupted goes on where it
    was. Another model embeds everything again, beside the vectors of the old one.]],
  run = function(app, args)
    local memory = memories.open(app, args)
    local batch = args.batch
    if batch and (batch < 1 or batch > 256) then
      app.fail("--batch is from 1 to 256", "EUSAGE")
    end
    local embed = args.model and app.try(models.spec(app, args.model)) or nil
    local show, finish = progress.bar(app, "embedding")
    local _ <close> = setmetatable({}, { __close = finish })
    local done, message, code = memory:embed { embed = embed, name = embed and args.model,
      batch = batch, dry_run = args.dry_run, on_progress = show }
    finish()
    app.try_or({ EINVALID = NONE }, done, message, code)
    if done.verdict == "refused" then
      app.fail(("%s; %d embedded, %d still to be"):format(done.message, done.embedded,
        done.to_embed), "EIO", "What was embedded is kept. Go on: sessile memory embed "
        .. hints.shown(args.agent))
    end
    app:result({ agent = args.agent, model = done.model, embedded = done.embedded,
      to_embed = done.to_embed }, args.dry_run and ("%d to be embedded\n"):format(done.to_embed)
      or ("%d embedded\n"):format(done.embedded))
  end,
}

-- ---------------------------------------------------------------- stats

local WEIGHTS = { 0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1 }
local DEFAULT = 0.3 -- memory.weight
local CUTS = { 1, 5, 10 }

-- The questions of a file of JSON lines: a list of {question=, wanted = {id = true}, count=}.
local function read_questions(app, memory, path)
  local file, why = io.open(path, "rb")
  if not file then
    app.fail(why, "ENOTFOUND")
  end
  local guard <close> = file
  local list, n = {}, 0
  for line in guard:lines() do
    n = n + 1
    local function wrong(what)
      app.fail(("%s:%d: %s"):format(terminal.line(path), n, what), "EINVALID",
        'Each line is one question: {"question":"…","keys":["…"]}, or with "ids"')
    end
    if line:find "%S" then
      local one = answers.decode(line)
      if type(one) ~= "table" or type(one.question) ~= "string" then
        wrong "no JSON object with a text `question`"
      end
      local names = one.ids or one.keys
      if type(names) ~= "table" or #names == 0 then
        wrong "no list of `ids` or `keys`"
      end
      local wanted, count = {}, 0
      for _, name in ipairs(names) do
        local row = type(name) == "string" and (one.ids and memories.by_id(memory, name)
          or not one.ids and memory:read(name))
        if not row then
          wrong(("there is no entry '%s'"):format(terminal.line(tostring(name))))
        end
        count = wanted[row.id] and count or count + 1
        wanted[row.id] = true
      end
      list[#list + 1] = { question = one.question, wanted = wanted, count = count }
    end
  end
  if #list == 0 then
    app.fail(terminal.line(path) .. " has no question", "EINVALID")
  end
  return list
end

-- How much of what is wanted is among the first: a share for each of CUTS.
local function shares(rows, one)
  local found, out = 0, {}
  for i = 1, CUTS[#CUTS] do
    found = found + (rows[i] and one.wanted[rows[i].id] and 1 or 0)
    for k, cut in ipairs(CUTS) do
      if i == cut then
        out[k] = found / one.count
      end
    end
  end
  return out
end

-- The best of the rows: by R@5, then R@10, then R@1; of equal ones that nearest to the weight in
-- force.
local function best_of(rows, weight)
  local best
  for _, row in ipairs(rows) do
    local more = best and { row.r5 - best.r5, row.r10 - best.r10, row.r1 - best.r1,
      math.abs(best.weight - weight) - math.abs(row.weight - weight) } or { 1 }
    for _, by in ipairs(more) do
      if math.abs(by) > 1e-9 then
        best = by > 0 and row or best
        break
      end
    end
  end
  return best
end

-- Rows {weight=, r1=, r5=, r10=}, and the best of them.
local function measure(app, memory, questions)
  local rows = {}
  local show, finish = progress.bar(app, "asking")
  local _ <close> = setmetatable({}, { __close = finish })
  for q, one in ipairs(questions) do
    for w, weight in ipairs(WEIGHTS) do
      local hits, info = app.try(memory:search(one.question, { weight = weight, limit = 10 }))
      if not info.legs.vectors and weight > 0 then
        if info.legs.why then
          finish()
          app.fail(info.legs.why, "EIO")
        end
        break -- nobody embeds: words alone
      end
      local row = rows[w] or { weight = weight, r1 = 0, r5 = 0, r10 = 0 }
      rows[w] = row
      local share = shares(hits, one)
      row.r1, row.r5, row.r10 = row.r1 + share[1] / #questions, row.r5 + share[2] / #questions,
        row.r10 + share[3] / #questions
    end
    show(q, #questions)
  end
  return rows, best_of(rows, memory._settings.weight or DEFAULT)
end

local function print_measure(app, memory, path)
  local questions = read_questions(app, memory, path)
  local rows, best = measure(app, memory, questions)
  if app.json then
    return app:print_json { questions = #questions, weights = app.array(rows), best = best.weight }
  end
  local lines = {}
  for i, row in ipairs(rows) do
    lines[i] = { ("%.1f%s"):format(row.weight, row == best and " *" or ""), ("%.3f"):format(row.r1),
      ("%.3f"):format(row.r5), ("%.3f"):format(row.r10) }
  end
  app:print_table({ "weight", "R@1", "R@5", "R@10" }, lines)
  app:note(#rows == 1 and "By words alone: nobody embeds here."
    or ("Best for these %d questions: memory.weight = %g"):format(#questions, best.weight))
end

commands["memory stats"] = {
  summary = "count what an agent remembers, and measure how it is found",
  usage = "memory stats AGENT [--user USER] [--questions FILE]",
  examples = [[
    sessile memory stats coder --user ann               entries by state, consent, sizes, models
    sessile memory stats coder --questions asked.jsonl  which weight of vectors finds most]],
  arguments = { memories.agent },
  options = { memories.user,
    { "--questions FILE", "questions and what answers them: R@1, R@5, R@10 for each weight" } },
  about = [[
    Each line of FILE is a question: {"question":"which editor?","keys":["editor"]}, or
    with "ids". R@5 is the share of these entries among the five best.]],
  run = function(app, args)
    local memory = memories.open(app, args)
    if args.questions then
      return print_measure(app, memory, args.questions)
    end
    local stats = app.try(memory:stats())
    stats.models = app.array(app.try(memory:models()))
    if app.json then
      return app:print_json(stats)
    end
    local rows = {}
    for _, name in ipairs { "live", "pending", "replaced", "deleted", "rejected", "expired",
      "erased", "keys", "vectors", "language", "consented", "log_entries", "log_bytes" } do
      if name ~= "consented" or args.user then -- what is kept for all needs nobody's consent
        rows[#rows + 1] = { (name:gsub("_", " ")), tostring(stats[name]) }
      end
    end
    for _, model in ipairs(stats.models) do
      rows[#rows + 1] = { "model " .. terminal.line(model.name),
        ("%d of %d embedded, %d numbers%s"):format(model.live, model.live + model.missing,
          model.dims, model.used and ", in use" or "") }
    end
    app:print_table({ "what", "how much" }, rows)
  end,
}

return commands
