--- run: runs a Lua script that can use the engine.
--
-- Owns: `arg`, `...` and the exit code of the script. Must never parse the words after the script's
-- name.

local terminal = require "sessile.cli.terminal"

return {
  summary = "run a Lua script that can use the engine",
  usage = "run SCRIPT.lua [ARGUMENT…]",
  examples = [[
    sessile run examples/hello.lua            require "sessile" works in it
    sessile run report.lua --since yesterday  options after the name belong to the script]],
  arguments = { { "script", "a Lua file, or `-`: standard input" } },
  raw = true,
  about = [[
    If the script returns an integer, it is the exit code. As with the program lua, arg[0] is the
    script; arg[-2] and arg[-1] are the words before it: the path of sessile, and "run".]],
  run = function(_, args)
    local path = args.script
    local chunk, message
    if path == "-" then
      chunk, message = load(io.stdin:read "a" or "", "=stdin", "t")
    else
      chunk, message = loadfile(path, "t")
    end
    if not chunk then
      local missing = message:find("cannot open", 1, true) ~= nil
      return nil, message, missing and "ENOTFOUND" or "EINVALID",
        missing and "Give the path of a Lua file." or "Mend the script."
    end
    local words = table.move(args.rest, 1, #args.rest, 1, { [0] = path, [-1] = "run",
      [-2] = arg[0] })
    _G.arg = words
    local ok, result = xpcall(chunk, debug.traceback, table.unpack(words))
    if not ok then
      io.stderr:write("sessile: ", terminal.safe(tostring(result)), "\n")
      return 1
    end
    return math.type(result) == "integer" and result or 0
  end,
}
