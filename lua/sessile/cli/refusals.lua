--- refusals: the next step after a guard refused something, or could not do it.
--
-- Owns: which step fits which refusal. It chooses by the code, the rule and who asks. A refusal
-- without a rule is recognized by the engine's sentence.

local refusals = {}

--- What mends a store whose control log is damaged.
refusals.MEND = "Rewrite it with everything that can be read: sessile check --salvage"

-- Stands before a command that whoever has the store runs, without a credential (hints.fill).
local HOST = "\1"

--- A step whose commands are for whoever has the store: they are shown without the credential.
---@param step string
---@return string
function refusals.of_host(step)
  return (step:gsub("%f[%w]sessile %l", HOST .. "%0"))
end

-- Refusals without a rule: a part of the sentence, and the step.
local BY_SENTENCE = {
  { "this needs the permission", "See who you are, and what you may: sessile whoami" },
  { "this is not yours", "See yours: sessile list. One that was shared with you is named with its "
    .. "user, and its agent: --user NAME --agent NAME" },
  { "needs a role of scope all", "See who you are, and what you may: sessile whoami" },
  { "this view is of some agents", "See who you are, and what you may: sessile whoami" },
  { "only the host's own handle", "Whoever has the store does this, without a token or an access "
    .. "key" },
  { "for all users is written", "Name the user: --user NAME" },
  { "the credential is not accepted", "It may have expired meanwhile, or been revoked, or its user "
    .. "be locked out" },
  { "this store wants a principal", "See what the guard consists of: sessile guard status" },
  { "the guard lets no store be opened", false }, -- the sentence says it
  { "this store is guarded", "Set a guard in your configuration: sessile guard init. With guard = "
    .. "\"off\" the store opens without." },
}

local function of_audit(message)
  local where = "make room where the audit is, or its files writable: sessile guard status says "
    .. "where that is"
  return message:find("this was done", 1, true)
    and "Do not repeat it, it was done. Before anything else, " .. where
    or where:gsub("^m", "M") .. ". Then repeat it."
end

local function of_screen(message)
  local screen = message:match "^the screen (%S+) "
  if screen then
    return ("See what it says of other words: sessile screen try %s"):format(screen)
  elseif message:find("has a URL that is refused", 1, true) then
    return "Which URLs pass is set by guard.urls in the configuration: sessile guard status"
  elseif message:find("the schema refuses", 1, true) then
    return false -- the sentence says it
  end
end

-- The step by the rule that refused; nil: by the sentence; false: there is none.
local function by_rule(message, code, rule)
  if rule:find "^hold:" then
    return "See what is held: sessile hold list"
  elseif rule == "control" then
    return refusals.MEND
  elseif rule == "audit" then
    return of_audit(message)
  elseif rule == "consent" then
    return "Record what the user said: sessile consent give AGENT WORDS --user NAME"
  elseif code == "ELIMIT" then
    return message:find("cannot be counted", 1, true)
      and "See whether the place where all count answers: sessile doctor"
      or "The rates are set by guard.rate_limits in the configuration: sessile guard status"
  elseif code == "EDENIED" then
    local step = of_screen(message)
    return step == nil and "See what the guard consists of: sessile guard status" or step
  end
end

-- The rule by the sentence, where a command did not pass it on.
local RULES = {
  { "it is under the hold", "hold:" }, { "the control log of this store", "control" },
  { "is not in the audit", "audit" }, { "the audit cannot be written", "audit" },
  { "only the user consents", "consent" }, { "the user has not consented", "consent" },
  { "has a URL that is refused", "urls" }, { "^the screen [%w_]+ refuses", "screen" },
  { "^the schema refuses", "schema" }, { "the limit [%w_]+ of ", "limit" },
  { "cannot be counted, and is refused", "limit" },
}

local function rule_of(message)
  for _, one in ipairs(RULES) do
    if message:find(one[1]) then
      return one[2]
    end
  end
end

--- The next step after a failure. nil: it is not about a guard; false: there is none.
---@param message string
---@param code string?
---@param rule string?
---@param globals table?  method: by what the command acts
---@return string|false|nil
function refusals.step(message, code, rule, globals)
  rule = rule or rule_of(message)
  if rule then
    return by_rule(message, code, rule)
  elseif code == "EDENIED" then
    for _, one in ipairs(BY_SENTENCE) do
      if message:find(one[1], 1, true) then
        return one[2]
      end
    end
  elseif code == "ENOTFOUND" and globals and globals.guarded and globals.method ~= "os"
    and message:find("session", 1, true) then
    return "See yours: sessile list. One that was shared with you is named with its user: "
      .. "--user NAME"
  end
end

return refusals
