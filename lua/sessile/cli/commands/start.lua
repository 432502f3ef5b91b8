--- start: `sessile` without a command: what is in the store, and what to type next.
--
-- Must never create a store or a key.

local hints = require "sessile.cli.hints"
local stores = require "sessile.cli.stores"
local terminal = require "sessile.cli.terminal"

local function next_steps(rows, globals)
  local steps = {
    { "sessile demo", "a demonstration that takes a few seconds" },
    { "sessile help", "all commands" },
  }
  if #rows > 0 then
    table.insert(steps, 1, { "sessile show last --last 5", "read the newest messages" })
    table.insert(steps, 1, { "sessile list", "the sessions that are here" })
  else
    table.insert(steps, 1, { "sessile new --title 'My first session'", "make a session" })
  end
  local lines, width = {}, 40
  for _, step in ipairs(steps) do
    step[1] = hints.fill(step[1], globals)
    width = math.max(width, #step[1])
  end
  for i, step in ipairs(steps) do
    lines[i] = ("  %s%s  %s\n"):format(step[1], (" "):rep(width - #step[1]), step[2])
  end
  return table.concat(lines)
end

return {
  name = "start",
  summary = "what is here, and what to type next",
  usage = "[COMMAND …]",
  examples = { { "sessile", "what is here" } },
  run = function(app)
    app.try(app:config())
    local url, folder = stores.place(app.globals)
    local place = folder or url
    local store = app:store_if_any()
    local rows = store and app.try(app:list(store)) or {}
    if app.json then
      app:print_json {
        store = place, exists = store ~= nil, sessions = #rows,
        sealed = store and store.sealed or nil,
      }
      return
    end
    local where = terminal.line(place)
    if not store then
      app:out(("No sessions yet (they will live in %s).\n\n"):format(where))
    else
      app:out(("%d session%s in %s%s.\n\n"):format(#rows, #rows == 1 and "" or "s", where,
        store.sealed and ", sealed" or ", not sealed"))
    end
    app:out("Next:\n" .. next_steps(rows, app.globals))
  end,
}
