/*
 * estimate.c: how many tokens a text is, without a vocabulary.
 *
 * Owns the estimate and its margin. Must never allocate, and never look at a byte twice:
 * it runs on every append.
 *
 * The problem: a policy needs the size of a message before a provider has counted it, for
 * models whose vocabularies differ or are not published. Bytes divided by four is off by a
 * factor of two and more for code, JSON, base64 and anything that is not English.
 *
 * The choice: tokenizers first cut text into words, numbers, punctuation and white space,
 * then merge within each piece. Cutting the same way and giving each kind of piece its
 * usual price follows all of them within a fifth:
 *   - a word is one token up to seven letters, and one more for every five after that; a
 *     capital inside a word begins the next one (camelCase; it also prices base64, whose
 *     letters change case all the time, at about two characters a token without its
 *     having to be recognised; hex is priced so by its digits);
 *   - digits go three to a token;
 *   - punctuation pairs up ("),", "\":"), longer runs are cheaper (rulers, borders);
 *   - one space belongs to the word after it; a line break with its indentation is one;
 *   - other scripts are priced by character: 2 bytes (accents, Cyrillic) a half, 3 bytes
 *     (Chinese, Japanese, Korean) 1.1, 4 bytes (emoji) 2.5.
 * Rejected: an average over bytes (above); a vocabulary (exact for one model only, and
 * megabytes of it) - that is another counter, not this one.
 *
 * Text is fed in pieces, so that the escapes of JSON strings count as what they stand for
 * without the string being decoded into memory first.
 */
#include "tokens/tokens.h"

#include <string.h>

/* Tokens are added up in tenths. */
#define TENTHS 10
/* What a provider adds around a message and around a call or result in it. */
#define MESSAGE_OVERHEAD 4
#define CALL_OVERHEAD 8
/* An image, sound or file: counted by providers by its pixels or pages, not its bytes. */
#define MEDIA_TOKENS 1200
/* How deep blocks are followed into blocks: a result may hold a list of blocks. */
#define MAX_BLOCK_DEPTH 4

enum { LOWER = 0, UPPER, DIGIT, SPACE, BREAK, PUNCT, OTHER };

typedef struct counter {
    int64_t tenths;
    size_t run;      /* length of the piece being read */
    int kind;        /* of that piece */
    int has_break;   /* white space with a line break in it */
} counter;

/* The kind of each ASCII character; all else is OTHER. */
static const unsigned char kinds[256] = {
    /* 00 */ PUNCT, PUNCT, PUNCT, PUNCT, PUNCT, PUNCT, PUNCT, PUNCT,
    /* 08 */ PUNCT, SPACE, BREAK, PUNCT, PUNCT, BREAK, PUNCT, PUNCT,
    /* 10 */ PUNCT, PUNCT, PUNCT, PUNCT, PUNCT, PUNCT, PUNCT, PUNCT,
    /* 18 */ PUNCT, PUNCT, PUNCT, PUNCT, PUNCT, PUNCT, PUNCT, PUNCT,
    /* 20 */ SPACE, PUNCT, PUNCT, PUNCT, PUNCT, PUNCT, PUNCT, PUNCT,
    /* 28 */ PUNCT, PUNCT, PUNCT, PUNCT, PUNCT, PUNCT, PUNCT, PUNCT,
    /* 30 */ DIGIT, DIGIT, DIGIT, DIGIT, DIGIT, DIGIT, DIGIT, DIGIT,
    /* 38 */ DIGIT, DIGIT, PUNCT, PUNCT, PUNCT, PUNCT, PUNCT, PUNCT,
    /* 40 */ PUNCT, UPPER, UPPER, UPPER, UPPER, UPPER, UPPER, UPPER,
    /* 48 */ UPPER, UPPER, UPPER, UPPER, UPPER, UPPER, UPPER, UPPER,
    /* 50 */ UPPER, UPPER, UPPER, UPPER, UPPER, UPPER, UPPER, UPPER,
    /* 58 */ UPPER, UPPER, UPPER, PUNCT, PUNCT, PUNCT, PUNCT, PUNCT,
    /* 60 */ PUNCT, LOWER, LOWER, LOWER, LOWER, LOWER, LOWER, LOWER,
    /* 68 */ LOWER, LOWER, LOWER, LOWER, LOWER, LOWER, LOWER, LOWER,
    /* 70 */ LOWER, LOWER, LOWER, LOWER, LOWER, LOWER, LOWER, LOWER,
    /* 78 */ LOWER, LOWER, LOWER, PUNCT, PUNCT, PUNCT, PUNCT, PUNCT,
#define EIGHT OTHER, OTHER, OTHER, OTHER, OTHER, OTHER, OTHER, OTHER
    /* 80 */ EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT,
    /* c0 */ EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT,
#undef EIGHT
};

/* Adds the piece that has ended to the sum. */
static void close_piece(counter *c)
{
    size_t n = c->run;
    int64_t tokens = 0;

    if (n == 0)
        return;
    switch (c->kind) {
    case LOWER:
        tokens = n <= 7 ? 1 : 1 + (int64_t)(n - 3) / 5;
        break;
    case UPPER:
        tokens = n <= 4 ? 1 : 1 + (int64_t)(n - 2) / 3;
        break;
    case DIGIT:
        tokens = (int64_t)(n + 2) / 3;
        break;
    case SPACE:
        tokens = n > 1 || c->has_break ? 1 + (int64_t)(n / 32) : 0;
        break;
    case PUNCT:
        tokens = n <= 6 ? (int64_t)(n + 1) / 2 : 3 + (int64_t)(n - 3) / 4;
        break;
    default:
        break;
    }
    c->tenths += tokens * TENTHS;
    c->run = 0;
    c->has_break = 0;
}

/* Characters that are not ASCII, priced at their first byte; tails are free. */
static int64_t price_of_other(unsigned char c)
{
    if (c < 0xc0)
        return 0;
    if (c < 0xe0)
        return 5;
    return c < 0xf0 ? 11 : 25;
}

static void feed(counter *c, const char *data, size_t size)
{
    const unsigned char *at = (const unsigned char *)data;
    const unsigned char *end = at + size;

    while (at < end) {
        const unsigned char *from = at;
        int kind = kinds[*at];
        if (kind == OTHER) {
            close_piece(c);
            do
                c->tenths += price_of_other(*at++);
            while (at < end && kinds[*at] == OTHER);
            continue;
        }
        if (kind == BREAK) {
            kind = SPACE;
            if (c->kind != SPACE)
                close_piece(c);
            c->has_break = 1;
        }
        if (kind != c->kind && c->run > 0) {
            /* "Word" is one piece, and so is the last capital of "HTTPServer". */
            if (c->kind == UPPER && kind == LOWER) {
                c->run--;
                close_piece(c);
                c->run = 1;
            } else {
                close_piece(c);
            }
        }
        c->kind = kind;
        do
            at++;
        while (at < end && kinds[*at] == kind);
        c->run += (size_t)(at - from);
    }
}

/* Feeds the inside of a string, or JSON text as it stands, with escapes decoded. */
static void feed_json(counter *c, const char *at, const char *end)
{
    while (at < end) {
        const char *plain = at;
        char decoded[4];
        at = memchr(plain, '\\', (size_t)(end - plain));
        if (!at)
            at = end;
        feed(c, plain, (size_t)(at - plain));
        if (at < end)
            feed(c, decoded, json_unescape(&at, end, decoded));
    }
}

/* A value as text: a string's inside, anything else as JSON. Ends the piece. */
static void feed_value(counter *c, json value)
{
    if (value.type == JSON_STRING && value.size >= 2)
        feed_json(c, value.at + 1, value.at + value.size - 1);
    else if (value.type != JSON_NONE)
        feed_json(c, value.at, value.at + value.size);
    close_piece(c);
}

static void add_tokens(counter *c, int64_t tokens)
{
    c->tenths += tokens * TENTHS;
}

static int is_media(json type)
{
    static const char *const names[] = { "image", "audio", "file", "document", "video",
                                         "image_url", "input_image", "input_audio",
                                         "input_file" };
    size_t i;
    for (i = 0; i < sizeof names / sizeof *names; i++) {
        if (json_is(type, names[i]))
            return 1;
    }
    return 0;
}

static void add_content(counter *c, json content, int depth);

/* A block that is none of the known ones: all its text but what is not for the model. */
static void add_unknown_block(counter *c, json block)
{
    json_iter it = json_begin(block);
    while (json_next(&it)) {
        if (!json_is(it.key, "type") && !json_is(it.key, "signature") &&
            !json_is(it.key, "cache_control") && !json_is(it.key, "id"))
            feed_value(c, it.value);
    }
}

static void add_block(counter *c, json block, int depth)
{
    json type, text;

    if (block.type != JSON_OBJECT) {
        feed_value(c, block);
        return;
    }
    type = json_get(block, "type");
    text = json_get(block, "text");
    if (json_is(type, "text") || (type.type == JSON_NONE && text.type == JSON_STRING)) {
        feed_value(c, text);
    } else if (json_is(type, "tool_use")) {
        add_tokens(c, CALL_OVERHEAD);
        feed_value(c, json_get(block, "name"));
        feed_value(c, json_get(block, "input"));
    } else if (json_is(type, "tool_result")) {
        add_tokens(c, CALL_OVERHEAD);
        add_content(c, json_get(block, "content"), depth + 1);
    } else if (json_is(type, "thinking")) {
        feed_value(c, json_get(block, "thinking"));
    } else if (is_media(type)) {
        add_tokens(c, MEDIA_TOKENS);
    } else {
        add_unknown_block(c, block);
    }
}

static void add_content(counter *c, json content, int depth)
{
    json_iter it;
    if (content.type != JSON_ARRAY || depth > MAX_BLOCK_DEPTH) {
        if (content.type != JSON_NULL)
            feed_value(c, content);
        return;
    }
    for (it = json_begin(content); json_next(&it);)
        add_block(c, it.value, depth);
}

static void add_call(counter *c, json call)
{
    json_iter it = json_begin(call);
    add_tokens(c, CALL_OVERHEAD);
    if (call.type != JSON_OBJECT)
        return;
    while (json_next(&it)) {
        if (json_is(it.key, "name") || json_is(it.key, "arguments"))
            feed_value(c, it.value);
        else if (json_is(it.key, "output"))
            add_content(c, it.value, 1);
        else if (json_is(it.key, "function")) { /* name and arguments, one level down */
            feed_value(c, json_get(it.value, "name"));
            feed_value(c, json_get(it.value, "arguments"));
        }
    }
}

int64_t tokens_of_text(const char *text, size_t size)
{
    counter c = { 0, 0, SPACE, 0 };
    if (size > 0)
        feed(&c, text, size);
    close_piece(&c);
    return (c.tenths + TENTHS - 1) / TENTHS;
}

int64_t tokens_of_message(const message *m)
{
    counter c = { 0, 0, SPACE, 0 };
    json_iter it;

    add_tokens(&c, MESSAGE_OVERHEAD);
    add_content(&c, m->content, 0);
    for (it = json_begin(m->tool_calls); json_next(&it);)
        add_call(&c, it.value);
    if (m->tool_call_id.type == JSON_STRING)
        add_tokens(&c, CALL_OVERHEAD);
    return (c.tenths + TENTHS - 1) / TENTHS;
}

void tokens_margin(int64_t estimated, int64_t *low, int64_t *high)
{
    /* A fifth either way, and a few tokens for what is too short to average out. */
    int64_t margin = estimated / 5 + 4;
    if (estimated < 0)
        estimated = margin = 0;
    *low = estimated > margin ? estimated - margin : 0;
    *high = estimated > INT64_MAX - margin ? INT64_MAX : estimated + margin;
}
