std = "lua54"
max_line_length = 100
cache = false
exclude_files = { "spec/fixtures/**", "build*/**" }
files["spec/"] = { std = "+busted" }
files["examples/*_spec.lua"] = { std = "+busted" }
-- Arguments that a contract names but one implementation does not need are documentation.
unused_args = false
-- These run in Neovim.
files["examples/nvim/"] = { std = "luajit", read_globals = { "vim" } }
files["spec/support/nvim/"] = { std = "luajit", globals = { "vim" } }
