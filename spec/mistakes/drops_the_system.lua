-- Begins the window at the first question.
return {
  name = "drops_the_system",
  truncate = function(state)
    local message = state.messages[1]
    if message and message.role == "system" and #state.messages > 4 then
      state:drop(1)
    end
  end,
}
