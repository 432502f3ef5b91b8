-- endpoints.lua: starts model_server.lua, an endpoint of this machine for one spec.

local temp = require "spec.support.temp"

local endpoints = {}

--- Starts an endpoint with a chunk for each request (model_server.lua says what a chunk may use).
--- folder: one that temp.lua made, with more files for it. Returns its port, and a function for
--- the text of the Nth request.
function endpoints.serve(chunks, folder)
  folder = folder or temp.dir()
  for i, chunk in ipairs(chunks) do
    temp.write(folder .. "/" .. i, chunk)
  end
  assert(os.execute(("lua5.4 spec/support/model_server.lua %s >/dev/null 2>&1 &"):format(folder)))
  assert(os.execute(("for i in $(seq 200); do [ -e %s/port ] && exit; sleep 0.05; done; false")
    :format(folder)))
  return math.tointeger(temp.read(folder .. "/port")), function(n)
    return temp.read(("%s/%d.request"):format(folder, n))
  end
end

return endpoints
