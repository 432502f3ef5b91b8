# Lua 5.4 as LuaJIT reads it. Handles are closed by the collector instead of at the end of a block.
1s/^/local _s = require "tests.luajit.shim" local math, table, utf8, coroutine, io, os, collectgarbage = _s.math, _s.table, _s.utf8, _s.coroutine, _s.io, _s.os, _s.collectgarbage /
s/ <(close|const)>//g
s/(#?[A-Za-z_][A-Za-z0-9_.]*(\([^()]*\))?|[0-9]+|\([^()]*\)) \/\/ (#?[A-Za-z0-9_.]+(\([^()]*\))?)/math.floor(\1 \/ \3)/g
s/\b([0-9]+) << ([0-9]+)/\1 * 2 ^ \2/g
