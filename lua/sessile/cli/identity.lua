--- identity: who a command acts for.
--
-- Owns: the credential, from --token-file or $SESSILE_TOKEN, the device that an access key may ask
-- for ($SESSILE_DEVICE), and the view that a command gets of a store with a guard. A credential is
-- never the value of an option, which others on the machine can read, and never in a message.

local disk = require "sessile.disk"
local guard_open = require "sessile.guard_open"
local hints = require "sessile.cli.hints"
local paths = require "sessile.paths"
local profiles = require "sessile.profiles"
local refusals = require "sessile.cli.refusals"
local terminal = require "sessile.cli.terminal"

local identity = {}

local MOST = 16384 -- bytes of a credential

local function trimmed(text)
  return text:match "^%s*(.-)%s*$"
end

-- The credential in a file that only its owner reads. nil, message, code, step.
local function of_file(name)
  local path = paths.expand(name)
  local shown = terminal.line(path)
  local seen, why = disk.look(path)
  if seen and seen.kind == "link" and seen.real then
    path = seen.real
    seen, why = disk.look(path)
  end
  if not seen then
    return nil, ("the credential in %s cannot be read: %s"):format(shown, why), "EUSAGE",
      "Check how the path is written: --token-file FILE"
  elseif seen.kind ~= "file" then
    return nil, ("%s is no file: a credential is read from one"):format(shown), "EUSAGE"
  elseif not seen.own or seen.mode & 0x3f ~= 0 then -- 077
    return nil, ("others than you can read the credential in %s"):format(shown), "EDENIED",
      "Let only yourself read it: chmod 600 " .. hints.quoted(path)
  end
  local file <close>, problem = io.open(path, "rb")
  if not file then
    return nil, "the credential cannot be read: " .. terminal.line(problem), "EUSAGE", false
  end
  return file:read(MOST + 1) or ""
end

--- The credential that was given, and by what. false: none was. nil, message, code, step.
---@param globals table
---@return string|false|nil credential
---@return string? said_by  or the message
---@return string? code
---@return string? step
function identity.credential(globals)
  local said_by, text = "SESSILE_TOKEN", os.getenv "SESSILE_TOKEN"
  if globals.token_file then
    local message, code, step
    said_by = "--token-file"
    text, message, code, step = of_file(globals.token_file)
    if not text then
      return nil, message, code, step
    end
  elseif not text or text == "" then
    return false
  end
  text = trimmed(text)
  if text == "" or #text > MOST or text:find "[%c%s]" then
    return nil, ("%s holds no credential: one word expected, a token or an access key")
      :format(said_by), "EDENIED"
  end
  return text, said_by
end

-- Why a store whose guard nobody has set can do nothing, and what to do about it. profile: the one
-- that it was guarded with, "" if the control log does not say.
local function unset(profile)
  if profile == "" then
    return "the control log of this store cannot be read, so it counts as guarded", "EDENIED",
      refusals.MEND, "control"
  end
  local known = profiles[profile] and profile ~= "standard" and " --profile " .. profile or ""
  return ("this store is guarded (%s), and your configuration sets no guard")
    :format(terminal.line(profile)), "EDENIED",
    ("Set one: sessile guard init%s. With guard = \"off\" the store opens without."):format(known),
    "guard"
end

-- The next step for somebody whose credential gave no view.
local function step_after(code, rule, said_by)
  if rule == "control" then
    return refusals.of_host(refusals.MEND)
  elseif code == "EINVALID" then
    return "An access key begins with sesk_. Tokens are accepted if guard.identity in your "
      .. "configuration says whose."
  end
  return refusals.of_host(("It came from %s, and may be expired, revoked, locked, mistyped, or "
    .. "another device's ($SESSILE_DEVICE). Without it, this says which: sessile audit tail")
    :format(said_by))
end

local function given_device()
  local device = os.getenv "SESSILE_DEVICE"
  return device ~= "" and device or nil
end

--- The store as the command may use it. A store without a guard is returned as it is, unless a
--- credential was given. nil, message, code, step, rule; the store is closed then. The rule `guard`
--- is this file's: the store is guarded, and the configuration sets no guard.
---@param store table
---@param globals table
function identity.view(store, globals)
  local credential, said_by, code, step = identity.credential(globals)
  local waits = guard_open.waits(store)
  local view, message, rule, _
  globals.method = not credential and "os" or guard_open.credential(credential).key and "key"
    or "token"
  if credential == nil then
    message = said_by
  elseif waits then
    message, code, step, rule = unset(waits)
  elseif not guard_open.is_on(store) then
    -- The credential in the environment is for the server that keeps the records.
    if not credential or said_by == "SESSILE_TOKEN" and store.url:find "^grpcs?://" then
      return store
    end
    message, code = ("%s names who you are, and this store has no guard to ask"):format(said_by),
      "EDENIED"
    step = "Set guard = \"standard\" in your configuration (sessile guard init), or unset it."
  elseif credential then
    local given = guard_open.credential(credential)
    given.device = given_device()
    view, message, code, _, rule = guard_open.own(store, given)
    step = not view and step_after(code, rule, said_by) or nil
  else
    view, message, code, _, rule = guard_open.own(store, { os = true }, true)
    step = rule == "control" and refusals.MEND or nil
  end
  if not view then
    store:close()
    return nil, message, code, step, rule
  end
  globals.guarded = true
  return view
end

return identity
