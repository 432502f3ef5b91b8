-- hello.lua: a session in ten lines. Run it with: build/bin/sessile run examples/hello.lua
local sessile = require "sessile"
local store = assert(sessile.open("ram:"))
local session = assert(store:session "hello")

assert(session:turn {
  { role = "user", content = "Who are you?" },
  { role = "assistant", content = "A barnacle. What I said stays said." },
})
for i, message in ipairs(assert(session:context())) do
  print(i, message.role, message.content)
end
print(("%d tokens"):format(session:tokens()))
