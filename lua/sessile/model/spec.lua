-- spec.lua: what stands for a model, of any kind: a function, a file, a program, an endpoint, or a
-- name of one.

local options = require "sessile.options"
local paths = require "sessile.paths"

local specs = {}

local DEEPEST = 8 -- names that mean names

-- who: for messages. fields: that a spec of a file may have.
local function from_file(who, given, fields)
  local opts = options.check(who, given, fields)
  local path = paths.expand(opts.lua)
  local chunk, why = loadfile(path, "t")
  if not chunk then
    return nil, "the model's file: " .. why, why:find "^cannot open" and "ENOTFOUND" or "EINVALID"
  end
  local ok, made = pcall(chunk)
  if not ok then
    return nil, ("the model's file %s raised: %s"):format(path, tostring(made)), "EINVALID"
  elseif not options.callable(made) then
    return nil, ("the model's file %s returns no function"):format(path), "EINVALID"
  end
  return made
end

-- The spec behind a name, which may name another one; nil, message, code.
local function named(name, models, depth)
  local spec = models and models[name]
  if spec == nil then
    local near = options.nearest(name, models or {})
    return nil, ("there is no model '%s'%s"):format(name, near and (", did you mean '%s'?")
      :format(near) or ""), "ENOTFOUND"
  elseif type(spec) ~= "string" then
    return spec
  elseif depth >= DEEPEST then
    return nil, ("the model '%s' is a name for itself"):format(name), "EINVALID"
  end
  return named(spec, models, depth + 1)
end

--- The spec behind a name in models; what is no name, is it itself. nil, message, code.
function specs.behind(given, models)
  if type(given) == "string" then
    return named(given, models, 1)
  end
  return given
end

--- What is to be asked: a function; or false, "command" or "endpoint". nil, message, code. Raises
--- if it is not a model. fields: the options that a file may have.
function specs.kind(who, given, fields)
  if options.callable(given) then
    return given
  elseif type(given) ~= "table" then
    options.misuse(who .. ": a function, a table with command=, endpoint= or lua=, or a name "
      .. "expected, got " .. type(given))
  end
  local count = (given.command and 1 or 0) + (given.endpoint and 1 or 0) + (given.lua and 1 or 0)
  if count ~= 1 then
    options.misuse(who .. ": one of command=, endpoint= and lua= expected")
  elseif given.lua then
    return from_file(who, given, fields)
  end
  return false, given.command and "command" or "endpoint"
end

return specs
