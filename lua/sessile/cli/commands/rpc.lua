--- rpc: the engine for programs in other languages, over standard input and output.
--
-- Owns: which of the three is printed: answers, types, a client.

return {
  summary = "answer another program, in JSON, over standard input and output",
  usage = "rpc [--types LANGUAGE | --client LANGUAGE]",
  examples = [[
    echo '{"jsonrpc":"2.0","id":1,"method":"store/list"}' | sessile rpc  one question
    sessile rpc --client python > sessile_rpc.py                         a client of one file
    sessile rpc --types ts > sessile.d.ts                                types alone]],
  options = {
    { "--types LANGUAGE", "print the types of all methods for a language",
      choices = { "ts", "py", "lua" } },
    { "--client LANGUAGE", "print a client of one file, with types",
      choices = { "node", "python", "nvim" } },
  },
  about = [[
    JSON-RPC 2.0, a message a line. Each method is one of the Lua module: `rpc/discover` has them
    all. One process serves one client, with the rights, the key and the configuration of whoever
    started it. It ends when its input ends, after everything that came is answered.]],
  run = function(app, args)
    if args.types or args.client then
      local emit = require "sessile.rpc.emit"
      app:out(args.types and emit.types(args.types) or emit.client(args.client))
      return
    end
    local most = require "sessile.rpc.version".MESSAGE
    return require "sessile.rpc".serve(app, require "sessile.stdio".open(most), most)
  end,
}
