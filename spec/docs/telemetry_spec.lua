-- The table of metrics in engine/service/README.md says what metrics.def has.

local built = require "spec.support.built"

local function read(path)
  local file <close> = assert(io.open(built.root .. "/" .. path))
  return file:read "a"
end

it("the table of metrics is that of metrics.def", function()
  local documented, defined = {}, {}
  local table_of = read("engine/service/README.md"):match "\n### Metrics\n(.-)\n### "
  for name, kind in table_of:gmatch "\n| `([%w_]+)` | (%l+)" do
    documented[name] = kind
  end
  for kind, name, labels in read("engine/service/metrics.def"):gmatch
    '\nMETRIC%([%w_]+, (%u+), %u+, "([%w_]+)", "[^\n]-", ([%u, ]+)%)' do
    assert.is_nil(defined[name])
    defined[name] = kind:lower()
    for label in labels:gmatch "%u+" do
      assert(label == "NONE" or table_of:find(("\n| `%s`[^\n]*`%s`"):format(name, label:lower())),
        name .. ", label " .. label:lower())
    end
  end
  assert.is_truthy(next(defined))
  assert.same(defined, documented)
end)
