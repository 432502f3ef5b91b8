--- policy new: writes a first policy, its spec, and a fixture.
--
-- Owns: the three texts. The policy passes its spec. Must never overwrite a file.

local terminal = require "sessile.cli.terminal"

local POLICY = [==[
-- NAME: keeps the system message, the newest turns, and what failed.

return {
  name = "NAME", version = 1,
  about = "Keep the newest turns and every error.",
  options = {
    turns = { type = "integer", default = 6, min = 1, about = "newest turns kept whole" },
  },

  -- Runs after every turn. Edits count when the hook returns; the engine checks them against
  -- the laws of context and refuses what would break the conversation.
  truncate = function(state, ctx)
    local turns = state:turns()
    local first = turns[#turns - ctx.options.turns + 1]
    if not first then
      return -- fewer turns than are kept
    end
    local gone = {}
    for i = 1, first.first - 1 do
      local message = state.messages[i]
      local opening = message.role == "system" or message.role == "developer"
      gone[i] = not (opening or message.pinned or message.open)
    end
    -- A call and its results stay or go together.
    for i = 1, first.first - 1 do
      local message = state.messages[i]
      if message.role == "tool" and message.is_error then
        for _, j in ipairs(state:pairs_of(i)) do
          gone[j] = false
        end
      end
    end
    for i = 1, first.first - 1 do
      if gone[i] then
        for _, j in ipairs(state:pairs_of(i)) do
          if gone[j] == false or j >= first.first then
            gone[i] = false
          end
        end
      end
    end
    for i = 1, first.first - 1 do
      if gone[i] then
        state:drop(i)
      end
    end
  end,
}
]==]

local SPEC = [==[
-- Run it with:   sessile policy test SPECFILE

local T = require "sessile.testing"

describe("NAME", function()
  local policy = T.load("POLICYFILE", { turns = 2 })

  T.laws(policy)   -- ten laws, over conversations that nobody had
  T.faults(policy) -- and with a model that fails

  it("keeps the system message, the newest turns and the error", function()
    local r = policy:run(T.fixture "FIXTUREFILE", { window = 8000 })
    assert.lawful(r)
    assert.tool_pairs(r)
    assert.within_budget(r)
    assert.keeps(r, { "system", "last_user", "errors", "what did we decide?" })
    assert.is_true(#r.context < #r.messages)
  end)
end)
]==]

-- luacheck: push no max line length
local FIXTURE = [==[
{"role":"system","content":"You are a careful assistant."}
{"role":"user","content":"build it"}
{"role":"assistant","content":"","tool_calls":[{"id":"c1","name":"run","arguments":"{\"command\":\"make\"}"}]}
{"role":"tool","tool_call_id":"c1","content":"error: no rule to make target","is_error":true}
{"role":"assistant","content":"There is no Makefile. I write one."}
{"role":"user","content":"go on"}
{"role":"assistant","content":"","tool_calls":[{"id":"c2","name":"write","arguments":"{\"path\":\"Makefile\"}"}]}
{"role":"tool","tool_call_id":"c2","content":"written"}
{"role":"assistant","content":"Done: the target is called all."}
{"role":"user","content":"what did we decide?"}
{"role":"assistant","content":"The target is called all."}
{"role":"user","content":"good, build it again"}
{"role":"assistant","content":"It builds."}
]==]
-- luacheck: pop

-- A table, because in a replacement text a % of the name would be special.
local function fill(text, values)
  return (text:gsub("%u%u%u%u+", values))
end

local function put(path, text)
  local there = io.open(path)
  if there then
    there:close()
    return nil, ("%s is there already"):format(path), "EEXISTS", "Choose another name or folder."
  end
  local file, why = io.open(path, "w")
  if not file then
    return nil, why, "ENOTFOUND", "Make the folder first."
  end
  file:write(text)
  file:close()
  return true
end

return {
  summary = "write a first policy, its spec and a fixture",
  usage = "policy new NAME [--in FOLDER]",
  examples = [[
    sessile policy new frugal            frugal.lua, frugal_spec.lua and frugal.jsonl here
    sessile policy test frugal_spec.lua  run the new spec, which passes]],
  arguments = { { "name", "a name of lower-case letters, digits and _" } },
  options = { { "--in FOLDER", "the folder (default: the current one)" } },
  run = function(app, args)
    local name = args.name
    if not name:find "^%l[%l%d_]*$" then
      return nil, ("'%s' is not a policy name: use lower-case letters, digits and _"):format(
        terminal.line(name)), "EUSAGE"
    end
    local folder = args["in"] and args["in"]:gsub("/+$", "") .. "/" or "./"
    local files = {
      { folder .. name .. ".lua", POLICY }, { folder .. name .. "_spec.lua", SPEC },
      { folder .. name .. ".jsonl", FIXTURE },
    }
    local values = {
      NAME = name, POLICYFILE = files[1][1], SPECFILE = files[2][1], FIXTUREFILE = files[3][1],
    }
    local written = {}
    for _, file in ipairs(files) do
      app.try(put(file[1], fill(file[2], values)))
      written[#written + 1] = file[1]
      if not app.json then app:out(terminal.line(file[1]) .. "\n") end
    end
    if app.json then
      app:print_json { name = name, files = app.array(written) }
      return
    end
    app:note("Try it: sessile policy test " .. terminal.line(files[2][1]))
  end,
}
