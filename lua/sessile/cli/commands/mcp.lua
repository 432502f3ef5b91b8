--- mcp: lets other agents read the store, over the Model Context Protocol.
--
-- Owns: the store that is served, and what of it is shown. Standard output has nothing but answers.

local server = require "sessile.mcp.server"
local sessile = require "sessile"
local terminal = require "sessile.cli.terminal"

-- A function that returns the store, which is opened when there is one; false: there is none yet. A
-- server may be started before anything was stored.
local function opener(app)
  return function(create)
    local store, message, code, step, absent, rule = app:store(create)
    if not store and absent then
      return false
    end
    return store, message, code, step, rule
  end
end

return {
  summary = "let other agents search and read sessions, over MCP",
  usage = "mcp [--write] [--agent NAME] [--user NAME]",
  examples = [[
    claude mcp add sessile -- sessile mcp    Claude Code searches and reads your sessions
    sessile mcp --agent coder                only those of one agent
    sessile mcp --write                      it may also leave notes, fork and remember]],
  options = { { "--write", "also offer tools that add something" } },
  about = [[
    A host of MCP, such as Claude Code, Cursor or Zed, starts this program and talks to it over
    standard input and output. Models get tools that search and read sessions, explain what became
    of a message, and search long-term memory. Nothing is changed without --write, and with it
    things are only added. What is stored is quoted, as data that others wrote, and redacted as
    `sessile export --redact` does. --agent and --user narrow what can be seen.]],
  run = function(app, args)
    local open = opener(app)
    local store, message, code, step, rule = open() -- a wrong key is reported now, not to a model
    if store == nil then
      return nil, message, code, step, rule
    end
    if terminal.is_terminal(0) then
      app:note "It waits for a host of MCP to talk to it on standard input. Ctrl-D ends it."
    end
    server.new {
      store = open, agent = app.globals.agent, user = app.globals.user, writes = args.write,
      version = sessile.version, tell = function(text) app:note(text) end,
    }:run(require "sessile.stdio".open(server.LINE))
  end,
}
