--- keys: which key does what, in each of the views; the help is made of it.
--
-- Owns: the one table. The keys are those of less, tig and lazygit where they agree.

local keys = {}

---@class sessile.cli.treeview.key
---@field [1] string[]  names as sessile.screen has them; "zM" is z and then M
---@field [2] string    what is done: a function of the view
---@field [3] string    what it does, for the help
---@field shown string? how the help writes the keys

-- Moves of whatever list or text is shown.
local MOVES = {
  { { "down", "j" }, "down", "one down", shown = "↓ j" },
  { { "up", "k" }, "up", "one up", shown = "↑ k" },
  { { "pagedown", "ctrl-f" }, "page_down", "a screen down", shown = "PgDn ^F" },
  { { "pageup", "ctrl-b" }, "page_up", "a screen up", shown = "PgUp ^B" },
  { { "ctrl-d" }, "half_down", "half a screen down", shown = "^D" },
  { { "ctrl-u" }, "half_up", "half a screen up", shown = "^U" },
  { { "home", "g" }, "first", "the first", shown = "Home g" },
  { { "end", "G" }, "last", "the last", shown = "End G" },
}

local SEARCH = {
  { { "/" }, "search", "search", shown = "/" },
  { { "n" }, "next_hit", "the next hit", shown = "n" },
  { { "N" }, "previous_hit", "the hit before", shown = "N" },
}

local LEAVE = {
  { { "?", "f1" }, "help", "this help", shown = "?" },
  { { "ctrl-l" }, "redraw", "redraw the screen", shown = "^L" },
  { { "q", "escape" }, "leave", "leave, or back", shown = "q Esc" },
  { { "Q", "closed" }, "quit", "leave altogether", shown = "Q" },
}

--- Of the tree, by headings.
keys.tree = {
  { "Moving", MOVES,
    { { { "@" }, "head", "the head", shown = "@" },
      { { ":" }, "jump", "a number, a label", shown = ":" },
      { { "^" }, "parent", "its parent", shown = "^" },
      { { "}" }, "next_question", "the next question", shown = "}" },
      { { "{" }, "previous_question", "the question before", shown = "{" },
      { { "]" }, "next_branch", "the next branch", shown = "]" },
      { { "[" }, "previous_branch", "the branch before", shown = "[" } } },
  { "Looking",
    { { { "enter" }, "open", "open the entry", shown = "Enter" },
      { { "v" }, "preview", "preview on or off", shown = "v" },
      { { "J", "shift-down" }, "preview_down", "preview down", shown = "J" },
      { { "K", "shift-up" }, "preview_up", "preview up", shown = "K" },
      { { "t" }, "next_kind", "only questions, …", shown = "t" },
      { { "T" }, "previous_kind", "the type before", shown = "T" },
      { { "r" }, "reload", "read it again", shown = "r" } } },
  { "Folding",
    { { { "left", "h", "zc" }, "fold", "fold; then its parent", shown = "← h" },
      { { "right", "l", "zo" }, "unfold", "unfold; then into it", shown = "→ l" },
      { { " ", "za" }, "toggle", "fold or unfold", shown = "Space" },
      { { "C", "zM" }, "fold_all", "fold all", shown = "C zM" },
      { { "E", "zR" }, "unfold_all", "unfold all", shown = "E zR" } } },
  { "Searching", SEARCH },
  { "Doing",
    { { { "L" }, "label", "label it", shown = "L" },
      { { "U" }, "unlabel", "remove a label", shown = "U" },
      { { "p" }, "pin", "pin or unpin", shown = "p" },
      { { "b" }, "branch", "continue from here", shown = "b" },
      { { "f" }, "fork", "fork: a new session", shown = "f" },
      { { "R" }, "restore", "restore a checkpoint", shown = "R" } } },
  { "Leaving", LEAVE },
}

--- Of an entry that was opened, and of the help.
keys.text = {
  { "Moving", MOVES,
    { { { " " }, "page_down", "a screen down", shown = "Space" },
      { { "right", "l", "J" }, "next_entry", "the next entry", shown = "→ l" },
      { { "left", "h", "K" }, "previous_entry", "the entry before", shown = "← h" } } },
  { "Searching", SEARCH },
  { "Leaving", LEAVE },
}

--- Of the list of sessions.
keys.sessions = {
  { "Moving", MOVES },
  { "Looking", { { { "enter", "right", "l" }, "open", "open the session", shown = "Enter" },
      { { "r" }, "reload", "read it again", shown = "r" } } },
  { "Searching",
    { { { "/" }, "search", "ids and titles with this in them", shown = "/" } } },
  { "Leaving", LEAVE },
}

--- What each key of a view does: name → function of the view. And the keys that begin others.
---@param groups table
---@return table<string, string> actions
---@return table<string, boolean> prefixes
function keys.actions(groups)
  local actions, prefixes = {}, {}
  for _, group in ipairs(groups) do
    for i = 2, #group do
      for _, key in ipairs(group[i]) do
        for _, name in ipairs(key[1]) do
          actions[name] = key[2]
          if name:find "^z%a$" then
            prefixes.z = true
          end
        end
      end
    end
  end
  return actions, prefixes
end

--- The help of a view: {{heading} or {keys, what}, …}.
---@param groups table
---@return string[][]
function keys.help(groups)
  local list = {}
  for _, group in ipairs(groups) do
    list[#list + 1] = { group[1] }
    for i = 2, #group do
      for _, key in ipairs(group[i]) do
        list[#list + 1] = { key.shown, key[3] }
      end
    end
  end
  return list
end

return keys
