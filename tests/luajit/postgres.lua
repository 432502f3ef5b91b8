-- postgres.lua: in the place of spec.support.postgres. A database behind the store shows nothing of
-- LuaJIT that files do not, and takes most of the time.

return {
  server = function() return nil, "not with LuaJIT" end,
  place = function() return "postgres://127.0.0.1:1/none" end,
}
