-- Summarizes up to a fixed place, which falls between a call and its results.
return {
  name = "splits_the_summary",
  truncate = function(state)
    for i, message in ipairs(state.messages) do
      local next = state.messages[i + 1]
      if message.tool_calls and next and next.role == "tool" and not message.open
        and i < #state.messages - 4 then
        return state:insert(i, { role = "user", content = "s" }, { covers = { i, i } })
      end
    end
  end,
}
