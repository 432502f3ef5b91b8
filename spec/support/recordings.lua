-- recordings.lua: the recordings in spec/fixtures/import, and what an imported session holds.

local import = require "sessile.import"
local lfs = require "lfs"
local span = require("sessile.core").span

local recordings = {}

local folder = "spec/fixtures/import"

--- The paths of all specimens, sorted. Their names begin with the format's.
function recordings.paths()
  local paths = {}
  for name in lfs.dir(folder) do
    if name:find "%.json" then
      paths[#paths + 1] = folder .. "/" .. name
    end
  end
  table.sort(paths)
  return paths
end

--- The format that a specimen's name says.
function recordings.format(path)
  return path:match "([^/%-.]+)[^/]*$"
end

--- Imports a file into a store; fails the test when that fails.
function recordings.into(store, path, options)
  options = options or {}
  local records, from = import.open(path, options.from)
  assert(records, from)
  options.from = from
  local session, counts, code = import.into(store, records, options)
  records.opened:close()
  return session, counts, code
end

--- Every entry as it stands in the log, less the times that the engine gave it.
function recordings.log(session)
  local lines = {}
  for entry in session:entries() do
    lines[#lines + 1] = (entry.json:gsub('"timestamp":"[^"]*",', "", 1)
      :gsub('"created":"[^"]*","nonce":"[^"]*",?', "", 1):gsub('"session":"[^"]*",', "", 1)
      :gsub('"duration_ms":%d+', ""):gsub('"[%w_]+_us":%d+', ""):gsub('"now":%d+', ""))
  end
  return lines
end

--- A JSON text with its keys sorted, no white space, strings in one way of writing them, and
--- numbers as they stand.
function recordings.canonical(raw)
  local kind = span.kind(raw)
  if kind == "object" then
    local parts = {}
    for i, member in ipairs(assert(span.object(raw))) do
      parts[i] = span.quote(member.key) .. ":" .. recordings.canonical(member.raw)
    end
    table.sort(parts)
    return "{" .. table.concat(parts, ",") .. "}"
  elseif kind == "array" then
    local parts = {}
    for i, one in ipairs(assert(span.array(raw))) do
      parts[i] = recordings.canonical(one)
    end
    return "[" .. table.concat(parts, ",") .. "]"
  end
  raw = raw:match "^%s*(.-)%s*$"
  return kind == "string" and span.quote(span.string(raw)) or raw
end

--- What session:export writes: its text and what it returns.
function recordings.exported(session, to)
  local chunks = {}
  local done, message = session:export { to = to, write = function(chunk)
    chunks[#chunks + 1] = chunk
    return true
  end }
  assert(done, message)
  return table.concat(chunks), done
end

--- A pi recording of `questions` questions, a tree: every third question is asked twice.
function recordings.bulk(path, questions)
  local file <close> = assert(io.open(path, "wb"))
  local parent, n = "null", 0
  local function line(format, ...)
    n = n + 1
    file:write(('{"type":"message","id":"e%d","parentId":%s,'):format(n, parent),
      '"timestamp":"2026-01-01T00:00:00.000Z","message":', format:format(...), "}\n")
    parent = ('"e%d"'):format(n)
  end
  file:write '{"type":"session","version":3,"id":"bulk","timestamp":"2026-01-01T00:00:00.000Z"}\n'
  for question = 1, questions do
    local before = parent
    for again = 1, question % 3 == 0 and 2 or 1 do
      parent = before
      line('{"role":"user","content":"question %d, %d","timestamp":%d}', question, again, n)
      line('{"role":"assistant","content":[{"type":"toolCall","id":"c%d","name":"look",'
        .. '"arguments":{"n":%d}}],"usage":{"input":1,"output":1,"cacheRead":0,"cacheWrite":0},'
        .. '"model":"m","timestamp":%d}', n, n, n)
      line('{"role":"toolResult","toolCallId":"c%d","toolName":"look","content":"%s"}', n - 1,
        ("seen "):rep(20))
      file:write(('{"type":"custom","id":"x%d","parentId":%s,"customType":"t","data":%d}\n')
        :format(n, parent, n))
      parent = ('"x%d"'):format(n)
    end
  end
  return n
end

return recordings
