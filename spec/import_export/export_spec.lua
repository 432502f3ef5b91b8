-- export, as somebody types it: formats, files, folders, redaction.

local cli = require "spec.support.cli"
local decode = require("sessile").decode
local span = require("sessile.core").span
local sessile, done, json, write = cli.sessile, cli.done, cli.json, cli.write
local home

cli.each_test(function(path) home = path end)

-- Messages as lines; some text that a printer would spoil is among them.
local SPOILT = '{"role":"user","content":"caf\\u00e9 \\u0001","n":9007199254740993,"x":1.50}'

local function talk()
  write(home .. "/talk.jsonl", SPOILT .. '\n{"role":"assistant","content":"an answer"}\n')
  done("import " .. home .. "/talk.jsonl --from jsonl --id talk --title 'A talk'")
end

local function listing(folder)
  local pipe <close> = assert(io.popen("ls -A " .. cli.quote(folder)))
  local names = {}
  for name in pipe:lines() do
    names[#names + 1] = name
  end
  return names
end

describe("export as JSON", function()
  it("leaves out of the context what the engine puts in for an answer that never came", function()
    done "import examples/demo-session.jsonl --id demo"
    local document = decode((done "export demo"))
    local there = {}
    for _, entry in ipairs(document.entries) do
      there[entry.id] = true
    end
    assert.is_true(#document.context > 10)
    for _, key in ipairs(document.context) do
      assert.is_true(there[key:sub(1, 8)], key)
    end
  end)

  it("has every entry as it is kept, and as many as check counts", function()
    talk()
    done "label talk 1 start"
    local text = done "export talk"
    assert.is_true(span.valid(text))
    assert.truthy(text:find(SPOILT, 1, true), text)
    local document = decode(text)
    assert.equal(1, document.sessile_export)
    assert.equal(json("check talk").entries, #document.entries)
    assert.equal(#document.entries, document.count)
    for i, entry in ipairs(document.entries) do
      assert.equal(("%08x"):format(i - 1), entry.id)
    end
  end)

  it("says of the session what info says, its labels and its checkpoints", function()
    talk()
    done "settings talk model=some temperature=0.5"
    done "label talk 1 start"
    done "checkpoint talk here"
    local document, info = decode((done "export talk")), json "info talk"
    for _, name in ipairs { "id", "agent", "user", "title", "head", "settings", "labels", "usage",
      "status", "created" } do
      assert.same(info[name], document[name], name)
    end
    assert.equal("here", document.checkpoints[1].name)
    assert.same({ "00000001", "00000002" }, document.context)
  end)

  it("is an entry a line as JSONL", function()
    talk()
    local entries = decode((done "export talk")).entries
    local n = 0
    for line in (done "export talk --format jsonl"):gmatch "[^\n]+" do
      n = n + 1
      assert.same(entries[n], decode(line))
    end
    assert.equal(#entries, n)
  end)
end)

describe("export as Markdown and as a page", function()
  local payloads = require "spec.support.payloads"

  -- What stands at the margin, outside of fences, is ours.
  local OURS = { "^# ", "^### ", "^> ?", "^>$", "^%*%u[%l ]+%*", "^%- %u%l+[%l ]*: ", "^$",
    "^<details>$", "^</details>$", "^<summary>[^<>]*</summary>$", "^%-%-%-$" }

  local function foreign_line(text)
    local fence
    for line in text:gmatch "([^\n]*)\n" do
      local mark = line:match "^(```+)"
      if fence then
        fence = line ~= fence and fence or nil
      elseif mark then
        fence = mark
      else
        local ours = false
        for _, pattern in ipairs(OURS) do
          ours = ours or line:find(pattern) ~= nil
        end
        if not ours then
          return line
        end
      end
    end
    return fence
  end

  it("keeps what was said inside of its block", function()
    local next_one, lines = payloads.generator(7), {}
    for i = 1, 400 do
      local text = next_one()
      lines[i] = i % 2 == 0 and ('{"role":"user","author":%s,"content":%s}'):format(
        span.quote(text), span.quote(text)) or ('{"role":"tool","tool_call_id":"x","name":%s,'
        .. '"content":%s}'):format(span.quote(text), span.quote(text))
    end
    write(home .. "/hostile.jsonl", table.concat(lines, "\n") .. "\n")
    done(("import %s/hostile.jsonl --from jsonl --id h --title '# <b>[x](http://e.org)'"):format(
      home))
    local text = done "export h --format md"
    assert.is_nil(foreign_line(text))
    assert.truthy(text:find("# \\# \\<b\\>\\[x\\]\\(http\\://e.org\\)\n", 1, true))
    assert.equal(text, (done "export h --format markdown"))
  end)

  it("names every checkpoint, label and branch", function()
    talk()
    done "checkpoint talk here"
    done "label talk 1 start"
    done "branch talk 1 --yes"
    done "append talk 'another way'"
    for _, format in ipairs { "md", "html" } do
      local text = done("export talk --format " .. format)
      for _, words in ipairs { "here", "start", "Branch", "another way", "an answer" } do
        assert.truthy(text:find(words, 1, true), format .. " has no " .. words)
      end
    end
  end)

  it("is inert on a terminal", function()
    if not os.execute "script -qec true /dev/null </dev/null >/dev/null 2>&1" then
      pending "needs script(1) and a pseudo-terminal"
      return
    end
    write(home .. "/t.jsonl", '{"role":"user","content":"\\u001b[31mred\\u001b]0;x\\u0007 '
      .. '\\u009b2J\\u202e"}\n')
    done(("import %s/t.jsonl --from jsonl --id t"):format(home))
    for _, format in ipairs { "md", "json", "jsonl", "html" } do
      local seen = sessile("export t --format " .. format, nil,
        [[sh -c 'script -qec "$*" /dev/null' sh]])
      assert.truthy(seen:find("red", 1, true))
      assert.is_nil(seen:find "[\27\7]", format)
      assert.is_nil(seen:find("\u{9B}", 1, true), format)
      assert.is_nil(seen:find("\u{202E}", 1, true), format)
    end
  end)
end)

describe("export to a file", function()
  it("takes the format from the extension, and is readable by its owner alone", function()
    talk()
    local out, err = done(("export talk %s/a.jsonl"):format(home))
    assert.equal("", out)
    assert.truthy(err:find("not encrypted", 1, true), err)
    assert.equal(done "export talk --format jsonl", cli.read(home .. "/a.jsonl"))
    local pipe <close> = assert(io.popen("stat -c %a " .. cli.quote(home .. "/a.jsonl")))
    assert.equal("600", pipe:read "l")
  end)

  it("replaces a file with --yes only", function()
    talk()
    write(home .. "/a.json", "mine")
    local _, err, code = sessile(("export talk %s/a.json"):format(home))
    assert.equal(1, code)
    assert.truthy(err:find("--yes", 1, true), err)
    assert.equal("mine", cli.read(home .. "/a.json"))
    done(("export talk %s/a.json --yes"):format(home))
    assert.is_true(span.valid(cli.read(home .. "/a.json")))
  end)

  it("leaves what was there, and nothing else, when it does not come to an end", function()
    talk()
    done "new --id other"
    write(home .. "/keep.json", "mine")
    os.execute("mkdir " .. home .. "/out && mv " .. home .. "/keep.json " .. home .. "/out/")
    write(home .. "/dies.lua", ([[
      local files = require "sessile.files"
      local file = assert(files.create(%q))
      assert(file:write "half of it")
      if arg[1] == "drop" then file:drop() else os.execute("kill -9 $PPID") end
    ]]):format(home .. "/out/keep.json"))
    done("run " .. home .. "/dies.lua drop")
    assert.same({ "keep.json" }, listing(home .. "/out"))
    sessile("run " .. home .. "/dies.lua kill")
    assert.equal("mine", cli.read(home .. "/out/keep.json"))
  end)

  it("says what is wrong with a name", function()
    talk()
    local _, err, code = sessile(("export talk %s/a.doc"):format(home))
    assert.equal(2, code)
    assert.truthy(err:find("--format json", 1, true), err)
    assert.equal(3, (select(3, sessile(("export talk %s/none/a.json"):format(home)))))
    assert.equal(2, (select(3, sessile(("export talk %s"):format(home .. " --format pdf")))))
    assert.equal(2, (select(3, sessile "export")))
    assert.equal(3, (select(3, sessile "export nobody")))
    assert.is_false(cli.exists(home .. "/a.doc"))
  end)

  it("says what it did as JSON", function()
    talk()
    local told = json(("export talk %s/a.json --redact"):format(home))
    assert.equal("json", told.format)
    assert.equal(#cli.read(home .. "/a.json"), told.bytes)
    assert.same({}, told.redacted)
  end)
end)

describe("export of a user's sessions", function()
  -- The command line has no users: a host makes such sessions.
  local function make(text)
    write(home .. "/make.lua",
      ('local store = require("sessile").open(os.getenv "SESSILE_STORE")\n%s\nstore:close()')
        :format(text))
    done("run " .. home .. "/make.lua")
  end

  it("writes all of them into a folder, and an index", function()
    make [[
      for _, id in ipairs { "a/../b", "two", ".hidden" } do
        local s = assert(store:create { id = id, user = "ann" })
        s:append { role = "user", content = "it is " .. id }
      end
      store:create { id = "other", user = "bob" }
      assert(store:delete({ id = "two", user = "ann" }, { soft = true }))
    ]]
    local _, err, code = sessile(("export --user ann %s/ann"):format(home))
    local index = decode(cli.read(home .. "/ann/index.json"))
    assert.equal("ann", index.user)
    assert.equal(3, #index.sessions)
    for _, row in ipairs(index.sessions) do
      assert.equal("ann", row.user)
      if row.id == "two" then -- it is kept, and cannot be read until it is undeleted
        assert.equal("deleted", row.status)
        assert.truthy(row.error.message:find("undelete", 1, true))
      else
        local document = decode(cli.read(home .. "/ann/" .. row.files[1]))
        assert.equal(row.id, document.id)
        assert.equal("it is " .. row.id, document.entries[2].data.content)
      end
    end
    assert.equal(5, code)
    assert.truthy(err:find("index.json", 1, true), err)
    _, err, code = sessile(("export --user ann %s/ann"):format(home))
    assert.equal(1, code)
    assert.truthy(err:find("not empty", 1, true), err)
  end)

  it("knows when there is nobody", function()
    talk()
    assert.equal(3, (select(3, sessile(("export --user nobody %s/x"):format(home)))))
    assert.equal(2, (select(3, sessile "export --all")))
    assert.is_false(cli.exists(home .. "/x"))
    done(("export --all %s/x"):format(home))
    assert.truthy(cli.exists(home .. "/x/talk.json"))
  end)
end)

describe("export --redact", function()
  local SECRETS = { "hunter2secret", "jo@example.org", "/home/jo", "sk-abcdef0123456789",
    "10.20.30.40", "Falcon Nine", "wJalrXUtnFEMI" }

  local function secrets()
    write(home .. "/s.jsonl", table.concat({
      [[{"role":"user","content":"mail jo@example.org, password: hunter2secret",]]
        .. [["author":"jo@example.org"}]],
      [[{"role":"assistant","content":"","tool_calls":[{"id":"call_jo@example.org","name":"sh",]]
        .. [["arguments":"{\"api_key\":\"wJalrXUtnFEMI\",\"cmd\":]]
        .. [[\"cat \\/home\\/jo\\/x\\nPASSWORD=hunter2secret\\n\"}"}]}]],
      [[{"role":"tool","tool_call_id":"call_jo@example.org",]]
        .. [["content":"hunter2secret 10.20.30.40 Falcon Nine","jo@example.org":true}]],
      [[{"role":"user","content":[{"type":"text","text":"j\u006f@example.org ]]
        .. [[sk-abcdef0123456789"}],"password":"hunter2secret"}]],
    }, "\n") .. "\n")
    done(("import %s/s.jsonl --id s --title 'of jo@example.org'"):format(home))
    done "label s 1 'for jo@example.org'"
    done "settings s api_key=wJalrXUtnFEMI home=/home/jo/x"
    done "checkpoint s jo@example.org"
    write(home .. "/rules.lua", 'return { { name = "project", pattern = "Falcon %u%l+" } }')
  end

  it("leaves no secret in any format, wherever it stands", function()
    secrets()
    for _, format in ipairs(require "sessile.export".names()) do
      local text, err = done(("export s --format %s --redact-rules %s/rules.lua"):format(format,
        home))
      for _, secret in ipairs(SECRETS) do
        assert.is_nil(text:find(secret, 1, true), format .. " has " .. secret)
        assert.is_nil(text:find(secret:gsub("/", "\\/"), 1, true), format .. " has " .. secret)
      end
      assert.truthy(text:find("[project-1]", 1, true), format)
      assert.truthy(err:find("read it before you share it", 1, true), err)
    end
  end)

  it("keeps calls and results together, and the JSON inside of strings JSON", function()
    secrets()
    local entries = decode((done "export s --redact")).entries
    local call
    for _, entry in ipairs(entries) do
      call = entry.data.tool_calls and entry.data.tool_calls[1] or call
      if entry.data.tool_call_id then
        assert.equal(call.id, entry.data.tool_call_id)
      end
    end
    assert.matches("^%[email%-%d%]$", call.id)
    local arguments = decode(call.arguments)
    assert.truthy(arguments.cmd:find("cat /home/[home-1]/x\nPASSWORD=[secret-1]\n", 1, true),
      arguments.cmd)
  end)

  it("changes nothing but what it takes out", function()
    talk()
    local function entries(text)
      return text:match '"entries":(.*)\n],'
    end
    assert.equal(entries((done "export talk")), entries((done "export talk --redact")))
  end)

  it("runs no code of a file of rules, and says what is wrong with one", function()
    talk()
    for text, words in pairs {
      ["return os.exit(7)"] = "rules", ["return ('x'):rep(10)"] = "rules",
      ["while true do end"] = "too long",
      ["return { { name = 'x', pattern = '(' } }"] = "rule 1 is no pattern",
      ["return { { name = 'x', pattern = 'a*a*a*a*a*' } }"] = "5 times",
      ["return { { pattern = 'x' } }"] = "rule 1 has no name",
    } do
      write(home .. "/rules.lua", text)
      local _, err, code = sessile(("export talk --redact-rules %s/rules.lua"):format(home))
      assert.equal(1, code)
      assert.truthy(err:find(words, 1, true), text .. "\n" .. err)
    end
    assert.equal(3, (select(3, sessile "export talk --redact-rules /none")))
  end)
end)

describe("redact", function()
  local redact = require "sessile.redact"

  it("takes out what it names, and leaves what only looks like it", function()
    for text, wanted in pairs {
      ["DB_PASSWORD='hu nter'"] = "DB_PASSWORD='[secret-1]'",
      ["apiKey: string; max_tokens: 4096"] = "apiKey: string; max_tokens: 4096",
      ["password = getPassword()"] = "password = getPassword()",
      ["https://bob:pw@host/"] = "https://[credentials-1]@host/",
      ["pkg@1.2.3 127.0.0.1 12:30:45 std::string"] = "pkg@1.2.3 127.0.0.1 12:30:45 std::string",
      ["at 2001:db8::1:2 and 192.168.7.4"] = "at [ip-2] and [ip-1]",
      ["jos\u{e9}@example.org"] = "[email-1]",
      ["C:\\\\Users\\\\jo\\\\x"] = "C:\\\\Users\\\\[home-1]\\\\x",
      ["Authorization: Bearer abcdefghijklmnop"] = "Authorization: Bearer [secret-1]",
      ["x -----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- y"] = "x [key-1] y",
      ["-----BEGIN PRIVATE KEY-----\ncut off"] = "[key-1]",
    } do
      assert.equal(wanted, redact.new():text(text))
    end
  end)

  it("never takes long over a text that means harm", function()
    -- What is quadratic here would take hours, and the run its limit.
    for _, text in ipairs { "a", "a@", "a=", "password=(", "-----BEGIN PRIVATE KEY-----", "1.",
      "eyJ", "eyJ-", "eyJ-a.", "/", "\\",
      "://a:", ":", 'a"', "/home/", "x=\"", "Bearer ", "token: '" } do
      local run = redact.new()
      assert.is_string(run:text("/home/x " .. text:rep(500000 // #text)))
    end
  end)
end)
