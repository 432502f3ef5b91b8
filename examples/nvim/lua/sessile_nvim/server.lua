--- server: one `sessile rpc` for the editor, started when it is needed, and again when it died.
--
-- The client is the file that `sessile rpc --client nvim` writes. A request that was sent when the
-- server died fails with code LOST: nobody knows whether it was carried out. Ask it again; a turn
-- with `base` and `once` is written once.

local server = { LOST = -1 }
server.__index = server

-- A server that dies this often without an answer is not started again for a while.
local DEATHS, PAUSE_MS = 3, 10000

--- A server that is not started yet. options: command, args, env, and answers, as for the client.
---@param options table
function server.new(options)
  return setmetatable({ options = options, deaths = 0 }, server)
end

-- The client that runs; nil and why there is none.
local function running(self)
  if self.client and not self.client.code then
    return self.client
  end
  local now = vim.loop.now()
  if self.deaths >= DEATHS and now - self.died < PAUSE_MS then
    return nil, ("`%s rpc` ended %d times: run it in a shell to see why")
      :format(self.options.command or "sessile", self.deaths)
  end
  local ok, client, why = pcall(require("sessile_rpc").start, {
    command = self.options.command, args = self.options.args, env = self.options.env,
    answers = self.options.answers,
    on_exit = function()
      self.deaths, self.died = self.deaths + 1, vim.loop.now()
    end,
  })
  if not ok or not client then
    return nil, ok and why or client
  end
  self.client = client
  return client
end

--- Calls a method and goes on. done(result) or done(nil, failure) is called once, later.
---@param method string
---@param params table
---@param done fun(result: any, failure: table?)
function server:call(method, params, done)
  local is_done
  local function answered(result, failure)
    if is_done then
      return
    end
    is_done = true
    if not (failure and failure.code == server.LOST) then
      self.deaths = 0
    end
    done(result, failure)
  end
  local client, why = running(self)
  if not client then
    return vim.schedule(function()
      answered(nil, { message = why, code = server.LOST, stays = true })
    end)
  end
  -- a server that died a moment ago is known to be dead only when the editor hears of it
  if not pcall(client.call, client, method, params, answered) then
    vim.schedule(function()
      answered(nil, { message = "sessile rpc has ended", code = server.LOST })
    end)
  end
end

--- Calls a method and waits; asks once more if the server dies meanwhile. Only for reading.
---@return any result
---@return table? failure
function server:wait(method, params, timeout_ms)
  local result, failure
  for _ = 1, 2 do
    local answered
    self:call(method, params, function(...)
      answered, result, failure = true, ...
    end)
    if not vim.wait(timeout_ms or 5000, function() return answered end, 1) then
      return nil, { message = method .. " was not answered in time", code = -2 }
    end
    if not failure or failure.code ~= server.LOST or failure.stays then
      break
    end
  end
  return result, failure
end

--- Ends it after it has answered everything.
function server:stop(timeout_ms)
  local client = self.client
  self.client = nil
  if client and not client.code then
    pcall(client.stop, client, timeout_ms)
  end
end

return server
