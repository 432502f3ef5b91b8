-- example.lua: runs examples, as a reader would, with the scripted model whatever the person
-- who runs the tests has configured for themselves.

local assert = require "luassert"
local built = require "spec.support.built"
local temp = require "spec.support.temp"

local example = { temp = temp, build = built.folder, command = built.binary }

local quiet = "env -u OPENAI_BASE_URL -u OPENAI_MODEL -u OPENAI_API_KEY "

--- Standard output, standard error, and the exit status of a command line, run in an empty folder:
--- an example runs from any. `examples/` in it is the project's. settings: more of the environment,
--- as NAME=value words.
function example.shell(line, settings)
  local dir, elsewhere = temp.dir(), temp.dir()
  line = line:gsub(" (examples/)", function(path) return (" %s/%s"):format(built.root, path) end)
  local _, _, status = os.execute(("cd %s && %s%s %s >%s/out 2>%s/err"):format(elsewhere, quiet,
    settings or "", line, dir, dir))
  return temp.read(dir .. "/out"), temp.read(dir .. "/err"), status
end

--- The standard output of a command line that succeeds and writes no error.
function example.done(line)
  local out, err, status = example.shell(line)
  assert.equal("", err)
  assert.equal(0, status, out)
  return out
end

--- The lines that an example prints, when all is well and nothing is left behind.
function example.lines(name, arguments, settings)
  local dir = temp.dir()
  local out, err, status = example.shell(("%s run examples/%s %s"):format(example.command, name,
    arguments or ""), ("TMPDIR=%s %s"):format(dir, settings or ""))
  assert.equal("", err)
  assert.equal(0, status)
  assert.is_true(os.execute("rmdir " .. dir), "something was left behind")
  return example.lines_of(out)
end

function example.lines_of(text)
  local lines = {}
  for line in text:gmatch "[^\n]+" do
    lines[#lines + 1] = line
  end
  return lines
end

return example
