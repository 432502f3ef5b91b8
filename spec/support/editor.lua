--- editor: runs scenarios in Neovim, with examples/nvim and stubs of the plug-ins that it serves.

local built = require "spec.support.built"
local busted = require "busted"
local cli = require "spec.support.cli"
local shell = require "spec.support.shell"

local editor = {}

local nvim = shell.line "command -v nvim || true"

--- The line that runs a scenario in an editor.
function editor.line(name, scenario)
  local home = cli.home()
  cli.write(("%s/%s.lua"):format(home, name),
    ("local p = dofile(vim.env.STUBS .. '/prelude.lua')\np.run(function()\n%s\nend)\n")
    :format(scenario))
  return ("cd %s && %s SESSILE_BIN=%s STUBS=%s OUT=%s/%s.out timeout -k 5 120 %s --headless "
    .. "-u NONE -i NONE --cmd 'set rtp^=%s,%s' -c 'luafile %s.lua' >%s.log 2>&1"):format(
    cli.quote(home), cli.env(), cli.quote(built.binary),
    cli.quote(built.root .. "/spec/support/nvim"), home, name, nvim,
    built.root .. "/examples/nvim", home .. "/client", name, name)
end

--- What a scenario said; it has to have ended well.
function editor.said(name)
  local path = ("%s/%s.out"):format(cli.home(), name)
  assert(cli.exists(path), cli.read(("%s/%s.log"):format(cli.home(), name)))
  local out = cli.read(path)
  assert(not out:find "FAILED", out)
  return out
end

--- Runs a scenario; what it said.
function editor.run(name, scenario)
  shell.output(editor.line(name, scenario))
  return editor.said(name)
end

--- The id of the only session, and its text, as the command line has them.
function editor.stored()
  local list = cli.json "--plain list --agent codecompanion"
  assert(#list == 1)
  return list[1].id, (cli.done(("--plain export %s --agent codecompanion --format md")
    :format(list[1].id)))
end

--- A test that is left out where there is no Neovim.
function editor.test(name, body)
  busted.it(name, function()
    if nvim == "" then
      return busted.pending("nvim is not installed: examples/nvim was not run")
    end
    body()
  end)
end

--- Writes the client before each test, into a home of its own.
function editor.each_test()
  cli.each_test(function(home)
    os.execute("mkdir -p " .. cli.quote(home .. "/client/lua"))
    cli.write(home .. "/client/lua/sessile_rpc.lua", (cli.done "rpc --client nvim"))
  end)
end

--- Three questions with answers, of which two are the same text.
editor.TRAM = [[
  local chat = p.stub.Chat.new {}
  p.talk(chat, "why is the tram late?", "The points froze.")
  p.talk(chat, "ok", "ok")
  p.talk(chat, "ok", "größer 日本 €")
  p.idle()
]]

return editor
