--- memory_more: memory/…: consent, erasing, texts, embeddings; and what sessions do with memories.

local core = require "sessile.core"

return function(method, registry)
  method("memory/consent", "the user consents, or does no longer", {
    given = "boolean", by = "string?", text = "string?", scope = "string?",
  }, "boolean", { args = { "given" } })

  method("memory/consented", "the newest consent; null: nobody ever consented", {}, "Consent?",
    { run = function(_, _, m)
      local consent, message, code, retry_ms, rule = m:consented()
      if consent == nil then
        return nil, message, code, retry_ms, rule
      end
      return consent or core.null
    end })

  method("memory/clear", "deletes all that is live or waits; each can be restored", {
    reason = "string?", by = "string?",
  }, "integer")

  method("memory/erase", "takes texts and vectors out of the log for good", {
    entry = "string?", history = "boolean?", session = "string?", session_agent = "string?",
    ended_before = "Time?",
  }, "integer", { args = { "entry" } })

  method("memory/delete_from", "ends what came from a deleted session", {
    session = "string", session_agent = "string?", by = "string?",
  }, "integer", { run = function(_, params, m)
    return m:delete_from(params.session, { agent = params.session_agent, by = params.by })
  end })

  method("memory/markdown", "the live entries as Markdown", { day = "string?" }, "string")

  method("memory/edit", "makes the changes between two such texts", {
    before = "string", after = "string", by = "string?",
  }, "Edited", { args = { "before", "after" } })

  method("memory/import", "adds what another program remembered", {
    text = "string", name = "string?", source = "'user'|'agent'|'tool'|'system'?",
  }, "Imported", { args = { "text" } })

  method("memory/stats", "counts", {}, "json")

  method("memory/models", "the models that entries have vectors of", {}, "json[]")

  method("memory/embed", "embeds what has no vector yet", {
    batch = "integer?", dry_run = "boolean?", timeout_ms = "Timeout?",
  }, "Embedded", { asks = { "embed" } })

  method("memory/put_vectors", "writes vectors that the client has: one for each id", {
    model = "string", ids = "string[]", vectors = "json",
  }, "integer?", { run = function(_, params, m)
    local done, message, code, retry_ms, rule =
      m:embed(params.model, params.ids, core.decode(params.vectors.json))
    if done == nil then
      return nil, message, code, retry_ms, rule
    end
    return math.tointeger(done) or #params.ids
  end })

  method("memory/tidy", "a policy confirms and merges entries that are there", {
    policy = "Policy?", ids = "string[]?", dry = "boolean?",
  }, "MemoryOutcome", { asks = { "model", "hook", "embed" } })

  local settings = {
    budget = "integer?", share = "number?", min = "number?", near = "number?",
    limit = "integer?", trust = "'system'|'user'|'agent'|'tool'?", recency = "number?",
    importance = "number?", start = "boolean?",
  }
  method("session/recall", "quotes what the session's memories have about its newest question",
    registry.with(settings, {
      question = "string?", model = "string?", weight = "number?", dry_run = "boolean?",
      policy = "Policy?",
    }), "Recalled", { asks = { "hook", "embed" } })

  method("session/remember", "a policy remembers what was said", {
    policy = "Policy?", dry = "boolean?", share = "boolean?", timeout_ms = "Timeout?",
    isolation = "'none'|'worker'?",
  }, "MemoryOutcome", { asks = { "model", "hook", "embed" } })
end
