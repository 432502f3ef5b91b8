/*
 * pretoken.c: the patterns of the known encodings, as scanners written by hand.
 *
 * Must never allocate, nor look behind the text it is given, nor believe anything of it
 * but that it is UTF-8.
 *
 * The problem: an encoding merges bytes only within the pieces that its regular
 * expression cuts from the text, from left to right. An engine for expressions goes at
 * some 20 MB/s through these, with tables of Unicode of its own version.
 *
 * The choice: each alternative of the expression is one step below, in the same order,
 * with the classes of characters out of one table (unicode.h), and with what backtracking
 * would come to worked out beforehand:
 *   - \s*[\r\n]+ ends behind the last line break of a run of white space;
 *   - \s+(?!\S) leaves the last character of a run to what follows;
 *   - of [upper]*[lower]+, where the run of `upper` eats all, the last character that is
 * of both classes (no case, or a mark) is given back to `lower`, and the piece ends
 * there. A run is looked at twice at most: linear for every text.
 * tests/unit/tokens/test_pretoken holds the scanners against PCRE2 with the expressions
 * themselves.
 */
#include "tokens/pretoken.h"

#include <string.h>

#include "tokens/unicode.h"

typedef const unsigned char *spot;

#define BIT(class) (1u << (class))
enum {
    LETTERS = BIT(UNICODE_UPPER) | BIT(UNICODE_LOWER) | BIT(UNICODE_LETTER),
    UPPERS = BIT(UNICODE_UPPER) | BIT(UNICODE_LETTER) | BIT(UNICODE_MARK),
    LOWERS = BIT(UNICODE_LOWER) | BIT(UNICODE_LETTER) | BIT(UNICODE_MARK),
    CASELESS = BIT(UNICODE_LETTER) | BIT(UNICODE_MARK),
    NUMBERS = BIT(UNICODE_NUMBER),
    NEWLINES = BIT(UNICODE_NEWLINE),
    SPACES = BIT(UNICODE_SPACE) | BIT(UNICODE_NEWLINE),
    OTHERS = BIT(UNICODE_NONE) | BIT(UNICODE_MARK), /* [^\s\p{L}\p{N}] */
    /* [^\r\n\p{L}\p{N}], which may stand before letters */
    PREFIXES = BIT(UNICODE_NONE) | BIT(UNICODE_MARK) | BIT(UNICODE_SPACE)
};

/* The bit of a character's class; *size: its bytes. */
static unsigned wide_class(spot at, size_t *size)
{
    uint32_t point;

    if (at[0] < 0xe0) {
        *size = 2;
        point = (at[0] & 0x1fu) << 6 | (at[1] & 0x3fu);
    } else if (at[0] < 0xf0) {
        *size = 3;
        point = (at[0] & 0x0fu) << 12 | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu);
    } else {
        *size = 4;
        point = (at[0] & 0x07u) << 18 | (at[1] & 0x3fu) << 12 | (at[2] & 0x3fu) << 6 |
                (at[3] & 0x3fu);
    }
    return BIT(unicode_class_of(point));
}

static inline unsigned class_at(spot at, size_t *size)
{
    if (at[0] < 0x80) {
        *size = 1;
        return unicode_ascii[at[0]];
    }
    return wide_class(at, size);
}

/* The end of the run of characters of these classes. */
static inline spot run(spot at, spot end, unsigned classes)
{
    size_t size;
    while (at < end && (class_at(at, &size) & classes))
        at += size;
    return at;
}

/* The same of at most `most` characters. */
static inline spot run_of(spot at, spot end, unsigned classes, int most)
{
    size_t size;
    while (most-- > 0 && at < end && (class_at(at, &size) & classes))
        at += size;
    return at;
}

/* The size of 's, 't, 're, 've, 'm, 'll, 'd at the apostrophe `at`, or 0. In any case:
 * then an s may also be the long one (U+017F), which folds to it. */
static size_t contraction(spot at, spot end, int any_case)
{
    unsigned char a, b, fold = any_case ? 0x20 : 0;

    if (end - at < 2)
        return 0;
    a = at[1] | fold;
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return 2;
    if (end - at < 3)
        return 0;
    if (any_case && at[1] == 0xc5 && at[2] == 0xbf)
        return 3;
    b = at[2] | fold;
    if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l'))
        return 3;
    return 0;
}

/* White space that nothing before took: \s*[\r\n]+|\s+(?!\S)|\s+, the first of these only
 * where `breaks` says. */
static size_t white_space(spot text, spot end, int breaks)
{
    spot at = text, last = text, line = NULL;
    size_t size;
    unsigned class;

    while (at < end && ((class = class_at(at, &size)) & SPACES)) {
        last = at;
        at += size;
        if (class & NEWLINES)
            line = at;
    }
    if (line && breaks)
        return (size_t)(line - text);
    if (at == end || last == text)
        return (size_t)(at - text);
    return (size_t)(last - text);
}

size_t pretoken_whole(const unsigned char *text, const unsigned char *end)
{
    return (size_t)(end - text);
}

size_t pretoken_gpt2(const unsigned char *text, const unsigned char *end)
{
    size_t size;
    spot at = text;
    unsigned class = class_at(at, &size);

    if (*text == '\'' && (size = contraction(text, end, 0)) > 0)
        return size;
    if (*text == ' ' && end - text > 1)
        class = class_at(++at, &size);
    if (class & LETTERS)
        return (size_t)(run(at, end, LETTERS) - text);
    if (class & NUMBERS)
        return (size_t)(run(at, end, NUMBERS) - text);
    if (class & OTHERS)
        return (size_t)(run(at, end, OTHERS) - text);
    return white_space(text, end, 0);
}

size_t pretoken_cl100k(const unsigned char *text, const unsigned char *end)
{
    size_t size, next_size;
    unsigned class = class_at(text, &size), next;
    spot at;

    if (class & LETTERS)
        return (size_t)(run(text + size, end, LETTERS) - text);
    if (*text == '\'' && (next_size = contraction(text, end, 1)) > 0)
        return next_size;
    at = text + size;
    next = at < end ? class_at(at, &next_size) : 0;
    if ((class & PREFIXES) && (next & LETTERS))
        return (size_t)(run(at + next_size, end, LETTERS) - text);
    if (class & NUMBERS)
        return (size_t)(run_of(at, end, NUMBERS, 2) - text);
    if ((class & OTHERS) || (*text == ' ' && (next & OTHERS)))
        return (size_t)(run(run(at, end, OTHERS), end, NEWLINES) - text);
    return white_space(text, end, 1);
}

/* The end of [upper]*[lower]+, or NULL. */
static spot cased_word(spot at, spot end)
{
    spot both = NULL;
    size_t size;
    unsigned class;

    while (at < end && ((class = class_at(at, &size)) & UPPERS)) {
        at += size;
        if (class & CASELESS)
            both = at;
    }
    if (at < end && (class_at(at, &size) & LOWERS))
        return run(at + size, end, LOWERS);
    return both;
}

/* The end of what was a word, with 's, 't … where it follows. */
static size_t with_contraction(spot text, spot at, spot end)
{
    if (at < end && *at == '\'')
        at += contraction(at, end, 1);
    return (size_t)(at - text);
}

size_t pretoken_o200k(const unsigned char *text, const unsigned char *end)
{
    size_t size;
    unsigned class = class_at(text, &size), next = 0;
    spot at = text + size, to = NULL;

    if (at < end)
        next = class_at(at, &(size_t){0});
    if ((class & PREFIXES) && (next & (UPPERS | LOWERS)))
        to = cased_word(at, end);
    if (!to && (class & (UPPERS | LOWERS)))
        to = cased_word(text, end);
    /* Capitals alone: cased_word() would have taken any other. */
    if (!to && (class & PREFIXES) && (next & UPPERS))
        to = run(at, end, UPPERS);
    if (!to && (class & UPPERS))
        to = run(text, end, UPPERS);
    if (to)
        return with_contraction(text, to, end);

    if (class & NUMBERS)
        return (size_t)(run_of(at, end, NUMBERS, 2) - text);
    if ((class & OTHERS) || (*text == ' ' && (next & OTHERS))) {
        at = run(at, end, OTHERS);
        while (at < end && (*at == '\r' || *at == '\n' || *at == '/'))
            at++;
        return (size_t)(at - text);
    }
    return white_space(text, end, 1);
}

pretoken_scanner *const pretoken_scanners[PRETOKEN_KINDS] = {
    pretoken_whole, pretoken_gpt2, pretoken_cl100k, pretoken_o200k};

/* A pattern's white space is \s of Unicode, its case that of simple folding. */
static const char *const patterns[PRETOKEN_KINDS] = {
    "",
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
    " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*"
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+"
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}|"
    " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"};

const char *pretoken_pattern(unsigned kind)
{
    return kind < PRETOKEN_KINDS ? patterns[kind] : NULL;
}

unsigned pretoken_kind(const char *pattern, size_t size)
{
    unsigned kind;
    for (kind = PRETOKEN_GPT2; kind < PRETOKEN_KINDS; kind++)
        if (strlen(patterns[kind]) == size && !memcmp(patterns[kind], pattern, size))
            return kind;
    return PRETOKEN_KINDS;
}
