-- A server of records cannot read what it keeps: everything that a session can have is written
-- through it, read and searched, and then its memory and its disk are looked through.
-- Own stores: they are behind a server that it starts.
-- Own guard: without one, whatever can be written is.

local canary = require "spec.support.canary"
local cli = require "spec.support.cli"
local server = require "spec.support.server"
local sessile = require "sessile"

local SECRET = "hex:" .. ("8f"):rep(32)

-- What a user of the whole interface says, each in words of its own; places has them.
local function use(store, bird, places)
  local function word(place)
    places[place] = true
    return bird:word(place)
  end
  local long = (" and so on"):rep(40)
  local ann = word "user"
  local s = assert(store:session { id = word "id", user = ann, title = word "title",
    metadata = { topic = word "metadata" } })
  for i = 1, 8 do
    assert(s:turn {
      { role = "user", content = word "message" .. i .. long },
      { role = "assistant", content = word "answer" .. long, tool_calls = { { id = "c" .. i,
        name = "look", arguments = sessile.encode { at = word "arguments" } } } },
      { role = "tool", tool_call_id = "c" .. i, content = word "result" .. long },
    })
  end
  local asked
  assert(s:compact { policy = { "summarize", preserve_recent = 2 }, model = function(request)
    asked = sessile.encode(request)
    return word "summary"
  end })
  assert(asked:find(bird.latin, 1, true))
  local first = assert(s:messages())[1]
  assert(s:label(first.id, word "label"))
  assert(s:settings { model = word "settings" })
  assert(s:custom({ note = word "custom" }))
  assert(s:checkpoint { name = word "checkpoint", state = { at = word "state" } })
  assert(s:branch(first.id, { summary = word "branch" }))
  local fork = assert(s:fork(nil, { id = "fork", user = ann, title = word "fork" }))
  assert(fork:set_title(word "renamed"))
  local child = assert(s:child { agent = "helper" })
  assert(child:append { role = "user", content = word "child" })
  assert(child:merge { summary = word "merged" })
  assert(s:suspend { reason = word "reason", state = { step = word "suspended" } })
  assert(s:resume_with { role = "user", content = word "resumed" })
  local memory = assert(store:memory { agent = "main", user = ann, consent = word "consent" })
  assert(memory:write(word "slot", word "fact", { source = "user", also = word "also" }))
  assert(#assert(memory:search(word "fact")) > 0)
  memory:close()
  fork:close()
  child:close()
  s:close()

  -- and is read back by the server
  local hits = 0
  for hit in assert(store:search(bird.latin)) do
    hits = hits + (hit.session and 1 or 0)
  end
  assert(hits > 10)
  local again = assert(store:resume { id = bird:word "id", user = ann })
  assert(#assert(again:context()) > 0)
  assert(again:restore(bird:word "checkpoint"))
  again:close()
  assert(#assert(store:list()) >= 3)
  assert(store:session { id = "gone", user = ann }):close()
  assert(store:delete({ id = "gone", user = ann }, { reason = word "deleted" }))
end

for _, kind in ipairs { "sqlite", "file" } do
  describe("a server of records in " .. kind, function()
    local one, folder

    after_each(function() one:stop() end)
    cli.each_test(function(home)
      folder = home .. "/kept"
      assert(os.execute("mkdir " .. cli.quote(folder)))
      local config = home .. "/server.lua"
      cli.write(config, 'return { serve = { services = { "records" } } }')
      one = server.start(("--store %s:%s/records"):format(kind, cli.quote(folder)),
        "env SESSILE_CONFIG=" .. cli.quote(config))
    end)

    -- Uses a store with a key, or a plain one: the canary, its places, what the server knows.
    local function after_use(key)
      local bird, places = canary.new(), {}
      local store = assert(sessile.open("grpc://" .. one.address .. "/", { key = key }))
      use(store, bird, places)
      local memory, disk = bird:in_memory(one.pid), bird:on_disk(folder)
      store:close()
      if not memory then
        pending "this system lets nobody look into the memory of another process"
      end
      return places, memory, disk, bird:on_disk(cli.home())
    end

    it("has none of a sealed store's words, neither in its memory nor on its disk", function()
      local _, memory, disk, log = after_use(sessile.key.secret(SECRET))
      assert.is_true(memory.bytes > 1 << 20 and disk.bytes > 1 << 14)
      for _, seen in ipairs { memory, disk, log } do
        assert.same({}, seen.forms)
        assert.same({}, seen.places)
      end
    end)

    it("has all of a plain one's, which shows that the search finds them", function()
      local places, memory, disk = after_use(false)
      assert.is_true(memory.forms.plain)
      assert.is_true(disk.forms.plain)
      assert.same(places, disk.places)
    end)
  end)
end
