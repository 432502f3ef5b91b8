/*
 * report.c: the rates of log lines, and sentences without names.
 *
 * A window of a kind begins with a line and lasts ten seconds. Nothing is written late:
 * a line is written at once or counted. So the beginning of a failure is always there,
 * and the time of a line is that of what it tells.
 */
#include "service/report.h"

#include <string.h>

#include "base/os.h"

static const char *const kinds[REPORT_KINDS] = {"server", "nodes",    "store", "damage",
                                                "memory", "internal", "audit", "load",
                                                "flood",  "telemetry"};

void reports_init(reports *r, const logger *log)
{
    memset(r, 0, sizeof *r);
    r->log = *log;
    pthread_mutex_init(&r->mutex, NULL);
}

void reports_deinit(reports *r)
{
    pthread_mutex_destroy(&r->mutex);
}

/* ---------------------------------------------------------------------- rates */

/* Ends a window that has passed; under the mutex. Returns what was left out in it. */
static uint64_t end_window(reports *r, report_kind kind, uint64_t now)
{
    if (now < r->of[kind].until_us)
        return 0;
    uint64_t left_out = r->of[kind].left_out;
    r->of[kind].until_us = 0;
    r->of[kind].written = 0;
    r->of[kind].left_out = 0;
    return left_out;
}

static void write_line(reports *r, report_kind kind, log_level level,
                       const trace_context *context, const char *message,
                       const attribute *fields, size_t field_count)
{
    logger log = r->log;
    if (kind == REPORT_TELEMETRY) /* each failure would make a record that can fail */
        log.also = NULL;
    logline_write(&log, level, context, message, fields, field_count);
}

static void say_left_out(reports *r, report_kind kind, uint64_t lines)
{
    if (lines)
        write_line(r, kind, LEVEL_WARN, NULL, "More lines of this kind were left out.",
                   (attribute[]){attribute_text("kind", kinds[kind]),
                                 attribute_number("lines", (int64_t)lines)},
                   2);
}

void report(reports *r, report_kind kind, log_level level, const trace_context *context,
            const char *message, const attribute *fields, size_t field_count)
{
    if (!r->log.fd || level < r->log.least)
        return;
    uint64_t now = os_now_us();
    pthread_mutex_lock(&r->mutex);
    uint64_t before = end_window(r, kind, now);
    if (!r->of[kind].until_us)
        r->of[kind].until_us = now + (uint64_t)REPORT_WINDOW_MS * 1000;
    int may = r->of[kind].written < REPORT_LINES;
    r->of[kind].written += (unsigned)may;
    r->of[kind].left_out += !may;
    pthread_mutex_unlock(&r->mutex);
    say_left_out(r, kind, before);
    if (may)
        write_line(r, kind, level, context, message, fields, field_count);
}

void reports_tick(reports *r, int all)
{
    for (int i = 0; i < REPORT_KINDS && r->log.fd; i++) {
        report_kind kind = (report_kind)i;
        pthread_mutex_lock(&r->mutex);
        uint64_t left_out = end_window(r, kind, all ? UINT64_MAX : os_now_us());
        pthread_mutex_unlock(&r->mutex);
        say_left_out(r, kind, left_out);
    }
}

/* ---------------------------------------------------------------------- sentences */

static int is_part_of_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '-' || (unsigned char)c >= 0x80;
}

/* A field of bytes stands in a message behind its size. */
static int has_field(const char *request, size_t size, const char *word, size_t length)
{
    const char *at = request, *end = request + size;
    if (length == 0 || length > 0x7f)
        return length > 0; /* no word of ours is so long */
    while (at < end && (at = memchr(at, (int)length, (size_t)(end - at)))) {
        at++;
        if ((size_t)(end - at) >= length && memcmp(at, word, length) == 0)
            return 1;
    }
    return 0;
}

/* What is quoted ends at the last quote of the sentence: a name may have quotes in it. */
static const char *end_of_quoted(const char *at)
{
    const char *last = strrchr(at + 1, *at);
    return last ? last + 1 : at + strlen(at);
}

void report_put_sentence(buf *out, const char *sentence, const void *request, size_t size)
{
    const char *at = sentence;
    while (*at) {
        const char *word = at;
        if (*at == '"' || strncmp(at, "x'", 2) == 0) { /* x'2f': bytes of a name */
            buf_puts(out, "***");
            at = end_of_quoted(*at == '"' ? at : at + 1);
            continue;
        }
        while (is_part_of_name(*at))
            at++;
        size_t length = (size_t)(at - word);
        if (length == 0)
            buf_putc(out, *at++);
        else if (size && has_field(request, size, word, length))
            buf_puts(out, "***");
        else
            buf_put(out, word, length);
    }
}
