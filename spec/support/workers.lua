-- workers.lua: policies in a process of their own, run by the worker of this build.

local built = require "spec.support.built"
local replay = require "sessile.replay"
local sessile = require "sessile"

local workers = {}

workers.path = built.worker

--- A store in memory for the policies of this tree, with that worker and the model of replays.
--- Takes and returns what sessile.open does.
function workers.open(options)
  local given = { key = false, worker = workers.path, policy_path = "policies",
    model = replay.model }
  for name, value in pairs(options) do
    given[name] = value
  end
  return sessile.open("ram:", given)
end

-- A file of /proc about a process; "" when the process is gone.
local function proc(pid, name)
  local file <close> = io.open(("/proc/%s/%s"):format(pid, name), "rb")
  return file and file:read "a" or ""
end

--- The state of a process, a letter as in ps; nil: there is no such process.
function workers.state(pid)
  return proc(pid, "stat"):match "%) (%a) "
end

--- The processes that this one started and that run a program. alive: without zombies.
function workers.children(program, alive)
  local own, found = proc("self", "stat"):match "^%d+", {}
  for pid in require("lfs").dir "/proc" do
    local state, parent = nil, nil
    if pid:find "^%d+$" then
      state, parent = proc(pid, "stat"):match "%) (%a) (%d+)"
    end
    if parent == own and not (alive and state == "Z")
      and proc(pid, "cmdline"):find(program, 1, true) then
      found[#found + 1] = pid
    end
  end
  return found
end

return workers
