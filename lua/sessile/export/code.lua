--- code: program text with its strings, comments, numbers and keywords in elements with a class.
--
-- Owns: what is known of languages: how their comments, strings and keywords look. It colours and
-- does not parse. Must never lose a byte, nor return text that is not escaped.

local text = require "sessile.export.text"

local code = {}

local MOST = 256 * 1024 -- bytes: a longer text stays as it is

local function set(words)
  local of = {}
  for word in words:gmatch "%S+" do
    of[word] = true
  end
  return of
end

-- Keywords of a family of languages together: a word that one of them does not have is rare there.
local FAMILIES = {
  c = { line = "//", block = { "/*", "*/" }, words = set [[abstract as async auto await bool boolean
    break byte case catch chan char class const constexpr continue crate debugger default defer
    delete do double else enum export extends extern false final finally float fn for from func
    function go goto if impl implements import in inline instanceof int interface let long loop
    match mod move mut namespace new nil null nullptr of operator override package private
    protected pub public range readonly return self short signed sizeof static string struct super
    switch template this throw throws trait true try type typedef typename typeof undefined union
    unsigned use using var virtual void volatile where while with yield]] },
  hash = { line = "#", words = set [[and as assert async await begin break case class continue def
    del do done elif else elsif end ensure esac except export False fi finally for from function
    global if import in is lambda local module next nil None nonlocal not or pass raise readonly
    require rescue return self set shift source then True true false try unless until when while
    with yield]] },
  dash = { line = "--", words = set [[and break do else elseif end false for function goto if in
    local nil not or repeat return then true until while
    ADD ALTER AND AS ASC BEGIN BY CASE COMMIT CREATE DELETE DESC DISTINCT DROP ELSE END EXISTS FROM
    GROUP HAVING IN INDEX INNER INSERT INTO IS JOIN KEY LEFT LIKE LIMIT NOT NULL OFFSET ON OR ORDER
    OUTER PRIMARY REFERENCES RIGHT ROLLBACK SELECT SET TABLE THEN UNION UNIQUE UPDATE VALUES VIEW
    WHEN WHERE WITH]] },
  data = { words = set "true false null" },
}

local FAMILY_OF = {}
for family, names in pairs {
  c = [[c h cc cpp cxx hpp cs css d dart go groovy java javascript js jsx json5 kotlin kt m mjs php
    rs rust scala scss swift ts tsx typescript v zig]],
  hash = [[awk bash cmake conf dockerfile elixir ex exs fish ini jl julia make makefile mk nix perl
    pl pm py python r rb ruby sh shell toml yaml yml zsh]],
  dash = "lua sql hs haskell adb ads elm",
  data = "json jsonl",
} do
  for name in names:gmatch "%S+" do
    FAMILY_OF[name] = FAMILIES[family]
  end
end

--- The language of a file by its name; nil: it is not known.
---@param path string
---@return string?
function code.language(path)
  local name = path:match "[^/\\]*$":lower()
  name = name:match "%.(%w+)$" or name
  return FAMILY_OF[name] and name or nil
end

-- The last byte of a string that begins at `at`; nil: it is none. A quote of one character ends in
-- its line, so that an apostrophe does not colour the rest. unended: for each quote, up to where no
-- string with it ends, so that a text full of escaped quotes is not searched again from each.
local function string_end(source, at, unended)
  local quote = source:match("^\"\"\"", at) or source:match("^'''", at)
  if quote then
    return select(2, source:find(quote, at + 3, true)) or #source
  end
  quote = source:sub(at, at)
  if at < (unended[quote] or 0) then
    return nil
  end
  local from = at + 1
  while true do
    local stop = source:find(quote == "`" and "[\\`]" or "[\\\n" .. quote .. "]", from)
    local found = stop and source:sub(stop, stop)
    if found == quote then
      return stop
    elseif found ~= "\\" then
      unended[quote] = stop or #source + 1
      return nil
    end
    from = stop + 2
  end
end

-- The class and the last byte of what stands at `at`; nil: nothing that has a colour.
local function token(family, source, at, unended)
  local first = source:sub(at, at)
  local block = family.block
  if family.line and source:sub(at, at + #family.line - 1) == family.line
      and (first ~= "#" or source:find("^%f[#%z]", at) and not source:find("^%S", at - 1)
        or at == 1) then
    local deep = family.line == "--" and source:match("^%-%-%[(=*)%[", at)
    if deep then
      return "n", select(2, source:find("]" .. deep .. "]", at, true)) or #source
    end
    return "n", (source:find("\n", at, true) or #source + 1) - 1
  elseif block and source:sub(at, at + 1) == block[1] then
    return "n", select(2, source:find(block[2], at + 2, true)) or #source
  elseif first == '"' or first == "'" or first == "`" then
    local stop = string_end(source, at, unended)
    return stop and "s", stop
  end
end

--- The text, escaped, with elements around what is known of its language. Without a language, or
--- with one that is not known, only escaped.
---@param source string
---@param language string?
---@return string
function code.html(source, language)
  local family = language and FAMILY_OF[language:lower()]
  source = text.lines(source)
  if not family or #source > MOST then
    return text.html(source)
  end
  local out, at, plain, unended = {}, 1, 1, {}
  local function mark(class, from, to)
    out[#out + 1] = text.html(source:sub(plain, from - 1))
    out[#out + 1] = ('<span class="h%s">%s</span>'):format(class, text.html(source:sub(from, to)))
    plain = to + 1
  end
  while at <= #source do
    local from = source:find("[%w_\"'`/#%-]", at)
    if not from then
      break
    end
    local word = source:match("^[%a_][%w_]*", from)
    local number = not word and source:match("^%d[%w_.]*", from)
    local class, to
    if word then
      class, to = family.words[word] and "k", from + #word - 1
    elseif number then
      class, to = "d", from + #number - 1
    else
      class, to = token(family, source, from, unended)
      to = to or from
    end
    if class then
      mark(class, from, to)
    end
    at = to + 1
  end
  out[#out + 1] = text.html(source:sub(plain))
  return table.concat(out)
end

return code
