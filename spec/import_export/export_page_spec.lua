-- The page of an export in a browser: whatever was said, nothing of it runs, is fetched, or
-- becomes an element. Needs chromium; elsewhere it is pending.

local cli = require "spec.support.cli"
local html_of = require("sessile.export.code").html
local payloads = require "spec.support.payloads"
local sessile = require "sessile"
local decode, done, json, write = sessile.decode, cli.done, cli.json, cli.write
local home

cli.each_test(function(path) home = path end)

-- ---------------------------------------------------------------- a browser

local function browser()
  for _, name in ipairs { "chromium", "chromium-browser", "google-chrome" } do
    if os.execute(("command -v %s >/dev/null 2>&1"):format(name)) then
      return name
    end
  end
end

-- Opens a page; the document as it is then, what the console said, what was asked of the net.
local function open(path)
  local name = browser()
  if not name then
    pending "needs chromium (the package chromium)"
    return nil
  end
  local pipe <close> = assert(io.popen "id -u")
  local command = ("HOME=%s LD_PRELOAD= timeout 120 %s --headless=new %s --disable-gpu "
    .. "--no-first-run --disable-background-networking --disable-component-update --disable-sync "
    .. "--disable-default-apps --host-resolver-rules='MAP * ~NOTFOUND' --virtual-time-budget=4000 "
    .. "--user-data-dir=%s/profile --log-net-log=%s/net.json --net-log-capture-mode=Everything "
    .. "--enable-logging=stderr --dump-dom file://%s >%s/dom 2>%s/console"):format(cli.quote(home),
    name, pipe:read "n" == 0 and "--no-sandbox" or "", home, home, path, home, home)
  assert(os.execute(command), cli.read(home .. "/console"))
  return cli.read(home .. "/dom"), cli.read(home .. "/console"), cli.read(home .. "/net.json")
end

-- ---------------------------------------------------------------- what may be in a page

local function set(words)
  local of = {}
  for word in words:gmatch "%S+" do
    of[word] = true
  end
  return of
end

local TAGS = set [[html head meta title style body a div header h1 h2 h3 h4 h5 h6 p dl dt dd figure
  figcaption span svg path rect ul li ol details summary input button label nav main section
  article pre code blockquote table thead tbody tr th td em strong del br hr time bdi footer
  b script]]

-- Attributes, and what their values look like.
local WORDS = "^[%w -]*$"
local ATTRIBUTES = {
  lang = "^en$", charset = "^utf%-8$", ["http-equiv"] = "^Content%-Security%-Policy$",
  content = "^[%w%s'=+/;:,.-]*$", name = WORDS, class = WORDS, id = "^[%w.-]+$",
  href = true, rel = "^noopener noreferrer nofollow$", tabindex = "^-?%d$", start = "^%d+$",
  viewBox = "^[%d ]+$", preserveAspectRatio = "^none$", role = WORDS, ["aria-label"] = "^[%w ,.]+$",
  d = "^[MLVZ%d. -]+$", x = "^[%d.-]+$", y = "^[%d.-]+$", width = "^[%d.-]+$",
  height = "^[%d.-]+$", open = "^$", hidden = "^$", type = WORDS, placeholder = "^Search$",
  autocomplete = "^off$", disabled = "^$", ["aria-live"] = "^polite$", ["aria-pressed"] = WORDS,
  ["aria-hidden"] = "^true$", ["aria-current"] = "^true$", xmlns = "^http://www%.w3%.org/2000/svg$",
}

local function check_attribute(tag, name, value)
  local pattern = ATTRIBUTES[name]
  assert.truthy(pattern, ("<%s %s=\"%s\">"):format(tag, name, value))
  if name == "href" then
    assert.is_true(tag == "a" and (value:find "^#[%w.-]+$" ~= nil
      or value:lower():find "^https?://" ~= nil or value:lower():find "^mailto:" ~= nil), value)
  else
    assert.matches(pattern, value, ("<%s %s>"):format(tag, name))
  end
end

-- Every element and attribute of a document is one of ours.
local function check_document(dom)
  local style = require "sessile.export.style"
  local script = require "sessile.export.script"
  for _, own in ipairs { style, script } do
    local first, last = dom:find(own, 1, true)
    assert.truthy(first, "our own style and script are in the page")
    dom = dom:sub(1, first - 1) .. dom:sub(last + 1)
  end
  assert.is_nil(dom:find("<!--", 1, true))
  local elements = 0
  for tag, rest in dom:gmatch "<([%a][^%s/>]*)([^<]*)" do
    elements = elements + 1
    assert.truthy(TAGS[tag], "an element <" .. tag .. rest:sub(1, 60))
    local at = 1
    while true do
      local stop = rest:match("^%s*/?()>", at)
      if stop then
        break
      end
      local name, value, after = rest:match('^%s+([^%s=/>"]+)="([^"]*)"()', at)
      assert.truthy(name, ("<%s%s"):format(tag, rest:sub(1, 80)))
      check_attribute(tag, name, value)
      at = after
    end
  end
  return elements
end

local function assert_inert(dom, console, net, title)
  assert.equal(title, dom:match "<title>(.-)</title>")
  check_document(dom)
  assert.is_nil(console:find("CONSOLE", 1, true), console)
  assert.is_nil(net:find(payloads.host, 1, true), "something of the conversation was fetched")
end

-- ---------------------------------------------------------------- what is said

-- A session with a payload in every place that has room for one, and its title.
local function hostile(id, seed, messages)
  write(home .. "/make.lua", ([[
    local span = require("sessile.core").span
local payloads = dofile(%q)
    local sessile = require "sessile"
    local store = assert(sessile.open(nil, assert(sessile.config())))
    local next_one = payloads.generator(%d)
    -- Where it has to be short, what leaves any element and any attribute stands at its end.
    local function clean(most)
      return (next_one():gsub("%%z", ""):sub(1, most - 30):gsub("[\128-\255]", "?"))
        .. "'\"></title></pre><i onclick=x>"
    end
    local s = assert(store:create { id = %q .. clean(200), user = clean(100), title = clean(400),
      agent = "main", metadata = { [clean(50)] = clean(100) } })
    s:settings { [clean(50)] = clean(100), model = clean(100) }
    for i = 1, %d do
      local call = "call" .. i .. clean(60)
      assert(s:turn({
        { role = "user", content = next_one(), author = clean(80), name = clean(80) },
        { role = "assistant", content = { { type = "text", text = next_one() },
          { type = "thinking", thinking = next_one() }, { type = clean(60), x = next_one() },
          { type = "image", source = { media_type = clean(80), url = next_one() } },
          { type = "tool_use", id = call, name = clean(80), input = { [clean(80)] = next_one() } },
          }, metadata = { kind = clean(50) } },
        { role = "user", content = { { type = "tool_result", tool_use_id = call,
          content = next_one(), is_error = i %% 2 == 0 } } },
        { role = "assistant", content = "", tool_calls = { { id = "x" .. call, name = clean(80),
          arguments = i %% 3 == 0 and next_one()
            or sessile.encode { [clean(40)] = next_one() } } } },
        { role = "tool", tool_call_id = "x" .. call, name = clean(80), content = next_one() },
        { role = i %% 4 == 0 and "system" or "developer", content = next_one() },
      }, { model = clean(80), metadata = { x = next_one() } }))
      if i %% 5 == 1 then
        assert(s:label(s:path()[#s:path() - 1], clean(150)))
        assert(s:checkpoint { name = clean(150), state = { x = next_one() } })
        assert(s:custom({ [clean(50)] = next_one() }))
      end
      if i %% 7 == 3 then
        local path = s:path()
        assert(s:compact { instructions = next_one(), policy = {
          name = clean(60), truncate = function(state)
            state:insert(1, { role = "user", content = next_one() }, { covers = { 1, 2 } })
          end } })
        assert(s:branch(path[#path - 9], { summary = next_one() }))
      end
    end
    s:suspend { reason = next_one() }
    io.write(s.id)
    store:close()
  ]]):format("spec/support/payloads.lua", seed, id, messages))
  return (done("run " .. home .. "/make.lua"))
end

local function text_of(title)
  local text = require "sessile.export.text"
  return (text.html(text.line(title)):gsub("&quot;", '"'):gsub("&#39;", "'"))
end

describe("the page of an export", function()
  it("is made of our own elements, runs nothing and fetches nothing", function()
    local seed = tonumber(os.getenv "SESSILE_SEED") or 20261122
    local pages = os.getenv "SESSILE_SOAK" and 40 or 1
    local messages = os.getenv "SESSILE_SOAK" and 1000 or 40
    for page = 1, pages do
      local id = hostile("p" .. page, seed + page, messages)
      done(("export --yes --format html -- %s %s/page.html"):format(cli.quote(id), home))
      local dom, console, net = open(home .. "/page.html")
      if not dom then
        return
      end
      local title = decode((done("export -- " .. cli.quote(id)))).title
      assert_inert(dom, console, net, text_of(title))
      assert.is_true(select(2, dom:gsub("<article", "")) >= messages * 6)
    end
    print(("# seed = %d"):format(seed))
  end)

  -- The same eyes on a page that is not careful: they see each of the three.
  it("would be seen to run, to fetch, or to hold something foreign", function()
    done "new --id s --title calm"
    done "append s '<img src=http://canary.invalid/x.png><b>x</b>'"
    done(("export s %s/page.html"):format(home))
    local page = cli.read(home .. "/page.html")
    local raw = page:gsub("&lt;", "<"):gsub("&gt;", ">")
    write(home .. "/page.html", raw)
    local dom, console = open(home .. "/page.html")
    if not dom then
      return
    end
    assert.is_false((pcall(check_document, dom)))
    assert.truthy(console:find("CONSOLE", 1, true), "its policy stops the image, and says so")
    write(home .. "/page.html", (raw:gsub("<meta http%-equiv[^>]*>", "")
      :gsub("<b>x</b>", "<script>document.title='canary_ran'</script>")))
    local net
    dom, console, net = open(home .. "/page.html")
    assert.truthy(net:find(payloads.host, 1, true))
    assert.equal("canary_ran", dom:match "<title>(.-)</title>", console)
  end)

  it("can be searched and read in two colours, and says what left the context", function()
    write(home .. "/talk.jsonl", ('{"role":"user","content":"question"}\n'
      .. '{"role":"assistant","content":"an **answer**"}\n'):rep(6))
    done(("import %s/talk.jsonl --from jsonl --id talk"):format(home))
    done "compact talk --policy sliding_window --option messages=4"
    done "checkpoint talk here"
    done(("export talk %s/page.html"):format(home))
    local dom, console = open(home .. "/page.html")
    if not dom then
      return
    end
    assert.is_nil(console:find("CONSOLE", 1, true), console)
    assert.truthy(dom:find '<div class="tools%-bar" id="bar" role="search">', "the script ran")
    assert.truthy(dom:find("an <strong>answer</strong>", 1, true))
    assert.truthy(dom:find("From here on not in the context", 1, true))
    assert.truthy(dom:find("prefers-color-scheme:dark", 1, true))
    assert.truthy(dom:find('<path class="rule c"', 1, true))
    assert.truthy(dom:find("◆ Checkpoint 0000000f: here", 1, true)
      or dom:find("◆ Checkpoint %x+: here"))
    for link in dom:gmatch 'href="#([^"]+)"' do
      assert.truthy(dom:find('id="' .. link .. '"', 1, true), "a link that leads to " .. link)
    end
  end)

  it("shows edits as diffs, code in colours, and what a compaction did", function()
    local function call(id, name, arguments)
      return sessile.encode { role = "assistant", content = "", tool_calls = { { id = id,
        name = name, arguments = sessile.encode(arguments) } } } .. "\n"
        .. sessile.encode { role = "tool", tool_call_id = id, content = "done" } .. "\n"
    end
    write(home .. "/talk.jsonl", sessile.encode { role = "user",
      content = "Fix it.\n\n```lua\nlocal x = 'a<b' -- no 42\n```\n" } .. "\n"
      .. call("c1", "Edit", { file_path = "/src/a.lua", old_string = "one\ntwo\nthree",
        new_string = "one\n<two>\nthree" })
      .. call("c2", "edit", { path = "a.py", edits = { { oldText = "x", newText = "y" } } })
      .. call("c3", "apply_patch", { input = "*** Begin Patch\n@@\n-int a;\n+int b;" })
      .. call("c4", "write", { path = "a.js", content = "return 7; // seven" })
      .. call("c5", "write", { path = "a.unknown", content = "return 8" })
      .. ('{"role":"user","content":"more"}\n{"role":"assistant","content":"done"}\n'):rep(3))
    done(("import %s/talk.jsonl --from jsonl --id talk"):format(home))
    write(home .. "/facts.lua", [[local store = require "sessile".open(arg[1],
        { guard = os.getenv "TEST_GUARD" })
      local s = store:resume "talk"
      for i = 1, 3 do assert(s:custom { kind = "note", n = i }) end]])
    done(("run %s/facts.lua %s"):format(home, cli.store()))
    done "compact talk --policy sliding_window --option messages=4"
    done(("export talk %s/page.html"):format(home))
    local page = cli.read(home .. "/page.html")
    local function has(part)
      assert.truthy(page:find(part, 1, true), part)
    end
    has '<span class="hk">local</span> x = <span class="hs">&#39;a&lt;b&#39;</span> '
    has '<span class="hn">-- no 42</span>'
    has(' one\n<span class="del">-two</span>\n<span class="ins">+&lt;two&gt;</span>\n three</pre>')
    has '<span class="del">-x</span>\n<span class="ins">+y</span></pre>'
    has '<span class="at">@@</span>\n<span class="del">-int a;</span>\n'
    has '<span class="hk">return</span> <span class="hd">7</span>; <span class="hn">// seven</span>'
    has '<pre tabindex="0">return 8</pre>'
    has "3 entries that programs wrote"
    local count, entries = page:match 'left out</td><td class="right">(%d+)</td>(.-)</tr>'
    local row = json("log talk")[1]
    assert.equal(row.lost, tonumber(count))
    assert.truthy(entries:find('href="#e-00000001"', 1, true), entries)
    local dom, console = open(home .. "/page.html")
    if dom then
      check_document(dom)
      assert.is_nil(console:find("CONSOLE", 1, true), console)
    end
  end)

  -- A model's text may be cut off inside a string, with tens of thousands of escaped quotes.
  it("colours a text with strings that do not end in a time that grows with its size", function()
    local function steps(text, language)
      local count = 0
      debug.sethook(function() count = count + 1 end, "", 100)
      local html = html_of(text, language)
      debug.sethook()
      assert.equal(text:gsub('"', "&quot;"):gsub("'", "&#39;"), (html:gsub("<[^>]*>", "")))
      return count
    end
    for _, quote in ipairs { '"', "'", "`" } do
      local few = steps(quote .. ("\\" .. quote):rep(500), "json")
      local many = steps(quote .. ("\\" .. quote):rep(2000), "json")
      assert.is_true(few > 0 and many < 5 * few, quote .. ": " .. few .. ", then " .. many)
    end
    local html = html_of([[{"a\"b": "c", d: "\"e
      "f"}]], "json")
    local function coloured(text)
      return html:find('<span class="hs">' .. text .. "</span>", 1, true) ~= nil
    end
    assert.is_true(coloured "&quot;a\\&quot;b&quot;" and coloured "&quot;c&quot;", html)
    assert.is_true(coloured "&quot;f&quot;", html)
    assert.is_false(coloured "&quot;\\&quot;", html)
  end)

  it("is shown in the browser, and says so when there is none", function()
    done "new --id talk"
    done "append talk hello"
    assert(os.execute(("mkdir %s/bin"):format(home)))
    write(home .. "/bin/xdg-open", ('#!/bin/sh\necho "$1" >%s/new; mv %s/new %s/shown\n')
      :format(home, home, home))
    assert(os.execute(("chmod +x %s/bin/xdg-open"):format(home)))
    local function export(path, words)
      return cli.sessile("export talk " .. words, nil, ("env -u BROWSER XDG_STATE_HOME=%s/state "
        .. "PATH=%s"):format(home, path))
    end
    local _, err, code = export(home .. "/bin:/usr/bin:/bin", "--open")
    assert.equal(0, code, err)
    assert(os.execute(("for i in $(seq 100); do [ -e %s/shown ] && exit; sleep 0.05; done; false")
      :format(home)))
    local path = cli.read(home .. "/shown"):gsub("\n", "")
    assert.equal(home .. "/state/sessile/pages/", path:match "^.*/")
    assert.truthy(cli.read(path):find("hello", 1, true))
    assert(os.execute(("test -z \"$(find %s/state/sessile -perm /077)\""):format(home)))
    _, err, code = export(home, "--open " .. home .. "/talk.html")
    assert.equal(1, code)
    assert.truthy(err:find("there is no program that opens files", 1, true), err)
    assert.falsy(cli.exists(home .. "/talk.html"))
  end)

  -- What a reader would do is done by a script in a copy of the page without its policy.
  local function probe(script)
    local page = cli.read(home .. "/page.html"):gsub("<meta http%-equiv[^>]*>", "")
    local at = assert(page:find("</body>", 1, true))
    write(home .. "/probe.html", page:sub(1, at - 1) .. "<script>" .. script .. "</script>"
      .. page:sub(at))
    local dom, console = open(home .. "/probe.html")
    return dom and (dom:match "<title>PROBE ([^<]*)" or error(console))
  end

  it("leads to the right places from its outline, among 1,000 messages", function()
    local lines = {}
    for i = 1, 1000 do
      lines[i] = ('{"role":"%s","content":"%s"}'):format(i % 4 == 1 and "user" or "assistant",
        ("A paragraph.\\n\\n"):rep(i * 7 % 41))
    end
    write(home .. "/talk.jsonl", table.concat(lines, "\n"))
    done(("import %s/talk.jsonl --from jsonl --id talk"):format(home))
    done(("export talk %s/page.html"):format(home))
    local tops = probe [[window.onload = function() {
      var links = document.querySelectorAll("#outline a"), n = links.length, tops = [];
      var want = [n - 3, 5, n >> 1, n - 40, 20];
      function next() {
        if (!want.length) { document.title = "PROBE " + n + ":" + tops.join(" "); return; }
        var link = links[want.shift()];
        link.click();
        setTimeout(function() {
          tops.push(Math.round(document.getElementById(link.hash.slice(1))
            .getBoundingClientRect().top));
          next();
        }, 600);
      }
      next();
    }]]
    if tops then
      local count, places = tops:match "^(%d+):(.*)$"
      assert.equal("250", count)
      for top in places:gmatch "%S+" do -- just below the bar
        assert.truthy(math.abs(top - 72) <= 3, tops)
      end
    end
  end)
end)
