/* lua.h: a Lua program that reads inputs of a fuzzer. */
#ifndef FUZZ_LUA_H
#define FUZZ_LUA_H

#include <lua.h>

/*
 * A state with the libraries and the module's path. `arguments` is Lua code that returns
 * what the program is called with, such as "return require 'sessile'"; the functions
 * (`results` of them) that the program returns are at indexes 2, 3, … of the stack.
 */
lua_State *fuzz_lua(const char *program, const char *arguments, int results);
/* Calls the function at `index` with the `count` values on top of the stack. An error
 * that it raises is a finding. Leaves nothing. */
void fuzz_lua_call(lua_State *L, int index, int count);

#endif
