/* lines.c: see lines.h. */
#include "lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

enum { PATIENCE_S = 30, PIECE = 4096 };

void lines_open(lines *l)
{
    int ends[2];
    memset(l, 0, sizeof *l);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    l->out = ends[0];
    l->in = ends[1];
    l->text = calloc(1, 1);
    assert_non_null(l->text);
}

void lines_close(lines *l)
{
    close(l->in);
    close(l->out);
    free(l->text);
}

/* Takes what is there, after waiting at most ms. */
static void take(lines *l, int ms)
{
    struct pollfd one = {l->out, POLLIN, 0};
    while (poll(&one, 1, ms) > 0) {
        l->text = realloc(l->text, l->size + PIECE + 1);
        assert_non_null(l->text);
        ssize_t size = read(l->out, l->text + l->size, PIECE);
        assert_true(size > 0);
        l->size += (size_t)size;
        l->text[l->size] = '\0';
        ms = 0;
    }
}

/* The line at `from`, which has to be JSON; NULL: it has not come whole. */
static cJSON *line_at(const lines *l, size_t *from)
{
    const char *end = strchr(l->text + *from, '\n');
    if (!end)
        return NULL;
    char *copy = strndup(l->text + *from, (size_t)(end - l->text) - *from);
    cJSON *line = cJSON_ParseWithOpts(copy, NULL, 1);
    if (!cJSON_IsObject(line) || !*line_field(line, "time") ||
        !*line_field(line, "level"))
        fail_msg("no log line: %s", copy);
    free(copy);
    *from = (size_t)(end - l->text) + 1;
    return line;
}

static int begins(const cJSON *line, const char *message)
{
    return strncmp(line_field(line, "message"), message, strlen(message)) == 0;
}

cJSON *lines_wait(lines *l, const char *message)
{
    time_t until = time(NULL) + PATIENCE_S;
    for (;;) {
        cJSON *line = line_at(l, &l->taken);
        if (line && begins(line, message))
            return line;
        cJSON_Delete(line);
        if (line)
            continue;
        if (time(NULL) > until)
            fail_msg("no line says \"%s\":\n%s", message, l->text);
        take(l, 100);
    }
}

size_t lines_count(lines *l, const char *message)
{
    size_t at = 0, count = 0;
    cJSON *line;
    take(l, 0);
    while ((line = line_at(l, &at))) {
        count += (size_t)begins(line, message);
        cJSON_Delete(line);
    }
    return count;
}

const char *line_field(const cJSON *line, const char *name)
{
    static char text[2][2000];
    static int last;
    const cJSON *field = cJSON_GetObjectItemCaseSensitive(line, name);
    char *out = text[last++ % 2];
    if (cJSON_IsNumber(field))
        snprintf(out, sizeof text[0], "%.0f", field->valuedouble);
    else
        snprintf(out, sizeof text[0], "%s",
                 cJSON_IsString(field)  ? field->valuestring
                 : cJSON_IsTrue(field)  ? "true"
                 : cJSON_IsFalse(field) ? "false"
                                        : "");
    return out;
}
