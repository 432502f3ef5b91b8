/* line.h: what the files of sessile.line share: reading a line (line.c) and completing
 * one (line_complete.c). */
#ifndef COMMAND_LINE_H
#define COMMAND_LINE_H

#include <locale.h>
#include <stdio.h>
#include <wchar.h>

#include <histedit.h>
#include <lua.h>

/* One call of read(). The functions that libedit calls find it by EL_CLIENTDATA. */
typedef struct reading {
    lua_State *L;
    EditLine *el;
    locale_t utf8, locale; /* ours, and the thread's before; 0: none */
    mbstate_t state;
    const char *prompt;
    int complete;     /* place of the function on the stack; 0: none */
    int lines;        /* of the list of lines typed before; 0: none */
    lua_Integer line; /* the one that is shown: 1 is the newest */
} reading;

reading *line_reading(EditLine *el);

/* Writes to the terminal in its present mode. */
void line_say(const char *text);

/* The editor's command for Tab: completes the text before the cursor. */
unsigned char line_complete(EditLine *el, int unused);

#endif
