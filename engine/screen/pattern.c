/*
 * pattern.c: sets of regular expressions over PCRE2.
 *
 * Owns how PCRE2 is called and how much it may do. Must never match longer than the
 * text's time, nor report a place outside of the text or inside of a character.
 *
 * PCRE2 limits the ways that are tried from one place, but not the number of places, nor
 * how far a look ahead reads. So a long text is matched in steps: a step has few places
 * to begin at and sees PATTERN_REACH bytes beyond them. Between two steps the clock is
 * read.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "screen/pattern.h"

#include <pcre2.h>
#include <string.h>

#include "base/text.h"
#include "screen/literals.h"

#define STEP_FIRST 1024 /* places to begin at */
#define BEHIND     256  /* bytes before a step that a look behind may see */
#define SLOW_US    1000 /* a step that takes longer is not made larger */
#define HEAP_KB    1024
#define STACK_MIN  (32 << 10)
#define STACK_MAX  (1 << 20)

typedef struct pattern {
    char name[PATTERN_NAME_MAX + 1];
    pcre2_code *code;
} pattern;

struct pattern_set {
    allocator alloc;
    pcre2_general_context *general;
    size_t count;
    literal_filter filter;
    pattern list[PATTERNS_MOST];
};

/* ------------------------------------------------------------------ hits */

void pattern_hits_init(pattern_hits *h, const allocator *a)
{
    memset(h, 0, sizeof *h);
    h->alloc = a;
}

void pattern_hits_deinit(pattern_hits *h)
{
    mem_free(h->alloc, h->list, h->capacity * sizeof *h->list);
    pattern_hits_init(h, h->alloc);
}

/* ------------------------------------------------------------------ sets */

static void *give(size_t size, void *alloc)
{
    return host_alloc(alloc, size);
}

static void take(void *block, void *alloc)
{
    (void)alloc;
    host_free(block);
}

sessile_status pattern_set_new(pattern_set **out, const allocator *a, sessile_error *err)
{
    pattern_set *set = mem_zalloc(a, sizeof *set);

    *out = NULL;
    if (!set)
        return fail_nomem(err);
    set->alloc = *a;
    literal_filter_init(&set->filter);
    set->general = pcre2_general_context_create(give, take, &set->alloc);
    if (!set->general) {
        pattern_set_free(set);
        return fail_nomem(err);
    }
    *out = set;
    return SESSILE_OK;
}

void pattern_set_free(pattern_set *set)
{
    allocator a;
    size_t i;

    if (!set)
        return;
    a = set->alloc;
    for (i = 0; i < set->count; i++)
        pcre2_code_free(set->list[i].code);
    literal_filter_deinit(&set->filter, &a);
    pcre2_general_context_free(set->general);
    mem_free(&a, set, sizeof *set);
}

int pattern_name_valid(const char *name, size_t size)
{
    size_t i;
    for (i = 0; i < size; i++) {
        char c = name[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
              (c >= '0' && c <= '9') || c == '_' || c == '-'))
            return 0;
    }
    return size > 0 && size <= PATTERN_NAME_MAX;
}

/* What all expressions have, those of screens, and those of schemas (ECMA 262). */
#define FLAGS_ALL    (PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT)
#define FLAGS_SCREEN (PCRE2_UCP | PCRE2_CASELESS | PCRE2_DOTALL | PCRE2_NO_AUTO_CAPTURE)
#define FLAGS_SCHEMA                                                   \
    (PCRE2_ALT_BSUX | PCRE2_ALLOW_EMPTY_CLASS | PCRE2_DOLLAR_ENDONLY | \
     PCRE2_MATCH_UNSET_BACKREF)

static sessile_status compile(pattern_set *set, pattern *p, sessile_slice expression,
                              uint32_t flags, sessile_error *err)
{
    pcre2_compile_context *context = pcre2_compile_context_create(set->general);
    PCRE2_SIZE where = 0;
    PCRE2_UCHAR why[128];
    int code = 0;

    if (!context)
        return fail_nomem(err);
    p->code = pcre2_compile((PCRE2_SPTR)expression.data, expression.size,
                            FLAGS_ALL | flags, &code, &where, context);
    pcre2_compile_context_free(context);
    if (!p->code && code == PCRE2_ERROR_HEAP_FAILED)
        return fail_nomem(err);
    if (!p->code) {
        pcre2_get_error_message(code, why, sizeof why);
        return fail(err, SESSILE_INVALID, "the pattern '%s' is wrong at byte %zu: %s",
                    p->name, where, (char *)why);
    }
    /* If the system does not allow generated code, the interpreter is used. */
    pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE);
    return SESSILE_OK;
}

static sessile_status add(pattern_set *set, const char *name, sessile_slice expression,
                          uint32_t flags, sessile_error *err)
{
    literals wanted = {0};
    sessile_status status;
    pattern *p;

    if (set->count >= PATTERNS_MOST)
        return fail(err, SESSILE_LIMIT, "a screen has at most %d patterns",
                    PATTERNS_MOST);
    if (!pattern_name_valid(name, strlen(name)))
        return fail(err, SESSILE_INVALID,
                    "the name of a pattern is 1 to %d letters, digits, _ and -",
                    PATTERN_NAME_MAX);
    if (pattern_set_find(set, name) >= 0)
        return fail(err, SESSILE_INVALID, "two patterns are called '%s'", name);
    if (expression.size == 0 || expression.size > PATTERN_SIZE_MAX)
        return fail(err, expression.size ? SESSILE_LIMIT : SESSILE_INVALID,
                    "the pattern '%s' has 1 to %d bytes", name, PATTERN_SIZE_MAX);
    if (!utf8_valid(expression.data, expression.size))
        return fail(err, SESSILE_INVALID, "the pattern '%s' is not UTF-8", name);
    p = &set->list[set->count];
    memcpy(p->name, name, strlen(name) + 1);
    status = compile(set, p, expression, flags, err);
    if (status)
        return status;
    if (flags == FLAGS_SCREEN)
        literals_of(&wanted, expression.data, expression.size);
    return literal_filter_add(&set->filter, (unsigned)set->count++, &wanted, &set->alloc,
                              err);
}

sessile_status pattern_set_add(pattern_set *set, const char *name,
                               sessile_slice expression, sessile_error *err)
{
    return add(set, name, expression, FLAGS_SCREEN, err);
}

sessile_status pattern_set_add_exact(pattern_set *set, const char *name,
                                     sessile_slice expression, sessile_error *err)
{
    return add(set, name, expression, FLAGS_SCHEMA, err);
}

void pattern_set_ready(pattern_set *set)
{
    literal_filter_ready(&set->filter);
}

size_t pattern_set_count(const pattern_set *set)
{
    return set->count;
}

const char *pattern_set_name(const pattern_set *set, size_t i)
{
    return set->list[i].name;
}

int pattern_set_find(const pattern_set *set, const char *name)
{
    size_t i;
    for (i = 0; i < set->count; i++)
        if (strcmp(set->list[i].name, name) == 0)
            return (int)i;
    return -1;
}

/* ------------------------------------------------------------------ matching */

typedef struct matching {
    const pattern_set *set;
    sessile_slice text;
    const os_table *os;
    uint64_t budget;     /* microseconds */
    uint64_t wall_until; /* the time cannot be up before this */
    uint64_t cpu_until;  /* the thread's CPU time when it is up; 0: not looked at yet */
    pcre2_match_context *context;
    pcre2_match_data *found;
    pcre2_jit_stack *stack; /* if the stack of the thread was too small */
    pattern_hits *hits;
    sessile_error *err;
} matching;

/* Matches from `at` on, at places up to `last`; uses more memory if the usual amount is
 * too small. */
static int match_at(matching *m, const pcre2_code *code, sessile_slice view, size_t at,
                    size_t last, uint32_t options)
{
    int n;
    pcre2_set_offset_limit(m->context, last);
    n = pcre2_match(code, (PCRE2_SPTR)view.data, view.size, at,
                    options | PCRE2_NO_UTF_CHECK, m->found, m->context);
    if (n != PCRE2_ERROR_JIT_STACKLIMIT || m->stack)
        return n;
    m->stack = pcre2_jit_stack_create(STACK_MIN, STACK_MAX, m->set->general);
    if (!m->stack)
        return PCRE2_ERROR_NOMEMORY;
    pcre2_jit_stack_assign(m->context, NULL, m->stack);
    return pcre2_match(code, (PCRE2_SPTR)view.data, view.size, at,
                       options | PCRE2_NO_UTF_CHECK, m->found, m->context);
}

static sessile_status too_much(const matching *m, unsigned pattern)
{
    return fail(m->err, SESSILE_LIMIT,
                "the pattern '%s' tries too many ways to match this text",
                m->set->list[pattern].name);
}

static sessile_status add_hit(matching *m, unsigned pattern, size_t from, size_t to)
{
    pattern_hits *h = m->hits;
    void *list = h->list;

    h->matched |= UINT64_C(1) << pattern;
    if (from >= to) /* an empty match, or \K in a look ahead */
        return SESSILE_OK;
    if (h->count >= PATTERN_HITS)
        return fail(m->err, SESSILE_LIMIT,
                    "the pattern '%s' matches more than %d times in a text",
                    m->set->list[pattern].name, PATTERN_HITS);
    if (mem_grow(h->alloc, &list, &h->capacity, h->count + 1, sizeof *h->list))
        return fail_nomem(m->err);
    h->list = list;
    h->list[h->count++] = (pattern_hit){from, to, pattern};
    return SESSILE_OK;
}

static size_t next_character(sessile_slice text, size_t at)
{
    at++;
    while (at < text.size && ((unsigned char)text.data[at] & 0xc0) == 0x80)
        at++;
    return at;
}

/* The part of the text that a step from `at` with `places` places sees. */
static sessile_slice view_of(sessile_slice text, size_t at, size_t places, size_t *begin)
{
    size_t end = text.size;

    *begin = at > BEHIND ? utf8_floor(text.data, text.size, at - BEHIND) : 0;
    if (end - at > places + PATTERN_REACH)
        end = utf8_floor(text.data, text.size, at + places + PATTERN_REACH);
    return (sessile_slice){text.data + *begin, end - *begin};
}

/* One step: matches that begin at `*at` up to `last`. Moves *at past them. */
static sessile_status match_step(matching *m, unsigned pattern, size_t *at, size_t places)
{
    const pcre2_code *code = m->set->list[pattern].code;
    size_t last = *at + places, begin;
    sessile_slice view = view_of(m->text, *at, places, &begin);
    uint32_t options = (begin ? PCRE2_NOTBOL : 0) |
                       (begin + view.size < m->text.size ? PCRE2_NOTEOL : 0);

    while (*at < last && *at <= m->text.size) {
        PCRE2_SIZE *span = pcre2_get_ovector_pointer(m->found);
        int n = match_at(m, code, view, *at - begin, last - 1 - begin, options);
        sessile_status status;
        if (n == PCRE2_ERROR_NOMATCH)
            break;
        if (n == PCRE2_ERROR_NOMEMORY || n == PCRE2_ERROR_HEAPLIMIT)
            return n == PCRE2_ERROR_NOMEMORY ? fail_nomem(m->err) : too_much(m, pattern);
        if (n < 0)
            return too_much(m, pattern);
        status = add_hit(m, pattern, span[0] + begin, span[1] + begin);
        if (status)
            return status;
        *at = span[1] + begin > *at ? span[1] + begin : next_character(m->text, *at);
    }
    if (*at < last)
        *at = last;
    return SESSILE_OK;
}

/* CPU time costs a system call, so it is looked at for the first time when the budget has
 * passed on the wall, and counted from there. */
static int time_is_up(matching *m, uint64_t now)
{
    uint64_t cpu;
    if (now < m->wall_until)
        return 0;
    cpu = m->os->thread_cpu_us(m->os->ud);
    if (!m->cpu_until)
        m->cpu_until = cpu + m->budget;
    if (cpu >= m->cpu_until)
        return 1;
    m->wall_until = now + (m->cpu_until - cpu);
    return 0;
}

static sessile_status match_pattern(matching *m, unsigned pattern)
{
    size_t at = 0, places = STEP_FIRST;
    uint64_t before = m->os->clock_us(m->os->ud), now;
    sessile_status status = SESSILE_OK;

    while (!status && at <= m->text.size) {
        if (at < m->text.size)
            at = utf8_floor(m->text.data, m->text.size, at);
        status = match_step(m, pattern, &at, places);
        now = m->os->clock_us(m->os->ud);
        if (!status && time_is_up(m, now))
            status = too_much(m, pattern);
        if (now - before < SLOW_US && places < PATTERN_REACH)
            places *= 2;
        else if (now - before > 4 * SLOW_US && places > STEP_FIRST)
            places /= 2;
        before = now;
    }
    return status;
}

sessile_status pattern_set_match(const pattern_set *set, sessile_slice text, int filter,
                                 const os_table *os, pattern_hits *hits,
                                 sessile_error *err)
{
    matching m = {.set = set, .text = text, .os = os, .hits = hits, .err = err};
    sessile_status status = SESSILE_OK;
    uint64_t wanted;
    unsigned i;

    if (!utf8_valid(text.data, text.size))
        return fail(err, SESSILE_INVALID, "a text that is screened is UTF-8");
    wanted =
        filter ? literal_filter_search(&set->filter, text.data, text.size) : UINT64_MAX;
    if (set->count < PATTERNS_MOST)
        wanted &= (UINT64_C(1) << set->count) - 1;
    if (!wanted)
        return SESSILE_OK;
    m.budget = (PATTERN_MS + (uint64_t)(text.size / 16384)) * 500;
    m.wall_until = os->clock_us(os->ud) + m.budget;
    m.context = pcre2_match_context_create(set->general);
    m.found = pcre2_match_data_create(1, set->general);
    if (!m.context || !m.found)
        status = fail_nomem(err);
    if (!status) {
        pcre2_set_match_limit(m.context, PATTERN_TRIES);
        pcre2_set_depth_limit(m.context, PATTERN_TRIES);
        pcre2_set_heap_limit(m.context, HEAP_KB);
    }
    for (i = 0; !status && i < set->count; i++)
        if (wanted >> i & 1)
            status = match_pattern(&m, i);
    pcre2_match_data_free(m.found);
    pcre2_match_context_free(m.context);
    pcre2_jit_stack_free(m.stack);
    return status;
}
