--- session_written: session/…: what is written to a session without a policy, and turns.


return function(method, registry)

  method("session/append", "one message, as a commit of its own", { message = "Message" }, "string",
    { args = { "message" } })

  method("session/turn", "the messages of a turn, in one commit; then policies run",
    registry.with(registry.inherited, {
      messages = "Message[]", base = "Id?", once = "string?",
      on_conflict = "'fail'|'append'|'branch'?", usage = "Usage?", model = "string?",
      metadata = "object?", event = "string?", state = "json?",
    }), "Outcome", { args = { "messages" }, asks = { "model", "hook", "state" }, turns = true })

  method("session/write", "messages and custom entries in one commit; no policy runs", {
    entries = "WriteEntry[]", base = "Id?",
  }, "string[]", { args = { "entries" } })

  method("session/custom", "an entry of the client, which never enters the context", {
    data = "object", source = "'user'|'agent'|'system'|'tool'|'host'?",
  }, "string", { args = { "data", "source" } })

  method("session/clear", "moves the head to the root; the log remains", {}, "boolean")

  method("session/pop", "takes the newest messages off the conversation: 1, or n", {
    n = "integer?", base = "Id?",
  }, "Read[]", { args = { "n" } })

  method("session/label", "puts a label on an entry", { entry = "Id", name = "string" }, "boolean",
    { args = { "entry", "name" } })

  method("session/unlabel", "removes a label of an entry; without a name all of them",
    { entry = "Id", name = "string?" }, "boolean", { args = { "entry", "name" } })

  method("session/pin", "keeps a message in the context", { entry = "Id" }, "boolean",
    { args = { "entry" } })

  method("session/unpin", "removes the pin", { entry = "Id" }, "boolean", { args = { "entry" } })

  method("session/title", "the title; with `title`: sets it", { title = "string?" }, "string",
    { run = function(_, params, s)
      if params.title then
        local done, message, code, retry_ms, rule = s:set_title(params.title)
        if not done then
          return nil, message, code, retry_ms, rule
        end
      end
      return s.title
    end })

  for _, name in ipairs { "metadata", "settings" } do
    method("session/" .. name, ("the %s; with `set`: sets these members and keeps the others, "
      .. "null removes one"):format(name), { set = "object?" }, "json",
      { run = function(_, params, s)
        if params.set then
          local done, message, code, retry_ms, rule = s[name](s, params.set)
          if not done then
            return nil, message, code, retry_ms, rule
          end
        end
        return s[name](s)
      end })
  end

  method("session/suspend", "nothing is added until it is resumed or cancelled", {
    reason = "string?", state = "json?",
  }, "Outcome")

  method("session/resume_with", "ends the suspension with messages", { messages = "Message[]?" },
    "string[]", { args = { "messages" } })

  method("session/cancel", "ends the suspension and every parked run", { reason = "string?" },
    "boolean", { args = { "reason" } })

  method("session/sync", "syncs what this server wrote to it", {}, "boolean")
end
