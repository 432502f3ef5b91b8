--- unpin: takes the pin off a message.
--
-- Owns: nothing but the words.

local entries = require "sessile.cli.entries"

return {
  name = "unpin",
  summary = "let policies remove a message again",
  usage = "unpin ID ENTRY",
  examples = {
    { "sessile unpin bug-42 2a", "policies may drop it again" },
  },
  arguments = entries.arguments,
  run = entries.pinning "unpin",
}
