-- names.lua: finds the entry that a host means: by its id, or by a label on exactly one entry.
--
-- A label on several entries is an error; none of them is chosen. The command line also accepts
-- short numbers and `head` (cli/entries.lua).

local options = require "sessile.options"

local names = {}

-- The id of the only entry with this label; nil, message, code.
local function labelled(self, name)
  local labels, message, code, retry_ms, rule = self._core:labels()
  if not labels then
    return nil, message, code, retry_ms, rule
  end
  local ids = {}
  for _, label in ipairs(labels) do
    if label.name == name then
      ids[#ids + 1] = label.id
    end
  end
  if #ids == 1 then
    return ids[1]
  elseif #ids > 1 then
    return nil, ('session "%s": the label "%s" is on %d entries: name one of them: %s'):format(
      self.id, name, #ids, table.concat(ids, ", ", 1, math.min(#ids, 8))), "EINVALID"
  end
  return nil, ('session "%s": "%s" is neither an entry nor a label of it: its head is %s'):format(
    self.id, name, self._core:head() or "unknown"), "ENOTFOUND"
end

--- The id of an entry, given by its id or by a label on exactly one entry; nil, message, code. The
--- engine checks whether an entry with that id exists. Raises if `given` is not a string. who: the
--- public function, for the message.
function names.entry(self, who, given)
  if type(given) ~= "string" then
    options.misuse(("%s: an entry id or a label expected, got %s"):format(who, type(given)))
  elseif given:find "^%x%x%x%x%x%x%x%x$" then
    return given
  end
  return labelled(self, given)
end

--- The same for a message, which a compaction may have written: "00000016.1".
function names.message(self, who, given)
  if type(given) == "string" and given:find "^%x%x%x%x%x%x%x%x%.%d+$" then
    return given
  end
  return names.entry(self, who, given)
end

--- Replaces the entries named in fields of `opts` by their ids; true, or nil, message, code.
function names.fields(self, who, opts, ...)
  for _, field in ipairs { ... } do
    if opts[field] ~= nil then
      local id, message, code, retry_ms, rule = names.entry(self, who, opts[field])
      if not id then
        return nil, message, code, retry_ms, rule
      end
      opts[field] = id
    end
  end
  return true
end

--- Options as options.check returns them, with ids in the fields that name entries; nil, message,
--- code.
function names.check(self, who, given, kinds, ...)
  local opts = options.check(who, given, kinds)
  local ok, message, code, retry_ms, rule = names.fields(self, who, opts, ...)
  return ok and opts, message, code, retry_ms, rule
end

--- For calls with an entry and options, both of which may be left out: the options, with the
--- entry's id in `entry`; nil, message, code.
function names.entry_and_options(self, who, entry, given, kinds)
  if type(entry) == "table" and given == nil then
    entry, given = nil, entry
  end
  local opts = options.check(who, given, kinds)
  opts.entry = entry
  local ok, message, code, retry_ms, rule = names.fields(self, who, opts, "entry")
  return ok and opts, message, code, retry_ms, rule
end

return names
