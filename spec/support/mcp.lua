-- mcp.lua: `sessile mcp` as a host starts it: requests of either era in, answers out.

local assert = require "luassert"
local cli = require "spec.support.cli"
local json_schema = require "spec.support.json_schema"
local sessile = require "sessile"

local mcp = {}

local META = "io.modelcontextprotocol/"

--- What a request of 2026-07-28 carries.
function mcp.meta(version)
  return { [META .. "protocolVersion"] = version or "2026-07-28",
    [META .. "clientCapabilities"] = {}, [META .. "clientInfo"] = { name = "spec", version = "1" } }
end

--- A request as a line. modern: of 2026-07-28.
function mcp.request(id, method, params, modern)
  params = params or {}
  if modern then
    params._meta = mcp.meta()
  end
  return sessile.encode { jsonrpc = "2.0", id = id, method = method, params = params }
end

--- A call of a tool as a line.
function mcp.call_line(id, tool, args, modern)
  return mcp.request(id, "tools/call", { name = tool, arguments = args or {} }, modern)
end

--- Runs `sessile mcp WORDS` over these lines; returns the answers, decoded, in their order, and the
--- lines as they came. It has to end well and to say nothing else.
function mcp.run(lines, words, before)
  local out, err, code = cli.sessile("mcp " .. (words or ""), table.concat(lines, "\n") .. "\n",
    before)
  assert.equal(0, code, err)
  cli.no_traceback(err)
  local answers, raw = {}, {}
  for line in out:gmatch "([^\n]*)\n" do
    raw[#raw + 1] = line
    answers[#answers + 1] = cli.decoded(line)
  end
  return answers, raw
end

--- One request; its result, or nil and its error.
function mcp.ask(method, params, words, modern)
  local answers = mcp.run({ mcp.request(1, method, params, modern) }, words)
  assert.equal(1, #answers)
  return answers[1].result, answers[1].error
end

--- The output schemas of all tools, by name.
function mcp.schemas(words)
  local found = {}
  for _, tool in ipairs(mcp.ask("tools/list", nil, words).tools) do
    found[tool.name] = tool.outputSchema
  end
  return found
end

local schemas

--- What a tool gives, which has to be valid by its output schema, and to be the same as the text.
function mcp.tool(name, args, words, modern)
  local result = assert(mcp.ask("tools/call", { name = name, arguments = args or {} }, words,
    modern))
  assert.falsy(result.isError, result.content[1].text)
  schemas = schemas or mcp.schemas "--write"
  assert.equal(nil, json_schema.wrong(result.structuredContent, schemas[name], name))
  assert.same(result.structuredContent, cli.decoded(result.content[1].text))
  return result.structuredContent
end

--- The failure of a tool: {status, message, next}.
function mcp.refused(name, args, words)
  local result = assert(mcp.ask("tools/call", { name = name, arguments = args or {} }, words))
  assert.is_true(result.isError, result.content[1].text)
  assert.equal(nil, result.structuredContent)
  local told = cli.decoded(result.content[1].text)
  assert.equal(nil, json_schema.wrong(told, { type = "object", additionalProperties = false,
    required = { "status", "message" }, properties = { status = { type = "string" },
      message = { type = "string" }, next = { type = "string" } } }))
  return told
end

return mcp
