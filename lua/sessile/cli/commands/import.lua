--- import: creates sessions from recorded conversations.
--
-- Owns: the files, and the report. Must never run a policy: a recording is imported unchanged.

local has_system, system = pcall(require, "sessile.system")
local common = require "sessile.cli.common"
local hints = require "sessile.cli.hints"
local import = require "sessile.import"
local places = require "sessile.cli.places"
local progress = require "sessile.cli.progress"
local recordings = require "sessile.cli.recordings"
local terminal = require "sessile.cli.terminal"

-- The numbers of branches, compactions and lines that are not messages, as text.
local function others(counts)
  local text = ""
  local function also(n, word, what)
    if n > 0 then
      text = ("%s; %s%s"):format(text, terminal.plural(n, word), what)
    end
  end
  also(counts.branches, "branch point", "")
  also(counts.compactions, "compaction", "")
  also(counts.summaries, "summary", " kept as a message")
  also(counts.customs - counts.unread, "other line", " kept as custom")
  also(counts.strays, "message", " whose parent is not there")
  text = text:gsub("(%d) summarys", "%1 summaries")
  if counts.unread == 0 then
    return text
  end
  return text .. ("\n%s could not be read as %s, kept as custom; first: line %d: %s"):format(
    terminal.plural(counts.unread, "line"), counts.unread == 1 and "a message" or "messages",
    counts.first.at or 0, terminal.line(counts.first.why))
end

local function said(counts)
  if counts.unchanged or counts.resumed and counts.messages + counts.customs == 0 then
    return "nothing new to import"
  end
  return ("%s in %s%s%s"):format(terminal.plural(counts.messages, "message"),
    terminal.plural(counts.turns, "turn"), counts.before > 0
      and (" after %s that were there"):format(terminal.number(counts.before)) or "",
    others(counts))
end

local function as_json(id, from, file, counts)
  return {
    id = id, from = from, file = file, messages = counts.messages, turns = counts.turns,
    customs = counts.customs, refused = counts.refused, unread = counts.unread,
    first_unread = counts.first, branches = counts.branches, compactions = counts.compactions,
    summaries = counts.summaries, strays = counts.strays, before = counts.before,
    resumed = counts.resumed or false, unchanged = counts.unchanged or false,
  }
end

-- The name of a file without its folder and extension.
local function stem(path)
  local name = path:match "([^/]+)/*$" or path
  return name:match "^(.+)%.[^.]*$" or name
end

-- Imports one recording. more: options of import.into. Returns id, from, counts.
local function one(app, records, from, file, store, more)
  local show, finish = progress.bar(app, "import", true)
  more.from, more.agent = from, app.globals.agent
  more.on_step = function(offset, size)
    show(math.min(offset, size or 0), size or 0)
  end
  local session, counts, code = import.into(store, records, more)
  finish()
  records.opened:close()
  if not session then
    return nil, ("%s: %s"):format(hints.shown(file), counts), code,
      (code == "EEXISTS" or code == "ECONFLICT") and "Give it another name: --id ID" or nil
  end
  local id = session.id
  local ok, message
  ok, message, code = session:close()
  return ok and id, ok and from or message, ok and counts or code
end

-- Imports each recording of a folder as a session. One that fails is reported and skipped.
local function folder(app, args, store)
  local list, failed, unchanged, first = {}, 0, 0, nil
  for _, file in ipairs(places.files({ args.file }, "%.jsonl?$")) do
    if system.kind(file) == "file" then
      local id, counts
      local records, from, code, step = recordings.open(file, args.from)
      if records then
        id, from, counts, step = one(app, records, from, file, store,
          { default_id = stem(file), skip_unchanged = true })
      else
        counts = code
      end
      if id then
        list[#list + 1] = as_json(id, from, file, counts)
        unchanged = unchanged + (counts.unchanged and 1 or 0)
        if not app.json and not counts.unchanged then
          app:out(app.id_line(id))
          app:note(("%s: %s"):format(hints.shown(file), said(counts)))
        end
      else
        failed = failed + 1
        first = first or { code = counts, step = step }
        list[#list + 1] = { file = file, error = { code = counts, message = from } }
        if not app.json then
          app:note(from)
        end
      end
    end
  end
  if #list == 0 then
    return nil, ("%s: there is no .jsonl or .json file in it"):format(hints.shown(args.file)),
      "ENOTFOUND", "Give a recording, or a folder of them."
  end
  if app.json then
    app:print_json { imports = app.array(list), failed = failed, unchanged = unchanged }
  else
    app:note(("%s imported, %d unchanged, %d failed"):format(
      terminal.plural(#list - failed - unchanged, "file"), unchanged, failed))
  end
  if failed > 0 then
    return nil, ("%d of %d files could not be imported"):format(failed, #list), "EINVALID",
      first.step or "The others were imported. Check those files."
  end
end

return {
  summary = "create sessions from recorded conversations",
  usage = "import FILE|DIR [--from FORMAT] [--id ID | --into ID] [--title TEXT]",
  examples = [[
    sessile import recorded.jsonl --from pi            a session of the pi coding agent
    sessile import talk.jsonl --id bug-42              one message on each line, with an id of yours
    sessile import ~/.claude/projects/shop             a folder: one session for each file
    sessile import more.json --into bug-42             append to an existing session
    zcat old.jsonl.gz | sessile import - --from jsonl  from standard input]],
  arguments = { { "file", "the recording, or a folder of them, or `-`: standard input" } },
  options = {
    { "--from FORMAT",
      "the format (default: detected from the content)", choices = import.names() },
    { "--id ID", "the session's id (default: the recorded one, or a new one)" },
    { "--into ID", "append to the head of this session" },
    { "--title TEXT", "the title" },
  },
  about = [[
    Lines that are not messages become custom entries, so nothing is lost. If you import
    a file again, the import continues where it stopped, after a crash or when the file
    has grown. With --into, a file is identified by its path, unless its recording has an
    id; standard input is new each time.]],
  run = function(app, args)
    common.check_new_id(app, args.id)
    local is_folder = has_system and args.file ~= "-" and system.kind(args.file) == "folder"
    if args.id and args.into or is_folder and (args.id or args.into or args.title) then
      return nil, is_folder and "the sessions of a folder have their own names"
        or "--id creates a session, --into adds to one: give one of them", "EUSAGE"
    end
    -- First, so that a recording that cannot be read creates no store.
    local records, from
    if not is_folder then
      records, from = app.try(recordings.open(args.file, args.from))
    end
    -- After a crash the import is repeated, so one sync at the end is enough.
    local store = app:need_store(not args.into, { durability = "none" })
    if is_folder then
      return folder(app, args, store)
    end
    local target = args.into and app:open(args.into) or nil
    local id, counts
    id, from, counts = app.try(one(app, records, from, args.file, store,
      { id = args.id, title = args.title, session = target }))
    if app.json then
      app:print_json(as_json(id, from, nil, counts))
      return
    end
    app:out(app.id_line(id))
    app:note(said(counts))
  end,
}
