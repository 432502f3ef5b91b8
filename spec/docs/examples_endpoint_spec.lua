-- The examples ask an OpenAI-compatible endpoint when one is configured, and only then. The
-- endpoint here is a process of ours; spec/agent/model_spec.lua has what may go wrong with one.
-- Files only: examples have folders of their own.

local endpoints = require "spec.support.endpoints"
local example = require "spec.support.example"
local temp = example.temp
local sessile = require "sessile"

local has_http = pcall(require, "socket.http")

describe("examples/model.lua", function()
  it("asks for what is missing", function()
    local _, err, status = example.shell(example.command .. " run examples/research.lua",
      "OPENAI_BASE_URL=http://127.0.0.1:1")
    assert.equal(1, status)
    assert.matches("say with OPENAI_MODEL which of its models to ask", err)
  end)
end)

describe("an example with an endpoint", function()
  teardown(temp.clean)

  local function asked(answers, line)
    local chunks = {}
    for i, answer in ipairs(answers) do
      chunks[i] = ("json(%s, %q)"):format(answer:match "^(%d+) (.*)$")
    end
    local port, requests = endpoints.serve(chunks)
    local out, err, status = example.shell(example.command .. " run " .. line,
      ("OPENAI_BASE_URL=http://127.0.0.1:%d/v1/ OPENAI_MODEL=m OPENAI_API_KEY=sk-1 RECORDS=2")
      :format(port))
    return out, err, status, requests
  end

  it("sends its tools and runs what is called", function()
    if not has_http then
      return pending "lua-socket is not installed"
    end
    local folder = temp.dir()
    local out, err, status, request = asked({
      [[200 {"choices":[{"message":{"content":null,"tool_calls":[{"id":"x1","type":"function",
        "function":{"name":"write_file","arguments":"{\"name\":\"../a\",\"text\":\"\"}"}}]}}]}]],
      [[200 {"choices":[{"message":{"role":"assistant","content":"I may not."}}],
        "usage":{"prompt_tokens":30,"completion_tokens":4}}]],
    }, "examples/assistant.lua " .. folder)
    assert.equal("", err)
    assert.equal(0, status)
    assert.matches("tool  write_file\nagent   I may not%.\n$", out)
    assert.matches("^POST /v1/chat/completions HTTP/1.1\n", request(1))
    assert.matches("\nauthorization: bearer sk%-1\n", request(1):lower())
    local tools = assert(sessile.decode(request(1):match "\n\n(.*)$")).tools
    assert.equal("list", tools[1]["function"].name)
    local last = assert(sessile.decode(request(2):match "\n\n(.*)$")).messages[3]
    assert.same({ role = "tool", tool_call_id = "x1", content = "not a plain file name: ../a" },
      last)
  end)

  it("asks for the summary of a branch too", function()
    if not has_http then
      return pending "lua-socket is not installed"
    end
    local answers = {}
    for i, text in ipairs { "one", "two", "what was left", "three", "four", "five", "six" } do
      answers[i] = ([[200 {"choices":[{"message":{"content":"%s"}}]}]]):format(text)
    end
    local out, err, status, request = asked(answers, "examples/research.lua")
    assert.equal("", err)
    assert.equal(0, status)
    assert.matches("the model is told: what was left", out, 1, true)
    local fourth = assert(sessile.decode(request(4):match "\n\n(.*)$")).messages
    assert.equal("what was left", fourth[#fourth - 1].content)
    assert.equal("user", fourth[#fourth - 1].role)
    assert.matches("Compare both approaches. 1) four 2) five", request(7), 1, true)
    assert.matches("\n  %* assistant: six\n$", out)
  end)

  it("says what the endpoint said when it fails", function()
    if not has_http then
      return pending "lua-socket is not installed"
    end
    local folder = temp.dir() .. "/store"
    local _, err, status = asked({ [[401 {"error":{"message":"no such key"}}]] },
      "examples/pipeline.lua " .. folder)
    assert.equal(1, status)
    assert.matches("record 1: no number %(http.*: the endpoint answered 401: no such key%)", err)
  end)
end)
