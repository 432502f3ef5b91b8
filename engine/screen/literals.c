/*
 * literals.c: which texts a match must contain, and the search for them.
 *
 * Owns the reading of expressions for this purpose. Must never report a text that a match
 * can do without: a wrong literal hides matches. Where it is not sure, it reports none.
 *
 * The search folds each byte to 5 bits (c & 31, which is the same for upper and lower
 * case). Three bytes are a key of 15 bits. One bit for each key says whether a literal
 * begins with it, so that a byte of text costs one look into 4 KiB. An automaton
 * (Aho-Corasick) would need one dependent load for each byte and some 100 KiB.
 */
#include "screen/literals.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 40

/* ------------------------------------------------------------------ expressions */

typedef struct reader {
    const char *at, *end;
    int failed; /* it is not sure any more */
} reader;

typedef struct run {
    size_t size;
    char text[LITERAL_MAX];
} run;

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int is_alnum(char c)
{
    return is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 32) : c;
}

/* The shortest literal decides how many texts pass. */
static size_t strength(const literals *l)
{
    size_t least = l->count ? LITERAL_MAX : 0, i;
    for (i = 0; i < l->count; i++)
        if (l->list[i].size < least)
            least = l->list[i].size;
    return least;
}

static void keep_stronger(literals *best, const literals *other)
{
    size_t mine = strength(best), its = strength(other);
    if (its > mine || (its == mine && other->count < best->count))
        *best = *other;
}

/* Ends a run of characters: it is a candidate. */
static void end_run(run *r, literals *best)
{
    literals one = {.count = 1};
    if (r->size) {
        one.list[0].size = (unsigned char)r->size;
        memcpy(one.list[0].text, r->text, r->size);
        keep_stronger(best, &one);
    }
    r->size = 0;
}

/* Reads a quantifier, if there is one. *least: how often the item is there at least. */
static int read_quantifier(reader *r, unsigned *least)
{
    char c = r->at < r->end ? *r->at : 0;
    *least = 1;
    if (c == '*' || c == '?') {
        *least = 0;
        r->at++;
    } else if (c == '+') {
        r->at++;
    } else if (c == '{') {
        r->at++;
        if (r->at == r->end || !is_digit(*r->at)) {
            r->failed = 1; /* a brace, or another way to write a quantifier */
            return 0;
        }
        *least = *r->at != '0';
        for (; r->at < r->end && is_digit(*r->at); r->at++)
            *least |= *r->at != '0';
        if (r->at < r->end && *r->at == ',')
            r->at++;
        while (r->at < r->end && is_digit(*r->at))
            r->at++;
        if (r->at == r->end || *r->at++ != '}')
            r->failed = 1;
    } else {
        return 0;
    }
    if (r->at < r->end && (*r->at == '?' || *r->at == '+'))
        r->at++;
    return 1;
}

static void add_char(reader *r, run *current, literals *best, char c)
{
    unsigned least;
    int repeated = read_quantifier(r, &least);
    if (!least) {
        end_run(current, best);
        return;
    }
    if (current->size < LITERAL_MAX)
        current->text[current->size++] = lower(c);
    if (repeated)
        end_run(current, best);
}

/* Something of which no text is known. */
static void add_unknown(reader *r, run *current, literals *best)
{
    unsigned least;
    end_run(current, best);
    (void)read_quantifier(r, &least);
}

/* After '[': moves behind the class. */
static void skip_class(reader *r)
{
    if (r->at < r->end && *r->at == '^')
        r->at++;
    if (r->at < r->end && *r->at == ']')
        r->at++;
    while (r->at < r->end && *r->at != ']') {
        if (*r->at == '\\') {
            r->at++;
            if (r->at < r->end && (*r->at == 'Q' || *r->at == 'E'))
                r->failed = 1;
        } else if (*r->at == '[' && r->at + 1 < r->end && strchr(":.=", r->at[1])) {
            const char *stop = memmem(r->at + 2, (size_t)(r->end - r->at - 2), "]", 1);
            r->at = stop ? stop : r->end;
        }
        if (r->at < r->end)
            r->at++;
    }
    if (r->at == r->end)
        r->failed = 1;
    else
        r->at++;
}

/* After a backslash. */
static void read_escape(reader *r, run *current, literals *best)
{
    char c;
    if (r->at == r->end) {
        r->failed = 1;
        return;
    }
    c = *r->at++;
    if (!is_alnum(c) && !(c & 0x80)) {
        add_char(r, current, best, c);
    } else if (strchr("bBAzZG", c)) {
        return; /* no text */
    } else if (c == 'K') {
        end_run(current, best);
    } else if (strchr("dDwWsShHvVRNXntrfea", c)) {
        add_unknown(r, current, best);
    } else if (c == 'p' || c == 'P') {
        if (r->at < r->end && *r->at == '{')
            while (r->at < r->end && *r->at != '}')
                r->at++;
        if (r->at < r->end)
            r->at++;
        add_unknown(r, current, best);
    } else if (c == 'x' && r->end - r->at >= 3 && *r->at == '{') {
        while (r->at < r->end && *r->at != '}')
            r->at++;
        if (r->at < r->end)
            r->at++;
        add_unknown(r, current, best);
    } else {
        r->failed = 1;
    }
}

static literals read_branches(reader *r, unsigned depth);

/* What stands behind "(?". *consumes: the group matches text, and does not only look at
 * it. Returns 0 when the group ended here. */
static int read_group_kind(reader *r, int *consumes)
{
    *consumes = 1;
    while (r->at < r->end) {
        char c = *r->at++;
        if (c == ':' || c == '>')
            return 1;
        if (c == '=' || c == '!') {
            *consumes = 0;
            return 1;
        }
        if (c == ')')
            return 0;
        if (c == 'P' || c == '<') { /* a name, or a look behind */
            if (c == 'P' && (r->at == r->end || *r->at++ != '<'))
                break;
            if (r->at < r->end && (*r->at == '=' || *r->at == '!')) {
                r->at++;
                *consumes = 0;
                return 1;
            }
            while (r->at < r->end && *r->at != '>')
                r->at++;
            if (r->at == r->end)
                break;
            r->at++;
            return 1;
        }
        if (!strchr("imsUJ-^", c))
            break; /* (?x), recursion, conditions, comments */
    }
    r->failed = 1;
    return 0;
}

/* After '('. */
static void read_group(reader *r, run *current, literals *best, unsigned depth)
{
    int consumes = 1;
    unsigned least;
    literals inside;

    if (r->at < r->end && *r->at == '*') {
        r->failed = 1;
        return;
    }
    if (r->at < r->end && *r->at == '?') {
        r->at++;
        if (!read_group_kind(r, &consumes))
            return;
    }
    inside = read_branches(r, depth + 1);
    if (r->at == r->end || *r->at++ != ')')
        r->failed = 1;
    if (consumes)
        end_run(current, best);
    (void)read_quantifier(r, &least);
    if (consumes && least)
        keep_stronger(best, &inside);
}

/* One alternative, up to '|', ')' or the end. */
static literals read_branch(reader *r, unsigned depth)
{
    literals best = {0};
    run current = {0};

    while (!r->failed && r->at < r->end && *r->at != '|' && *r->at != ')') {
        char c = *r->at++;
        if (c == '\\')
            read_escape(r, &current, &best);
        else if (c == '(')
            read_group(r, &current, &best, depth);
        else if (c == '[')
            skip_class(r), add_unknown(r, &current, &best);
        else if (c == '.')
            add_unknown(r, &current, &best);
        else if (c == '^' || c == '$')
            continue;
        else if (strchr("*+?{", c))
            r->failed = 1;
        else if (c & 0x80) {
            while (r->at < r->end && ((unsigned char)*r->at & 0xc0) == 0x80)
                r->at++;
            add_unknown(r, &current, &best);
        } else
            add_char(r, &current, &best, c);
    }
    end_run(&current, &best);
    return best;
}

/* Alternatives: one of the texts of any of them. */
static literals read_branches(reader *r, unsigned depth)
{
    literals all = {0};
    int known = depth < DEPTH_MAX, more = 1;

    if (!known)
        r->failed = 1;
    while (more && !r->failed) {
        literals one = read_branch(r, depth);
        if (!one.count || all.count + one.count > LITERALS_MOST)
            known = 0;
        if (known) {
            memcpy(all.list + all.count, one.list, one.count * sizeof *one.list);
            all.count += one.count;
        }
        more = r->at < r->end && *r->at == '|';
        r->at += more;
    }
    if (!known)
        all.count = 0;
    return all;
}

void literals_of(literals *out, const char *expression, size_t size)
{
    reader r = {expression, expression + size, 0};

    *out = (literals){0};
    if (memchr(expression, 0, size))
        return; /* strchr() finds it in every list */
    *out = read_branches(&r, 0);
    if (r.failed || r.at < r.end || strength(out) < LITERAL_MIN)
        out->count = 0;
}

/* ------------------------------------------------------------------ the search */

struct literal_owned {
    unsigned key, owner;
    literal text;
};

#define KEY_MASK 0x7fffu

static unsigned key_of(const char *text)
{
    return (((unsigned)text[0] & 31) << 10) | (((unsigned)text[1] & 31) << 5) |
           ((unsigned)text[2] & 31);
}

void literal_filter_init(literal_filter *f)
{
    memset(f, 0, sizeof *f);
}

void literal_filter_deinit(literal_filter *f, const allocator *a)
{
    mem_free(a, f->list, f->capacity * sizeof *f->list);
    literal_filter_init(f);
}

sessile_status literal_filter_add(literal_filter *f, unsigned owner,
                                  const literals *wanted, const allocator *a,
                                  sessile_error *err)
{
    void *list = f->list;
    size_t i;

    if (!wanted->count) {
        f->always |= UINT64_C(1) << owner;
        return SESSILE_OK;
    }
    if (mem_grow(a, &list, &f->capacity, f->count + wanted->count, sizeof *f->list))
        return fail_nomem(err);
    f->list = list;
    for (i = 0; i < wanted->count; i++) {
        unsigned key = key_of(wanted->list[i].text);
        f->list[f->count++] =
            (struct literal_owned){.key = key, .owner = owner, .text = wanted->list[i]};
        f->bits[key / 32] |= 1u << key % 32;
    }
    return SESSILE_OK;
}

static int compare_keys(const void *a, const void *b)
{
    const struct literal_owned *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

void literal_filter_ready(literal_filter *f)
{
    if (f->count)
        qsort(f->list, f->count, sizeof *f->list, compare_keys);
}

static int is_at(const literal *wanted, const char *text, size_t size)
{
    size_t i;
    if (wanted->size > size)
        return 0;
    for (i = 0; i < wanted->size; i++)
        if (lower(text[i]) != wanted->text[i])
            return 0;
    return 1;
}

/* The owners of the literals with that key which stand here. */
static uint64_t owners_at(const literal_filter *f, unsigned key, const char *text,
                          size_t size)
{
    size_t low = 0, high = f->count;
    uint64_t found = 0;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (f->list[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < f->count && f->list[low].key == key; low++)
        if (is_at(&f->list[low].text, text, size))
            found |= UINT64_C(1) << f->list[low].owner;
    return found;
}

/* Whether a character stands in the text: memmem() is slower where it does not. */
static int contains(const char *text, size_t size, const char *character)
{
    size_t length = strlen(character), left = size;
    const int first = (unsigned char)character[0];
    const char *at = memchr(text, first, left);
    while (at) {
        left = size - (size_t)(at - text);
        if (left >= length && memcmp(at, character, length) == 0)
            return 1;
        at = memchr(at + 1, first, left - 1);
    }
    return 0;
}

uint64_t literal_filter_search(const literal_filter *f, const char *text, size_t size)
{
    uint64_t found = f->always;
    unsigned key;
    size_t i;

    if (f->count == 0 || size < LITERAL_MIN)
        return found;
    /* KELVIN SIGN and LONG S are equal to k and s when case is ignored. */
    if (contains(text, size, "\xe2\x84\xaa") || contains(text, size, "\xc5\xbf"))
        return UINT64_MAX;
    key = ((unsigned)text[0] & 31) << 5 | ((unsigned)text[1] & 31);
    for (i = 2; i < size; i++) {
        key = (key << 5 | ((unsigned)text[i] & 31)) & KEY_MASK;
        if (f->bits[key / 32] >> key % 32 & 1)
            found |= owners_at(f, key, text + i - 2, size - i + 2);
    }
    return found;
}
