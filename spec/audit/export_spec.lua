-- Events in the formats of other programs, against what those say of them.
-- Own guard: it sets them.

local audited = require "spec.support.audited"
local expect = require "spec.support.expect"
local grammars = require "spec.audit.grammars"
local paths = require "sessile.paths"
local schemas = require "spec.audit.schemas"
local sessile = require "sessile"
local temp = require "spec.support.temp"

-- What somebody may call themselves, a session or a request, to say something else with it.
local HOSTILE = {
  "two\nlines", "two\r\nlines", "pipe|and|pipe", "back\\slash", "equals=sign", "quote\"d",
  "x\",\"outcome\":\"success", "outcome=success act=nothing", "\\", "\\\\n", "a\0b", "\27[31mred",
  "\u{2028}line\u{2029}separators\u{85}", "\u{202e}right to left", "umlaut äöü, 漢字, 🙂",
  "not \xff utf-8", "]]> <x>", "%n%s", "a\tb", " = ", "=", "|", "cs1Label=x", "<13>1 - - - - - -",
}

local ORDINARY = [[
open method=os
create user=ann agent=coder session=bug-42 role=editor permission=create_session method=token key=k1
append user=ann agent=coder session=bug-42 entry=00000001 permission=modify_session
append user=bob actor=bot agent=coder session=bug-42 outcome=failure code=DENIED source=10.0.0.7
search user=bob outcome=failure code=LIMIT rule=searches source=2001:db8::7 request=req-17
read user=ann outcome=success
delete user=ann session=bug-42 outcome=intent details={"bytes":120,"soft":false}
grant user=ann role=admin permission=manage_access details={"role":"viewer"}
lock user=ann permission=manage_access
revoke user=ann role=admin
authenticate user=ann method=token outcome=failure code=DENIED source=edge-1
mail_sent user=ann outcome=unknown
]]

local function events_of(lines)
  local dir = temp.dir()
  audited.write(dir, audited.KEY, lines)
  local store <close> = assert(sessile.open(dir, { key = audited.key() }))
  local list = {}
  for event in assert(store:audit {}) do
    list[#list + 1] = event
  end
  return list
end

-- Every field of an event that somebody else chooses.
local function hostile_lines()
  local lines = {}
  for _, text in ipairs(HOSTILE) do
    local words = { "append" }
    for _, name in ipairs { "user", "actor", "agent", "session", "request", "source", "key", "rule",
      "method", "role" } do
      words[#words + 1] = name .. "=" .. audited.value(text)
    end
    lines[#lines + 1] = table.concat(words, " ") .. " outcome=failure code=DENIED"
  end
  return table.concat(lines, "\n") .. "\n"
end

-- Raises unless a value is valid.
local function validator(schema)
  local list = assert(sessile.screen { schemas = { metadata = schema } })
  return function(text)
    local outcome = assert(list:run { kind = "metadata", json = true, text = text })
    local found = outcome.findings[1]
    assert.equal("pass", outcome.verdict, found and ("%s %s\n%s"):format(
      found.pointer or "", found.message or "", text))
  end
end

-- One line that a program which reads lines sees as one, whatever it calls the end of a line.
local function one_line(text)
  assert.is_nil(text:find "[\r\n\11\12]", text)
  for _, ends in ipairs { "\u{85}", "\u{2028}", "\u{2029}" } do
    expect.has_not(text, ends)
  end
  assert.truthy(utf8.len(text))
end

describe("an event", function()
  local ordinary, hostile
  setup(function()
    ordinary, hostile = events_of(ORDINARY), events_of(hostile_lines())
    assert.equal(12, #ordinary)
    assert.equal(#HOSTILE, #hostile)
  end)
  teardown(temp.clean)

  local function each(check)
    for _, list in ipairs { ordinary, hostile } do
      for _, event in ipairs(list) do
        check(event)
      end
    end
  end

  it("is one line in every format, whoever chose its names", function()
    each(function(event)
      for _, format in ipairs { "jsonl", "ecs", "ocsf", "cef", "syslog" } do
        one_line(sessile.audit_export(event, format))
      end
    end)
  end)

  it("is of a kind, whatever operation the engine has", function()
    local event, names = require "sessile.audit.event", 0
    for line in io.lines "engine/guard/operations.def" do
      local name = line:match "^OPERATION%(.* ([%u_]+)_[RWM], [^,]+, %u+%)"
      if name then
        names = names + 1
        assert.not_equal("other", event.kind { operation = name:lower() }, name)
      end
    end
    assert.is_true(names > 100)
    assert.equal("other", event.kind { operation = "host:mail_sent" })
  end)

  it("in ocsf says which right was given", function()
    local made
    each(function(event)
      made = event.operation == "grant" and sessile.decode(sessile.audit_export(event, "ocsf"))
        or made
    end)
    assert.same({ "viewer" }, made.privileges)
    assert.equal("ann", made.actor.user.name)
  end)

  it("in jsonl has all that it says, and nothing else", function()
    each(function(event)
      local back = assert(sessile.decode(sessile.audit_export(event, "jsonl")))
      for name, value in pairs(event) do
        if name ~= "json" and name ~= "time" and name ~= "name" then
          assert.same(value, back[name], name)
        end
      end
      assert.is_nil(back.json)
    end)
    local second = sessile.decode(sessile.audit_export(ordinary[2], "jsonl"))
    assert.equal("ann", second.name)
    assert.equal("00-000/00000003", second.id)
    assert.matches("^%d+%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%dZ$", second.timestamp)
  end)

  if paths.schema_library() then
    it("in ecs is valid under ECS 8", function()
      local valid = validator(schemas.ecs)
      each(function(event)
        local line = sessile.audit_export(event, "ecs")
        valid(line)
        local made = sessile.decode(line).event
        for _, kind in ipairs(made.type) do
          assert.truthy(schemas.ecs_types[made.category[1]][kind], kind)
        end
      end)
    end)

    it("in ocsf is valid under the class of OCSF 1.6 that it names", function()
      local valid, seen = {}, {}
      for uid, schema in pairs(schemas.ocsf) do
        valid[uid] = validator(schema)
      end
      each(function(event)
        local line = sessile.audit_export(event, "ocsf")
        local made = sessile.decode(line)
        seen[made.class_uid] = true
        assert(valid[made.class_uid], line)(line)
        assert.equal(made.class_uid * 100 + made.activity_id, made.type_uid)
      end)
      assert.same({ [6003] = true, [3002] = true, [3005] = true }, seen)
    end)

    it("has specimens that are valid", function()
      validator(schemas.ecs)(require "sessile.audit.ecs".specimen)
      validator(schemas.ocsf[6003])(require "sessile.audit.ocsf".specimen)
    end)
  else
    pending("in ecs and ocsf is valid under their schemas: schema.so was not built")
  end

  it("in cef escapes what would begin a field", function()
    each(function(event)
      local made = grammars.cef(sessile.audit_export(event, "cef"))
      assert.equal("sessile", made.vendor)
      assert.equal(event.operation, made.class)
      assert.equal(event.outcome, made.extension.outcome)
      assert.equal(event.operation, made.extension.act)
      assert.equal(event.id, made.extension.externalId)
      assert.equal(event.user, made.extension.suid)
    end)
    local made = grammars.cef(sessile.audit_export(hostile[3], "cef"))
    assert.equal("pipe|and|pipe", made.extension.suser)
    made = grammars.cef(sessile.audit_export(hostile[8], "cef"))
    assert.equal("outcome=success act=nothing", made.extension.suser)
    assert.equal("failure", made.extension.outcome)
    made = grammars.cef(sessile.audit_export(hostile[1], "cef"))
    assert.equal("two\nlines", made.extension.cs2)
    made = grammars.cef(sessile.audit_export(ordinary[4], "cef"))
    assert.equal("10.0.0.7", made.extension.src)
    made = grammars.cef(sessile.audit_export(ordinary[5], "cef"))
    assert.equal("2001:db8::7", made.extension.c6a2)
    grammars.cef(require "sessile.audit.cef".specimen)
  end)

  it("in syslog is a message of RFC 5424 around cef", function()
    each(function(event)
      local made = grammars.syslog(sessile.audit_export(event, "syslog", { host = "node 1\n" }))
      assert.equal(13, made.facility)
      assert.equal(event.outcome == "failure" and 4 or 5, made.severity)
      assert.equal("node1", made.host)
      assert.equal("sessile", made.app)
      assert.equal(event.operation, made.id)
      grammars.cef(made.message)
    end)
    grammars.syslog(require "sessile.audit.syslog".specimen)
  end)

  it("says in each format what the specimen of that format says", function()
    local event = { id = "00-000/0000002a", time = 1769954602123, operation = "append",
      outcome = "failure", code = "DENIED", user = "u_abc", name = "ann", agent = "coder",
      permission = "modify_session", session = "bug-42" }
    for _, format in ipairs { "jsonl", "ecs", "ocsf", "cef", "syslog" } do
      assert.equal(require("sessile.audit." .. format).specimen,
        sessile.audit_export(event, format), format)
    end
  end)

  it("has no other format", function()
    local ok, message = pcall(sessile.audit_export, ordinary[1], "xml")
    assert.is_false(ok)
    expect.has(message, "jsonl")
  end)
end)

describe("the grammars", function()
  it("refuse what the two do not allow", function()
    for _, bad in ipairs { "CEF:0|a|b|1|c|d|5", "CEF:1|a|b|1|c|d|5|", "CEF:0|a|b|1|c|d|11|",
      "CEF:0|a|b|1|c|d|5|x=1 y=a=b", "CEF:0|a|b|1|c|d|5|x=\\q", "CEF:0|a|b|1|c|d|5|x=a\nb",
      "CEF:0|a|b|1|c|d|5|x=1 x=2", "CEF:0|a|b|1|c|d|5|=1" } do
      assert.is_false((pcall(grammars.cef, bad)), bad)
    end
    for _, bad in ipairs { "<192>1 2026-02-01T14:03:22.1Z - - - - - x",
      "<01>1 2026-02-01T14:03:22.1Z - - - - - x", "<13>2 2026-02-01T14:03:22.1Z - - - - - x",
      "<13>1 2026-13-01T14:03:22.1Z - - - - - x", "<13>1 2026-02-01T14:03:22.1Z - - - - [x x",
      "<13>1 2026-02-01T14:03:22.1Z - - - - - x\ny", "<13>1 2026-02-01T14:03:22.1Z - - - -" } do
      assert.is_false((pcall(grammars.syslog, bad)), bad)
    end
  end)
end)
