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
    local session, message, code, step = app:session(args.id)
    if not session then
      return nil, message, code, step
    end
    local ok
    ok, message, code = session:set_title(args.title)
    local id = session.id
    session:close()
    if not ok then
      return nil, message, code
    elseif app.json then
      app:print_json { session = id, title = args.title }
    end
  end,
}
