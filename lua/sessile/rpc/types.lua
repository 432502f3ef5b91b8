--- types: the named types of parameters and results, by their fields.
--
-- A type is {about = a line, fields = {name = type words}}, {about =, is = type words}, or
-- {about =, is_span = true} for JSON that is stored as it came. The order of the words in `fields`
-- does not matter: documents sort them.

local types = {}

local function define(name, about, what)
  assert(not types[name], name)
  local made = type(what) == "string" and { is = what } or { fields = what }
  made.about = about
  types[name] = made
end

-- ---------------------------------------------------------------- names and values

define("Id", "an entry's id, 8 hex digits; a label on exactly one entry; of what a policy wrote, "
  .. "also a name as 00000016.1", "string")
define("Bytes", "an id or a name: text; {b64} where its bytes are not UTF-8", "string|B64")
define("B64", "bytes that are not UTF-8", { b64 = "string" })
define("Name", "a session: its id, or with its agent and user", "string|FullName|B64")
define("FullName", "a session by all its names", {
  id = "Bytes", agent = "Bytes?", user = "Bytes?",
})
define("Time", "a time: ms since 1970, a date as 2026-02-01 (UTC), or an age as 24h",
  "integer|string")
define("Span", "a time span: seconds, or as 30d; false: none", "number|string|boolean")
define("Timeout", "ms, or as 5s; -1: for ever", "integer|string")
types.Message = { about = "a message: an object with a role; what comes is stored as it came",
  is_span = true }
types.WriteEntry = { about = "a message, or a custom entry with its source", is_span = true,
  members = { message = "Message?", custom = "object?", source = "string?" } }

-- ---------------------------------------------------------------- what runs take

define("Policy", "a policy: a name or path, one with options or with hooks of the client, a "
  .. "chain of these, or false: none", "string|boolean|PolicyStep|PolicyStep[]")
define("PolicyStep", "a policy of a chain; with hooks, the client is asked (ask/hook)", {
  name = "string?", options = "object?", hooks = "string[]?",
})
define("Usage", "tokens that the provider reported", {
  input = "integer?", output = "integer?", cache_read = "integer?", cache_write = "integer?",
  cost = "number?",
})
define("Triggers", "when to compact without asking the policy; false: never", "boolean|TriggerSet")
define("TriggerSet", "conditions, each of which compacts", {
  messages = "integer?", interval = "integer|string?", share = "number?", overflow = "boolean?",
  events = "string[]?",
})
define("Checkpoints", "when turns make checkpoints; false: never", "boolean|CheckpointRules")
define("CheckpointRules", "conditions, each of which makes one", {
  strategy = "'manual'|'periodic'|'event'|'threshold'?", messages = "integer?",
  interval = "integer|string?", share = "number?", events = "string[]?", keep = "integer?",
})

-- ---------------------------------------------------------------- sessions and stores

define("Session", "a session as it is", {
  id = "Bytes", agent = "Bytes", user = "Bytes", title = "string", created = "integer",
  modified = "integer", head = "string", status = "string?", ttl = "integer?",
  expires = "integer?", deleted = "integer?", torn = "integer", damage = "Damage?",
  origin = "Link?", parent = "Link?", messages = "integer?", metadata = "json?",
  settings = "json?", suspended = "Suspension?", events = "integer?", leaves = "string[]?",
  children = "Subsession[]?",
})
define("Damage", "what cannot be read", { code = "string", message = "string", lost = "integer?" })
define("Link", "an entry of another session", {
  id = "Bytes", agent = "Bytes", user = "Bytes", entry = "string", tag = "string?",
})
define("Listed", "a session in a list", {
  id = "Bytes?", agent = "Bytes?", user = "Bytes?", title = "string?", created = "integer?",
  modified = "integer?", entries = "integer?", messages = "integer?", bytes = "integer",
  torn = "integer", status = "string", labels = "string[]?", ttl = "integer?",
  expires = "integer?", deleted = "integer?", message = "string?",
})
define("Hit", "a place where a text was found, or a session that could not be read", {
  kind = "string", session = "Bytes?", agent = "Bytes?", user = "Bytes?", title = "string?",
  entry = "string?", role = "string?", field = "string?", text = "string?", first = "integer?",
  last = "integer?", cut_before = "boolean?", cut_after = "boolean?", time = "integer?",
  code = "string?", message = "string?",
})
define("Subsession", "a child of a session", {
  id = "Bytes", agent = "Bytes", user = "Bytes", entry = "string", time = "integer",
  state = "string", merged = "string?",
})
define("Suspension", "why a session waits", {
  id = "string", time = "integer", reason = "string?", state = "json?",
})
define("Deleted", "a session that was deleted", {
  id_hash = "string?", time = "integer?", bytes = "integer?",
})
define("Tokens", "a count and how exact it is", {
  tokens = "integer", low = "integer?", high = "integer?", source = "string?", missing = "string?",
})

-- ---------------------------------------------------------------- what is read

define("Read", "a message as it is stored, and the engine's fields", {
  id = "string?", key = "string?", tokens = "integer", time = "integer?", message = "Message",
})
define("Context", "what the model would get", {
  messages = "Read[]", tokens = "integer", low = "integer?", high = "integer?",
  source = "string?", head = "string", dropped = "integer?", orphans = "integer?",
  unanswered = "integer?", lost = "integer?", room = "integer?",
})
define("Entries", "entries as they are stored; next: give it as `after` (`before` when reversed)", {
  entries = "json[]", next = "string?",
})
define("Node", "an entry in the tree", {
  id = "string", parent = "string?", type = "string", role = "string?", speaker = "string?",
  starts_turn = "boolean?", tokens = "integer?", total_tokens = "integer?", time = "integer?",
  is_path = "boolean?", on_path = "boolean?", is_head = "boolean?", labels = "string[]?",
  in_context = "boolean?",
})
define("Tree", "the entries in the order of the log", { current = "string", nodes = "Node[]" })
define("Label", "a label and what it is on", {
  id = "string", name = "string", time = "integer?", fact = "string?",
})
define("UsageGroup", "what was reported for one key", {
  key = "string", model = "string?", cost = "number?", uncosted = "Usage?", reports = "integer?",
  first = "integer?", last = "integer?", input = "integer?", output = "integer?",
  cache_read = "integer?", cache_write = "integer?",
})
define("UsageReport", "the sum, or groups that add up to it", {
  input = "integer?", output = "integer?", cache_read = "integer?", cache_write = "integer?",
  groups = "UsageGroup[]?",
})
define("Compaction", "a compaction, or a refusal of one", {
  kind = "string", id = "string", time = "integer?", policy = "string?", reason = "string?",
  instructions = "string?", summary = "string?", tokens = "BeforeAfter?", uncompacts = "string?",
  first_kept = "string?", kept = "integer?", lost = "integer?", covered = "integer?",
  replaced = "integer?", undone = "integer?", written = "integer?", restored = "integer?",
  in_force = "string?", hook = "string?", message = "string?", law = "integer?",
  law_name = "string?", entry = "string?", repeated = "integer?",
})
define("BeforeAfter", "tokens of the context", { before = "integer", after = "integer" })
define("WhyStep", "one thing that happened to a message", {
  kind = "string", key = "string?", at = "string?", time = "integer?", text = "string",
  role = "string?", type = "string?", disposition = "string?", by = "string?",
  stands_for = "string[]?",
})
define("Explanation", "why a message is in the context, or not", {
  key = "string", in_context = "boolean", shown = "string?", steps = "WhyStep[]",
  verdict = "string", text = "string",
})
define("Checkpoint", "a checkpoint that is kept", {
  id = "string", head = "string?", time = "integer?", reason = "string?", messages = "integer?",
  tokens = "integer?", state_bytes = "integer?", sound = "boolean?", name = "string?",
  event = "string?", agent_version = "string?", metadata = "json?",
})
define("Parked", "a run that waits for an answer from elsewhere", {
  id = "string", time = "integer?", policy = "string?", refused = "boolean?", request = "json",
})
define("Exported", "a document, and what was redacted in it", {
  format = "string", text = "string", redacted = "Redacted[]?", notes = "string[]?",
})
define("Redacted", "how often a rule found something", {
  name = "string", values = "integer?", places = "integer?",
})

-- ---------------------------------------------------------------- what runs return

define("Removal", "a message that left the context", {
  key = "string", disposition = "string?", role = "string?", tokens = "integer?", by = "string?",
})
define("Verdict", "what a policy came to", {
  applied = "boolean", verdict = "string", refused = "string?", message = "string?",
  law = "integer?", name = "string?", hook = "string?", dropped = "integer?",
  removals = "Removal[]?", too_little = "boolean?", reason = "string?", refusal = "string?",
  repeated = "integer?", fallback = "Verdict?",
})
define("Outcome", "how a run ended; tokens are left out where no policy ran", {
  status = "string", kind = "string", ids = "string[]", turn = "string?", again = "boolean?",
  held = "boolean?", head = "string", from = "string?", branch_summary = "string?",
  pending_run = "string?", suspension = "string?", checkpoint = "string?",
  checkpoint_failed = "string?", tokens = "BeforeAfter?", policy = "Verdict?",
  removals = "Removal[]?", cannot_fit = "integer?", compaction = "string?", time = "integer?",
  first_kept = "string?", refusal = "string?", repeated = "integer?", summary = "string?",
  engine_us = "integer?", policy_us = "integer?", log = "string[]",
})
define("Plan", "what a compaction would do", {
  before = "Read[]", after = "Read[]", tokens = "BeforeAfter?", policy = "Verdict?",
  removals = "Removal[]?", first_kept = "string?", cannot_fit = "integer?", summary = "string?",
  engine_us = "integer?", policy_us = "integer?", log = "string[]", text = "string",
})
define("Uncompacted", "a compaction that was undone", {
  compaction = "string?", undone = "string", restored = "string[]", removed = "string[]",
  tokens = "BeforeAfter?", cannot_fit = "integer?",
})
define("Restored", "the checkpoint that the head is at again", {
  checkpoint = "string", head = "string", state = "json?", warnings = "string[]",
})

-- ---------------------------------------------------------------- rpc itself

define("Hello", "who answers", {
  protocol = "integer", version = "string", store = "string", sealed = "boolean",
  line = "integer", methods = "integer",
})
define("Embeds", "who embeds: its name and the numbers of a vector", {
  name = "string", dims = "integer?",
})
define("Opened", "a store that is open under a name", {
  name = "string", url = "string", sealed = "boolean",
})
define("Watch", "a watch and the newest entry", { watch = "integer", newest = "string" })
define("PolicyInfo", "a policy that can be named", {
  name = "string", about = "string?", version = "integer?", path = "string?",
})

define("ModelAnswer", "one of: the text, a failure, or that somebody answers later", {
  text = "string?", failed = "string?", later = "boolean?",
})
define("Columns", "messages as columns, one item of each list for a message", {
  key = "string[]", role = "string[]", turn = "integer[]", tokens = "integer[]",
  flags = "string[]",
})
define("HookAnswer", "edits such as [\"keep_last\", 4, \"turns\"], and what the hook returns", {
  edits = "json[]?", value = "json?", vars = "json?", failed = "string?", log = "string?",
})
define("StateAnswer", "the state, or why there is none", { state = "json?", failed = "string?" })
define("EmbedAnswer", "the vectors, or why there are none", {
  vectors = "json?", failed = "string?",
})

return types
