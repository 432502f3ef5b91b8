-- The tour of the README's picture: every line of examples/tour/tour.sh works, in order, in a
-- home of its own, and shows what the picture shows; and the picture is of those lines.
-- Files only: what is read there is a folder.

local cli = require "spec.support.cli"
local guides = require "spec.support.guides"

local function lines_of(text)
  local lines = {}
  for line in text:gmatch "[^\n]+" do
    if line:sub(1, 1) ~= "#" then
      lines[#lines + 1] = line
    end
  end
  return lines
end

describe("the tour", function()
  local home, lines

  setup(function()
    home = guides.begin()
    lines = lines_of(guides.read "examples/tour/tour.sh")
  end)

  teardown(cli.finish)

  local function run(line)
    local out, err, code = guides.run(line)
    assert.equal(0, code, line .. "\n" .. err .. out)
    return out .. err
  end

  local shown = {}

  it("imports, compacts, explains, branches and exports", function()
    for i, line in ipairs(lines) do
      shown[i] = run(line)
    end
    local all = table.concat(shown)
    for _, text in ipairs {
      "90 messages in 10 turns", "28,495 → 8,030 tokens (71 % less), 64 messages left",
      "the context now: 8,030 (fitted to reported usage)",
      "The model does not see it.", "Try it without the cache.",
      "tram.html",
    } do
      assert.truthy(all:find(text, 1, true), text .. "\nis not in\n" .. all)
    end
    assert.truthy(cli.read(home .. "/clone/tram.html"):find("Try it without the cache.", 1, true))
  end)

  it("is what the picture was made of", function()
    local drawn = guides.read("examples/tour/tour.svg"):gsub("&lt;", "<")
      :gsub("&gt;", ">"):gsub("&amp;", "&")
    local from = 1
    for _, line in ipairs(lines) do
      local _, to = drawn:find(">" .. line .. "</text>", from, true)
      assert.truthy(to, "draw the picture again: it does not show, in its place,\n" .. line)
      from = to
    end
    -- What the commands say today, in whatever lines; the charts depend on the terminal's width.
    local function words(text)
      return (text:gsub("%d", "0"):gsub("%s", ""))
    end
    local seen, compared = words((drawn:gsub("<[^>]*>", ""))), 0
    for i, line in ipairs(lines) do
      if line:find "^sessile [cwbe]" then -- compact, why, branch, export
        assert.truthy(seen:find(words(shown[i]), 1, true),
          "draw the picture again: it does not show\n" .. shown[i])
        compared = compared + 1
      end
    end
    assert.equal(4, compared)
  end)
end)
