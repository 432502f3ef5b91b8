-- memory.lua: what an agent knows of a person. It is remembered at a compaction, recalled by
-- another process in another session, edited by her, corrected and forgotten.
--
--     build/bin/sessile run examples/memory.lua              # all steps, each in its own process
--     build/bin/sessile run examples/memory.lua FOLDER STEP  # one, in FOLDER
--
-- The model is a script: what it notes is in NOTES.
local sessile = require "sessile"

local folder, step = arg[1], arg[2]

-- What the model notes when it hears this. The last note is wrong: it is Ben who uses Emacs.
local NOTES = {
  { "switched to Vim", "fact | editor | Ann switched to Vim for Lua. | Which editor? IDE" },
  { "never deploy", "procedure | - | Never deploy on Fridays. | release, roll-out" },
  { "allergic", "fact | - | Ann is allergic to walnuts. | food, cake" },
  { "Emacs", "fact | editor | Ann uses Emacs and is happy. | Which editor? IDE" },
}

local function note(text)
  local lines = {}
  for line in text:gmatch "[^\n]+" do
    for _, one in ipairs(NOTES) do
      local number = line:find(one[1], 1, true) and line:match "^%[(%d+)%] %S+ user"
      lines[#lines + 1] = number and ("%s | %s"):format(number, one[2])
    end
  end
  return #lines > 0 and table.concat(lines, "\n") or "none"
end

local function model(request)
  local last = request.messages[#request.messages].content
  if request.purpose == "remember" then
    return note(last)
  elseif request.purpose then -- a summary; tidy
    return "We talked about Ann's work."
  end
  local known = last:match "fact%] (.-)\n" or last:match "fact%] (.-)$"
  return known and ("I know: %s."):format(known)
    or "I see. " .. ("That is a long story, and I answer at length. "):rep(20)
end

local function open()
  return assert(sessile.open(folder .. "/store", {
    key = sessile.key.file(folder .. "/key"), model = model, window = 2000, reserve = 200,
    policy = "tiered", memory = { enabled = true, policy = "memory", recall = { budget = 200 } },
  }))
end

local function ask(session, text)
  local outcome = assert(session:send(text))
  print("Ann    " .. text)
  if outcome.compaction then
    print(("       compacted, %d tokens to %d; what was said is remembered: %d notes"):format(
      outcome.tokens.before, outcome.tokens.after, outcome.remembered.written))
  elseif outcome.recalled then
    local message = assert(session:entry(outcome.recalled.id)).data
    print(("recall %d notes, %d of 200 tokens; the model reads:\n%s"):format(
      outcome.recalled.recalled, outcome.recalled.tokens, message.content))
    print("model  " .. outcome.text)
  end
end

local steps = {}

function steps.first()
  local store <close> = open()
  local session = assert(store:session { id = "monday", agent = "coder", user = "ann" })
  assert(session:memory { consent = "yes, take notes" })
  ask(session, "I switched to Vim for Lua last month. And please never deploy on Fridays.")
  for _, text in ipairs { "I am allergic to walnuts.", "Tests.", "Docs.", "Go on.", "On." } do
    ask(session, text)
  end
end

function steps.second()
  local store <close> = open()
  local session = assert(store:session { id = "days-later", agent = "coder", user = "ann" })
  ask(session, "Which editor did I say I use for Lua?")
  ask(session, "Ben uses Emacs and is happy.")
  local _, heard = session:close() -- what was not heard yet is heard now
  print(("closed; %d note was written, and took the place of %d"):format(heard.written,
    heard.ended))
end

function steps.person()
  local store <close> = open()
  local memory = assert(store:memory { agent = "coder", user = "ann" })
  local page = assert(memory:markdown()) -- `sessile memory edit coder --user ann` is an editor
  local edited = page:gsub("walnuts", "walnuts and hazelnuts")
  local done = assert(memory:edit(page, edited))
  print(("MEMORY.md edited: %d entry replaced"):format(done.replaced))
  print("editor is: " .. memory:read("editor").value)
  assert(memory:reject("editor", "that was Ben"))
  print("rejected; editor is: " .. memory:read("editor").value)
  print((assert(memory:markdown()):gsub("%s*$", "")))
end

function steps.forget()
  local store <close> = open()
  print(("forgotten: %d sessions and memories of Ann"):format(assert(store:forget "ann")))
  local _, why, code = store:memory { agent = "coder", user = "ann", must_exist = true }
  print("her memory cannot be opened: " .. code .. ": " .. why)
  local found = io.popen("grep -rlE 'to Vim|walnut|Fridays|uses Emacs' '" .. folder .. "' | wc -l")
  print(("files with her words: %d"):format(found:read "n"))
end

if step then
  return steps[step]()
end
folder = io.popen("mktemp -d"):read "l"
assert(os.execute(("umask 077; od -An -tx1 -N32 /dev/urandom | tr -d ' \\n' > '%s/key'")
  :format(folder)))
for _, name in ipairs { "first", "second", "person", "forget" } do
  print(("--- %s"):format(name))
  io.stdout:flush()
  assert(os.execute(("'%s' '%s' '%s' '%s' %s"):format(arg[-2], arg[-1], arg[0], folder, name)))
end
assert(os.execute(("rm -r '%s'"):format(folder)))
