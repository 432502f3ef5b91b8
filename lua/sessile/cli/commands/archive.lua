--- archive: puts a session away, or takes it out again.

return {
  name = "archive",
  summary = "mark a session as archived",
  usage = "archive ID [--undo]",
  examples = {
    { "sessile archive bug-42", "then: sessile list --status archived" },
    { "sessile archive bug-42 --undo", "active again" },
  },
  arguments = { { "id", "a session: its id, a prefix of it, its title, a label, or `last`" } },
  options = { { "--undo", "make it active again" } },
  run = function(app, args)
    return app:with_session(args.id, function(session)
      local ok, message, code = session:archive(not args.undo)
      local life = ok and session:life()
      if not ok then
        return nil, message, code
      elseif app.json then
        app:print_json { session = session.id, status = life and life.status }
      end
    end)
  end,
}
