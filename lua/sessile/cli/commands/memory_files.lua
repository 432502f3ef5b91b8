--- memory export, memory import: a memory as files, and what other programs remembered.
--
-- Owns: which files of a folder are read. Must never replace a file unasked.

local import = require "sessile.memory_import"
local memories = require "sessile.cli.memories"
local own_files = require "sessile.cli.own_files"
local system = require "sessile.system"
local terminal = require "sessile.cli.terminal"
local times = require "sessile.times"

local commands = {}

commands["memory export"] = {
  summary = "write an agent's memory to a folder, as Markdown",
  usage = "memory export AGENT DIR [--user USER] [--force]",
  examples = [[
    sessile memory export coder notes --user ann  notes/MEMORY.md, and notes/daily/DAY.md]],
  arguments = { memories.agent, { "dir", "the folder", is = "folder" } },
  options = { memories.user, { "--force", "replace files that are there" } },
  about = [[
    The files are plain text: whoever can read them can read the memory, whatever becomes
    of the store's key, and `sessile forget` does not reach them.]],
  run = function(app, args)
    local memory = memories.open(app, args)
    local days, count = {}, 0
    for _, row in ipairs(app.try(memory:list())) do
      days[times.day(row.time, memory._settings.zone or 0)] = true
    end
    local function write(name, text)
      app.try_or({ EEXISTS = "Replace it: --force" },
        own_files.write(("%s/%s"):format(args.dir, name), text, args.force))
      count = count + 1
    end
    write("MEMORY.md", app.try(memory:markdown()))
    for day in pairs(days) do
      write(("daily/%s.md"):format(day), app.try(memory:markdown { day = day }))
    end
    app:result({ folder = args.dir, files = count }, ("%d files\n"):format(count))
    app:note(("What is in %s is not encrypted."):format(terminal.line(args.dir)))
  end,
}

-- The files to read: the one that is named, or the Markdown of a folder.
local function files_of(app, path)
  if system.kind(path) ~= "folder" then
    return { path }
  end
  local list = {}
  for _, folder in ipairs { "", "daily/", "memory/" } do
    local within = path .. "/" .. folder
    for _, name in ipairs(system.kind(within) == "folder" and system.files(within) or {}) do
      list[#list + 1] = name:find "%.md$" and within .. name or nil
    end
  end
  return list[1] and list or app.fail("there is no Markdown in " .. path, "ENOTFOUND",
    "Name a file: sessile memory import AGENT FILE")
end

commands["memory import"] = {
  summary = "add what another program remembered to an agent's memory",
  usage = "memory import AGENT PATH [--user USER] [--consent WORDS] [--source SOURCE]",
  examples = [[
    sessile memory import coder notes                 what `sessile memory export` wrote
    sessile memory import coder mem0.json --user ann  also MCP's memory.jsonl
    sessile memory import coder ~/.openclaw/workspace  MEMORY.md and memory/DAY.md]],
  arguments = { memories.agent, { "path", "a file, or a folder of Markdown", is = "file" } },
  options = { memories.user,
    { "--consent WORDS", "the user consents, in these words; needed once for each user" },
    { "--source SOURCE", "whose words these are (default: agent)",
      choices = { "user", "agent", "tool", "system" } } },
  about = [[
    Each item of a list and each paragraph of Markdown is one entry, as in the files of
    Claude and OpenClaw. What the memory has, or once had, is left out: an import that is
    repeated adds nothing.]],
  run = function(app, args)
    local texts = {}
    for i, path in ipairs(files_of(app, args.path)) do
      local file, why = io.open(path, "rb") -- its reason names the path
      local text = file and file:read "a"
      if file then
        file:close()
      end
      if not text then
        app.fail("what is to be imported cannot be read: " .. (why or path .. " is a folder"),
          "ENOTFOUND", "Name a file, or a folder of Markdown.")
      end
      -- first, so that what cannot be read creates no memory
      local entries, message, code = import.read(text, path)
      if not entries then
        app.fail(("%s: %s"):format(path, message), code, "Nothing was changed.")
      end
      texts[i] = { path, text }
    end
    local memory = memories.open(app, args, { consent = args.consent,
      must_exist = args.user ~= nil and not args.consent })
    local written, known, format = 0, 0, nil
    for _, one in ipairs(texts) do
      local done, message, code = memory:import(one[2], { name = one[1], source = args.source })
      if not done then
        app.fail(("%s: %s"):format(one[1], message), code,
          code == "EDENIED" and memories.CONSENT or nil)
      end
      written, known, format = written + done.written, known + done.known, done.format
    end
    app:result({ agent = args.agent, written = written, known = known, format = format },
      ("%d written, %d known already\n"):format(written, known))
  end,
}

return commands
