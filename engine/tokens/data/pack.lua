-- pack.lua: a published rank file (`NAME.tiktoken`: base64 of a token and its rank, a line
-- each) as the bytes that are kept here, on standard output:
--
--     lua5.4 pack.lua NAME.tiktoken | zstd -22 --ultra -o NAME.zst
--
-- Tokens stand in the order of their ranks, from 0 without a gap, each a byte that says how
-- long it is and then its bytes. Nothing is lost: ranks follow from the order.

local digits = {}
local alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
for at, digit in alphabet:gmatch "()(.)" do
  digits[digit] = at - 1
end

local function decode(text)
  local bytes, bits, size = {}, 0, 0
  for digit in text:gmatch "[^=]" do
    bits = (bits << 6 | assert(digits[digit], "not base64")) & 0xffffff
    size = size + 6
    if size >= 8 then
      size = size - 8
      bytes[#bytes + 1] = string.char(bits >> size & 0xff)
    end
  end
  return table.concat(bytes)
end

local path = assert(arg[1], "pack.lua NAME.tiktoken")
local rank = 0
for line in io.lines(path) do
  local token, number = line:match "^(%S+) (%d+)$"
  assert(tonumber(number) == rank, "ranks have a gap, or a line is none")
  io.write(string.pack("s1", decode(token)))
  rank = rank + 1
end
