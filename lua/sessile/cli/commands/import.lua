--- import: creates sessions from recorded conversations.
--
-- Owns: the files, and the report. Must never run a policy: a recording is imported unchanged.

local has_system, system = pcall(require, "sessile.system")
local agent_folders = require "sessile.cli.agent_folders"
local common = require "sessile.cli.common"
local import = require "sessile.import"
local import_folder = require "sessile.cli.import_folder"
local importing = require "sessile.cli.importing"
local progress = require "sessile.cli.progress"
local recordings = require "sessile.cli.recordings"

-- Where the recordings are: folders, or nil if it is one file.
local function folders_of(args)
  if args.all then
    local found, looked = agent_folders.all()
    if #found == 0 then
      return nil, "no agent keeps sessions here: none of these folders exists: "
        .. table.concat(looked, ", "), "ENOTFOUND", "Give the folder: sessile import FOLDER"
    end
    return found, true
  elseif has_system and args.file and args.file ~= "-" and system.kind(args.file) == "folder" then
    return agent_folders.within(args.file)
  end
end

-- What is wrong with the words, in a sentence.
local function wrong_words(args, is_folder)
  if args.all and args.file then
    return "--all imports what this user's agents keep: give it or a file"
  elseif not args.all and not args.file then
    return "nothing to import is named: give a recording, a folder of them, or --all"
  elseif args.id and args.into then
    return "--id creates a session, --into adds to one: give one of them"
  elseif is_folder and (args.id or args.into or args.title) then
    return "the sessions of a folder have their own names"
  end
end

local function one_file(app, args)
  -- First, so that a recording that cannot be read creates no store.
  local records, from = app.try(recordings.open(args.file, args.from))
  -- After a crash the import is repeated, so one sync at the end is enough.
  local store = app:need_store(not args.into, { durability = "none" })
  local target = args.into and app:open(args.into) or nil
  local show, finish = progress.bar(app, "importing", true)
  local id, counts, code, step = importing.one(app, store, args.file, records, {
    from = from, id = args.id, title = args.title, session = target,
    on_step = function(offset, size)
      show(math.min(offset, size or 0), size or 0)
    end,
  })
  finish()
  app.try(id, counts, code, step)
  if app.json then
    return app:print_json(importing.as_json(id, from, nil, counts))
  end
  app:out(app.id_line(id))
  app:note(importing.said(counts))
  if from == "finetune" and not counts.unchanged then
    app:note "Each conversation of the file is a branch from the root of this one session."
  end
end

return {
  summary = "create sessions from recorded conversations",
  usage = "import FILE|FOLDER|--all [--from FORMAT] [--id ID | --into ID] [--title TEXT]",
  examples = [[
    sessile import recorded.jsonl --from pi            a session of the pi coding agent
    sessile import talk.jsonl --id bug-42              one message on each line, with an id of yours
    sessile import --all                               all sessions of Claude Code, Codex and pi
    sessile import ~/.claude/projects/-srv-shop        a folder: one session for each file
    sessile import more.json --into bug-42             append to an existing session
    zcat old.jsonl.gz | sessile import - --from jsonl  from standard input]],
  arguments = {
    { "file", "the recording, or a folder of them, or `-`: standard input", "?" },
  },
  options = {
    { "--all", "all sessions that Claude Code, Codex and pi keep in the home folder" },
    { "--from FORMAT",
      "the format (default: detected from the content)", choices = import.names() },
    { "--id ID", "the session's id (default: the recorded one, or a new one)" },
    { "--into ID", "append to the head of this session" },
    { "--title TEXT", "the title" },
  },
  about = [[
    Lines that are not messages become custom entries, so nothing is lost. If you import
    a file or a folder again, only what is new is imported, also after a crash. A folder
    is read with the folders in it, and sessions of sub-agents become children. --all
    reads the folders of Claude Code ($CLAUDE_CONFIG_DIR or ~/.claude), Codex
    ($CODEX_HOME or ~/.codex) and pi ($PI_CODING_AGENT_DIR or ~/.pi/agent). With --into,
    a file is identified by its path, unless its recording has an id; standard input is
    new each time.]],
  run = function(app, args)
    common.check_new_id(app, args.id)
    local folders, kept_by_agents, code, step = folders_of(args)
    local wrong = wrong_words(args, folders or args.all)
    if wrong then
      return nil, wrong, "EUSAGE"
    elseif code then
      return nil, kept_by_agents, code, step
    elseif folders then
      return import_folder.run(app, args, folders, kept_by_agents)
    end
    return one_file(app, args)
  end,
}
