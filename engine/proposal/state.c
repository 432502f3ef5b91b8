/*
 * state.c: the life of a state.
 *
 * Owns the lists of a pipeline: the first one, the one that a hook is given, and the next
 * one, built from the hook's edits when it ends. Must never change the list that a hook
 * was given, and must never judge edits: context/laws.c does.
 *
 * Most turns change nothing, or remove a few messages of a thousand. So a hook that edits
 * nothing costs nothing, the first hook is given the first list itself, and the next list
 * is built in memory that is used again.
 */
#include "proposal/internal.h"

#include <string.h>

#include "base/error.h"

/* ------------------------------------------------------------------ beginning and end */

static void state_list_init(state_list *l, const allocator *a)
{
    context_init(&l->c, a);
    pairing_init(&l->pairs, a);
}

static void state_list_deinit(state_list *l, const allocator *a)
{
    context_deinit(&l->c);
    pairing_deinit(&l->pairs);
    mem_free(a, l->origin, l->origin_capacity * sizeof *l->origin);
}

/* One mark for each item of a list that is to be given; new ones say nothing. */
static int grow_marks(sessile_state *s, size_t count)
{
    size_t was = s->edits.mark_capacity;
    if (mem_grow(s->alloc, (void **)&s->edits.marks, &s->edits.mark_capacity, count,
                 sizeof *s->edits.marks))
        return -1;
    if (s->edits.mark_capacity > was)
        memset(s->edits.marks + was, 0,
               (s->edits.mark_capacity - was) * sizeof *s->edits.marks);
    return 0;
}

/* Gives a list whose marks have room. */
static void give_list(sessile_state *s, state_list *list, int64_t tokens)
{
    if (s->edits.marked && s->edits.mark_capacity)
        memset(s->edits.marks, 0, s->edits.mark_capacity * sizeof *s->edits.marks);
    s->edits.marked = 0;
    s->edits.insert_count = 0;
    s->edits.is_built = 0;
    s->given = list;
    s->edits.tokens = tokens;
    s->edits.left = list->c.count;
}

static void init(sessile_state *s, const state_setup *setup)
{
    const allocator *a = setup->alloc;
    size_t i;

    s->alloc = a;
    s->limits.window = setup->window;
    s->limits.reserve = setup->reserve;
    s->limits.made_ratio = setup->made_ratio;
    s->limits.floor = setup->floor;
    s->limits.result = setup->result_limit;
    s->limits.vars = setup->vars_limit;
    s->limits.depth = setup->depth;
    s->reader.read = setup->read;
    s->reader.arg = setup->read_arg;
    for (i = 0; i < STATE_LISTS; i++)
        state_list_init(&s->lists[i], a);
    finder_init(&s->reader.find, &s->lists[0].c, a);
    facts_init(&s->labels, a);
    map_init(&s->scratch.names, a);
    buf_init(&s->vars.given, a);
    buf_init(&s->vars.set, a);
    buf_init(&s->scratch.checked, a);
    buf_init(&s->scratch.work, a);
}

static int copy_labels(sessile_state *s, const facts *from)
{
    for (size_t i = 0; from && i < from->count; i++)
        if (facts_add(&s->labels, FACT_LABEL, from->at[i].entry, from->at[i].about,
                      fact_name(from, &from->at[i]), from->at[i].name_size, 0))
            return -1;
    return 0;
}

sessile_status state_new(sessile_state **out, const state_setup *setup,
                         sessile_error *err)
{
    sessile_state *s;
    state_list *first;

    *out = NULL;
    s = mem_zalloc(setup->alloc, sizeof *s);
    if (!s)
        return fail_nomem(err);
    init(s, setup);
    first = &s->lists[0];
    if (context_copy(&first->c, setup->context) ||
        pairing_make(&first->pairs, &first->c) || grow_marks(s, first->c.count) ||
        copy_labels(s, setup->labels))
        goto nomem;
    if (setup->fit)
        meter_scale_context(&first->c, setup->fit);
    first->has_pairs = 1;
    buf_puts(&s->vars.given, "{}");
    if (s->vars.given.failed)
        goto nomem;
    first->previous = setup->previous < first->c.count ? setup->previous : first->c.count;
    give_list(s, first, context_tokens(&first->c));
    *out = s;
    return SESSILE_OK;

nomem:
    state_free(s);
    return fail_nomem(err);
}

void state_free(sessile_state *s)
{
    const allocator *a;
    size_t i;

    if (!s)
        return;
    a = s->alloc;
    inserted_truncate(s, 0);
    if (s->reader.texts) {
        for (i = 0; i < s->lists[0].c.count; i++)
            mem_free(a, s->reader.texts[i].data, s->reader.texts[i].capacity);
        mem_free(a, s->reader.texts, s->lists[0].c.count * sizeof *s->reader.texts);
    }
    finder_deinit(&s->reader.find);
    facts_deinit(&s->labels);
    for (i = 0; i < STATE_LISTS; i++)
        state_list_deinit(&s->lists[i], a);
    map_deinit(&s->scratch.names);
    buf_deinit(&s->vars.given);
    buf_deinit(&s->vars.set);
    buf_deinit(&s->scratch.checked);
    buf_deinit(&s->scratch.work);
    mem_free(a, s->edits.marks, s->edits.mark_capacity * sizeof *s->edits.marks);
    mem_free(a, s->edits.inserts, s->edits.insert_capacity * sizeof *s->edits.inserts);
    mem_free(a, s->edits.built, s->edits.built_capacity * sizeof *s->edits.built);
    mem_free(a, s->made.at, s->made.capacity * sizeof *s->made.at);
    mem_free(a, s->made.from, s->made.from_capacity * sizeof *s->made.from);
    mem_free(a, s->scratch.links, s->scratch.link_capacity * sizeof *s->scratch.links);
    mem_free(a, s->scratch.stands, s->scratch.stand_capacity * sizeof *s->scratch.stands);
    mem_free(a, s->scratch.strange,
             s->scratch.strange_capacity * sizeof *s->scratch.strange);
    mem_free(a, s, sizeof *s);
}

/* ------------------------------------------------------------------ hooks */

static void forget_hook(sessile_state *s)
{
    s->vars.has = 0;
    if (!s->edits.marked && s->edits.insert_count == 0 && !s->edits.is_built)
        return;
    inserted_truncate(s, s->made.before);
    give_list(s, s->given, context_tokens(&s->given->c));
}

sessile_status state_hook_begin(sessile_state *s, const char *vars, size_t vars_size,
                                sessile_error *err)
{
    forget_hook(s);
    if (!s->given->has_pairs && pairing_make(&s->given->pairs, &s->given->c))
        return fail_nomem(err);
    s->given->has_pairs = 1;
    s->made.before = s->made.count;
    buf_clear(&s->vars.given);
    if (vars_size)
        buf_put(&s->vars.given, vars, vars_size);
    else
        buf_puts(&s->vars.given, "{}");
    if (s->vars.given.failed)
        return fail_nomem(err);
    journal_begin(s, vars, vars_size);
    return SESSILE_OK;
}

void state_hook_drop(sessile_state *s)
{
    forget_hook(s);
    journal_forget(s);
}

/* ------------------------------------------------------------------ the next list */

static state_list *free_list(sessile_state *s)
{
    size_t i = 1;
    while (&s->lists[i] == s->given || &s->lists[i] == s->marked)
        i++;
    return &s->lists[i]; /* two of three at most are taken */
}

/* Room for everything that the next list can hold, so that adding to it cannot fail. */
static int reserve_next(sessile_state *s, state_list *next)
{
    context *c = &next->c;
    size_t links = s->given->c.link_count, i;

    for (i = s->made.before; i < s->made.count; i++)
        links += s->made.at[i].columns.link_count;
    if (s->edits.left >= UINT32_MAX - 1 || links >= UINT32_MAX - 1)
        return -1;
    context_clear(c);
    c->upto = s->given->c.upto;
    next->previous = 0;
    next->has_pairs = 0;
    return mem_grow(s->alloc, (void **)&c->items, &c->capacity, s->edits.left,
                    sizeof *c->items) ||
                   mem_grow(s->alloc, (void **)&c->links, &c->link_capacity, links,
                            sizeof *c->links) ||
                   mem_grow(s->alloc, (void **)&next->origin, &next->origin_capacity,
                            s->edits.left, sizeof *next->origin)
               ? -1
               : 0;
}

static void append_item(state_list *to, const item *it, const message_link *links,
                        uint32_t origin)
{
    context *c = &to->c;
    item *added = &c->items[c->count];

    *added = *it;
    added->link = (uint32_t)c->link_count;
    if (it->link_count)
        memcpy(c->links + c->link_count, links, it->link_count * sizeof *links);
    c->link_count += it->link_count;
    to->origin[c->count++] = origin;
}

static void add_given(sessile_state *s, state_list *to, size_t i)
{
    const item *it = given_item(s, i);
    append_item(to, it, s->given->c.links + it->link, origin_of(s, i));
}

static void add_inserted(sessile_state *s, state_list *to, uint32_t number)
{
    const inserted_message *w = inserted_of(s, number);
    append_item(to, &w->columns, w->links, ORIGIN_NONE);
}

/* Inserts in the order of their places; those at one place in the order they were made.
 * Linear, since a script may make very many of them in any order. */
static int sort_inserts(sessile_state *s)
{
    size_t places = s->given->c.count + 2, i, at;
    size_t size = places * sizeof(size_t), sorted_size;
    size_t *starts;
    insertion *sorted;

    for (i = 1; i < s->edits.insert_count; i++)
        if (s->edits.inserts[i].at < s->edits.inserts[i - 1].at)
            break;
    if (i >= s->edits.insert_count)
        return 0;
    sorted_size = s->edits.insert_capacity * sizeof *sorted;
    starts = mem_zalloc(s->alloc, size);
    sorted = mem_alloc(s->alloc, sorted_size);
    if (!starts || !sorted) {
        mem_free(s->alloc, starts, size);
        mem_free(s->alloc, sorted, sorted_size);
        return -1;
    }
    for (i = 0; i < s->edits.insert_count; i++)
        starts[s->edits.inserts[i].at + 1]++;
    for (at = 1; at < places; at++)
        starts[at] += starts[at - 1];
    for (i = 0; i < s->edits.insert_count; i++)
        sorted[starts[s->edits.inserts[i].at]++] = s->edits.inserts[i];
    mem_free(s->alloc, starts, size);
    mem_free(s->alloc, s->edits.inserts, sorted_size);
    s->edits.inserts = sorted;
    return 0;
}

/* The list by marks and inserts. */
static int make_edited(sessile_state *s, state_list *next)
{
    size_t count = s->given->c.count, k = 0, i;

    if (sort_inserts(s))
        return -1;
    for (i = 0; i <= count; i++) {
        uint32_t mark;
        if (i == s->given->previous)
            next->previous = next->c.count;
        while (k < s->edits.insert_count && s->edits.inserts[k].at == i)
            add_inserted(s, next, s->edits.inserts[k++].number);
        if (i == count)
            break;
        mark = s->edits.marks[i];
        if (mark == MARK_NONE)
            add_given(s, next, i);
        else if (mark_is_inserted(mark))
            add_inserted(s, next, mark);
    }
    if (s->given->previous == count)
        next->previous = next->c.count;
    return 0;
}

/* The list as it was built by hand. */
static void make_built(sessile_state *s, state_list *next)
{
    size_t i;
    for (i = 0; i < s->edits.built_count; i++) {
        if (s->edits.built[i].index == ORIGIN_NONE) {
            add_inserted(s, next, s->edits.built[i].number);
            continue;
        }
        add_given(s, next, s->edits.built[i].index);
        if (s->edits.built[i].index < s->given->previous)
            next->previous = next->c.count;
    }
    if (s->given->previous == s->given->c.count)
        next->previous = next->c.count;
}

static int differs(const sessile_state *s)
{
    size_t i;
    if (!s->edits.is_built)
        return s->edits.marked || s->edits.insert_count;
    if (s->edits.built_count != s->given->c.count)
        return 1;
    for (i = 0; i < s->edits.built_count; i++)
        if (s->edits.built[i].index != i)
            return 1;
    return 0;
}

sessile_status state_hook_end(sessile_state *s, int *changed, int *vars_changed,
                              sessile_error *err)
{
    state_list *next;

    *changed = 0;
    *vars_changed = s->vars.has &&
                    (s->vars.set.size != s->vars.given.size ||
                     memcmp(s->vars.set.data, s->vars.given.data, s->vars.set.size) != 0);
    if (!differs(s)) {
        give_list(s, s->given, s->edits.tokens);
        journal_end(s);
        return SESSILE_OK;
    }
    next = free_list(s);
    if (reserve_next(s, next))
        goto nomem;
    if (s->edits.is_built)
        make_built(s, next);
    else if (make_edited(s, next))
        goto nomem;
    if (grow_marks(s, next->c.count))
        goto nomem;
    give_list(s, next, s->edits.tokens);
    *changed = 1;
    journal_end(s);
    return SESSILE_OK;

nomem:
    *vars_changed = 0;
    return fail_nomem(err);
}

/* ------------------------------------------------------------------ for the pipeline */

const context *state_before(const sessile_state *s)
{
    return &s->lists[0].c;
}

const context *state_after(const sessile_state *s)
{
    return &s->given->c;
}

sessile_status state_mark(sessile_state *s, sessile_error *err)
{
    (void)err;
    s->marked = s->given;
    s->made.at_mark = s->made.count;
    journal_mark(s);
    return SESSILE_OK;
}

sessile_status state_rewind(sessile_state *s, sessile_error *err)
{
    if (!s->marked)
        return fail(err, SESSILE_INVALID, "no list was marked to go back to");
    inserted_truncate(s, s->made.at_mark);
    s->made.before = s->made.count;
    s->vars.has = 0;
    give_list(s, s->marked, context_tokens(&s->marked->c));
    s->marked = NULL;
    journal_rewind(s);
    return SESSILE_OK;
}

sessile_status state_laws(sessile_state *s, laws_input *out, sessile_error *err)
{
    (void)err;
    memset(out, 0, sizeof *out);
    out->before = &s->lists[0].c;
    out->after = &s->given->c;
    out->before_pairs = &s->lists[0].pairs;
    out->inserted = s->made.at;
    out->inserted_count = s->made.count;
    out->window = s->limits.window;
    out->reserve = s->limits.reserve;
    out->floor = s->limits.floor;
    out->result_limit = s->limits.result;
    return SESSILE_OK;
}
