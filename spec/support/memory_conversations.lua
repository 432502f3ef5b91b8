-- memory_conversations.lua: ordinary conversations, and what a careful model notes of them.
--
-- Each has its messages and its notes: {who, kind, key, statement, source, found}. A note names all
-- messages of who says it. source is whose words it has; found, if the engine finds another one,
-- is that: the cost of law 2. A result "read" stands for a long text.

local conversations = {}

-- What the user says, what tools answer, and what the agent says at its end.
local function add(user, tools, agent, ...)
  local messages = { { role = "user", author = "Ann", content = user } }
  for i, result in ipairs(tools) do
    local id = "c" .. i
    messages[#messages + 1] = { role = "assistant", content = "", tool_calls = { { id = id,
      type = "function", ["function"] = { name = "run", arguments = "{}" } } } }
    messages[#messages + 1] = { role = "tool", tool_call_id = id, content = result }
  end
  messages[#messages + 1] = { role = "assistant", content = agent }
  conversations[#conversations + 1] = { messages = messages, notes = { ... } }
end

local READ = "read"

add("I switched to Vim for Lua yesterday. Please read the README.", { READ },
  "The README says how to build it.",
  { "user", "fact", "editor", "Ann uses Vim for Lua since yesterday.", "user" })
add("We always write commit messages in English, please. Look at the log.", { READ },
  "I have looked at it.",
  { "user", "procedure", "-", "Commit messages are always written in English.", "user" })
add("My sister Olga lives in Kiel. Find me trains from Hamburg.",
  { "RE 7 Hamburg 8:05, Kiel 9:20; RE 7 Hamburg 9:05, Kiel 10:20" }, "The next one leaves at 8:05.",
  { "user", "fact", "-", "Ann's sister Olga lives in Kiel.", "user" })
add("I prefer aisle seats. Book me the flight to Oslo.", { "LH 812, seats 12A window, 12C aisle" },
  "I took 12C for you.", { "user", "fact", "seat", "Ann prefers aisle seats.", "user" })
add("Run the tests. If they take more than ten minutes, we cache the parser.",
  { "412 passed in 840 seconds" },
  "It took fourteen minutes, so I shall add a cache to the parser.",
  { "user", "fact", "-", "The parser is cached if the tests take more than ten minutes.", "user" },
  { "agent", "episode", "-", "The agent adds a cache to the parser.", "agent" })
add("Never deploy on Fridays. What is the state of the release?", { READ }, "It is ready.",
  { "user", "procedure", "-", "Never deploy on Fridays.", "user" })
add("My name is Ann Berg, and I work for the harbour office. Read the file first.", { READ },
  "Hello Ann.", { "user", "fact", "name", "Her name is Ann Berg.", "user" },
  { "user", "fact", "employer", "Ann works for the harbour office.", "user" })
add("Which of the two libraries should we take? I like small ones.", { READ,
  "libbig: 4 MB, 900 functions\nlibsmall: 40 KB, 12 functions" },
  "I recommend the second, because you like small ones and need little of it.",
  { "user", "fact", "-", "Ann likes small libraries.", "user" },
  { "agent", "reflection", "-", "Recommended the second library, because Ann needs little of it.",
    "agent" })
add("Find out why the start is slow.", { "strace: open() 40000 times in /usr/share/fonts" },
  "The program looks at each font when it begins. I moved that behind the first window.",
  { "agent", "episode", "-", "The agent moved the look at fonts behind the first window.",
    "agent" })
add("Is there a bug in the date code? I am in the time zone of Tokyo.", { READ },
  "Yes: it forgets leap seconds. I corrected that and added a case to the suite.",
  { "user", "fact", "zone", "Ann is in the time zone of Tokyo.", "user" },
  { "agent", "episode", "-", "The date code forgot leap seconds; the agent corrected that.",
    "agent", "tool" })
add("I am allergic to nuts. Find a recipe for tonight.",
  { "Walnut bread: flour, water, walnuts\nTomato soup: tomatoes, onions, water" },
  "Make the tomato soup.", { "user", "fact", "allergy", "Ann is allergic to nuts.", "user" })
add("We decided to use SQLite for the catalog. Check that the docs say so.", { READ },
  "They do not yet, so I wrote a paragraph.",
  { "user", "fact", "catalog", "SQLite was chosen for the catalog.", "user" },
  { "agent", "episode", "-", "The agent wrote a paragraph about it.", "agent",
    "tool" }) -- half of these are words of what was read
add("Please answer briefly from now on. And read the manual.", { READ }, "Done.",
  { "user", "procedure", "style", "Answer briefly.", "user" })
add("The customer Jensen pays by bank transfer only. Look up the invoice.",
  { "Invoice 88, Jensen, 1200 EUR, open" }, "It is still open.",
  { "user", "fact", "-", "The customer Jensen pays by bank transfer only.", "user" })
add("Plan my holiday in Norway in July with my two children.",
  { "Bergen: rain. Oslo: museums for children. Lofoten: long ways." },
  "I would stay in the capital, because of the short ways.",
  { "user", "episode", "-", "Ann plans a holiday in Norway in July with her two children.",
    "user" },
  { "agent", "reflection", "-", "Suggested to stay in the capital, because ways are short.",
    "agent" })
add("Rename the module to intake, the old name confuses people.", { "14 files changed" },
  "It is renamed, and I left an alias for old imports.",
  { "user", "fact", "-", "The module is renamed to intake, because the old name confuses people.",
    "user" },
  { "agent", "fact", "-", "An alias was left for old imports.", "agent" })
add("What did the meeting decide? I was ill.", { "Minutes: budget approved, next meeting 3 June" },
  "The budget was approved, and the next meeting is on 3 June.",
  { "agent", "fact", "-", "The budget was approved, and the next meeting is on 3 June.", "tool" })
add("How long is the build?", { "real 14m02s" }, "About fourteen minutes; linking is most of it.",
  { "agent", "fact", "-", "The build is about fourteen minutes, and linking is most of it.",
    "agent" })
add("Ich heiße Jörg und bevorzuge kurze Antworten. Lies bitte die Anleitung.", { READ }, "Gerne.",
  { "user", "fact", "name", "Der Nutzer heißt Jörg und bevorzuge kurze Antworten.", "user",
    "agent" }) -- in a memory whose language is English, no German word is too common to count
add("Mein Team trifft sich montags um neun. Was steht im Kalender?",
  { "Montag 9:00 Team, Dienstag frei" }, "Am Dienstag ist frei.",
  { "user", "fact", "-", "Das Team trifft sich montags um neun.", "user" })

return conversations
