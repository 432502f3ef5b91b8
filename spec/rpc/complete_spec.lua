-- `sessile rpc` has everything that the module has: each method of stores, sessions and memories is
-- a method, with each of its options; or it is listed here, with the reason.
-- Files only: nothing is stored.

local memory = require "sessile.memory"
local options = require "sessile.options"
local registry = require "sessile.rpc.registry"
local session = require "sessile.session"
local store = require "sessile.store"

-- Methods that are called otherwise.
local CALLED = {
  ["store:create"] = "session/create", ["store:resume"] = "session/open",
  ["store:session"] = "session/open", ["store:count_messages"] = "store/count",
  ["store:memory"] = "memory/open",
  ["session:pending_runs"] = "session/parked", ["session:set_title"] = "session/title",
  ["session:set_ttl"] = "session/ttl", ["session:life"] = "session/info",
  ["session:suspended"] = "session/info", ["session:event_count"] = "session/info",
  ["session:leaves"] = "session/info",
}

local ADMINISTRATION = "administration: the command line, with its questions"
local GUARD = "who may do what is decided by whoever serves: the process has its caller's rights"
local IN_TREE = "session/tree has it"

-- Methods that are left out, and why.
local LEFT_OUT = {
  ["store:put"] = "copies of stores: sessile migrate", ["store:close"] = "the end of the input",
  ["store:changed"] = "session/watch tells", ["store:clock"] = ADMINISTRATION,
  ["store:check"] = ADMINISTRATION, ["store:nodes"] = ADMINISTRATION,
  ["store:standbys"] = ADMINISTRATION, ["store:keys"] = ADMINISTRATION,
  ["store:rotate"] = ADMINISTRATION, ["store:reseal"] = ADMINISTRATION,
  ["store:forget"] = ADMINISTRATION, ["store:backup"] = ADMINISTRATION,
  ["store:purge"] = ADMINISTRATION, ["store:purge_forgotten"] = ADMINISTRATION,
  ["store:purge_retention"] = ADMINISTRATION, ["store:deletions"] = ADMINISTRATION,
  ["store:export_user"] = ADMINISTRATION, ["store:erase_user"] = ADMINISTRATION,
  ["store:hold"] = ADMINISTRATION, ["store:holds"] = ADMINISTRATION,
  ["store:release"] = ADMINISTRATION, ["store:consent"] = "memory/consent",
  ["store:consents"] = ADMINISTRATION, ["store:screen"] = GUARD, ["store:guard"] = GUARD,
  ["store:as"] = GUARD, ["store:renew"] = GUARD, ["store:grant"] = GUARD,
  ["store:grants"] = GUARD, ["store:ungrant"] = GUARD, ["store:access_key"] = GUARD,
  ["store:access_keys"] = GUARD, ["store:revoke_key"] = GUARD, ["store:lock"] = GUARD,
  ["store:unlock"] = GUARD, ["store:locks"] = GUARD, ["store:revoke"] = GUARD,
  ["store:who"] = GUARD, ["store:can"] = GUARD, ["store:may"] = GUARD, ["store:note"] = GUARD,
  ["store:audit"] = GUARD, ["store:audit_verify"] = GUARD, ["store:audit_root"] = GUARD,
  ["store:audit_head"] = GUARD, ["store:audit_seal"] = GUARD, ["store:audit_prove"] = GUARD,
  ["session:children"] = IN_TREE, ["session:siblings"] = IN_TREE,
  ["session:common_ancestor"] = IN_TREE,
  ["session:set_timeout"] = "timeout_ms of session/open, and of a run",
  ["session:memory"] = "memory/… with the session's agent and user",
  ["memory:watch"] = "memories have no handle to watch with: memory/list with since",
  ["memory:close"] = "nothing is a handle",
}

local A_FUNCTION = "a function of Lua: ask/… asks the client"
local HANDLE = "a handle of Lua"
local LOOP = "of session:send"
local OPTIONS_LEFT = {
  model = A_FUNCTION, on_step = A_FUNCTION, write = A_FUNCTION, on_progress = A_FUNCTION,
  into = HANDLE, agent_info = "in the configuration", tools = LOOP, before = LOOP, after = LOOP,
  reducer = LOOP, max_steps = LOOP, on_event = LOOP, parallel = LOOP, commit = LOOP,
  session_id = "the user of a Name", user_id = "the user of a Name",
}
local OPTION_LEFT_OF = {
  ["session:turn"] = { model_name = "called model: the name of the model that answered" },
  ["session:branch"] = { model_name = "called model" },
  ["session:recall"] = { entries = "rows of Lua", vector = "memory/search has it" },
  ["memory:write"] = { from = "the engine's own, of a policy" },
  ["memory:list"] = { metadata = "values of Lua: filter what is listed" },
  ["memory:search"] = { metadata = "values of Lua: filter what is found" },
  ["memory:delete_from"] = { agent = "called session_agent: agent is the memory's" },
  ["memory:embed"] = { embed = A_FUNCTION, name = A_FUNCTION, dims = A_FUNCTION },
  ["store:memory"] = { timeout_ms = "of the store" },
  ["store:resume"] = { uuid = "of new sessions: session/create", agent = "in the Name",
    id = "the Name", user = "in the Name" },
  ["store:session"] = { uuid = "of new sessions: session/create", agent = "in the Name",
    id = "the Name", user = "in the Name" },
  ["store:delete"] = { agent = "in the Name", id = "the Name", user = "in the Name" },
  ["store:undelete"] = { agent = "in the Name", id = "the Name", user = "in the Name" },
  ["store:search"] = {},
  ["session:watch"] = { timeout_ms = "session/watch never waits" },
  ["session:remember"] = {},
}

local function method_of(name)
  return registry.methods[CALLED[name] or name:gsub(":", "/")]
end

local groups = { store = store.methods, session = session.methods, memory = memory.methods }

describe("sessile rpc and the module", function()
  for group, methods in pairs(groups) do
    it("have the same methods of a " .. group, function()
      for name in pairs(methods) do
        local full = group .. ":" .. name
        local is_there = method_of(full) ~= nil
        if LEFT_OUT[full] then
          assert.is_false(is_there, full .. " is there, and listed as left out")
        else
          assert.is_true(is_there, full .. " is neither a method nor left out with a reason")
        end
      end
    end)
  end

  it("have no reason for what there is not", function()
    for _, list in ipairs { LEFT_OUT, CALLED } do
      for full in pairs(list) do
        local group, name = full:match "^(%l+):(.*)$"
        assert.is_function(groups[group][name], full)
      end
    end
  end)

  it("have the same options", function()
    for who, shape in pairs(options.shapes) do
      local group = who:match "^(%l+):[%l_]+$"
      local method = groups[group] and not LEFT_OUT[who] and method_of(who)
      for option in pairs(method and shape or {}) do
        local left = OPTION_LEFT_OF[who] and OPTION_LEFT_OF[who][option] or OPTIONS_LEFT[option]
        assert.is_true(method.params[option] ~= nil or left ~= nil,
          ("%s: the option '%s' is neither in %s nor left out with a reason"):format(who, option,
            method.name))
      end
    end
  end)
end)
