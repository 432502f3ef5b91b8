--- text: content as HTML and Markdown may have it: whole characters, none that act.

local characters = require "sessile.characters"

local text = {}

--- Line ends of one kind, and no control characters but them and tabs.
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

--- Text as an element, or a quoted attribute, of HTML has it.
---@param content string
---@return string
function text.html(content)
  return (text.lines(content):gsub("[&<>\"']", HTML))
end

--- Cuts a text to a number of bytes, at whole characters, with an ellipsis where it was cut.
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
