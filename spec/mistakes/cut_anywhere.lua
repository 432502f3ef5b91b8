-- Cuts at a number of messages, wherever that falls: results lose their calls.
return {
  name = "cut_anywhere",
  truncate = function(state)
    local opening = state.messages[1] and state.messages[1].role == "system" and 1 or 0
    local last = #state.messages - 6
    for i = opening + 1, last do
      local message = state.messages[i]
      local asked = message.role == "user"
      if not asked and not message.open then
        state:drop(i)
      end
    end
  end,
}
