-- A summary without an end.
return {
  name = "endless_summary",
  truncate = function(state)
    if #state.messages > 3 then
      state:insert(#state.messages + 1, { role = "user", content = ("and so on "):rep(200000) })
    end
  end,
}
