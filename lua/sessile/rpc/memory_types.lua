--- memory_types: the named types of long-term memories, beside those of types.lua.

return {
  MemoryRow = { about = "an entry of a memory", fields = {
    id = "string", state = "string?", kind = "string?", source = "string?", key = "string?",
    value = "string?", also = "string?", author = "string?", from = "MemoryFrom[]?",
    replaces = "string[]?", metadata = "json?", time = "integer?", expires = "integer?",
    holds_from = "integer?", holds_until = "integer?", importance = "number?",
    pinned = "boolean?", approved = "boolean?", confirmed = "integer?", ended_by = "string?",
    score = "number?", cover = "number?", cos = "number?", memory = "string?", explain = "json?",
  } },
  MemoryFrom = { about = "the messages that an entry is from", fields = {
    session = "Bytes", agent = "Bytes?", first = "string?", last = "string?",
  } },
  Found = { about = "hits, best first, and what the search went by", fields = {
    hits = "MemoryRow[]", legs = "json?",
  } },
  Consent = { about = "the newest consent", fields = {
    given = "boolean", by = "string?", text = "string?", scope = "string?", time = "string?",
  } },
  MemoryWhy = { about = "where an entry comes from, and what ended it", fields = {
    entry = "MemoryRow", from = "json[]?", ended = "json?",
  } },
  MemoryFinding = { about = "what a person should look at", fields = {
    what = "string", row = "MemoryRow?", part = "string?", session = "Bytes?", agent = "Bytes?",
    entries = "integer?", usual = "integer?",
  } },
  Embedded = { about = "how far embedding came", fields = {
    verdict = "string", embedded = "integer", to_embed = "integer?", model = "string?",
    message = "string?",
  } },
  Edited = { about = "what an edit changed", fields = {
    written = "integer?", replaced = "integer?", deleted = "integer?",
  } },
  Imported = { about = "what was imported", fields = {
    written = "integer", known = "integer?", format = "string?",
  } },
  Recalled = { about = "what was quoted from memories", fields = {
    id = "string?", recalled = "integer", found = "integer?", not_fitting = "integer?",
    not_allowed = "integer?", denied = "integer?", tokens = "integer?", entries = "MemoryRow[]?",
  } },
  MemoryOutcome = { about = "what a policy remembered", fields = {
    verdict = "string", policy = "string?", hook = "string?", law = "integer?",
    message = "string?", refusal = "string?", heard = "integer?", left = "integer?",
    written = "integer?", pending = "integer?", lowered = "integer?", ended = "integer?",
    confirmed = "integer?", not_admitted = "integer?", stale = "integer?", changes = "json?",
    log = "string?",
  } },
}
