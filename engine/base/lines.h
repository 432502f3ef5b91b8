/*
 * lines.h: bytes that arrive in pieces, as lines of bounded length; and JSON texts as
 * lines that every reader of lines takes for one.
 */
#ifndef BASE_LINES_H
#define BASE_LINES_H

#include "base/buf.h"

typedef struct lines {
    buf in;
    size_t start; /* of the line that comes next */
    size_t seen;  /* bytes from there that have no newline */
    size_t most;  /* bytes of a line, without its newline */
    int skipping; /* to the newline of a line that was too long */
    int ended;
} lines;

typedef enum lines_found {
    LINES_NONE =
        0, /* more bytes are needed; after lines_end(): there are no more lines */
    LINES_ONE,
    LINES_LONG /* a line has more than `most` bytes: it is told once, and dropped */
} lines_found;

void lines_init(lines *l, const allocator *a, size_t most);
void lines_deinit(lines *l);

/* Takes size bytes. 0, or -1: no memory; they are lost. */
int lines_feed(lines *l, const void *data, size_t size);
/* No more bytes will come: what stands after the last newline is a line, too. */
void lines_end(lines *l);
/* The next line, without its newline; it stays until the next call of this or of
 * lines_feed(). */
lines_found lines_next(lines *l, const char **line, size_t *size);
/* Bytes that are kept: of lines that were not asked for yet, and of one that grows. */
size_t lines_held(const lines *l);

/* Appends a JSON text as one line, with a newline. U+0085, U+2028 and U+2029, which some
 * readers take for the end of a line, become escapes; line breaks between tokens become
 * spaces; what is not UTF-8 becomes U+FFFD. */
void lines_put(buf *out, const char *text, size_t size);

#endif
