-- guides.lua: texts of this tree that show commands and programs, and a clone to run them in.

local built = require "spec.support.built"
local cli = require "spec.support.cli"
local shell = require "spec.support.shell"

local guides = {}

--- A file of the tree.
function guides.read(path)
  return cli.read(built.root .. "/" .. path)
end

--- The fenced blocks of a language in a text, in order.
function guides.blocks(text, language)
  local found = {}
  for block in text:gmatch("\n```" .. language .. "\n(.-)\n```") do
    found[#found + 1] = block
  end
  return found
end

--- Makes a home with what a reader has: the executable, in HOME/bin, and the examples of the clone
--- HOME/clone. cli.finish() removes it. Returns the home.
function guides.begin()
  local home = cli.begin()
  local function real(path)
    return shell.quote(shell.line("readlink -f " .. shell.quote(path)))
  end
  assert(os.execute(("cd %s && mkdir bin clone && ln -s %s bin/sessile && ln -s %s clone/examples")
    :format(shell.quote(home), real(built.binary), real(built.root .. "/examples"))))
  return home
end

--- Runs a shell command in that clone. Returns stdout, stderr and the exit code.
function guides.run(command)
  local home = cli.home()
  return cli.sessile("", nil, "sh -c " .. shell.quote(("cd %s/clone && PATH=%s/bin:$PATH && %s")
    :format(home, home, command)))
end

return guides
