--- golden: compares the context that a policy leaves with a file kept beside the specs.
--
-- The file is spec/goldens/<policy>-<fixture>.txt. It is written only if UPDATE_GOLDEN is set; a
-- missing file is a failure that tells how to make it.

local report = require "sessile.testing.report"

local golden = {}

local function path_of(result, folder)
  local function plain(name)
    return (tostring(name):gsub("[^%w_-]", "_"))
  end
  return ("%s/%s-%s.txt"):format(folder, plain(result.policy), plain(result.fixture))
end

local function text_of(result)
  return ("tokens %d of %s, %d messages\n%s"):format(result.tokens,
    result.window and tostring(result.window) or "any", #result.context,
    report.context(result.context))
end

-- The first line in which two texts differ.
local function difference(was, is)
  local function lines(text)
    local list = {}
    for line in text:gmatch "[^\n]*" do
      list[#list + 1] = line
    end
    return list
  end
  local a, b = lines(was), lines(is)
  for i = 1, math.max(#a, #b) do
    if a[i] ~= b[i] then
      return ("line %d was\n  %s\nand is\n  %s"):format(i, a[i] or "(nothing)", b[i] or "(nothing)")
    end
  end
  return "they differ"
end

--- true, or false and what is wrong.
---@param result sessile.testing.result
---@param folder string?
function golden.check(result, folder)
  folder = folder or "spec/goldens"
  local path, is = path_of(result, folder), text_of(result)
  if os.getenv "UPDATE_GOLDEN" then
    local has_lfs, lfs = pcall(require, "lfs")
    if has_lfs then
      lfs.mkdir(folder)
    end
    local file, why = io.open(path, "w")
    if not file then
      return false, ("cannot write the golden %s: %s"):format(path, why)
    end
    file:write(is)
    file:close()
    return true
  end
  local file = io.open(path)
  if not file then
    return false, ("there is no golden %s yet: look at the result, then run once more with "
      .. "UPDATE_GOLDEN=1\n%s"):format(path, is)
  end
  local was = file:read "a"
  file:close()
  if was ~= is then
    return false, ("%s: %s\n(UPDATE_GOLDEN=1 keeps the new one)"):format(path, difference(was, is))
  end
  return true
end

return golden
