-- shell.lua: commands of a shell and what they print.

local shell = {}

--- A text as one word.
function shell.quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

--- What a command prints on its standard output, whether it succeeded, and its exit code.
function shell.output(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read "a"
  local ok, _, code = pipe:close()
  return text, ok == true, code
end

--- The first line of it.
function shell.line(command)
  return (shell.output(command):match "^[^\n]*")
end

return shell
