-- built.lua: where the tree of this project is, and what was built from it.

local shell = require "spec.support.shell"

local built = {}

built.root = os.getenv "SESSILE_ROOT" or "."
built.folder = os.getenv "SESSILE_BUILD" or "build"
built.worker = built.folder .. "/libexec/sessile-worker"

built.binary = os.getenv "SESSILE_BIN" or built.folder .. "/bin/sessile"

-- Whole paths, so that a test may run things in another folder.
for name, path in pairs(built) do
  if path:sub(1, 1) ~= "/" then
    built[name] = shell.line "pwd" .. "/" .. path
  end
end

return built
