/* screen.h: what the two halves of sessile.screen share: the terminal's modes and signals
 * (screen_tty.c), and its cells and keys (screen.c). */
#ifndef COMMAND_SCREEN_H
#define COMMAND_SCREEN_H

#include <stddef.h>

/* What came in while nobody looked. */
enum { SCREEN_NOTHING, SCREEN_RESIZED, SCREEN_RESUMED };

/* Remembers how the terminal behind fd is now, and what each signal does now; the signals that
 * matter are held back until screen_tty_taken. 0, or errno. */
int screen_tty_take(int fd);

/* The screen is up: from now on every way out of the process gives the terminal back.
 * enter and leave are the bytes that switch to the program's screen and away from it. */
void screen_tty_taken(const char *enter, size_t enter_size, const char *leave,
                      size_t leave_size);

/* The program's screen was left, or never came up: modes and signals as they were. */
void screen_tty_give_back(void);

/* Which of the above came in since the last call. */
int screen_tty_event(void);

/* Waits until fd can be read, a signal comes, or timeout_ms have passed (-1: for ever).
 * 1: it can be read; 0: look at screen_tty_event and again; -1: the terminal is gone. */
int screen_tty_wait(int timeout_ms);

/* Of a process in the background: stops it until it is in the foreground again. */
void screen_tty_foreground(void);

#endif
