-- keep_last: a policy in fifteen lines. It keeps the newest turns and drops older ones.
--
--     sessile.open("./sessions", { policy = { "examples/keep_last.lua", turns = 8 } })

return {
  name = "keep_last", version = 1,
  about = "Keep the system message and the newest turns.",
  options = {
    turns = { type = "integer", default = 20, min = 1, about = "newest turns kept" },
  },
  truncate = function(state, ctx)
    state:keep_last(ctx.options.turns, "turns")
  end,
}
