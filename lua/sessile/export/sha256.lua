--- sha256: the hash by which a page's own style and script are known to a browser.
--
-- Source: FIPS 180-4. Only for that: what must stay secret or be signed is the engine's.

local function root_bits(n, power)
  -- The first 32 bits of the fraction of a root.
  local root = n ^ power
  return math.floor((root - math.floor(root)) * 2 ^ 32)
end

local K, H = {}, {}
do
  local n, found = 2, 0
  while found < 64 do
    local prime = true
    for d = 2, math.floor(n ^ 0.5) do
      prime = prime and n % d ~= 0
    end
    if prime then
      found = found + 1
      K[found] = root_bits(n, 1 / 3)
      H[found] = found <= 8 and root_bits(n, 1 / 2) or nil
    end
    n = n + 1
  end
end

local MASK = 0xFFFFFFFF

local function turn(x, n)
  return (x >> n | x << (32 - n)) & MASK
end

local function block(state, text, at)
  local w = table.pack((">" .. ("I4"):rep(16)):unpack(text, at))
  for i = 17, 64 do
    local a, b = w[i - 15], w[i - 2]
    w[i] = (w[i - 16] + (turn(a, 7) ~ turn(a, 18) ~ a >> 3) + w[i - 7]
      + (turn(b, 17) ~ turn(b, 19) ~ b >> 10)) & MASK
  end
  local a, b, c, d, e, f, g, h = table.unpack(state)
  for i = 1, 64 do
    local one = h + (turn(e, 6) ~ turn(e, 11) ~ turn(e, 25)) + (e & f ~ ~e & g) + K[i] + w[i]
    local two = (turn(a, 2) ~ turn(a, 13) ~ turn(a, 22)) + (a & b ~ a & c ~ b & c)
    a, b, c, d, e, f, g, h = (one + two) & MASK, a, b, c, (d + one) & MASK, e, f, g
  end
  for i, value in ipairs { a, b, c, d, e, f, g, h } do
    state[i] = (state[i] + value) & MASK
  end
end

local LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

--- The SHA-256 of a text in base64.
---@param text string
---@return string
return function(text)
  local padded = text .. "\128" .. ("\0"):rep(-(#text + 9) % 64) .. (">I8"):pack(#text * 8)
  local state = table.move(H, 1, 8, 1, {})
  for at = 1, #padded, 64 do
    block(state, padded, at)
  end
  local bytes = (">" .. ("I4"):rep(8)):pack(table.unpack(state))
  return (bytes .. "\0"):gsub("...", function(three)
    local n = (">I3"):unpack(three)
    return LETTERS:sub((n >> 18) + 1, (n >> 18) + 1)
      .. LETTERS:sub((n >> 12 & 63) + 1, (n >> 12 & 63) + 1)
      .. LETTERS:sub((n >> 6 & 63) + 1, (n >> 6 & 63) + 1)
      .. LETTERS:sub((n & 63) + 1, (n & 63) + 1)
  end):sub(1, 43) .. "="
end
