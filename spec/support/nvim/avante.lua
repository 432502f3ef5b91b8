--- avante: stands for avante.nvim: where its histories are, and a message as it makes one.

local History = {}

package.loaded["avante.utils"] = { root = { get = function() return "/home/jo/tram app" end } }
package.loaded["avante.path"] = { history = History }

local number = 0

--- A message. content: text, or one block.
local function message(role, content, fields)
  number = number + 1
  return setmetatable(vim.tbl_extend("force", { uuid = ("u-%d-%d"):format(vim.loop.os_getpid(),
    number), state = "generated", timestamp = "2026-02-01 10:00:00", visible = true,
    is_user_submission = role == "user", turn_id = "t" .. number,
    message = { role = role, content = type(content) == "string" and content or { content } } },
    fields or {}), { __index = { update_content = function() end } })
end

return { History = History, message = message }
