-- cli.lua: the executable in a shell, as somebody types it, with a home of its own.

local assert = require "luassert"
local built = require "spec.support.built"
local busted = require "busted"
local decode = require("sessile").decode
local elsewhere = require "spec.support.elsewhere"
local expect = require "spec.support.expect"
local guarded = require "spec.support.guarded"
local shell = require "spec.support.shell"
local span = require("sessile.core").span

local cli = {
  files_only = elsewhere.files_only, url = elsewhere.url, kind = elsewhere.kind,
  binary = built.binary, quote = shell.quote,
}

local home

function cli.write(path, text)
  local file <close> = assert(io.open(path, "w"))
  file:write(text)
end

function cli.read(path)
  local file <close> = assert(io.open(path))
  return file:read "a"
end

--- Makes the home; call it before each test.
function cli.begin()
  home = shell.line "mktemp -d"
  if guarded.profile then
    cli.configure "return {}"
  end
  return home
end

--- Where it is.
function cli.home()
  return home
end

--- Removes it.
function cli.finish()
  os.execute("rm -rf " .. cli.quote(home))
end

--- Whether there is a file, a folder or anything else at a path.
function cli.exists(path)
  return os.execute("test -e " .. cli.quote(path)) == true
end

--- In a describe, or a spec: makes a home before each test and removes it afterwards. Calls
--- set_up(home), if there is one, as soon as there is a home.
function cli.each_test(set_up)
  busted.before_each(function()
    cli.begin()
    if set_up then
      set_up(home)
    end
  end)
  busted.after_each(cli.finish)
end

--- Writes the user's own configuration; returns its path.
function cli.configure(text, mode)
  assert(os.execute(("mkdir -p -m 700 %s/config/sessile"):format(cli.quote(home))))
  local path = home .. "/config/sessile/config.lua"
  cli.write(path, guarded.configuration(text))
  assert(os.execute(("chmod %s %s"):format(mode or "600", cli.quote(path))))
  return path
end

--- The default store of that home, for a shell.
function cli.store()
  return cli.quote(cli.url(home .. "/data/sessile"))
end

--- `env` and what a shell of somebody whose home this is has in its environment.
function cli.env()
  local store = elsewhere.kind and "SESSILE_STORE=" .. cli.store() or ""
  return ("env -u SESSILE_KEY -u SESSILE_STORE -u SESSILE_CONFIG HOME=%s XDG_DATA_HOME=%s/data "
    .. "XDG_CONFIG_HOME=%s/config %s"):format(cli.quote(home), cli.quote(home), cli.quote(home),
    store)
end

--- Runs `sessile` with words that the shell splits. before: what stands before it, as
--- "env SESSILE_KEY=x". Returns stdout, stderr, the exit code.
function cli.sessile(words, input, before)
  cli.write(home .. "/stdin", input or "")
  if elsewhere.kind then
    words = words:gsub("(%-%-store[ =])'?(/[^%s']+)'?", function(option, folder)
      return option .. cli.quote(cli.url(folder))
    end)
  end
  local command = ("%s %s %s %s <%s/stdin >%s/stdout 2>%s/stderr"):format(cli.env(),
    before or "", cli.quote(cli.binary), words, cli.quote(home), cli.quote(home), cli.quote(home))
  local _, _, code = os.execute(command)
  return cli.read(home .. "/stdout"), cli.read(home .. "/stderr"), code
end

--- The same, when it has to succeed.
function cli.done(words, input, before)
  local out, err, code = cli.sessile(words, input, before)
  assert(code == 0, words .. "\n" .. err)
  return out, err
end

--- The same, when it has to fail with an exit code, print nothing, and say each of these parts.
--- Returns what it said.
function cli.fails(code, words, ...)
  local out, err, got = cli.sessile(words)
  assert.equal(code, got, words .. "\n" .. out .. err)
  assert.equal("", out)
  for _, part in ipairs { ... } do
    expect.has(err, part, words)
  end
  cli.no_traceback(err)
  return err
end

--- The value of a text that has to be one JSON document.
function cli.decoded(text)
  assert(span.valid(text), text)
  return decode(text)
end

--- What it prints with --json.
function cli.json(words, input)
  return cli.decoded((cli.done("--json " .. words, input)))
end

--- Whether these tests run as root, and can become somebody else.
function cli.is_root()
  return shell.line "id -u" == "0" and os.execute "setpriv --version >/dev/null 2>&1" ~= nil
end

--- What stands before a command that nobody (user 65534) runs.
cli.as_nobody = "setpriv --reuid=65534 --clear-groups"

function cli.no_traceback(text)
  assert(not text:find("traceback", 1, true), text)
  assert(not text:find "%.lua:%d", text)
end

return cli
