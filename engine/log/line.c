/*
 * line.c: the layout of one line.
 *
 * A line has exactly one valid spelling: any other bytes are refused, even if they are
 * the same JSON. Must never read past the given size, nor return anything from a line
 * before its seal or checksum was checked.
 */
#include "log/line.h"

#include <string.h>

#include "base/text.h"
#include "codec/entry.h"
#include "codec/json.h"

#define ID_SIZE     8
#define DIGITS_MOST 10
#define SUM_SIZE    8

#define COMMIT          ",\"commit\":"
#define DURABLE         ",\"durable\":\""
#define SUM             ",\"_c\":\""
#define SEALED          ",\"s\":\""
#define MARK            ",\"sessile\":1"
#define CLOSE           "\"}"
#define LENGTH(literal) (sizeof(literal) - 1)

/* `{"id":"0000002a"` */
#define ID_END (LINE_START_SIZE + ID_SIZE + 1)
/* `,"durable":"0000002a"` */
#define DURABLE_SIZE (LENGTH(DURABLE) + ID_SIZE + 1)
/* `,"_c":"0123456789abcdef"}` */
#define SUM_END           (LENGTH(SUM) + 2 * SUM_SIZE + LENGTH(CLOSE))
#define SEALED_HEADER     "{\"id\":\"00000000\",\"sessile\":1,\"suite\":\""
#define SEALED_HEADER_END ",\"commit\":1,\"s\":\""

/* Entries wrap what a host gave in a few levels of their own. */
#define DEPTH_OF_ENTRIES 16

int line_id(const char *text, size_t size, sessile_id *id)
{
    return size > ID_END && memcmp(text, LINE_START, LINE_START_SIZE) == 0 &&
           id_parse(text + LINE_START_SIZE, ID_SIZE, id) == 0 && text[ID_END - 1] == '"';
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A decimal number without leading zeros, at least 1: digits of it, or 0. */
static size_t read_number(const char *text, size_t size, uint64_t *out)
{
    size_t n = 0;
    uint64_t value = 0;
    while (n < size && n <= DIGITS_MOST && is_digit(text[n]))
        value = value * 10 + (uint64_t)(text[n++] - '0');
    *out = value;
    return n == 0 || n > DIGITS_MOST || text[0] == '0' ? 0 : n;
}

static int ends_with(const char *text, size_t size, const char *end, size_t end_size)
{
    return size >= end_size && memcmp(text + size - end_size, end, end_size) == 0;
}

/* ---------------------------------------------------------------------- plain */

/*
 * Takes `,"commit":n` and `,"durable":"id"` off the end of text[0..size): the size
 * without them. They cannot be mistaken for the end of an entry: inside strings a quote
 * has a backslash before it, and every other member of an entry that the engine writes
 * ends in a quote, a brace or a bracket.
 */
static size_t take_clear(const char *text, size_t size, line *l)
{
    size_t rest = size, digits = 0;
    int has_durable = 0;
    if (rest >= DURABLE_SIZE && text[rest - 1] == '"' &&
        memcmp(text + rest - DURABLE_SIZE, DURABLE, LENGTH(DURABLE)) == 0 &&
        id_parse(text + rest - 1 - ID_SIZE, ID_SIZE, &l->durable) == 0) {
        has_durable = 1;
        rest -= DURABLE_SIZE;
    }
    while (digits < DIGITS_MOST && digits < rest && is_digit(text[rest - 1 - digits]))
        digits++;
    if (!ends_with(text, rest - digits, COMMIT, LENGTH(COMMIT)) ||
        read_number(text + rest - digits, digits, &l->commit) != digits || digits == 0) {
        l->commit = 0;
        return size;
    }
    l->has_durable = has_durable;
    return rest - digits - LENGTH(COMMIT);
}

static void sum_of(const char *text, size_t size, unsigned char sum[SUM_SIZE])
{
    unsigned char hash[32];
    hash256(hash, text, size, NULL, 0);
    memcpy(sum, hash, SUM_SIZE);
}

/* The size of everything before `,"_c"`, or 0: not the layout of a plain line. */
static size_t plain_head(const char *text, size_t size, line *l)
{
    if (size < ID_END + SUM_END || !line_id(text, size, &l->id) ||
        !ends_with(text, size, CLOSE, LENGTH(CLOSE)) ||
        memcmp(text + size - SUM_END, SUM, LENGTH(SUM)) != 0)
        return 0;
    return size - SUM_END;
}

static line_verdict open_plain(unsigned depth, char *text, size_t size, int is_header,
                               line *l, buf *out, sessile_error *err)
{
    char hex[2 * SUM_SIZE + 1];
    size_t rest = plain_head(text, size, l);
    if (rest == 0)
        return LINE_BAD;
    sum_of(text, rest, l->tag);
    hex_encode(hex, l->tag, SUM_SIZE);
    if (memcmp(hex, text + rest + LENGTH(SUM), 2 * SUM_SIZE) != 0)
        return LINE_BAD;
    rest = take_clear(text, rest, l);
    if (is_header) {
        if (!ends_with(text, rest, MARK, LENGTH(MARK)))
            return LINE_BAD;
        rest -= LENGTH(MARK);
    }
    if (rest < ID_END)
        return LINE_BAD;
    /* Anyone who may edit the file can make a checksum: the text is checked each time. */
    char after = text[rest];
    text[rest] = '}';
    sessile_status status =
        json_check(out, text, rest + 1, depth + DEPTH_OF_ENTRIES, err);
    text[rest] = after;
    if (status == SESSILE_NOMEM || status == SESSILE_LIMIT)
        return LINE_FAILED;
    if (status) {
        error_clear(err);
        return LINE_BAD;
    }
    return LINE_GOOD;
}

/* ---------------------------------------------------------------------- sealed */

/* The size of everything before the base64, or 0: not the layout of a sealed line. */
static size_t sealed_head(const char *text, size_t size, int is_header, line *l)
{
    size_t at = ID_END, digits;
    if (!line_id(text, size, &l->id))
        return 0;
    if (is_header) {
        const char *end =
            memmem(text, size, SEALED_HEADER_END, LENGTH(SEALED_HEADER_END));
        if (!end || size < LENGTH(SEALED_HEADER) ||
            memcmp(text, SEALED_HEADER, LENGTH(SEALED_HEADER)) != 0)
            return 0;
        l->commit = 1;
        return (size_t)(end - text) + LENGTH(SEALED_HEADER_END);
    }
    if (size - at > LENGTH(COMMIT) && memcmp(text + at, COMMIT, LENGTH(COMMIT)) == 0) {
        at += LENGTH(COMMIT);
        digits = read_number(text + at, size - at, &l->commit);
        if (digits == 0)
            return 0;
        at += digits;
        if (size - at > DURABLE_SIZE &&
            memcmp(text + at, DURABLE, LENGTH(DURABLE)) == 0) {
            if (id_parse(text + at + LENGTH(DURABLE), ID_SIZE, &l->durable) != 0 ||
                text[at + DURABLE_SIZE - 1] != '"')
                return 0;
            l->has_durable = 1;
            at += DURABLE_SIZE;
        }
    }
    if (size - at < LENGTH(SEALED) || memcmp(text + at, SEALED, LENGTH(SEALED)) != 0)
        return 0;
    return at + LENGTH(SEALED);
}

static line_verdict open_sealed(const logkey *k, const char *text, size_t size,
                                int is_header, line *l, buf *out, sessile_error *err)
{
    size_t head = sealed_head(text, size, is_header, l), was = out->size;
    sessile_id inner;
    if (head == 0 || size - head < LENGTH(CLOSE) ||
        !ends_with(text, size, CLOSE, LENGTH(CLOSE)))
        return LINE_BAD;
    if (open_line(k, text, head, text + head, size - head - LENGTH(CLOSE), out,
                  l->previous, l->tag) != 0) {
        if (out->failed) {
            fail_nomem(err);
            return LINE_FAILED;
        }
        return LINE_BAD;
    }
    /* What opens was checked before it was sealed: the seal vouches for the rest of it.
     */
    if (!line_id(out->data + was, out->size - was, &inner) || inner != l->id ||
        out->data[out->size - 1] != '}') {
        out->size = was;
        return LINE_BAD;
    }
    return LINE_GOOD;
}

/* 0: clear fields that no writer writes: a write that began before the log did, or one
 * that knew its own entries to be synced. */
static int checksum_agrees(const line *l)
{
    return l->commit <= (uint64_t)l->id + 1 &&
           (!l->has_durable || (uint64_t)l->durable + l->commit <= l->id);
}

int line_claims(const logkey *k, const char *text, size_t size, line *l)
{
    memset(l, 0, sizeof *l);
    if (k->suite == SUITE_NONE) {
        size_t head = plain_head(text, size, l);
        if (head == 0)
            return 0;
        take_clear(text, head, l);
    } else if (sealed_head(text, size, 0, l) == 0 ||
               !ends_with(text, size, CLOSE, LENGTH(CLOSE))) {
        return 0;
    }
    return checksum_agrees(l);
}

line_verdict line_open(const logkey *k, unsigned depth, char *text, size_t size,
                       int is_header, line *l, buf *out, sessile_error *err)
{
    memset(l, 0, sizeof *l);
    line_verdict verdict = k->suite == SUITE_NONE
                               ? open_plain(depth, text, size, is_header, l, out, err)
                               : open_sealed(k, text, size, is_header, l, out, err);
    if (verdict != LINE_GOOD)
        return verdict;
    if (!checksum_agrees(l) ||
        (is_header && (l->id != 0 || l->commit != 1 || l->has_durable)))
        return LINE_BAD;
    return LINE_GOOD;
}

/* The last 16 bytes of what these many characters of base64 stand for, padding included.
 */
#define TAG_CHARACTERS 24

line_verdict line_check_layout(const logkey *k, const char *text, size_t size,
                               int is_header, line *l)
{
    unsigned char end[TAG_CHARACTERS / 4 * 3];
    memset(l, 0, sizeof *l);
    size_t head = sealed_head(text, size, is_header, l);
    size_t least = suite_nonce_size(k->suite) + 2 * (size_t)VAULT_TAG;
    if (head == 0 || size - head < base64_size(least) + LENGTH(CLOSE) ||
        !ends_with(text, size, CLOSE, LENGTH(CLOSE)) || !checksum_agrees(l) ||
        (is_header && l->id != 0))
        return LINE_BAD;
    size_t body = size - head - LENGTH(CLOSE);
    int64_t got = body % 4 == 0 ? base64_decode(end, text + head + body - TAG_CHARACTERS,
                                                TAG_CHARACTERS)
                                : -1;
    if (got < VAULT_TAG)
        return LINE_BAD;
    memcpy(l->tag, end + got - VAULT_TAG, VAULT_TAG);
    return LINE_GOOD;
}

sessile_status line_read_key_info(logkey *k, const char *text, size_t size,
                                  sessile_error *err)
{
    logkey_about about;
    memset(k, 0, sizeof *k);
    if (logkey_look(&about, text, size) != 0)
        return SESSILE_OK; /* plain, or no line of a log: who reads it will see */
    if (about.suite == SUITE_NONE) {
        return fail(err, SESSILE_UNSUPPORTED,
                    "this log is sealed in a way that this engine does not know");
    }
    k->suite = about.suite;
    k->epoch = about.epoch;
    memcpy(k->user, about.user, sizeof k->user);
    return SESSILE_OK;
}

/* ---------------------------------------------------------------------- writing */

static void put_clear(buf *out, line_clear clear)
{
    char id[ID_SIZE + 1];
    if (clear.commit == 0)
        return;
    buf_puts(out, COMMIT);
    buf_put_u64(out, clear.commit);
    if (clear.durable > 0) {
        id_print((sessile_id)(clear.durable - 1), id);
        buf_puts(out, DURABLE);
        buf_put(out, id, ID_SIZE);
        buf_puts(out, "\"");
    }
}

static sessile_status put_sum(buf *out, size_t start, unsigned char tag_out[VAULT_TAG],
                              sessile_error *err)
{
    char hex[2 * SUM_SIZE + 1];
    memset(tag_out, 0, VAULT_TAG);
    if (out->failed)
        return fail_nomem(err);
    sum_of(out->data + start, out->size - start, tag_out);
    hex_encode(hex, tag_out, SUM_SIZE);
    buf_puts(out, SUM);
    buf_put(out, hex, 2 * SUM_SIZE);
    buf_puts(out, CLOSE "\n");
    return out->failed ? fail_nomem(err) : SESSILE_OK;
}

sessile_status line_put(const logkey *k, buf *out, const char *text, size_t size,
                        line_clear clear, const unsigned char previous[VAULT_TAG],
                        unsigned char tag_out[VAULT_TAG], buf *scratch,
                        sessile_error *err)
{
    size_t start = out->size;
    if (k->suite == SUITE_NONE) {
        line l;
        if (take_clear(text, size - 1, &l) != size - 1) {
            return fail(err, SESSILE_INVALID,
                        "an entry cannot end with the fields of a write");
        }
        buf_put(out, text, size - 1);
        put_clear(out, clear);
        return put_sum(out, start, tag_out, err);
    }
    buf_put(out, text, ID_END);
    put_clear(out, clear);
    buf_puts(out, SEALED);
    sessile_status status =
        seal_line(k, out, start, previous, text, size, tag_out, scratch, err);
    if (!status) {
        buf_puts(out, CLOSE "\n");
        status = out->failed ? fail_nomem(err) : SESSILE_OK;
    }
    return status;
}

sessile_status line_put_header(logkey *k, const keyring *keys, const char *user, buf *out,
                               const char *text, size_t size,
                               unsigned char tag_out[VAULT_TAG], buf *scratch,
                               sessile_error *err)
{
    static const unsigned char none[VAULT_TAG];
    memset(k, 0, sizeof *k);
    if (!keyring_sealed(keys)) {
        buf_put(out, text, size - 1);
        buf_puts(out, MARK COMMIT "1");
        return put_sum(out, 0, tag_out, err);
    }
    buf_put(out, text, ID_END);
    buf_puts(out, MARK);
    sessile_status status = logkey_new(k, keys, user, out, err);
    if (status)
        return status;
    buf_puts(out, SEALED_HEADER_END);
    status = seal_line(k, out, 0, none, text, size, tag_out, scratch, err);
    if (!status) {
        buf_puts(out, CLOSE "\n");
        status = out->failed ? fail_nomem(err) : SESSILE_OK;
    }
    return status;
}

sessile_status line_key(logkey *k, const keyring *keys, char *text, size_t size,
                        sessile_error *err)
{
    line l;
    memset(k, 0, sizeof *k);
    memset(&l, 0, sizeof l);
    size_t head = sealed_head(text, size, 1, &l);
    if (head > 0) {
        if (!keyring_sealed(keys)) {
            return fail(
                err, SESSILE_SEALED,
                "this log is sealed and its store is plain: it belongs to another "
                "store");
        }
        return logkey_open(k, keys, text, head - LENGTH(SEALED_HEADER_END), err);
    }
    if (keyring_sealed(keys)) {
        if (size > SUM_END && memcmp(text + size - SUM_END, SUM, LENGTH(SUM)) == 0) {
            return fail(
                err, SESSILE_SEALED,
                "this log is plain and its store is sealed: it was put there from "
                "elsewhere");
        }
        return fail(err, SESSILE_DAMAGED, "the first line is not that of a sealed log");
    }
    return SESSILE_OK; /* plain: the scan looks at the line */
}

int line_is_entry(const char *text, size_t size, uint64_t id)
{
    sessile_id found;
    return line_id(text, size, &found) && found == id && text[size - 1] == '}' &&
           !memchr(text, '\n', size);
}
