--- actions: what is done to a session from its tree: labels, pins, branches, forks, checkpoints.
--
-- Owns: the questions before an action and the message after it. Each action returns a message,
-- nil and an error, or nothing if it was cancelled. Must never move the head of a session unasked.

local entries = require "sessile.cli.entries"
local prompt = require "sessile.cli.treeview.prompt"
local sessions = require "sessile.cli.sessions"
local terminal = require "sessile.cli.terminal"

local actions = {}

local PIN = "pinned"

local function names(node)
  local list = {}
  for _, name in ipairs(node.labels) do
    if name ~= PIN then
      list[#list + 1] = name
    end
  end
  return list
end

function actions.label(view, node)
  local name = prompt.line(view, ("Label of %s: "):format(node.id))
  if not name or name == "" then
    return
  end
  local ok, why = view.session:label(node.id, name)
  return ok and ("%s is labelled '%s'"):format(node.id, name), why
end

function actions.unlabel(view, node)
  local list = names(node)
  if #list == 0 then
    return nil, node.id .. " has no label"
  end
  local name = list[1]
  if #list > 1 then
    name = prompt.line(view, "Label to remove: ", terminal.line(name))
  elseif not prompt.sure(view, ("Remove the label '%s' from %s"):format(
    terminal.cut(terminal.line(name), 40), node.id)) then
    return
  end
  if not name then
    return
  end
  for _, one in ipairs(list) do -- as it was shown
    name = terminal.line(one) == name and one or name
  end
  local ok, why = view.session:unlabel(node.id, name)
  return ok and ("The label '%s' is off %s"):format(name, node.id), why
end

function actions.pin(view, node)
  local is_pinned = sessions.has_label(node, PIN)
  local ok, why = view.session[is_pinned and "unpin" or "pin"](view.session, node.id)
  return ok and (is_pinned and "%s is pinned no more" or "%s is pinned: policies keep it")
    :format(node.id), why
end

function actions.branch(view, node)
  local session, head = view.session, view.session:head()
  if node.id == head then
    return nil, node.id .. " is the head already"
  end
  local left, why = entries.count_left(session, head, node.id)
  if not left then
    return nil, why
  end
  if not prompt.sure(view, ("Continue from %s and leave %s behind"):format(node.id,
    terminal.plural(left, "message"))) then
    return
  end
  local result
  result, why = session:branch(node.id, { base = head })
  return result and ("The head is at %s; back with b on %s"):format(result.head, head), why,
    result and result.head
end

function actions.fork(view, node)
  local id = prompt.line(view, ("Fork up to %s. Its id (empty: a new one): "):format(node.id))
  if not id then
    return
  elseif id == "last" then
    return nil, "the id 'last' is taken: it always means the newest session"
  end
  local fork, why = view.session:fork(node.id, { id = id ~= "" and id or nil })
  if not fork then
    return nil, why
  end
  local name = fork.id
  fork:close()
  return ("Forked up to %s: session %s"):format(node.id, name)
end

function actions.restore(view, node)
  if node.type ~= "checkpoint" then
    return nil, node.id .. " is no checkpoint: t shows those alone"
  end
  if not prompt.sure(view, ("Go back to checkpoint %s"):format(node.id)) then
    return
  end
  local restored, why = view.session:restore(node.id)
  if not restored then
    return nil, why
  end
  local said = ("The head is at %s again"):format(restored.head)
  if restored.warnings[1] then
    said = said .. ". Note: " .. restored.warnings[1]
  end
  return said, nil, restored.head
end

return actions
