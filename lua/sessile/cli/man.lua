--- man: the manual page, made from the commands' tables.
--
-- Owns: its sections and their roff. Must never say anything about a command that is not in its
-- table, nor list a command of the user.

local help = require "sessile.cli.help"
local options = require "sessile.cli.options"
local registry = require "sessile.cli.registry"

local man = {}

-- Text escaped for roff.
local function plain(text)
  text = text:gsub("\\", "\\e"):gsub("%-", "\\-"):gsub("'", "\\(aq"):gsub("`", "\\(ga")
  text = text:gsub("\"", "\\(dq"):gsub("[\xC2-\xF4][\x80-\xBF]+", function(c)
    return ("\\[u%04X]"):format(utf8.codepoint(c))
  end)
  return (text:gsub("\n%.", "\n\\&."):gsub("^%.", "\\&."))
end

-- A row of options or arguments: {what is typed, its description}.
local function add_rows(out, rows)
  for _, row in ipairs(rows) do
    out[#out + 1] = (".TP\n.B %s\n%s"):format(plain(row[1]), plain(row[2]))
  end
end

local function add_command(out, command)
  out[#out + 1] = (".SS sessile %s\n%s."):format(plain(command.usage), plain(command.summary))
  local rows = {}
  for i, row in ipairs(command.arguments or {}) do
    rows[i] = { row[1]:upper(), row[2] }
  end
  add_rows(out, rows)
  add_rows(out, help.option_rows(command.options or {}))
  if command.about then
    out[#out + 1] = ".PP\n" .. plain(command.about)
  end
  for i, example in ipairs(command.examples) do
    local shown = (".RS\n.nf\n%s\n.fi\n.RE\n.RS 8\n%s\n.RE"):format(plain(example[1]),
      plain(example[2]))
    out[#out + 1] = (i == 1 and ".PP\n" or "") .. shown
  end
end

local EXITS = {
  { "0", "done" }, { "1", "failed" },
  { "2", "wrong command line, or a confirmation was needed without a terminal" },
  { "3", "what was named is not there" }, { "4", "another writer holds it" },
  { "5", "damaged, or cut off" }, { "6", "it changed meanwhile" },
  { "7", "no access, or the wrong key" },
}

local VARIABLES = {
  { "SESSILE_STORE", "the store, when --store names none" },
  { "SESSILE_KEY", "the store's key or passphrase, when --key-file names none" },
  { "NO_COLOR", "if set, output is not coloured" },
  { "XDG_DATA_HOME, XDG_CONFIG_HOME", "where the default store, and the key file, policies and "
    .. "commands of your own are" },
}

--- The manual page as roff.
---@param version string
---@return string
function man.page(version)
  local out = {
    (".TH SESSILE 1 \"\" \"sessile %s\" \"User Commands\""):format(plain(version)),
    ".SH NAME\nsessile \\- keeps agent conversations: durable, sealed, append\\-only",
    ".SH SYNOPSIS\n.B sessile\n.RI [ OPTION ...]\n.I COMMAND\n.RI [ ARGUMENT ...]",
    ".SH DESCRIPTION\n" .. plain("A session is a log of one conversation: what was said stays in "
      .. "it, and what the model is shown next is computed from it. ID is a session's id, a "
      .. "unique beginning of it, its title, a label of it, or `last`. Data is printed on "
      .. "standard output, everything else on standard error. `sessile sessions COMMAND` is the "
      .. "same as `sessile COMMAND` for those about sessions."),
    ".SH OPTIONS",
  }
  add_rows(out, help.option_rows(options.global))
  for _, group in ipairs(registry.shipped()) do
    out[#out + 1] = ".SH " .. plain(group[1]:upper())
    for i = 2, #group do
      local command = registry.load(group[i])
      if command then
        add_command(out, command)
      end
    end
  end
  out[#out + 1] = ".SH EXIT STATUS"
  add_rows(out, EXITS)
  out[#out + 1] = ".SH ENVIRONMENT"
  add_rows(out, VARIABLES)
  return table.concat(out, "\n") .. "\n"
end

return man
