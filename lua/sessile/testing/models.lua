--- models: replacements for the model that a policy asks: scripted answers, recorded answers, and
-- models that fail. They use no network, and answer only what the script contains.

local core = require "sessile.core"

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

--- A model that gives these answers in order and then repeats the last one. An answer is a text, a
--- function of the request, or false for a failure. `calls` counts the requests, `requests` lists
--- them.
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

-- A request as text, the same for the same request.
local function text_of(request)
  return (assert(core.text(request)))
end

-- What a file of recorded answers holds: request -> list of answers, in the order they came.
local function read(path)
  local answers = {}
  local file = io.open(path)
  for line in file and file:lines() or function() end do
    local ok, one = pcall(function() return core.plain(core.json(line)) end)
    if not ok or type(one) ~= "table" or one.request == nil then
      error(("%s has a line that is not a recorded answer"):format(path), 0)
    end
    local key = text_of(one.request)
    answers[key] = answers[key] or {}
    table.insert(answers[key], { text = one.answer, why = one.why })
  end
  if file then
    file:close()
  end
  return answers
end

--- A model with recorded answers, so that a spec has real answers without a network. With RECORD=1
--- in the environment, `ask` answers the requests that are missing in the file, and its answers are
--- added. Else a missing request fails the test, not the policy: policy:run raises. A request that
--- is repeated gets its next recorded answer, or the last.
---@param path string  a file of lines {"request":…,"answer":…}
---@param ask (fun(request: table): string?, string?)?
function models.recorded(path, ask)
  local answers, asked = read(path), {}
  local self = { path = path, calls = 0, requests = {}, missing = {} }
  local function record(key, request)
    local text, why = ask(request)
    local file = assert(io.open(path, "a"))
    file:write(('{"request":%s,"answer":%s%s}\n'):format(key, text and core.text(text) or "null",
      why and ',"why":' .. core.text(why) or ""))
    file:close()
    answers[key] = answers[key] or {}
    table.insert(answers[key], { text = text, why = why })
  end
  return setmetatable(self, { __name = "sessile.testing.model", __call = function(_, request)
    self.calls = self.calls + 1
    self.requests[self.calls] = request
    local key = text_of(request)
    asked[key] = (asked[key] or 0) + 1
    local list = answers[key] or {}
    if asked[key] > #list and ask and os.getenv "RECORD" then
      record(key, request)
      list = answers[key]
    end
    local answer = list[math.min(asked[key], #list)]
    if not answer then
      self.missing[#self.missing + 1] = request
      return nil, "no answer was recorded"
    end
    return answer.text, answer.why
  end })
end

--- Models that fail, each in another way, by name.
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
