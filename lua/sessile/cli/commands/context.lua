--- context: prints what the model would get.
--
-- Must never change the session.

local common = require "sessile.cli.common"
local json = require "sessile.cli.json"
local render = require "sessile.cli.render"
local terminal = require "sessile.cli.terminal"

-- Writes the body of a request to an API; its caller adds the model.
local function request(app, session, to)
  local safe = terminal.is_terminal(1) and json.inert or function(text) return text end
  local done = app.try(session:export { to = to, context = true, write = function(text)
    app:out(safe(text))
  end })
  for _, note in ipairs(done.notes or {}) do
    app:note(note .. ".")
  end
end

return {
  summary = "print what the model would get: the messages after compaction",
  usage = "context ID [--model M] [--to API]",
  examples = [[
    sessile context last                                        as readable text
    sessile context bug-42 --to openai                          as a request: {"messages": […]}
    sessile context bug-42 --json | jq '[.messages[].message]'  the messages as they are stored]],
  arguments = { common.session },
  options = {
    { "--to API", "as the body of a request to this API",
      choices = { "openai", "anthropic" } },
    { "--model M", "count tokens for this model (default: the session's)" },
  },
  run = function(app, args)
    local session = app:open(args.id)
    if args.to then
      return request(app, session, args.to)
    end
    local list, info = app.try(session:context { model = args.model })
    if app.json then
      app:print_json {
        messages = render.list(app, list), tokens = info.tokens, source = info.source,
        low = info.low, high = info.high, room = info.room,
        head = info.head, dropped = info.dropped, orphans = info.orphans,
        unanswered = info.unanswered, lost = info.lost,
      }
    else
      local now = app.now()
      for i, found in ipairs(list) do
        app:out((i > 1 and "\n" or "") .. render.message(found, app.paint, now))
      end
      io.stdout:flush()
      local left = info.dropped or 0
      app:note(("%d message%s, %s; %s"):format(#list, #list == 1 and "" or "s",
        terminal.tokens(info), left == 0 and "nothing was left out"
          or ("%d of the conversation left out"):format(left)))
      if info.lost > 0 then
        app:note(("%d of its entries %s lost to damage; messages among them are not shown")
          :format(info.lost, info.lost == 1 and "is" or "are"))
      end
    end
  end,
}
