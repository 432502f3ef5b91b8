--- prices: what models cost, in US dollars for a million tokens.
--
-- The list prices of the providers for ordinary requests, as of `date`. Models whose price depends
-- on the size of the request are left out. A person corrects or adds to them with `prices` in the
-- configuration, which has tables like these. Must never guess: what is not here has no price.

local prices = { date = "2026-03" }

--- The kinds of tokens that have a price.
prices.fields = { "input", "output", "cache_read", "cache_write" }

-- Providers that do not sell writing to a cache separately ask the price of the input for it.
local function openai(input, cache_read, output)
  return { input = input, cache_read = cache_read, cache_write = input, output = output }
end

-- Writing to the cache for five minutes costs 1.25 times the input, reading from it a tenth.
local function anthropic(input, output)
  return { input = input, cache_read = input / 10, cache_write = input * 1.25, output = output }
end

local models = {
  ["gpt-5"] = openai(1.25, 0.125, 10), ["gpt-5-mini"] = openai(0.25, 0.025, 2),
  ["gpt-5-nano"] = openai(0.05, 0.005, 0.4), ["gpt-5-codex"] = openai(1.25, 0.125, 10),
  ["gpt-5.1"] = openai(1.25, 0.125, 10), ["gpt-5.1-codex"] = openai(1.25, 0.125, 10),
  ["gpt-5.1-codex-max"] = openai(1.25, 0.125, 10),
  ["gpt-5.1-codex-mini"] = openai(0.25, 0.025, 2),
  ["gpt-5.2"] = openai(1.75, 0.175, 14), ["gpt-5.2-codex"] = openai(1.75, 0.175, 14),
  ["gpt-5.3-codex"] = openai(1.75, 0.175, 14),
  ["gpt-4.1"] = openai(2, 0.5, 8), ["gpt-4.1-mini"] = openai(0.4, 0.1, 1.6),
  ["gpt-4.1-nano"] = openai(0.1, 0.025, 0.4),
  ["gpt-4o"] = openai(2.5, 1.25, 10), ["gpt-4o-mini"] = openai(0.15, 0.075, 0.6),
  ["o3"] = openai(2, 0.5, 8), ["o3-mini"] = openai(1.1, 0.55, 4.4),
  ["o4-mini"] = openai(1.1, 0.275, 4.4),
  ["claude-opus-4-6"] = anthropic(5, 25), ["claude-opus-4-5"] = anthropic(5, 25),
  ["claude-opus-4-1"] = anthropic(15, 75), ["claude-opus-4-0"] = anthropic(15, 75),
  ["claude-opus-4"] = anthropic(15, 75),
  ["claude-sonnet-4-6"] = anthropic(3, 15), ["claude-sonnet-4-5"] = anthropic(3, 15),
  ["claude-sonnet-4-0"] = anthropic(3, 15), ["claude-sonnet-4"] = anthropic(3, 15),
  ["claude-3-7-sonnet"] = anthropic(3, 15), ["claude-haiku-4-5"] = anthropic(1, 5),
  ["claude-3-5-haiku"] = anthropic(0.8, 4),
}

-- The name of a model without who serves it, and without the date of its release.
local function family(name)
  name = name:match "([^/]+)$" or name
  for _, dated in ipairs { "^(.+)[-@]%d%d%d%d%-?%d%d%-?%d%d$", "^(.+)%-latest$" } do
    name = name:match(dated) or name
  end
  return name
end

--- The price of a model: dollars for a million tokens of each kind; nil: not known.
---@param model string
---@param own table<string, table<string, number>>?  of the configuration; they come first
---@return table<string, number>?
function prices.of(model, own)
  local short = family(model)
  return own and (own[model] or own[short]) or models[model] or models[short]
end

--- What tokens cost at a price, in dollars; nil: a kind that was used has no price.
---@param usage table<string, integer>
---@param price table<string, number>?
---@return number?
function prices.cost(usage, price)
  local sum = 0
  for _, field in ipairs(prices.fields) do
    local tokens = usage[field]
    if tokens ~= 0 then
      if not (price and price[field]) then
        return nil
      end
      sum = sum + tokens * price[field] / 1e6
    end
  end
  return sum
end

return prices
