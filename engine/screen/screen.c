/*
 * screen.c: a list of screens, run over a text.
 *
 * Owns the order of the checks and what a verdict does. Must never write a word that was
 * not in the text, name a word of it in an error, or let a text pass because a screen
 * failed on it.
 */
#include "screen/screen.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "codec/message.h"
#include "screen/url.h"

struct screen_schema {
    sessile_screen_kind kind;
    char key[64];
    schema *schema;
};

struct sessile_screens {
    counted references; /* first: see base/counted.h */
    allocator alloc;
    const os_table *os;
    screen *list[SCREENS_MOST];
    size_t count;
    struct screen_schema schemas[SCREEN_SCHEMAS];
    size_t schema_count;
    screen_url_check urls;
    void *urls_arg;
    sessile_screens *of; /* owns the screens and schemas; NULL: this list does */
};

/* ------------------------------------------------------------------ names */

static const char *const kind_names[] = {"message",  "custom", "title",  "metadata",
                                         "settings", "state",  "memory", "answer"};
static const char *const verdict_names[] = {"pass", "flag", "redact", "refuse"};

#define COUNT_OF(list) (sizeof(list) / sizeof *(list))

const char *screen_kind_name(sessile_screen_kind kind)
{
    size_t i;
    for (i = 0; i < COUNT_OF(kind_names); i++)
        if ((unsigned)kind == 1u << i)
            return kind_names[i];
    return NULL;
}

sessile_screen_kind screen_kind_of(const char *name)
{
    size_t i;
    for (i = 0; i < COUNT_OF(kind_names); i++)
        if (strcmp(name, kind_names[i]) == 0)
            return (sessile_screen_kind)(1u << i);
    return (sessile_screen_kind)0;
}

const char *screen_source_name(sessile_screen_source source)
{
    switch (source) {
    case SESSILE_SCREEN_BY_HOST:
        return "host";
    case SESSILE_SCREEN_BY_USER:
        return "user";
    case SESSILE_SCREEN_BY_AGENT:
        return "agent";
    case SESSILE_SCREEN_BY_TOOL:
        return role_name(SESSILE_TOOL);
    case SESSILE_SCREEN_BY_SYSTEM:
        return role_name(SESSILE_SYSTEM);
    }
    return NULL;
}

const char *screen_verdict_name(sessile_screen_verdict verdict)
{
    return (size_t)verdict < COUNT_OF(verdict_names) ? verdict_names[verdict] : NULL;
}

int screen_verdict_of(const char *name)
{
    size_t i;
    for (i = 0; i < COUNT_OF(verdict_names); i++)
        if (strcmp(name, verdict_names[i]) == 0)
            return (int)i;
    return -1;
}

/* ------------------------------------------------------------------ lists */

static void list_free(void *object)
{
    sessile_screens *list = object;
    allocator a = list->alloc;
    size_t i;

    screens_release(list->of);
    for (i = 0; !list->of && i < list->count; i++) {
        screen *s = list->list[i];
        pattern_set_free(s->patterns);
        if (s->function.release)
            s->function.release(s->function.ref);
        mem_free(&a, s, sizeof *s);
    }
    for (i = 0; !list->of && i < list->schema_count; i++)
        schema_free(list->schemas[i].schema);
    mem_free(&a, list, sizeof *list);
}

sessile_status screens_new(sessile_screens **out, const os_table *os, const allocator *a,
                           sessile_error *err)
{
    sessile_screens *list = mem_zalloc(a, sizeof *list);
    *out = list;
    if (!list)
        return fail_nomem(err);
    counted_init(&list->references, list_free);
    list->alloc = *a;
    list->os = os;
    return SESSILE_OK;
}

sessile_status screens_new_over(sessile_screens **out, sessile_screens *of,
                                const os_table *os, const allocator *a,
                                sessile_error *err)
{
    sessile_status status = screens_new(out, os, a, err);

    if (status || !of)
        return status;
    memcpy((*out)->list, of->list, sizeof of->list);
    memcpy((*out)->schemas, of->schemas, sizeof of->schemas);
    (*out)->count = of->count;
    (*out)->schema_count = of->schema_count;
    (*out)->of = of;
    screens_retain(of);
    return SESSILE_OK;
}

void screens_retain(sessile_screens *list)
{
    counted_retain(list);
}

void screens_release(sessile_screens *list)
{
    counted_release(list);
}

const allocator *screens_allocator(const sessile_screens *list)
{
    return &list->alloc;
}

sessile_status screens_add(sessile_screens *list, const screen *s, sessile_error *err)
{
    screen *copy;
    if (list->count >= SCREENS_MOST)
        return fail(err, SESSILE_LIMIT, "a list has at most %d screens", SCREENS_MOST);
    copy = mem_alloc(&list->alloc, sizeof *copy);
    if (!copy)
        return fail_nomem(err);
    *copy = *s;
    list->list[list->count++] = copy;
    return SESSILE_OK;
}

sessile_status screens_add_schema(sessile_screens *list, sessile_screen_kind kind,
                                  const char *key, schema *s, sessile_error *err)
{
    struct screen_schema *slot = &list->schemas[list->schema_count];
    if (list->schema_count >= SCREEN_SCHEMAS)
        return fail(err, SESSILE_LIMIT, "a list has at most %d schemas", SCREEN_SCHEMAS);
    if (key && strlen(key) >= sizeof slot->key)
        return fail(err, SESSILE_LIMIT, "the key of a schema has at most %zu bytes",
                    sizeof slot->key - 1);
    slot->kind = kind;
    snprintf(slot->key, sizeof slot->key, "%s", key ? key : "");
    slot->schema = s;
    list->schema_count++;
    return SESSILE_OK;
}

void screens_set_urls(sessile_screens *list, screen_url_check check, void *arg)
{
    list->urls = check;
    list->urls_arg = arg;
}

unsigned screens_kinds(const sessile_screens *list)
{
    unsigned kinds = 0;
    size_t i;

    for (i = 0; i < list->count; i++)
        kinds |= list->list[i]->kinds;
    for (i = 0; i < list->schema_count; i++)
        kinds |= (unsigned)list->schemas[i].kind;
    return kinds;
}

int screen_has_rule(const screen *s, const char *rule)
{
    size_t i;
    for (i = 0; i < s->rule_count; i++)
        if (strcmp(s->rules[i], rule) == 0)
            return 1;
    return strcmp(s->name, rule) == 0 ||
           (s->patterns && pattern_set_find(s->patterns, rule) >= 0);
}

/* ------------------------------------------------------------------ one run */

typedef struct running {
    const sessile_screens *list;
    const sessile_screen_item *item;
    sessile_slice text; /* what is left of the item's */
    screen_result *result;
    view first; /* of the item's own text, which the URLs are in */
    sessile_slice urls[SCREEN_URLS];
    size_t url_count;
    sessile_error *err;
} running;

/* NOMEM is the caller's failure; everything else is the screen's. */
static int is_fatal(sessile_status status)
{
    return status == SESSILE_NOMEM;
}

static screen_finding *add_finding(running *r, const char *name, const char *rule,
                                   sessile_screen_verdict verdict)
{
    screen_finding *f = &r->result->findings[r->result->count++];
    memset(f, 0, sizeof *f);
    f->verdict = verdict;
    snprintf(f->screen, sizeof f->screen, "%s", name);
    snprintf(f->rule, sizeof f->rule, "%s", rule);
    if (verdict > r->result->verdict)
        r->result->verdict = verdict;
    return f;
}

static void add_failure(running *r, const char *name, sessile_screen_verdict verdict,
                        const char *message)
{
    screen_finding *f = add_finding(r, name, "failed", verdict);
    size_t size = strlen(message);
    if (size >= sizeof f->message)
        size = utf8_floor(message, size, sizeof f->message - 1);
    memcpy(f->message, message, size);
}

static const schema *schema_for(const running *r)
{
    sessile_slice key = r->item->key;
    size_t i;
    for (i = 0; i < r->list->schema_count; i++) {
        const struct screen_schema *s = &r->list->schemas[i];
        if (s->kind != r->item->kind)
            continue;
        if (s->kind == SESSILE_SCREEN_METADATA && key.size)
            continue; /* it is not the metadata, but stands beside: write_screen_fixed()
                       */
        if (s->kind != SESSILE_SCREEN_CUSTOM ||
            (strlen(s->key) == key.size && memcmp(s->key, key.data, key.size) == 0))
            return s->schema;
    }
    return NULL;
}

static sessile_status run_schema(running *r)
{
    const schema *wanted =
        r->list->schema_count && r->item->is_json ? schema_for(r) : NULL;
    schema_fault fault = {0};
    sessile_error why;
    sessile_status status;

    if (!wanted)
        return SESSILE_OK;
    status = schema_check(wanted, r->text, &fault, &why);
    if (is_fatal(status))
        return fail_nomem(r->err);
    if (status) {
        add_failure(r, "schema", SESSILE_SCREEN_REFUSE, why.message);
    } else if (fault.broken) {
        screen_finding *f = add_finding(r, "schema", "schema", SESSILE_SCREEN_REFUSE);
        snprintf(f->message, sizeof f->message, "%s", fault.message);
        snprintf(f->pointer, sizeof f->pointer, "%s", fault.pointer);
    }
    return SESSILE_OK;
}

static int is_for(const screen *s, const sessile_screen_item *item)
{
    if (!(s->kinds & (unsigned)item->kind))
        return 0;
    return item->kind != SESSILE_SCREEN_MESSAGE || !s->roles ||
           (s->roles >> item->role & 1);
}

/* 1: a function will be shown the URLs. */
static int has_reader(const running *r)
{
    size_t i;
    for (i = 0; i < r->list->count; i++)
        if (r->list->list[i]->function.run && is_for(r->list->list[i], r->item))
            return 1;
    return 0;
}

static sessile_status run_urls(running *r)
{
    screen_urls found = {.verdict = SESSILE_SCREEN_PASS};
    sessile_error why;
    sessile_status status, checked = SESSILE_OK;
    int reads = has_reader(r);

    if (!r->list->urls && !reads)
        return SESSILE_OK;
    status = view_make(&r->first, r->text, r->item->is_json, &r->list->alloc, r->err);
    if (status)
        return status;
    if (reads)
        r->url_count = url_list(r->first.text, r->urls, SCREEN_URLS);
    if (r->list->urls)
        checked = r->list->urls(r->list->urls_arg, r->item, r->first.text, &found, &why);
    if (is_fatal(checked))
        return fail_nomem(r->err);
    if (checked)
        add_failure(r, "urls", SESSILE_SCREEN_REFUSE, why.message);
    else if (found.verdict)
        add_finding(r, "urls", found.rule, found.verdict);
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ one screen */

/* The rule of an answer that names none: the first expression that matched. */
static const char *first_rule(const screen *s, const pattern_hits *hits)
{
    size_t i;
    for (i = 0; s->patterns && i < pattern_set_count(s->patterns); i++)
        if (hits->matched >> i & 1)
            return pattern_set_name(s->patterns, i);
    return s->name;
}

/* What REDACT removes when the screen does not say: what the rule's expression matched,
 * or, if the rule is no expression, what all of them did. */
static sessile_status spans_of_hits(const screen *s, const pattern_hits *hits,
                                    screen_answer *answer, sessile_error *err)
{
    int only = s->patterns ? pattern_set_find(s->patterns, answer->rule) : -1;
    sessile_status status = SESSILE_OK;
    size_t i;

    for (i = 0; !status && i < hits->count; i++)
        if (only < 0 || hits->list[i].pattern == (unsigned)only)
            status =
                view_spans_add(&answer->spans, hits->list[i].from, hits->list[i].to, err);
    return status;
}

/* Removes words, and makes what is left the text of the screens that follow. */
static sessile_status redact(running *r, const screen *s, const view *seen,
                             screen_answer *answer)
{
    screen_finding *f;
    size_t removed = 0;
    int outside = 0;
    buf left;
    sessile_status status;

    buf_init(&left, &r->list->alloc);
    status = view_remove(seen, &answer->spans, answer->rule, &left, &removed, &outside,
                         r->err);
    if (!status && (outside || !removed)) {
        f = add_finding(r, s->name, answer->rule, SESSILE_SCREEN_REFUSE);
        snprintf(f->message, sizeof f->message, "%s",
                 outside ? "what it would remove is not inside of a text"
                         : "it found no place to remove");
    } else if (!status) {
        f = add_finding(r, s->name, answer->rule, SESSILE_SCREEN_REDACT);
        f->removed = removed;
        buf_deinit(&r->result->text);
        r->result->text = left;
        r->text = (sessile_slice){left.data ? left.data : "", left.size};
        return SESSILE_OK;
    }
    buf_deinit(&left);
    return status;
}

/* Does what the answer says. */
static sessile_status apply(running *r, const screen *s, const view *seen,
                            const pattern_hits *hits, screen_answer *answer)
{
    sessile_status status = SESSILE_OK;

    if (answer->verdict == SESSILE_SCREEN_PASS)
        return SESSILE_OK;
    if (!answer->rule[0])
        snprintf(answer->rule, sizeof answer->rule, "%s", first_rule(s, hits));
    if (answer->verdict != SESSILE_SCREEN_REDACT) {
        add_finding(r, s->name, answer->rule, answer->verdict);
        return SESSILE_OK;
    }
    if (!answer->has_spans)
        status = spans_of_hits(s, hits, answer, r->err);
    return status ? status : redact(r, s, seen, answer);
}

/* Matches the expressions and runs the function. */
static sessile_status ask(const running *r, const screen *s, const view *seen,
                          pattern_hits *hits, screen_answer *answer, sessile_error *why)
{
    screen_sight sight = {.item = r->item,
                          .text = seen->text,
                          .patterns = s->patterns,
                          .hits = hits,
                          .urls = r->urls,
                          .url_count = r->url_count};
    sessile_status status = SESSILE_OK;

    if (s->patterns)
        status = pattern_set_match(s->patterns, seen->text, 1, r->list->os, hits, why);
    if (status || (!hits->matched && !s->always))
        return status;
    if (!s->function.run) {
        answer->verdict = s->action;
        return SESSILE_OK;
    }
    return s->function.run(s->function.ref, &sight, answer, why);
}

static sessile_status run_screen(running *r, const screen *s)
{
    screen_answer answer = {.verdict = SESSILE_SCREEN_PASS};
    sessile_error why;
    pattern_hits hits;
    sessile_status status;
    view seen;

    pattern_hits_init(&hits, &r->list->alloc);
    view_spans_init(&answer.spans, &r->list->alloc);
    status = view_make(&seen, r->text, r->item->is_json, &r->list->alloc, r->err);
    if (!status) {
        sessile_status asked = ask(r, s, &seen, &hits, &answer, &why);
        if (is_fatal(asked))
            status = fail_nomem(r->err);
        else if (asked)
            add_failure(r, s->name, s->on_error, why.message);
        else if (answer.rule[0] && !screen_has_rule(s, answer.rule))
            add_failure(r, s->name, s->on_error,
                        "it names a rule that its file does not declare");
        else
            status = apply(r, s, &seen, &hits, &answer);
    }
    view_deinit(&seen);
    view_spans_deinit(&answer.spans);
    pattern_hits_deinit(&hits);
    return status;
}

sessile_status screens_run(const sessile_screens *list, const sessile_screen_item *item,
                           screen_result *result, sessile_error *err)
{
    running r = {.list = list, .item = item, .text = item->text, .result = result};
    sessile_status status;
    size_t i;

    result->verdict = SESSILE_SCREEN_PASS;
    result->count = 0;
    buf_init(&result->text, list ? &list->alloc : &allocator_default);
    if (!list)
        return SESSILE_OK;
    r.err = err;
    buf_init(&r.first.decoded, &list->alloc);
    if (!r.text.data)
        r.text.data = "";
    if (!utf8_valid(r.text.data, r.text.size)) /* nothing was allocated yet */
        return fail(err, SESSILE_INVALID, "a text that is screened is UTF-8");
    status = run_schema(&r);
    if (!status && result->verdict < SESSILE_SCREEN_REFUSE)
        status = run_urls(&r);
    for (i = 0; !status && result->verdict < SESSILE_SCREEN_REFUSE && i < list->count;
         i++)
        if (is_for(list->list[i], item))
            status = run_screen(&r, list->list[i]);
    view_deinit(&r.first);
    return status;
}

void screen_result_deinit(screen_result *result)
{
    buf_deinit(&result->text);
}

/* ------------------------------------------------------------------ results */

sessile_status screen_refusal(const screen_result *result, sessile_error *err)
{
    const screen_finding *f = result->count ? &result->findings[result->count - 1] : NULL;
    const char *space;

    if (result->verdict != SESSILE_SCREEN_REFUSE)
        return SESSILE_OK;
    space = f->message[0] ? ": " : "";
    if (strcmp(f->screen, "schema") == 0)
        return fail_rule(
            err, SESSILE_DENIED, f->rule,
            "the schema refuses it at '%s'%s%s: correct it, and write it again",
            f->pointer, space, f->message);
    if (strcmp(f->screen, "urls") == 0 && !f->message[0])
        return fail_rule(err, SESSILE_DENIED, f->rule,
                         "it has a URL that is refused [%s]: leave the URL out, or allow "
                         "its host",
                         f->rule);
    return fail_rule(err, SESSILE_DENIED, f->rule,
                     "the screen %s refuses it by its rule %s%s%s: nothing was written",
                     f->screen, f->rule, space, f->message);
}

#define LABEL_PREFIX "screen:"

int screen_label(const screen_finding *finding, char out[SCREEN_LABEL])
{
    if (finding->verdict != SESSILE_SCREEN_FLAG)
        return 0;
    snprintf(out, SCREEN_LABEL, LABEL_PREFIX "%s", finding->rule);
    return 1;
}

int screen_is_label(sessile_slice name)
{
    const size_t size = sizeof LABEL_PREFIX - 1;

    return name.size >= size && !memcmp(name.data, LABEL_PREFIX, size);
}
