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
    return app:with_session(args.id, function(session)
      local ok, message, code = session:cancel(args.reason)
      local life = ok and session:life()
      if not ok then
        return nil, message, code
      elseif app.json then
        app:print_json { session = session.id, status = life and life.status }
      end
    end)
  end,
}
