-- memory: remembers, tidies up and recalls.
--
-- Use it   when you do not want to choose: memory = { enabled = true, policy = "memory" }.
-- Does     the model notes what will be useful (remember), what is there twice or no longer true is
--          merged (tidy), and what is quoted is chosen (recall).
-- Cost     that of remember and tidy. Nothing happens unless memories are enabled.
-- Options  go to the policies that have them: {"memory", model = "small"} is for remember and tidy.
-- Never    admits less than the laws do: put "admit_strict" behind it if somebody reviews.

return {
  name = "memory",
  version = 1,
  about = "Remember, tidy up, recall.",
  chain = { "remember", "tidy", "recall" },
}
