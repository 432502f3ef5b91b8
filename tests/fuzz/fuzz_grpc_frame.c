/*
 * fuzz_grpc_frame.c: messages in the frames of gRPC, and three values of headers.
 *
 * Holds: messages that come in pieces are those that come at once, and what is wrong is
 * found either way; nothing larger than the limit is kept. A timeout that is accepted is
 * printed as one that is no shorter. A text that was encoded for a header is printable,
 * and decodes to itself; anything decodes to UTF-8.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "rpc/frame.h"

enum { FRAMES, TIMEOUT, DECODE, ENCODE, WAYS, LIMIT = 300 };

static const char *const words[] = {"0000", "99999999H", "%41", "%", "%00", "n",
                                    "u",    "m",         "S",   "M", NULL};

const fuzz_about fuzz_this = {"grpc_frame", 200000, 2048, words};

void fuzz_seeds(fuzz_take take, void *arg)
{
    static const char two[] = "\x01\0\0\0\0\5hello\0\0\0\0\0\0\0\0\1\1";
    fuzz_give(take, arg, FRAMES, two, sizeof two - 1);
    fuzz_give(take, arg, FRAMES, "\x03\1\0\0\0\1x", 7);
    fuzz_give(take, arg, FRAMES, "\x02\0\x7f\xff\xff\xffx", 7);
    fuzz_give_text(take, arg, TIMEOUT, "20m");
    fuzz_give_text(take, arg, TIMEOUT, "99999999H");
    fuzz_give_text(take, arg, TIMEOUT, "1n");
    fuzz_give_text(take, arg, DECODE, "gr%C3%B6%C3%9Fe %e6%97%A5 100%25 %");
    fuzz_give_text(take, arg, ENCODE,
                   "gr\xc3\xb6\xc3\x9f"
                   "e 100%\n");
}

/* All messages one after the other, each with its size, and how it ended. */
static frame_result read_in(size_t step, const uint8_t *data, size_t size, buf *out)
{
    frame_reader r;
    frame_result result = FRAME_MORE;

    buf_init(out, &allocator_default);
    frame_init(&r, LIMIT, &allocator_default);
    while (size && (result == FRAME_MORE || result == FRAME_MESSAGE)) {
        size_t n = step < size ? step : size;
        unsigned char *piece = fuzz_copy(data, n);
        const unsigned char *at = piece, *message;
        size_t left = n, message_size;
        do {
            result = frame_read(&r, &at, &left, &message, &message_size);
            if (result != FRAME_MESSAGE)
                continue;
            FUZZ_CHECK(message_size <= LIMIT && !frame_inside(&r));
            buf_printf(out, "%zu:", message_size);
            buf_put(out, message, message_size);
        } while (left && result == FRAME_MESSAGE);
        FUZZ_CHECK(result != FRAME_MORE || !left);
        FUZZ_CHECK(result != FRAME_MORE || r.body.size <= LIMIT);
        free(piece);
        data += n;
        size -= n;
    }
    frame_deinit(&r);
    return result == FRAME_MESSAGE ? FRAME_MORE : result;
}

static void frames(const uint8_t *data, size_t size)
{
    buf whole, pieces;
    size_t step = size ? data[0] % 40 + 1u : 1;
    frame_result a, b;

    if (size) {
        data++;
        size--;
    }
    a = read_in(size ? size : 1, data, size, &whole);
    b = read_in(step, data, size, &pieces);
    FUZZ_CHECK(a == b);
    FUZZ_CHECK(whole.size == pieces.size);
    FUZZ_CHECK(!whole.size || !memcmp(whole.data, pieces.data, whole.size));
    buf_deinit(&whole);
    buf_deinit(&pieces);
}

static void timeout(const char *text)
{
    char printed[FRAME_TIMEOUT_SIZE];
    uint64_t us, again;

    if (frame_timeout_parse(text, &us))
        return;
    frame_timeout_print(us, printed);
    FUZZ_CHECK(!frame_timeout_parse(printed, &again));
    FUZZ_CHECK(again >= us && again <= us + us / 1000 + 1);
}

static void decode(const char *text)
{
    buf out;
    buf_init(&out, &allocator_default);
    frame_percent_take(&out, text);
    FUZZ_CHECK(!out.size || utf8_valid(out.data, out.size));
    FUZZ_CHECK(!out.size || strlen(out.data) == out.size);
    buf_deinit(&out);
}

static void encode(const char *text)
{
    buf coded, back;
    size_t i;

    buf_init(&coded, &allocator_default);
    buf_init(&back, &allocator_default);
    frame_percent_put(&coded, text);
    for (i = 0; i < coded.size; i++)
        FUZZ_CHECK(coded.data[i] >= ' ' && coded.data[i] <= '~');
    if (utf8_valid(text, strlen(text))) {
        frame_percent_take(&back, coded.data ? coded.data : "");
        FUZZ_CHECK(back.size == strlen(text) &&
                   !memcmp(back.data ? back.data : "", text, back.size));
    }
    buf_deinit(&coded);
    buf_deinit(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text;

    if (!size)
        return 0;
    if (data[0] % WAYS == FRAMES) {
        frames(data + 1, size - 1);
        return 0;
    }
    text = malloc(size);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    if (data[0] % WAYS == TIMEOUT)
        timeout(text);
    else if (data[0] % WAYS == DECODE)
        decode(text);
    else
        encode(text);
    free(text);
    return 0;
}
