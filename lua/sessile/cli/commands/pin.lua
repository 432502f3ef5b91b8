--- pin: puts the pin on a message.
--
-- Owns: nothing but the words. What a pin means is the engine's: a pinned message stays in
-- the context, unedited.

local entries = require "sessile.cli.entries"

return {
  name = "pin",
  summary = "keep a message in the context: no policy may remove it",
  usage = "pin ID ENTRY",
  examples = {
    { "sessile pin bug-42 2a", "no policy drops or edits it from now on" },
  },
  arguments = entries.arguments,
  run = entries.pinning "pin",
}
