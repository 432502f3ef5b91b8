--- identity: who a command acts for.
--
-- Owns: the credential, from --token-file or $SESSILE_TOKEN, and the view that a command gets of a
-- store with a guard. A credential is never the value of an option, which others on the machine can
-- read, and never in a message.

local disk = require "sessile.disk"
local guard_open = require "sessile.guard_open"
local hints = require "sessile.cli.hints"
local paths = require "sessile.paths"
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

--- The store as the command may use it. A store without a guard is returned as it is, unless a
--- credential was given. nil, message, code, step; the store is closed then.
---@param store table
---@param globals table
function identity.view(store, globals)
  local credential, said_by, code, step = identity.credential(globals)
  local view, message
  if credential == nil then
    message = said_by
  elseif not guard_open.is_on(store) then
    if not credential then
      return store
    end
    message, code = ("%s names who you are, and this store has no guard to ask"):format(said_by),
      "EDENIED"
    step = "Set guard = \"standard\" in your configuration (sessile guard init), or unset it."
  elseif credential then
    view, message, code = guard_open.own(store, guard_open.credential(credential))
    step = ("It may be expired, revoked or mistyped; it came from %s. The audit says which: "
      .. "sessile audit tail"):format(said_by)
  else
    view, message, code = guard_open.own(store, { os = true }, true)
  end
  if not view then
    store:close()
    return nil, message, code, step
  end
  globals.guarded = true
  globals.method = not credential and "os" or guard_open.credential(credential).key and "key"
    or "token"
  return view
end

return identity
