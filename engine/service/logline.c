/*
 * logline.c: a record as one line of JSON or text, and its one write.
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
enum { TIME_OF_DAY = sizeof "2026-11-27T" - 1 };

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

static void put_value(buf *line, const attribute *a)
{
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

static void put_field(buf *line, const attribute *a)
{
    buf_putc(line, ',');
    json_put_cstring(line, a->name);
    buf_putc(line, ':');
    put_value(line, a);
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

/* ---------------------------------------------------------------------- for people */

/* 0: control characters, and those that hide or reorder text. */
static int is_harmless(const char *text, size_t length)
{
    const unsigned char *c = (const unsigned char *)text;
    switch (length) {
    case 1:
        return c[0] >= ' ' && c[0] != 0x7f;
    case 2: /* U+0080 to U+009F, U+061C */
        return !(c[0] == 0xc2 && c[1] < 0xa0) && !(c[0] == 0xd8 && c[1] == 0x9c);
    case 3: /* U+200B to U+200F, U+2028 to U+202E, U+2060 to U+206F, U+FEC0 and more */
        if (c[0] == 0xe2 && c[1] == 0x80)
            return c[2] < 0x8b || (c[2] > 0x8f && c[2] < 0xa8) || c[2] > 0xae;
        return !(c[0] == 0xe2 && c[1] == 0x81 && c[2] >= 0xa0) &&
               !(c[0] == 0xef && c[1] >= 0xbb);
    default:
        return 0;
    }
}

static void put_harmless(buf *line, const char *text, size_t size)
{
    for (size_t at = 0, length; at < size; at += length) {
        length = utf8_length(text + at, size - at);
        if (length && is_harmless(text + at, length))
            buf_put(line, text + at, length);
        else
            buf_putc(line, '?');
        length += !length;
    }
}

static void put_text(buf *line, const log_record *r)
{
    char time[TIME_SIZE];
    buf all;

    time_print(r->time_ms, time);
    buf_init(&all, line->alloc);
    redact_put(&all, r->message, strlen(r->message));
    for (size_t i = 0; i < r->field_count; i++) {
        buf_printf(&all, "%s%s=", i ? ", " : " (", r->fields[i].name);
        put_value(&all, &r->fields[i]);
    }
    buf_puts(&all, r->field_count ? ")" : "");
    buf_printf(line, "%.8s %-5s ", time + TIME_OF_DAY, levels[r->level]);
    put_harmless(line, all.data, all.size);
    if (line->size > LOGLINE_SIZE - sizeof "…\n") {
        line->size = utf8_floor(line->data, line->size, LOGLINE_SIZE - sizeof "…\n");
        buf_puts(line, "…");
    }
    buf_putc(line, '\n');
    line->failed |= all.failed;
    buf_deinit(&all);
}

/* ---------------------------------------------------------------------- writing */

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
    if (l->is_text)
        put_text(&line, &r);
    else
        put_line(&line, &r);
    if (line.failed || write_line(l->fd, &line))
        metrics_add(l->metrics, METRIC_LOG_LINES_LOST, 0, 0, 1);
    buf_deinit(&line);
    if (l->also)
        l->also(l->also_ud, &r);
    errno = before;
}
