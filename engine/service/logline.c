/*
 * logline.c: a record as one line of JSON, and its one write.
 */
#include "service/logline.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/os.h"
#include "base/text.h"
#include "codec/json.h"
#include "service/redact.h"

#define CUT "\"cut\":true"
enum { MESSAGE_LIMIT = 1000, VALUE_LIMIT = 500, TAIL = sizeof ",}\n" CUT };

static const char *const levels[] = {"debug", "info", "warn", "error"};

int logline_level(log_level *out, const char *text)
{
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (strcmp(text, levels[i]) == 0) {
            *out = (log_level)i;
            return 0;
        }
    return -1;
}

static void put_field(buf *line, const attribute *a)
{
    buf_putc(line, ',');
    json_put_cstring(line, a->name);
    buf_putc(line, ':');
    switch (a->type) {
    case ATTRIBUTE_TEXT:
        redact_put_json(line, a->text.data, a->text.size, VALUE_LIMIT);
        break;
    case ATTRIBUTE_NUMBER:
        buf_put_i64(line, a->number);
        break;
    case ATTRIBUTE_TRUTH:
        buf_puts(line, a->number ? "true" : "false");
        break;
    }
}

static void put_ids(buf *line, const trace_context *c)
{
    char trace[2 * TRACE_ID_SIZE + 1], span[2 * SPAN_ID_SIZE + 1];
    if (!trace_context_is_set(c))
        return;
    hex_encode(trace, c->trace, TRACE_ID_SIZE);
    hex_encode(span, c->span, SPAN_ID_SIZE);
    buf_printf(line, ",\"trace_id\":\"%s\",\"span_id\":\"%s\"", trace, span);
}

/* Takes back what made the line too long: 1 when it did. */
static int cut_to(buf *line, size_t before)
{
    if (line->size <= LOGLINE_SIZE - TAIL)
        return 0;
    line->size = before;
    return 1;
}

static void put_line(buf *line, const log_record *r)
{
    char time[TIME_SIZE];
    int cut = 0;

    time_print(r->time_ms, time);
    buf_printf(line, "{\"time\":\"%s\",\"level\":\"%s\"", time, levels[r->level]);
    put_ids(line, r->context);
    buf_puts(line, ",\"message\":");
    size_t before = line->size;
    redact_put_json(line, r->message, strlen(r->message), MESSAGE_LIMIT);
    if (cut_to(line, before)) { /* control characters alone: six bytes each */
        buf_puts(line, "\"\"");
        cut = 1;
    }
    for (size_t i = 0; i < r->field_count; i++) {
        before = line->size;
        put_field(line, &r->fields[i]);
        cut |= cut_to(line, before);
    }
    buf_puts(line, cut ? "," CUT "}\n" : "}\n");
}

/* 0: written whole. */
static int write_line(int fd, const buf *line)
{
    ssize_t wrote;
    do
        wrote = write(fd, line->data, line->size);
    while (wrote < 0 && errno == EINTR);
    return wrote == (ssize_t)line->size ? 0 : -1;
}

void logline_write(const logger *l, log_level level, const trace_context *context,
                   const char *message, const attribute *fields, size_t field_count)
{
    log_record r = {level, 0, message, fields, field_count, context};
    int before = errno;
    buf line;

    if (!l || level < l->least)
        return;
    r.time_ms = os_current->now_ms(os_current->ud);
    buf_init(&line, &allocator_default);
    put_line(&line, &r);
    if (line.failed || write_line(l->fd, &line))
        metrics_add(l->metrics, METRIC_LOG_LINES_LOST, 0, 0, 1);
    buf_deinit(&line);
    if (l->also)
        l->also(l->also_ud, &r);
    errno = before;
}
