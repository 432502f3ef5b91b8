--- guard init: writes the guard into the user's configuration.
--
-- Must never change anything else in that file, nor leave it so that it cannot be read.

local config = require "sessile.config"
local own_files = require "sessile.cli.own_files"
local sessile = require "sessile"
local system = require "sessile.system"
local terminal = require "sessile.cli.terminal"

local NEW = [[
-- The configuration of sessile; `sessile config` shows every key.
return {
  %s
}
]]

-- The text with a line more behind its first `return {`; nil: it has none.
local function with_line(text, line)
  local before, after = text:match "^(.-\nreturn%s*{)(.*)$"
  if not before then
    before, after = text:match "^(return%s*{)(.*)$"
  end
  return before and ("%s\n  %s%s"):format(before, line, after)
end

-- Whether a file says that the guard is this profile.
local function says(path, profile)
  local read = sessile.config(path)
  return read and read:value "guard.profile" == profile
end

local function text_of(path)
  local file <close> = io.open(path, "rb")
  return file and file:read "a"
end

-- Writes the line into the file. nil, message, code, step.
local function write(path, profile)
  local line = ("guard = %q,"):format(profile)
  local was = system.kind(path) and text_of(path)
  local text = was and with_line(was, line) or not was and NEW:format(line)
  local step = ("Write this line into it yourself: %s"):format(line)
  if not text then
    return nil, ("%s does not begin as `return {`"):format(terminal.line(path)), "EUSAGE", step
  end
  local ok, message, code = own_files.write(path, text, was ~= nil)
  if not ok then
    return nil, "it cannot be written: " .. message, code, step
  elseif not says(path, profile) then
    if was then
      own_files.write(path, was, true)
    end
    return nil, ("%s was not changed: what it returns is made elsewhere in it")
      :format(terminal.line(path)), "EUSAGE", step
  end
  return true
end

-- Opens the store, if there is one, with the guard that was just written; the public key that
-- vouches for its audit, if that has begun.
local function root_of(app)
  app.globals.configured = nil
  app.try(app:config())
  local store = app:store_if_any()
  return store and store:audit_root() or nil
end

return {
  summary = "set a guard on your stores, in your configuration",
  usage = "guard init [--profile NAME]",
  examples = [[
    sessile guard init                   roles, limits, screens and an audit
    sessile guard init --profile strict  and no store that is not sealed, no call without a view]],
  options = { { "--profile NAME", "which guard", choices = { "standard", "strict" },
    default = "standard" } },
  about = [[
    One line is added to your configuration: guard = "standard". Each command then acts
    for you, or for the token or access key that it is given. A file that sets a guard
    already is left as it is.]],
  run = function(app, args)
    local path = config.named(app.globals.config) or config.own()
    if not path then
      return nil, "there is no place for a configuration: neither HOME nor XDG_CONFIG_HOME is set",
        "EUSAGE", "Name a file with --config FILE, or set one of them."
    end
    local cfg, origin
    if system.kind(path) then
      cfg = app.try(app:config())
      origin = cfg:origin "guard.profile"
    end
    local is_set = origin and origin.from == "file"
    if is_set and cfg:value "guard.profile" ~= args.profile then
      return nil, ("%s says guard = %q%s"):format(terminal.line(origin.file),
        cfg:value "guard.profile", origin.line and " on line " .. origin.line or ""), "EEXISTS",
        "Change that line yourself, and look at it with: sessile guard status"
    elseif not is_set then
      app.try(write(path, args.profile))
    end
    local root = root_of(app)
    app:result({ path = path, profile = args.profile, written = not is_set, audit_root = root },
      ("%s %s guard = %q.\n"):format(terminal.line(path), is_set and "says already" or "says now",
        args.profile))
    if not app.json then
      app:out(root and ("The root key of the audit: %s\n"):format(root) or "")
      app:note(root and "Write it down elsewhere: it shows whether the audit is what was written."
        or "The audit begins with the first event: then write down what `sessile audit root` says.")
      app:note "See what it consists of: sessile guard status"
    end
  end,
}
