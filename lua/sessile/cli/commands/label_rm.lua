--- label rm: takes labels away from an entry.
--
-- Owns: what is meant when no label is named: all of them. Must never take a pin away with
-- them: that is asked for with `unpin`.

local entries = require "sessile.cli.entries"
local hints = require "sessile.cli.hints"

local function names_of(session, id)
  local labels, message, code = session:labels()
  if not labels then
    return nil, message, code
  end
  local names = {}
  for _, label in ipairs(labels) do
    if label.id == id and label.name ~= "pinned" then
      names[#names + 1] = label.name
    end
  end
  if #names == 0 then
    return nil, ("entry %s has no label"):format(id), "ENOTFOUND",
      "See them: sessile label list " .. hints.id(session.id)
  end
  return names
end

return {
  name = "label rm",
  summary = "remove a label from an entry, or all its labels",
  usage = "label rm ID ENTRY [NAME]",
  examples = {
    { "sessile label rm bug-42 2a before-deploy", "one" },
    { "sessile label rm bug-42 2a", "all labels of that entry; a pin stays" },
  },
  arguments = {
    entries.arguments[1], entries.arguments[2],
    { "name", "the label (default: all of them, but not the pin)", "?", is = "label name" },
  },
  run = function(app, args)
    local session, id, code, step = entries.open(app, args.id, args.entry)
    if not session then
      return nil, id, code, step
    end
    local _ <close> = app.closing(session)
    local names, message = { args.name }, nil
    if not args.name then
      names, message, code, step = names_of(session, id)
    end
    if not names then
      return nil, message, code, step
    end
    for _, name in ipairs(names) do
      local ok
      ok, message, code = session:unlabel(id, name)
      if not ok then
        return nil, message, code, code == "ENOTFOUND"
          and "See them: sessile label list " .. hints.id(session.id) or nil
      end
    end
    if app.json then
      app:print_json { session = session.id, entry = id, removed = app.array(names) }
    end
  end,
}
