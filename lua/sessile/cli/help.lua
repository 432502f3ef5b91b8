--- help: the help texts, made from the commands' tables.
--
-- Owns: the texts of `sessile help` and `--help`. Must never say anything about a command that is
-- not in its table: the same table is used for help, parsing and did-you-mean.

local options = require "sessile.cli.options"
local registry = require "sessile.cli.registry"
local terminal = require "sessile.cli.terminal"

local help = {}

-- Two columns. On a terminal the second is wrapped; if it has too little room, it goes below the
-- first. above(i): a line to print above row i, or nil.
local function rows_text(rows, above)
  local columns = terminal.columns()
  local width, widest = 0, 0
  for _, row in ipairs(rows) do
    width = math.max(width, terminal.width(row[1]))
    widest = math.max(widest, terminal.width(row[2]))
  end
  local room = columns and math.max(columns - width - 4, 1) or math.maxinteger
  local lines = {}
  for i, row in ipairs(rows) do
    local gap = (" "):rep(width - terminal.width(row[1]))
    if widest <= room then
      lines[i] = ("  %s%s  %s"):format(row[1], gap, row[2]):gsub(" +$", "")
    elseif room >= 32 then
      lines[i] = ("  %s%s  %s"):format(row[1], gap,
        terminal.wrap(row[2], room, (" "):rep(width + 4)))
    else
      lines[i] = ("  %s\n      %s"):format(row[1],
        terminal.wrap(row[2], math.max(columns - 6, 20), "      "))
    end
    local heading = above and above(i)
    if heading then
      lines[i] = heading .. "\n" .. lines[i]
    end
  end
  return table.concat(lines, "\n")
end

-- Paragraphs, wrapped again if a line is wider than the terminal. Indented lines stay as they are.
local function prose(text)
  local columns = terminal.columns()
  local widest = 0
  for line in text:gmatch "[^\n]+" do
    widest = math.max(widest, terminal.width(line))
  end
  if not columns or widest <= columns then
    return text
  end
  local lines, paragraph = {}, {}
  local function flush()
    lines[#lines + 1] = paragraph[1] and terminal.wrap(table.concat(paragraph, " "), columns)
    paragraph = {}
  end
  for line in (text .. "\n"):gmatch "(.-)\n" do
    if line == "" or line:find "^ " then
      flush()
      lines[#lines + 1] = line
    else
      paragraph[#paragraph + 1] = line
    end
  end
  flush()
  return table.concat(lines, "\n")
end

-- What is typed, wrapped between its parts on a terminal: a part in brackets is not broken.
local function usage_text(usage)
  local columns = terminal.columns()
  local text = usage:gsub("%b[]", function(part) return (part:gsub(" ", "\0")) end)
  text = terminal.wrap(text, columns and columns - 6, "      "):gsub("%z", " ")
  return "  " .. text
end

--- Options as rows of two texts: the option; its description with choices and default.
---@param list table[]  a command's `options`
---@return string[][]
function help.option_rows(list)
  local rows = {}
  for i, row in ipairs(list) do
    local about = row[2]
    if row.choices then about = about .. ": " .. table.concat(row.choices, ", ") end
    if row.default then about = ("%s (default %s)"):format(about, row.default) end
    rows[i] = { row[1], about }
  end
  return rows
end

--- The help of one command: examples first.
---@param command sessile.cli.command
---@param paint fun(text: string, colour: string): string
---@return string
function help.command(command, paint)
  local out = { ("%s: %s"):format(paint("sessile " .. command.name, "bold"), command.summary) }
  local function section(title, body)
    out[#out + 1] = "\n" .. paint(title, "bold") .. "\n" .. body
  end
  if #command.examples > 0 then
    section("Examples", rows_text(command.examples))
  end
  local usage = { usage_text("sessile " .. command.usage) }
  for _, typed in ipairs(registry.aliases(command.name)) do
    usage[#usage + 1] = ("  sessile %s …  (the same)"):format(typed)
  end
  section("Usage", table.concat(usage, "\n"))
  local rows = {}
  for i, row in ipairs(command.arguments or {}) do
    rows[i] = { row[1]:upper(), row[2] }
  end
  if #rows > 0 then section("Arguments", rows_text(rows)) end
  if command.options and #command.options > 0 then
    section("Options", rows_text(help.option_rows(command.options)))
  end
  local own, everywhere = {}, {}
  for _, row in ipairs(command.options or {}) do
    own[options.read(row[1]).field] = true
  end
  for _, row in ipairs(options.global) do -- one that means something else here is above
    everywhere[#everywhere + 1] = not own[options.read(row[1]).field] and row or nil
  end
  section("Everywhere", rows_text(help.option_rows(everywhere)))
  if command.about then
    out[#out + 1] = "\n" .. prose(command.about)
  end
  return table.concat(out, "\n") .. "\n"
end

-- The usage without its optional parts.
local function short_usage(command)
  return (command.usage:gsub("%s*%b[]", ""))
end

local function command_rows(names)
  local rows = {}
  for i, name in ipairs(names) do
    local command, message = registry.load(name)
    rows[i] = command and { short_usage(command), command.summary }
      or { name, "(cannot be loaded: " .. terminal.line(message or "") .. ")" }
  end
  return rows
end

-- All commands by heading, aligned over all headings.
local function groups_text(paint)
  local rows, starts = {}, {}
  for _, group in ipairs(registry.groups()) do
    starts[#rows + 1] = group[1]
    local more = command_rows { table.unpack(group, 2) }
    table.move(more, 1, #more, #rows + 1, rows)
  end
  return (rows_text(rows, function(i)
    return starts[i] and (i > 1 and "\n" or "") .. paint(starts[i], "bold")
  end))
end

--- The help of the whole program.
---@param paint fun(text: string, colour: string): string
---@return string
function help.all(paint)
  return table.concat({
    paint("sessile", "bold") .. " stores agent conversations in encrypted, append-only logs.",
    "",
    paint("Examples", "bold"),
    rows_text {
      { "sessile demo", "a demonstration that takes a few seconds" },
      { "sessile new --id bug-42 --title 'Slow start'", "create a session" },
      { "echo 'why is it slow?' | sessile append bug-42 -", "add a message" },
      { "sessile show last --last 3", "show the newest three messages" },
      { "sessile policy replay tiered recorded.jsonl --window 100000",
        "what a policy would have removed" },
    },
    "",
    groups_text(paint),
    "",
    paint("Everywhere", "bold"),
    rows_text(help.option_rows(options.global)),
    "",
    prose [[
ID is a session's id, a unique prefix of it, its title, a label in it, or `last`.
`sessile sessions COMMAND` is `sessile COMMAND`, for commands about sessions.
`sessile help COMMAND` shows more. Exit codes: 0 done, 1 failed, 2 usage,
3 not found, 4 busy, 5 damaged, 6 conflict, 7 no access or wrong key.]],
  }, "\n") .. "\n"
end

--- The commands that can follow the word `sessions`.
---@return string
function help.of_sessions()
  return rows_text(command_rows(registry.of_sessions())) .. "\n"
end

--- The commands whose names begin with a word, such as "policy".
---@param word string
---@return string?
function help.group(word)
  local names = {}
  for _, name in ipairs(registry.names()) do
    names[#names + 1] = name:sub(1, #word + 1) == word .. " " and name or nil
  end
  local rows = command_rows(names)
  return rows[1] and rows_text(rows) .. "\n" or nil
end

return help
