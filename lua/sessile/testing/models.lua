--- models: what plays the model when a policy asks one. No network.
--
-- Owns: scripted answers, recorded answers, and the ways in which a model can fail. Must never
-- answer what the script does not say.

local models = {}

local meta = { __name = "sessile.testing.model" }
meta.__index = meta

-- Raised as an error of the test, not of the model: the policy must not be able to hide it.
local function answer_of(self, request)
  local answers = self.answers
  local answer = answers[math.min(#self.requests, answers.n)]
  if type(answer) == "function" then
    return answer(request)
  end
  if answer == false then
    return nil, "the model was told to fail"
  end
  return answer
end

function meta.__call(self, request)
  self.calls = self.calls + 1
  self.requests[self.calls] = request
  return answer_of(self, request)
end

--- A model that gives these answers in order, the last one for ever. An answer is a text, a
--- function of the request, or false: it fails. `calls` counts, `requests` remembers.
---@param answers (string|false|fun(request: table): string?, string?)[]|string
function models.scripted(answers)
  if type(answers) == "string" then
    answers = { answers }
  end
  local list = { n = 0 }
  for i, answer in ipairs(answers) do
    list[i], list.n = answer, i
  end
  if list.n == 0 then
    error("a scripted model needs at least one answer", 3)
  end
  return setmetatable({ answers = list, calls = 0, requests = {} }, meta)
end

--- What a model may do wrong, by name: each is a model of its own.
---@return {name: string, model: table}[]
function models.faults()
  local list = {
    { "says nothing", false },
    { "raises", function() error("the line is dead") end },
    { "raises a table", function() error { code = 500 } end },
    { "answers with an empty text", "" },
    { "answers with blanks", "   \n" },
    { "answers with far too much", ("too much "):rep(100000) },
    { "answers with bytes that are no UTF-8", "\xff\xfe bad \xc3" },
    { "answers with a NUL", "before\0after" },
    { "answers with a number", function() return 42 end },
    { "answers with a table", function() return {} end },
    { "answers like a tool call", '{"tool_calls":[{"id":"x","name":"rm","arguments":"{}"}]}' },
  }
  for i, fault in ipairs(list) do
    list[i] = { name = fault[1], model = models.scripted { fault[2] } }
  end
  return list
end

return models
