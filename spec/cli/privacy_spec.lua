-- The commands about privacy, as a person uses them one after the other.

local cli = require "spec.support.cli"
local decode = require("sessile").decode
local expect = require "spec.support.expect"
local has = expect.has

local home
cli.each_test(function(path) home = path end)

describe("the commands of privacy", function()
  before_each(function()
    cli.done "new --id trip --user ann --agent coder"
    cli.done "append trip 'by train, please' --user ann"
    cli.done "consent give coder 'yes, remember me' --user ann --by kim"
    cli.done "memory add coder 'likes aisle seats' --key seat --user ann"
  end)

  it("export a user into a folder that nobody else can read, or leave none", function()
    local out = cli.done(("user export ann %s/ann"):format(home))
    has(out, "1 session, 1 memory")
    local list = io.popen(("cd %s && find ann* -printf '%%M %%p\\n' | sort -k2"):format(home))
    local rows = list:read "a"
    list:close()
    for line in rows:gmatch "[^\n]+" do
      local mode = line:match "^%S+"
      assert.is_true(mode == "drwx------" or mode == "-rw-------", line)
    end
    has(rows, "ann/sessions/0001-trip.md")
    has(rows, "ann/manifest.json")
    has(cli.fails(1, ("user export ann %s/ann"):format(home)), "there already")
    cli.fails(3, ("user export nobody %s/none"):format(home))
    local left = io.popen(("ls -d %s/none* 2>/dev/null"):format(home))
    assert.equal("", left:read "a")
    left:close()
  end)

  it("erase a user, unless a hold keeps something", function()
    local id = cli.done "hold add 'case 7' --user ann":match "%x+"
    has(cli.fails(7, "user erase ann --yes"), "hold list")
    has(cli.fails(7, "forget ann --yes"), "hold")
    has(cli.done "hold list", "case 7")
    cli.done("hold release " .. id)
    has(cli.done "user erase ann --dry-run", "would be destroyed")
    has(cli.done "memory show coder --user ann", "aisle")
    has(cli.done(("user erase ann --yes --receipt %s/receipt.json"):format(home)),
      "no copy of the logs opens")
    local file = assert(io.open(home .. "/receipt.json"))
    local receipt = assert(decode(file:read "a"))
    file:close()
    assert.same({ 1, 1, true }, { receipt.sessions, receipt.memories, receipt.shredded })
    has(cli.fails(3, "memory show coder --user ann"), "nothing was ever kept")
    has(cli.done "user erase ann --yes", "erased before")
  end)

  it("say that nobody was erased when there is nobody of that name", function()
    for _, how in ipairs { "--dry-run", "--yes" } do
      has(cli.fails(3, ("user erase anna %s --receipt %s/none.json"):format(how, home)),
        "nobody was erased")
    end
    assert.is_nil(io.open(home .. "/none.json"))
    has(cli.done "memory show coder --user ann", "aisle")
  end)

  it("give a receipt that the root key of the audit proves", function()
    cli.configure [[return { guard = "standard" }]]
    local key = cli.done "access key new ann --role editor":match "sesk_%S+"
    cli.done "access grant ann viewer --only other"
    local function as(words)
      return select(3, cli.sessile(words, nil, "env SESSILE_TOKEN=" .. key))
    end
    assert.equal(0, as "list")
    for _, user in ipairs { "ann", "anna" } do -- who may not is told nothing
      assert.equal(7, as(("user erase %s --yes"):format(user)))
    end
    local root = cli.done "audit root":match "%x+"
    local file = home .. "/receipt.json"
    cli.done "user erase ann --dry-run"
    local out = cli.done("user erase ann --yes --receipt " .. file)
    local told = {}
    for _, event in ipairs(cli.json "audit show --operation erase") do
      if event.outcome == "success" then
        told[#told + 1] = { event.details.dry_run, event.details.sessions }
      end
    end
    assert.same({ { 1, 1 }, { nil, 1 } }, told) -- no event takes a rehearsal for the erasure
    has(out, "1 consent, 1 grant, 1 access key, 0 locks")
    has(out, "in the receipt, of event")
    assert.equal(7, as "list")
    expect.has_not(cli.done "access list", "key ")
    local check = ("audit prove --check %s --root %s --store /nowhere"):format(file, root)
    has(cli.done(check), "erase")
    cli.write(file, (cli.read(file):gsub('"sessions":1', '"sessions":0')))
    has(cli.fails(5, check), "says something else")
  end)

  it("take no consent without the words", function()
    has(cli.fails(1, "consent give coder '' --user ann"), "words")
  end)

  it("withdraw a consent with all that is remembered, or only stop it", function()
    cli.done "consent withdraw coder --user ann --keep"
    has(cli.done "consent list", "withdrawn")
    has(cli.done "memory show coder --user ann", "aisle")
    has(cli.done "consent withdraw coder --user ann --yes", "1 erased")
    assert.is_nil(cli.done("memory show coder --user ann"):find("aisle", 1, true))
  end)

  it("purge what is older than a retention", function()
    has(cli.fails(2, "purge --old"), "no retention")
    has(cli.done "purge --old --keep-sessions 1d --dry-run", "0 sessions")
    has(cli.done "purge --old --keep-sessions 1ms --keep-memory 1ms --yes", "1 session, 1 entry")
  end)

  it("purge what the configuration no longer keeps", function()
    cli.configure [[return { guard = { profile = "standard", retention = { sessions = "90d",
      users = { ann = { sessions = "1ms", memory = false } } } } }]]
    has(cli.done "purge --old --dry-run", "1 session, 0 entries")
    has(cli.fails(2, "purge --old --agent coder"), "rules for agents and users")
  end)
end)
