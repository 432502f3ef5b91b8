-- jwt.lua: signs tokens with HS256, as an identity provider does; the key set that verifies them.
--
-- It is written for specs and shares nothing with the engine's verifier.

local jwt = {}

-- The first 32 bits of the fractional parts of the square (2) or cube (3) roots of the primes.
local function fractions(root, count)
  local found, n = {}, 1
  while #found < count do
    n = n + 1
    local prime = true
    for d = 2, math.floor(n ^ 0.5) do
      prime = prime and n % d ~= 0
    end
    if prime then
      found[#found + 1] = math.floor(n ^ (1 / root) % 1 * 0x100000000)
    end
  end
  return found
end

local START, ROUND = fractions(2, 8), fractions(3, 64)

local function rotated(x, n)
  return (x >> n | x << (32 - n)) & 0xffffffff
end

-- SHA-256 (FIPS 180-4), as bytes.
local function sha256(text)
  local h = table.move(START, 1, 8, 1, {})
  text = text .. "\128" .. ("\0"):rep(-(#text + 9) % 64) .. (">I8"):pack(#text * 8)
  for at = 1, #text, 64 do
    local w = { (">" .. ("I4"):rep(16)):unpack(text, at) }
    for i = 17, 64 do
      local x, y = w[i - 15], w[i - 2]
      local s0 = rotated(x, 7) ~ rotated(x, 18) ~ x >> 3
      local s1 = rotated(y, 17) ~ rotated(y, 19) ~ y >> 10
      w[i] = (w[i - 16] + s0 + w[i - 7] + s1) & 0xffffffff
    end
    local a, b, c, d, e, f, g, last = table.unpack(h)
    for i = 1, 64 do
      local s1 = rotated(e, 6) ~ rotated(e, 11) ~ rotated(e, 25)
      local one = last + s1 + (e & f ~ ~e & g) + ROUND[i] + w[i]
      local s0 = rotated(a, 2) ~ rotated(a, 13) ~ rotated(a, 22)
      local two = s0 + (a & b ~ a & c ~ b & c)
      last, g, f, e = g, f, e, (d + one) & 0xffffffff
      d, c, b, a = c, b, a, (one + two) & 0xffffffff
    end
    for i, x in ipairs { a, b, c, d, e, f, g, last } do
      h[i] = (h[i] + x) & 0xffffffff
    end
  end
  return (">" .. ("I4"):rep(8)):pack(table.unpack(h))
end

-- HMAC with a key of at most 64 bytes.
local function hmac(key, text)
  key = key .. ("\0"):rep(64 - #key)
  local function padded(with)
    return (key:gsub(".", function(c) return string.char(c:byte() ~ with) end))
  end
  return sha256(padded(0x5c) .. sha256(padded(0x36) .. text))
end

local LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

function jwt.base64url(text)
  local out = text:gsub("..?.?", function(part)
    local bits = (">I3"):unpack(part .. ("\0"):rep(3 - #part))
    local letters = ""
    for shift = 18, 18 - 6 * #part, -6 do
      local i = (bits >> shift & 63) + 1
      letters = letters .. LETTERS:sub(i, i)
    end
    return letters
  end)
  return out
end

jwt.secret = ("sessile spec"):rep(3)

--- The key set of the secret, as JSON.
function jwt.keys()
  return ('{"keys":[{"kty":"oct","kid":"spec","alg":"HS256","k":"%s"}]}'):format(
    jwt.base64url(jwt.secret))
end

--- A token of this payload (JSON), signed by the secret or another; header: JSON.
function jwt.sign(payload, secret, header)
  local signed = jwt.base64url(header or '{"alg":"HS256","kid":"spec"}') .. "." ..
    jwt.base64url(payload)
  return signed .. "." .. jwt.base64url(hmac(secret or jwt.secret, signed))
end

return jwt
