-- project.lua: a home with the folder of a project in it, a configuration in each, and commands
-- that run in that folder.

local assert = require "luassert"
local cli = require "spec.support.cli"
local expect = require "spec.support.expect"

local project = {}

local folder

--- As cli.each_test: set_up(home, folder).
function project.each_test(set_up)
  cli.each_test(function(home)
    folder = home .. "/project"
    assert(os.execute("mkdir " .. cli.quote(folder)))
    set_up(home, folder)
  end)
end

--- The folder in which commands run from here on, to the end of the test.
function project.enter(path)
  folder = path
end

--- Writes the configuration of the project, ./sessile.lua; returns its path.
function project.configure(text, mode)
  local path = folder .. "/sessile.lua"
  cli.write(path, text)
  assert(os.execute(("chmod %s %s"):format(mode or "644", cli.quote(path))))
  return path
end

--- Runs `sessile` in the project's folder, for a minute at most. before: as for cli.sessile.
function project.sessile(words, before, input)
  return cli.sessile(words, input,
    ("env -C %s %s timeout 60"):format(cli.quote(folder), before or ""))
end

--- The same, when it has to succeed.
function project.done(words, before, input)
  local out, err, code = project.sessile(words, before, input)
  assert(code == 0, words .. "\n" .. out .. err)
  return out, err
end

--- What it prints with --json.
function project.json(words, before)
  return cli.decoded((project.done("--json " .. words, before)))
end

--- The same, when it has to fail with a code, and to say something (nil: anything) without a
--- traceback. The place of an error in a configuration is no traceback. Returns what it said.
function project.fails(code, words, what, before)
  local out, err, got = project.sessile(words, before)
  assert.equal(code, got, words .. ": " .. out .. err)
  if what then
    expect.has(err, what)
  end
  cli.no_traceback((err:gsub("%.lua:%d+: ", ": ")))
  return err
end

return project
