-- remember_said: keeps what users ask to be remembered, and how they want things done.
--
-- Use it   as a policy of memories, when nobody should be asked: no model, no cost, no surprise.
-- Cost     one pass over what users said since; one search for each sentence that is kept.
-- Does     keeps sentences of users as they were said: "remember that …", "my name is …",
--          "call me …", "I prefer …", "always …", "never …"; in German "merk dir …",
--          "ich heiße …", "nenn mich …", "ich bevorzuge …", "immer …", "nie …". A name goes to
--          the key `name`.
-- Never    keeps questions, code, quoted lines, or what is in a long message: that was pasted.

-- Beginnings of a sentence, lower case, without "please"; what to keep: kind and key.
local RULES = {
  { "remember that ", "fact" }, { "remember: ", "fact" }, { "remember, ", "fact" },
  { "don't forget that ", "fact" }, { "do not forget that ", "fact" }, { "note that ", "fact" },
  { "my name is ", "fact", "name" }, { "call me ", "fact", "name" },
  { "i prefer ", "fact" }, { "i'd prefer ", "fact" }, { "i would prefer ", "fact" },
  { "always ", "procedure" }, { "never ", "procedure" }, { "from now on", "procedure" },
  { "merk dir", "fact" }, { "merke dir", "fact" }, { "vergiss nicht, dass ", "fact" },
  { "denk daran, dass ", "fact" }, { "denke daran, dass ", "fact" },
  { "mein name ist ", "fact", "name" }, { "ich heiße ", "fact", "name" },
  { "ich heisse ", "fact", "name" }, { "nenn mich ", "fact", "name" },
  { "nenne mich ", "fact", "name" }, { "ich bevorzuge ", "fact" }, { "mir ist lieber", "fact" },
  { "immer ", "procedure" }, { "nie ", "procedure" }, { "niemals ", "procedure" },
  { "ab jetzt ", "procedure" }, { "ab sofort ", "procedure" },
}
local POLITE = { "please,? ", "bitte,? ", "and ", "und ", "hi,? ", "hello,? ", "hallo,? ", "ok,? ",
  "hey,? " }
local NOT = { "^never mind", "^nie und nimmer", "^always welcome", "^never heard" }

local function fold(text)
  return ((" " .. text:lower() .. " "):gsub("[%s%p%c]+", " "))
end

-- The sentences of a text, without code and quoted lines.
local function sentences_of(text)
  local list = {}
  text = text:gsub("```.-```", "\n"):gsub("```.*", "\n")
  for line in text:gmatch("[^\r\n]+") do
    if not line:find("^%s*>") then
      -- a sentence ends before a blank, so "3.5" and "file.lua" stay whole
      local cut = (line .. "\n"):gsub("([.!?])%s+", "%1\n")
      for sentence, mark in cut:gmatch("%s*([^\n]-)([.!?]*)\n") do
        list[#list + 1] = { text = sentence, asks = mark:find("?", 1, true) }
      end
    end
  end
  return list
end

-- The rule of a sentence, or nil.
local function rule_of(sentence)
  local lower = sentence.text:lower()
  for _ = 1, 3 do
    for _, word in ipairs(POLITE) do lower = lower:gsub("^" .. word, "") end
  end
  for _, pattern in ipairs(NOT) do
    if lower:find(pattern) then return nil end
  end
  for _, rule in ipairs(RULES) do
    if lower:sub(1, #rule[1]) == rule[1] and #lower > #rule[1] + 1 then return rule end
  end
end

-- Writes a sentence, or confirms what says the same.
local function keep(sentence, rule, message, seen, ctx)
  local room, key, value = ctx.memory.room(), rule[3], fold(sentence)
  local holder = key and ctx.memory.read(key)
  holder = holder and holder.memory == room.memory and holder or nil
  local known = ctx.memory.search(sentence, { limit = 5, memory = room.memory })
  known[#known + 1] = holder
  for _, row in ipairs(known) do
    if fold(row.value) == value and (row.key == key or not key) then
      return ctx.memory.confirm(row.id, "said again")
    end
  end
  if key and (seen[key] or holder and (holder.pinned or room.ends == 0)) then key = nil end
  if room.writes == 0 then
    ctx.log("left out, the run is full: " .. sentence)
    return
  end
  ctx.memory.write { value = sentence, key = key, kind = rule[2], from = { message.id } }
  if key then seen[key] = true end
end

return {
  name = "remember_said", version = 1,
  about = "Keep what users ask to be remembered, in their words.",
  options = {
    max_message = { type = "integer", default = 1000, min = 50, about = "bytes; longer is pasted" },
    max_sentence = { type = "integer", default = 300, min = 20, max = 2000, about = "in bytes" },
  },
  remember = function(said, ctx)
    local seen = {}
    for i = #said, 1, -1 do -- the newest first: a slot has what was said last
      local message = said[i]
      if message.source == "user" and #message.content <= ctx.options.max_message then
        local list = sentences_of(message.content)
        for k = #list, 1, -1 do
          local sentence = list[k]
          local rule = not sentence.asks and #sentence.text <= ctx.options.max_sentence
            and rule_of(sentence)
          local folded = fold(sentence.text)
          if rule and not seen[folded] then
            seen[folded] = true
            keep(sentence.text, rule, message, seen, ctx)
          end
        end
      end
    end
  end,
}
