/*
 * counters.c: decides what counts a text: an encoding, the host's counter, or the
 * estimate.
 *
 * Owns the encodings that a store has opened. Must never fail: the estimate always
 * counts.
 */
#include "tokens/counters.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "tokens/encoding.h"
#include "tokens/walk.h"

struct counters {
    const allocator *alloc;
    char *name, *folders;
    int64_t (*count)(void *ud, const char *text, size_t size);
    void *ud;
    pthread_mutex_t mutex;
    /* under the mutex until it is opened; immutable afterwards */
    struct slot {
        encoding *e;
        atomic_int tried; /* 1: opened, or opening failed */
    } slots[TOKENS_HOST]; /* of the units of encodings */
    sessile_error why;
};

static char *dup_text(const allocator *a, const char *text)
{
    return text && *text ? mem_dup(a, text, strlen(text)) : NULL;
}

static void free_text(const allocator *a, char *text)
{
    if (text)
        mem_free(a, text, strlen(text) + 1);
}

counters *counters_new(const counters_setup *setup)
{
    counters *c = mem_zalloc(setup->alloc, sizeof *c);

    if (!c)
        return NULL;
    c->alloc = setup->alloc;
    c->count = setup->count;
    c->ud = setup->ud;
    if (pthread_mutex_init(&c->mutex, NULL)) {
        mem_free(c->alloc, c, sizeof *c);
        return NULL;
    }
    c->name = dup_text(c->alloc, setup->encoding);
    c->folders = dup_text(c->alloc, setup->folders);
    if ((setup->encoding && *setup->encoding && !c->name) ||
        (setup->folders && *setup->folders && !c->folders)) {
        counters_free(c);
        return NULL;
    }
    return c;
}

void counters_free(counters *c)
{
    if (!c)
        return;
    for (int i = 0; i < TOKENS_HOST; i++)
        encoding_free(c->slots[i].e);
    free_text(c->alloc, c->name);
    free_text(c->alloc, c->folders);
    pthread_mutex_destroy(&c->mutex);
    mem_free(c->alloc, c, sizeof *c);
}

/* ------------------------------------------------------------------ encodings */

static int unit_of_name(const char *name)
{
    token_unit unit = token_unit_of(name, strlen(name));

    return unit == TOKENS_CL100K || unit == TOKENS_O200K ? (int)unit : TOKENS_ENCODING;
}

static const char *name_of_unit(const counters *c, int unit)
{
    return unit == TOKENS_ENCODING ? c->name : token_unit_name((token_unit)unit);
}

/* The encoding of a unit, or NULL: it does not open. */
static const encoding *open_unit(counters *c, int unit)
{
    struct slot *slot;

    if (unit < TOKENS_CL100K || unit >= TOKENS_HOST)
        return NULL;
    slot = &c->slots[unit];
    if (atomic_load_explicit(&slot->tried, memory_order_acquire))
        return slot->e;
    pthread_mutex_lock(&c->mutex);
    if (!atomic_load_explicit(&slot->tried, memory_order_relaxed)) {
        sessile_error err = {0};
        if (name_of_unit(c, unit) &&
            encoding_open(&slot->e, name_of_unit(c, unit), c->folders, c->alloc, &err)) {
            slot->e = NULL;
            c->why = err;
        }
        atomic_store_explicit(&slot->tried, 1, memory_order_release);
    }
    pthread_mutex_unlock(&c->mutex);
    return slot->e;
}

void counters_why(counters *c, char *out, size_t size)
{
    pthread_mutex_lock(&c->mutex);
    size_t n = strlen(c->why.message);
    if (n >= size)
        n = size - 1;
    memcpy(out, c->why.message, n);
    out[n] = 0;
    pthread_mutex_unlock(&c->mutex);
}

int counters_exact(const counters *c, const char *model, size_t size)
{
    const model_kind *kind = size ? model_find(model, size) : NULL;

    if (kind && kind->encoding)
        return unit_of_name(kind->encoding);
    if (kind && c->name) /* of models that are known to have another vocabulary */
        return strchr(c->name, '/') ? TOKENS_ENCODING : -1;
    return c->name ? unit_of_name(c->name) : -1;
}

token_unit counters_unit(counters *c, const char *model, size_t size)
{
    int exact = counters_exact(c, model, size);

    if (c->name) /* the encoding of the setup, for every model */
        exact = unit_of_name(c->name);
    if (exact >= 0 && open_unit(c, exact))
        return (token_unit)exact;
    return c->count ? TOKENS_HOST : TOKENS_ESTIMATE;
}

/* ------------------------------------------------------------------ texts */

static int64_t try_text(counters *c, token_unit unit, const char *text, size_t size)
{
    int64_t n = -1;

    if (unit == TOKENS_HOST)
        return c->count ? c->count(c->ud, text, size) : -1;
    const encoding *e = open_unit(c, (int)unit);
    return e && !encoding_count(e, text, size, &n, NULL) ? n : -1;
}

int64_t counters_text(counters *c, token_unit unit, const char *text, size_t size,
                      token_unit *by)
{
    int64_t n = -1;

    *by = unit;
    if (unit != TOKENS_ESTIMATE)
        n = try_text(c, unit, text, size);
    if (n < 0 && c->count && unit != TOKENS_HOST && unit != TOKENS_ESTIMATE) {
        *by = TOKENS_HOST;
        n = try_text(c, TOKENS_HOST, text, size);
    }
    if (n >= 0)
        return n;
    *by = TOKENS_ESTIMATE;
    return tokens_of_text(text, size);
}

/* ------------------------------------------------------------------ messages */

typedef struct summing {
    counters *c;
    token_unit unit;
    int64_t sum;
    buf text;
    int failed;
} summing;

static int64_t count_one(void *arg, const char *text, size_t size)
{
    summing *s = arg;

    return try_text(s->c, s->unit, text, size);
}

static void add_text(summing *s, const char *text, size_t size)
{
    int64_t n = s->failed ? -1 : count_one(s, text, size);

    if (n < 0)
        s->failed = 1;
    else if (n < INT64_MAX / 4 - s->sum)
        s->sum += n;
}

/* A string's inside, decoded; anything else as the JSON it is. */
static void add_value(void *arg, json value)
{
    summing *s = arg;

    if (s->failed)
        return;
    if (value.type != JSON_STRING) {
        add_text(s, value.at, value.size);
    } else if (!memchr(value.at, '\\', value.size)) {
        add_text(s, value.at + 1, value.size - 2);
    } else {
        buf_clear(&s->text);
        if (json_string(&s->text, value) || s->text.failed)
            s->failed = 1;
        else
            add_text(s, s->text.size ? s->text.data : "", s->text.size);
    }
}

static void add_mark(void *arg, walk_mark mark)
{
    summing *s = arg;

    s->sum += walk_overhead(mark);
}

int64_t counters_message(counters *c, token_unit unit, const model_kind *kind,
                         const message *m, token_unit *by)
{
    summing s = {.c = c, .unit = unit};
    walk w = {.arg = &s, .text = add_value, .mark = add_mark};
    json name;

    *by = unit;
    if (unit == TOKENS_ESTIMATE)
        return tokens_of_message(m);
    buf_init(&s.text, c->alloc);
    s.sum = kind ? kind->message : WALK_MESSAGE_OVERHEAD;
    message_walk(m, &w);
    name = json_get(m->root, "name");
    if (name.type == JSON_STRING && kind && kind->name) {
        s.sum += kind->name;
        add_value(&s, name);
    }
    if (kind && kind->encoding) /* the role is text of the message there */
        s.sum += kind->message > 0;
    buf_deinit(&s.text);
    if (!s.failed)
        return s.sum;
    if (unit != TOKENS_HOST && c->count)
        return counters_message(c, TOKENS_HOST, kind, m, by);
    *by = TOKENS_ESTIMATE;
    return tokens_of_message(m);
}

static int64_t estimate_one(void *arg, const char *text, size_t size)
{
    (void)arg;
    return tokens_of_text(text, size);
}

/* Tokens of tool definitions, a JSON array, in a unit, or in the one that *by says. */
static int64_t count_tools(counters *c, token_unit unit, const model_kind *kind,
                           json tools, token_unit *by)
{
    summing s = {.c = c, .unit = unit};
    int64_t n = -1;

    *by = unit;
    if (unit != TOKENS_ESTIMATE)
        n = model_tools(kind, tools, count_one, &s, c->alloc);
    if (n < 0) {
        *by = TOKENS_ESTIMATE;
        n = model_tools(kind, tools, estimate_one, NULL, c->alloc);
    }
    return n < 0 ? 0 : n;
}

/* Adds a part to a count; the worse of the two sources becomes its source. */
static void add_part(sessile_tokens *to, int64_t tokens, token_unit unit, int exact)
{
    static const char *const order[] = {TOKEN_SOURCE_EXACT, TOKEN_SOURCE_HOST,
                                        TOKEN_SOURCE_FITTED, TOKEN_SOURCE_ESTIMATE};
    const char *source = (int)unit == exact    ? TOKEN_SOURCE_EXACT
                         : unit == TOKENS_HOST ? TOKEN_SOURCE_HOST
                                               : TOKEN_SOURCE_ESTIMATE;
    int64_t low, high;

    if (tokens == 0)
        return;
    if (source == order[3])
        tokens_margin(tokens, &low, &high);
    else
        tokens_framing_margin(tokens, 1, &low, &high);
    if (to->tokens == 0)
        to->source = order[0];
    to->tokens += tokens;
    to->low += low;
    to->high += high;
    for (int i = 3; i >= 0; i--)
        if (!strcmp(order[i], source) || !strcmp(order[i], to->source)) {
            to->source = order[i];
            break;
        }
}

sessile_status counters_beside(counters *c, sessile_slice model, sessile_slice tools,
                               sessile_slice system, sessile_tokens *out,
                               sessile_error *err)
{
    const model_kind *kind = model_find(model.data, model.size);
    token_unit unit = counters_unit(c, model.data, model.size), by;
    int exact = counters_exact(c, model.data, model.size);
    int64_t n;

    if (tools.size) {
        sessile_status status;
        buf checked;
        buf_init(&checked, c->alloc);
        status = json_check(&checked, tools.data, tools.size, 1000, err);
        if (!status && json_of(checked.data, checked.size).type != JSON_ARRAY)
            status = fail(err, SESSILE_INVALID,
                          "tools are a JSON array of definitions, as the model is given "
                          "them");
        if (status) {
            buf_deinit(&checked);
            return fail_prefix(err, "tools");
        }
        n = count_tools(c, unit, kind, json_of(checked.data, checked.size), &by);
        add_part(out, n, by, exact);
        buf_deinit(&checked);
    }
    if (system.size) {
        n = counters_text(c, unit, system.data, system.size, &by);
        add_part(out, n + (kind ? kind->message + 1 : WALK_MESSAGE_OVERHEAD), by, exact);
    }
    return SESSILE_OK;
}
