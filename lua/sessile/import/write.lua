--- write: writes the records of a recording into a session, and continues an earlier import.
--
-- Owns: the choice of the session, the loop over the records (put.lua writes each), and the title
-- and metadata at the end. Must never open a store of the user, or print.
--
-- Each write stores its origin: a turn metadata.imported = {from, source, lines, bytes}, a custom
-- entry {from, at, source}, a summary metadata.imported = {from, source, at}. Another import reads
-- these, goes through the recording from its beginning, and writes what is missing. So a message is
-- identified by its recording and its line in it, never by its text. If a recording has no name of
-- its own and is imported into another session, its path identifies it. One from a pipe is always
-- new.

local dialect = require "sessile.dialect"
local bytes = require "sessile.import.bytes"
local compaction = require "sessile.import.compaction"
local core = require "sessile.core"
local progress = require "sessile.import.done"
local writes = require "sessile.import.put"

local math = dialect.math

local write = {}

---@class sessile.import.counts
---@field messages integer
---@field turns integer
---@field customs integer  lines that are no message, kept as custom entries
---@field refused integer  messages that the engine would not take, kept as custom entries
---@field unread integer   lines that could not be read as messages: refused, or not even that
---@field first {at: integer?, why: string}?  the first of those
---@field compactions integer  that the recording tells of and the session now has
---@field summaries integer    of compactions that could not be repeated, kept as messages
---@field branches integer     places where it continued from an older entry
---@field strays integer       messages whose parent is not there: each begins a conversation
---@field before integer       messages that an earlier import had brought
---@field resumed boolean?     it continued a session that an earlier import had begun
---@field separate string?     the id of its parent, which the store did not have: it is no child
---@field unchanged boolean?   it was skipped
---@field looks_like string?   a sentence, if lines could not be read and another format may fit

local Writer = {}
Writer.__index = Writer

-- How much may precede the first message, so that a file without messages is not read to its end.
local MOST_WAITING, MOST_WAITING_BYTES = 100000, 16 * 1048576

local ROOT = "00000000"

-- ---------------------------------------------------------------- the session

-- Whether the existing session with that id comes from this recording.
local function resume(self, options, skip)
  local session, message, code, retry_ms, rule = self.store:resume(options)
  if not session then
    return nil, message, code, retry_ms, rule
  end
  local own = session:metadata()
  own = type(own) == "table" and own.imported
  if type(own) ~= "table" or own.source ~= self.records.source or own.from ~= self.from then
    session:close()
    return nil, ("a session '%s' is there, and it is not of this recording"):format(options.id),
      "EEXISTS"
  end
  self.unchanged = skip and own.bytes and own.bytes == self.records.size
  self.counts.before = self.unchanged and math.tointeger(own.messages) or 0
  return session
end

-- Creates a session: a child, if the store has the session that it was begun by.
local function create(self, made)
  local link = self.recorded_parent
  local parent = link and self.store:resume { id = link, agent = made.agent, user = made.user }
  if link and not parent and self.options.waits_for_parent then
    return nil, ("the session that began it, %s, is not there"):format(link), "EPARENT"
  elseif not parent then
    local session, message, code, retry_ms, rule = self.store:create(made)
    self.counts.separate = session and link or nil
    return session, message, code, retry_ms, rule
  end
  local session, message, code, retry_ms, rule = parent:child(made)
  if session then
    parent:sync()
  end
  parent:close()
  return session, message, code, retry_ms, rule
end

local function make_session(self)
  local options = self.options
  local id = options.id or self.recorded_id or options.default_id
  local session, message, code, retry_ms, rule = create(self, {
    id = id, title = options.title or self.recorded_title, agent = options.agent,
    user = options.user,
    metadata = { imported = { from = self.from, source = self.records.source,
      parent = self.recorded_parent } },
  })
  if not session and code == "EEXISTS" and self.records.source then
    session, message, code, retry_ms, rule = resume(self,
      { id = id, agent = options.agent, user = options.user }, options.skip_unchanged)
    self.resumed = session ~= nil
  elseif session then
    self.made = true
  end
  if not session then
    return nil, message, code, retry_ms, rule
  end
  self.session = session
  return self.unchanged or self:read_session()
end

-- Reads what earlier imports wrote.
function Writer:read_session()
  local done, message, code, retry_ms, rule =
    progress.read(self.session, self.from, self.records.source,
    self.options.session ~= nil)
  if not done then
    return nil, message, code, retry_ms, rule
  end
  self.done = done
  self.base = done.base or (self.made or self.resumed) and ROOT or self.session:head()
  self.head = self.session:head()
  self.top = self.head
  self.newest = nil
  return true
end

-- A title of at most 1,000 bytes.
local function clip(text)
  local stop = math.min(#text, 1000)
  while stop > 0 and stop < #text and text:find("^[\128-\191]", stop + 1) do
    stop = stop - 1
  end
  return text:sub(1, stop)
end

-- The session is created with the first message that the engine accepts; until then all records
-- wait.
local function wait(self, record)
  table.insert(self.waiting, record)
  self.waiting_bytes = (self.waiting_bytes or 0) + #(record.json or "")
  if record.kind == "custom" then
    self.why = self.why or record.why and { at = record.at, why = record.why }
    if #self.waiting > MOST_WAITING or self.waiting_bytes > MOST_WAITING_BYTES then
      return nil, ("none of its first %d lines is a message"):format(record.at or #self.waiting),
        "EINVALID"
    end
    return true
  end
  local list = record.kind == "turn" and record
    or { messages = { compaction.message(record.summary, writes.place_of(self, record.at)) } }
  local good, message, code, retry_ms, rule = writes.sieve(list)
  if not good then
    return nil, message, code, retry_ms, rule
  elseif next(good) == nil then
    local first = message[1]
    self.why = self.why or { at = record.lines and record.lines[first.index], why = first.why }
    return true
  end
  local ok
  ok, message, code, retry_ms, rule = make_session(self)
  local waiting = not self.unchanged and self.waiting or {}
  self.waiting = {}
  for _, one in ipairs(ok and waiting or {}) do
    if ok then
      ok, message, code, retry_ms, rule = writes.kinds[one.kind](self, one)
    end
  end
  return ok, message, code, retry_ms, rule
end

local function put(self, record)
  if record.kind == "session" then
    if not self.session then
      local id = record.id
      if id and id ~= "" and id ~= "last" and #id <= 1000 then
        self.recorded_id = self.recorded_id or id
      end
      self.recorded_title = self.recorded_title or record.title and clip(record.title)
      self.recorded_parent = self.recorded_parent or record.begun_by
    end
    return true
  elseif self.session and not self.done then
    local ok, message, code, retry_ms, rule = self:read_session()
    if not ok then
      return nil, message, code, retry_ms, rule
    end
  end
  if self.session then
    return writes.kinds[record.kind](self, record)
  end
  return wait(self, record)
end

-- Why there is no session.
local function nothing(self)
  if #self.waiting == 0 then
    return "there is nothing in it"
  end
  local first = self.why
  local at = first and first.at
  return "none of its lines is a message"
    .. (first and ("; line %d: %s"):format(type(at) == "table" and at[1] or at or 1, first.why)
      or "")
end

-- Writes an entry that tells how much of the recording was read. It is the last one, after a sync,
-- and proves that the others, which were written without a sync, are durable. Without it, damage to
-- the imported entries would look like a cut-off write.
local function vouch(self)
  local session, records, counts = self.session, self.records, self.counts
  local imported = {
    from = self.from, source = records.source, bytes = records.offset > 0 and records.offset or nil,
    parent = self.recorded_parent,
  }
  local own = (session:metadata() or {}).imported
  if self.options.session then
    if counts.messages + counts.customs + counts.compactions == 0 then
      return true
    end
  elseif not self.made and type(own) == "table" and own.bytes == imported.bytes then
    return true
  end
  local ok, message, code, retry_ms, rule = session:sync()
  if not ok then
    return nil, message, code, retry_ms, rule
  elseif self.options.session then
    ok, message, code, retry_ms, rule = session:custom { imported = imported }
    return ok and true, message, code, retry_ms, rule
  end
  imported.messages = counts.before + counts.messages
  local metadata = { imported = imported }
  for name, value in pairs(records.about or {}) do
    metadata[name] = clip(bytes.text(value))
  end
  return session:metadata(metadata)
end

-- Writes the title, settings and metadata of the recording, and how much of it was read.
local function finish(self)
  local session, records = self.session, self.records
  local head = records.head == false and ROOT or self.entries[records.head]
  local target = self.head ~= self.base and self.done.newest ~= self.head
    and not self.made and self.head -- somebody continued the session meanwhile
    or head or self.newest
  local ok, message, code, retry_ms, rule = true, nil, nil
  if target and session:head() ~= target then
    ok, message, code, retry_ms, rule = writes.go_to(self, target)
  end
  local title = session.title == "" and not self.options.session
    and (records.title or self.options.title_of and self.options.title_of(self.recorded_id))
  if ok and title then
    ok, message, code, retry_ms, rule = session:set_title(clip(bytes.text(title)))
  end
  if ok and not self.options.session then
    local now, settings = session:settings() or {}, {}
    for name, value in pairs(records.settings) do
      settings[name] = now[name] ~= value and value or nil
    end
    if next(settings) then
      ok, message, code, retry_ms, rule = session:settings(settings)
    end
  end
  if ok then
    ok, message, code, retry_ms, rule = vouch(self)
  end
  self.counts.strays = records.strays or 0
  return ok, message, code, retry_ms, rule
end

--- Writes records into a session of the store: the one that has part of this recording already,
--- else a new one. Returns it, still open. Its id is options.id, else the recorded one.
---@param store table
---@param records sessile.import.records
---@param options {from: string, id: string?, title: string?, agent: string?,
--- user: string?, session: table?,
--- default_id: string?, title_of: (fun(id: string?): string?)?, skip_unchanged: boolean?,
--- waits_for_parent: boolean?,
--- on_step: fun(offset: integer, size: integer?)?}
--- session: write into this one; default_id, title_of: of a recording that has none;
--- waits_for_parent: of a sub-agent whose parent the store does not have: EPARENT, and nothing is
--- written; skip_unchanged: of one that was imported to its end and has the same length, only the
--- beginning is read
---@return table? session
---@return sessile.import.counts|string counts_or_message
---@return string? code
function write.into(store, records, options)
  if type(records) == "function" then
    local next_record = records
    records = setmetatable({ offset = 0, settings = {} }, { __call = function()
      return next_record()
    end })
  end
  local self = setmetatable({
    store = store, options = options, from = options.from, records = records,
    session = options.session, entries = {}, written = {}, waiting = {},
    counts = { messages = 0, turns = 0, customs = 0, refused = 0, unread = 0, compactions = 0,
      summaries = 0, branches = 0, strays = 0, before = 0 },
  }, Writer)
  if options.session and not records.has_name then
    records.salt = records.path or tostring(core.now())
  end
  local ok, message, code, retry_ms, rule = true, nil, nil
  for record in records do
    ok, message, code, retry_ms, rule = put(self, record)
    if not ok or self.unchanged then
      break
    end
    if options.on_step then
      options.on_step(records.offset, records.size)
    end
  end
  if ok and records.failed then
    ok, message, code = nil, records.failed, "EIO"
  end
  if not self.session and (ok or code == "EINVALID") then
    records.is_empty = ok
    return nil, (ok and nothing(self) or message)
      .. (records.looks_like and "; " .. records.looks_like or ""), "EINVALID"
  end
  self.counts.resumed = self.resumed
  self.counts.unchanged = self.unchanged or nil
  self.counts.looks_like = self.counts.unread > 0 and records.looks_like or nil
  if ok and self.done then
    ok, message, code, retry_ms, rule = finish(self)
  end
  if not ok then
    if self.session and self.done and code ~= "EEXISTS" then
      local count = self.counts.messages
      message = ("%s (after %d messages, which are in '%s')"):format(message, count,
        self.session.id)
    end
    if self.session and not options.session then
      self.session:close()
    end
    return nil, message, code, retry_ms, rule
  end
  return self.session, self.counts
end

return write
