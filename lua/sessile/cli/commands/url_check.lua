--- url check: looks for URLs in a text that lead inwards.
--
-- Must never fetch anything, nor resolve a name.

local sessile = require "sessile"
local terminal = require "sessile.cli.terminal"

return {
  summary = "look for URLs that lead to local or private machines",
  usage = "url check TEXT [--allow HOST]",
  examples = [[
    sessile url check http://0x7f.1/            is this URL public?
    sessile url check - < notes.md              each URL of a text
    sessile url check - --allow localhost:3000  one that is yours
    sessile url check - --only-allowed --allow .example.org
      only these hosts]],
  arguments = { { "text", "a URL, or a text with URLs; `-`: standard input" } },
  options = {
    { "--allow HOST", "a host (HOST, HOST:PORT), .DOMAIN, address or network that may be named",
      many = true },
    { "--only-allowed", "refuse every other host" },
  },
  about = [[
    No name is resolved: a public name may lead to a private address. Without --json
    nothing is printed when no URL is refused.]],
  run = function(app, args)
    local text = args.text == "-" and io.read "a" or args.text
    local ok, message, code, found = sessile.url_check(text,
      { allow = args.allow, only_allowed = args.only_allowed })
    if not ok and not found then
      return nil, message, code
    elseif not ok then
      app.fail(("%s: %s"):format(terminal.line(found.url), message), code,
        "If that host is meant, add: --allow HOST")
    end
    app:result({ refused = false }, "")
  end,
}
