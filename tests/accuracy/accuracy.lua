-- accuracy.lua: how far each rung of token counts is from what a provider reported.
--
--   sessile run tests/accuracy/accuracy.lua FILE [FORMAT]
--
-- FILE is a recording whose replies report usage. Before each reply the context is counted, as a
-- host would to know whether the next request fits; what that request really took is the input
-- that the reply reports. An error is (counted - reported) / reported.
--
--   whole       all of the context, system prompt and tools included, which are no messages
--   next        what was added since the request before: the messages alone
--
-- "within" is how many of the true numbers lay between low and high.

local sessile = require "sessile"
local import = require "sessile.import"

local file, format = arg[1], arg[2]
if not file then
  io.stderr:write("usage: sessile run tests/accuracy/accuracy.lua FILE [FORMAT]\n")
  os.exit(2)
end

-- ---------------------------------------------------------------- the recording

local function number(usage, ...)
  for _, name in ipairs { ... } do
    if math.type(usage[name]) == "integer" then
      return usage[name]
    end
  end
  return 0
end

-- What a request took, and with its reply.
local function reported(usage)
  local input = number(usage, "input", "input_tokens", "prompt_tokens")
    + number(usage, "cache_read", "cacheRead", "cache_read_input_tokens")
    + number(usage, "cache_write", "cacheWrite", "cache_creation_input_tokens")
  return input, input + number(usage, "output", "output_tokens", "completion_tokens")
end

local function read()
  local records, message = import.open(file, format)
  if not records then
    io.stderr:write(file, ": ", message, "\n")
    os.exit(1)
  end
  local store = assert(sessile.open("ram:", { key = false }))
  local list = {}
  local scratch = assert(store:create())
  for record in records do
    for _, json in ipairs(record.messages or {}) do
      if scratch:append(sessile.json(json)) then
        list[#list + 1] = scratch:messages { last = 1 }[1]
      end
    end
  end
  return list
end

local messages = read()

-- ---------------------------------------------------------------- rungs

local function counted_with(opts, keep_usage)
  opts.key = false
  local store, message = sessile.open("ram:", opts)
  if not store then
    return nil, message
  end
  return { session = assert(store:create()), store = store, keep = keep_usage,
    whole = {}, next = {}, sources = {}, inside = 0, tries = 0 }
end

local rungs = {}
local function rung(name, opts, keep)
  local it = counted_with(opts, keep)
  if it then
    it.name = name
    rungs[#rungs + 1] = it
  end
end

rung("characters / 4", {}, false)
rungs[1].plain = true
rung("estimate", {}, false)
for _, encoding in ipairs { "o200k_base", "cl100k_base" } do
  rung(encoding, { encoding = encoding }, false)
end
rung("fitted estimate", {}, true)
rung("fitted o200k_base", { encoding = "o200k_base", model_name = "claude" }, true)

local function plain_size(message)
  local size = 0
  local function add(value)
    if type(value) == "string" then
      size = size + utf8.len(value, 1, -1, true)
    elseif type(value) == "table" then
      for key, one in pairs(value) do
        if key ~= "id" and key ~= "tool_call_id" then
          add(one)
        end
      end
    end
  end
  add(message.content)
  add(message.tool_calls)
  return size // 4
end

-- The tokens of the messages since the last reply, and of the context.
local function look(it, before)
  if it.plain then
    return it.sum or 0, (it.sum or 0) - (before or 0), nil
  end
  local tokens, info = it.session:tokens()
  return tokens, tokens - (before or 0), info
end

-- The same message without what reports usage.
local function bare(message)
  local copy = {}
  for name, value in pairs(message) do
    if name ~= "usage" and name ~= "id" and name ~= "key" and name ~= "tokens"
      and name ~= "time" and name ~= "json" then
      copy[name] = value
    end
  end
  return copy
end

local last_total
local asked = 0
for _, message in ipairs(messages) do
  local usage = message.usage
  local input, total
  if usage and message.role == "assistant" then
    input, total = reported(usage)
  end
  if input and input > 0 then
    asked = asked + 1
    for _, it in ipairs(rungs) do
      local tokens, more, info = look(it, it.before)
      it.whole[#it.whole + 1] = (tokens - input) / input
      it.sources[info and info.source or "none"] = true
      local grown = last_total and input - last_total
      if grown and grown >= 50 then
        it.next[#it.next + 1] = (more - grown) / grown
        if info then
          it.tries = it.tries + 1
          local low, high
          if it.keep then -- the report before is exact: the margin is of what follows it
            low, high = info.low - it.before, info.high - it.before
          else
            low = more - (info.tokens - info.low) * more // math.max(tokens, 1)
            high = more + (info.high - info.tokens) * more // math.max(tokens, 1)
          end
          if low <= grown and grown <= high then
            it.inside = it.inside + 1
          end
        end
      end
    end
  end
  for _, it in ipairs(rungs) do
    if it.plain then
      it.sum = (it.sum or 0) + plain_size(message)
    else
      assert(it.session:append(it.keep and sessile.json(message.json) or bare(message)))
    end
    if total and total > 0 then
      it.before = look(it, 0)
    end
  end
  if total and total > 0 then
    last_total = total
  end
end

-- ---------------------------------------------------------------- the table

local function figures(errors)
  local sizes, sum = {}, 0
  for i, error in ipairs(errors) do
    sizes[i] = math.abs(error)
    sum = sum + error
  end
  table.sort(sizes)
  local function at(share)
    return sizes[math.max(1, math.ceil(#sizes * share))] or 0
  end
  return ("%6.1f%% %6.1f%% %+6.1f%%"):format(at(0.5) * 100, at(0.95) * 100,
    (#errors > 0 and sum / #errors or 0) * 100)
end

print(("%d messages, %d requests with usage; error of |median|, |p95|, mean"):format(
  #messages, asked))
print(("%-20s %-26s %-26s %s"):format("", "whole", "next (50 tokens and more)", "within"))
for _, it in ipairs(rungs) do
  print(("%-20s %s   %s   %s"):format(it.name, figures(it.whole), figures(it.next),
    it.tries > 0 and ("%3.0f%%"):format(100 * it.inside / it.tries) or ""))
end
