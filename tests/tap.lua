-- An output handler for busted that writes TAP. The one that comes with busted stops at a
-- spec file which does not parse, and prints only the innermost name of a test.

return function()
  local busted = require "busted"
  local handler = require "busted.outputHandlers.base"()
  local count = 0

  local function line(text)
    io.write(text, "\n")
    io.flush()
  end

  local function failed(t)
    count = count + 1
    line(("not ok %d - %s"):format(count, t.name))
    local message = t.message
    if type(message) ~= "string" then
      message = require "pl.pretty".write(message)
    end
    local trace = t.trace or {}
    if trace.short_src and trace.currentline then
      line(("# %s:%d"):format(trace.short_src, trace.currentline))
    end
    line("# " .. message:gsub("\n", "\n# "))
    if type(trace.traceback) == "string" then
      line("#" .. ("\n" .. trace.traceback):gsub("\n+", "\n#   "))
    end
  end

  busted.subscribe({ "test", "end" }, function(_, _, status)
    if status == "success" then
      count = count + 1
      line(("ok %d - %s"):format(count, handler.successes[#handler.successes].name))
    elseif status == "pending" then
      count = count + 1
      line(("ok %d - %s # SKIP"):format(count, handler.pendings[#handler.pendings].name))
    elseif status == "failure" then
      failed(handler.failures[#handler.failures])
    else
      failed(handler.errors[#handler.errors])
    end
    return nil, true
  end, { predicate = handler.cancelOnPending })

  -- An error outside a test: a file that does not load, a describe or a hook that raises.
  busted.subscribe({ "error" }, function(element)
    if element.descriptor ~= "it" then
      failed(handler.errors[#handler.errors])
    end
    return nil, true
  end)

  busted.subscribe({ "suite", "end" }, function()
    line("1.." .. count)
    return nil, true
  end)

  return handler
end
