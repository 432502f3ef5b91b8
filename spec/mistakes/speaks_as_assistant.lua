-- Writes a summary in the voice of the assistant.
return {
  name = "speaks_as_assistant",
  truncate = function(state)
    local turns = state:turns()
    if #turns >= 3 then
      local first, last = turns[1].first, turns[1].last
      for i = first, last do
        if state.messages[i].dead or state.messages[i].open then
          return
        end
      end
      state:insert(first, { role = "assistant", content = "x" }, { covers = { first, last } })
    end
  end,
}
