/*
 * redact.c: secrets are found by the marks that come before them.
 *
 * Log lines and spans are written by code that means well and passes on an error, a URL
 * or a setting with more in it than it knew. This is the last look, at every text,
 * whoever wrote it. Text is read once, word by word; a URL's password may have any
 * character but white space, so all of the word to its last '@' counts.
 */
#include "service/redact.h"

#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "codec/json.h"

#define HIDDEN "***"
enum { LEAST_CREDENTIAL = 16, LEAST_TOKEN = 20 };

typedef struct word {
    const char *at, *end;
} word;

static int is_space(char c)
{
    return (unsigned char)c <= ' ' || c == 0x7f;
}

static int begins(const word *w, const char *mark)
{
    size_t size = strlen(mark);
    return (size_t)(w->end - w->at) >= size && strncasecmp(w->at, mark, size) == 0;
}

static void copy_to(buf *out, word *w, const char *to)
{
    buf_put(out, w->at, (size_t)(to - w->at));
    w->at = to;
}

/* Characters of base64url, and those between the parts of keys and tokens. */
static const char *token_end(const char *at, const char *end)
{
    for (; at < end; at++)
        if (!((*at >= '0' && *at <= '9') || (*at >= 'A' && *at <= 'Z') ||
              (*at >= 'a' && *at <= 'z') || *at == '_' || *at == '-' || *at == '.'))
            break;
    return at;
}

/* "://user:password@": 1 when there was one. */
static int hide_password(buf *out, word *w)
{
    const char *from = w->at + 3;
    const char *at = memrchr(from, '@', (size_t)(w->end - from));
    const char *colon = at ? memchr(from, ':', (size_t)(at - from)) : NULL;
    if (!colon)
        return 0;
    copy_to(out, w, colon + 1);
    buf_puts(out, HIDDEN);
    w->at = at;
    return 1;
}

/* "password=value" */
static int hide_value(buf *out, word *w)
{
    static const char *const names[] = {"password=", "passwd=", "secret=", "token="};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!begins(w, names[i]))
            continue;
        copy_to(out, w, w->at + strlen(names[i]));
        buf_puts(out, HIDDEN);
        while (w->at < w->end && *w->at != '&' && *w->at != ';')
            w->at++;
        return 1;
    }
    return 0;
}

/* "sesk_ID_secret" and "eyJ..." */
static int hide_token(buf *out, word *w)
{
    const char *end = token_end(w->at, w->end), *from = w->at;
    if (begins(w, "sesk_")) {
        const char *second = memchr(from + 5, '_', (size_t)(end - from - 5));
        from = second ? second + 1 : from + 5;
    } else if (strncmp(w->at, "eyJ", 3) != 0 || end - w->at < LEAST_TOKEN) {
        return 0;
    }
    copy_to(out, w, from);
    buf_puts(out, HIDDEN);
    w->at = end;
    return 1;
}

static void put_word(buf *out, word w)
{
    while (w.at < w.end) {
        int hidden = (begins(&w, "://") && hide_password(out, &w)) ||
                     hide_value(out, &w) ||
                     ((begins(&w, "sesk_") || begins(&w, "eyJ")) && hide_token(out, &w));
        if (!hidden && w.at < w.end)
            buf_putc(out, *w.at++);
    }
}

/* The word before announces a credential, as in "Authorization: Bearer ...". */
static int announces(const word *w)
{
    size_t size = (size_t)(w->end - w->at);
    return (size >= 6 && strncasecmp(w->end - 6, "bearer", 6) == 0) ||
           (size >= 5 && strncasecmp(w->end - 5, "basic", 5) == 0);
}

void redact_put(buf *out, const char *text, size_t size)
{
    const char *end = text + size;
    word before = {text, text}, w;
    while (text < end) {
        w.at = text;
        while (text < end && is_space(*text))
            text++;
        copy_to(out, &w, text);
        while (text < end && !is_space(*text))
            text++;
        w.end = text;
        if (announces(&before) && w.end - w.at >= LEAST_CREDENTIAL)
            buf_puts(out, HIDDEN);
        else
            put_word(out, w);
        before = w;
    }
}

void redact_put_json(buf *out, const char *text, size_t size, size_t limit)
{
    buf safe, valid;
    buf_init(&safe, out->alloc);
    buf_init(&valid, out->alloc);
    redact_put(&safe, text, size);
    utf8_put_lossy(&valid, safe.data, safe.size);
    if (valid.size > limit) {
        valid.size = utf8_floor(valid.data, valid.size, limit);
        buf_puts(&valid, "\xe2\x80\xa6");
    }
    json_put_string(out, valid.data, valid.size);
    out->failed |= safe.failed | valid.failed;
    buf_deinit(&safe);
    buf_deinit(&valid);
}
