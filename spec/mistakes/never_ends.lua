-- Waits for a context that it does not change.
return {
  name = "never_ends",
  truncate = function(state)
    while #state.messages > 2 do end
  end,
}
