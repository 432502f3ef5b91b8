--- common: arguments, options and checks that several commands have.
--
-- Owns: their wording. Must never open a store.

local has_system, system = pcall(require, "sessile.system")
local options = require "sessile.cli.options"

local common = {}

-- ---------------------------------------------------------------- arguments

common.session = { "id", "a session: its id, a prefix of it, its title, a label, or `last`" }
common.newest = { "id", "a session's id, a prefix of it, its title, or `last`", "?" }
common.entry = { "entry", "an entry: its number, a label, or `head`" }
common.policy_name = {
  "name", "a policy: its name, or a path with a `/` or ending in .lua", is = "policy",
}

--- The session argument with another field of args, a longer description or another number of
--- values.
---@param given {field: string?, more: string?, count: string?}
---@return sessile.cli.argument
function common.session_as(given)
  return { common.session[1], common.session[2] .. (given.more or ""), given.count,
    field = given.field }
end

-- ---------------------------------------------------------------- options

common.policy_option = {
  "--option NAME=VALUE", "an option of the policy; may be repeated", many = true,
}
common.that_policy_option = {
  "--option NAME=VALUE", "an option of that policy; may be repeated", many = true,
}
common.window = {
  "--window N", "the model's window in tokens (else as configured)", integer = true,
}
common.reserve = { "--reserve N", "tokens to keep free in the window", integer = true }
common.redact = { "--redact", "replace keys, passwords, addresses and names of home directories" }
common.limit = { "--limit N", "list at most N (0: all)", integer = true }

-- ---------------------------------------------------------------- policies that were refused

--- What a policy, or its fallback, was refused for.
---@param policy table  of an outcome
---@return string
function common.refusal(policy)
  local where = policy.law and (" broke law %d of contexts"):format(policy.law) or " failed"
  return ("the policy %s%s: %s"):format(policy.name or "?", where, policy.message or "")
end

--- What became of a proposal that came too late: the outcome says why.
---@param policy table  of an outcome
---@return string
function common.too_late(policy)
  return ("%s: what %s proposed was not applied"):format(policy.message or "?",
    policy.name ~= "" and policy.name or "the policy")
end

--- The policy that failed, why, and what ran instead; nil if no fallback ran.
---@param policy table  of an outcome
---@return string?
function common.fallback_note(policy)
  local fallback = policy.fallback
  return fallback and ("%s. %s ran instead"):format(common.refusal(policy),
    fallback.name ~= "" and fallback.name or "the fallback") or nil
end

--- Reports a refused policy of a turn: what ran instead, or that the context is unchanged.
---@param app sessile.cli.app
---@param policy table?  of an outcome
function common.note_refusal(app, policy)
  local made = policy and (policy.fallback or policy)
  if policy and policy.fallback then
    app:note(common.fallback_note(policy))
  end
  if made and made.refused then
    app:note("The turn is written, the context is unchanged: " .. common.refusal(made))
  end
end

--- The result of the fallback as a member of JSON; nil if none ran.
---@param fallback table?  of an outcome's policy
---@return table?
function common.fallback_json(fallback)
  return fallback and { policy = fallback.name, verdict = fallback.verdict, law = fallback.law,
    message = fallback.message } or nil
end

-- ---------------------------------------------------------------- checks

--- The next step when there is no such policy, for app.try_or.
---@param name string?  as it was typed
---@return table<string, string>
function common.policy_steps(name)
  local file = name and name:find "^[%w_]+$" and ("./%s.lua"):format(name)
  return { ENOTFOUND = file and has_system and system.kind(file) == "file"
    and ("For the file in this folder, give its path: %s"):format(file)
    or "See the policies: sessile policy list" }
end

--- The policy with its options, as the library takes it; nil if none was named.
---@param app sessile.cli.app
---@param name string?
---@param given string[]  the values of --option
function common.policy(app, name, given)
  local chosen, wrong = options.policy(name, given)
  if wrong then
    app.fail(wrong, "EUSAGE")
  end
  return chosen
end

--- Refuses an id that a new session cannot have.
---@param app sessile.cli.app
---@param id string?
function common.check_new_id(app, id)
  if id == "last" then
    app.fail("the id 'last' is taken: it always means the newest session", "EUSAGE")
  end
end

--- Fails if more than one of the options was given. Returns whether one was.
---@param app sessile.cli.app
---@param args table
---@param flags string[]  as "--to-plain"
---@return boolean
function common.at_most_one(app, args, flags)
  local count = 0
  for _, flag in ipairs(flags) do
    count = count + (args[options.read(flag).field] and 1 or 0)
  end
  if count > 1 then
    app.fail(("%s and %s exclude each other"):format(table.concat(flags, ", ", 1, #flags - 1),
      flags[#flags]), "EUSAGE")
  end
  return count == 1
end

--- All of standard input.
---@param app sessile.cli.app
---@return string
function common.standard_input(app)
  return io.stdin:read "a" or app.fail("standard input cannot be read", "EIO")
end

--- All of standard input as one value: without its last newline.
---@param app sessile.cli.app
---@return string
function common.typed_text(app)
  return (common.standard_input(app):gsub("\n$", ""))
end

return common
