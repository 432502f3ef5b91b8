-- Text that comes in pieces, on its way to a terminal: however it is cut, nothing in it is obeyed.

local terminal = require "sessile.cli.terminal"

-- The pieces of a text, cut at random places.
local function cut(text)
  local pieces, at = {}, 1
  while at <= #text do
    local size = math.random(1, 5)
    pieces[#pieces + 1] = text:sub(at, at + size - 1)
    at = at + size
  end
  return pieces
end

local function streamed(text)
  local stream, out = terminal.stream(), {}
  for _, piece in ipairs(cut(text)) do
    out[#out + 1] = stream:feed(piece)
  end
  out[#out + 1] = stream:finish()
  return table.concat(out)
end

describe("a stream to a terminal", function()
  local seed = os.time()

  it("shows what was written, whole characters and line breaks, however it is cut", function()
    math.randomseed(seed)
    local text = "grüße 漢字 🚀 e\u{301}\r\n\ttab \27[1;31mred\27[0m \27]0;title\7 \u{202E}back\r\n$"
    for _ = 1, 500 do
      assert.equal(terminal.safe(text), streamed(text), "seed " .. seed)
    end
  end)

  it("lets nothing through that a terminal obeys, nor what is no UTF-8", function()
    math.randomseed(seed)
    local parts = { "\27", "[", "]", "0;x", "\7", "\27[2J", "\27\\", "\r", "\n", "a", "m", ";31",
      "\xC2\x9B", "\xE2\x80\xAE", "\xE6", "\xBC", "\xF0\x9F", "\x9B", "é", "\0", "\8", "\27[" }
    for _ = 1, 20000 do
      local list = {}
      for i = 1, math.random(1, 12) do
        list[i] = parts[math.random(#parts)]
      end
      local shown = streamed(table.concat(list))
      assert.is_truthy(utf8.len(shown), "seed " .. seed)
      assert.is_nil(shown:find "[%z\1-\8\11-\31\127]", "seed " .. seed)
      assert.equal(terminal.safe(shown), shown, "seed " .. seed)
    end
  end)

  it("holds back no more than a sequence could have", function()
    local stream = terminal.stream()
    stream:feed "\27["
    local shown = 0
    for _ = 1, 100 do
      shown = shown + #stream:feed(("1"):rep(100))
    end
    assert.is_true(shown > 9000)
  end)
end)
