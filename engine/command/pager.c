/*
 * pager.c: the module sessile.pager: a text in a program that shows it page by page.
 *
 * Owns the signals while that program has the terminal: Ctrl-C is for it, and quitting it
 * early ends no more than the writing. Must never run without a terminal.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>

#include "command/modules.h"

enum {
    NOT_RUN = 126
}; /* what a shell returns for a program that it cannot start, and 127 */

/* show(command, text): true once a shell has run that command on the text and the reader
 * has left it; false if it could not be started: then nothing was shown */
static int pager_show(lua_State *L)
{
    const char *command = luaL_checkstring(L, 1);
    struct sigaction ignored = {.sa_handler = SIG_IGN}, interrupt, broken;
    size_t size;
    const char *text = luaL_checklstring(L, 2, &size);
    FILE *program = isatty(STDOUT_FILENO) ? popen(command, "w") : NULL;
    int status = -1;

    if (program) {
        /* after the program has started, which has them as they were */
        sigaction(SIGINT, &ignored, &interrupt);
        sigaction(SIGPIPE, &ignored, &broken);
        fwrite(text, 1, size, program);
        status = pclose(program);
        sigaction(SIGPIPE, &broken, NULL);
        sigaction(SIGINT, &interrupt, NULL);
    }
    lua_pushboolean(L, status != -1 &&
                           !(WIFEXITED(status) && WEXITSTATUS(status) >= NOT_RUN &&
                             WEXITSTATUS(status) <= NOT_RUN + 1));
    return 1;
}

int luaopen_sessile_pager(lua_State *L)
{
    static const luaL_Reg functions[] = {{"show", pager_show}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
