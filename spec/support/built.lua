-- built.lua: where the tree of this project is, and what was built from it.

local shell = require "spec.support.shell"

local built = {}

built.root = os.getenv "SESSILE_ROOT" or "."
built.folder = os.getenv "SESSILE_BUILD" or "build"
built.worker = built.folder .. "/libexec/sessile-worker"

--- The executable, from the root, so that a test may run it in another folder.
built.binary = os.getenv "SESSILE_BIN" or built.folder .. "/bin/sessile"
if built.binary:sub(1, 1) ~= "/" then
  built.binary = shell.line "pwd" .. "/" .. built.binary
end

return built
