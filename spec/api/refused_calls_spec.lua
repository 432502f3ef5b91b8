-- A refusal of the guard reaches the caller whole: nil, a sentence, the code, when to try again and
-- its rule. Each public method of stores, sessions and memories is refused once, by a rule of the
-- host's; those with a limit are called once too often.
-- Own guard: it sets them.
-- Files only: rules are files.

local core = require "sessile.core"
local sessile = require "sessile"
local temp = require "spec.support.temp"
local user = require("spec.support.messages").user

local SENTENCE = "a rule of this store's host does not allow this"
-- What opens handles is allowed, so that their methods can be refused.
local OPENS = [[return { authorize = function(who, operation)
  return operation.name == "create" or operation.name == "session_open"
    or operation.name == "resume" or operation.name == "memory_open"
    or operation.name == "append" or operation.name == "memory_write", "no"
end }]]

local function nothing() end

local s, child, m, view, host

local session_calls = {
  fork = function() return s:fork("00000001", { id = "f" }) end,
  child = function() return s:child() end,
  subsessions = function() return s:subsessions() end,
  turn = function() return s:turn { user "x" } end,
  compact = function() return s:compact() end,
  plan = function() return s:plan() end,
  branch = function() return s:branch "00000001" end,
  tree = function() return s:tree() end,
  path = function() return s:path "00000001" end,
  children = function() return s:children "00000001" end,
  siblings = function() return s:siblings "00000001" end,
  common_ancestor = function() return s:common_ancestor("00000001", "00000001") end,
  leaves = function() return s:leaves() end,
  checkpoint = function() return s:checkpoint() end,
  checkpoints = function() return s:checkpoints() end,
  restore = function() return s:restore "00000001" end,
  delete_checkpoint = function() return s:delete_checkpoint "00000001" end,
  pending_runs = function() return s:pending_runs() end,
  answer = function() return s:answer "x" end,
  log = function() return s:log() end,
  why = function() return s:why "00000001" end,
  uncompact = function() return s:uncompact() end,
  messages = function() return s:messages() end,
  context = function() return s:context() end,
  entry = function() return s:entry "00000001" end,
  entries = function() return s:entries() end,
  clear = function() return s:clear() end,
  write = function() return s:write { { custom = { x = 1 } } } end,
  pop = function() return s:pop() end,
  set_title = function() return s:set_title "x" end,
  watch = function() return s:watch { timeout_ms = 0 } end,
  event_count = function() return s:event_count() end,
  tokens = function() return s:tokens() end,
  usage = function() return s:usage() end,
  custom = function() return s:custom { x = 1 } end,
  label = function() return s:label("00000001", "x") end,
  unlabel = function() return s:unlabel("00000001", "x") end,
  life = function() return s:life() end,
  set_ttl = function() return s:set_ttl "1d" end,
  archive = function() return s:archive() end,
  labels = function() return s:labels() end,
  pin = function() return s:pin "00000001" end,
  unpin = function() return s:unpin "00000001" end,
  settings = function() return s:settings() end,
  metadata = function() return s:metadata() end,
  suspend = function() return s:suspend { reason = "x" } end,
  suspended = function() return s:suspended() end,
  resume_with = function() return s:resume_with { user "x" } end,
  cancel = function() return s:cancel "x" end,
  head = function() return s:head() end,
  state = function() return s:state() end,
  recall = function() return s:recall { question = "x" } end,
  merge = function() return child:merge { summary = "x" } end,
  discard = function() return child:discard() end,
}
-- What is not asked about, or gives the refusal in a value of its own.
local session_others = {
  append = "allowed above", memory = "allowed above", close = "a handle's own",
  sync = "a handle's own",
  set_timeout = "a handle's own", send = "in its outcome, below", save = "nothing to save",
  export = "raises in the iterator of the host's", remember = "needs a policy",
}

local store_calls = {
  put = function() return view:put(s, { id = "p" }) end,
  list = function() return view:list() end,
  search = function() return view:search "x" end,
  delete = function() return view:delete "s" end,
  deletions = function() return view:deletions() end,
  nodes = function() return view:nodes() end,
  standbys = function() return view:standbys() end,
  changed = function() return view:changed { s } end,
  clock = function() return view:clock() end,
  undelete = function() return view:undelete "s" end,
  grant = function() return view:grant { role = "viewer", user = "bob" } end,
  grants = function() return view:grants() end,
  ungrant = function() return view:ungrant "00000001" end,
  access_key = function() return view:access_key { user = "bob", roles = "viewer" } end,
  access_keys = function() return view:access_keys() end,
  revoke_key = function() return view:revoke_key "x" end,
  lock = function() return view:lock { user = "bob" } end,
  unlock = function() return view:unlock { user = "bob" } end,
  locks = function() return view:locks() end,
  audit = function() return view:audit() end,
  audit_verify = function() return view:audit_verify { root = ("0"):rep(64) } end,
  audit_root = function() return view:audit_root() end,
  audit_head = function() return view:audit_head { root = ("0"):rep(64) } end,
  audit_seal = function() return view:audit_seal() end,
  audit_prove = function() return view:audit_prove "00-000/00000001" end,
  consent = function() return view:consent { user = "ann", given = true } end,
  consents = function() return view:consents() end,
  hold = function() return view:hold { user = "ann", reason = "x" } end,
  holds = function() return view:holds() end,
  release = function() return view:release "00000001" end,
  purge_retention = function() return view:purge_retention { sessions = "1d" } end,
  export_user = function() return view:export_user("ann", nothing) end,
  erase_user = function() return view:erase_user "bob" end,
  may = function() return view:may("x", { permission = "view_session" }) end,
  purge = function() return view:purge() end,
  purge_forgotten = function() return view:purge_forgotten() end,
  check = function() return view:check() end,
  keys = function() return view:keys() end,
  rotate = function() return view:rotate() end,
  reseal = function() return view:reseal() end,
  forget = function() return view:forget "bob" end,
  backup = function() return view:backup(os.tmpname() .. ".d") end,
}
local store_others = {
  create = "allowed above", resume = "allowed above", session = "allowed above",
  memory = "allowed above", guard = "the host's", screen = "writes nothing", as = "gives less",
  renew = "a view's own", revoke = "a view's own", who = "a view's own", can = "a permission",
  note = "goes into the audit", count = "reads no session", count_messages = "reads no session",
  close = "a handle's own",
}

local memory_calls = {
  read = function() return m:read "k" end,
  get = function() return m:get "00000001" end,
  list = function() return m:list() end,
  search = function() return m:search "x" end,
  history = function() return m:history "k" end,
  why = function() return m:why "k" end,
  delete = function() return m:delete "k" end,
  clear = function() return m:clear() end,
  erase = function() return m:erase "k" end,
  delete_from = function() return m:delete_from "s" end,
  models = function() return m:models() end,
  markdown = function() return m:markdown() end,
  watch = function() return m:watch { timeout_ms = 0 } end,
  stats = function() return m:stats() end,
  pin = function() return m:pin "k" end,
  unpin = function() return m:unpin "k" end,
  approve = function() return m:approve "k" end,
  reject = function() return m:reject "k" end,
  restore = function() return m:restore "k" end,
  confirm = function() return m:confirm "k" end,
  consent = function() return m:consent(false) end,
}

-- The methods of a class that meta.lua describes.
local function described(class)
  local file <close> = assert(io.open(os.getenv "SESSILE_ROOT" .. "/lua/sessile/meta.lua"))
  local names = {}
  for name in file:read "a":gmatch("\nfunction " .. class .. ":([%w_]+)%(") do
    names[#names + 1] = name
  end
  assert(#names > 10)
  return names
end

describe("what a rule of the host's refuses", function()
  before_each(function()
    local folder = temp.dir()
    local path = folder .. "/rule.lua"
    local file <close> = assert(io.open(path, "w"))
    file:write(OPENS)
    file:close()
    host = assert(sessile.open(folder .. "/store", { policy = "sliding_window",
      key = sessile.key.secret("hex:" .. ("ab"):rep(32)),
      guard = { authorize = path, consent = false, rate_limits = false, screens = false } }))
    local made = assert(host:create { id = "s", user = "ann" })
    assert(made:append(user "hello"))
    assert(made:child { id = "c" }):close()
    made:close()
    local memory = assert(host:memory { user = "ann", consent = "yes" })
    assert(memory:write("k", "v"))
    view = assert(host:as { user = "ann", roles = "admin" })
    s = assert(view:resume { id = "s", user = "ann" })
    child = assert(view:resume { id = "c", user = "ann" })
    m = assert(view:memory { user = "ann" })
  end)
  after_each(function()
    view:close()
    host:close()
    temp.clean()
  end)

  for class, calls in pairs { Session = session_calls, Store = store_calls,
    Memory = memory_calls } do
    for name, call in pairs(calls) do
      it(("reaches the caller of %s:%s whole"):format(class, name), function()
        local got = table.pack(call())
        assert.same({ n = 5, nil, SENTENCE, "EDENIED", nil, "authorize:no" },
          { n = 5, table.unpack(got, 1, 5) })
      end)
    end
  end

  it("is asked of each method", function()
    for class, lists in pairs { Session = { session_calls, session_others },
      Store = { store_calls, store_others } } do
      for _, name in ipairs(described(class)) do
        assert.is_true((lists[1][name] or lists[2][name]) ~= nil,
          ("%s:%s has no call here"):format(class, name))
      end
    end
  end)

  it("reaches the caller of a send", function()
    local got = table.pack(s:send("hello", { model = function() return "x" end }))
    assert.same({ nil, SENTENCE, "EDENIED", nil, "authorize:no" }, { table.unpack(got, 1, 5) })
  end)
end)

describe("what a limit refuses", function()
  local store

  -- One rule allows little, the others everything.
  local function open(rule)
    local limits = { session_creation = "off", checkpoint_writes = "off", memory_reads = "off",
      memory_writes = "off", branch_operations = "off", searches = "off", exports = "off" }
    limits[rule] = "2/day"
    store = assert(sessile.open("ram:", { key = false }))
    assert(store:guard { limits = limits })
    view = assert(store:as { user = "ann", roles = "editor" })
    s = assert(view:create { id = "s" })
    assert(s:append(user "hello"))
    m = assert(view:memory { user = "ann", consent = "yes" })
  end
  after_each(function()
    view:close()
    store:close()
  end)

  for name, row in pairs {
    ["store:create"] = { "session_creation", function() return view:create() end },
    ["store:session"] = { "session_creation", function()
      return view:session(tostring(core.now()) .. math.random(1 << 40))
    end },
    ["session:checkpoint"] = { "checkpoint_writes", function() return s:checkpoint() end },
    ["session:fork"] = { "branch_operations", function() return s:fork("00000001") end },
    ["session:child"] = { "branch_operations", function() return s:child() end },
    ["session:branch"] = { "branch_operations", function() return s:branch "00000001" end },
    ["store:search"] = { "searches", function() return view:search "hello" end },
    ["store:may"] = { "exports", function()
      return view:may("x", { permission = "view_session", limit = "exports" })
    end },
    ["memory:write"] = { "memory_writes", function() return m:write("k", "v") end },
    ["memory:list"] = { "memory_reads", function() return m:list() end },
    ["memory:search"] = { "memory_reads", function() return m:search "v" end },
    ["session:recall"] = { "memory_reads", function() return s:recall { question = "v" } end },
    ["store:export_user"] = { "exports", function()
      return view:export_user("ann", function() return true end)
    end },
  } do
    it(("tells the caller of %s when, and by which rule"):format(name), function()
      local got
      open(row[1])
      for _ = 1, 4 do
        got = table.pack(row[2]())
      end
      assert.same({ nil, "ELIMIT", row[1] }, { got[1], got[3], got[5] }, got[2])
      assert.is_true(math.type(got[4]) == "integer" and got[4] > 0)
    end)
  end
end)
