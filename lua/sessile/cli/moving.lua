--- moving: shared by the commands that copy whole stores.
--
-- Owns: the progress bar, Ctrl-C, and the report. Must never print the password of a URL, nor
-- report an incomplete copy as complete.

local has_line, line = pcall(require, "sessile.line")
local core = require "sessile.core"
local hints = require "sessile.cli.hints"
local paths = require "sessile.paths"
local progress = require "sessile.cli.progress"
local show = require "sessile.config.show"
local stores = require "sessile.cli.stores"
local terminal = require "sessile.cli.terminal"

local moving = {}

--- Refuses a store that exists only while this command runs.
---@param url string
---@return boolean? ok
---@return string? message
---@return string? code
---@return string? step
function moving.check(url)
  local scheme = core.scheme(url)
  if scheme and scheme.place == "memory" then
    return nil, "the store ram: is gone when this command ends", "EUSAGE",
      "Name a folder, " .. paths.store_forms(true)
  end
  local path = scheme and scheme.place == "folder" and scheme.path or url
  return stores.no_database(paths.expand(path))
end

--- Runs a copy with a progress bar. work(report) calls sessile.migrate or store:backup with
--- `report` as `progress`, and returns its results.
---@param app sessile.cli.app
---@param work fun(report: fun(state: sessile.MigrateState): boolean?): table?, string?, string?
---@return sessile.MigrateState? done
---@return string? message
---@return string? code
---@return string? step
function moving.run(app, work)
  local label, draw, finish
  if has_line then
    line.busy(true)
  end
  local done, message, code = work(function(state)
    if state.stage ~= label then
      if finish then
        finish()
      end
      label = state.stage
      draw, finish = progress.bar(app, label, true)
    end
    draw(state.bytes_done, state.bytes)
    return not (has_line and line.interrupted())
  end)
  if has_line then
    line.busy(false)
  end
  if finish then
    finish()
  end
  if done then
    return done
  end
  return nil, message, code,
    code == "ECANCELLED"
      and "Sessions copied so far are kept. To continue, run the command again." or nil
end

local function plural(n, word)
  return terminal.plural(n, word)
end

-- The numbers of sessions by result, as "48 new, 1 continued".
local function shares(done)
  local words = {}
  for _, part in ipairs {
    { done.copied, "new" }, { done.continued, "continued" }, { done.replaced, "replaced" },
    { done.kept, "there already" },
  } do
    if part[1] > 0 then
      words[#words + 1] = ("%s %s"):format(terminal.number(part[1]), part[2])
    end
  end
  return #words > 0 and table.concat(words, ", ") or "none"
end

--- Reports the result on stdout and problems on stderr.
---@param app sessile.cli.app
---@param done sessile.MigrateState
---@param to string  the other store, without a password
function moving.tell(app, done, to)
  app:out(("%s in %s: %s.\n"):format(plural(done.sessions, "session"), to, shares(done)))
  app:out(("%s; read back and compared: %s.\n"):format(done.as_it_stands
    and "Copied as they stand" or "Sealed again, or decrypted, entry by entry",
    terminal.number(done.verified)))
  if done.unopened then
    app:note "No key here opens them, so only their bytes were compared."
  end
  if done.forgotten > 0 then
    app:note(("Sessions of forgotten users, unreadable: %d."):format(done.forgotten))
  end
  if done.gone > 0 then
    app:note(("Deleted meanwhile: %d."):format(done.gone))
  end
  if done.unfinished > 0 then
    app:note(("Unfinished writes were skipped: %s."):format(
      terminal.bytes(done.unfinished)))
  end
  for _, failure in ipairs(done.failures) do
    app:note(("%s: %s"):format(terminal.line(failure.log), failure.message))
  end
end

--- Prints the result as JSON, together with the fields of `more`.
---@param app sessile.cli.app
---@param done sessile.MigrateState
---@param more table
function moving.json(app, done, more)
  for name, value in pairs(done) do
    more[name] = value
  end
  more.failures = app.array(done.failures)
  app:print_json(more)
end

--- The result of the command: nothing, or why the copy is not complete.
---@param done sessile.MigrateState
---@return nil
---@return string? message
---@return string? code
---@return string? step
function moving.verdict(done)
  if done.failed > 0 then
    return nil, ("%s could not be copied"):format(plural(done.failed, "session")),
      done.failures[#done.failures].code,
      "The other sessions were copied. Remove the cause, then run the command again."
  elseif done.damaged > 0 then
    return nil, done.as_it_stands
      and ("%s damaged here, and so in the copy"):format(done.damaged == 1 and "1 session is"
        or done.damaged .. " sessions are")
      or ("%s damaged, and not copied"):format(done.damaged == 1 and "1 session is"
        or done.damaged .. " sessions are"), "EDAMAGED",
      "See what can still be read: sessile check"
  elseif done.users_kept > 0 then
    return nil, ("%s in the copy: they are missing or different here, and nothing proves that "
      .. "the users were forgotten"):format(done.users_kept == 1 and "1 user's secret was kept"
        or done.users_kept .. " users' secrets were kept"), "EDAMAGED",
      "See which sessions need them: sessile check"
  elseif done.conflicts > 0 then
    return nil, ("%s there, with other contents than here: they were not changed"):format(
      done.conflicts == 1 and "1 session of that name is" or
      done.conflicts .. " sessions of that name are"), "ECONFLICT",
      "To replace them (their logs are kept aside), add --replace."
  end
end

--- The URL of a store without its password.
---@param url string
---@return string
function moving.shown(url)
  return hints.shown(show.url(url))
end

return moving
