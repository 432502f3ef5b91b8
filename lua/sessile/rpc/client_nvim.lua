--- client_nvim: a client for Neovim: a job, and a Lua module of one file.

local core = require "sessile.core"
local lua = require "sessile.rpc.emit_lua"

local client = {}

local TEXT = [==[
-- A client of sessile rpc for Neovim 0.7 and newer, written by sessile @VERSION@:
--   sessile rpc --client nvim > ~/.config/nvim/lua/sessile_rpc.lua
--
--   local store = require("sessile_rpc").start {}
--   store:call("session/open", { session = "bug-42", create = true },
--     function(session, failure) end)
--   local rows = store:wait("store/list", {})          -- waits, at most 5 s
--
-- Nothing waits for the disk: a call that is only sent costs the editor microseconds. In a message
-- an empty table is a list, as everywhere in Neovim; vim.empty_dict() is an object.

local M = {}

local Client = {}
Client.__index = Client

-- Parameters and answers are objects, also without members.
local function object(value)
  return type(value) == "table" and next(value) == nil and vim.empty_dict() or value
end

local function lines_in(self, pieces)
  -- pieces[1] continues what came before; the last is not finished yet
  self.rest = self.rest .. pieces[1]
  for i = 2, #pieces do
    if self.rest ~= "" then
      self:take(vim.json.decode(self.rest))
    end
    self.rest = pieces[i]
  end
end

--- Starts a server. options: command ("sessile"), args (words before "rpc"), answers = {model =
--- function(params, reply) …, hook =, state =, embed =}, embeds = {name =, dims =}, on_entries =
--- function(params) after session/watch, on_exit = function(code). A function that answers gets the
--- question and calls reply(result), or reply(nil, "why not"), now or later.
---@param options table?
function M.start(options)
  options = options or {}
  local self = setmetatable({ options = options, number = 0, waiting = {}, rest = "" }, Client)
  local words = { options.command or "sessile" }
  vim.list_extend(words, options.args or {})
  table.insert(words, "rpc")
  self.job = vim.fn.jobstart(words, {
    env = options.env,
    on_stdout = function(_, pieces) lines_in(self, pieces) end,
    on_exit = function(_, code)
      self.code = code
      for id, done in pairs(self.waiting) do
        self.waiting[id] = nil
        done(nil, { message = "sessile rpc ended with code " .. code, code = -1 })
      end
      if options.on_exit then
        options.on_exit(code)
      end
    end,
  })
  if self.job <= 0 then
    return nil, "sessile cannot be started: " .. words[1]
  end
  local asks = vim.tbl_keys(options.answers or {})
  self:call("rpc/hello", { protocol = @PROTOCOL@, client = "nvim", embeds = options.embeds,
    asks = #asks > 0 and asks or nil }, function(hello, failure)
      self.hello, self.failure = hello, failure
    end)
  return self
end

function Client:send(message)
  message.jsonrpc = "2.0"
  vim.fn.chansend(self.job, vim.json.encode(message) .. "\n")
end

--- Calls a method and goes on; done(result) or done(nil, failure) is called when it is answered.
--- Returns the id, for cancel.
---@param method string
---@param params table?
---@param done fun(result: any, failure: table?)?
---@return integer id
function Client:call(method, params, done)
  self.number = self.number + 1
  self.waiting[self.number] = done or function() end
  self:send({ id = self.number, method = method, params = object(params) })
  return self.number
end

--- Calls a method and waits, at most timeout_ms (5000), while the editor goes on.
---@return any result
---@return table? failure
function Client:wait(method, params, timeout_ms)
  local answered, result, failure
  self:call(method, params, function(...)
    answered, result, failure = true, ...
  end)
  if not vim.wait(timeout_ms or 5000, function() return answered end, 2) then
    return nil, { message = method .. " was not answered in time", code = -1 }
  end
  return result, failure
end

--- Tells that a call is not wanted any more.
function Client:cancel(id)
  self:send({ method = "rpc/cancel", params = { id = id } })
end

-- A question of the server.
local function answer(self, message)
  local function reply(result, why)
    if result == nil then
      self:send({ id = message.id, error = { code = -32000, message = tostring(why) } })
    else
      self:send({ id = message.id, result = object(result) })
    end
  end
  local own = (self.options.answers or {})[message.method:sub(5)]
  local ok, why = pcall(own, message.params, reply)
  if not ok then
    reply(nil, why)
  end
end

function Client:take(message)
  if message.method and message.id then
    answer(self, message)
  elseif message.method then
    if self.options.on_entries then
      self.options.on_entries(message.params)
    end
  else
    local done = self.waiting[message.id]
    self.waiting[message.id] = nil
    if done then
      done(message.result ~= vim.NIL and message.result or nil, message.error)
    end
  end
end

--- Ends the server after it has answered everything, and waits for that.
function Client:stop(timeout_ms)
  vim.fn.chanclose(self.job, "stdin")
  vim.fn.jobwait({ self.job }, timeout_ms or 5000)
  return self.code
end

@TYPES@
return M
]==]

--- The file.
---@return string
function client.text()
  local parts = { VERSION = core.version, TYPES = lua.body(),
    PROTOCOL = tostring(require "sessile.rpc.version".PROTOCOL) }
  return (TEXT:gsub("@(%u+)@", parts))
end

return client
