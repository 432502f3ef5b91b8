/*
 * error.c: fills a sessile_error.
 *
 * Must never allocate (it is called when memory has run out), never fail, and never
 * let a control character through: messages are printed on terminals, and can quote a
 * file name that an attacker chose.
 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* The C1 controls, U+0080 to U+009F: some terminals execute them like ESC. */
static int is_c1(const unsigned char *at, size_t length)
{
    return length == 2 && at[0] == 0xc2 && at[1] < 0xa0;
}

/* Cleans message[from..]: control characters and invalid UTF-8 become '?'; a sequence
 * cut by the end of the field is removed. */
static void tidy(char *message, size_t from, int was_cut)
{
    unsigned char *at = (unsigned char *)message + from;
    unsigned char *end = at + strlen(message + from);

    while (at < end) {
        size_t left = (size_t)(end - at);
        size_t length = utf8_length(at, left);
        if (length == 0 && was_cut && left < 4 && *at >= 0xc2) {
            *at = 0;
            return;
        }
        if (length == 0 || *at < 0x20 || *at == 0x7f) {
            *at++ = '?';
            continue;
        }
        if (is_c1(at, length)) {
            at[0] = '?';
            at[1] = '?';
        }
        at += length;
    }
}

/* Writes at err->message + from. */
static void write_message(sessile_error *err, size_t from, const char *format,
                          va_list args) __attribute__((format(printf, 3, 0)));

static void write_message(sessile_error *err, size_t from, const char *format,
                          va_list args)
{
    size_t room = sizeof err->message - from;
    int wanted = vsnprintf(err->message + from, room, format, args);
    if (wanted < 0)
        err->message[from] = 0;
    tidy(err->message, from, wanted >= 0 && (size_t)wanted >= room);
}

sessile_status fail(sessile_error *err, sessile_status status, const char *format, ...)
{
    if (err) {
        va_list args;
        err->code = status;
        err->retry_ms = 0;
        err->rule[0] = 0;
        va_start(args, format);
        write_message(err, 0, format, args);
        va_end(args);
    }
    return status;
}

sessile_status fail_rule(sessile_error *err, sessile_status status, const char *rule,
                         const char *format, ...)
{
    if (err) {
        va_list args;
        fail(err, status, "%s", "");
        snprintf(err->rule, sizeof err->rule, "%s", rule);
        va_start(args, format);
        write_message(err, 0, format, args);
        va_end(args);
    }
    return status;
}

sessile_status fail_nomem(sessile_error *err)
{
    return fail(err, SESSILE_NOMEM, "out of memory: nothing was changed");
}

sessile_status fail_prefix(sessile_error *err, const char *format, ...)
{
    char old[sizeof err->message];
    va_list args;
    size_t size, old_size, room;

    if (!err)
        return SESSILE_OK;
    old_size = strlen(err->message);
    memcpy(old, err->message, old_size + 1);
    va_start(args, format);
    write_message(err, 0, format, args);
    va_end(args);

    size = strlen(err->message);
    room = sizeof err->message - 1 - size;
    if (room < 2)
        return err->code;
    memcpy(err->message + size, ": ", 2);
    size += 2;
    room -= 2;
    if (old_size > room)
        old_size = utf8_floor(old, old_size, room);
    memcpy(err->message + size, old, old_size);
    err->message[size + old_size] = 0;
    return err->code;
}

sessile_status status_of_errno(int error)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT:
        return SESSILE_FULL;
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP:
        return SESSILE_DENIED;
    case ENOENT:
        return SESSILE_NOTFOUND;
    case EEXIST:
        return SESSILE_EXISTS;
    case ENOMEM:
        return SESSILE_NOMEM;
    default:
        return SESSILE_IO;
    }
}

sessile_status fail_errno(sessile_error *err, int error, const char *format, ...)
{
    sessile_status status = status_of_errno(error);
    if (err) {
        char reason[128];
        char what[sizeof err->message];
        va_list args;
        va_start(args, format);
        if (vsnprintf(what, sizeof what, format, args) < 0)
            what[0] = 0;
        va_end(args);
        /* The GNU form: returns its own text or `reason`, and is thread-safe. */
        fail(err, status, "%s: %s", what, strerror_r(error, reason, sizeof reason));
    }
    return status;
}

void error_clear(sessile_error *err)
{
    if (err) {
        err->code = SESSILE_OK;
        err->rule[0] = 0;
        err->message[0] = 0;
        err->retry_ms = 0;
    }
}
