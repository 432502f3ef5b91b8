-- A policy that saves the first message in the memory before it drops it.
return {
  name = "flushes",
  options = { wrong = { type = "boolean", default = false, about = "name no source" } },
  flush = function(state, ctx)
    local first = state.messages[1]
    ctx.memory.write { key = "goal", value = first.content,
      from = not ctx.options.wrong and { first.id } or nil }
  end,
  compact = function(state)
    state:keep_last(2)
  end,
}
