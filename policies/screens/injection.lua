-- injection: flags SQL, shell commands and markup that are put where data should be.
--
-- Use it   for memories and states: it marks what somebody should look at. It does not refuse,
--          because people who program talk about commands all day.
-- Does     flags what attacks on databases, shells, browsers and paths look like.
-- Cost     some µs for each text; there is no function.
-- Options  none. A screen of your own can refuse: copy this file and change its action.
-- Never    means that a text without a flag is safe to run.

return {
  name = "injection",
  version = 1,
  about = "Flag SQL, shell commands and markup in data.",
  on = { "memory", "state" },
  action = "flag",

  -- luacheck: push no max line length
  patterns = {
    sql_union = [[\bunion\s+(?:all\s+)?select\b]],
    sql_always = [[['"]\s*(?:or|and)\s+['"]?\w{1,10}['"]?\s*=\s*['"]?\w{1,10}]],
    sql_drop = [[;\s*(?:drop|truncate|alter)\s+(?:table|database|schema)\b|;\s*delete\s+from\b]],
    sql_probe = [[\b(?:xp_cmdshell|pg_sleep|information_schema|load_file|into\s+outfile|waitfor\s+delay)\b]],
    shell_pipe = [[\b(?:curl|wget|base64\s+(?:-d|--decode))\b[^\n|]{0,200}\|\s*(?:sudo\s+)?(?:ba|z|da|k)?sh\b]],
    shell_remove = [[\brm\s+-[a-z]{0,4}[rf][a-z]{0,4}\s+(?:--no-preserve-root\s+)?(?:[/~]|\*)]],
    shell_socket = [[/dev/tcp/|\bnc\s+(?:-[a-z]+\s+)*-[a-z]*e\b|\bmkfifo\s+/tmp/]],
    shell_nested = [[\$\((?:curl|wget|cat|id|whoami|rm|nc|bash|sh)\b|`(?:curl|wget|id|whoami|rm|nc)\s?[^`]{0,200}`]],
    shell_files = [[\bcat\s+/etc/(?:passwd|shadow)\b|\.ssh/id_(?:rsa|ed25519)\b|\bchmod\s+(?:-R\s+)?777\s+/]],
    script = [[<script\b|\bjavascript:\s*\w|\bon(?:error|load|click|mouseover)\s*=\s*["']?\w]],
    path = [[(?:\.\./){3,}|(?:\.\.\\){3,}|%2e%2e%2f%2e%2e]],
    template = [[\{\{\s*(?:config|self|request|[\d*+\s-]{3,})\b|\$\{jndi:|<%=?\s*(?:system|exec|`)]],
  },
  -- luacheck: pop
}
