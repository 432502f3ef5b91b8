-- nvim.lua: busted in Neovim's Lua, with the arguments in SPECS, one a line.

local arguments = { [0] = "busted", "--ignore-lua" }
for argument in os.getenv("SPECS"):gmatch "[^\n]+" do
  arguments[#arguments + 1] = argument
end
_G.arg = arguments
local ok, message = pcall(require "busted.runner", { standalone = false })
if not ok then
  print(message)
end
_G.vim.cmd(ok and "qall!" or "cquit!")
