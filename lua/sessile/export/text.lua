--- text: content as HTML and Markdown may have it: whole characters, none that act.

local text = {}

--- Bytes that are no UTF-8 become U+FFFD, one for each.
---@param bytes string
---@return string
function text.repaired(bytes)
  if utf8.len(bytes) then
    return bytes
  end
  local out, at = {}, 1
  while at <= #bytes do
    local length, wrong = utf8.len(bytes, at)
    if length then
      out[#out + 1] = bytes:sub(at)
      break
    end
    out[#out + 1] = bytes:sub(at, wrong - 1)
    out[#out + 1] = "\u{FFFD}"
    at = wrong + 1
  end
  return table.concat(out)
end

--- Line ends of one kind, and no control characters but them and tabs.
---@param content string
---@return string
function text.lines(content)
  return (text.repaired(content):gsub("\r\n?", "\n"):gsub("[%z\1-\8\11-\31\127]", "\u{FFFD}"))
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

--- At most so many bytes, whole characters, an ellipsis where something was cut.
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
