-- Replaces what was short by what is long.
return {
  name = "wordy",
  truncate = function(state)
    for i, message in ipairs(state.messages) do
      if message.role == "assistant" and not message.open and not message.tool_calls
        and i < #state.messages - 2 then
        local text = "In other words, " .. tostring(message.content) .. ". "
        return state:replace(i, { content = text:rep(9) })
      end
    end
  end,
}
