/*
 * fuzz_log.c: any bytes opened as a log.
 *
 * The first byte chooses: bit 0 sealed; bit 1 the rest is a list of edits of a good log
 * of twelve entries (four bytes each: where, how, with what), else it is the file; bit 2
 * with a good header put before it.
 *
 * Holds, when it opens: what is kept and what is set aside are the bytes that were there;
 * each entry reads as it was shown; it opens again with nothing set aside; an entry can
 * be appended and is there after opening. When it does not, no byte was changed. Of an
 * edited log nothing is ever shown but a beginning of what was written. A damaged log
 * opens, no byte of it is changed, it takes no write, and what it shows past the damage
 * are entries in their places, or stand-ins.
 */
#include "fuzz/fuzz.h"
#include "fuzz/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "log/line.h"
#include "log/log.h"

#define DEPTH   64
#define ENTRIES 12
enum { SEALED = 1, EDITS = 2, HEADER = 4 };

static const char *const words[] = {
    "\n",
    "{\"id\":\"00000001\"",
    ",\"commit\":1",
    ",\"durable\":\"00000001\"",
    ",\"s\":\"",
    ",\"_c\":\"",
    "\"}\n",
    ",\"commit\":1,\"durable\":\"0000000b\",\"s\":\"AAAA\"}\n",
    NULL};

const fuzz_about fuzz_this = {"log", 35000, 1 << 14, words};

/* What a scan showed: the texts end to end. */
typedef struct shown {
    buf texts;
    size_t ends[256];
    size_t count;
} shown;

static sessile_status show(void *arg, sessile_id id, const char *text, size_t size,
                           sessile_error *err)
{
    shown *s = arg;
    (void)err;
    FUZZ_CHECK(id == s->count);
    if (s->count == sizeof s->ends / sizeof *s->ends)
        return fail(err, SESSILE_LIMIT, "enough");
    buf_put(&s->texts, text, size);
    s->ends[s->count++] = s->texts.size;
    return SESSILE_OK;
}

static sessile_status open_log(log_t **log, memory *m, int sealed, shown *s,
                               uint64_t *torn, sessile_error *err)
{
    store st = memory_store(m);
    buf_init(&s->texts, &allocator_default);
    s->count = 0;
    return log_open(log, &st, fixed_keyring(sealed), "main", "fuzz", DEPTH, 0, show, s,
                    torn, &allocator_default, err);
}

static sessile_slice text_of(const shown *s, size_t i)
{
    size_t start = i > 0 ? s->ends[i - 1] : 0;
    return (sessile_slice){s->texts.data + start, s->ends[i] - start};
}

static void entry_text(char out[160], size_t id)
{
    snprintf(out, 160,
             "{\"id\":\"%08zx\",\"parent_id\":null,\"timestamp\":"
             "\"2026-11-21T20:12:03.123Z\",\"type\":\"custom\",\"data\":{\"n\":%zu}}",
             id, id * 7);
}

/* ---------------------------------------------------------------------- a good log */

static void good_header(buf *out, int sealed)
{
    unsigned char tag[VAULT_TAG];
    logkey none;
    buf scratch;
    buf_init(&scratch, &allocator_default);
    if (sealed) {
        buf_puts(out, fixed_header);
        buf_puts(out, "\n");
    } else {
        FUZZ_CHECK(line_put_header(&none, fixed_keyring(0), NULL, out, fixed_header_entry,
                                   strlen(fixed_header_entry), tag, &scratch,
                                   NULL) == SESSILE_OK);
    }
    buf_deinit(&scratch);
}

/* Writes of one, two and three lines; the last names half of what was before durable. */
static const buf *good_log(int sealed)
{
    static buf logs[2];
    buf *out = &logs[sealed], scratch;
    unsigned char previous[VAULT_TAG] = {0}, tag[VAULT_TAG];
    char text[160];
    line l;
    if (out->size > 0)
        return out;
    buf_init(out, &allocator_default);
    buf_init(&scratch, &allocator_default);
    good_header(out, sealed);
    FUZZ_CHECK(line_open(fixed_logkey(sealed), DEPTH, out->data, out->size - 1, 1, &l,
                         &scratch, NULL) == LINE_GOOD);
    memcpy(previous, l.tag, VAULT_TAG);
    for (size_t id = 1, write = 1; id < ENTRIES; write = write % 3 + 1) {
        for (size_t i = 0; i < write && id < ENTRIES; i++, id++) {
            line_clear clear = {0, 0};
            if (i + 1 == write || id + 1 == ENTRIES)
                clear = (line_clear){i + 1, (id - i) / 2};
            entry_text(text, id);
            FUZZ_CHECK(line_put(fixed_logkey(sealed), out, text, strlen(text), clear,
                                previous, tag, &scratch, NULL) == SESSILE_OK);
            memcpy(previous, tag, VAULT_TAG);
        }
    }
    buf_deinit(&scratch);
    return out;
}

/* Where line n begins, counted round. */
static size_t line_at(const buf *text, size_t n, size_t *size)
{
    size_t at = 0;
    for (;;) {
        const char *end = memchr(text->data + at, '\n', text->size - at);
        size_t next = end ? (size_t)(end - text->data) + 1 : text->size;
        if (n-- == 0 || next == text->size) {
            *size = next - at;
            return at;
        }
        at = next;
    }
}

static void cut_out(buf *text, size_t at, size_t size)
{
    memmove(text->data + at, text->data + at + size, text->size - at - size);
    text->size -= size;
}

static void put_in(buf *text, size_t at, const char *data, size_t size)
{
    FUZZ_CHECK(buf_reserve(text, size) == 0);
    memmove(text->data + at + size, text->data + at, text->size - at);
    memcpy(text->data + at, data, size);
    text->size += size;
}

static void edit(buf *text, const uint8_t *how)
{
    size_t at = ((size_t)how[0] << 8 | how[1]) % text->size, size, to;
    char held[1024];
    switch (how[2] % 7) {
    case 0:
        text->data[at] = (char)(text->data[at] ^ how[3]);
        break;
    case 1:
        text->size = at;
        break;
    case 2:
        put_in(text, at, (const char *)&how[3], 1);
        break;
    case 3:
        cut_out(text, at, how[3] < text->size - at ? how[3] : text->size - at);
        break;
    case 4: /* a line once more, elsewhere */
    case 5: /* a line moves */
        to = line_at(text, how[0] % ENTRIES, &size);
        size = size < sizeof held ? size : sizeof held;
        memcpy(held, text->data + to, size);
        if (how[2] % 7 == 5)
            cut_out(text, to, size);
        if (text->size > 0) {
            size_t there;
            to = line_at(text, how[1] % ENTRIES, &there);
            put_in(text, to, held, size);
        }
        break;
    default: /* a line goes */
        to = line_at(text, how[0] % ENTRIES, &size);
        cut_out(text, to, size);
    }
}

/* ---------------------------------------------------------------------- what holds */

static void appended(memory *m, int sealed, log_t *log, size_t count)
{
    char text[160];
    uint64_t torn;
    log_t *again;
    shown s;
    entry_text(text, count);
    sessile_slice slice = {text, strlen(text)};
    FUZZ_CHECK(log_begin(log, NULL, NULL, NULL) == SESSILE_OK);
    FUZZ_CHECK(log_append(log, &slice, 1, 0, NULL) == SESSILE_OK);
    log_end(log);
    FUZZ_CHECK(log_sync(log, log_count(log), NULL) == SESSILE_OK);
    FUZZ_CHECK(open_log(&again, m, sealed, &s, &torn, NULL) ==
               (count + 1 > 256 ? SESSILE_LIMIT : SESSILE_OK));
    if (again) {
        sessile_slice last = text_of(&s, count);
        FUZZ_CHECK(torn == 0 && s.count == count + 1 && last.size == slice.size &&
                   memcmp(last.data, text, last.size) == 0);
    }
    buf_deinit(&s.texts);
    log_close(again);
}

static void opened(memory *m, int sealed, log_t *log, const shown *s)
{
    buf one;
    buf_init(&one, &allocator_default);
    FUZZ_CHECK(log_count(log) == s->count && s->count > 0);
    for (size_t i = 0; i < s->count; i++) {
        sessile_slice was = text_of(s, i);
        buf_clear(&one);
        FUZZ_CHECK(log_read(log, (sessile_id)i, &one, NULL) == SESSILE_OK);
        FUZZ_CHECK(one.size == was.size && memcmp(one.data, was.data, was.size) == 0);
    }
    buf_deinit(&one);
    appended(m, sealed, log, s->count);
}

static sessile_status stand_in(void *arg, const log_flaw *lost, sessile_id id, buf *out,
                               sessile_error *err)
{
    (void)arg;
    (void)err;
    FUZZ_CHECK(lost->first <= id && id <= lost->last);
    buf_printf(out, "lost %u", (unsigned)id);
    return SESSILE_OK;
}

static void damaged(memory *m, log_t *log, shown *s, const char *data, size_t size,
                    int edited)
{
    sessile_error err = {0};
    sessile_slice slice = {"", 0};
    buf one;
    FUZZ_CHECK(log_begin(log, NULL, NULL, &err) == SESSILE_DAMAGED);
    FUZZ_CHECK(utf8_valid(err.message, strlen(err.message)));
    sessile_status status = log_read_damaged(log, show, stand_in, s, &err);
    FUZZ_CHECK(status == SESSILE_OK || status == SESSILE_LIMIT);
    if (!status) {
        FUZZ_CHECK(log_count(log) == s->count && log_lost(log) < s->count);
        buf_init(&one, &allocator_default);
        for (size_t i = 0; i < s->count; i++) {
            slice = text_of(s, i);
            buf_clear(&one);
            FUZZ_CHECK(log_read(log, (sessile_id)i, &one, NULL) == SESSILE_OK);
            FUZZ_CHECK(one.size == slice.size &&
                       memcmp(one.data, slice.data, one.size) == 0);
            if (edited && i > 0 && !log_has_stand_in(log, (sessile_id)i)) {
                char text[160];
                entry_text(text, i);
                FUZZ_CHECK(one.size == strlen(text) &&
                           memcmp(text, one.data, one.size) == 0);
            }
        }
        buf_deinit(&one);
    }
    FUZZ_CHECK(m->size == size && memcmp(m->data, data, size) == 0);
}

static void try_bytes(const char *data, size_t size, int how)
{
    int sealed = how & SEALED;
    sessile_error err = {0};
    uint64_t torn = 0;
    memory m;
    log_t *log;
    shown s;
    memory_init(&m, data, size);
    sessile_status status = open_log(&log, &m, sealed, &s, &torn, &err);
    if (!status && log_damage(log, NULL)) {
        damaged(&m, log, &s, data, size, how & EDITS);
    } else if (!status) {
        FUZZ_CHECK(m.size + torn == size && m.aside_size == torn);
        FUZZ_CHECK(memcmp(m.data, data, m.size) == 0);
        FUZZ_CHECK(torn == 0 || memcmp(m.aside, data + m.size, torn) == 0);
        FUZZ_CHECK(log_bytes(log) == m.size);
        if (how & EDITS) {
            char text[160];
            for (size_t i = 1; i < s.count; i++) {
                sessile_slice found = text_of(&s, i);
                entry_text(text, i);
                FUZZ_CHECK(found.size == strlen(text) &&
                           memcmp(found.data, text, found.size) == 0);
            }
        }
        opened(&m, sealed, log, &s);
    } else {
        FUZZ_CHECK(log == NULL && status == err.code && m.size == size);
        FUZZ_CHECK(memcmp(m.data, data, size) == 0);
        FUZZ_CHECK(status == SESSILE_DAMAGED || status == SESSILE_SEALED ||
                   status == SESSILE_UNSUPPORTED || status == SESSILE_LIMIT);
        FUZZ_CHECK(utf8_valid(err.message, strlen(err.message)));
    }
    log_close(log);
    buf_deinit(&s.texts);
    memory_deinit(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    buf text;
    if (size == 0)
        return 0;
    int how = data[0] & 7;
    buf_init(&text, &allocator_default);
    if (how & EDITS) {
        const buf *good = good_log(how & SEALED);
        buf_put(&text, good->data, good->size);
        for (size_t i = 1; i + 4 <= size && i < 40 && text.size > 0; i += 4)
            edit(&text, data + i);
    } else {
        if (how & HEADER)
            good_header(&text, how & SEALED);
        buf_put(&text, data + 1, size - 1);
    }
    try_bytes(text.data ? text.data : "", text.size, how);
    buf_deinit(&text);
    return 0;
}

void fuzz_seeds(fuzz_take take, void *arg)
{
    for (int sealed = 0; sealed < 2; sealed++) {
        const buf *log = good_log(sealed);
        size_t header = (size_t)((char *)memchr(log->data, '\n', log->size) - log->data);
        fuzz_give(take, arg, sealed, log->data, log->size);
        fuzz_give(take, arg, sealed, log->data, log->size - 5);
        fuzz_give(take, arg, sealed | HEADER, log->data + header + 1,
                  log->size - header - 1);
        for (uint8_t how = 0; how < 7; how++) {
            const uint8_t edits[] = {2, 130, how, 1, 3, 7, how, 40};
            fuzz_give(take, arg, sealed | EDITS, edits, sizeof edits);
        }
    }
}
