-- tiered: three policies, from the cheapest to the last resort.
--
-- Use it   when you do not want to choose: `policy = "tiered"`, or `--policy tiered`.
-- Does     at 80 % of the window it edits old tool output (edit_tools). If more than 80 % is
--          left, the model summarizes all but the newest messages (summarize). Only if a
--          single turn exceeds the whole window, sliding_window cuts to 70 % of it before
--          the other two run.
-- Cost     most compactions end after edit_tools, which asks no model.
-- Options  go to the policies that have them: {"tiered", preserve_recent = 20} is for
--          edit_tools and summarize both, {"tiered", model = "small"} for summarize.
-- Never    cuts without a summary if a person asks to compact (`by_hand`).
-- Fails    if the model gives no summary. After a turn the fallback runs then: the configured
--          one, else edit_tools, and sliding_window to half of the window.

return {
  name = "tiered",
  version = 1,
  about = "Edit tool output, then summarize, then cut.",
  chain = {
    "edit_tools",
    "summarize",
    { "sliding_window", keep = 0.7, by_hand = false },
  },
  fallback = { "edit_tools", { "sliding_window", keep = 0.5 } },
}
