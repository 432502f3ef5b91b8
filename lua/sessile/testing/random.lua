--- random: random numbers from a seed.
--
-- The only generator of the test kit: a printed seed gives the same numbers on every machine. It
-- uses no clock and not math.random.

local random = {}
local methods = {}
random.__index = methods

--- splitmix64 (Steele, Lea, Flood 2014). Any integer is a seed.
---@param seed integer
function random.new(seed)
  return setmetatable({ x = seed }, random)
end

local function step(self)
  self.x = self.x + 0x9e3779b97f4a7c15
  local z = self.x
  z = (z ~ (z >> 30)) * 0xbf58476d1ce4e5b9
  z = (z ~ (z >> 27)) * 0x94d049bb133111eb
  return z ~ (z >> 31)
end

--- An integer of low..high.
function methods:int(low, high)
  return low + (step(self) >> 1) % (high - low + 1)
end

--- True once in n.
function methods:one_in(n)
  return self:int(1, n) == 1
end

--- One of a list.
function methods:pick(list)
  return list[self:int(1, #list)]
end

--- A generator of its own, for a part that may draw as often as it likes.
function methods:fork()
  return random.new(step(self))
end

return random
