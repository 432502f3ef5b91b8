-- command.lua: asks a program: the request is JSON on its standard input, the answer is on its
-- standard output.
--
-- No shell is used: the program gets its arguments unchanged. If the program fails, what it has
-- printed is not an answer.

local answers = require "sessile.answers"
local core = require "sessile.core"
local options = require "sessile.options"

local command = {}

local TIMEOUT_MS, WHOLE = 120000, 10 -- without output; ten times that in total
local MOST = 16 * 1024 * 1024  -- bytes of its output

--- Whether programs can be started: only in the executable.
local function processes()
  local found, process = pcall(require, "sessile.process")
  return found and process or nil
end

-- The answer in a program's output: a JSON object with content, tool calls or an error; anything
-- else is a text.
local function answer_of(out)
  local body = out:find "^%s*{" and answers.decode(out)
  if type(body) ~= "table" then
    return (out:gsub("\r?\n$", ""))
  elseif body.error ~= nil and body.error ~= core.null then
    local failure = type(body.error) == "table" and body.error or { message = body.error }
    local code = type(failure.code) == "string" and failure.code or nil
    return nil, tostring(failure.message or "the program says that it failed"), code
  elseif body.content == nil and body.tool_calls == nil then
    return (out:gsub("\r?\n$", ""))
  end
  body.role = body.role ~= core.null and body.role or nil
  for name, value in pairs(body) do
    if value == core.null then
      body[name] = nil
    end
  end
  return body
end

local function ending(done, name, said)
  local why = done.signal and ("was ended by signal %d"):format(done.signal)
    or ("failed with exit code %d"):format(done.status)
  said = said:gsub("[%c%s]+", " "):gsub("^ ", ""):gsub(" $", "")
  if #said > 500 then
    said = "…" .. said:sub(utf8.len(said) and utf8.offset(said, 0, #said - 499) or -500)
  end
  return ("the program %s %s%s"):format(name, why, said ~= "" and ": " .. said or "")
end

--- Runs the program: what it printed; nil, message, code. about: stopped. on_output: gets pieces.
function command.run(self, request, about, on_output)
  local input, why = core.text(request)
  if not input then
    return nil, "the request cannot be written: " .. why, "EINVALID"
  end
  local done, message, code = processes().run(self.words, {
    input = input, timeout_ms = self.timeout_ms,
    whole_ms = self.timeout_ms * WHOLE, most = MOST, on_output = on_output,
    stopped = about.stopped, slice_ms = about.slice_ms,
  })
  local name = self.words[1]
  if not done then
    return nil, code == "ECANCELLED" and message or ("the program %s: %s"):format(name, message),
      code
  elseif done.signal or done.status ~= 0 then
    local failed = ending(done, name, done.err)
    return nil, failed, answers.overflow(failed) and "EOVERFLOW" or "EIO"
  end
  return done.out
end

--- Asks the program. about: on_text, on_reasoning, stopped. Returns the answer; nil, message, code.
function command.ask(self, request, about)
  -- What begins like JSON is shown when it is known what it is.
  local plain
  local function show(piece)
    if plain == nil and piece:find "%S" then
      plain = not piece:find "^%s*{"
    end
    if plain and about.on_text then
      about.on_text(piece)
    end
  end
  local out, message, code = command.run(self, request, about, show)
  if not out then
    return nil, message, code
  end
  local answer
  answer, message, code = answer_of(out)
  if not answer then
    return nil, message, code
  elseif answer == "" then
    return nil, ("the program %s printed no answer"):format(self.words[1]), "EIO"
  elseif plain == false and about.on_text then
    local text = type(answer) == "string" and answer or answers.text(answer)
    local reasoning = type(answer) == "table" and answers.reasoning(answer)
    if reasoning and about.on_reasoning then
      about.on_reasoning(reasoning)
    end
    if text ~= "" then
      about.on_text(text)
    end
  end
  return answer
end

local command_options = options.shape("sessile.model: command", {
  command = "strings", name = "string", timeout_ms = "timeout", window = "count", dims = "positive",
})

--- Checks a table of options and returns the command; nil, message, code. Raises for wrong options.
function command.make(who, given)
  local opts = options.check(who, given, command_options)
  local words = {}
  for i, word in ipairs(opts.command) do
    if type(word) ~= "string" or word:find("\0", 1, true) then
      options.misuse(who .. ": command: a list of words expected, the program first")
    end
    words[i] = word
  end
  if #words == 0 or words[1] == "" then
    options.misuse(who .. ": command: a list of words expected, the program first")
  elseif not processes() then
    return nil, "a command is asked by the executable alone (sessile run, sessile chat): give a "
      .. "Lua function here", "EUNSUPPORTED"
  end
  return { words = words, timeout_ms = opts.timeout_ms or TIMEOUT_MS }
end

return command
