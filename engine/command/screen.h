/* screen.h: what the files of sessile.screen share: the terminal's modes and signals
 * (screen_tty.c), text as cells (screen_text.c), the screen and its keys (screen.c). */
#ifndef COMMAND_SCREEN_H
#define COMMAND_SCREEN_H

#include <stddef.h>
#include <wchar.h>

/* A character, three marks on it, and the end. */
enum { SCREEN_CELL = 5 };

/* Reads the next cell from UTF-8 text and moves *at past it, to end at most. Returns
 * its columns; 0: nothing to draw. Invalid UTF-8, and what is not inert, becomes
 * U+FFFD. For a UTF-8 locale. */
int screen_next_cell(const char **at, const char *end, wchar_t cell[SCREEN_CELL]);

/* 0: a terminal executes it, or it changes the direction of text, or hides text. */
int screen_is_inert(wchar_t c);

/* What happened since the last check. */
enum { SCREEN_NOTHING, SCREEN_RESIZED, SCREEN_RESUMED };

/* Saves the modes of the terminal behind fd and the actions of signals. The signals
 * that matter are blocked until screen_tty_entered(). 0, or errno. */
int screen_tty_save(int fd);

/* The screen is open: from now on every end of the process restores the terminal.
 * enter and leave are the bytes that switch to the program's screen and back. */
void screen_tty_entered(const char *enter, size_t enter_size, const char *leave,
                        size_t leave_size);

/* The program's screen was left, or never opened: restores modes and signals. */
void screen_tty_restore(void);

/* Which of the above happened since the last call. */
int screen_tty_event(void);

/* Waits until fd can be read, a signal arrives, or timeout_ms have passed (-1:
 * forever). 1: it can be read; 0: check screen_tty_event() and call again; -1: the
 * terminal is gone. */
int screen_tty_wait(int timeout_ms);

/* Stops a background process until it is in the foreground again. */
void screen_tty_foreground(void);

#endif
