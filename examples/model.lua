-- model.lua: the model that examples ask: an OpenAI-compatible endpoint if one is configured, else
-- the script of the example.
--
--     OPENAI_BASE_URL=http://localhost:11434/v1 OPENAI_MODEL=llama3.2 \
--         build/bin/sessile run examples/assistant.lua
--
-- OPENAI_API_KEY is sent if it is set.
local sessile = require "sessile"

local model = {}

--- A function that asks the configured endpoint, or `script` if none is configured.
function model.choose(script)
  local url, name = os.getenv "OPENAI_BASE_URL", os.getenv "OPENAI_MODEL"
  if not url or url == "" then
    return script
  end
  assert(name, "OPENAI_BASE_URL is set: say with OPENAI_MODEL which of its models to ask")
  return assert(sessile.model {
    endpoint = url, name = name,
    key = os.getenv "OPENAI_API_KEY" and sessile.key.env "OPENAI_API_KEY",
  })
end

return model
