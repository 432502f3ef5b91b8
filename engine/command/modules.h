/* modules.h: the Lua modules that only this executable has. Each file documents its
 * module. A script for any Lua must work without them. */
#ifndef COMMAND_MODULES_H
#define COMMAND_MODULES_H

#include <lua.h>

int luaopen_sessile_core(lua_State *L);    /* lua/binding: the engine */
int luaopen_sessile_system(lua_State *L);  /* questions to the system */
int luaopen_sessile_files(lua_State *L);   /* files that are there whole, or not at all */
int luaopen_sessile_disk(lua_State *L);    /* where a path lies */
int luaopen_sessile_process(lua_State *L); /* programs that are run */
int luaopen_sessile_pager(lua_State *L);   /* a text, page by page */
int luaopen_sessile_line(lua_State *L);    /* lines typed at a terminal */
int luaopen_sessile_screen(lua_State *L);  /* a terminal as a grid of cells */
int luaopen_sessile_markdown(lua_State *L); /* Markdown without active content */
int luaopen_sessile_stdio(lua_State *L);    /* lines from and to another program */

#endif
