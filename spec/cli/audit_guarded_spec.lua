-- sessile audit on stores with a guard: what was done around it, an audit that is gone, one in
-- another store, and a copy.
-- Own guard: it sets them.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local sessile = require "sessile"
local done, has, json = cli.done, expect.has, cli.json

local home

local function key()
  return sessile.key.file(home .. "/config/sessile/key")
end

local function guarded(text)
  cli.configure(('return { guard = %s }'):format(text or '"standard"'))
end

-- Runs f with the store as somebody opens it who has the key and sets no guard.
local function around(f)
  done "new --id around"
  local store <close> = assert(sessile.open(home .. "/data/sessile", { key = key() }))
  assert(store:guard { require_principal = false }) -- none of the configuration's, and no audit
  f(store)
end

describe("sessile audit verify --deep", function()
  cli.each_test(function(path) home = path end)

  it("says that each change has its event", function()
    guarded()
    done "new --id a"
    done("append a -", "hello")
    done "label a 1 here"
    done "fork a --id b"
    done "delete a --yes"
    local out = done "audit verify --deep"
    has(out, "each has its event")
    for line in out:gmatch "[^\n]+" do assert.truthy(#line <= 80, line) end
    local report = json "audit verify --deep"
    assert.is_true(report.complete)
    assert.same({}, report.lost)
    assert.truthy(report.changes >= 3)
    assert.is_nil(json("audit verify").complete)
  end)

  it("names a change that was made around the guard", function()
    cli.files_only()
    guarded()
    done "new --id a"
    around(function(store)
      local s <close> = assert(store:resume { id = "a" })
      assert(s:append { role = "user", content = "unseen" })
    end)
    done("append a -", "seen")
    local out, _, code = cli.sessile "audit verify --deep"
    assert.equal(5, code)
    has(out, "chain intact")
    has(out, "1 WITHOUT EVENT")
    has(out, "a: entry 00000001, without an event")
  end)
end)

describe("sessile audit", function()
  cli.each_test(function(path) home = path end)

  it("says that the audit of a guarded store is gone", function()
    cli.files_only()
    guarded()
    done "new --id a"
    has(done "guard status", "root key")
    assert(os.execute(("rm -r %s/data/sessile/agents/guard.audit"):format(home)))
    local said = cli.fails(5, "audit verify", "the audit of this store is gone")
    has(said, "guard.audit")
    cli.fails(5, "audit root", "gone") -- the commands have begun another one since
    has(done "guard status", "GONE")
    assert.is_true(json("guard status").audit_gone)
  end)

  it("reads the store that keeps the audit", function()
    guarded(('{ profile = "standard", audit = { store = %q } }'):format(home .. "/kept"))
    done "new --id a"
    done("append a -", "hello")
    has(done "audit tail --operation append", "append")
    assert.equal(64, #json("audit root").root)
    assert.equal(json("audit root").root, json("guard status").audit_root)
    assert.is_true(json("audit verify --deep").complete)
  end)

  it("writes nothing into a copy", function()
    cli.files_only()
    guarded()
    done "new --id a"
    local copy = home .. "/copy"
    assert(os.execute(("cp -a %s/data/sessile %s"):format(home, copy)))
    local function bytes()
      local pipe <close> = io.popen(("cd %s && find agents/guard.* audit-* blobs -type f "
        .. "2>/dev/null | sort | xargs md5sum"):format(copy))
      return pipe:read "a"
    end
    local before = bytes()
    has(done("audit verify --copy --store " .. copy), "chain intact")
    done("audit head --copy --store " .. copy)
    assert.equal(before, bytes())
    assert.truthy(#before > 0)
  end)

  it("shows ids, and whom a grant or a lock is about", function()
    guarded()
    done "new --id a --user ann"
    done("append a - --user ann", "hello")
    done "access grant bob viewer"
    done "access lock bob"
    local out = done "audit show --no-pager"
    assert.matches("^ID +TIME", out)
    assert.matches("00%-000/%x+ +%S+ %S+ +%S+ +grant +o_%w+… viewer grant %x+", out)
    has(done "audit tail --operation lock", "o_")
    local function about(user)
      local operations = {}
      for _, event in ipairs(json("audit show --about " .. user)) do
        operations[event.operation] = true
      end
      return operations
    end
    assert.is_true(about "ann".append)
    assert.is_nil(about "ann".grant)
    assert.same({ grant = true, lock = true }, about "bob")
    assert.same({}, json "audit show --about nobody")
  end)
end)
