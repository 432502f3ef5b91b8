-- hostile.lua: sixty scripts that mean harm, each the body of a truncate(state, ctx). What they may
-- do is fail, or nothing; `ends` says what the outcome is when only one is right
-- (unloaded: the file is refused before any turn).

local hostile = {}

local function add(name, body, ends)
  hostile[#hostile + 1] = { name = name, body = body, ends = ends }
end

-- time
add("a loop without an end", "while true do end", "refused")
add("a loop that catches every error",
  "while true do pcall(function() while true do end end) end", "refused")
add("an error handler that never returns",
  "pcall(error, setmetatable({}, {__tostring = function() while true do end end}))", nil)
add("recursion without an end", "local function f() return f() + 1 end f()", "refused")
add("tail calls without an end", "local function f() return f() end f()", "refused")
add("a catastrophic pattern",
  "local s = ('a'):rep(2000) return s:find(('a*'):rep(30) .. 'b')", "refused")
add("a catastrophic pattern in gsub", "return (('x'):rep(5000)):gsub(('x-'):rep(25) .. 'y', '')",
  "refused")
add("a catastrophic pattern in gmatch",
  "for _ in (('a'):rep(3000)):gmatch(('.-'):rep(20) .. '\\n') do end", "refused")
add("balanced parentheses, very many",
  "local s = ('('):rep(200000) for i = 1, 1000 do s:find('%b()', i) end", "refused")
add("nothing, repeated for ever", "return (''):rep(1 << 62)", nil)
add("a separator, repeated for ever", "return (''):rep(1 << 62, ',')", "refused")
add("a move over everything", "table.move({}, 1, 1 << 62, 2)", "refused")
add("a move to itself", "table.move({1}, 1, math.maxinteger - 1, 1)", "refused")
add("a concat of everything", "table.concat({}, 'x', 1, 1 << 40)", "refused")
add("an unpack of everything", "return table.unpack({}, 1, 1 << 30)", "refused")
add("a select far away", "return select(-1, table.unpack({}, 1, 200))", nil)
add("a sort with a liar", [[local t = {} for i = 1, 50000 do t[i] = i % 7 end
  while true do table.sort(t, function() return true end) end]], "refused")
add("a sort that never ends", [[local t = {} for i = 1, 1000 do t[i] = i end
  table.sort(t, function(a, b) while true do end end)]], "refused")
add("a number format of great width", "return ('%99d'):format(1):rep(1 << 40)", "refused")
add("numbers compared as long strings",
  "local a = ('1'):rep(1 << 24) local b = ('1'):rep(1 << 24) while a <= b do end", "refused")
add("utf8 over everything", [[local s = ('é'):rep(1 << 20)
  while true do utf8.len(s) utf8.codepoint(s, 1, 100) end]], "refused")
add("next around and around",
  "local t = {} for i = 1, 1000 do t[i] = i end while true do for _ in pairs(t) do end end",
  "refused")
add("an iterator that never ends",
  "for _ in function() return 1 end do end", "refused")
add("metamethods that call each other",
  "local t = setmetatable({}, {}) getmetatable = nil t = setmetatable({}, {__index = function(s, k)"
  .. " return s[k .. 'x'] end}) return t.a", "refused")
add("an index chain", [[local t = {} for i = 1, 5000 do t = setmetatable({}, {__index = t}) end
  while true do local _ = t.x end]], "refused")
add("a string key per instruction",
  "local t = {} local i = 0 while true do i = i + 1 t['k' .. i] = i end", "refused")

-- memory
add("a string that doubles", "local s = 'x' while true do s = s .. s end", "refused")
add("a table that grows", "local t = {} while true do t[#t + 1] = t end", "refused")
add("strings kept for ever",
  "local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(10000) .. i end", "refused")
add("closures kept for ever",
  "local t = {} for i = 1, 1e9 do t[i] = function() return i end end", "refused")
add("a rep of a gigabyte", "return ('x'):rep(1 << 30)", "refused")
add("a concat of a gigabyte", [[local s = ('x'):rep(1 << 20) local t = {}
  for i = 1, 1024 do t[i] = s end return table.concat(t)]], "refused")
add("a gsub of a gigabyte", "return ((('x'):rep(1 << 16)):gsub('x', ('y'):rep(1 << 16)))",
  "refused")
add("memory while errors are caught", [[local keep = {}
  while true do pcall(function() keep[#keep + 1] = ('x'):rep(1 << 20) end) end]], "refused")
add("weak tables under the limit",
  "setmetatable({}, {__mode = 'k'}) while true do local t = {} end", "refused")
add("finalizers", "setmetatable({}, {__gc = function() while true do end end})", "refused")
add("a close that never ends",
  "local x <close> = setmetatable({}, {__close = function() while true do end end})", "refused")
add("deep nesting of tables", "local t = {} for i = 1, 1e6 do t = {t} end state.vars = {t = t}",
  "refused")
add("notes without an end",
  "local t = {} for i = 1, 1e6 do t[i] = i end state.vars = {t = t}", "refused")
add("notes in a circle", "local t = {} t.t = t state.vars = t", "refused")

-- results
add("a result in a circle", "local t = {} t[1] = t return t", "refused")
add("a result a million deep", [[local t = {role = 'user', content = 'x'}
  for i = 1, 1e6 do t = {t} end return {messages = {t}}]], "refused")
add("a result with a metatable that lies", [[return setmetatable({}, {
  __index = function() return {role = 'system', content = 'obey'} end,
  __len = function() return 1 << 40 end})]], "refused")
add("a list with holes", "return {messages = {[1] = state.messages[1], [1000000000] = 1}}",
  "refused")
add("a function for a message", "return {messages = {function() end}}", "refused")
add("a number that is none", "state:insert(1, {role = 'user', content = 'x', n = 0/0})", "refused")
add("text that is no UTF-8", "state:insert(1, {role = 'user', content = '\\xff\\xfe'})", "refused")
add("a summary ten times longer than what it stands for", [[
  if #state.messages > 3 then state:insert(2, {role = 'user', content = ('long '):rep(5000)},
    {covers = {2, 2}}) end]], "refused")
add("a hundred thousand messages", [[for i = 1, 100000 do
  state:insert(1, {role = 'user', content = 'x'}) end]], "refused")
add("entries of another session", [[local list = {}
  for i, m in ipairs(state.messages) do list[i] = m end
  list[#list + 1] = {role = 'user', content = 'x', covers = {'0000ffff', '00000001.7'}}
  return {messages = list}]], "refused")
add("an index of another planet", "state:drop(1 << 62)", "refused")
add("a negative index", "state:drop(-1, 5)", "refused")
add("a fraction for an index", "state:drop(1.5)", "refused")

-- ways out
add("bytecode", "return load('\\27Lua')", "refused")
add("the file system", "return io.open('/etc/passwd'):read('a')", "refused")
add("a program", "os.execute('touch /tmp/owned')", "refused")
add("the debug library", "debug.sethook() while true do end", "refused")
add("another module", "return require('sessile')", "refused")
add("a coroutine that hides the hook", "coroutine.wrap(function() while true do end end)()",
  "refused")
add("a poisoned string library", [[local s = string for k in pairs(s) do
  s[k] = function() while true do end end end
  return ('x'):find('y')]], nil)
add("a poisoned global", "_G = nil _ENV = nil x = 1", "unloaded")
add("a collector stopped", "collectgarbage('stop') while true do local t = {} end", "refused")
add("an address", "return tostring({}) .. ('%p'):format({})", "refused")
add("the state kept for later", "kept = state if old then old:drop(1) end old = kept", "unchanged")
add("another environment", "_ENV.kept = state", "unloaded")
add("an error that is a table without an end",
  "local t = {} t.t = t error(t)", "refused")
add("an error of a megabyte", "error(('x'):rep(1 << 20))", "refused")

return hostile
