-- sessile memory embed, and what embeddings add to memory search and memory stats.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local temp = require "spec.support.temp"
local has = expect.has

-- A program that embeds, as a table of synonyms: each text has its line in the request. The Nth
-- request kills who asks, if the file `kill` says N.
local PROGRAM = [[#!/usr/bin/env lua5.4
local folder = arg[1]
local request = io.read "a"
local function number(name)
  local file = io.open(folder .. "/" .. name)
  local n = file and file:read "n"
  if file then file:close() end
  return n
end
local n = (number "count" or 0) + 1
io.open(folder .. "/count", "w"):write(n):close()
if number "kill" == n then
  os.execute("kill -9 " .. io.open "/proc/self/stat":read "a":match "%) %a (%d+)")
end
if number "fail" == n then
  io.stderr:write "no money"
  os.exit(3)
end
local texts = request:match '"texts":%[(.-)%]'
local vectors = {}
for text in texts:gmatch '"(.-)"' do
  local function count(a, b)
    return (text:find(a, 1, true) or text:find(b, 1, true)) and 1 or 0
  end
  vectors[#vectors + 1] = ("[%d,%d,0.1]"):format(count("kitten", "feline"),
    count("engine", "automobile"))
end
print(('{"vectors":[%s]}'):format(table.concat(vectors, ",")))
]]

describe("sessile memory embed", function()
  cli.each_test()

  local folder

  local function run(arguments, expected)
    local out, err, status = cli.sessile(arguments)
    assert.equal(expected or 0, status, arguments .. ": " .. err)
    return out, err
  end

  before_each(function()
    folder = temp.dir()
    temp.write(folder .. "/embed.lua", PROGRAM)
    cli.configure(([=[return {
      memory = { embed = { command = { "lua5.4", "%s/embed.lua", "%s" }, name = "syn", dims = 3 } },
      models = { wrong = { command = { "echo", "[[1,2]]" } } },
    }]=]):format(folder, folder))
    run "memory add coder 'a kitten naps' --key pet"
    run "memory add coder 'the engine starts' --key car"
    run "memory add coder 'a third thing'"
  end)

  it("embeds what has no vector yet, and search finds by it", function()
    local out, err = run "memory search coder automobile"
    assert.is_nil(out:find("engine", 1, true))
    has(err, "By words alone: no entry has a vector of 'syn'")
    assert.equal("3 to be embedded\n", (run "memory embed coder --dry-run"))
    assert.equal("3 embedded\n", (run "memory embed coder"))
    assert.equal("0 embedded\n", (run "memory embed coder"))
    has(run "memory search coder automobile", "the engine starts")
    has(run "memory search coder automobile --explain", "vectors: nearness 1.")
    has(run "memory stats coder", "3 of 3 embedded, 3 numbers, in use")
    run "memory add coder 'another'"
    has(run "memory stats coder", "3 of 4 embedded")
    has(run "memory embed coder --json", '"embedded": 1')
  end)

  it("goes on where a killed one was", function()
    temp.write(folder .. "/kill", "2")
    local _, _, status = cli.sessile "memory embed coder --batch 1"
    assert.is_true(status == 137 or status == 9, "status " .. tostring(status))
    os.remove(folder .. "/kill")
    has(run "memory stats coder", "1 of 3 embedded")
    assert.equal("2 embedded\n", (run "memory embed coder --batch 1"))
    has(run "memory search coder automobile", "the engine starts")
  end)

  it("says what failed, and keeps what came", function()
    temp.write(folder .. "/fail", "2")
    local _, err = run("memory embed coder --batch 1", 1)
    has(err, "no money")
    has(err, "1 embedded, 2 still to be")
    has(err, "sessile memory embed coder")
    assert.equal("2 embedded\n", (run "memory embed coder"))
    _, err = run("memory embed coder --model wrong", 1)
    has(err, "1 vector came for 3 texts")
    _, err = run("memory embed coder --model wrogn", 2)
    has(err, "Did you mean `wrong`?")
    run("memory embed coder --batch 0", 2)
    cli.configure "return {}"
    _, err = run("memory embed coder", 1)
    has(err, "memory = { embed = {")
  end)

  it("measures which weight finds most", function()
    run "memory embed coder"
    local path = folder .. "/asked.jsonl"
    temp.write(path, '{"question":"feline","keys":["pet"]}\n\n'
      .. '{"question":"automobile","ids":["2"]}\n{"question":"third","ids":["00000003"]}\n')
    local out, err = run("memory stats coder --questions " .. path)
    assert.matches("0%.0 +0%.333 +0%.333 +0%.333\n", out)
    assert.matches("0%.3 %* +1%.000 +1%.000 +1%.000\n", out)
    has(err, "Best for these 3 questions: memory.weight = 0.3")
    has(run("memory stats coder --json --questions " .. path), '"best": 0.3')
    for text, what in pairs {
      ["1: no JSON object"] = "nonsense", ["1: no list of"] = '{"question":"a"}',
      ["2: there is no entry 'pett'"] = '\n{"question":"a","keys":["pett"]}',
      ["has no question"] = "\n",
    } do
      temp.write(path, what)
      err = select(2, run("memory stats coder --questions " .. path, 1))
      has(err, text)
    end
    run("memory stats coder --questions /nowhere", 3)
    cli.configure "return {}"
    temp.write(path, '{"question":"third","keys":["pet"]}\n')
    err = select(2, run("memory stats coder --questions " .. path))
    has(err, "By words alone")
  end)
end)
