-- picture.lua: the picture in the README, from a real run.
--
--     build/bin/sessile run examples/tour/picture.lua > examples/tour/tour.svg
--
-- Runs the lines of tour.sh on a pseudo-terminal (script(1)), in a temporary home folder with the
-- examples, and draws the output: text, colours, bold. Lines of tour.sh that begin with `#` are not
-- shown. A long line of output is wrapped, as on the terminal.

local system = require "sessile.system"

local COLUMNS = 100
local FONT, CELL, LINE, PAD, BAR = 14, 8.43, 20, 22, 38

local COLOURS = { -- SGR 30 to 37, 90 to 97
  [30] = "#5c6773", [31] = "#f07178", [32] = "#a6cc70", [33] = "#ffb454", [34] = "#6cb6ff",
  [35] = "#d2a6ff", [36] = "#7fd1c7", [37] = "#d7dce2",
  [90] = "#7a8794", [91] = "#ff8f95", [92] = "#b8db87", [93] = "#ffc77a", [94] = "#8cc8ff",
  [95] = "#e0bfff", [96] = "#9ae0d8", [97] = "#ffffff",
}

local function quoted(text)
  return "'" .. text:gsub("'", [['\'']]) .. "'"
end

local function read_all(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

--- The output of a line on a terminal of COLUMNS columns.
local function run(line, home)
  local inner = ("cd %s; stty cols %d rows 50;"
    .. " export HOME=%s XDG_DATA_HOME= XDG_CONFIG_HOME= NO_COLOR=;"
    .. " unset NO_COLOR SESSILE_STORE SESSILE_KEY; export TERM=xterm-256color"
    .. " PATH=%s:\"$PATH\"; %s"):format(quoted(home), COLUMNS,
      quoted(home), quoted(system.executable:match "^(.*)/[^/]*$"), line)
  local pipe = assert(io.popen("script -qefc " .. quoted(inner) .. " /dev/null </dev/null", "r"))
  local text = pipe:read "a"
  local ok = pipe:close()
  assert(ok, ("this line of the tour failed: %s\n%s"):format(line, text))
  return (text:gsub("\r\n", "\n"))
end

-- ---------------------------------------------------------------- from a terminal to runs

--- A line of terminal output as runs of the same style: {{text, colour, bold, dim}, …}.
local function runs_of(line)
  local runs, look, at = {}, {}, 1
  while at <= #line do
    local from, to, codes = line:find("\27%[([%d;]*)m", at)
    local text = line:sub(at, (from or #line + 1) - 1):gsub("\27%[[%d;?]*%a", "")
    if text ~= "" then
      runs[#runs + 1] = { text = text, colour = look.colour, bold = look.bold, dim = look.dim }
    end
    for code in (codes or ""):gmatch "[^;]*" do
      local n = tonumber(code) or 0
      if n == 0 then
        look = {}
      elseif n == 1 then
        look.bold = true
      elseif n == 2 then
        look.dim = true
      elseif COLOURS[n] then
        look.colour = COLOURS[n]
      end
    end
    at = to and to + 1 or #line + 1
  end
  return runs
end

local function escaped(text)
  return (text:gsub("[&<>]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;" }))
end

-- ---------------------------------------------------------------- the drawing

local Drawing = {}
Drawing.__index = Drawing

-- The first `columns` characters of a run, and the rest.
local function split(run_, columns)
  if (utf8.len(run_.text) or 0) <= columns then
    return run_
  end
  local at = utf8.offset(run_.text, columns + 1)
  local rest = { text = run_.text:sub(at), colour = run_.colour, bold = run_.bold, dim = run_.dim }
  return { text = run_.text:sub(1, at - 1), colour = run_.colour, bold = run_.bold,
    dim = run_.dim }, rest
end

function Drawing:add(line)
  local todo, column = runs_of(line), 0
  self.rows = self.rows + 1
  while #todo > 0 do
    if column == COLUMNS then
      self.rows, column = self.rows + 1, 0
    end
    local run_, rest = split(table.remove(todo, 1), COLUMNS - column)
    if rest then
      table.insert(todo, 1, rest)
    end
    local width, y = utf8.len(run_.text), BAR + PAD + self.rows * LINE - 6
    local class = (run_.bold and "b" or "") .. (run_.dim and " d" or "")
    if run_.text:find "%S" then
      self.parts[#self.parts + 1] =
        ('<text x="%.1f" y="%d" textLength="%.1f"%s%s xml:space="preserve">%s</text>'):format(
          PAD + column * CELL, y, width * CELL, run_.colour
          and (' style="fill:%s"'):format(run_.colour)
          or "", class ~= "" and (' class="%s"'):format(class) or "", escaped(run_.text))
    end
    column = column + width
  end
end

function Drawing:finish()
  local width, height = math.ceil(COLUMNS * CELL + 2 * PAD), BAR + 2 * PAD + self.rows * LINE
  return ([[
<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img"
  aria-label="A terminal: a recorded session imported, compacted, explained, branched and exported">
<style>text{font:%dpx ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;
fill:#d7dce2;white-space:pre}.b{font-weight:700}.d{opacity:.62}</style>
<rect width="%d" height="%d" rx="10" fill="#11161d"/>
<circle cx="24" cy="22" r="6" fill="#f07178"/><circle cx="44" cy="22" r="6" fill="#ffb454"/>
<circle cx="64" cy="22" r="6" fill="#a6cc70"/>
%s
</svg>
]]):format(width, height, width, height, FONT, width, height, table.concat(self.parts, "\n"))
end

local folder = arg[0]:match "^(.*)/[^/]*$" or "."
local home = os.tmpname()
assert(os.remove(home) and os.execute("mkdir -m 700 " .. quoted(home)))
assert(os.execute(('ln -s "$(readlink -f %s/..)" %s/examples'):format(quoted(folder),
  quoted(home))))
local drawing = setmetatable({ rows = 0, parts = {} }, Drawing)
for line in read_all(folder .. "/tour.sh"):gmatch "[^\n]+" do
  if line:sub(1, 1) ~= "#" then
    drawing:add("\27[32m$\27[0m \27[1m" .. line .. "\27[0m")
    for shown in run(line, home):gmatch "([^\n]*)\n" do
      drawing:add(shown)
    end
    drawing:add ""
  end
end
os.execute("rm -r " .. quoted(home))
drawing.rows = drawing.rows - 1
io.write(drawing:finish())
