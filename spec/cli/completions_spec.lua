-- Completions, the manual page and did-you-mean: one table says them all, and what a shell is
-- offered is what a command takes, quoted so that it means just that.
-- Files only: words that are folders.

local cli = require "spec.support.cli"
local terminal = require "spec.support.terminal"
local sessile, done, json = cli.sessile, cli.done, cli.json
local home

terminal.each_test(function(path) home = path end)

local BREAKS = " \t\n\"'@><=;|&(:"

-- What __complete says for a line of bash: the place, and the candidates.
local function of_bash(line)
  local out, err, code = sessile(("__complete bash %s %s"):format(cli.quote(BREAKS),
    cli.quote(line)))
  assert.equal("", err)
  assert.equal(0, code)
  local list = {}
  for one in out:gmatch "([^\n]*)\n" do
    list[#list + 1] = one
  end
  return table.remove(list, 1), list
end

local function offers(line, ...)
  local _, list = of_bash(line)
  assert.same({ ... }, list, line)
end

local function offers_among(line, ...)
  local _, list = of_bash(line)
  local there = {}
  for _, one in ipairs(list) do there[one] = true end
  for _, wanted in ipairs { ... } do
    assert.is_true(there[wanted], line .. " offers no " .. wanted)
  end
  return there
end

local function installed(program)
  return os.execute(("command -v %s >/dev/null 2>&1"):format(program)) == true
end

-- Whether a shell is there; else the spec is pending.
local function needs(program)
  if installed(program) then return true end
  pending(("needs %s: apt-get install %s"):format(program, program))
end

-- Runs a script of another shell with this home and this executable; what it printed.
local function shell(program, text)
  local path = home .. "/script"
  cli.write(path, text)
  local command = ("PATH=%s/bin:$PATH HOME=%s XDG_DATA_HOME=%s/data XDG_CONFIG_HOME=%s/config "
    .. "%s %s 2>&1"):format(home, home, home, home, program, path)
  local pipe <close> = assert(io.popen(command))
  return pipe:read "a"
end

local function put_in_path()
  local where = io.popen("readlink -f " .. cli.quote(cli.binary)):read "l"
  os.execute(("mkdir -p %s/bin; ln -s %s %s/bin/sessile"):format(home, where, home))
end

describe("a line that is being typed", function()
  it("continues with commands, those of two words, and those behind sessions", function()
    local first = offers_among("sessile ", "list", "label", "keys", "policy", "sessions", "man")
    assert.is_nil(first.__complete)
    offers("sessile lis", "list")
    offers("sessile keys ro", "rotate")
    offers("sessile sessions lis", "list")
    assert.is_nil(offers_among("sessile sessions ", "tree", "delete").keys)
    offers("sessile sessions label rem", "remove")
    offers("sessile help policy tr", "try")
    offers "sessile nothing of "
  end)

  it("continues with options, once each, and their choices", function()
    local options = offers_among("sessile list --", "--status", "--since", "--json")
    assert.is_nil(offers_among("sessile list --json --", "--status")["--json"])
    assert.is_nil(options["--yes"])
    assert.is_true(offers_among("sessile list --status active --", "--status")["--status"])
    offers("sessile list --sort ti", "title")
    offers("sessile list --sort=ti", "title")
    offers("sessile completions z", "zsh")
    offers "sessile show -- --"
  end)

  it("continues with the sessions, titles, labels and checkpoints of the store", function()
    done "new --id bug-42 --title 'Slow start'"
    done "append bug-42 hello"
    done "label bug-42 head before-deploy"
    done "checkpoint bug-42 'by hand'"
    offers("sessile tree b", "bug-42")
    offers("sessile tree S", "Slow\\ start")
    offers("sessile tree 'Sl", "Slow start")
    offers("sessile show bug-42@b", "@before-deploy") -- bash keeps what stands before the @
    offers("sessile pin bug-42 b", "before-deploy")
    offers("sessile restore bug-42 ", "by\\ hand")
    offers("sessile list --label b", "before-deploy")
    offers("sessile list ma", "main")
    offers("sessile --store /nowhere/at/all tree b")
    offers("sessile tree --agent other b")
    done "delete bug-42 --soft"
    offers "sessile tree b"
    offers("sessile undelete b", "bug-42")
  end)

  it("is completed in the store that it names", function()
    done(("--plain --store '%s/my store' new --id elsewhere"):format(home))
    offers(("sessile --plain --store '%s/my store' show e"):format(home), "elsewhere")
    offers(("sessile show --plain --store=%s/my\\ store e"):format(home), "elsewhere")
    offers "sessile show e"
  end)

  it("leaves files to the shell", function()
    assert.equal("files", (of_bash "sessile import "))
    assert.equal("files", (of_bash "sessile show --key-file "))
    assert.equal("files", (of_bash "sessile run x.lua "))
    assert.equal("none", (of_bash "sessile show "))
  end)

  it("makes nothing, and says nothing where nothing is", function()
    offers("sessile show ", "last")
    assert.is_nil(io.open(home .. "/data/sessile/keyring"))
    assert.is_nil(io.open(home .. "/config/sessile/key"))
    done "new --id bug-42"
    local out, err, code = sessile("__complete words show ''", nil, "env SESSILE_KEY=short")
    assert.equal("none\nlast\tthe newest\n", out)
    assert.equal("", err)
    assert.equal(0, code)
  end)

  it("is offered no name that a shell or a terminal would obey", function()
    local odd = {
      "$(touch owned)", "`touch owned`", "it's", 'a"b', "x;y", "~root", "-dash",
      "back\\slash", "!!", "*", "漢字 ü",
    }
    for _, id in ipairs(odd) do
      done("new --id=" .. cli.quote(id))
    end
    for _, id in ipairs { "red\27[31m", "new\nline", "tab\there", "\u{202E}evil", "\u{9b}31m" } do
      sessile("new --id " .. cli.quote(id))
    end
    local _, list = of_bash "sessile show -- "
    local echoed = {}
    for i, candidate in ipairs(list) do
      local pipe <close> = io.popen("cd " .. home .. "; bash -c " ..
        cli.quote("printf %s " .. candidate))
      echoed[i] = pipe:read "a"
    end
    table.sort(echoed)
    local wanted = { "last", table.unpack(odd) }
    table.sort(wanted)
    assert.same(wanted, echoed)
    assert.is_nil(io.open(home .. "/owned"))
    local text = table.concat(list)
    assert.is_nil(text:find "%c")
    assert.is_nil(text:find("\u{202E}", 1, true))
    -- in the quotes that are open
    for _, line in ipairs { "sessile show '$(t", 'sessile show "$(t' } do
      local _, found = of_bash(line)
      assert.equal(1, #found, line)
      local pipe <close> = io.popen("bash -c " .. cli.quote("printf %s " .. line:sub(14, 14)
        .. found[1] .. line:sub(14, 14)))
      assert.equal("$(touch owned)", (pipe:read "a"))
    end
  end)

  it("never fails, whatever is typed", function()
    done "new --id bug-42"
    math.randomseed(7)
    local parts = {
      "sessile", "sessions", "label", "rm", "--store", "--store=", "--", "-", "'", '"', "\\", "$(",
      "last", "bug-42@", "keys", "\27", "\u{202E}", "\xff", "=", "@", " ", "\t",
    }
    for _ = 1, 60 do
      local line = {}
      for i = 1, math.random(1, 8) do
        line[i] = parts[math.random(#parts)]
      end
      local text = "sessile " .. table.concat(line, math.random(2) == 1 and " " or "")
      local place, list = of_bash(text)
      assert.truthy(place == "none" or place == "files" or place == "folders", text)
      assert.is_nil(table.concat(list):find "[%c]", text)
    end
  end)
end)

describe("the script for", function()
  before_each(function()
    put_in_path()
    done "new --id bug-42 --title 'Slow start'"
    done "append bug-42 hello"
    done "label bug-42 head 'be fore'"
  end)

  it("bash completes", function()
    local text = shell("bash", [=[
      source <(sessile completions bash)
      complete -p sessile
      try() {
        COMP_LINE=$1 COMP_POINT=${#1}
        _sessile sessile
        printf '<%s>' "${COMPREPLY[@]}"; echo
      }
      try "sessile tree b"
      try "sessile show bug-42@b"
      try "sessile show 漢 b"
      try "sessile rename S"
    ]=])
    assert.equal("complete -F _sessile sessile\n<bug-42>\n<@be\\ fore>\n<>\n<Slow\\ start>\n", text)
  end)

  it("bash completes as it is typed", function()
    if terminal.missing() then
      return pending(terminal.missing())
    end
    done "label bug-42 head '$(touch owned)'"
    local at = terminal.open(100, 30)
    at:enter(("cd %s; PATH=%s/bin:$PATH; source <(sessile completions bash); clear"):format(home,
      home))
    for typed, word in pairs {
      ["bug-42@be"] = "bug-42@be fore", ["bug-42@\\$"] = "bug-42@$(touch owned)",
      ["'bug-42@$"] = "bug-42@$(touch owned)", ['"bug-42@$'] = "bug-42@$(touch owned)",
      ["Sl"] = "Slow start",
    } do
      at:type("sessile show " .. typed)
      at:keys("Tab", "C-a")
      at:type "printf '<%s>' "
      at:keys "Enter"
      at:wait("<sessile><show><" .. word .. ">")
      at:enter "clear"
    end
    assert.is_nil(io.open(home .. "/owned"))
  end)

  it("fish completes", function()
    if not needs "fish" then return end
    local text = shell("fish --no-config", [=[
      sessile completions fish | source
      complete -C "sessile tree b"
      complete -C "sessile pin bug-42 b"
      complete -C "sessile list --sort ti"
    ]=])
    assert.equal("bug-42\tSlow start\nbe fore\tlabel of 00000001\ntitle\n", text)
  end)

  it("zsh completes", function()
    if not needs "zsh" then return end
    -- A shell of its own in a pseudo-terminal, as somebody types.
    local text = shell("zsh -f", [=[
      zmodload zsh/zpty || exit
      zpty it zsh -f -i
      say() { zpty -w it "$1"; sleep ${2:-0.4} }
      say "PS1=; autoload -U compinit && compinit -u -D; stty -echo; unsetopt beep" 1
      say 'eval "$(sessile completions zsh)"; print rea""dy' 1
      zpty -r it seen '*ready*' || exit
      zpty -w -n it "print -r -- + sessile tree b"$'\t'$'\n'
      zpty -w -n it "sessile label list S"$'\t'" --json"$'\n'
      zpty -w -n it 'print an""end'$'\n'
      zpty -r it seen '*anend*'
      print -r -- $seen
    ]=])
    assert.truthy(text:find('"label": "be fore"', 1, true), text)
  end)

  it("another shell is a mistake, with the nearest", function()
    local out, err, code = sessile "completions zhs"
    assert.equal(2, code)
    assert.equal("", out)
    assert.truthy(err:find("Did you mean `zsh`?", 1, true), err)
    assert.equal("bash", json("completions bash").shell)
  end)
end)

describe("what is meant", function()
  it("is said for commands, options and choices", function()
    for words, said in pairs {
      ["sessions lst"] = "sessile sessions list`?",
      ["list --sort modfied"] = "Did you mean `--sort modified`?",
      ["list --sort=modfied"] = "Did you mean `--sort modified`?",
      ["list --satus active"] = "Did you mean '--status'?",
      ["keys rotat"] = "sessile keys rotate`?",
      ["memory shw coder"] = "memory show`?",
      ["undo"] = "sessile uncompact", ["sessions"] = "label list ID",
      ["sessions keys"] = "sessions --help",
    } do
      cli.fails(2, words, said)
    end
  end)
end)

describe("the manual page", function()
  it("has every command with its options, and nothing that roff does not know", function()
    local page = done "man"
    assert.equal(page, json("man").page)
    for _, command in ipairs(json "help") do
      assert.truthy(page:find(".SS sessile " .. command.usage:gsub("%-", "\\-"):sub(1, 5), 1, true),
        command.name)
    end
    assert.is_nil(page:find "[\128-\255]")
    if not installed "groff" then
      pending "needs groff: apt-get install groff-base"
      return
    end
    cli.write(home .. "/sessile.1", page)
    local groff = "LD_PRELOAD= groff -man -Tutf8 %s " .. home .. "/sessile.1 2>&1"
    local pipe <close> = io.popen(groff:format "-ww -z")
    assert.equal("", (pipe:read "a"))
    local text <close> = io.popen(groff:format "-P-cbou")
    local read = text:read "a"
    assert.truthy(read:find("echo 'why is it slow?' | sessile append bug-42 -", 1, true))
    assert.truthy(read:find("EXIT STATUS", 1, true))
  end)

  it("holds no command of one's own", function()
    os.execute(("mkdir -p %s/config/sessile/commands"):format(home))
    cli.write(home .. "/config/sessile/commands/mine.lua", "return { run = function() end }")
    assert.truthy(done "help":find("mine", 1, true))
    assert.is_nil(done "man":find("sessile mine", 1, true))
    offers("sessile min", "mine")
  end)
end)
