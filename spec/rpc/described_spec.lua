-- `sessile rpc`: what describes it is true: the OpenRPC document, the README's table and examples.

local built = require "spec.support.built"
local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local guides = require "spec.support.guides"
local registry = require "sessile.rpc.registry"
local rpc = require "spec.support.rpc"
local shell = require "spec.support.shell"

local has = expect.has

local home

cli.each_test(function(path)
  home = path
end)

-- Each reference in a document to a schema.
local function references(value, found)
  for name, inner in pairs(type(value) == "table" and value or {}) do
    if name == "$ref" then
      found[inner:match "^#/components/schemas/(%a%w*)$"] = true
    end
    references(inner, found)
  end
  return found
end

describe("the description of sessile rpc", function()
  it("is an OpenRPC document of all methods, whose references lead somewhere", function()
    local client = rpc.start()
    local document = client:call "rpc/discover"
    client:finish()
    assert.equal("1.3.2", document.openrpc)
    assert.is_string(document.info.title)
    assert.is_string(document.info.version)
    assert.equal(#registry.names, #document.methods)
    local names = {}
    for _, method in ipairs(document.methods) do
      assert.is_nil(names[method.name])
      names[method.name] = true
      assert.is_true(#method.summary > 5, method.name)
      assert.equal("by-name", method.paramStructure)
      for _, parameter in ipairs(method.params) do
        assert.is_string(parameter.name)
        assert.is_boolean(parameter.required)
        assert.is_not_nil(parameter.schema)
      end
      assert.is_true(method.result ~= nil or method.name == "rpc/cancel")
    end
    for name in pairs(references(document, {})) do
      assert.is_table(document.components.schemas[name], name)
    end
  end)

  it("is the table in the README", function()
    has(guides.read "lua/sessile/rpc/README.md", require "sessile.rpc.reference".table())
  end)

  it("has the numbers of sessile.h", function()
    local header = guides.read "engine/include/sessile.h"
    local enum = header:match "typedef enum sessile_status {(.-)} sessile_status;"
    local statuses, n = require "sessile.rpc.errors".statuses, 0
    for name in enum:gsub("/%*.-%*/", ""):gmatch "SESSILE_(%u+)" do
      assert.equal(name, statuses[n])
      n = n + 1
    end
    assert.equal(n, #statuses + 1)
  end)

  it("shows a program in Python that works", function()
    local python = shell.line "command -v /usr/bin/python3 || true"
    if python == "" then
      pending "python3 is not installed: the README's program was not run"
      return
    end
    cli.write(home .. "/sessile_rpc.py", (cli.done "rpc --client python"))
    cli.write(home .. "/try.py", "my_model = lambda request: 'in short'\n"
      .. guides.read("lua/sessile/rpc/README.md"):match "\n```python\n(.-)\n```")
    local out, ok = shell.output(("cd %s && ln -s %s sessile && %s PATH=.:$PATH %s try.py 2>&1")
      :format(cli.quote(home), cli.quote(built.binary), cli.env(), python))
    assert(ok, out)
    has(out, "why is it slow?")
  end)
end)
