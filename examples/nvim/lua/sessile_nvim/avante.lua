--- avante: avante.nvim keeps its histories in sessions: History.save, load, list, new, delete.
--
--   require("sessile_nvim.avante").setup {}        -- after require("avante").setup
--
-- avante writes a history whole whenever something changes. Here only new messages are appended, by
-- their uuid, and nothing waits; a message that is still being generated is written when it is
-- complete. The other fields (title, todos, memory, …) are metadata of the session. A history is a
-- session PROJECT/FILENAME of the agent `avante`.
--
-- opts: command, args, env, agent ("avante"), turn (fields of each turn, such as a policy).

local server = require "sessile_nvim.server"
local writer = require "sessile_nvim.writer"

local avante = {}

local NOT_KEPT = { messages = true, filename = true, entries = true }

-- The project of a buffer, as avante names its folder.
local function project_of(bufnr)
  local root = require("avante.utils").root.get { buf = bufnr }
  return (root:gsub("/", "__"):gsub("[^A-Za-z0-9._]", "_"))
end

-- A message of a history as the engine stores it. avante has Anthropic's blocks: a call is a block
-- of the assistant's, a result one of the user's.
local function write(one)
  local content = one.message.content
  local block = type(content) == "table" and #content == 1 and content[1]
  local rest = {}
  for key, value in pairs(one) do
    if type(value) ~= "function" then
      rest[key] = value
    end
  end
  local stored = { role = one.message.role, content = content, avante = rest }
  if block and block.type == "tool_use" then
    stored.content = ""
    stored.tool_calls = { { id = block.id, name = block.name, arguments = block.input } }
  elseif block and block.type == "tool_result" and block.tool_use_id then
    local text = block.content
    stored.role, stored.tool_call_id = "tool", block.tool_use_id
    stored.content = type(text) == "string" and text or vim.json.encode(text)
  else
    rest.message = nil -- the message itself has it
  end
  return stored
end

-- The message of a history that was stored. One of another program gets what avante needs.
local function read(row)
  local stored = row.message
  local one = stored.avante or { uuid = row.id or row.key, state = "generated", visible = true,
    timestamp = os.date("!%Y-%m-%d %H:%M:%S", (row.time or 0) / 1000) }
  one.message = one.message or { role = stored.role == "user" and "user" or "assistant",
    content = stored.content }
  return one
end

local function notify(text)
  vim.notify("sessile: " .. text, vim.log.levels.WARN)
end

-- The session of a history.
local function name(self, bufnr, filename)
  return { id = project_of(bufnr) .. "/" .. filename, agent = self.agent }
end

-- The writer of a history; one that was not loaded here begins with what is stored.
local function writer_of(self, bufnr, history)
  local session = name(self, bufnr, history.filename)
  local entry = self.writers[session.id]
  if not entry then
    entry = writer.new { server = self.server, session = session, notify = notify, write = write,
      turn = self.turn,
      list = function() return entry.history.messages or {} end,
      mark = function(one)
        if not self.is_leaving and one.state == "generating" then
          return nil
        end
        local content = one.message.content
        return one.uuid, type(content) == "string" and #content or 0
      end,
      create = function() return { title = history.title } end }
    self.writers[session.id] = entry
  end
  entry.history = history
  return entry
end

-- The fields of a history that are no messages, if they changed.
local function save_fields(self, entry)
  local fields = {}
  for key, value in pairs(entry.history) do
    if not NOT_KEPT[key] then
      fields[key] = value
    end
  end
  if vim.deep_equal(fields, entry.fields) then
    return
  end
  entry.fields = vim.deepcopy(fields)
  self.server:call("session/metadata", { session = entry.session, set = { avante = fields } },
    function(_, failure)
      if failure then
        entry.fields = nil -- the next save tries again
        notify(failure.message)
      end
    end)
end

-- A history that is stored; nil if there is none. path: what of it to read.
local function load(self, bufnr, filename)
  local session = name(self, bufnr, filename)
  local rows, failure = self.server:wait("session/messages", { session = session })
  if not rows then
    return nil, failure
  end
  local history = { messages = vim.tbl_map(read, rows), entries = {}, todos = {},
    title = "untitled", filename = filename }
  local metadata = self.server:wait("session/metadata", { session = session })
  local fields = type(metadata) == "table" and metadata.avante or {}
  for key, value in pairs(fields) do
    history[key] = value ~= vim.NIL and value or nil
  end
  local entry = writer_of(self, bufnr, history)
  if not entry.busy and not entry.pending then
    entry:continue(self.server:wait("session/head", { session = session }),
      vim.tbl_map(function(row) return row.id or false end, rows))
    entry.fields = vim.deepcopy(fields)
  end
  return history
end

-- The filenames of a project's histories, the newest first.
local function filenames(self, bufnr)
  local prefix = project_of(bufnr) .. "/"
  local rows, failure = self.server:wait("store/list", { agent = self.agent, prefix = prefix,
    sort = "modified" })
  if not rows then
    notify(failure.message)
  end
  return vim.tbl_map(function(row) return row.id:sub(#prefix + 1) end, rows or {})
end

-- The functions that stand for avante's own.
local function functions(self)
  local History = {}

  function History.new()
    return { title = "untitled", timestamp = os.date "!%Y-%m-%d %H:%M:%S", entries = {},
      messages = {}, todos = {},
      filename = ("%d-%04x.json"):format(os.time(), vim.loop.hrtime() % 0x10000) }
  end

  function History.save(bufnr, history)
    if not history.filename then
      return
    end
    local entry = writer_of(self, bufnr, history)
    self.latest[project_of(bufnr)] = history.filename
    entry:save(function(failure)
      if not failure and entry.base then
        save_fields(self, entry)
      end
    end)
  end

  function History.load(bufnr, filename)
    filename = filename or self.latest[project_of(bufnr)] or filenames(self, bufnr)[1]
    local open = filename and self.writers[name(self, bufnr, filename).id]
    if open then
      return open.history -- it may have what is not written yet
    end
    return filename and load(self, bufnr, filename) or History.new()
  end

  function History.list(bufnr)
    local list = {}
    for _, filename in ipairs(filenames(self, bufnr)) do
      list[#list + 1] = History.load(bufnr, filename)
    end
    return list
  end

  function History.get_latest_filename(bufnr, new)
    return new and History.new().filename or History.load(bufnr).filename
  end

  function History.save_latest_filename(bufnr, filename)
    self.latest[project_of(bufnr)] = filename
  end

  function History.delete(bufnr, filename)
    local session = name(self, bufnr, filename)
    self.writers[session.id] = nil
    local project = project_of(bufnr)
    self.latest[project] = self.latest[project] ~= filename and self.latest[project] or nil
    self.server:call("store/delete", { session = session, soft = true }, function(_, failure)
      if failure then
        notify(failure.message)
      end
    end)
  end
  return History
end

--- Puts the functions into avante.path.
function avante.setup(opts)
  opts = opts or {}
  local self = { agent = opts.agent or "avante", turn = opts.turn, writers = {}, latest = {},
    server = server.new { command = opts.command, args = opts.args, env = opts.env } }
  for key, value in pairs(functions(self)) do
    require("avante.path").history[key] = value
  end
  vim.api.nvim_create_autocmd("VimLeavePre", { callback = function()
    self.is_leaving = true
    for _, entry in pairs(self.writers) do
      entry:save()
    end
    vim.wait(5000, function()
      for _, entry in pairs(self.writers) do
        if entry.busy then
          return false
        end
      end
      return true
    end, 2)
    self.server:stop()
  end })
  avante.state = self
end

return avante
