--- watches: tells the client of entries that others, or it itself, wrote to sessions.
--
-- Only while somebody watches does the process look up, and it never waits in the store.

local results = require "sessile.rpc.results"

local watches = {}
watches.__index = watches

local MOST = 64 -- watched sessions: each stays open

--- The watches of a server.
function watches.new(server)
  return setmetatable({ server = server, list = {}, count = 0, number = 0, looked = 0 }, watches)
end

--- Watches a session from an entry on; nil: from the newest. Returns its number and the newest
--- entry; nil, message, code.
function watches:add(record, after)
  if self.count >= MOST then
    return nil, ("%d sessions are watched already: session/unwatch one"):format(MOST), "ELIMIT"
  end
  local session = record.session
  local changed, newest, code = session:watch { timeout_ms = 0 }
  if changed == nil then
    return nil, newest, code
  end
  for entry in session:entries { reverse = true, limit = 1 } do
    newest = entry.id
  end
  self.number, self.count = self.number + 1, self.count + 1
  record.uses = record.uses + 1
  self.list[self.number] = { record = record, told = after or newest }
  return self.number, newest
end

--- Ends a watch; false: there is none of that number.
function watches:remove(number)
  local one = self.list[number]
  if not one then
    return false
  end
  one.record.uses = one.record.uses - 1
  self.list[number], self.count = nil, self.count - 1
  return true
end

--- When to look again; nil: nobody watches.
function watches:next_look(now, slice)
  return self.count > 0 and math.max(now, self.looked + slice) or nil
end

--- Looks, if it is time, and tells.
function watches:look(now, slice)
  if self.count == 0 or now < self.looked + slice then
    return
  end
  self.looked = now
  for number, one in pairs(self.list) do
    local session = one.record.session
    local changed, newest = session:watch { after = one.told, timeout_ms = 0 }
    if changed and newest ~= one.told then
      one.told = newest
      self.server:notify("note/entries", { watch = number, newest = newest,
        session = results.bytes(session.id) })
    end
  end
end

return watches
