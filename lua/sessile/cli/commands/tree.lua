--- tree: shows the entries of a session as a tree, on a terminal interactively, else as text.
--
-- Owns: the choice between the two. Must never wait for a key without a terminal.

local common = require "sessile.cli.common"
local nodes = require "sessile.cli.treeview.nodes"
local text = require "sessile.cli.treeview.text"
local treeview = require "sessile.cli.treeview"

-- The types of --types, which may be repeated and have commas.
local function types_of(given)
  local types
  for _, words in ipairs(given or {}) do
    for word in words:gmatch "[^,%s]+" do
      types = types or {}
      types[#types + 1] = word
    end
  end
  return types
end

local function as_text(app, args)
  local session = app:open(args.id or "last")
  local kind, types = args.type, types_of(args.types)
  if not types and kind and kind ~= "all" and kind ~= "label" then
    types = { kind == "question" and "message" or kind }
  end
  return text.print(app, session, {
    types = types, labelled = kind == "label", questions = kind == "question",
    search = args.search, all = args.all,
  })
end

local function as_screen(app, args)
  local chosen, message, code, step = treeview.run(app, args.id, {
    select = args.select, kind = args.type, search = args.search,
  })
  if not chosen then
    return nil, message, code, step
  elseif not args.select then
    return
  elseif not chosen.id then
    return 1
  end
  app:out(app.id_line((chosen.session and chosen.session .. "@" or "") .. chosen.id))
end

return {
  summary = "show the entries of a session as a tree",
  usage = "tree [ID] [--type WHAT] [--search TEXT] [--text | --select]",
  examples = [[
    sessile tree              on a terminal: choose a session and move in its tree
    sessile tree last --text  ● is in the context, ○ was compacted away or is on another branch
    sessile tree bug-42 --type question --text
      what people said; label: entries with a label
    sessile tree last --search refund | head
      entries with that text
    sessile branch bug-42 $(sessile tree bug-42 --select)
      branch from an entry you choose
    sessile tree bug-42 --json | jq '.entries[] | select(.type == "compaction")'
      for a program]],
  arguments = { common.newest },
  options = {
    { "--filter --type WHAT", "only this kind of entry; question: what people said; label: "
      .. "entries with a label",
      choices = nodes.kinds },
    { "--types TYPES", "only entries of these types, separated by commas; as text", many = true },
    { "--search TEXT", "on a terminal: look for it; as text: only entries with it" },
    { "--text", "as text, even on a terminal" },
    { "--all", "every entry of a long session; as text" },
    { "--select", "Enter prints the entry's number and exits; for scripts" },
  },
  about = [[
    On a terminal: arrows move and fold, Enter opens, / searches, t selects the kind of
    entries, { and } go to the question before and the next one, L labels, p pins, b
    branches from an entry, f forks, ? shows all keys. In a pipe, with --text and with
    --json the output is text; without ID it is of the newest session. --select without a
    session prints ID@ENTRY; its exit code is 1 if you leave without a choice.]],
  run = function(app, args)
    local types = types_of(args.types)
    if args.search == "" then
      return nil, "--search: a text is expected", "EUSAGE"
    elseif args.select and (app.json or args.text or args.all or types) then
      return nil, "--select is for a terminal: it excludes --json, --text, --all and --types",
        "EUSAGE"
    elseif types and args.type then
      return nil, "--type and --types exclude each other", "EUSAGE"
    end
    if args.select or treeview.is_possible()
      and not (app.json or args.text or args.all or types) then
      local exit, message, code, step = as_screen(app, args)
      if code ~= "EUNSUPPORTED" or args.select then
        return exit, message, code, step
      end
      app:note(("It is text: %s."):format(message))
    end
    return as_text(app, args)
  end,
}
