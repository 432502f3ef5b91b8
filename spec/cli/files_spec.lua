-- Files that the executable writes for its user alone.
-- Files only: files that the executable writes.

local cli = require "spec.support.cli"
local home

cli.each_test(function(path) home = path end)

-- What a script prints that has `files` and its folder at hand.
local function run(script)
  cli.write(home .. "/script.lua", ("local files, home = require 'sessile.files', %q\n%s"):format(
    home, script))
  return cli.done("run " .. home .. "/script.lua")
end

local function mode(path)
  local pipe <close> = io.popen("stat -c %a " .. cli.quote(path))
  return pipe:read "l"
end

describe("a file that grows", function()
  it("is made with its folders, and nobody else may read it", function()
    run [[
      assert(files.append(home .. "/a/b/list", "one\n"))
      assert(files.append(home .. "/a/b/list", "two\n"))
    ]]
    assert.equal("one\ntwo\n", cli.read(home .. "/a/b/list"))
    assert.equal("600", mode(home .. "/a/b/list"))
    assert.equal("700", mode(home .. "/a"))
  end)

  it("is its owner's alone from then on, when others could read it", function()
    cli.write(home .. "/list", "one\n")
    assert(os.execute("chmod 644 " .. cli.quote(home .. "/list")))
    run [[assert(files.append(home .. "/list", "two\n"))]]
    assert.equal("600", mode(home .. "/list"))
  end)

  it("is no link, no FIFO and no folder", function()
    cli.write(home .. "/elsewhere", "mine\n")
    assert(os.execute(("cd %s && ln -s elsewhere link && mkfifo pipe && mkdir folder"):format(
      cli.quote(home))))
    local said = run [[
      for _, name in ipairs { "link", "pipe", "folder", "elsewhere/below" } do
        local ok, message, code = files.append(home .. "/" .. name, "x")
        print(ok, code, message:find(name, 1, true) ~= nil)
      end
    ]]
    assert.equal("nil\tEDENIED\ttrue\nnil\tEIO\ttrue\nnil\tEINVALID\ttrue\nnil\tEINVALID\ttrue\n",
      said)
    assert.equal("mine\n", cli.read(home .. "/elsewhere"))
  end)
end)

describe("a file that is there whole or not at all", function()
  it("has no name before it is complete", function()
    local said = run [[
      local file = assert(files.create(home .. "/whole"))
      assert(file:write "half")
      print(io.open(home .. "/whole") == nil)
      assert(file:finish())
      print(io.open(home .. "/whole"):read "a")
    ]]
    assert.equal("true\nhalf\n", said)
    assert.equal("600", mode(home .. "/whole"))
  end)

  it("takes nobody's place unless it is told to", function()
    cli.write(home .. "/whole", "first")
    local said = run [[
      local function put(text, replace)
        local file <close> = assert(files.create(home .. "/whole"))
        assert(file:write(text))
        return file:finish(replace)
      end
      print(select(3, put("second")))
      print(io.open(home .. "/whole"):read "a")
      print(put("third", true))
      print(io.open(home .. "/whole"):read "a")
    ]]
    assert.equal("EEXISTS\nfirst\ntrue\nthird\n", said)
  end)
end)
