-- nvim.lua: busted in Neovim's Lua, over the files in SPECS.

local files = {}
for file in os.getenv("SPECS"):gmatch "%S+" do
  files[#files + 1] = file
end
_G.arg = { [0] = "busted", "--ignore-lua", "--output=" .. os.getenv "SESSILE_ROOT" .. "/tests/tap.lua" }
for _, file in ipairs(files) do
  table.insert(_G.arg, file)
end
require "busted.runner" { standalone = false }
