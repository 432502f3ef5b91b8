-- mixing_writer.lua: one of the processes that api/processes_spec.lua starts on one session. Its
-- arguments are a store's folder, a name, a seed, and a number of operations, which it chooses at
-- random. It prints a line for each that was acknowledged: the kind and what it wrote, separated
-- by tabs. For one that may be refused, and was, it prints "refused" and the code.

local sessile = require "sessile"

local dir, name, seed, count = arg[1], arg[2], tonumber(arg[3]), tonumber(arg[4])
math.randomseed(seed)

local store <close> = assert(sessile.open(dir, { timeout_ms = -1,
  guard = os.getenv "TEST_GUARD" }))
local s <close> = assert(store:resume "s")

local function any(list)
  return list[math.random(#list)]
end

-- What may happen to somebody who is not alone: what was seen is no longer there.
local may_be = { ECONFLICT = true, ENOTFOUND = true }

local function tell(value, message, code, kind, ...)
  if value then
    io.write(table.concat({ kind, ... }, "\t"), "\n")
  elseif may_be[code] then
    io.write("refused\t", code, "\n")
  else
    error(("%s: %s (%s)"):format(kind, message, code))
  end
end

local function message_here(leaf)
  local list = assert(s:messages(leaf and { at = leaf }))
  return #list > 0 and any(list).id
end

local kinds = {
  append = function(tag)
    local id, message, code = s:append { role = "user", content = tag }
    tell(id, message, code, "message", id, tag)
  end,
  turn = function(tag)
    local outcome, message, code = s:turn({ { role = "user", content = tag .. ".1" },
      { role = "assistant", content = tag .. ".2" } }, { on_conflict = "append" })
    tell(outcome, message, code, "turn", outcome and outcome.turn,
      outcome and table.concat(outcome.ids, " "), tag)
  end,
  branch = function()
    local where = message_here(any(assert(s:leaves())))
    if where then
      local outcome, message, code = s:branch(where, { on_conflict = any { "append", "fail" } })
      tell(outcome, message, code, "branch", where)
    end
  end,
  summary = function(tag)
    local where = message_here()
    if where then
      local outcome, message, code = s:branch(where, { summary = tag, on_conflict = "append" })
      local id = outcome and outcome.branch_summary
      tell(outcome, message, code, id and "message" or "branch", id or where, tag)
    end
  end,
  label = function(tag)
    local where = message_here()
    if where then
      local ok, message, code = s:label(where, tag)
      tell(ok, message, code, "label", where, tag)
    end
  end,
  unlabel = function()
    local labels = assert(s:labels())
    if #labels > 0 then
      local label = any(labels)
      local ok, message, code = s:unlabel(label.id, label.name)
      tell(ok, message, code, "unlabel", label.id, label.name)
    end
  end,
  pin = function()
    local where = message_here()
    if where then
      local ok, message, code = s:pin(where)
      tell(ok, message, code, "pin", where)
    end
  end,
  settings = function(tag)
    local ok, message, code = s:settings { ours = tag, [name] = tag }
    tell(ok, message, code, "settings", tag)
  end,
  title = function(tag)
    local ok, message, code = s:set_title(tag)
    tell(ok, message, code, "title", tag)
  end,
  checkpoint = function(tag)
    local id, message, code = s:checkpoint { state = tag, keep = 8,
      name = math.random(3) == 1 and tag or nil }
    tell(id, message, code, "checkpoint", id, tag)
  end,
  restore = function()
    local list = assert(s:checkpoints())
    if #list > 0 then
      local restored, message, code = s:restore(any(list).id)
      tell(restored, message, code, "restore", restored and restored.checkpoint,
        restored and restored.head)
    end
  end,
}

local often = { "append", "append", "append", "append", "turn", "turn", "label", "label",
  "checkpoint", "branch", "summary", "unlabel", "pin", "settings", "title", "restore" }

for i = 1, count do
  kinds[any(often)](("%s-%d"):format(name, i))
end
io.write "done\n"
