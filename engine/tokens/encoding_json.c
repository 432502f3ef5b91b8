/*
 * encoding_json.c: reads a `tokenizer.json` of Hugging Face's tokenizers as a vocabulary.
 *
 * Owns the decision whether it can be followed exactly. Must never ignore what would
 * change a count: a normalizer, another model, or a step of another kind is UNSUPPORTED,
 * and the error names it.
 *
 * The post_processor adds tokens around a text. They are not part of the text, so it is
 * ignored.
 */
#include <string.h>

#include "base/map.h"
#include "base/text.h"
#include "codec/json.h"
#include "tokens/cutter.h"
#include "tokens/encoding_vocabulary.h"
#include "tokens/pretoken.h"

#define DEPTH_MAX 64

/* A byte-level vocabulary writes each byte as a visible character: visible bytes as
 * themselves, the others from U+0100 on. */
#define ALPHABET 0x180

typedef struct reader {
    vocabulary *v;
    int16_t byte_of[ALPHABET]; /* of a character; -1: of none */
    map places;                /* hash of a token's bytes -> its place in v->tokens */
    buf key, bytes, cuts;
    int byte_level; /* the step was there */
    unsigned steps;
} reader;

static int as_itself(unsigned byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

static void make_alphabet(reader *r)
{
    unsigned byte, next = 0x100;
    memset(r->byte_of, 0xff, sizeof r->byte_of);
    for (byte = 0; byte < 256; byte++)
        r->byte_of[as_itself(byte) ? byte : next++] = (int16_t)byte;
}

/* ------------------------------------------------------------------ small values */

/* UNSUPPORTED with `what`, and the value's own name if it has one. */
static sessile_status unsupported(sessile_error *err, const char *what, json value)
{
    const char *name;
    size_t size;

    if (value.type == JSON_OBJECT)
        value = json_get(value, "type");
    if (value.type == JSON_STRING && json_plain(value, &name, &size) && size < 80)
        return fail(err, SESSILE_UNSUPPORTED, "%s \"%.*s\" is not known here", what,
                    (int)size, name);
    return fail(err, SESSILE_UNSUPPORTED, "%s is not known here", what);
}

static int is_nothing(json value)
{
    return value.type == JSON_NONE || value.type == JSON_NULL ||
           value.type == JSON_FALSE || json_is(value, "") ||
           (value.type == JSON_NUMBER && strspn(value.at, "0.") >= value.size);
}

/* Reads an id, or an index in a list. */
static int small_number(json value, uint32_t *out)
{
    uint64_t n;
    if (value.type != JSON_NUMBER || json_uint(value, &n) || n > UINT32_MAX)
        return -1;
    *out = (uint32_t)n;
    return 0;
}

/* ------------------------------------------------------------------ tokens */

/* Appends the bytes of a token's characters: 1; 0: a character is not of the byte
 * alphabet; -1: no memory. */
static int put_bytes(const reader *r, buf *out, const char *text, size_t size)
{
    size_t at, length;

    for (at = 0; at < size; at += length) {
        const unsigned char *c = (const unsigned char *)text + at;
        unsigned point;
        length = utf8_length(c, size - at);
        if (length == 0 || length > 2)
            return 0;
        point = length == 1 ? c[0] : (c[0] & 0x1fu) << 6 | (c[1] & 0x3fu);
        if (point >= ALPHABET || r->byte_of[point] < 0)
            return 0;
        buf_putc(out, (char)r->byte_of[point]);
    }
    return out->failed ? -1 : 1;
}

/* The token with these bytes; NULL: none. */
static const vocabulary_token *find_token(const reader *r, const void *bytes, size_t size)
{
    const vocabulary_token *t;
    uint32_t place;

    if (!map_get(&r->places, hash64(bytes, size), &place))
        return NULL;
    t = &r->v->tokens[place];
    return t->size == size && !memcmp(r->v->text.data + t->offset, bytes, size) ? t
                                                                                : NULL;
}

static sessile_status read_tokens(reader *r, json vocab, sessile_error *err)
{
    json_iter it = json_begin(vocab);
    sessile_status status = SESSILE_OK;

    if (vocab.type != JSON_OBJECT)
        return fail(err, SESSILE_INVALID, "model.vocab is no object");
    while (!status && json_next(&it)) {
        uint32_t id;
        int known;
        buf_clear(&r->key);
        buf_clear(&r->bytes);
        if (json_string(&r->key, it.key))
            return fail_nomem(err);
        if (small_number(it.value, &id))
            return fail(err, SESSILE_INVALID, "model.vocab has a token without an id");
        if (r->key.size == 0)
            continue;
        known = put_bytes(r, &r->bytes, r->key.data, r->key.size);
        if (known < 0)
            return fail_nomem(err);
        if (known == 0) {
            /* No merge can produce it: it is found as an added token, or never. */
            status = vocabulary_add_special(r->v, id, ADDED_SPECIAL, r->key.data,
                                            r->key.size, err);
            continue;
        }
        status = vocabulary_add(r->v, id, r->bytes.data, r->bytes.size, err);
        if (!status && map_put(&r->places, hash64(r->bytes.data, r->bytes.size),
                               (uint32_t)r->v->count - 1))
            return fail_nomem(err);
    }
    return status;
}

/* Reads the two halves of a merge, "left right" or ["left", "right"], and appends
 * their bytes; *left is where the second begins. 1; 0: not a merge; -1: no memory. */
static int read_halves(reader *r, json merge, size_t *left)
{
    json_iter it;
    int known;

    buf_clear(&r->key);
    buf_clear(&r->bytes);
    if (merge.type == JSON_STRING) {
        const char *space;
        if (json_string(&r->key, merge))
            return -1;
        space = r->key.size ? memchr(r->key.data, ' ', r->key.size) : NULL;
        if (!space)
            return 0;
        known = put_bytes(r, &r->bytes, r->key.data, (size_t)(space - r->key.data));
        *left = r->bytes.size;
        return known < 1 ? known
                         : put_bytes(r, &r->bytes, space + 1,
                                     r->key.size - (size_t)(space + 1 - r->key.data));
    }
    if (merge.type != JSON_ARRAY)
        return 0;
    it = json_begin(merge);
    if (!json_next(&it) || it.value.type != JSON_STRING)
        return 0;
    if (json_string(&r->key, it.value))
        return -1;
    known = put_bytes(r, &r->bytes, r->key.data, r->key.size);
    *left = r->bytes.size;
    if (known < 1 || !json_next(&it) || it.value.type != JSON_STRING)
        return known < 0 ? -1 : 0;
    buf_clear(&r->key);
    if (json_string(&r->key, it.value))
        return -1;
    known = put_bytes(r, &r->bytes, r->key.data, r->key.size);
    return known == 1 && json_next(&it) ? 0 : known;
}

static sessile_status read_merges(reader *r, json merges, sessile_error *err)
{
    json_iter it = json_begin(merges);
    sessile_status status = SESSILE_OK;

    if (merges.type != JSON_ARRAY)
        return fail(err, SESSILE_INVALID, "model.merges is no list");
    while (!status && json_next(&it)) {
        const vocabulary_token *left, *right, *made;
        size_t half = 0;
        int known = read_halves(r, it.value, &half);
        if (known < 0)
            return fail_nomem(err);
        if (known == 0 || half == 0 || half == r->bytes.size)
            return fail(err, SESSILE_INVALID, "merge %zu is not two tokens",
                        r->v->merge_count);
        left = find_token(r, r->bytes.data, half);
        right = find_token(r, r->bytes.data + half, r->bytes.size - half);
        made = find_token(r, r->bytes.data, r->bytes.size);
        if (!left || !right || !made)
            return fail(err, SESSILE_INVALID, "merge %zu is of what is no token",
                        r->v->merge_count);
        status = vocabulary_add_merge(r->v, left->id, right->id, made->id, err);
    }
    return status;
}

static sessile_status read_model(reader *r, json model, sessile_error *err)
{
    static const char *const none[] = {"dropout", "continuing_subword_prefix",
                                       "end_of_word_suffix", "byte_fallback"};
    sessile_status status;
    json value;
    size_t k;

    if (!json_is(json_get(model, "type"), "BPE"))
        return unsupported(err, "a model of type", model);
    for (k = 0; k < sizeof none / sizeof *none; k++) {
        value = json_get(model, none[k]);
        if (!is_nothing(value))
            return fail(err, SESSILE_UNSUPPORTED, "model.%s is not known here", none[k]);
    }
    if (json_get(model, "ignore_merges").type == JSON_TRUE)
        r->v->flags |= VOCABULARY_WHOLE;
    r->v->listed = 1;
    status = read_tokens(r, json_get(model, "vocab"), err);
    return status ? status : read_merges(r, json_get(model, "merges"), err);
}

/* ------------------------------------------------------------------ steps */

static sessile_status read_split(reader *r, json step, sessile_error *err)
{
    json pattern = json_get(step, "pattern"), behavior = json_get(step, "behavior");
    json expression = json_get(pattern, "Regex"), text = json_get(pattern, "String");
    unsigned keep = CUT_KEEP;
    sessile_status status;

    if (json_is(behavior, "Removed"))
        keep = json_get(step, "invert").type == JSON_TRUE ? CUT_KEEP_FOUND
                                                          : CUT_KEEP_BETWEEN;
    else if (!json_is(behavior, "Isolated"))
        return unsupported(err, "a Split with the behavior", behavior);
    buf_clear(&r->key);
    if (expression.type != JSON_STRING && text.type != JSON_STRING)
        return fail(err, SESSILE_INVALID, "a Split has no pattern");
    if (json_string(&r->key, expression.type == JSON_STRING ? expression : text))
        return fail_nomem(err);
    status = expression.type == JSON_STRING
                 ? cut_put(&r->cuts, r->key.data, r->key.size, keep, err)
                 : cut_put_text(&r->cuts, r->key.data, r->key.size, keep, err);
    r->steps++;
    return status;
}

static sessile_status read_byte_level(reader *r, json step, sessile_error *err)
{
    const char *gpt2 = pretoken_pattern(PRETOKEN_GPT2);

    r->byte_level = 1;
    if (json_get(step, "add_prefix_space").type != JSON_FALSE) {
        if (r->steps > 0)
            return fail(err, SESSILE_UNSUPPORTED,
                        "add_prefix_space after another step is not known here");
        r->v->flags |= VOCABULARY_SPACE;
    }
    if (json_get(step, "use_regex").type == JSON_FALSE)
        return SESSILE_OK;
    r->steps++;
    return cut_put(&r->cuts, gpt2, strlen(gpt2), CUT_KEEP, err);
}

static sessile_status read_step(reader *r, json step, int depth, sessile_error *err)
{
    json type = json_get(step, "type");
    json_iter it;
    sessile_status status = SESSILE_OK;

    if (r->byte_level)
        return unsupported(err, "after ByteLevel a step", step);
    if (json_is(type, "Sequence") && depth < 4) {
        it = json_begin(json_get(step, "pretokenizers"));
        while (!status && json_next(&it))
            status = read_step(r, it.value, depth + 1, err);
        return status;
    }
    if (json_is(type, "ByteLevel"))
        return read_byte_level(r, step, err);
    if (json_is(type, "Split"))
        return read_split(r, step, err);
    if (json_is(type, "Digits")) {
        r->steps++;
        return json_get(step, "individual_digits").type == JSON_TRUE
                   ? cut_put(&r->cuts, "\\p{N}", 5, CUT_KEEP, err)
                   : cut_put(&r->cuts, "\\p{N}+", 6, CUT_KEEP, err);
    }
    return unsupported(err, "a pre_tokenizer", step);
}

static sessile_status read_steps(reader *r, json step, sessile_error *err)
{
    sessile_status status = read_step(r, step, 0, err);
    vocabulary *v = r->v;

    if (status)
        return status;
    if (!r->byte_level)
        return fail(err, SESSILE_UNSUPPORTED,
                    "a BPE that is not byte-level (no ByteLevel in pre_tokenizer) is not "
                    "known here");
    v->pattern = PRETOKEN_NONE;
    if (r->steps == 1) /* without its digit and its NUL */
        v->pattern = pretoken_kind(r->cuts.data + 1, r->cuts.size - 2);
    else if (r->steps > 1)
        v->pattern = PRETOKEN_KINDS;
    if (v->pattern == PRETOKEN_KINDS)
        buf_put(&v->cuts, r->cuts.data, r->cuts.size);
    return v->cuts.failed ? fail_nomem(err) : SESSILE_OK;
}

/* ------------------------------------------------------------------ added tokens */

/* Reads the id and text of each element of `list`. One that is not special is found in
 * texts. */
static sessile_status read_added(reader *r, json list, sessile_error *err)
{
    static const char *const moods[] = {"single_word", "lstrip", "rstrip"};
    json_iter it = json_begin(list);
    sessile_status status = SESSILE_OK;
    uint32_t id, flags;
    size_t k;

    while (!status && json_next(&it)) {
        buf_clear(&r->key);
        flags =
            json_get(it.value, "special").type == JSON_TRUE ? ADDED_SPECIAL : ADDED_FOUND;
        if (small_number(json_get(it.value, "id"), &id) ||
            json_get(it.value, "content").type != JSON_STRING)
            return fail(err, SESSILE_INVALID, "an added token has no id or no content");
        for (k = 0; k < 3 && flags == ADDED_FOUND; k++) {
            if (json_get(it.value, moods[k]).type == JSON_TRUE)
                return fail(err, SESSILE_UNSUPPORTED,
                            "an added token with %s is not known here", moods[k]);
        }
        if (json_string(&r->key, json_get(it.value, "content")))
            return fail_nomem(err);
        if (r->key.size > 0)
            status =
                vocabulary_add_special(r->v, id, flags, r->key.data, r->key.size, err);
    }
    return status;
}

/* A normalizer that does nothing: an empty sequence. */
static int no_normalizer(json value)
{
    json list = json_get(value, "normalizers");
    json_iter it;
    if (is_nothing(value))
        return 1;
    it = json_begin(list);
    return json_is(json_get(value, "type"), "Sequence") && list.type == JSON_ARRAY &&
           !json_next(&it);
}

static sessile_status read_root(reader *r, json root, sessile_error *err)
{
    sessile_status status;

    if (root.type != JSON_OBJECT || json_get(root, "model").type != JSON_OBJECT)
        return fail(err, SESSILE_INVALID, "it has no model: it is no tokenizer.json");
    if (!no_normalizer(json_get(root, "normalizer")))
        return unsupported(err, "a normalizer of type", json_get(root, "normalizer"));
    status = read_steps(r, json_get(root, "pre_tokenizer"), err);
    if (!status)
        status = read_model(r, json_get(root, "model"), err);
    return status ? status : read_added(r, json_get(root, "added_tokens"), err);
}

sessile_status vocabulary_read_json(vocabulary *v, const char *data, size_t size,
                                    sessile_error *err)
{
    buf text;
    reader r;
    sessile_status status;

    memset(&r, 0, sizeof r);
    r.v = v;
    make_alphabet(&r);
    map_init(&r.places, v->alloc);
    buf_init(&r.key, v->alloc);
    buf_init(&r.bytes, v->alloc);
    buf_init(&r.cuts, v->alloc);
    buf_init(&text, v->alloc);
    status = json_check(&text, data, size, DEPTH_MAX, err);
    if (!status)
        status = read_root(&r, json_of(text.data, text.size), err);
    buf_deinit(&text);
    buf_deinit(&r.cuts);
    buf_deinit(&r.bytes);
    buf_deinit(&r.key);
    map_deinit(&r.places);
    return status;
}
