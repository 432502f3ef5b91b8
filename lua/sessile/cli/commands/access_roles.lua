--- access roles: what each role may do.

local roles = require "sessile.cli.roles"
local terminal = require "sessile.cli.terminal"

return {
  summary = "show what each role may do",
  usage = "access roles",
  examples = [[
    sessile access roles                                  a line for each permission
    sessile access roles --json | jq '.roles[].role' -r   the names of the roles]],
  about = [[
    Four roles are in every store; more are set by guard.roles in your configuration. No
    store is opened. A role is given by a token, an access key or a grant. What a user may
    in the end: sessile access explain.]],
  run = function(app)
    local role_of, own = roles.teller(app)
    local list = {}
    for i, name in ipairs(roles.names(own)) do
      list[i] = role_of(name)
    end
    if app.json then
      local rows, allows = {}, {}
      for i, role in ipairs(list) do
        rows[i] = { role = role.name, sessions = role.all and "all" or "own",
          permissions = app.array(role.permissions) }
      end
      for i, name in ipairs(roles.permissions()) do
        allows[i] = { permission = name, allows = roles.ALLOWS[name] }
      end
      app:print_json { roles = app.array(rows), permissions = app.array(allows) }
      return
    end
    local headings, of = { "PERMISSION" }, { "whose sessions" }
    for i, role in ipairs(list) do
      headings[i + 1] = terminal.line(role.name):upper()
      of[i + 1] = role.all and "all" or "own"
    end
    headings[#headings + 1], of[#of + 1] = "ALLOWS TO", ""
    local rows = { of }
    for _, name in ipairs(roles.permissions()) do
      local row = { name }
      for i, role in ipairs(list) do
        row[i + 1] = role.may[name] and "yes" or ""
      end
      row[#row + 1] = roles.ALLOWS[name] or ""
      rows[#rows + 1] = row
    end
    app:print_table(headings, rows, { "ALLOWS TO" })
  end,
}
