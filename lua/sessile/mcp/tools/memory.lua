-- memory.lua: the tools of long-term memory: memory_search, and with --write memory_remember.
--
-- A memory is an agent's, or with --user that of the agent for this user. What is written comes
-- from a model that this program knows nothing of: it has a tool's words, and waits for a person,
-- unless `memory.trust` says that such words need not.

local clean = require "sessile.mcp.clean"
local core = require "sessile.core"
local memory_settings = require "sessile.memory_settings"
local page = require "sessile.mcp.page"
local schema = require "sessile.mcp.schema"

local text, whole, list = schema.text, schema.whole, schema.list

local tools = {}

local AGENT = text()
local DEFAULT = "main"

-- The memory that is meant, and its agent. false: nothing was ever kept there. nil, message, code,
-- step.
local function open(server, args, create)
  local agent, message, code, step = server.scope:of_agent(args.agent)
  if agent == false then
    return nil, message, code, step
  end
  agent = agent or DEFAULT
  local user = server.scope.user
  local store = server:store(create)
  if not store then
    return false, agent
  end
  local memory
  memory, message, code = store:memory { agent = agent, user = user,
    must_exist = not create or user ~= nil }
  if not memory and code == "ENOTFOUND" then
    return false, agent
  end
  return memory, memory and agent or message, code
end

-- Whether a model may see an entry, as recall trusts it.
local function is_readable(row, trusts_tools)
  return row.state == "live" and (row.source ~= "tool" or row.approved or trusts_tools)
end

-- ---------------------------------------------------------------- memory_search

local MOST = 24

tools[1] = {
  name = "memory_search", title = "Search long-term memory",
  about = "Search what an agent remembers across sessions (facts, preferences, procedures).",
  input = schema.object({ query = text "a question, or words", agent = AGENT,
    limit = whole(1, MOST, "default 8") }, { "query" }),
  output = schema.object({
    agent = text(), notes = list({ entry = text(), key = text(), value = text(), kind = text(),
      source = text(), time = text(), score = { type = "number" } },
      { "entry", "value", "kind", "source" }),
    notice = text(),
  }, { "agent", "notes", "notice" }),
}

-- Whether the user, if the memory is one's, consents to be remembered.
local function consents(server, memory)
  if not server.scope.user then
    return true
  end
  local stats, message, code = memory:stats()
  if not stats then
    return nil, message, code
  elseif not stats.consented then
    return nil, "the user does not consent to be remembered", "EDENIED", false
  end
  return true
end

local function note_row(redaction, row)
  return {
    entry = row.id, key = row.key and redaction:line(row.key) or nil,
    value = redaction:text(row.value), kind = row.kind, source = row.source,
    time = page.time(row.time), score = math.floor(row.score * 100 + 0.5) / 100,
  }
end

tools[1].run = function(server, args)
  local memory <close>, agent, code, step = open(server, args)
  if memory == nil then
    return nil, agent, code, step
  end
  local notes, redaction = core.array {}, clean.new()
  local result = { agent = redaction:line(agent or DEFAULT), notes = notes }
  if not memory then
    return result
  end
  local fine, message
  fine, message, code, step = consents(server, memory)
  if not fine then
    return nil, message, code, step
  end
  local limit, rows = args.limit or 8
  rows, message, code = memory:search(args.query, { limit = limit + MOST })
  if not rows then
    return nil, message, code
  end
  local own = memory_settings.of(server:store(), agent)
  local trusts_tools = (own.recall or {}).trust == "tool"
  for _, row in ipairs(rows) do
    if #notes < limit and is_readable(row, trusts_tools) then
      notes[#notes + 1] = note_row(redaction, row)
    end
  end
  return result
end

-- ---------------------------------------------------------------- memory_remember

tools[2] = {
  name = "memory_remember", title = "Remember something", writes = true,
  about = "Propose one statement to remember for later sessions, clear without this "
    .. "conversation. A person approves it.",
  input = schema.object({ text = { type = "string", maxLength = 2048 },
    key = text "a short name, such as editor", agent = AGENT }, { "text" }),
  output = schema.object({ agent = text(), entry = text(), state = text(), next = text() },
    { "agent", "entry", "state" }),
}

tools[2].run = function(server, args)
  if not args.text:find "%S" then
    return nil, "'text' is empty", "EINVALID"
  end
  local memory <close>, agent, code, step = open(server, args, true)
  if memory == nil then
    return nil, agent, code, step
  elseif not memory then
    return nil, "the user has not consented to be remembered", "EDENIED",
      "A person records what the user said: `sessile consent give`."
  end
  local own = memory_settings.of(server:store(), agent)
  local is_live = own.trust ~= nil and own.trust.tool == "live"
  local id, message
  id, message, code = memory:write(args.key ~= "" and args.key or nil, args.text, {
    source = "tool", author = "mcp", pending = not is_live,
    metadata = not is_live and { pending_because = "it was proposed over MCP" } or nil })
  if not id then
    return nil, message, code
  end
  local row = memory:get(id)
  local state = row and row.state or is_live and "live" or "pending"
  return { agent = clean.new():line(agent), entry = id, state = state,
    next = state == "pending" and "A person approves it with `sessile memory review`." or nil }
end

return tools
