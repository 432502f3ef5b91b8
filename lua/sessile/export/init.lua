--- export: a session as a document for people, or for other programs.
--
-- Owns: the list of formats, and how one is run. Must never hold a whole session: a format gets a
-- source (source.lua), which reads one entry at a time, and writes as it reads. Only HTML needs the
-- tree first.

local options = require "sessile.options"
local redact = require "sessile.redact"
local source = require "sessile.export.source"

local export = {}

---@class sessile.export.format
---@field name string
---@field extension string  of a file that is named without --format
---@field about string      one line for the help
---@field module string     returns function(source, write)
---@field agent boolean?    another agent's format: `--to NAME`, not `--format NAME`
---@field api boolean?      a request of an API: it may hold only the context
---@field trace boolean?    what was said is in it only when asked for
---@field resume string?    the command that continues a session, which the agent finds by its
---                         place in a folder of its own

--- The formats. `agent = true` marks a format of another agent.
---@type sessile.export.format[]
export.formats = {
  { name = "json", extension = "json", module = "sessile.export.json",
    about = "one document: what is known of the session, and every entry" },
  { name = "jsonl", extension = "jsonl", module = "sessile.export.jsonl",
    about = "an entry a line" },
  { name = "md", extension = "md", module = "sessile.export.markdown",
    about = "for reading, as text" },
  { name = "html", extension = "html", module = "sessile.export.html",
    about = "a page for the browser: one file, nothing fetched" },
  { name = "pi", extension = "jsonl", module = "sessile.export.pi", agent = true,
    about = "the pi coding agent: the whole tree; what came from it goes back line for line" },
  { name = "claude", extension = "jsonl", module = "sessile.export.claude", agent = true,
    resume = "claude --resume",
    about = "Claude Code, to continue there: what was said up to the head" },
  { name = "codex", extension = "jsonl", module = "sessile.export.codex", agent = true,
    resume = "codex resume", about = "Codex, to continue there: what was said up to the head" },
  { name = "openai", extension = "json", module = "sessile.export.openai", agent = true,
    api = true, about = "a request of OpenAI's Chat Completions" },
  { name = "anthropic", extension = "json", module = "sessile.export.anthropic", agent = true,
    api = true, about = "a request of Anthropic's Messages API" },
  { name = "otel", extension = "json", module = "sessile.export.otel", agent = true, trace = true,
    about = "a trace, OTLP in JSON: turns, model calls, tools, compactions" },
}

local ALIASES = { markdown = "md", htm = "html" }

--- The format with that name or extension.
---@param name string
---@param agent boolean?  one of another agent's
---@return sessile.export.format?
function export.find(name, agent)
  name = ALIASES[name] or name
  for _, format in ipairs(export.formats) do
    if format.name == name and (format.agent or false) == (agent or false) then
      return format
    end
  end
  return nil
end

--- The names of the formats; agent: only of formats of other agents.
---@param agent boolean?
---@return string[]
function export.names(agent)
  local names = {}
  for _, format in ipairs(export.formats) do
    if (format.agent or false) == (agent or false) then
      names[#names + 1] = format.name
    end
  end
  return names
end

local export_options = options.shape("session:export", {
  format = "string", to = "string", context = "boolean", cwd = "string", redact = "boolean|table",
  content = "boolean",
  write = "callable",
  on_step = "callable",
})

-- Raised if `write` fails: session:export returns nil, message, code.
local Refusal = {}

local function guarded(write)
  return function(chunk)
    local ok, message, code = write(chunk)
    if ok == nil and message or ok == false then
      error(setmetatable({ message = message or "the writer refused", code = code or "EIO" },
        Refusal), 0)
    end
  end
end

-- The redactor, or nil.
local function redactor_of(given)
  if type(given) == "table" then
    if type(given.json) == "function" then
      return given -- a run of the caller's, over several sessions
    end
    return redact.new(given)
  end
  return given and redact.new() or nil
end

-- What the function returns; nil, message, code if an entry cannot be read or `write` failed.
local function attempt(run, ...)
  local done, result = pcall(run, ...)
  if done then
    return result
  elseif getmetatable(result) == Refusal then
    return nil, result.message, result.code
  end
  local wrong, text = tostring(result):match "(E%u+): (.*)$" -- an entry that cannot be read
  if wrong then
    return nil, text, wrong
  end
  error(result, 0)
end

--- Where Claude Code or Codex looks for a session, below its own folder, and its name there. With a
--- redactor the session is read once, so that the place has what its export will have: nil, message
--- and code if that fails.
---@param format sessile.export.format  with `resume`
---@param session sessile.Session
---@param cwd string?  as for session:export
---@param redactor table?  of sessile.redact, also for the export that follows
---@return string? path
---@return sessile.export.origin|string origin
---@return string? code
function export.place(format, session, cwd, redactor)
  local transcript = require "sessile.export.transcript"
  if redactor then
    local from, message, code, retry_ms, rule = attempt(source.open, session, redactor)
    if not from then
      return nil, message, code, retry_ms, rule
    end
  end
  local origin = transcript.origin(session, cwd, redactor)
  return transcript.place(format.name, origin), origin
end

local methods = {}
export.methods = methods

--- Writes the session in a format (`format`, or `to` for the format of another agent), in chunks of
--- whole characters. write(chunk) may return nil, message, code to stop the export. redact: true, a
--- list of rules in addition to the shipped ones, or a redactor of sessile.redact. on_step(entries)
--- is called as entries are read; with redaction each entry is read twice. context: only the
--- messages that the model would get, for an API. content: what was said, redacted, in a trace.
--- cwd: the folder in which Claude Code or Codex continues, if the session's metadata does not say
--- where it ran. Returns {format, redacted, notes}.
function methods:export(given)
  local opts = options.check("session:export", given, export_options)
  local name = opts.to or opts.format or "json"
  local format = export.find(name, opts.to ~= nil)
  if not format then
    options.misuse(("session:export: there is no format '%s': %s"):format(name,
      table.concat(export.names(opts.to ~= nil), ", ")))
  elseif not opts.write then
    options.misuse "session:export: write: a function that takes each chunk expected"
  end
  if opts.context and not format.api then
    options.misuse "session:export: context: expected with to = \"openai\" or \"anthropic\""
  end
  if opts.content and not format.trace then
    options.misuse "session:export: content: expected with to = \"otel\""
  end
  local redactor = redactor_of(opts.redact or opts.content)
  local written, message, code, retry_ms, rule = attempt(function()
    local from = source.open(self, redactor, opts.on_step)
    from.context_only, from.cwd, from.content = opts.context, opts.cwd, opts.content
    return require(format.module)(from, guarded(opts.write)) or {}
  end)
  if not written then
    return nil, message, code, retry_ms, rule
  end
  return { format = format.name, redacted = redactor and redactor:report(),
    notes = type(written) == "table" and written.notes or nil }
end

return export
