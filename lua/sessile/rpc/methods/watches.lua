--- watches: session/watch and session/unwatch.

return function(method)
  method("session/watch", "from now on, or from an entry on, note/entries tells of new entries", {
    after = "Id?",
  }, "Watch", { run = function(request, params)
    local number, newest, code = request.server.watches:add(request.record, params.after)
    if not number then
      return nil, newest, code
    end
    return { watch = number, newest = newest }
  end })

  method("session/unwatch", "ends a watch", { watch = "integer" }, "boolean",
    { of = "server", run = function(_, params, server)
      if not server.watches:remove(params.watch) then
        return nil, ("there is no watch %d"):format(params.watch), "ENOTFOUND"
      end
      return true
    end })
end
