--- rename: gives a session another title. Its id never changes.

return {
  name = "rename",
  summary = "change the title of a session",
  usage = "rename ID TITLE",
  examples = {
    { "sessile rename bug-42 'Slow start'", "then: sessile show 'Slow start'" },
    { "sessile rename bug-42 ''", "remove the title" },
  },
  arguments = {
    { "id", "a session: its id, a prefix of it, its title, a label, or `last`" },
    { "title", "the new title; the id does not change" },
  },
  run = function(app, args)
    return app:with_session(args.id, function(session)
      local ok, message, code = session:set_title(args.title)
      if not ok then
        return nil, message, code
      elseif app.json then
        app:print_json { session = session.id, title = args.title }
      end
    end)
  end,
}
