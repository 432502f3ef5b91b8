/*
 * cutter.c: pre-tokenization by regular expressions, with PCRE2.
 *
 * Owns how expressions of other engines are translated. Must never let an expression run
 * without end. PCRE2 counts its steps, and takes its memory from the caller's allocator.
 * It does not count how far a step looks ahead. So each match starts with a short part of
 * the text and gets more when it asks for it, and this file counts how much was read.
 *
 * Steps are stored as text: for each, a digit (what it keeps), its expression, and a NUL.
 * Each step splits every piece of the step before, and sees nothing around the piece.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "tokens/cutter.h"

#include <pcre2.h>
#include <string.h>

#include "base/text.h"
#include "tokens/pretoken.h"

#define STEPS_MAX      16
#define EXPRESSION_MAX 65536
#define STACK_FIRST    (32 << 10)
#define STACK_MAX      (1 << 20)
/* Limit on the ways that one match tries. */
#define TRIES_MAX 2000000
/* Bytes that a match sees at first; bytes that all may see beyond that, and more of
 * them for a long text. */
#define VIEW_FIRST   4096
#define VIEWED_MAX   (INT64_C(64) << 20)
#define VIEWED_TIMES 32

typedef struct step {
    pcre2_code *code; /* NULL: a scanner of our own */
    pretoken_scanner *scan;
    unsigned keep;
} step;

struct cutter {
    allocator own;
    pcre2_general_context *general;
    size_t count;
    step steps[STEPS_MAX];
};

/* ------------------------------------------------------------------ steps as text */

/* White space in the tables of both; PCRE2's own \s has U+180E as well.
 */
#define SPACE     "\\p{White_Space}"
#define NOT_SPACE "\\P{White_Space}"
#define WORD      "\\p{L}\\p{M}\\p{Nd}\\p{Pc}"

static sessile_status other_meaning(sessile_error *err, const char *what)
{
    return fail(err, SESSILE_UNSUPPORTED,
                "its pattern has %s, which means another thing in PCRE2", what);
}

/* Translates an escape at *at. */
static sessile_status put_escape(buf *out, const char **at, const char *end, int class,
                                 sessile_error *err)
{
    char c;

    if (*at + 1 >= end)
        return fail(err, SESSILE_INVALID, "its pattern ends with a backslash");
    c = (*at)[1];
    *at += 2;
    if (c == 's') {
        buf_puts(out, SPACE);
    } else if (c == 'S') {
        buf_puts(out, NOT_SPACE);
    } else if (c == 'w') {
        buf_puts(out, class ? WORD : "[" WORD "]");
    } else if (c == 'W' && !class) {
        buf_puts(out, "[^" WORD "]");
    } else if (strchr("WhHbBGKXRNCQEuUyY", c)) {
        char name[3] = {'\\', c, 0};
        return other_meaning(err, name);
    } else {
        buf_putc(out, '\\');
        buf_putc(out, c);
    }
    return SESSILE_OK;
}

sessile_status cut_put(buf *steps, const char *expression, size_t size, unsigned keep,
                       sessile_error *err)
{
    const char *at = expression, *end = expression + size;
    sessile_status status = SESSILE_OK;
    int class = 0;

    if (size == 0 || size > EXPRESSION_MAX || memchr(expression, 0, size))
        return fail(err, SESSILE_INVALID,
                    "its pattern is empty, longer than %d bytes, or has a NUL",
                    EXPRESSION_MAX);
    buf_putc(steps, (char)('0' + keep));
    if (pretoken_kind(expression, size) != PRETOKEN_KINDS) {
        buf_put(steps, expression, size); /* known by its letters when it is opened */
        at = end;
    }
    while (at < end && !status) {
        if (*at == '\\') {
            status = put_escape(steps, &at, end, class, err);
            continue;
        }
        if (class && *at == '[')
            status = other_meaning(err, "a class within a class");
        else if (class && *at == '&' && at + 1 < end && at[1] == '&')
            status = other_meaning(err, "an intersection of classes");
        else if (!class && (*at == '^' || *at == '$'))
            status = other_meaning(err, "the beginning or end of a line");
        if (*at == '[' && !class) {
            /* A closing bracket at the start belongs to the class. */
            class = 1;
            buf_putc(steps, *at++);
            if (at < end && *at == '^')
                buf_putc(steps, *at++);
            if (at < end && *at == ']')
                status = other_meaning(err, "a class that begins with ']'");
            continue;
        }
        class = class && *at != ']';
        buf_putc(steps, *at++);
    }
    buf_putc(steps, 0);
    if (!status && steps->failed)
        status = fail_nomem(err);
    return status;
}

sessile_status cut_put_text(buf *steps, const char *text, size_t size, unsigned keep,
                            sessile_error *err)
{
    size_t k;

    if (size == 0 || size > EXPRESSION_MAX / 2 || memchr(text, 0, size))
        return fail(err, SESSILE_INVALID, "a text to split at is empty, or too long");
    buf_putc(steps, (char)('0' + keep));
    for (k = 0; k < size; k++) {
        if (strchr("\\^$.[]|()?*+{}-", text[k]))
            buf_putc(steps, '\\');
        buf_putc(steps, text[k]);
    }
    buf_putc(steps, 0);
    return steps->failed ? fail_nomem(err) : SESSILE_OK;
}

/* ------------------------------------------------------------------ opening */

/* PCRE2 frees without the size, so the size is stored before the block. */
#define BEFORE 16

static void *give_memory(size_t size, void *ud)
{
    char *block;
    if (size > SIZE_MAX - BEFORE)
        return NULL;
    block = mem_alloc(ud, size + BEFORE);
    if (!block)
        return NULL;
    memcpy(block, &size, sizeof size);
    return block + BEFORE;
}

static void take_memory(void *memory, void *ud)
{
    size_t size;
    if (!memory)
        return;
    memcpy(&size, (char *)memory - BEFORE, sizeof size);
    mem_free(ud, (char *)memory - BEFORE, size + BEFORE);
}

static sessile_status compile(cutter *c, step *s, const char *expression,
                              sessile_error *err)
{
    PCRE2_SIZE where = 0;
    PCRE2_UCHAR why[128];
    int code = 0;
    unsigned kind = pretoken_kind(expression, strlen(expression));
    pcre2_compile_context *context;

    if (kind != PRETOKEN_KINDS) {
        s->scan = pretoken_scanners[kind];
        return SESSILE_OK;
    }
    context = pcre2_compile_context_create(c->general);
    if (!context)
        return fail_nomem(err);
    s->code = pcre2_compile((PCRE2_SPTR)expression, PCRE2_ZERO_TERMINATED,
                            PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &code,
                            &where, context);
    pcre2_compile_context_free(context);
    if (!s->code && code == PCRE2_ERROR_HEAP_FAILED)
        return fail_nomem(err);
    if (!s->code) {
        pcre2_get_error_message(code, why, sizeof why);
        return fail(err, SESSILE_INVALID, "its pattern is wrong at byte %zu: %s", where,
                    (char *)why);
    }
    /* If the system does not allow generated code, the interpreter is used. */
    pcre2_jit_compile(s->code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);
    return SESSILE_OK;
}

sessile_status cutter_open(cutter **out, const char *steps, size_t size,
                           const allocator *alloc, sessile_error *err)
{
    const char *at = steps, *end = steps + size;
    sessile_status status = SESSILE_OK;
    cutter *c = mem_zalloc(alloc, sizeof *c);

    *out = NULL;
    if (!c)
        return fail_nomem(err);
    c->own = *alloc;
    c->general = pcre2_general_context_create(give_memory, take_memory, &c->own);
    if (!c->general)
        status = fail_nomem(err);
    while (!status && at < end) {
        const char *stop = memchr(at, 0, (size_t)(end - at));
        if (!stop || stop - at < 2 || *at < '1' || *at > '3' || c->count == STEPS_MAX) {
            status = fail(err, SESSILE_INVALID,
                          "its steps are damaged, or there are more than %d", STEPS_MAX);
        } else {
            c->steps[c->count].keep = (unsigned)(*at - '0');
            status = compile(c, &c->steps[c->count++], at + 1, err);
            at = stop + 1;
        }
    }
    if (status)
        cutter_free(c);
    else
        *out = c;
    return status;
}

void cutter_free(cutter *c)
{
    allocator own;
    size_t k;

    if (!c)
        return;
    own = c->own;
    for (k = 0; k < c->count; k++)
        pcre2_code_free(c->steps[k].code);
    pcre2_general_context_free(c->general);
    mem_free(&own, c, sizeof *c);
}

/* ------------------------------------------------------------------ cutting */

typedef struct cutting {
    const cutter *c;
    pcre2_match_data *found[STEPS_MAX];
    pcre2_match_context *context;
    pcre2_jit_stack *stack; /* if the stack of the thread was too small */
    int (*visit)(void *arg, const unsigned char *piece, size_t size);
    void *arg;
    int error;     /* of PCRE2; 1: visit said to stop */
    int64_t views; /* bytes that may be seen beyond the first views */
} cutting;

static int cut(cutting *u, size_t at_step, const unsigned char *text, size_t size);

/* The output of a step is the input of the next. */
static int pass(cutting *u, size_t at_step, const unsigned char *text, size_t size,
                unsigned keep)
{
    if (size == 0 || !(u->c->steps[at_step].keep & keep))
        return 0;
    return cut(u, at_step + 1, text, size);
}

/* Matches from `at` on; uses more memory if the usual amount is too small. */
static int match_in(cutting *u, size_t at_step, const unsigned char *text, size_t size,
                    size_t at, uint32_t options)
{
    const pcre2_code *code = u->c->steps[at_step].code;
    pcre2_match_data *found = u->found[at_step];
    int n = pcre2_match(code, text, size, at, options, found, u->context);

    if (n != PCRE2_ERROR_JIT_STACKLIMIT || u->stack)
        return n;
    u->stack = pcre2_jit_stack_create(STACK_FIRST, STACK_MAX, u->c->general);
    if (!u->stack)
        return PCRE2_ERROR_NOMEMORY;
    pcre2_jit_stack_assign(u->context, NULL, u->stack);
    return pcre2_match(code, text, size, at, options, found, u->context);
}

/* The same result as on the whole text: a match that reached the end of a view is
 * repeated in a larger one. */
static int match(cutting *u, size_t at_step, const unsigned char *text, size_t size,
                 size_t at)
{
    size_t view = VIEW_FIRST, end;
    int n;

    for (;;) {
        end = view < size - at ? at + view : size;
        while (end < size && (text[end] & 0xc0) == 0x80)
            end++;
        if (end == size)
            return match_in(u, at_step, text, size, at, PCRE2_NO_UTF_CHECK);
        n = match_in(u, at_step, text, end, at, PCRE2_NO_UTF_CHECK | PCRE2_PARTIAL_HARD);
        if (n != PCRE2_ERROR_PARTIAL && n != PCRE2_ERROR_NOMATCH)
            return n;
        view *= 4;
        u->views -= (int64_t)(view < size - at ? view : size - at);
        if (u->views < 0)
            return PCRE2_ERROR_MATCHLIMIT;
    }
}

static int cut_scanned(cutting *u, size_t at_step, const unsigned char *text, size_t size)
{
    const unsigned char *end = text + size;
    int stop = 0;

    while (text < end && !stop) {
        size_t length = u->c->steps[at_step].scan(text, end);
        stop = pass(u, at_step, text, length, CUT_KEEP_FOUND);
        text += length;
    }
    return stop;
}

static int cut(cutting *u, size_t at_step, const unsigned char *text, size_t size)
{
    const step *s = &u->c->steps[at_step];
    size_t at = 0, from = 0;

    if (at_step == u->c->count) {
        u->error = u->visit(u->arg, text, size) != 0;
        return u->error;
    }
    if (s->scan)
        return cut_scanned(u, at_step, text, size);
    while (at < size) {
        PCRE2_SIZE *span = pcre2_get_ovector_pointer(u->found[at_step]);
        int n = match(u, at_step, text, size, at);
        if (n == PCRE2_ERROR_NOMATCH)
            break;
        if (n < 0 || span[1] < span[0] || span[0] < from)
            u->error = n < 0 ? n : PCRE2_ERROR_INTERNAL;
        if (u->error)
            return 1;
        at = span[1];
        if (pass(u, at_step, text + from, span[0] - from, CUT_KEEP_BETWEEN))
            return 1;
        /* The next step uses no span of this one's. */
        from = span[0];
        if (at > from && pass(u, at_step, text + from, at - from, CUT_KEEP_FOUND))
            return 1;
        if (at > from)
            from = at;
        else if (at < size)
            at += utf8_length(text + at, size - at);
    }
    return pass(u, at_step, text + from, size - from, CUT_KEEP_BETWEEN);
}

sessile_status cutter_run(const cutter *c, const unsigned char *text, size_t size,
                          int (*visit)(void *arg, const unsigned char *piece,
                                       size_t size),
                          void *arg, sessile_error *err)
{
    cutting u = {.c = c, .visit = visit, .arg = arg};
    /* Longer texts than these are nowhere: nothing overflows. */
    int64_t limit = INT64_MAX / (2 * VIEWED_TIMES);
    size_t k;

    u.views = VIEWED_MAX + VIEWED_TIMES * (size < (size_t)limit ? (int64_t)size : limit);
    u.context = pcre2_match_context_create(c->general);
    for (k = 0; k < c->count && u.error == 0; k++) {
        if (c->steps[k].code) {
            u.found[k] = pcre2_match_data_create(1, c->general);
            if (!u.found[k])
                u.error = PCRE2_ERROR_NOMEMORY;
        }
    }
    if (u.context)
        pcre2_set_match_limit(u.context, TRIES_MAX);
    else
        u.error = PCRE2_ERROR_NOMEMORY;
    if (u.error == 0)
        cut(&u, 0, text, size);
    for (k = 0; k < c->count; k++)
        pcre2_match_data_free(u.found[k]);
    pcre2_match_context_free(u.context);
    pcre2_jit_stack_free(u.stack);
    if (u.error == 0)
        return SESSILE_OK;
    if (u.error == 1 || u.error == PCRE2_ERROR_NOMEMORY)
        return fail_nomem(err);
    return fail(err, SESSILE_LIMIT,
                "the encoding's pattern goes through too many ways to match this text");
}
