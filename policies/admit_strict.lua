-- admit_strict: lets only what users said into a memory unseen; the rest waits for a person.
--
-- Use it   as a policy of memories, where what agents read may be hostile, and somebody reviews.
-- Cost     one pass over the texts of each entry. Asks no model.
-- Does     refuses what looks like a key, a token or a password. What looks like an order to the
--          model, or has an address of the network, waits for a person, and so does what agents and
--          tools said. It judges every write: of policies, of tools and of the host.
-- Never    changes an entry. It knows patterns, not meanings: what it admits may still be an order.

local SECRETS = {
  "%-%-%-%-%-begin [%u%l ]-private key", "%f[%w]sk%-[%w_-]+", "%f[%w]gh[pousr]_%w+",
  "%f[%w]github_pat_%w+", "%f[%w]glpat%-[%w_-]+", "%f[%w]akia%w+", "%f[%w]xox[abpr]%-[%w-]+",
  "%f[%w]eyj[%w_-]+%.[%w_-]+%.", "://[^%s/:@]+:[^%s/@]+@",
}
-- Words for a secret, and what has to follow: a colon or "is" within a few words; of words that
-- mean other things, too, a number.
local STRONG = { "password", "passwort", "kennwort", "passphrase", "api[ _-]?key",
  "access[ _-]?key", "secret[ _-]?key", "private[ _-]?key", "zugangscode" }
local WEAK = { "secret", "token", "pin", "code" }
local SAYS = { "^%s*[:=]%s*%S", "^[^.!?]-%f[%w]is%s+%S", "^[^.!?]-%f[%w]ist%s+%S",
  "^[^.!?]-%f[%w]lautet%s+%S" }
local SAYS_NUMBER = { "^%s*[:=]%s*%S*%d", "^%s+is%s+%S*%d", "^%s+ist%s+%S*%d",
  "^%s+lautet%s+%S*%d" }
local ORDERS = {
  "ignore %w*%s?%w*%s?instruction", "ignore all", "ignore any", "ignore previous", "disregard",
  "forget everything", "forget all", "you must", "you are now", "from now on", "new instruction",
  "system prompt", "system message", "developer message", "do not tell", "don't tell",
  "do not mention", "without asking", "without telling", "before you answer",
  "when you read this", "act as ", "pretend to", "jailbreak", "override ", "send %w+ to",
  "forward %w+ to", "upload %w+ to", "curl ", "wget ", "rm %-rf", "sudo ", "eval%(", "<script",
  "<%|", "%[inst%]", "</?system", "ignoriere", "ab jetzt", "ab sofort", "von nun an", "du musst",
  "ohne zu fragen", "sende %w+ an", "schicke %w+ an",
}
local ADDRESSES = { "%a[%w+.-]*://%S", "%f[%w]www%.%w", "[%w.+_-]+@[%w-]+%.%a",
  "%f[%d]%d+%.%d+%.%d+%.%d+%f[%D]" }

local function has_any(text, patterns)
  for _, pattern in ipairs(patterns) do
    if text:find(pattern) then return true end
  end
  return false
end

-- A word that nobody would say: long, with letters and digits mixed.
local function has_random_word(text)
  for word in text:gmatch("[%w_+/=-]+") do
    local _, digits = word:gsub("%d", "")
    if #word >= 24 and digits >= 4 and word:find("%a") and #word - digits >= 4
      and not word:find("/", 2, true) then
      return true
    end
  end
  return false
end

-- Whether one of the words is followed by what it is.
local function is_told(text, words, says)
  for _, word in ipairs(words) do
    local _, last = text:find("%f[%w]" .. word .. "%f[%W]")
    while last do
      if has_any(text:sub(last + 1, last + 40), says) then return true end
      _, last = text:find("%f[%w]" .. word .. "%f[%W]", last + 1)
    end
  end
  return false
end

local function has_secret(text)
  if has_any(text, SECRETS) or has_random_word(text) then return true end
  return is_told(text, STRONG, SAYS) or is_told(text, WEAK, SAYS_NUMBER)
end

return {
  name = "admit_strict", version = 1,
  about = "Only what users said is live at once; secrets are refused.",
  options = {
    agents = { type = "boolean", default = false, about = "what agents said is live at once, too" },
  },
  admit = function(entry, ctx)
    local text = ("%s\n%s\n%s"):format(entry.key or "", entry.value, entry.also or "")
    text = text:lower():gsub("%s+", " ")
    if has_secret(text) then return false, "it looks like a secret" end
    if has_any(text, ORDERS) then return "pending", "it looks like an order to the model" end
    if has_any(text, ADDRESSES) then return "pending", "it has an address" end
    local is_said = entry.source == "user" or entry.source == "system"
    if not is_said and not (ctx.options.agents and entry.source == "agent") then
      return "pending", ("the %s said it, no user"):format(entry.source)
    end
    return true
  end,
}
