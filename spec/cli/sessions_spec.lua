-- The commands for sessions as people who manage agents know them, in those very words:
-- `sessions list`, `sessions branch`, `sessions label remove`, … One test for each thing that
-- they are expected to do.

local cli = require "spec.support.cli"
local decode = require("sessile").decode
local expect = require "spec.support.expect"
local guarded = require "spec.support.guarded"
local lists = require "spec.support.lists"
local has, has_not = expect.has, expect.has_not
local sessile, done, fails, json = cli.sessile, cli.done, cli.fails, cli.json

cli.each_test()

-- A conversation of three, of an agent.
local function conversation(id, agent)
  agent = agent and "--agent " .. agent or ""
  done(("new --id %s %s"):format(id, agent))
  for _, text in ipairs { "one", "two", "three" } do
    done(("append %s %s %s"):format(id, text, agent))
  end
end

local function ids(rows)
  return lists.field(rows, "id")
end

describe("--user", function()
  it("is whose the sessions of an import are, also when it is repeated", function()
    local file = os.getenv "PWD" .. "/examples/demo-session.jsonl"
    done("import " .. file .. " --id talk --user ann")
    assert.same({ "ann" }, lists.field(json "list", "user"))
    has(select(2, sessile("import " .. file .. " --id talk --user ann")), "nothing new")
    done("import " .. file .. " --id talk --user bob")
    assert.equal(1, #json "list --user ann")
    assert.equal(1, #json "list --user bob")
    fails(3, "import " .. file .. " --into talk --user carl", "talk")
    done("import examples --user carl")
    assert.is_true(#json "list --user carl" > 0)
  end)

  it("restricts purge to the sessions of this user", function()
    for _, name in ipairs { "ann", "bob" } do
      done("new --id of-" .. name .. " --user " .. name)
      done("delete of-" .. name .. " --soft --yes --user " .. name)
    end
    assert.same({ "of-ann" }, ids(json("purge --retention 0s --yes --user ann").purged))
    assert.same({ "of-bob" }, ids(json("purge --retention 0s --dry-run").purged))
  end)

  it("is refused where no user is known", function()
    done "new --id a --user ann"
    done "check a --user ann"
    fails(2, "check --user ann", "--user", "check a session")
    fails(2, "purge --forgotten --user ann", "--user", "no name")
  end)
end)

describe("sessions list", function()
  it("shows what was removed for good, by whom and why", function()
    assert.same({}, json "list --removed")
    conversation("a", "coder")
    done "delete a --yes --reason 'by mistake' --actor ops"
    local row = json("list --removed")[1]
    assert.same({ "a", "coder", "by mistake", "ops" }, { row.id, row.agent, row.reason, row.actor })
    has(done "list --removed", "by mistake")
  end)

  it("lists all, or those of an agent, named in one of two ways", function()
    conversation("a", "coder")
    conversation("b", "critic")
    has(done "sessions list", "critic")
    for _, words in ipairs { "sessions list coder", "sessions list --agent coder" } do
      local out = done(words)
      has(out, "coder")
      has_not(out, "critic")
      assert.same({ "a" }, ids(json(words)))
    end
    has(fails(2, "sessions list coder --agent critic"), "two agents")
  end)

  it("shows id, agent, when it was made and changed, and status", function()
    conversation("bug-42", "research-agent")
    local heading, row = done("sessions list"):match "^([^\n]+)\n([^\n]+)\n$"
    for _, name in ipairs { "ID", "AGENT", "CREATED", "MODIFIED", "STATUS" } do
      has(heading, name)
    end
    for _, text in ipairs { "bug-42", "research-agent", "now", "active" } do
      has(row, text)
    end
    local of_json = json("sessions list")[1]
    assert.equal("research-agent", of_json.agent)
    assert.truthy(of_json.created > 1600000000000 and of_json.modified >= of_json.created)
    local date = os.date("!%Y-%m-%d", of_json.created // 1000)
    has(done "sessions list --long", date)
    done "suspend bug-42 'approval'"
    has(done "sessions list", "suspended")
  end)

  it("shortens ids to what names them, and takes them so", function()
    for n = 1, 3 do
      done(("new --id 018f0000-0000-7000-8000-00000000000%d"):format(n))
    end
    done "new --id 9a8b0000-0000-7000-8000-000000000004 --agent other"
    local out = done "sessions list"
    has(out, "9a8b0000 ")
    has_not(out, "9a8b0000-")
    assert.equal("9a8b0000-0000-7000-8000-000000000004", json("info 9a8b0000").id)
    for id in out:gmatch "\n(018f%S*)" do
      assert.equal(id, json("info " .. id).id:sub(1, #id))
    end
    -- beside those that are not listed as well
    done "new --id 9a8b0000-0000-7000-8000-000000000005"
    local short = done("sessions list other"):match "\n(9a8b%S*)"
    assert.equal("9a8b0000-0000-7000-8000-000000000004", json("info " .. short).id)
    assert.equal(36, #json("sessions list other")[1].id)
  end)

  it("filters by when: dates and spans", function()
    conversation("new", "coder")
    assert.equal(1, #json "sessions list --since 24h")
    assert.equal(1, #json "sessions list --agent coder --since 2026-02-01")
    assert.equal(0, #json "sessions list --until 2026-02-01")
    assert.equal(1, #json "sessions list --until 2999-12-31")
    assert.equal(0, #json "sessions list --since 2999-12-31")
    has(fails(2, "sessions list --since yesterday"), "2026-02-01")
    has(fails(2, "sessions list --since 2026-02-30"), "24h")
  end)

  it("filters by status, and says which there are", function()
    conversation "a"
    conversation "b"
    done "archive b"
    assert.same({ "b" }, ids(json "sessions list --status archived"))
    assert.same({ "a" }, ids(json "sessions list --status active"))
    local err = fails(2, "sessions list --status sleeping")
    for _, status in ipairs { "active", "suspended", "archived", "expired", "deleted" } do
      has(err, status)
    end
  end)

  it("sorts by when they were made or changed", function()
    for _, id in ipairs { "first", "second" } do
      done("new --id " .. id)
      os.execute "sleep 0.01"
    end
    done "append first again"
    assert.same({ "first", "second" }, ids(json "sessions list --sort modified"))
    assert.same({ "second", "first" }, ids(json "sessions list --sort created"))
  end)

  it("shows some, from one on", function()
    for n = 1, 7 do
      done(("new --id s%d"):format(n))
    end
    local all = ids(json "sessions list")
    assert.same({ all[3], all[4] }, ids(json "sessions list --offset 2 --limit 2"))
    local _, rows = done("sessions list --limit 5"):gsub("\n", "\n")
    assert.equal(6, rows)
    local out = done "sessions list --offset 2 --limit 2"
    has(out, all[3])
    has_not(out, all[2])
  end)
end)

describe("sessions resume", function()
  it("shows agent, times, counts and the last checkpoint, as info has them", function()
    conversation("s", "research-agent")
    done "checkpoint s 'by hand' --state '{\"step\":3}'"
    local info, shown = json "info s", json "sessions resume s"
    for _, field in ipairs { "agent", "created", "messages", "head" } do
      assert.equal(info[field], shown[field], field)
    end
    assert.equal("by hand", shown.checkpoint.name)
    local out = done "sessions resume s"
    has(out, "research-agent")
    assert.matches("messages +3,", out)
    fails(3, "sessions resume nobody")
  end)

  it("continues with what is said, as chat does", function()
    cli.configure("return { model = { command = { "
      .. "\"/bin/sh\", \"-c\", \"cat >/dev/null; printf 'I hear you'\" } } }")
    conversation "s"
    assert.equal("I hear you\n", (done("sessions chat s", "and now?\n")))
    local messages = json "show s"
    assert.equal("and now?", messages[4].message.content)
    assert.equal("I hear you", messages[5].message.content)
  end)
end)

describe("sessions tree", function()
  it("prints the tree in a pipe: id, type, time, labels", function()
    conversation "s"
    done "sessions label s 2 before-deploy"
    local out = done "sessions tree s"
    assert.equal(out, (done "tree s"))
    has(out, "00000002")
    local _, count = out:gsub("before%-deploy", "")
    assert.equal(1, count)
    assert.equal(0, (select(3, sessile "sessions tree s")))
    fails(3, "sessions tree nobody")
  end)

  it("shows one kind of entries, by two names, and only what is searched for", function()
    conversation "s"
    done "label s 2 before-deploy"
    done "checkpoint s here"
    for _, kind in ipairs { "message", "checkpoint", "label" } do
      local out = done("sessions tree s --type " .. kind)
      assert.equal(out, (done("sessions tree s --filter " .. kind)))
      assert.equal(kind == "checkpoint", out:find "checkpoint" ~= nil, out)
    end
    local labelled = done "sessions tree s --type label"
    has(labelled, "00000002")
    has_not(labelled, "00000003")
    local err = fails(2, "sessions tree s --type bogus")
    has(err, "checkpoint")
    local found = done "sessions tree s --search thre"
    has(found, "00000003")
    has_not(found, "00000002")
  end)
end)

describe("sessions branch", function()
  before_each(function() conversation "s" end)

  it("continues from an entry, with a summary of what is left", function()
    done "sessions branch s 1 --yes"
    assert.equal("00000001", json("info s").head)
    done "append s other"
    local entry = json("show s@" .. json("info s").head)
    assert.equal("00000001", entry.parent_id)
    done "sessions branch s 1 --summary 'Alternative approach' --yes"
    has(done "show s@head", "Alternative approach")
  end)

  it("asks first, and says what continues", function()
    local err = fails(2, "sessions branch s 1")
    has(err, "--yes")
    assert.equal("00000003", json("info s").head)
    local _, said = done "sessions branch s 1 --yes"
    has(said, "Continue from there")
  end)
end)

describe("sessions fork", function()
  it("makes a session of the history up to an entry, and prints its id alone", function()
    conversation "s"
    local out, err = done "sessions fork s 2"
    local id = out:match "^(%S+)\n$"
    has(err, id) -- what to type next
    local info = json("info " .. id)
    assert.equal("s", info.origin.id)
    assert.equal("00000002", info.origin.entry)
    assert.equal(2, info.messages)
    has(done "sessions list --long", id)
    assert.equal(3, json("info s").messages)
  end)
end)

describe("sessions label", function()
  it("names an entry, and takes the name away", function()
    conversation "s"
    done "sessions label s 2 checkpoint-before-deploy"
    has(done "show s@checkpoint-before-deploy", "two")
    has(done "sessions tree s", "checkpoint-before-deploy")
    done "sessions label remove s 2"
    assert.same({}, json "label list s")
    done "label s 2 again"
    done "label rm s 2"
    assert.same({}, json "label list s")
    done "label s 2 again"
    done "label remove s again"
    assert.same({}, json "label list s")
    fails(3, "sessions label remove s 2")
  end)
end)

describe("sessions delete", function()
  it("asks, or is told not to", function()
    conversation "a"
    conversation "b"
    has(fails(2, "sessions delete a"), "--yes")
    assert.equal(2, #json "sessions list")
    done "sessions delete a --force"
    done "sessions delete b --yes"
    assert.equal(0, #json "sessions list")
    assert.equal(0, #json "sessions list --status deleted")
  end)

  it("leaves no file behind", function()
    guarded.unguarded_only "its audit is left"
    cli.files_only "which are left"
    done "keys init"
    local function files()
      local pipe <close> = io.popen(("find %s/data/sessile/agents -type f | wc -l"):format(
        cli.home()))
      return pipe:read "n"
    end
    conversation "a"
    done "checkpoint a here --state '{}'"
    local before = files()
    done "sessions delete a --force"
    assert.is_true(before > 0)
    assert.equal(0, files())
  end)
end)

describe("sessions export", function()
  local home

  before_each(function()
    home = cli.home()
    conversation("s", "coder")
    done "rename s 'A title'"
    done "settings s model=big"
    done "checkpoint s 'by hand'"
  end)

  it("writes JSON, to a file or to stdout", function()
    done(("sessions export s %s/s.json"):format(home))
    local function but_when(text)
      return (text:gsub('"exported":"[^"]*"', "", 1))
    end
    assert.truthy(decode(cli.read(home .. "/s.json")))
    assert.equal(but_when(cli.read(home .. "/s.json")), but_when(done "sessions export s"))
  end)

  it("writes Markdown and HTML, by the file's name or by --format", function()
    for _, format in ipairs { "markdown", "md" } do
      done(("sessions export s %s/%s --format %s"):format(home, format, format))
    end
    done(("sessions export s %s/s.md"):format(home))
    assert.equal(cli.read(home .. "/markdown"), cli.read(home .. "/md"))
    assert.equal(cli.read(home .. "/s.md"), cli.read(home .. "/md"))
    has(cli.read(home .. "/md"), "three")
    done(("sessions export s %s/s.html"):format(home))
    local page = cli.read(home .. "/s.html")
    has(page:lower(), "<!doctype html>")
    has(page, "three")
    assert.is_nil(page:find "https?://[^\"]+%.js")
  end)

  it("has the whole history, what is known of the session, and its checkpoints", function()
    local whole = json "sessions export s"
    assert.equal(json("check s").entries, #whole.entries)
    local text = done "sessions export s"
    for _, part in ipairs { "A title", "coder", '"big"', "by hand" } do
      has(text, part)
    end
    for _, name in ipairs { "s.md", "s.html" } do
      done(("sessions export s %s/%s"):format(home, name))
      for _, part in ipairs { "A title", "coder", "by hand", "three" } do
        has(cli.read(home .. "/" .. name), part)
      end
    end
  end)
end)

describe("a question", function()
  -- Types an answer to a command on a terminal; its exit code, and what was seen.
  local function typed(words, answer)
    local path = cli.home() .. "/typed"
    cli.write(path, answer .. "\n")
    local out, _, code = cli.sessile("", nil, ("sh -c %s"):format(cli.quote(
      ("script -qec '%s %s' /dev/null < %s"):format(cli.binary, words, path))))
    return code, out
  end

  it("is answered on a terminal: yes does it, anything else does not", function()
    if not os.execute "script -qec true /dev/null </dev/null >/dev/null 2>&1" then
      pending "needs script(1) and a pseudo-terminal"
      return
    end
    conversation "s"
    for _, answer in ipairs { "no", "n", "", "y" } do
      local code, seen = typed("sessions delete s", answer)
      assert.equal(1, code, seen)
      has(seen, "Delete session s permanently? [yes/no]")
      has(seen, "Nothing was changed")
      assert.equal(1, #json "sessions list")
    end
    assert.equal(1, (typed("sessions branch s 1", "no")))
    assert.equal("00000003", json("info s").head)
    assert.equal(0, (typed("sessions branch s 1", "yes")))
    assert.equal("00000001", json("info s").head)
    done "compact s --policy sliding_window --window 10"
    done "checkpoint s here"
    for _, words in ipairs { "restore s here", "check s --salvage" } do
      local code, seen = typed(words, "no")
      assert.equal(1, code, seen)
      has(seen, "Nothing was changed")
    end
    assert.equal(0, (typed("sessions delete s", "yes")))
    assert.equal(0, #json "sessions list")
  end)
end)

describe("a session of a user", function()
  before_each(function()
    done "new --id bug --user ann"
    done "new --id bug --user bob"
  end)

  local function users(words)
    local found = {}
    for i, row in ipairs(json("list " .. (words or ""))) do
      found[i] = row.user
    end
    table.sort(found)
    return found
  end

  it("is made with --user, and deleted with it", function()
    assert.same({ "ann", "bob" }, users())
    assert.equal("cid", json("new --id cid --user cid").user)
    done "delete cid --yes"
    local err = fails(2, "delete bug --yes", "user ann", "user bob")
    has(err, "--user")
    done "delete bug --user ann --yes"
    assert.same({ "bob" }, users())
    fails(3, "delete bug --user ann --yes")
    assert.same({ "bob" }, users())
  end)

  it("that was hidden is restored with --user", function()
    done "delete bug --user ann --soft"
    done "delete bug --user bob --soft"
    assert.same({}, users())
    done "undelete bug --user bob"
    assert.same({ "bob" }, users())
    assert.same({ "ann" }, users "--status deleted")
  end)
end)

describe("delete --yes", function()
  it("is no answer for a session that is not named by its whole id", function()
    done "new --id bug-42 --title Slow"
    done "append bug-42 hello"
    done "label bug-42 1 release"
    for _, name in ipairs { "bug", "last", "Slow", "release" } do
      for _, flag in ipairs { "--yes", "--force" } do
        local err = fails(2, ("delete %s %s"):format(name, flag), "bug-42 permanently?")
        has(err, "delete bug-42 --yes")
      end
    end
    assert.equal(1, #json "list")
    done "delete bug --soft"
    done "undelete bug-42"
    done "delete bug-42 --yes"
    assert.equal(0, #json "list")
  end)
end)

describe("a reason", function()
  it("is an argument or --reason, of `suspend` and `cancel`", function()
    done "new --id s"
    done "suspend s --reason 'approval by ann'"
    has(done "info s", "approval by ann")
    done "cancel s --reason 'nobody answered'"
    assert.equal("ann is asked", json("suspend s 'ann is asked'").reason)
    fails(2, "cancel s once --reason twice", "exclude each other")
    done "cancel s"
  end)
end)

describe("two sessions with one id", function()
  local NAMING = { "show x", "tree x", "info x", "context x", "append x more",
    "fork x", "export x -", "check x", "turn x word", "delete x --dry-run",
    "delete x --yes" }

  it("of two users, are told apart by --user", function()
    for _, user in ipairs { "ann", "bob" } do
      done(("new --id x --user %s"):format(user))
      done(("append x 'from %s' --user %s"):format(user, user))
    end
    local said = fails(2, "show x")
    has(said, "user ann")
    has(said, "Add --user.")
    has_not(said, "--agent")
    for _, words in ipairs(NAMING) do
      local out, err, code = sessile(words .. " --user ann")
      assert.equal(0, code, words .. ": " .. out .. err)
      has_not(out, "from bob")
    end
    fails(3, "show x --user ann")
    has(done "show x", "from bob")
  end)

  it("of two agents, by --agent", function()
    done "new --id x --agent one"
    done "new --id x --agent two"
    has(fails(2, "show x"), "Add --agent.")
  end)
end)
