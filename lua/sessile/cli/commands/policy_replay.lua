--- policy replay: shows what a policy would have done to recorded conversations.
--
-- Must never write to a store: everything happens in memory.

local common = require "sessile.cli.common"
local hints = require "sessile.cli.hints"
local import = require "sessile.import"
local ledgers = require "sessile.cli.ledger"
local memory_policies = require "sessile.cli.memory_policies"
local options = require "sessile.cli.options"
local places = require "sessile.cli.places"
local progress = require "sessile.cli.progress"
local recordings = require "sessile.cli.recordings"
local replay = require "sessile.replay"
local sessile = require "sessile"
local system = require "sessile.system"

-- The policy, its triggers and its fallback. They are loaded first, so that an error in them is not
-- reported as an error of a recording.
local function policy_of(app, args)
  local chosen = common.policy(app, args.name, args.option)
  local when, wrong = options.triggers(args.triggers)
  if wrong then
    app.fail(wrong, "EUSAGE")
  end
  app.try_or(common.policy_steps(args.name), sessile.open("ram:", {
    key = false, policy = chosen, fallback = args.fallback,
  })):close()
  return { policy = chosen, triggers = when, fallback = args.fallback }
end

local function as_json(app, file, ledger)
  local copy = { file = file }
  for key, value in pairs(ledger) do
    copy[key] = type(value) == "table" and app.array(value) or value
  end
  return copy
end

-- A progress bar over the bytes of all files: a function that wraps the records of a file, and one
-- that removes the bar.
local function watch(app, files)
  local before, all = {}, 0
  for i, file in ipairs(files) do
    local _, size = system.kind(file)
    before[i], all = all, all + (math.tointeger(size) or 0)
  end
  local show, finish = progress.bar(app, "replaying", true)
  return function(records, i)
    local done = before[i]
    return function(...)
      local record = records(...)
      for _, text in ipairs(record and record.messages or {}) do
        done = done + #text
      end
      show(math.min(done, all), all)
      return record
    end
  end, finish
end

return {
  summary = "show what a policy would have done to recorded conversations",
  usage = "policy replay NAME FILE|FOLDER… [--option NAME=VALUE] [--window N] [--triggers LIST]",
  examples = [[
    sessile policy replay tiered recorded.jsonl --window 100000    one row for each compaction
    sessile policy replay ./mine.lua recordings/ --option turns=4  your policy, over a folder
    sessile policy replay edit_tools recorded.jsonl --triggers messages=50,share=0.8
      with triggers]],
  arguments = {
    common.policy_name,
    { "files", "recordings, or folders of .jsonl files", "+" },
  },
  options = {
    common.policy_option,
    { "--window N", "the model's window in tokens (else unlimited)", integer = true },
    common.reserve,
    { "--triggers LIST", "when to compact: messages=50,interval=10m,share=0.8,overflow" },
    { "--fallback NAME", "a policy to run if the first is refused" },
    { "--answer TEXT", "the answer of the model, of a policy of memories" },
    { "--from FORMAT", "the format (default: detected from the first line)",
      choices = import.names() },
  },
  about = [[
    A script plays the model that a policy asks: its summaries are short and always the
    same. REASON is `turn`, the kind of trigger that started the compaction, or the
    policy itself. REMOVED counts messages that were dropped, summarized or replaced. TOO
    BIG counts turns after which the context did not fit. PEAK, END and ALL are tokens:
    of the largest context, the last one, and the whole conversation. Of a policy of
    memories, what would be remembered and recalled is shown, turn by turn; several
    recordings teach one memory.]],
  run = function(app, args)
    local files = places.files(args.files, "%.jsonl$")
    if #files == 0 then
      return nil, "no .jsonl file is there", "ENOTFOUND", "Give a recording, or a folder of them."
    end
    local chosen = policy_of(app, args)
    if memory_policies.is_one(chosen.policy) then
      return memory_policies.replay(app, args, chosen.policy, files)
    end
    local rows, list = {}, {}
    local watched, finish = watch(app, files)
    for i, file in ipairs(files) do
      local records, why, code, step = recordings.open(file, args.from)
      if not records then
        finish()
        return nil, why, code, step
      end
      local ledger, message
      ledger, message, code = replay.run(watched(records, i), {
        policy = chosen.policy, window = args.window, reserve = args.reserve,
        triggers = chosen.triggers, fallback = chosen.fallback,
      })
      finish()
      if ledger and ledger.messages == 0 then
        ledger, message, code = nil, "there is no message in it, so there is nothing to replay",
          "EINVALID"
      end
      if not ledger then
        return nil, ("%s: %s"):format(hints.shown(file), message), code
      end
      rows[i], list[i] = { file = file, ledger = ledger }, as_json(app, file, ledger)
      if #files == 1 and not app.json and #ledger.compactions > 0 then
        app:out(ledgers.compactions(ledger, app.paint) .. "\n")
      end
      for _, line in ipairs(app.json and {} or ledgers.refusals(ledger)) do
        app:note(line)
      end
    end
    if app.json then
      app:print_json { policy = args.name, window = args.window, reserve = args.reserve,
        replays = app.array(list) }
      return
    end
    app:out(ledgers.totals(rows, app.paint))
  end,
}
