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
