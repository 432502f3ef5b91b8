/*
 * fuzz_memory_text.c: texts from which a memory is changed: imports, and edited Markdown.
 *
 * The first byte chooses: the rest is a file to be imported (with a name that has a date,
 * or none), the text that a memory's Markdown was changed to, or values and keys to be
 * rendered, with zero bytes between them.
 *
 * Holds: no error is raised. An import is made, once, or refused with a reason, and then
 * nothing was written. An edit leaves exactly the entries that the new text has, or
 * nothing was changed. What is rendered is parsed to itself.
 */
#include "fuzz/fuzz.h"
#include "fuzz/lua.h"

#include <string.h>

static const char *const words[] = {
    "\n",
    "# Memory of \"a\", 1 entry\n",
    "\n## Facts\n",
    "## Episodes\n",
    "\n- **key**: ",
    " <!-- 1 -->\n",
    " <!-- 2 -->",
    "\\n",
    "\\x41",
    "\\u{202e}",
    "\r\n",
    "**",
    "{\"memory\":\"a\"}",
    "{\"results\":[",
    "\"created_at\":\"2026-02-01\"",
    "{\"type\":\"entity\",\"name\":\"a\",\"observations\":",
    "{\"type\":\"relation\",\"from\":\"a\",\"to\":\"b\"}",
    "---\n",
    "1. ",
    "\xe2\x80\xae",
    "\xff",
    NULL};

const fuzz_about fuzz_this = {"memory_text", 1500, 1 << 12, words};

static const char program[] =
    "local sessile, view = ...\n"
    "local store = assert(sessile.open('ram:', { key = false }))\n"
    "local made = 0\n"
    "local function fresh()\n"
    "  made = made + 1\n"
    "  return assert(store:memory('a' .. made))\n"
    "end\n"
    "local function entries(rows)\n"
    "  local list = {}\n"
    "  for i, row in ipairs(rows) do\n"
    "    list[i] = ('%s|%s|%s'):format(row.kind or 'fact', row.key or '', row.value)\n"
    "  end\n"
    "  table.sort(list)\n"
    "  return table.concat(list, '\\0')\n"
    "end\n"
    "local function refused(message, code)\n"
    "  assert(type(message) == 'string' and utf8.len(message), 'no reason')\n"
    "  assert(code == 'EINVALID' or code == 'ELIMIT' or code == 'ECONFLICT', message)\n"
    "end\n"
    "local function parsed(m)\n"
    "  local items = assert(view.parse((m:markdown())))\n"
    "  assert(entries(items) == entries(assert(m:list())), 'rendered and parsed')\n"
    "end\n"
    "local function import(text, name)\n"
    "  local m = fresh()\n"
    "  local done, message, code = m:import(text, { name = name })\n"
    "  if done then\n"
    "    assert(done.written == m:stats().entries, 'written')\n"
    "    assert(m:import(text, { name = name }).written == 0, 'again')\n"
    "  else\n"
    "    refused(message, code)\n"
    "    assert(m:stats().entries == 0, 'refused and written')\n"
    "  end\n"
    "  parsed(m)\n"
    "  m:close()\n"
    "end\n"
    "local function edit(text)\n"
    "  local m = fresh()\n"
    "  assert(m:write('key', 'one'))\n"
    "  assert(m:write(nil, 'two', { kind = 'episode', ttl = '90d' }))\n"
    "  assert(m:write('other', '**three**', { kind = 'procedure' }))\n"
    "  local old, before = assert(m:markdown()), entries(m:list())\n"
    "  local log = m:stats().log_entries\n"
    "  local done, message, code = m:edit(old, text)\n"
    "  if done then\n"
    "    assert(entries(m:list()) == entries(view.parse(text)), 'edited')\n"
    "    parsed(m)\n"
    "  else\n"
    "    refused(message, code)\n"
    "    assert(entries(m:list()) == before, 'refused and changed')\n"
    "    assert(m:stats().log_entries == log, 'refused and written')\n"
    "  end\n"
    "  m:close()\n"
    "end\n"
    "local function render(text)\n"
    "  local m, keyed = fresh(), false\n"
    "  for part in (text .. '\\0'):gmatch '(.-)\\0' do\n"
    "    local key = keyed and part:sub(1, 200) or nil\n"
    "    if part ~= '' then\n"
    "      local id, message, code = m:write(key, part)\n"
    "      if not id then refused(message, code) end\n"
    "    end\n"
    "    keyed = not keyed\n"
    "  end\n"
    "  parsed(m)\n"
    "  m:close()\n"
    "end\n"
    "return function(how, text)\n"
    "  if how == 0 then import(text)\n"
    "  elseif how == 1 then import(text, '2026-02-01-note.md')\n"
    "  elseif how == 2 then edit(text)\n"
    "  elseif how == 3 then\n" /* most texts do not begin as they must */
    "    edit('# Memory of \"a\", 3 entries\\n\\n## Facts\\n' .. text)\n"
    "  else render(text) end\n"
    "end\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static lua_State *L;
    static unsigned used;
    if (!L || ++used % 1000 == 0) {
        if (L)
            lua_close(L); /* a ram: store keeps what was ever in it */
        L = fuzz_lua(program,
                     "return require('sessile'), (require 'sessile.memory_view')", 1);
    }
    if (size == 0)
        return 0;
    lua_pushinteger(L, data[0] % 5);
    lua_pushlstring(L, (const char *)data + 1, size - 1);
    fuzz_lua_call(L, 2, 2);
    return 0;
}

void fuzz_seeds(fuzz_take take, void *arg)
{
    static const char own[] =
        "# Memory of \"a\", 3 entries\n\n## Facts\n\n- **key**: one <!-- 1 -->\n"
        "- **new**: line\\nbreak\n\n## Episodes\n\n- two, changed <!-- 2 -->\n\n"
        "## Reflections\n\n## Procedures\n\n- **other**: \\**three** <!-- 3 -->\n";
    static const char mem0[] =
        "{\"results\":[{\"id\":\"4d\",\"memory\":\"Is vegetarian\",\"metadata\":{},"
        "\"created_at\":\"2026-02-02T05:31:56.000-07:00\"}]}";
    static const char mcp[] =
        "{\"type\":\"entity\",\"name\":\"Ann\",\"entityType\":\"person\","
        "\"observations\":["
        "\"likes tea\",\"\"]}\n{\"type\":\"relation\",\"from\":\"Ann\",\"to\":\"Acme\","
        "\"relationType\":\"works_at\"}\n";
    static const char claude[] =
        "---\nname: build\ndescription: how it is built\n---\n# Project\n## Commands\n"
        "- Build with make\n- Test with `make test`,\n  never with sudo\n\nA paragraph.\n"
        "<!-- a comment -->\n1. First\n";
    static const char keys[] = "one\0two\0\xe2\x80\xae three\\n\0** key**: \0-";
    const char *const texts[] = {own, mem0, mcp, claude};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (int how = 0; how < 5; how++)
            fuzz_give_text(take, arg, how, texts[i]);
    fuzz_give_text(take, arg, 3,
                   own + strlen("# Memory of \"a\", 3 entries\n\n## Facts\n"));
    fuzz_give(take, arg, 4, keys, sizeof keys - 1);
}
