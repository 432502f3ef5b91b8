--- import_folder: imports every recording in folders, each as a session.
--
-- Owns: which files are skipped, and the summary. Must never stop at a file that fails.

local agent_folders = require "sessile.cli.agent_folders"
local hints = require "sessile.cli.hints"
local importing = require "sessile.cli.importing"
local progress = require "sessile.cli.progress"
local recordings = require "sessile.cli.recordings"
local terminal = require "sessile.cli.terminal"

local import_folder = {}

local NO_MESSAGE = "there is no message in it"

-- Imports one file. Returns id, from, counts; or nil, message, code, step, and why it is skipped.
local function one(app, store, file, args, titles, on_step, waits)
  local records, from, code, step = recordings.open(file.path, args.from)
  if not records then
    local why = file.size == 0 and NO_MESSAGE
      or file.kept_by_agent and code == "EINVALID" and "it is no recording" or nil
    return nil, from, code, step, why
  end
  local id, counts
  id, counts, code, step = importing.one(app, store, file.path, records, {
    from = from, default_id = file.name, skip_unchanged = true, on_step = on_step,
    waits_for_parent = waits,
  }, titles)
  if not id then
    return nil, counts, code, step, records.is_empty and NO_MESSAGE or nil
  end
  return id, from, counts
end

-- "2 sessions (1 new, 1 unchanged), 40 messages, 12 new"
local function summary(found)
  local kinds = {}
  for _, kind in ipairs { "new", "continued", "unchanged" } do
    kinds[#kinds + 1] = found[kind] > 0 and ("%s %s"):format(terminal.number(found[kind]), kind)
      or nil
  end
  return ("%s (%s), %s, %s new"):format(
    terminal.plural(found.new + found.continued + found.unchanged, "session"),
    table.concat(kinds, ", "), terminal.plural(found.messages, "message"),
    terminal.number(found.new_messages))
end

local function report(app, found)
  if app.json then
    app:print_json {
      imports = app.array(found.list), skipped = app.array(found.skipped), failed = found.failed,
      unchanged = found.unchanged, sessions = found.new + found.continued + found.unchanged,
      messages = found.messages, new_messages = found.new_messages,
    }
    return
  end
  if found.new + found.continued + found.unchanged > 0 then
    app:note(summary(found))
  end
  if found.separate > 0 then
    app:note(("%s of sub-agents: the parents are not in the store, so they stay separate, also "
      .. "when those are imported later"):format(terminal.plural(found.separate, "session")))
  end
  for _, why in ipairs(found.reasons) do
    local files = found.reasons[why]
    app:note(("%s skipped: %s: %s"):format(terminal.plural(#files, "file"), why,
      terminal.line(files[1]) .. (#files > 1 and ", …" or "")))
  end
end

local function skip(found, file, why)
  found.skipped[#found.skipped + 1] = { file = file, why = why }
  if not found.reasons[why] then
    found.reasons[why] = {}
    found.reasons[#found.reasons + 1] = why
  end
  table.insert(found.reasons[why], file)
end

local function add(app, found, file, id, from, counts)
  local kind = counts.unchanged and "unchanged" or counts.resumed and "continued" or "new"
  if kind == "continued" and counts.messages + counts.customs + counts.compactions == 0 then
    kind = "unchanged"
  end
  found[kind] = found[kind] + 1
  found.messages = found.messages + counts.before + counts.messages
  found.new_messages = found.new_messages + counts.messages
  found.separate = found.separate + (counts.separate and 1 or 0)
  found.list[#found.list + 1] = importing.as_json(id, from, file, counts)
  if not app.json and kind ~= "unchanged" then
    app:out(app.id_line(id))
  end
end

--- Imports all recordings in the folders.
---@param app sessile.cli.app
---@param args table
---@param folders string[]
---@param kept_by_agents boolean  they are folders of agents, where other files are no mistake
---@return nil ok
---@return string? message
---@return string? code
---@return string? step
function import_folder.run(app, args, folders, kept_by_agents)
  local files, all = {}, 0
  for _, folder in ipairs(folders) do
    for _, file in ipairs(agent_folders.files(folder)) do
      file.kept_by_agent = kept_by_agents
      files[#files + 1], all = file, all + file.size
    end
  end
  if #files == 0 then
    return nil, ("%s: there is no .jsonl or .json file in it"):format(
      hints.shown(table.concat(folders, ", "))), "ENOTFOUND",
      "Give a recording, or a folder of them."
  end
  -- After a crash the import is repeated, so one sync at the end is enough.
  local store = app:need_store(true, { durability = "none" })
  local found = { list = {}, skipped = {}, reasons = {}, failed = 0, unchanged = 0, new = 0,
    continued = 0, messages = 0, new_messages = 0, separate = 0 }
  local show, finish = progress.bar(app, "importing", true)
  local titles, before, first = agent_folders.titles(), 0, nil
  local function settle(file, id, from, counts, step, why)
    if not id and (why or not app.json) then
      finish()
    end
    if id then
      add(app, found, file.path, id, from, counts)
    elseif why then
      skip(found, file.path, why)
    else
      found.failed, first = found.failed + 1, first or { step = step }
      found.list[#found.list + 1] = { file = file.path, error = { code = counts, message = from } }
      if not app.json then
        app:note(from)
      end
    end
  end
  -- A sub-agent's session waits for its parent: it is tried again after the others, as long as that
  -- brings a parent; what is left then is imported without one.
  local left, waits = files, true
  while #left > 0 do
    local waiting = {}
    for _, file in ipairs(left) do
      local id, from, counts, step, why = one(app, store, file, args, titles, function(offset)
        show(math.min(before + offset, all), all)
      end, waits)
      if counts == "EPARENT" then
        waiting[#waiting + 1] = file
      else
        before = before + file.size
        show(before, all)
        settle(file, id, from, counts, step, why)
      end
    end
    waits = #waiting < #left
    left = waiting
  end
  finish()
  report(app, found)
  if found.failed > 0 then
    return nil, ("%d of %d files could not be imported"):format(found.failed, #files), "EINVALID",
      first.step or "The others were imported. Check those files."
  end
end

return import_folder
