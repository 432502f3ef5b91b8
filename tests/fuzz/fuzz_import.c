/*
 * fuzz_import.c: recorded conversations, and the parts of JSON texts in Lua.
 *
 * The first byte chooses the format (or lets the first line tell); the rest is the file.
 *
 * Holds: no error is raised; each line goes somewhere (a message, or a custom entry), or
 * nothing was imported and it says why; each part of a JSON text is one itself.
 */
#include "fuzz/fuzz.h"
#include "fuzz/lua.h"

static const char *const words[] = {"\n",
                                    "{\"role\":\"user\",\"content\":\"a\"}\n",
                                    "\"role\":\"assistant\"",
                                    "{\"type\":\"message\",\"message\":",
                                    "\"type\":\"toolCall\"",
                                    "\"toolResult\"",
                                    "\"toolCallId\":\"a\"",
                                    "\"usage\":{\"input\":1,\"output\":2}",
                                    "\"id\":\"00000001\"",
                                    "\"type\":\"turn\"",
                                    "\"data\":{",
                                    "\"content\":[",
                                    "\\u00e9",
                                    "\xff",
                                    "null",
                                    NULL};

const fuzz_about fuzz_this = {"import", 3000, 1 << 13, words};

/* The text is a file in memory. Returns nothing; whatever is wrong is an error. */
static const char program[] =
    "local import, span, sessile = ...\n"
    "local file = {}\n"
    "file.__index = file\n"
    "function file:read(size)\n"
    "  if self.at >= #self.text then return nil end\n"
    "  local block = self.text:sub(self.at + 1, self.at + size)\n"
    "  self.at = self.at + #block\n"
    "  return block\n"
    "end\n"
    "function file:seek(whence, offset)\n"
    "  self.at = (whence == 'end' and #self.text or 0) + (offset or 0)\n"
    "  return self.at\n"
    "end\n"
    "function file:close() return true end\n"
    "local store = assert(sessile.open('ram:', { key = false }))\n"
    "local function parts(text)\n"
    "  assert(span.valid(text))\n"
    "  for _, member in ipairs(span.object(text) or {}) do\n"
    "    assert(span.string(member.raw_key) == member.key)\n"
    "    parts(member.raw)\n"
    "  end\n"
    "  for _, raw in ipairs(span.array(text) or {}) do parts(raw) end\n"
    "end\n"
    "return function(text)\n"
    "  if span.valid(text) then parts(text) end\n"
    "end, function(text, from)\n"
    "  local opened = setmetatable({ text = text, at = 0 }, file)\n"
    "  local records, format, code = import.open(opened, from)\n"
    "  if not records then\n"
    "    assert(type(format) == 'string' and code == 'EINVALID', format)\n"
    "    return\n"
    "  end\n"
    "  local session, counts, why = import.into(store, records, { from = format })\n"
    "  if not session then\n"
    "    assert(type(counts) == 'string', 'no reason')\n"
    "    assert(why == 'EINVALID' or why == 'ELIMIT' or why == 'EEXISTS' or\n"
    "      why == 'ECONFLICT', counts)\n"
    "    return\n"
    "  end\n"
    "  local messages, customs = 0, 0\n"
    "  for entry in session:entries() do\n"
    "    if entry.type == 'message' and entry.source ~= 'policy' then\n"
    "      messages = messages + 1\n"
    "    end\n"
    "    if entry.type == 'custom' then customs = customs + 1 end\n"
    "  end\n"
    "  -- a session of that name and recording was there: it is gone on with\n"
    "  local here = counts.before == 0\n"
    "  assert(here and messages == counts.messages or messages >= counts.messages,\n"
    "    'messages')\n"
    "  assert(customs >= counts.customs, 'customs')\n"
    "  assert(counts.refused <= counts.unread, 'refused')\n"
    "  session:close()\n"
    "end\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static lua_State *L;
    static unsigned used;
    static const char *const formats[] = {NULL,        "pi",        "jsonl",
                                          "claude",    "codex",     "openai",
                                          "anthropic", "langgraph", "finetune"};
    if (!L || ++used % 2000 == 0) {
        if (L)
            lua_close(L); /* a ram: store keeps what was ever in it */
        L = fuzz_lua(program,
                     "local import = require 'sessile.import'\n"
                     "return import, require('sessile.core').span, require('sessile')",
                     2);
    }
    if (size == 0)
        return 0;
    const char *text = (const char *)data + 1;
    lua_pushlstring(L, text, size - 1);
    fuzz_lua_call(L, 2, 1); /* its parts */
    lua_pushlstring(L, text, size - 1);
    lua_pushstring(L, formats[data[0] % 8]);
    fuzz_lua_call(L, 3, 2); /* the import */
    return 0;
}

void fuzz_seeds(fuzz_take take, void *arg)
{
    static const char plain[] =
        "{\"role\":\"user\",\"content\":\"why?\"}\n"
        "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\","
        "\"type\":"
        "\"function\",\"function\":{\"name\":\"ls\",\"arguments\":\"{}\"}}],\"usage\":"
        "{\"input_tokens\":9007199254740993}}\n"
        "{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"a\"}\n"
        "not json \xff\n[1,2]\n";
    static const char entries[] = "{\"id\":\"00000000\",\"type\":\"session\",\"data\":{"
                                  "\"session\":\"x\",\"title\":\"t\"}}\n"
                                  "{\"id\":\"00000001\",\"type\":\"message\",\"data\":{"
                                  "\"role\":\"user\",\"content\":\"q\"}}\n"
                                  "{\"id\":\"00000002\",\"type\":\"turn\",\"data\":{"
                                  "\"first\":\"00000001\",\"count\":1}}\n";
    static const char pi[] =
        "{\"type\":\"session\",\"version\":3,\"id\":\"s1\",\"timestamp\":\"2026-01-01T00:"
        "00:00Z\"}\n"
        "{\"type\":\"message\",\"id\":\"a\",\"parent_id\":null,\"message\":{\"role\":"
        "\"user\","
        "\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}}\n"
        "{\"type\":\"message\",\"id\":\"b\",\"parent_id\":\"a\",\"message\":{\"role\":"
        "\"assistant\","
        "\"content\":[{\"type\":\"toolCall\",\"id\":\"c1\",\"name\":\"ls\",\"arguments\":"
        "{\"p\":1}}],"
        "\"usage\":{\"input\":1,\"output\":2,\"cacheRead\":0,\"cacheWrite\":0}}}\n"
        "{\"type\":\"message\",\"id\":\"c\",\"parent_id\":\"b\",\"message\":{\"role\":"
        "\"toolResult\","
        "\"toolCallId\":\"c1\",\"toolName\":\"ls\",\"content\":[],\"isError\":false}}\n";
    static const char *const texts[] = {plain, entries, pi, "[1,{\"a\":[]}]",
                                        "\"\\ud800\""};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (char how = 0; how < 3; how++)
            fuzz_give_text(take, arg, how, texts[i]);
}
