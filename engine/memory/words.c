/*
 * words.c: text to terms.
 *
 * Owns the only uses of utf8proc and libstemmer. Must never depend on the locale.
 *
 * Text becomes code points, folded: compatibility forms are replaced by what they stand
 * for (NFKC), case is gone. Words are the runs of letters, marks and digits. A script
 * without spaces gives no words, so its characters count singly and in pairs: a question
 * asks for pairs, which are nearly words, and for a single character only if it has
 * nothing else.
 *
 * Marks. "cafe" has to find "café", so accents are taken off. Most stemmers look at
 * accents (German, French, Russian й), so this happens after stemming, unless the stemmer
 * knows none (English). The same goes for strokes (ł, ø). Only accents and the vowel
 * points of Arabic and Hebrew go: in Hindi or Tamil a mark is a vowel, and the word is
 * another one without it.
 */
#include "memory/words.h"

#include <libstemmer.h>
#include <string.h>
#include <utf8proc.h>

#include "base/map.h"
#include "base/text.h"
#include "memory/languages.h"
#include "tokens/unicode.h"

/* Characters of a word that count. What is longer is no word of a language. */
enum { WORD_MAX = 64 };

#define FOLD                                                                      \
    (UTF8PROC_STABLE | UTF8PROC_COMPAT | UTF8PROC_DECOMPOSE | UTF8PROC_CASEFOLD | \
     UTF8PROC_IGNORE)
#define JOIN (UTF8PROC_STABLE | UTF8PROC_COMPOSE)

struct words {
    allocator alloc;
    struct sb_stemmer *stemmer;
    const char *language;  /* libstemmer's name of it */
    const language *known; /* or NULL */
    map stops;             /* hash64 of a word: 1 */
    utf8proc_int32_t *points;
    size_t capacity;
    buf clean; /* of text that is not UTF-8 */
};

/* ------------------------------------------------------------------ opening */

/* The next part of a list separated by spaces: its size, and *at moves past it; 0: none.
 */
static size_t next_part(const char **at, const char **part)
{
    size_t size;
    *at += strspn(*at, " ");
    *part = *at;
    size = strcspn(*at, " ");
    *at += size;
    return size;
}

static sessile_status unknown_language(const char *language, sessile_error *err)
{
    const char **names = sb_stemmer_list();
    char known[400] = "";
    size_t used = 0;

    for (; *names && used + strlen(*names) + 3 < sizeof known; names++) {
        if (used)
            used = (size_t)(stpcpy(known + used, ", ") - known);
        used = (size_t)(stpcpy(known + used, *names) - known);
    }
    return fail(err, SESSILE_INVALID, "there is no language \"%.40s\"; use one of: %s",
                language, known);
}

sessile_status words_open(words **out, const char *language, const allocator *a,
                          sessile_error *err)
{
    words *w = mem_zalloc(a, sizeof *w);
    const char *at, *part;
    const char **names = sb_stemmer_list();
    size_t size;

    *out = NULL;
    if (!w)
        return fail_nomem(err);
    w->alloc = *a;
    map_init(&w->stops, &w->alloc);
    buf_init(&w->clean, &w->alloc);
    while (*names && strcmp(*names, language) != 0)
        names++;
    if (!*names) {
        words_close(w);
        return unknown_language(language, err);
    }
    w->stemmer = sb_stemmer_new(language, "UTF_8");
    w->language = *names;
    w->known = language_of(language);
    for (at = w->known && w->known->stops ? w->known->stops : "";
         w->stemmer && (size = next_part(&at, &part)) > 0;)
        if (map_put(&w->stops, hash64(part, size), 1)) {
            sb_stemmer_delete(w->stemmer);
            w->stemmer = NULL;
        }
    if (!w->stemmer) {
        words_close(w);
        return fail_nomem(err);
    }
    *out = w;
    return SESSILE_OK;
}

void words_close(words *w)
{
    allocator a;
    if (!w)
        return;
    a = w->alloc;
    sb_stemmer_delete(w->stemmer);
    map_deinit(&w->stops);
    if (w->points)
        wipe(w->points, w->capacity * sizeof *w->points);
    mem_free(&w->alloc, w->points, w->capacity * sizeof *w->points);
    buf_wipe(&w->clean);
    mem_free(&a, w, sizeof *w);
}

/* ------------------------------------------------------------------ folding */

/* An accent, or a vowel point of Arabic or Hebrew. */
static int is_accent(utf8proc_int32_t c)
{
    return (c >= 0x300 && c <= 0x36f) || (c >= 0x64b && c <= 0x65f) || c == 0x670 ||
           (c >= 0x591 && c <= 0x5c7);
}

/* A small letter with a stroke, which Unicode does not decompose, as the letter without,
 * where ICU's Latin-ASCII does the same. */
static utf8proc_int32_t without_stroke(utf8proc_int32_t c)
{
    static const struct {
        uint16_t with;
        char without;
    } letters[] = {
        {0xf0, 'd'} /* eth */, {0xf8, 'o'},   {0x111, 'd'},  {0x127, 'h'},  {0x131, 'i'},
        {0x142, 'l'},          {0x167, 't'},  {0x180, 'b'},  {0x1b6, 'z'},  {0x1e5, 'g'},
        {0x23c, 'c'},          {0x247, 'e'},  {0x249, 'j'},  {0x24d, 'r'},  {0x24f, 'y'},
        {0x268, 'i'},          {0x2c61, 'l'}, {0x2c65, 'a'}, {0x2c66, 't'},
    };
    if (c < 0xf0 || c > 0x2c66)
        return c;
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (letters[i].with == c)
            return letters[i].without;
    return c;
}

/* Takes accents off decomposed points, and strokes; the number that is left. */
static size_t strip(utf8proc_int32_t *points, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (!is_accent(points[i]))
            points[kept++] = without_stroke(points[i]);
    return kept;
}

static int is_ascii(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] >= 0x80)
            return 0;
    return 1;
}

/* The folded points of text in w->points: how many, or -1. */
static int64_t fold(words *w, const char *text, size_t size)
{
    utf8proc_ssize_t got;
    size_t count;

    if (mem_grow(&w->alloc, (void **)&w->points, &w->capacity, size + 1,
                 sizeof *w->points))
        return -1;
    if (is_ascii(text, size)) {
        for (size_t i = 0; i < size; i++)
            w->points[i] = text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32 : text[i];
        return (int64_t)size;
    }
    if (!utf8_valid(text, size)) {
        buf_clear(&w->clean);
        utf8_put_lossy(&w->clean, text, size);
        if (w->clean.failed)
            return -1;
        text = w->clean.data;
        size = w->clean.size;
    }
    for (;;) {
        got = utf8proc_decompose((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)size,
                                 w->points, (utf8proc_ssize_t)w->capacity, FOLD);
        if (got < 0)
            return -1;
        if ((size_t)got <= w->capacity)
            break;
        if (mem_grow(&w->alloc, (void **)&w->points, &w->capacity, (size_t)got,
                     sizeof *w->points))
            return -1;
    }
    count = (size_t)got;
    if (w->known && w->known->bare)
        count = strip(w->points, count);
    return utf8proc_normalize_utf32(w->points, (utf8proc_ssize_t)count, JOIN);
}

/* ------------------------------------------------------------------ terms */

/* A walk over the terms of one text. */
typedef struct walk {
    words *w;
    words_visit visit;
    void *arg;
    unsigned flags;
    int with_stops;
    size_t visited;
} walk;

static size_t put_points(char *out, const utf8proc_int32_t *points, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += (size_t)utf8proc_encode_char(points[i], (utf8proc_uint8_t *)(out + size));
    return size;
}

static int visit_term(walk *k, const char *term, size_t size)
{
    if (!size)
        return 0;
    k->visited++;
    return k->visit(k->arg, term, size);
}

/* A stem, with its accents off. */
static int visit_stem(walk *k, const char *stem, size_t size)
{
    utf8proc_int32_t points[4 * WORD_MAX];
    char bare[4 * 4 * WORD_MAX];
    utf8proc_ssize_t count;

    if ((k->w->known && k->w->known->bare) || is_ascii(stem, size))
        return visit_term(k, stem, size);
    count =
        utf8proc_decompose((const utf8proc_uint8_t *)stem, (utf8proc_ssize_t)size, points,
                           4 * WORD_MAX, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
    if (count < 0 || count > 4 * WORD_MAX) /* a stemmer cut a character: as it is */
        return visit_term(k, stem, size);
    count = utf8proc_normalize_utf32(
        points, (utf8proc_ssize_t)strip(points, (size_t)count), JOIN);
    return visit_term(k, bare, count < 0 ? 0 : put_points(bare, points, (size_t)count));
}

static int visit_word(walk *k, const utf8proc_int32_t *points, size_t count)
{
    char word[4 * WORD_MAX];
    size_t size = put_points(word, points, count > WORD_MAX ? WORD_MAX : count);
    const sb_symbol *stem;

    if (!k->with_stops && map_get(&k->w->stops, hash64(word, size), NULL))
        return 0;
    stem = sb_stemmer_stem(k->w->stemmer, (const sb_symbol *)word, (int)size);
    if (!stem)
        return -1;
    return visit_stem(k, (const char *)stem, (size_t)sb_stemmer_length(k->w->stemmer));
}

/* Characters without spaces between them: singly, and each with the next one. */
static int visit_pairs(walk *k, const utf8proc_int32_t *points, size_t count)
{
    char term[2 * 4];
    int result = 0;
    for (size_t i = 0; i < count && !result; i++) {
        if (count == 1 || !(k->flags & WORDS_QUESTION))
            result = visit_term(k, term, put_points(term, points + i, 1));
        if (!result && i + 1 < count)
            result = visit_term(k, term, put_points(term, points + i, 2));
    }
    return result;
}

/* Scripts that are written without spaces, and Hangul, whose words have too many endings
 * to be compared whole. */
static int is_unspaced(utf8proc_int32_t c)
{
    static const struct {
        utf8proc_int32_t first, last;
    } ranges[] = {
        {0x0e01, 0x0eff},   /* Thai, Lao */
        {0x1000, 0x11ff},   /* Myanmar (and Georgian, see below), Hangul Jamo */
        {0x1780, 0x17ff},   /* Khmer */
        {0x3005, 0x3007},   /* iteration mark, closing mark, zero */
        {0x3041, 0x318f},   /* Hiragana, Katakana, Bopomofo, Hangul */
        {0x31a0, 0x31ff},   /* Bopomofo, Katakana */
        {0x3400, 0x9fff},   /* Han */
        {0xac00, 0xd7ff},   /* Hangul */
        {0xf900, 0xfaff},   /* Han */
        {0x20000, 0x3ffff}, /* Han */
    };
    if (c < 0xe01 || (c >= 0x10a0 && c <= 0x10ff)) /* Georgian has spaces */
        return 0;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return 1;
    return 0;
}

static int in_word(utf8proc_int32_t c)
{
    unsigned kind = unicode_class_of((uint32_t)c);
    return kind >= UNICODE_UPPER && kind <= UNICODE_NUMBER;
}

static int walk_points(walk *k, const utf8proc_int32_t *points, size_t count)
{
    int result = 0;
    for (size_t at = 0, end; at < count && !result; at = end) {
        int unspaced = is_unspaced(points[at]);
        end = at + 1;
        if (!in_word(points[at]))
            continue;
        while (end < count && in_word(points[end]) &&
               is_unspaced(points[end]) == unspaced)
            end++;
        result = unspaced ? visit_pairs(k, points + at, end - at)
                          : visit_word(k, points + at, end - at);
    }
    return result;
}

int words_each(words *w, const char *text, size_t size, unsigned flags, words_visit visit,
               void *arg)
{
    walk k = {.w = w, .visit = visit, .arg = arg, .flags = flags};
    int64_t count = fold(w, text, size);
    int result;

    if (count < 0)
        return -1;
    result = walk_points(&k, w->points, (size_t)count);
    if (!result && !k.visited) {
        k.with_stops = 1;
        result = walk_points(&k, w->points, (size_t)count);
    }
    return result;
}

/* ------------------------------------------------------------------ fingerprint */

/* To be raised whenever this file makes other terms than before. */
static const char rules[] = "sessile words 1";

static int add_to_print(void *arg, const char *term, size_t size)
{
    static const hash_key key = {"sessile words"};
    uint64_t *print = arg, parts[2] = {*print, hash64_keyed(&key, term, size)};
    *print = hash64_keyed(&key, parts, sizeof parts);
    return 0;
}

/* libstemmer does not tell its version, so some words are stemmed. */
int words_fingerprint(words *w, uint64_t *out)
{
    static const char sample[] =
        "The runners were quickly organizing generous national relations, happiness and "
        "studies; Häuser, Kindern, gegangen; chevaux, continuellement; canciones, "
        "rápidamente; домами, красивая; 北京大学 12";
    const char *stops = w->known && w->known->stops ? w->known->stops : "";
    const char *months = w->known && w->known->months ? w->known->months : "";

    *out = 0;
    add_to_print(out, rules, sizeof rules);
    add_to_print(out, utf8proc_version(), strlen(utf8proc_version()));
    add_to_print(out, utf8proc_unicode_version(), strlen(utf8proc_unicode_version()));
    add_to_print(out, w->language, strlen(w->language));
    add_to_print(out, stops, strlen(stops));
    add_to_print(out, months, strlen(months));
    return words_each(w, sample, sizeof sample - 1, 0, add_to_print, out);
}

/* ------------------------------------------------------------------ days */

void words_day(const words *w, int64_t time_ms, char out[WORDS_DAY_SIZE])
{
    const language *english = language_of(WORDS_LANGUAGE);
    const char *at = w->known && w->known->months ? w->known->months : english->months;
    char digits[TIME_SIZE];
    const char *month = "";
    size_t size = 0, used = 0;

    time_print(time_ms, digits);
    for (int left = (digits[5] - '0') * 10 + digits[6] - '0'; left > 0; left--)
        size = next_part(&at, &month);
    if (digits[8] != '0')
        out[used++] = digits[8];
    out[used++] = digits[9];
    out[used++] = ' ';
    memcpy(out + used, month, size); /* the longest has 20 bytes */
    used += size;
    out[used++] = ' ';
    memcpy(out + used, digits, 4);
    out[used + 4] = '\0';
}
