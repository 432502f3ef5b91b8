-- The chats in other languages, over the clients that `sessile rpc` writes, and the snippets of
-- their READMEs. Adapters of packages from npm, and their snippets, are run by `make foreign`.

local built = require "spec.support.built"
local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local shell = require "spec.support.shell"

local has = expect.has

local LANGUAGES = {
  { name = "Node", folder = "node", program = "node", chat = "chat.mjs", code = "js",
    client = "sessile.mjs", file = "snippet.mjs" },
  { name = "Python", folder = "python", program = "/usr/bin/python3", chat = "chat.py",
    code = "python", client = "sessile_rpc.py", file = "snippet.py" },
}

local home

cli.each_test(function(path)
  home = path
end)

-- Where the language is; nil after saying why nothing was run.
local function found(language)
  local path = shell.line("command -v " .. language.program .. " || true")
  if path == "" then
    pending(("%s is not installed: examples/%s was not run"):format(language.program,
      language.folder))
    return nil
  end
  return path
end

-- Runs a line in a copy of the folder, with `sessile` in PATH; its output, whether it went well.
local function run(language, line, settings)
  local place = home .. "/program"
  if not cli.exists(place) then
    assert(os.execute(("cp -r %s %s"):format(
      cli.quote(built.root .. "/examples/" .. language.folder), cli.quote(place))))
  end
  return shell.output(("cd %s && %s env -u OPENAI_BASE_URL PYTHONIOENCODING=utf-8 "
    .. "PYTHONDONTWRITEBYTECODE=1 PATH=%s:\"$PATH\" %s timeout 60 sh -ec %s 2>&1"):format(
    cli.quote(place), cli.env(), cli.quote(built.folder .. "/bin"), settings or "",
    cli.quote(line)))
end

local function done(language, line, settings)
  local out, ok = run(language, line, settings)
  assert(ok, out)
  return out
end

-- The chat with these lines, by the path of the language.
local function chat(language, path, lines, session, settings)
  cli.write(home .. "/" .. language.client, (cli.done("rpc --client " .. language.folder)))
  cli.write(home .. "/lines", table.concat(lines, "\n") .. "\n")
  run(language, ("cp ../%s ."):format(language.client))
  return run(language, ("%s %s %s <../lines"):format(path, language.chat, cli.quote(session)),
    settings)
end

-- The snippets of a README that are in this language, and need no package from elsewhere.
local function snippets(language, code)
  local text = cli.read(("%s/examples/%s/README.md"):format(built.root, language.folder))
  local list = {}
  for block in text:gmatch("```" .. code .. "\n(.-)```") do
    if not block:find 'from "@' then
      list[#list + 1] = block
    end
  end
  return list
end

for _, language in ipairs(LANGUAGES) do
  describe("examples/" .. language.folder, function()
    it("has a chat that goes on where it was", function()
      local path = found(language)
      if not path then
        return
      end
      local out, ok = chat(language, path, { "why is it late?", "and größer 日本?" }, "tram")
      assert(ok, out)
      has(out, "You asked 1 things; the newest is: why is it late?\n"
        .. "You asked 2 things; the newest is: and größer 日本?\n")
      out = chat(language, path, { "/undo", "what then?", "/context" }, "tram")
      assert.equal("taken back\nYou asked 2 things; the newest is: what then?\n"
        .. "user: why is it late?\n"
        .. "assistant: You asked 1 things; the newest is: why is it late?\nuser: what then?\n"
        .. "assistant: You asked 2 things; the newest is: what then?\n", out)
      has(cli.done "export tram", "why is it late?")
    end)

    it("has a chat whose older messages are summarized by its model", function()
      local path = found(language)
      if not path then
        return
      end
      local lines = {}
      for i = 1, 40 do
        lines[i] = ("question %d about the doors of the tram"):format(i)
      end
      local out, ok = chat(language, path, lines, "long", "WINDOW=600")
      assert(ok, out)
      has(out, "(older messages were summarized)")
      has(cli.done "log long", "summarize")
      has(cli.done "export long", "question 1 about")
    end)

    it("has a chat that says what is wrong, and fails", function()
      local path = found(language)
      if not path then
        return
      end
      local out, ok = chat(language, path, { "hello" }, "")
      assert.is_false(ok or false)
      has(out, "chat: session/open: which session? its id is empty")
      assert.is_nil(out:find "Traceback" or out:find "at async")
    end)

    it("has a README whose snippets run", function()
      if not found(language) then
        return
      end
      local lines = snippets(language, "sh")
      assert.equal(1, #lines)
      has(done(language, (lines[1]:gsub("python3", language.program))),
        "user: why is the tram late?")
      local programs = snippets(language, language.code)
      assert.equal(1, #programs)
      cli.write(home .. "/program/" .. language.file, programs[1])
      has(done(language, language.program .. " " .. language.file),
        "user: why is it late?\nassistant: The points froze.\n")
    end)

    it("lists its files", function()
      local page = cli.read(("%s/examples/%s/README.md"):format(built.root, language.folder))
      local listed = shell.output(("ls %s"):format(
        cli.quote(built.root .. "/examples/" .. language.folder)))
      for name in listed:gmatch "[^\n]+" do
        if name ~= "README.md" and name ~= "__pycache__" and name ~= language.client then
          has(page, ("[%s](%s)"):format(name, name))
        end
      end
    end)
  end)
end
