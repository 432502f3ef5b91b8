/*
 * fuzz_encoding.c: vocabularies and images of encodings, as files that somebody else
 * wrote.
 *
 * The first byte chooses: 0 a mapped file as it is; 1 the same with its checksum set
 * right, so that what stands behind it is reached; 2 a .tiktoken file with a pattern of
 * ours; 3 a tokenizer.json; 4 a .tiktoken file whose pattern is the input's first line.
 *
 * Holds: a refusal gives no encoding and quotes nothing that is no text; what opens
 * counts any text, as many as it encodes; what came from a rank file gives the text back.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tokens/encoding.h"
#include "tokens/encoding_image.h"

static const char *const words[] = {"\"ByteLevel\"",
                                    "\"Split\"",
                                    "\"Sequence\"",
                                    "\"pretokenizers\":[",
                                    "\"Isolated\"",
                                    "\"Removed\"",
                                    "\"ignore_merges\":true",
                                    "\"added_tokens\":[{\"id\":300,\"content\":\"ab\"}]",
                                    "\"pattern\":{\"Regex\":\"\\\\p{L}+\"}",
                                    "\"merges\":[",
                                    "[\"a\",\"b\"]",
                                    "\\p{N}{1,3}",
                                    "(?i:",
                                    "\\s+(?!\\S)",
                                    "(a+)+$",
                                    "YWI= 256\n",
                                    "\n",
                                    NULL};

const fuzz_about fuzz_this = {"encoding", 1500, 1 << 16, words};

static const char sample[] = "Hello ab abab  \n\n 123 'S\xc5\xbf caf\xc3\xa9 "
                             "\xe6\xbc\xa2\xe5\xad\x97\xf0\x9f\x99\x82"
                             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                             "aaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                             "aaaaaaaaaa\t\xff\xe4\xb8 <x>";

/* same: the tokens of a text must be the text again. */
static void use(const encoding *e, const char *text, size_t size, int same)
{
    sessile_error err = {0};
    int64_t count = -1;
    buf ids, back;
    sessile_status status;

    buf_init(&ids, &allocator_default);
    buf_init(&back, &allocator_default);
    status = encoding_encode(e, text, size, &ids, &err);
    FUZZ_CHECK(status == SESSILE_OK || status == SESSILE_LIMIT);
    FUZZ_CHECK(encoding_count(e, text, size, &count, NULL) == status);
    FUZZ_CHECK(count == (int64_t)(ids.size / sizeof(uint32_t)));
    status = encoding_decode(e, (const uint32_t *)ids.data, (size_t)count, &back, &err);
    FUZZ_CHECK(status == SESSILE_OK);
    if (same && !err.code && utf8_valid(text, size))
        FUZZ_CHECK(back.size == size && (size == 0 || !memcmp(back.data, text, size)));
    buf_deinit(&ids);
    buf_deinit(&back);
}

static void open_file(const char *name, const void *data, size_t size,
                      const char *pattern, int same)
{
    sessile_error err = {0};
    void *copy = fuzz_copy(data, size);
    encoding *e;
    sessile_status status =
        encoding_open_bytes(&e, name, copy, size, pattern, &allocator_default, &err);

    FUZZ_CHECK(status == err.code);
    FUZZ_CHECK((status == SESSILE_OK) == (e != NULL));
    if (e) {
        use(e, sample, sizeof sample - 1, same);
        use(e, (const char *)copy, size < 4096 ? size : 4096, same);
        use(e, "", 0, same);
    } else {
        FUZZ_CHECK(status == SESSILE_INVALID || status == SESSILE_UNSUPPORTED ||
                   status == SESSILE_LIMIT);
        FUZZ_CHECK(utf8_valid(err.message, strlen(err.message)));
    }
    encoding_free(e);
    free(copy);
}

/* With the size and sum that it should have. */
static void open_mended(const uint8_t *data, size_t size)
{
    size_t whole = size & ~(size_t)7;
    image_header *h;

    if (whole < sizeof *h)
        return;
    h = fuzz_copy(data, whole);
    h->size = whole;
    h->checksum = image_checksum(h);
    open_file("x.bpe", h, whole, NULL, 0);
    free(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *line;
    char pattern[256];

    if (size == 0)
        return 0;
    switch (data[0] % 5) {
    case 0:
        open_file("x.bpe", data + 1, size - 1, NULL, 0);
        break;
    case 1:
        open_mended(data + 1, size - 1);
        break;
    case 2:
        open_file("x.tiktoken", data + 1, size - 1, "o200k_base", 1);
        break;
    case 3:
        open_file("x.json", data + 1, size - 1, NULL, 0);
        break;
    default:
        line = memchr(data + 1, '\n', size - 1);
        if (!line || (size_t)(line - data) > sizeof pattern)
            break;
        memcpy(pattern, data + 1, (size_t)(line - data) - 1);
        pattern[line - data - 1] = 0;
        open_file("x.tiktoken", line + 1, size - (size_t)(line + 1 - data), pattern, 1);
    }
    return 0;
}

/* ------------------------------------------------------------------ seeds */

/* A token of each byte, and some more. */
static void put_ranks(buf *out)
{
    static const char *const more[] = {"ab",   "abab",  " ab", "aa",
                                       "aaaa", "Hello", " 123"};
    size_t k;
    for (k = 0; k < 256; k++) {
        char byte = (char)k;
        base64_put(out, &byte, 1);
        buf_printf(out, " %zu\n", k);
    }
    for (k = 0; k < sizeof more / sizeof *more; k++) {
        base64_put(out, more[k], strlen(more[k]));
        buf_printf(out, " %zu\n", 256 + k);
    }
}

static void put_json(buf *out)
{
    unsigned k, next = 0x100;
    buf_puts(out,
             "{\"added_tokens\":[{\"id\":300,\"content\":\"<x>\",\"special\":false}],"
             "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":"
             "\"Split\",\"pattern\":{\"Regex\":\"\\\\p{N}{1,3}\"},\"behavior\":"
             "\"Isolated\"},{\"type\":\"ByteLevel\",\"add_prefix_space\":false}]},"
             "\"model\":{\"type\":\"BPE\",\"merges\":[\"a b\",[\"a\",\"a\"],"
             "\"ab ab\"],\"vocab\":{\"ab\":256,\"aa\":257,\"abab\":258");
    for (k = 0; k < 256; k++) {
        int itself = (k >= '!' && k <= '~') || (k >= 0xa1 && k <= 0xac) || k >= 0xae;
        buf_printf(out, ",\"\\u%04x\":%u", itself ? k : next, k);
        next += !itself;
    }
    buf_puts(out, "}}}");
}

static void give(fuzz_take take, void *arg, char how, const char *before, const buf *file)
{
    buf seed;
    buf_init(&seed, &allocator_default);
    buf_putc(&seed, how);
    buf_puts(&seed, before);
    buf_put(&seed, file->data, file->size);
    take(arg, seed.data, seed.size);
    buf_deinit(&seed);
}

void fuzz_seeds(fuzz_take take, void *arg)
{
    buf ranks, json, whole;
    vocabulary v;

    buf_init(&ranks, &allocator_default);
    buf_init(&json, &allocator_default);
    buf_init(&whole, &allocator_default);
    vocabulary_init(&v, &allocator_default);
    put_ranks(&ranks);
    put_json(&json);
    FUZZ_CHECK(vocabulary_read_tiktoken(&v, ranks.data, ranks.size, NULL) == SESSILE_OK);
    FUZZ_CHECK(vocabulary_known(&v, "cl100k_base") == 0);
    FUZZ_CHECK(image_build(&whole, &v, NULL) == SESSILE_OK);
    give(take, arg, 0, "", &whole);
    give(take, arg, 1, "", &whole);
    give(take, arg, 2, "", &ranks);
    give(take, arg, 3, "", &json);
    give(take, arg, 4, "\\w+|\\s\n", &ranks);
    vocabulary_deinit(&v);
    buf_deinit(&ranks);
    buf_deinit(&json);
    buf_deinit(&whole);
}
