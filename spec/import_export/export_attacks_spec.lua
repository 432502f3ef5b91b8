-- What somebody puts into a conversation, or into a file of rules, so that an export says what it
-- must not, takes for ever, or fails.

local cli = require "spec.support.cli"
local core = require "sessile.core"
local redact = require "sessile.redact"
local sessile_library = require "sessile"
local base64 = core.base64
local sessile, done, write = cli.sessile, cli.done, cli.write
local home

cli.each_test(function(path) home = path end)

describe("redaction", function()
  it("takes a password out of a field whatever its letters are", function()
    for _, value in ipairs { "!Tr0ub4dor&3", "$2b$10$abcdefghijkl", "hunter(2", "(abc)def1",
      "hunter2[a-1]", "hunter2[secret-1]", "my-sk-elephant9!tail", "*star9*", "=x=1" } do
      for _, name in ipairs { "password", "pass", "db_pass", "client_secret" } do
        local text = redact.new():json(('{"%s":"%s"}'):format(name, value))
        assert.matches('^{"[%w_]+":"%[secret%-%d%]"}$', text)
      end
    end
    assert.equal('password: "[secret-1]"', redact.new():text 'password: "!Tr0ub4dor&3"')
  end)

  it("leaves what refers to a secret, and is none", function()
    for _, value in ipairs { "$API_KEY", "${KEY}", "<your key>", "{{ key }}", "getenv('KEY')",
      "process.env.KEY", "[REDACTED]", "string", "***" } do
      local text = ('{"api_key":"%s"}'):format(value)
      assert.equal(text, redact.new():json(text))
    end
  end)

  it("looks into base64, and into lines that were kept as their bytes", function()
    local secret = "machine git.example.org password hunter2hunter password=hunter2hunter"
    for _, encoded in ipairs { base64(secret), base64(base64(secret)),
      (base64(secret):gsub("%+", "-"):gsub("/", "_"):gsub("=", "")) } do
      local text = redact.new():text("data: " .. encoded .. " end")
      assert.is_nil(text:find(encoded, 1, true), text)
    end
    local picture = base64(("\137PNG\r\n\26\n\0\1\2\3password=hunter2hunter"):rep(4))
    assert.equal(picture, redact.new():text(picture))
    -- Cut anywhere, wrapped, or with an end that no encoder writes, it is read as far as it goes.
    local once = base64 "password=hunter2hunter and more of it"
    for cut = 34, #once do
      local text = redact.new():text(once:sub(1, cut))
      assert.is_nil(text:find(once:sub(1, 30), 1, true), text)
    end
    for _, odd in ipairs { once:sub(1, 41) .. "Z==", once:gsub("^.....", "%0\n") } do
      assert.is_nil(redact.new():json(('{"b64":%s}'):format(core.span.quote(odd)))
        :find(once:sub(6, 30), 1, true))
    end
    local file = assert(io.open(home .. "/x.jsonl", "wb"))
    file:write('{"role":"user","content":"hello"}\npassword=hunter2hunter \255\n')
    file:close()
    done("import " .. home .. "/x.jsonl --from jsonl --id x")
    local found = (done "export x --format jsonl --redact"):match '"b64":"([^"]+)"'
    local bytes = core.base64_bytes(found)
    assert.equal("password=[secret-1] \255", bytes)
  end)

  it("never calls something by a name that a text has for itself", function()
    write(home .. "/s.jsonl", [[{"role":"user","content":"password=hunter2hunter"}]] .. "\n"
      .. [[{"role":"user","content":"[secret-1] was said before"}]] .. "\n")
    done("import " .. home .. "/s.jsonl --id s")
    local text = done "export s --format md --redact"
    assert.truthy(text:find("password=[secret-2]", 1, true) or text:find("secret-2", 1, true), text)
    assert.is_nil(text:find("hunter2", 1, true))
  end)

  it("takes out what a later text shows to be a secret", function()
    write(home .. "/s.jsonl", '{"role":"user","content":"what is hunter2hunter?"}\n'
      .. '{"role":"user","content":"password=hunter2hunter"}\n')
    done("import " .. home .. "/s.jsonl --id s")
    assert.is_nil((done "export s --format jsonl --redact"):find("hunter2", 1, true))
  end)

  it("of a folder is of its names, too", function()
    write(home .. "/s.jsonl", '{"role":"user","content":"hi"}\n')
    done("import " .. home .. "/s.jsonl --id s --agent bot@example.org")
    done(("export --all %s/all --redact"):format(home))
    local pipe <close> = assert(io.popen("ls -A " .. cli.quote(home .. "/all")))
    assert.is_nil(pipe:read "a":find("bot", 1, true))
    local store = assert(sessile_library.open(home .. "/users", { key = false }))
    assert(store:create { id = "of-ann", user = "ann@example.org" }):close()
    store:close()
    done(("--plain --store %s/users export --user ann@example.org %s/ann --redact"):format(home,
      home))
    local file <close> = assert(io.open(home .. "/ann/index.json"))
    assert.is_nil(file:read "a":find("ann@", 1, true))
  end)
end)

describe("an export into an agent's folder", function()
  local ID = "11111111-2222-4333-8444-555555555555"
  local CWD = "/home/ann/secret-client"

  -- A session of Claude Code that ran there, and whose text has a secret that the path repeats.
  local function recorded(cwd)
    write(home .. "/c.jsonl", ('{"parentUuid":null,"isSidechain":false,"sessionId":"%s","cwd":"%s",'
      .. '"type":"user","uuid":"a1","timestamp":"2026-05-01T10:00:00.000Z","message":{"role":'
      .. '"user","content":"[home-1]: password=hunter2hunter"}}\n'):format(ID, cwd))
    done("import " .. home .. "/c.jsonl --from claude")
  end

  local function found()
    local pipe <close> = assert(io.popen("cd " .. cli.quote(home .. "/new") .. " && find ."))
    return pipe:read "a"
  end

  before_each(function()
    assert(os.execute("mkdir -p " .. cli.quote(home .. "/new/.claude")
      .. " " .. cli.quote(home .. "/new/.codex")))
  end)

  it("has no folder and no command with what is taken out", function()
    recorded(CWD .. "/hunter2hunter")
    for _, to in ipairs { "claude", "codex" } do
      local report = cli.json(("export %s %s/new/.%s --to %s --redact"):format(ID, home, to, to))
      local place = found()
      for _, word in ipairs { "ann", "hunter2hunter" } do
        assert.is_nil(report.resume:find(word, 1, true), report.resume)
        assert.is_nil(place:find(word, 1, true), place)
      end
      -- The folder, the command and the file agree: it is found where it says that it ran.
      local cwd = cli.read(report.file):match '"cwd":"([^"]+)"'
      assert.is_nil(cwd:find("ann", 1, true), cwd)
      assert.truthy(report.resume:find(cwd, 1, true), report.resume)
      if to == "claude" then
        assert.truthy(report.file:find("/projects/" .. cwd:gsub("[^%w]", "-") .. "/", 1, true),
          report.file)
      end
    end
  end)

  it("follows no link below that folder", function()
    recorded "/srv/shop"
    local away = home .. "/away"
    for to, links in pairs { claude = { "projects", "projects/-srv-shop" },
      codex = { "sessions", "sessions/2026" } } do
      for _, link in ipairs(links) do
        local base = home .. "/new/." .. to
        os.execute(("rm -rf %s %s; mkdir -p %s %s"):format(away, base, away, base .. "/"
          .. (link:match "^(.*)/" or "")))
        assert(os.execute(("ln -s %s %s/%s"):format(away, base, link)))
        for _, yes in ipairs { "", "--yes" } do
          cli.fails(7, ("export %s %s --to %s %s"):format(ID, base, to, yes),
            base .. "/" .. link .. " is a link")
        end
        local pipe <close> = assert(io.popen("find " .. cli.quote(away)))
        assert.equal(away .. "\n", pipe:read "a")
      end
    end
    -- The folder that was named may be one: it is what the user typed.
    os.execute(("rm -rf %s/*; ln -s %s %s/new/link"):format(away, away, home))
    done(("export %s %s/new/link --to claude"):format(ID, home))
    assert.is_true(cli.exists(away .. "/projects/-srv-shop/" .. ID .. ".jsonl"))
  end)

  it("replaces a link at the file's place, and not what it names", function()
    recorded "/srv/shop"
    local base = home .. "/new/.claude"
    local file = base .. "/projects/-srv-shop/" .. ID .. ".jsonl"
    write(home .. "/other", "kept")
    assert(os.execute(("mkdir -p %s/projects/-srv-shop; ln -s %s/other %s"):format(base, home,
      file)))
    cli.fails(1, ("export %s %s --to claude"):format(ID, base), "is there already")
    assert.equal("kept", cli.read(home .. "/other"))
    for _, target in ipairs { "other", "nothing", "fifo" } do
      os.execute(("mkfifo %s/fifo 2>/dev/null; ln -sf %s/%s %s"):format(home, home, target, file))
      done(("export %s %s --to claude --yes"):format(ID, base))
      assert.truthy(cli.read(file):find("hunter2hunter", 1, true))
      assert.equal("kept", cli.read(home .. "/other"))
      assert.is_false(cli.exists(home .. "/nothing"))
    end
  end)
end)

describe("rules of one's own", function()
  local function export_with(rules, how)
    write(home .. "/rules.lua", rules)
    return sessile(("export s %s --redact-rules %s/rules.lua"):format(how, home))
  end

  before_each(function()
    write(home .. "/s.jsonl", '{"role":"user","content":"hello 12 id"}\n'
      .. '{"role":"assistant","content":"yes","tool_calls":[{"id":"c","name":"n",'
      .. '"arguments":"{}"}]}\n')
    done("import " .. home .. "/s.jsonl --id s")
    done "label s 1 here"
    done "checkpoint s"
  end)

  it("may fit everything: the document still holds together", function()
    for _, pattern in ipairs { "id", "%d+", "%a+", ".+", "[^\\n]" } do
      for _, how in ipairs { "--format json", "--format jsonl", "--format md", "--format html",
        "--to pi", "--to openai", "--to anthropic" } do
        local _, err, code = export_with(("return { { name = 'x', pattern = '%s' } }"):format(
          pattern), how)
        assert.equal(0, code, pattern .. " " .. how .. "\n" .. err)
      end
    end
  end)

  it("cannot fill the memory", function()
    local _, err, code = export_with("local s = ('a') for i = 1, 60 do s = s .. s end "
      .. "return { { name = 'x', pattern = s } }", "--format json")
    assert.equal(1, code)
    assert.truthy(err:find("too much memory", 1, true), err)
  end)
end)

describe("an export", function()
  it("says when a device does not take all of it", function()
    write(home .. "/s.jsonl", '{"role":"user","content":"hi"}\n')
    done("import " .. home .. "/s.jsonl --id s")
    local _, err, code = sessile "export s /dev/full --format json"
    assert.equal(1, code)
    assert.truthy(err:find("/dev/full", 1, true), err)
  end)

  it("asks once why many messages left the context together", function()
    local store = assert(sessile_library.open("ram:", { key = false }))
    local session = assert(store:create {})
    for i = 1, 200 do
      assert(session:turn({ { role = "user", content = "question " .. i },
        { role = "assistant", content = "answer" } }, { policy = false }))
    end
    assert(session:compact { window = 0, fallback = false, policy = { name = "p",
      compact = function(state)
        local covers, list = {}, { { role = "user", content = "summary" } }
        for i, one in ipairs(state.messages) do
          table.insert(i <= #state.messages - 4 and covers or list, one)
        end
        list[1].covers = covers
        return { messages = list }
      end } })
    local asked, class = 0, getmetatable(session).__index
    local page, why = {}, session.why
    local counted = setmetatable({ why = function(_, id)
      asked = asked + 1
      return why(session, id)
    end }, { __index = function(_, name)
      local value = type(class) == "function" and class(session, name) or session[name]
      return type(value) == "function"
        and function(_, ...) return value(session, ...) end or value
    end })
    local from = assert(require("sessile.export.source").open(counted))
    require "sessile.export.html"(from, function(text) page[#page + 1] = text end)
    local _, links = table.concat(page):gsub('class="left"', "")
    assert.equal(396, links)
    assert.equal(1, asked)
    store:close()
  end)
end)

describe("Markdown that is written", function()
  -- What the text becomes in a document, less the marks of its quote.
  local function written(content)
    local store = assert(sessile_library.open(home .. "/md", { key = false }))
    local session = assert(store:create {})
    assert(session:append { role = "user", content = content })
    session:close()
    store:close()
    return (done("--plain --store " .. home .. "/md export last --format md"))
  end

  it("stays text when an address swallows the backslash before it", function()
    local text = written "a\u{A0}http://x.org/<img src=x> and \u{A0}www.x.org/<img src=y>"
    assert.is_nil(text:find("://x.org/\\<", 1, true), text)
    assert.is_nil(text:find("www.x.org/\\<", 1, true), text)
    assert.truthy(text:find("www\\.x.org/", 1, true), text)
  end)

  it("has no address that ends early", function()
    local text = written "see http://x.org/?>[a](javascript:b)1 there"
    assert.is_nil(text:find("x.org/?>", 1, true), text)
  end)

  it("has code in fences, however a list counts its indent", function()
    local text = written "- [ ] a task\n\n      <?php\n      echo"
    assert.truthy(text:find("``` text\n>%s+<%?php\n>%s+echo\n>%s+```"), text)
  end)
end)
