-- Puts what users said first.
return {
  name = "sorts_by_role",
  truncate = function(state)
    local first, rest = {}, {}
    for _, message in ipairs(state.messages) do
      if message.open or message.role == "tool" or message.tool_calls then
        return
      end
      local list = message.role == "user" and first or rest
      list[#list + 1] = message
    end
    for _, message in ipairs(rest) do
      first[#first + 1] = message
    end
    return { messages = first }
  end,
}
