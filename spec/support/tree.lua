-- tree.lua: `sessile tree` on a terminal of terminal.lua: a session to look at, opened and left.

local cli = require "spec.support.cli"

local tree = {}

--- Makes the session `talk` of n questions and answers: entry 1 question 1, 2 answer 1, …
function tree.talk(n)
  cli.write(cli.home() .. "/talk.lua", ([[
    local store <close> = assert(require("sessile").open(os.getenv "SESSILE_STORE"))
    local s <close> = assert(store:create { id = "talk" })
    for i = 1, %d do
      assert(s:append { role = "user", content = "question " .. i })
      assert(s:append { role = "assistant", content = "answer " .. i })
    end
  ]]):format(n))
  cli.done("run " .. cli.home() .. "/talk.lua")
end

--- Runs `sessile tree talk`, or other words, and waits until it is on the screen.
function tree.open(at, words)
  at:run(words or "tree talk")
  at:wait "? help"
end

--- Waits until the entry of that number is selected (the preview names it): the screen.
function tree.selected(at, id)
  return at:wait(("0"):rep(8 - #id) .. id .. "  ")
end

--- Leaves it, and waits for the shell.
function tree.leave(at)
  at:keys "q"
  at:wait(function(seen) return seen:find("^%$") or seen:find("\n%$") end)
end

return tree
