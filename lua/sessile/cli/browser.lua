--- browser: shows a file in the browser of the desktop.
--
-- Owns: which program does that, and where a page is kept that has no other place. Must never wait
-- for the browser.

local core = require "sessile.core"
local own_files = require "sessile.cli.own_files"
local paths = require "sessile.paths"
local process = require "sessile.process"
local programs = require "sessile.cli.programs"

local browser = {}

local PROGRAMS = { "xdg-open", "open", "wslview" }

--- The program that shows files: $BROWSER, else that of the desktop. Nil, message, code, step.
function browser.find()
  local own = os.getenv "BROWSER"
  for _, name in ipairs(own and own ~= "" and { own } or PROGRAMS) do
    local path = programs.find(name)
    if path then
      return path
    end
  end
  return nil, own and own ~= "" and ("there is no program %s ($BROWSER)"):format(own)
    or "there is no program that opens files (xdg-open)", "EUNSUPPORTED",
    "Write the page to a file, and open that: sessile export ID FILE"
end

--- Where the page of a session is kept that is only to be shown: only its user can read it, and
--- the next one replaces it. Nil, message, code.
function browser.place(id, extension)
  local folder = paths.state "pages"
  if not folder then
    return nil, "there is no home folder for the page", "EUSAGE", "Name a file."
  end
  local path = ("%s/%s.%s"):format(folder, core.sha256(id):sub(1, 16), extension)
  local ok, message, code = own_files.folders(path)
  return ok and path, message, code
end

--- Shows a file. Nil, message, code.
function browser.show(program, path)
  -- In a session of its own, so that it outlives us and what started us.
  local done, message, code = process.run({ "/bin/sh", "-c",
    'setsid -f "$0" "$1" </dev/null >/dev/null 2>&1', program, path }, { input = "" })
  if not done or done.status ~= 0 then
    return nil, ("%s could not be started: %s"):format(program, message or done.err), code or "EIO"
  end
  return true
end

return browser
