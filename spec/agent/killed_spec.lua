-- Agents that are killed with SIGKILL, wherever they are, and started again until they finish:
-- nothing said is lost, and no side effect happens twice that must not.
--
-- 12 kills; with SESSILE_SOAK=1, 200. The seed is printed by a failure; SEED=… takes its place.

local temp = require "spec.support.temp"
local sessile = require "sessile"

local binary = require("spec.support.built").binary
local kills_each = 6
local rounds = os.getenv "SESSILE_SOAK" and 17 or 1
local steps = 10

-- Starts the agent and kills it behind that many lines; nil: lets it end. Returns whether it
-- ended by itself.
local function launch(dir, how, lines)
  local words = ("%s run spec/support/killed_agent.lua %s %s/effects %d %s 2>%s/err")
    :format(binary, temp.word(dir .. "/store"), dir, steps, how, dir)
  local pipe = assert(io.popen(("sh -c 'echo $$; exec %s'"):format(words)))
  local pid = assert(math.tointeger(tonumber(pipe:read "l")))
  local count = 0
  for _ in pipe:lines() do
    count = count + 1
    if count == lines then
      os.execute(("kill -9 %d 2>/dev/null"):format(pid))
      pipe:close()
      return false
    end
  end
  local ended = pipe:close()
  if not ended and not lines then
    error(temp.read(dir .. "/err"))
  end
  return ended == true
end

local function count_lines(path)
  local counts = {}
  local file = io.open(path, "rb")
  for line in file and file:lines() or function() end do
    counts[line] = (counts[line] or 0) + 1
  end
  if file then
    file:close()
  end
  return counts
end

-- Everything that has to hold, however often it was killed.
local function judge(dir, seed)
  local effects = count_lines(dir .. "/effects")
  local store <close> = assert(sessile.open(dir .. "/store", { key = false }))
  local list = assert(assert(store:resume "s"):messages())
  local results, order = {}, {}
  local asked = 0
  for _, message in ipairs(list) do
    if message.role == "tool" then
      local id = message.tool_call_id
      assert(not results[id], ("%s is answered twice (SEED=%d)"):format(id, seed))
      results[id] = message.content
      order[#order + 1] = id
    elseif message.tool_calls then
      asked = asked + 1
    end
  end
  assert.equal("go", list[1].content)
  assert.equal("finished", list[#list].content)
  assert.equal(steps, asked)
  assert.equal(2 + 4 * steps, #list)
  local interrupted, at = 0, 0
  for n = 1, steps do
    for i, name in ipairs { "charge", "look", "charge" } do
      local id, what = ("c%d-%d"):format(n, i), ("%s %d-%d"):format(name, n, i)
      at = at + 1
      assert.equal(id, order[at])
      local times = effects[what] or 0
      if results[id] == what then
        assert.is_true(times >= 1, what)
      else
        assert.matches("^interrupted: ", results[id])
        assert.equal("charge", name)
        interrupted = interrupted + 1
      end
      if name == "charge" then
        assert.is_true(times <= 1, ("%s happened %d times (SEED=%d)"):format(what, times, seed))
      end
    end
  end
  assert.is_true(store:check().ok)
  return interrupted
end

for _, how in ipairs { "one", "several" } do
  describe("an agent with calls run " .. how .. " at a time that is killed", function()
    teardown(temp.clean)

    it("finishes, with nothing lost and nothing done twice", function()
      local seed = math.tointeger(tonumber(os.getenv "SEED" or "")) or os.time()
      math.randomseed(seed)
      local killed, interrupted = 0, 0
      for _ = 1, rounds do
        local dir = temp.dir()
        for _ = 1, kills_each do
          if not launch(dir, how, math.random(2, 18)) then
            killed = killed + 1
          end
        end
        launch(dir, how)
        interrupted = interrupted + judge(dir, seed)
        temp.clean()
      end
      assert.is_true(killed > rounds, "it was hardly killed")
      print(("# figure: agents killed, calls %s at a time = %d"):format(how, killed))
      print(("# figure: of their calls, begun and never run again, %s at a time = %d")
        :format(how, interrupted))
    end)
  end)
end
