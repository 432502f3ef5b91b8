--- text: stored text for HTML and Markdown: valid characters, escaped.

local characters = require "sessile.characters"
local dialect = require "sessile.dialect"

local utf8 = dialect.utf8

local text = {}

--- Text with uniform line ends and without other control characters, except tabs.
---@param content string
---@return string
function text.lines(content)
  return (characters.repaired(content):gsub("\r\n?", "\n"):gsub("[%z\1-\8\11-\31\127]", "\u{FFFD}"))
end

--- The same on one line.
---@param content string
---@return string
function text.line(content)
  return (text.lines(content):gsub("%s+", " "):gsub("^ ", ""):gsub(" $", ""))
end

local HTML = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&#39;" }

--- Text escaped for an element or a quoted attribute of HTML.
---@param content string
---@return string
function text.html(content)
  return (text.lines(content):gsub("[&<>\"']", HTML))
end

--- Cuts a text to a number of bytes, at a whole character, and adds an ellipsis.
---@param content string
---@param most integer
---@return string
function text.cut(content, most)
  if #content <= most then
    return content
  end
  return content:sub(1, utf8.offset(content, 0, most + 1) - 1):gsub(" +$", "") .. "…"
end

return text
