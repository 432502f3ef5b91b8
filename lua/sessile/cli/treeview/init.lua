--- treeview: the tree of a session on a terminal, from the screen's opening to its end.
--
-- Owns: whether a screen can be opened, and that nothing is printed while it is open. Must never
-- leave the screen open, whatever fails.

local chooser = require "sessile.cli.treeview.chooser"
local has_screen, screen = pcall(require, "sessile.screen")
local terminal = require "sessile.cli.terminal"
local view = require "sessile.cli.treeview.view"

local treeview = {}

--- Whether standard input and output are one terminal, so that a person can use the screen.
---@return boolean
function treeview.is_possible()
  return has_screen and terminal.is_terminal(0) and terminal.is_terminal(1)
    and os.getenv "TERM" ~= "dumb"
end

-- Collects notes while the screen is open and prints them when it is closed.
local function quiet(app)
  local notes = {}
  app.note = function(_, text)
    notes[#notes + 1] = text
  end
  return setmetatable({}, { __close = function()
    app.note = nil
    for _, text in ipairs(notes) do
      app:note(text)
    end
  end })
end

-- The screen; nil, message, code, step.
local function open_screen()
  local on, message, code = screen.open()
  if not on then
    return nil, message, code, "See it as text: sessile tree --text"
  end
  return on
end

local function look_at(app, on, session, asked)
  local tree, message, code = view.new {
    screen = on, session = session, now = app.now, selects = asked.select, kind = asked.kind,
    search = asked.search,
  }
  if not tree then
    return nil, message, code
  end
  return true, tree:run()
end

-- The one session that was named.
local function one(app, session, asked)
  local on <close>, message, code, step = open_screen()
  if not on then
    return nil, message, code, step
  end
  local ok, id
  ok, id, code = look_at(app, on, session, asked)
  if not ok then
    return nil, id, code
  end
  return { id = id }
end

-- Sessions one after the other, as the person chooses them.
local function some(app, store, list, asked)
  local on <close>, message, code, step = open_screen()
  if not on then
    return nil, message, code, step
  end
  list.screen = on
  local wrong
  while true do
    local row = list:run(wrong)
    if not row then
      return {}
    end
    local session
    session, wrong = store:resume { id = row.id, agent = row.agent,
      user = row.user ~= "" and row.user or nil }
    if session then
      local guard <close> = session
      local ok, id, quits = look_at(app, on, guard, asked)
      wrong = not ok and id or nil
      if ok and (id or quits) then
        return { id = id, session = session.id }
      end
      list:load()
    end
  end
end

--- Shows the tree of a session, or of those that are chosen from a list.
---@param app sessile.cli.app
---@param name string?  the session
---@param asked {select: boolean?, kind: string?, search: string?}
---@return {id: string?, session: string?}? chosen  id: with `select`, the entry
---@return string? message
---@return string? code
---@return string? step
function treeview.run(app, name, asked)
  if not has_screen then
    return nil, "this program cannot draw on a terminal", "EUNSUPPORTED"
  end
  -- Errors of the store or the name are reported before anything is drawn.
  if name then
    local session, message, code, step = app:session(name)
    if not session then
      return nil, message, code, step
    end
    local guard <close> = session
    local _ <close> = quiet(app)
    return one(app, guard, asked)
  end
  local store, message, code, step = app:store()
  if not store then
    return nil, message, code, step
  end
  local list
  list, message, code = chooser.new {
    now = app.now, list = function() return app:list(store) end,
  }
  if not list then
    return nil, message, code
  elseif #list.rows == 0 then
    return nil, "there is no session yet", "ENOTFOUND", "Make one: sessile new"
  end
  local _ <close> = quiet(app)
  return some(app, store, list, asked)
end

return treeview
