--- tokens: counts the tokens of a text, a recording or a session.
--
-- Owns: telling a text from a recording, and the table of messages. Must never write to a store.

local hints = require "sessile.cli.hints"
local import = require "sessile.import"
local render = require "sessile.cli.render"
local sessile = require "sessile"
local speaker = require "sessile.speaker"
local terminal = require "sessile.cli.terminal"

local FAILED = { [2] = "ENOTFOUND", [13] = "EDENIED" } -- by errno

-- A whole file; "-" is standard input. step: what to do next if the file is missing.
local function read(app, path, step)
  local file, why, number = io.stdin, nil, nil
  if path ~= "-" then
    file, why, number = io.open(path, "rb")
  end
  local text = file and file:read "a"
  if file and not text then
    why, number = select(2, file:read(0))
    why = why or "it is a folder"
  end
  if file and path ~= "-" then
    file:close()
  end
  if not text then
    local code = FAILED[number] or "EIO"
    app.fail(("%s: %s"):format(hints.shown(path), (tostring(why):gsub("^.*: ", ""))), code,
      code == "ENOTFOUND" and step or nil)
  end
  return text
end

-- The messages of a recording; nil and a sentence if the text is none.
local function messages_of(text, from)
  local file <close> = assert(io.tmpfile())
  assert(file:write(text))
  assert(file:seek "set")
  local records, why = import.open(file, from)
  if not records then
    return nil, why
  end
  local list = {}
  for record in records do
    for _, json in ipairs(record.messages or {}) do
      list[#list + 1] = sessile.json(json)
    end
  end
  if #list == 0 then
    return nil, "there is no message in it"
  end
  return list
end

-- The options for counting: the model, tools, a system prompt.
local function beside(app, args)
  local more = { model = args.model }
  if args.system then
    more.system = read(app, args.system, "Give the path of a file: --system FILE")
  end
  if args.tools then
    local text = read(app, args.tools, "Give the path of a file: --tools FILE")
    local ok, tools = pcall(sessile.json, text)
    if not ok or type(tools) ~= "table" then
      app.fail(("%s: a JSON array of tool definitions expected"):format(hints.shown(args.tools)),
        "EINVALID")
    end
    more.tools = tools
  end
  return more
end

local function rows_of(list, each)
  local rows = {}
  for i, message in ipairs(list) do
    local facts = render.facts(message) or {}
    local tokens = each and each[i] and each[i].tokens or facts.tokens or 0
    rows[i] = { ("%d"):format(i), terminal.number(tokens), terminal.line(speaker.of(message)),
      render.brief(message, 60) }
  end
  return rows
end

local function show(app, args, info, list)
  if app.json then
    local out = { tokens = info.tokens, low = info.low, high = info.high, source = info.source,
      missing = info.missing, messages = list and #list or nil }
    if args.each and list then
      local rows = {}
      for i, message in ipairs(list) do
        local one = info.each and info.each[i] or { tokens = render.facts(message).tokens }
        rows[i] = { role = message.role, tokens = one.tokens, low = one.low, high = one.high,
          source = one.source }
      end
      out.each = app.array(rows)
    end
    app:print_json(out)
    return
  end
  if args.each and list then
    app:print_table({ "", "TOKENS", "ROLE", "TEXT" }, rows_of(list, info.each), true, {})
  end
  app:out(terminal.tokens(info) .. (list and (" in %s message%s"):format(terminal.number(#list),
    #list == 1 and "" or "s") or "") .. "\n")
  if info.missing then
    app:note(terminal.line(info.missing))
  end
end

local formats = import.names()
table.insert(formats, 1, "text")

return {
  summary = "count the tokens of a text, a recording or a session",
  usage = "tokens FILE [--model M] | tokens --session ID",
  examples = [[
    sessile tokens notes.md --model gpt-4o                 a text, counted exactly
    git diff | sessile tokens - --model claude-sonnet-4-5  standard input, estimated
    sessile tokens talk.jsonl --model gpt-4o --each        a recording, message by message
    sessile tokens --session last --tools tools.json       what the next request takes]],
  arguments = { { "file", "a text or a recording; `-`: standard input", "?" } },
  options = {
    { "--model M", "the model (default: an estimate; for a session: its model)" },
    { "--encoding NAME", "o200k_base, cl100k_base, or a .tiktoken or tokenizer.json file" },
    { "--session ID", "count the context of this session" },
    { "--each", "print one row for each message" },
    { "--from FORMAT", "the format (default: detected from the content)", choices = formats },
    { "--tools FILE", "also count tool definitions, a JSON array" },
    { "--system FILE", "also count a system prompt" },
  },
  about = [[
    The source of a count is, best first: usage (the provider's report), exact (the
    model's own encoding), host, fitted (a count scaled by this session's usage), or
    estimate. The numbers after it are the margin.]],
  run = function(app, args)
    if (args.file == nil) == (args.session == nil) then
      return nil, args.file and "count a file or a session: not both"
        or "name what to count: a file, `-` or --session ID", "EUSAGE"
    end
    local more = beside(app, args)
    if args.session then
      local messages, about = app.try(app:open(args.session):context(more))
      return show(app, args, about, messages)
    end
    local text = read(app, args.file,
      "Give the path of a file; for a session: sessile tokens --session ID")
    local store = app:keep(app.try(sessile.open("ram:", { key = false, model_name = args.model,
      encoding = args.encoding })))
    local list, why
    if args.from ~= "text" then
      list, why = messages_of(text, args.from)
      if not list and args.from then
        return nil, ("%s: %s"):format(hints.shown(args.file), why), "EINVALID"
      end
    end
    local _, info
    if list then
      _, info = app.try(store:count_messages(list, { tools = more.tools, system = more.system }))
    elseif more.tools or more.system then
      return nil, "--tools and --system need messages, and this file is a text", "EUSAGE"
    else
      _, info = app.try(store:count(text))
    end
    -- As messages of a session, so that they can be printed.
    if list and (args.each or app.json) then
      local scratch = assert(store:create {})
      for i, one in ipairs(list) do
        if scratch:append(one) then
          list[i] = scratch:messages { last = 1 }[1]
        end
      end
    end
    show(app, args, info, list)
  end,
}
