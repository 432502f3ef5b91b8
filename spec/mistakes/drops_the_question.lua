-- Keeps the newest messages and loses what they are about.
return {
  name = "drops_the_question",
  truncate = function(state)
    for i = #state.messages, 1, -1 do
      local message = state.messages[i]
      if message.role == "user" and #state.messages - i >= 2 then
        return state:drop(i)
      end
    end
  end,
}
