--- rename: gives a session another title. Its id never changes.

return {
  name = "rename",
  summary = "give a session another title",
  usage = "rename ID TITLE",
  examples = {
    { "sessile rename bug-42 'Slow start'", "sessile show 'Slow start' finds it from then on" },
    { "sessile rename bug-42 ''", "no title" },
  },
  arguments = {
    { "id", "a session: its id, a beginning of it, its title, a label, or `last`" },
    { "title", "what it is about; its id stays what it is" },
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
