--- memory edit: a memory as Markdown in the user's editor.
--
-- Owns: the file that is edited. It is 0600, in a folder that is not on a disk, and is overwritten
-- and removed when the command ends. Must never write unless the editor ended well.

local ask = require "sessile.cli.ask"
local core = require "sessile.core"
local memories = require "sessile.cli.memories"
local own_files = require "sessile.cli.own_files"
local terminal = require "sessile.cli.terminal"

-- The folder of the file; fails if there is none that only this user can read.
local function folder(app)
  local path = os.getenv "XDG_RUNTIME_DIR"
  if not path or path == "" then
    app.fail("XDG_RUNTIME_DIR is not set: there is no folder where what you edit would not stay",
      "EUSAGE", "Set it to a folder of yours in memory: XDG_RUNTIME_DIR=/dev/shm")
  end
  return path
end

-- Writes the text to a new file and returns its path.
local function place(app, text)
  local within = folder(app)
  for n = core.now(), core.now() + 100 do
    local path = ("%s/sessile-memory-%x.md"):format(within, n)
    local ok, message, code = own_files.write(path, text)
    if ok then
      return path
    elseif code ~= "EEXISTS" then
      app.fail(message, code)
    end
  end
  app.fail("no name for a new file is free in " .. within, "EEXISTS")
end

-- Overwrites and removes it.
local function remove(path)
  local file = io.open(path, "r+b")
  if file then
    local size = file:seek "end"
    file:seek "set"
    file:write(("\0"):rep(size))
    file:close()
    os.remove(path)
  end
end

-- Runs the editor; what is in the file then.
local function edited(app, path)
  local editor = os.getenv "VISUAL" or ""
  editor = editor ~= "" and editor or os.getenv "EDITOR" or ""
  editor = editor ~= "" and editor or "vi"
  app:flush()
  if not os.execute(("%s '%s'"):format(editor, path:gsub("'", "'\\''"))) then
    app.fail(("the editor failed: %s"):format(terminal.line(editor)), "EFAILED",
      "Nothing was changed. Name another one in $EDITOR.")
  end
  local file = io.open(path, "rb")
  local text = file and file:read "a"
  if file then
    file:close()
  end
  return text or app.fail("the file is gone: nothing was changed", "ENOTFOUND", false)
end

-- Edits until the changes can be made, or the user gives up.
local function edit(app, args, memory, before, path)
  while true do
    local after = edited(app, path)
    if after == before then
      app:note "Nothing was changed."
      return
    end
    local done, message, code = memory:edit(before, after, { by = args.by })
    if done then
      return app:result(done, ("%d written, %d replaced, %d deleted\n"):format(done.written,
        done.replaced, done.deleted))
    elseif code ~= "EINVALID" or not terminal.is_terminal(0) or not terminal.is_terminal(2) then
      app.fail(message, code, "Nothing was changed.")
    end
    app:note(terminal.line(message))
    if not ask.sure(app, {}, "Edit it again") then
      app.fail(message, code, "Nothing was changed.")
    end
  end
end

return {
  summary = "edit an agent's memory as Markdown in $EDITOR",
  usage = "memory edit AGENT [--user USER] [--by NAME]",
  examples = [[
    sessile memory edit coder --user ann  change, remove or add lines]],
  arguments = { memories.agent },
  options = { memories.user, memories.by },
  about = [[
    A changed line replaces its entry, a removed one deletes it, a new one is written in
    the user's words: all of it, or nothing if a line cannot be read or its entry was
    changed meanwhile. An edited entry keeps its pin and its sources. The file lies in
    $XDG_RUNTIME_DIR and is overwritten afterwards; copies that your editor makes are not.]],
  run = function(app, args)
    local memory = memories.open(app, args)
    local before = app.try(memory:markdown())
    local path = place(app, before)
    local ok, failure = pcall(edit, app, args, memory, before, path)
    remove(path)
    if not ok then
      error(failure, 0)
    end
  end,
}
