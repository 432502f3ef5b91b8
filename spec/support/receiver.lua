-- receiver.lua: a receiver of OTLP as a process of a spec, which decodes by Google's protobuf
-- (tests/support/otlp_receiver.py).

local assert = require "luassert"
local built = require "spec.support.built"
local cli = require "spec.support.cli"
local shell = require "spec.support.shell"

local receiver = {}

local PYTHON = "/usr/bin/python3"

--- Whether there is a decoder.
function receiver.is_there()
  return os.execute(PYTHON .. " -c 'import google.protobuf' 2>/dev/null && command -v protoc "
    .. ">/dev/null") == true
end

--- Starts one in the home of the spec. answers: see otlp_receiver.py. Returns a table with `url`.
function receiver.start(answers)
  local log = cli.home() .. "/received"
  local pid = shell.line(("LD_PRELOAD= %s %s/tests/support/otlp_receiver.py 0 %s >%s 2>&1 "
    .. "</dev/null & echo $!"):format(PYTHON, cli.quote(built.root), cli.quote(answers),
    cli.quote(log)))
  local one = setmetatable({ pid = pid, log = log }, { __index = receiver })
  one:wait(function()
    local port = cli.read(log):match "^(%d+)\n"
    one.url = port and "http://127.0.0.1:" .. port
    return port
  end, "a receiver does not begin")
  return one
end

--- Waits until look() gives something.
function receiver:wait(look, what)
  for _ = 1, 600 do
    local found = look()
    if found then
      return found
    end
    os.execute "sleep 0.05"
  end
  error(what .. "\n" .. cli.read(self.log))
end

--- What came until now, in its order: {path, decoded, status} each. Fails if one was not decoded.
function receiver:requests()
  local all = {}
  for line in cli.read(self.log):gmatch "({[^\n]*})\n" do
    local one = cli.decoded(line)
    assert.is_nil(one.error)
    all[#all + 1] = one
  end
  return all
end

--- All records of a signal: spans, metrics, or log records, each with `resource`, its attributes.
function receiver:records(path)
  local all = {}
  for _, one in ipairs(self:requests()) do
    local decoded = one.path == path and one.decoded or {}
    for _, resource in ipairs(decoded.resourceSpans or decoded.resourceMetrics
      or decoded.resourceLogs or {}) do
      local scope = (resource.scopeSpans or resource.scopeMetrics or resource.scopeLogs)[1]
      for _, record in ipairs(scope.spans or scope.metrics or scope.logRecords) do
        record.resource = receiver.attributes(resource.resource.attributes)
        all[#all + 1] = record
      end
    end
  end
  return all
end

--- Attributes by their names.
function receiver.attributes(list)
  local of = {}
  for _, one in ipairs(list or {}) do
    of[one.key] = one.value.stringValue or one.value.intValue or one.value.boolValue
  end
  return of
end

function receiver:stop()
  os.execute(("kill %s 2>/dev/null"):format(self.pid))
end

return receiver
