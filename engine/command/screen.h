/*
 * screen.h: what the files of sessile.screen share: the terminal's modes and signals
 * (screen_tty.c), text as cells (screen_text.c), the screen and its keys (screen.c).
 */
#ifndef COMMAND_SCREEN_H
#define COMMAND_SCREEN_H

#include <stddef.h>
#include <wchar.h>

/* A character, three marks on it, and the end. */
enum { SCREEN_CELL = 5 };

/* Takes the next cell from UTF-8: *at moves on, to end at most. Returns its columns; 0:
 * there is nothing to draw. What is no UTF-8, and what is not inert, is U+FFFD. In a
 * locale of UTF-8. */
int screen_next_cell(const char **at, const char *end, wchar_t cell[SCREEN_CELL]);

/* 0: a terminal obeys it, or it changes the direction of text, or hides it. */
int screen_is_inert(wchar_t c);

/* What came in while nobody looked. */
enum { SCREEN_NOTHING, SCREEN_RESIZED, SCREEN_RESUMED };

/* Remembers how the terminal behind fd is now, and what each signal does now; the signals
 * that matter are held back until screen_tty_taken. 0, or errno. */
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
