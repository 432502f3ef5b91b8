/*
 * fuzz_line.c: one line of a log, plain and sealed.
 *
 * The first byte of an input chooses: bit 0 sealed; bit 1 the header; bit 2 the rest is
 * an entry's text that is put into a line first (so that what is behind a good seal is
 * fuzzed too), with a commit and a durable out of bits 3 and 4; else it is a line.
 *
 * Holds: what opens, written again from what it said, is the same line where nothing is
 * drawn (plain), and opens as the same where something is (sealed); a line that was put
 * opens; a claim is made by what opens; text comes back unchanged, and nothing is added
 * to out by what is bad.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "codec/entry.h"
#include "log/line.h"

#define DEPTH 64
enum { SEALED = 1, HEADER = 2, PUT = 4, COMMIT = 8, DURABLE = 16 };

static const char *const words[] = {"{\"id\":\"0000002a\"",
                                    ",\"commit\":1",
                                    ",\"durable\":\"00000001\"",
                                    ",\"s\":\"",
                                    ",\"_c\":\"",
                                    ",\"sessile\":1",
                                    "\"}",
                                    "AAAA",
                                    "==",
                                    "4294967296",
                                    "18446744073709551616",
                                    NULL};

const fuzz_about fuzz_this = {"line", 350000, 1 << 12, words};

static void opened(const logkey *k, int how, char *text, size_t size, const line *l,
                   const buf *out)
{
    unsigned char tag[VAULT_TAG];
    buf again, scratch, entry_again;
    line second, claim;
    line_clear clear = {l->commit, l->has_durable ? (uint64_t)l->durable + 1 : 0};
    FUZZ_CHECK(out->size > LINE_START_SIZE && out->data[out->size - 1] == '}');
    FUZZ_CHECK(l->commit <= (uint64_t)l->id + 1);
    if (how & HEADER)
        return; /* a header is drawn again each time */
    FUZZ_CHECK(line_claims(k, text, size, &claim));
    FUZZ_CHECK(claim.commit == l->commit && claim.has_durable == l->has_durable &&
               claim.durable == l->durable);
    buf_init(&again, &allocator_default);
    buf_init(&scratch, &allocator_default);
    buf_init(&entry_again, &allocator_default);
    sessile_status status = line_put(k, &again, out->data, out->size, clear, l->previous,
                                     tag, &scratch, NULL);
    FUZZ_CHECK(status == SESSILE_OK);
    FUZZ_CHECK(again.size == size + 1 && again.data[size] == '\n');
    if (!(how & SEALED))
        FUZZ_CHECK(memcmp(again.data, text, size) == 0);
    FUZZ_CHECK(line_open(k, DEPTH, again.data, size, 0, &second, &entry_again, NULL) ==
               LINE_GOOD);
    FUZZ_CHECK(entry_again.size == out->size &&
               memcmp(entry_again.data, out->data, out->size) == 0);
    FUZZ_CHECK(second.id == l->id && second.commit == l->commit &&
               second.has_durable == l->has_durable && second.durable == l->durable);
    FUZZ_CHECK(memcmp(second.previous, l->previous, VAULT_TAG) == 0 &&
               memcmp(second.tag, tag, VAULT_TAG) == 0);
    buf_deinit(&again);
    buf_deinit(&scratch);
    buf_deinit(&entry_again);
}

static line_verdict try_line(int how, const char *data, size_t size)
{
    const logkey *k = fixed_logkey(how & SEALED);
    char *text = fuzz_copy(data, size);
    sessile_error err = {0};
    line l, claim, looked;
    buf out;
    buf_init(&out, &allocator_default);
    (void)line_claims(k, text, size, &claim);
    line_verdict look =
        how & SEALED ? line_check_layout(k, text, size, (how & HEADER) != 0, &looked)
                     : LINE_BAD;
    line_verdict verdict =
        line_open(k, DEPTH, text, size, (how & HEADER) != 0, &l, &out, &err);
    FUZZ_CHECK(memcmp(text, data, size) == 0);
    if (verdict == LINE_GOOD) {
        opened(k, how, text, size, &l, &out);
        if (how & SEALED) { /* who has no key is told the same in clear */
            FUZZ_CHECK(look == LINE_GOOD && looked.id == l.id &&
                       looked.commit == l.commit && looked.durable == l.durable &&
                       memcmp(looked.tag, l.tag, VAULT_TAG) == 0);
        }
    }
    buf_deinit(&out);
    free(text);
    return verdict;
}

/* The entry's text in a line that nobody has changed. */
static void put_first(int how, const char *data, size_t size)
{
    static const unsigned char previous[VAULT_TAG] = {1, 2, 3};
    unsigned char tag[VAULT_TAG];
    buf checked, text, scratch;
    sessile_id id;
    buf_init(&checked, &allocator_default);
    buf_init(&text, &allocator_default);
    buf_init(&scratch, &allocator_default);
    if (!json_check(&checked, data, size, DEPTH, NULL) &&
        line_id(checked.data, checked.size, &id) &&
        checked.data[checked.size - 1] == '}') {
        line_clear clear = {0, 0};
        if (how & COMMIT) {
            clear.commit = 1;
            clear.durable = how & DURABLE ? id / 2 : 0;
        }
        sessile_status status =
            line_put(fixed_logkey(how & SEALED), &text, checked.data, checked.size, clear,
                     previous, tag, &scratch, NULL);
        if (!status)
            FUZZ_CHECK(try_line(how & SEALED, text.data, text.size - 1) == LINE_GOOD);
        else
            FUZZ_CHECK(status == SESSILE_INVALID && !(how & SEALED));
    }
    buf_deinit(&checked);
    buf_deinit(&text);
    buf_deinit(&scratch);
}

/* A first line with any bytes: its key, or why not. */
static void key_of(const char *data, size_t size)
{
    for (int sealed = 0; sealed < 2; sealed++) {
        char *text = fuzz_copy(data, size);
        sessile_error err = {0};
        logkey k;
        sessile_status status = line_key(&k, fixed_keyring(sealed), text, size, &err);
        FUZZ_CHECK(status == err.code && (status == SESSILE_OK || k.key == NULL));
        FUZZ_CHECK(status != SESSILE_OK || (k.suite != SUITE_NONE) == sealed);
        logkey_deinit(&k);
        free(text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    int how = data[0] & 31;
    const char *text = (const char *)data + 1;
    if (how & PUT) {
        put_first(how, text, size - 1);
    } else {
        try_line(how, text, size - 1);
        if (how & HEADER)
            key_of(text, size - 1);
    }
    return 0;
}

void fuzz_seeds(fuzz_take take, void *arg)
{
    static const char entry_text[] =
        "{\"id\":\"0000002a\",\"parent_id\":\"00000029\",\"timestamp\":"
        "\"2026-11-21T20:12:03.123Z\",\"type\":\"message\",\"data\":{\"role\":\"user\","
        "\"content\":\"hi \\\"commit\\\":1\"}}";
    static const unsigned char previous[VAULT_TAG] = {9};
    unsigned char tag[VAULT_TAG];
    buf text, scratch;
    buf_init(&text, &allocator_default);
    buf_init(&scratch, &allocator_default);
    for (int how = 0; how < 32; how++) {
        if (how & PUT) {
            fuzz_give(take, arg, how, entry_text, strlen(entry_text));
        } else if (!(how & HEADER)) {
            line_clear clear = {how & COMMIT ? 3 : 0, how & DURABLE ? 7 : 0};
            buf_clear(&text);
            FUZZ_CHECK(line_put(fixed_logkey(how & SEALED), &text, entry_text,
                                strlen(entry_text), clear, previous, tag, &scratch,
                                NULL) == SESSILE_OK);
            fuzz_give(take, arg, how, text.data, text.size - 1);
        }
    }
    fuzz_give(take, arg, SEALED | HEADER, fixed_header, strlen(fixed_header));
    logkey none;
    buf_clear(&text);
    FUZZ_CHECK(line_put_header(&none, fixed_keyring(0), NULL, &text, fixed_header_entry,
                               strlen(fixed_header_entry), tag, &scratch,
                               NULL) == SESSILE_OK);
    fuzz_give(take, arg, HEADER, text.data, text.size - 1);
    buf_deinit(&text);
    buf_deinit(&scratch);
}
