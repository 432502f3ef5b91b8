--- cancel: ends a pause, and every pending run, with nothing said.

return {
  name = "cancel",
  summary = "end a pause and cancel pending runs, without an answer",
  usage = "cancel ID [REASON]",
  examples = {
    { "sessile cancel bug-42 'nobody answered'", "the session continues where it was" },
  },
  arguments = {
    { "id", "a session: its id, a prefix of it, its title, a label, or `last`" },
    { "reason", "the reason", "?" },
  },
  run = function(app, args)
    local session, message, code, step = app:session(args.id)
    if not session then
      return nil, message, code, step
    end
    local ok
    ok, message, code = session:cancel(args.reason)
    local id = session.id
    local life = ok and session:life()
    session:close()
    if not ok then
      return nil, message, code
    elseif app.json then
      app:print_json { session = id, status = life and life.status }
    end
  end,
}
