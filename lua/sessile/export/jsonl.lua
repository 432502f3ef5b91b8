--- jsonl: the entries of a session, unchanged, one on each line, and nothing else.

---@param source table  of sessile.export.source
---@param write fun(chunk: string)
return function(source, write)
  for text in source:texts() do
    write(text .. "\n")
  end
end
