-- Policies that require others, in this process and in one of their own: the same comes of both.

local shipped = require "spec.support.shipped"
local temp = require "spec.support.temp"
local transcript = require "spec.support.transcript"
local workers = require "spec.support.workers"

local folder

local write = temp.policies("600", function(path) folder = path end)

local function open(policy, options)
  local given = { policy = policy, policy_path = folder .. ":policies", window = 9000 }
  for name, value in pairs(options or {}) do
    given[name] = value
  end
  return workers.open(given)
end

-- Plays the bundled conversation; the entries.
local function play(policy, options)
  local store <close> = assert(open(policy, options))
  local session = assert(store:create { id = "s" })
  shipped.none_refused(transcript.play(session, transcript.turns()))
  return transcript.log(session)
end

-- A policy of one's own in front of one that ships.
local careful = [[
local window = require "sliding_window"
local words = require "words"
return {
  name = "careful", version = 1, options = window.options,
  truncate = function(state, ctx)
    state.vars.said = words.of(state)
    return window.truncate(state, ctx)
  end,
}]]

describe("a policy that requires others", function()
  before_each(function()
    write("words", "return { of = function(state) return #state.messages .. ' messages' end }")
  end)

  it("does the same in a process of its own", function()
    local path = write("careful", careful)
    local here = play { path, messages = 20 }
    assert.truthy(here:find('"compaction"', 1, true))
    assert.truthy(here:find('messages"', 1, true))
    assert.equal(here, play({ path, messages = 20 }, { isolation = "worker" }))
  end)

  it("runs in a process of its own when one that it requires is others' to write", function()
    local path = write("careful", careful)
    local here = play { path, messages = 20 }
    assert(os.execute(("chmod 666 '%s/words.lua'"):format(folder)))
    assert.equal(here, play { path, messages = 20 })
    local store, message, code = open(path, { worker = folder .. "/none" })
    assert.is_nil(store)
    assert.equal("EDENIED", code)
    assert.truthy(message:find("words.lua can be written by others", 1, true), message)
  end)

  it("is looked at elsewhere when it is others' to write, with all that it requires", function()
    local path = write("careful", careful)
    local here = play { path, messages = 20 }
    write("careful", careful, "666")
    assert.equal(here, play { path, messages = 20 })
  end)

  it("is refused there for what it is refused for here", function()
    for _, mode in ipairs { "600", "666" } do
      local function says(what, with)
        local store, message = open(write("one", what, mode), with)
        assert.is_nil(store)
        return message
      end
      write("two", "require 'three' return {}", mode)
      write("three", "require 'one' return {}", mode)
      assert.truthy(says("require 'two' return {}"):find(
        "one.lua -> two.lua -> three.lua -> one.lua: a policy cannot require itself", 1, true))
      assert.truthy(says("pcall(require, '../x') return {}"):find("in its own folder", 1, true))
      assert.truthy(says("require 'nothing' return {}")
        :find("there is no policy 'nothing'", 1, true))
      write("three", "return { oops", mode)
      assert.truthy(says("require 'two' return {}"):find("three.lua:1:", 1, true))
    end
  end)

  it("has a hash that changes with what it requires", function()
    local function hash()
      local store <close> = assert(open(folder .. "/careful.lua"))
      local session = assert(store:create { id = "s" })
      for _, turn in ipairs(transcript.turns()) do
        session:turn(turn)
      end
      for entry in session:entries() do
        local found = entry.type == "compaction" and entry.json:match '"hash":"(%x+)"'
        if found then
          return found
        end
      end
      error "no compaction"
    end
    write("careful", careful)
    local before = hash()
    assert.equal(before, hash())
    write("words", "return { of = function(state) return 'words' end }")
    assert.not_equal(before, hash())
  end)
end)
