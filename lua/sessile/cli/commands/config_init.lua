--- config init: writes a first configuration.
--
-- Owns: its text. Must never overwrite a file without a confirmation.

local ask = require "sessile.cli.ask"
local config = require "sessile.config"
local hints = require "sessile.cli.hints"
local own_files = require "sessile.cli.own_files"
local system = require "sessile.system"
local terminal = require "sessile.cli.terminal"

local TEXT = [[
-- The configuration of sessile: ordinary Lua that returns a table. `sessile config` shows what it
-- comes to, `sessile doctor` whether it works. Times are seconds or "5m", "90d"; sizes are bytes or
-- "8MiB"; paths may begin with ~ and hold $NAME; a relative one begins where this file is.
return {
  -- Where sessions are. The default is ~/.local/share/sessile.
  -- store = "~/sessions", -- or "sqlite:~/sessions.db"; "postgres" is the URL in $DATABASE_URL

  -- The store's secret; by default a key file that was made for you. Never write it here.
  -- key = { env = "SESSILE_KEY" },
  -- key = { command = { "pass", "show", "sessile" } },

  -- The policy that compacts a context, and when it starts:
  -- shorter tool output first, then a summary (if a model is configured), then a cut.
  policy = "tiered",
  preserve_recent = 10,           -- messages at the end that stay word for word
  triggers = { share = 0.8 },     -- at 80 % of the window
  window = 200000,                -- what your model reads, in tokens
  reserve = 8000,                 -- kept free for its answer

  -- When turns make checkpoints by themselves.
  -- checkpoint = { strategy = "periodic", interval = "5m", keep = 50 },

  -- The model that `sessile chat` and summaries use.
  -- model = { endpoint = "http://localhost:11434/v1", name = "llama3.2" },
  -- model = { endpoint = "https://api.openai.com/v1", name = "gpt-4o",
  --           key = { env = "OPENAI_API_KEY" } },
  -- model = { command = { "my-model", "--json" } },
  -- model = { lua = "./model.lua" },

  -- Settings of single agents.
  -- agents = {
  --   coder = { policy = "sliding_window", window = 32000 },
  -- },
}
]]

return {
  summary = "write a first configuration",
  usage = "config init [FILE] [--yes]",
  examples = [[
    sessile config init                yours: compact at 80 % of the window; the rest are comments
    sessile config init ./sessile.lua  one for a project
    sessile config init --yes          replace the existing file]],
  arguments = { { "file", "the file (default: see `sessile config path`)", "?" } },
  options = { ask.option },
  about = [[
    Without a configuration the library compacts nothing. This file sets the policy
    `tiered`, which compacts when 80 % of the window is used.]],
  run = function(app, args)
    local path = args.file or config.named(app.globals.config) or config.own()
    if not path then
      return nil, "there is no place for a configuration: neither HOME nor XDG_CONFIG_HOME is set",
        "EUSAGE", "Name a file: sessile config init FILE"
    end
    local fits, wrong, why, step = config.is_lua(path)
    if not fits then
      return nil, terminal.line(wrong), why, step
    end
    local kind = system.kind(path)
    if kind and kind ~= "file" then
      return nil, ("%s is not a file"):format(terminal.line(path)), "EUSAGE"
    elseif kind and not args.yes then
      local sure, message, code = ask.sure(app, args, ("Write over %s"):format(path))
      if sure == nil then
        local is_there = ("%s is there"):format(terminal.line(path))
        return nil, code == "EUSAGE" and is_there or message, code,
          "It was not changed. To replace it: sessile config init"
          .. (args.file and " " .. hints.quoted(path) or "") .. " --yes"
      elseif not sure then
        app:note "Nothing was changed."
        return 1
      end
    end
    local ok, message, code = own_files.write(path, TEXT, kind ~= nil)
    if not ok then
      return nil, "it cannot be written: " .. message, code
    end
    app:result({ path = path, written = true }, terminal.line(path) .. "\n")
    if not app.json then
      app:note "See what it comes to: sessile config"
    end
  end,
}
