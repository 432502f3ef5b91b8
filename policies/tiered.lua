-- tiered: three policies, from the cheapest to the last resort.
--
-- Use it   when you do not want to choose: `policy = "tiered"`, or `--policy tiered`.
-- Does     at 80 % of the window old tool output becomes a line each (edit_tools). If that
--          leaves more than 80 %, all but the newest messages become a summary by the model
--          (summarize). Only a single turn that jumps past the whole window meets
--          sliding_window, which cuts to 70 % of it before the other two are asked.
-- Cost     most compactions end after edit_tools, which asks no model.
-- Options  go to the policies that have them: {"tiered", preserve_recent = 20} is for
--          edit_tools and summarize both, {"tiered", model = "small"} for summarize.
-- Never    cuts without a summary when a person asks to compact (`by_hand`).

return {
  name = "tiered",
  version = 1,
  about = "Edit tool output, then summarize, then cut.",
  chain = {
    "edit_tools",
    "summarize",
    { "sliding_window", keep = 0.7, by_hand = false },
  },
}
