-- Shortens messages and passes them off as the entries they were.
return {
  name = "edits_in_place",
  truncate = function(state)
    local list = {}
    for i, message in ipairs(state.messages) do
      list[i] = message
      if message.role == "assistant" and #tostring(message.content) > 40 and not message.open then
        list[i] = { id = message.id, role = "assistant", content = "shorter" }
      end
    end
    return { messages = list }
  end,
}
