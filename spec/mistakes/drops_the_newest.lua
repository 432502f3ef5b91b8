-- Makes room at the wrong end.
return {
  name = "drops_the_newest",
  truncate = function(state)
    local n = #state.messages
    local message = state.messages[n]
    if n > 3 and message.role == "assistant" and not message.open then
      state:drop(n)
    end
  end,
}
