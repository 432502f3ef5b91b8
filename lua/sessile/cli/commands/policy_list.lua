--- policy list: lists the policies that can be used by name.

local paths = require "sessile.paths"
local policy_names = require "sessile.cli.policy_names"
local terminal = require "sessile.cli.terminal"

return {
  summary = "list the policies that can be used by name",
  usage = "policy list",
  examples = [[sessile policy list  the policies that ship, and yours]],
  run = function(app)
    local rows = policy_names.list()
    if app.json then
      app:print_json(app.array(rows))
      return
    end
    if #rows == 0 then
      app:note("There are no policies in " .. terminal.line(paths.policy_path()))
      return
    end
    local lines = {}
    for i, row in ipairs(rows) do
      lines[i] = { terminal.line(row.name), terminal.line(row.about) }
    end
    app:print_table({ "NAME", "ABOUT" }, lines)
  end,
}
