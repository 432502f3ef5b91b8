--- exchange: one question and its answer, which is shown as it arrives and can be stopped by
--- Ctrl-C.
--
-- Owns: an answer that was stopped: the part that was shown is kept as a message whose metadata
-- says so. Must never print a control sequence of an answer, nor lose the person's message: it is
-- in the log before the model is asked.

local terminal = require "sessile.cli.terminal"

local exchange = {}

---@class sessile.cli.exchange
---@field session sessile.Session
---@field model sessile.cli.model
---@field policy any           as session:send takes it; nil: what is configured
---@field show fun(text: string)?  gets what is shown, already inert
---@field reason fun(text: string)?  the same for the model's reasoning
---@field stopped fun(): boolean

-- Keeps the part of an answer that arrived before it was stopped.
local function keep(given, said, reasoning, why)
  if said == "" then
    return nil
  end
  return given.session:append { role = "assistant", content = said,
    reasoning_content = reasoning ~= "" and reasoning or nil,
    metadata = { interrupted = true, reason = why } }
end

--- Asks the model. text: the person's message; nil: continue the turn that is under way. Returns
--- the outcome with two more fields, `compactions` (a list) and `kept` (the entry of a stopped
--- answer); nil, message, code if it could not begin.
---@param given sessile.cli.exchange
---@param text string?
function exchange.run(given, text)
  local said, compactions = nil, {}
  -- Passes text to `to` with escapes removed, and collects it in a list.
  local function way(to)
    local safe, list = terminal.stream(), {}
    local function pass(piece)
      if to and piece ~= "" then
        to(piece)
      end
    end
    return { list = list, add = function(piece)
      list[#list + 1] = piece
      pass(safe:feed(piece))
    end, finish = function() pass(safe:finish()) end }
  end
  local function finish()
    said.reasoning.finish()
    said.text.finish()
  end
  local function begin()
    said = { text = way(given.show), reasoning = way(given.reason) }
  end
  begin()
  local function on_event(event)
    if event.type == "model" then
      finish()
      begin()
    elseif event.type == "text" then
      said.reasoning.finish()
    end
    if said[event.type] then
      said[event.type].add(event.text)
    elseif event.type == "compact" then
      compactions[#compactions + 1] = event.outcome
    end
  end
  local model = given.model
  local outcome, message, code = given.session:send(text, {
    model = function(request, ctx)
      local cancelled = ctx.cancelled
      return model.ask(request, { on_text = ctx.on_text, on_reasoning = ctx.on_reasoning,
        session = ctx.session, reason = ctx.reason, step = ctx.step,
        cancelled = function() return given.stopped() or cancelled and cancelled() or false end })
    end,
    model_name = model.name, window = given.window, reserve = given.reserve,
    policy = given.policy, on_event = on_event, on_conflict = "append", max_steps = 8,
  })
  finish()
  if not outcome then
    return nil, message, code
  end
  local whole = table.concat(said.text.list)
  if outcome.status == "completed" and whole == "" and outcome.text ~= "" then
    if given.show then
      given.show(terminal.safe(outcome.text)) -- the model did not stream
    end
  elseif outcome.status == "failed" then
    local stopped = outcome.code == "ECANCELLED"
    rawset(outcome, "kept", keep(given, whole, table.concat(said.reasoning.list),
      stopped and "stopped" or outcome.error))
  end
  if outcome.compaction then
    compactions[#compactions + 1] = outcome
  end
  rawset(outcome, "compactions", compactions)
  return outcome
end

return exchange
