--- policy test: runs specs of policies.
--
-- Owns: running busted in this process, and --watch. Must never run a spec that was not named, or
-- found by its name in a folder.

local has_system, system = pcall(require, "sessile.system")
local places = require "sessile.cli.places"
local terminal = require "sessile.cli.terminal"

-- busted reads its options from `arg`, and exits the process if a test failed.
local function start(files, args)
  local words = { [0] = "busted", "--ignore-lua" }
  if args.junit then
    table.move({ "--output=junit", "-Xoutput", args.junit }, 1, 3, #words + 1, words)
  elseif args.tap then
    words[#words + 1] = "--output=TAP"
  elseif args.json then
    words[#words + 1] = "--output=json"
  end
  for _, name in ipairs(args.filter or {}) do
    words[#words + 1] = "--filter=" .. name
  end
  table.move(files, 1, #files, #words + 1, words)
  _G.arg = words
  local function tell()
    if args.coverage then
      io.stderr:write(terminal.safe(require("sessile.testing.coverage").report()), "\n")
    end
  end
  local exit = os.exit
  os.exit = function(...) -- luacheck: ignore
    tell()
    exit(...)
  end
  require "busted.runner" { standalone = false }
  os.exit = exit -- luacheck: ignore
  tell()
end

local function quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

-- The sizes and times of the specs and the files beside them.
local function stamp(files)
  local lfs = require "lfs"
  local parts, seen = {}, {}
  for _, file in ipairs(files) do
    local folder = file:match "^(.*)/" or "."
    if not seen[folder] then
      seen[folder] = true
      for name in lfs.dir(folder) do
        if name:find "%.lua$" or name:find "%.jsonl$" then
          local about = lfs.attributes(folder .. "/" .. name)
          if about then
            parts[#parts + 1] = ("%s %d %d"):format(name, about.modification, about.size)
          end
        end
      end
    end
  end
  table.sort(parts)
  return table.concat(parts, "\n")
end

local function watch(app, files, args)
  local command = { quote(system.executable), "policy", "test" }
  for _, file in ipairs(files) do
    command[#command + 1] = quote(file)
  end
  for _, name in ipairs(args.filter or {}) do
    command[#command + 1] = "--filter " .. quote(name)
  end
  if args.junit then
    command[#command + 1] = "--junit " .. quote(args.junit)
  end
  command[#command + 1] = args.tap and "--tap" or nil
  command[#command + 1] = args.coverage and "--coverage" or nil
  local line, last = table.concat(command, " "), nil
  while true do
    local now = stamp(files)
    if now ~= last then
      last = now
      local _, how, code = os.execute(line)
      if how == "signal" then
        return 128 + code
      end
      app:note "Waiting for a change (end with Ctrl-C)."
    end
    if not os.execute "sleep 1" then
      return 0
    end
  end
end

return {
  summary = "run the specs of policies",
  usage = "policy test SPEC|FOLDER… [--filter TEXT] [--coverage] [--junit FILE | --tap] [--watch]",
  examples = [[
    sessile policy test frugal_spec.lua                   one spec
    SEED=4711 RUNS=1 sessile policy test frugal_spec.lua  repeat one generated conversation
    UPDATE_GOLDEN=1 sessile policy test spec/             update the expected contexts
    sessile policy test spec/ --junit report.xml          for a build server]],
  arguments = { { "specs", "files, or folders of files called *_spec.lua", "+" } },
  options = {
    { "--filter TEXT", "only tests whose name has this text; may be repeated", many = true },
    { "--coverage", "report which lines of the policies ran" },
    { "--junit FILE", "write a JUnit report" },
    { "--tap", "print TAP" },
    { "--watch", "run again when a file beside a spec changes" },
  },
  about = [[
    Specs use busted: describe, it, assert. `require "sessile.testing"` adds what is
    needed for policies. The Debian package of busted is lua-busted.]],
  run = function(app, args)
    local files = places.files(args.specs, "_spec%.lua$")
    if #files == 0 then
      return nil, "no *_spec.lua is there", "ENOTFOUND", "Start with: sessile policy new NAME"
    end
    for _, file in ipairs(files) do
      if has_system and system.kind(file) ~= "file" then
        return nil, ("%s is no file"):format(terminal.line(file)), "ENOTFOUND",
          "Name a spec, or a folder of them: sessile policy test ./mine_spec.lua"
      end
    end
    if not pcall(require, "busted.runner") then
      return nil, "busted is not installed", "EUNSUPPORTED", "On Debian: apt-get install lua-busted"
    end
    if args.watch then
      return watch(app, files, args)
    end
    if args.coverage then
      require("sessile.testing.coverage").start()
    end
    start(files, args)
  end,
}
