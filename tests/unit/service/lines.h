/*
 * lines.h: the log lines of a service in this process, as they were written.
 *
 *   lines l;
 *   lines_open(&l);
 *   settings.log.fd = l.in;
 *   …
 *   cJSON *line = lines_wait(&l, "A node joined.");    the caller deletes it
 *   lines_close(&l);                                   after the service was closed
 */
#ifndef UNIT_SERVICE_LINES_H
#define UNIT_SERVICE_LINES_H

#include <stddef.h>

struct cJSON;

typedef struct lines {
    int in, out; /* of a pipe */
    char *text;  /* all that came, with a NUL */
    size_t size, taken;
} lines;

void lines_open(lines *l);
void lines_close(lines *l);
/* The next line whose message begins so; those before it are passed over. Each has to be
 * a line of JSON. Fails the test after half a minute. */
struct cJSON *lines_wait(lines *l, const char *message);
/* How many lines have a message that begins so, of all that were written until now. */
size_t lines_count(lines *l, const char *message);
/* A field as text ("7", "true"); "": there is none. Static. */
const char *line_field(const struct cJSON *line, const char *name);

#endif
