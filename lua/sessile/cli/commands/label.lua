--- label: label, label list, label rm, pin, unpin: names of entries, and the pin, which is one.
--
-- Must never remove a pin together with the labels: only `unpin` does that.

local common = require "sessile.cli.common"
local entries = require "sessile.cli.entries"
local hints = require "sessile.cli.hints"
local render = require "sessile.cli.render"
local terminal = require "sessile.cli.terminal"

local commands = {}

-- Calls a method of the session on the entry, and prints the id of the entry.
local function on_entry(method, with)
  return function(app, args)
    local session, id = entries.open(app, args.id, args.entry)
    app.try_or(entries.steps(session), session[method](session, id, args.name))
    app:result(with({ session = session.id, entry = id }, args), id .. "\n")
  end
end

commands.label = {
  summary = "give an entry a name",
  usage = "label ID ENTRY NAME",
  examples = [[
    sessile label bug-42 2a before-deploy  then: sessile show bug-42@before-deploy
    sessile label last head done           the newest entry]],
  arguments = { common.session, common.entry, { "name", "the label: 1 to 200 bytes" } },
  about = [[
    An entry can have several labels. `sessile label list ID` lists them, and `sessile
    label rm ID ENTRY` removes them.]],
  run = on_entry("label", function(result, args)
    result.label = args.name
    return result
  end),
}

local function pinning(method)
  return on_entry(method, function(result)
    result.pinned = method == "pin"
    return result
  end)
end

commands.pin = {
  summary = "keep a message in the context: no policy may remove it",
  usage = "pin ID ENTRY",
  examples = [[sessile pin bug-42 2a  no policy drops or edits it from now on]],
  arguments = { common.session, common.entry },
  run = pinning "pin",
}

commands.unpin = {
  summary = "let policies remove a message again",
  usage = "unpin ID ENTRY",
  examples = [[sessile unpin bug-42 2a  policies may drop it again]],
  arguments = { common.session, common.entry },
  run = pinning "unpin",
}

-- What the entry is: its first words, or its type.
local function about(session, id)
  local entry = session:entry(id)
  if not entry then
    return ""
  elseif entry.type == "message" and type(entry.data) == "table" then
    return ("%s: %s"):format(render.role(entry.data), render.brief(entry.data, 50))
  end
  return terminal.line(tostring(entry.type))
end

commands["label list"] = {
  summary = "list the labels and pins of a session",
  usage = "label list ID",
  examples = [[sessile label list bug-42  by entry]],
  arguments = { common.session },
  run = function(app, args)
    local session = app:open(args.id)
    local list, rows, now = {}, {}, app.now()
    for i, label in ipairs(app.try(session:labels())) do
      list[i] = { entry = label.id, label = label.name, time = label.time }
      rows[i] = { label.id, terminal.cut(terminal.line(label.name), 40),
        terminal.ago(label.time, now), about(session, label.id) }
    end
    if app.json then
      app:print_json(app.array(list))
    elseif #rows == 0 then
      app:note(("No entry has a label. Give one: sessile label %s head NAME"):format(
        hints.id(session.id)))
    else
      app:print_table({ "ENTRY", "LABEL", "SINCE", "WHAT" }, rows)
    end
  end,
}

local function names_of(app, session, id)
  local names = {}
  for _, label in ipairs(app.try(session:labels())) do
    if label.id == id and label.name ~= "pinned" then
      names[#names + 1] = label.name
    end
  end
  if #names == 0 then
    app.fail(("entry %s has no label"):format(id), "ENOTFOUND",
      "See them: sessile label list " .. hints.id(session.id))
  end
  return names
end

commands["label rm"] = {
  summary = "remove a label from an entry, or all its labels",
  usage = "label rm ID ENTRY [NAME]",
  examples = [[
    sessile label rm bug-42 2a before-deploy  one
    sessile label rm bug-42 2a                all labels of that entry; a pin stays]],
  arguments = {
    common.session, common.entry,
    { "name", "the label (default: all of them, but not the pin)", "?", is = "label name" },
  },
  run = function(app, args)
    local session, id = entries.open(app, args.id, args.entry)
    local names = args.name and { args.name } or names_of(app, session, id)
    for _, name in ipairs(names) do
      app.try_or({ ENOTFOUND = "See them: sessile label list " .. hints.id(session.id) },
        session:unlabel(id, name))
    end
    app:result { session = session.id, entry = id, removed = app.array(names) }
  end,
}

return commands
