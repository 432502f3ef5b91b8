--- jsonl: a session's entries, each as it is kept, one a line. Nothing else is in it: what a
-- session says of itself, its first entry and its facts say.

---@param source table  of sessile.export.source
---@param write fun(chunk: string)
return function(source, write)
  for text in source:texts() do
    write(text .. "\n")
  end
end
