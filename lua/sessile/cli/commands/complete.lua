--- __complete: the command that the scripts of `sessile completions` call.
--
-- Owns: its output: "files", "folders" or "none", then one candidate on each line. Must never print
-- on stderr, nor fail.

local complete = require "sessile.cli.complete"
local words = require "sessile.cli.words"

-- The words of a line of bash without their quotes, and a function that formats a candidate.
local function from_bash(breaks, line)
  local typed = words.split(line or "")
  local last = typed[#typed]
  local texts = {}
  for i = 2, #typed do
    texts[i - 1] = typed[i].text
  end
  return texts, function(candidate)
    return words.replacement(candidate[1], last, breaks or "")
  end
end

local function with_about(candidate)
  return candidate[2] and candidate[2] ~= "" and candidate[1] .. "\t" .. candidate[2]
    or candidate[1]
end

return {
  summary = "what a line that is being typed may become",
  usage = "__complete bash BREAKS LINE | __complete words WORD…",
  examples = {},
  arguments = { { "shell", "`bash`, or `words`: one by one, without quotes" } },
  raw = true,
  run = function(app, args)
    local typed, shown = args.rest, with_about
    if args.shell == "bash" then
      typed, shown = from_bash(args.rest[1], args.rest[2])
    end
    local well, candidates, place = pcall(complete.line, app, typed, args.shell ~= "bash")
    app:out((well and place or "none") .. "\n")
    for _, candidate in ipairs(well and candidates or {}) do
      local text = shown(candidate)
      if text then
        app:out(text .. "\n")
      end
    end
    app.damage, app.damaged = nil, nil
  end,
}
