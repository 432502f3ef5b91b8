-- secrets: refuses or removes keys and passwords.
--
-- Use it   for memories and states, and, with action = "redact", for messages: a key that a tool
--          printed need not be in a log, nor be sent to a model again.
-- Does     finds keys by the form that their issuers give them, private keys, tokens, passwords in
--          URLs, and what follows a name such as `password =`, if it looks like a password.
-- Cost     some µs for each text; the function runs only when a pattern matched.
-- Options  action: "refuse", "redact" ("[removed: RULE]" stands in its place) or "flag".
-- Never    finds a secret without a form or a name: a bare password is a word like others.

-- What documentation and code write where a secret would be.
local function is_example(value)
  local lower = value:lower()
  return #value < 8 or lower:find "^[%$<{%[%%(]" or lower:find "^%*+$" or lower:find "^x+$"
    or lower:find "example" or lower:find "your[_-]" or lower:find "^process%.env"
    or lower:find "^os%.environ" or lower:find "changeme" or lower:find "placeholder"
    or lower:find "^[%a_]+%(" or lower:find "^[%a_]+$" and not value:find "%u"
    or lower:find "^%a[%w_]*%.%a" or lower:find "redacted" or lower:find "^[.]+$"
end

return {
  name = "secrets",
  version = 1,
  about = "Refuse or remove keys and passwords.",
  on = { "memory", "state" },
  options = {
    action = { type = "string", default = "refuse", values = { "refuse", "redact", "flag" },
      about = "what is done with a secret" },
  },

  -- luacheck: push no max line length
  patterns = {
    aws = [[(?-i)\b(?:AKIA|ASIA)[0-9A-Z]{16}\b]],
    github = [[(?-i)\b(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{50,255})\b]],
    gitlab = [[(?-i)\bglpat-[A-Za-z0-9_-]{20,60}]],
    slack = [[(?-i)\bxox[abeoprs]-[A-Za-z0-9-]{10,250}]],
    openai = [[(?-i)\bsk-(?:proj-|ant-|or-|svcacct-)?[A-Za-z0-9_-]{20,250}]],
    google = [[(?-i)\bAIza[A-Za-z0-9_-]{35}]],
    stripe = [[(?-i)\b[rs]k_live_[A-Za-z0-9]{20,120}]],
    npm = [[(?-i)\bnpm_[A-Za-z0-9]{36}\b]],
    sessile = [[(?-i)\bsesk_[A-Za-z0-9_]{20,200}]],
    jwt = [[(?-i)\beyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,8000}\.[A-Za-z0-9_-]{10,2000}]],
    private_key = [[-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?:.{0,8000}?-----END [A-Z ]{0,30}PRIVATE KEY-----)?]],
    url_password = [[\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@"']{1,100}:\K[^\s/@"']{3,200}(?=@)]],
    named = [[(?:password|passwd|passphrase|passwort|kennwort|secret|api[_-]?key|access[_-]?key|secret[_-]?key|auth[_-]?token|access[_-]?token)["'`]{0,2}\s{0,3}(?:[:=]|\bis\b|\bist\b|\blautet\b)\s{0,3}["'`]?\K[^\s"'`,;]{8,200}]],
    bearer = [[\bauthorization["']?\s{0,3}[:=]\s{0,3}["']?(?:bearer|basic)\s+\K[A-Za-z0-9._~+/=-]{16,4000}]],
  },
  -- luacheck: pop

  screen = function(item, ctx)
    local text, found = item.text, item.matches
    for _, rule in ipairs { "private_key", "aws", "github", "gitlab", "slack", "openai", "google",
      "stripe", "npm", "sessile", "jwt" } do
      if found[rule] and ctx.options.action ~= "redact" then
        return ctx.options.action, rule
      end
    end
    local places, first = {}, nil
    for rule, list in pairs(found) do
      local has_name = rule == "named" or rule == "url_password" or rule == "bearer"
      for _, place in ipairs(list) do
        if not (has_name and is_example(text:sub(place[1], place[2]))) then
          places[#places + 1] = place
          first = first or rule
        end
      end
    end
    if first then
      return ctx.options.action, first, places
    end
  end,
}
