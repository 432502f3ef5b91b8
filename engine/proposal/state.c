/*
 * state.c: the life of a proposal in the making.
 *
 * Owns the lists of a pipeline: the one it began with, the one that a hook is given, and
 * the next, built from the hook's edits when it ends. Must never change the list that a
 * hook was given, and must never judge: what comes out is laws.c's business.
 *
 * The usual turn changes nothing or takes a few messages out, over a thousand. So a hook
 * that edits nothing costs nothing here, the list that the pipeline began with is given
 * to the first hook as it is, and the next list is built in memory that is used again.
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
    size_t was = s->mark_capacity;
    if (mem_grow(s->alloc, (void **)&s->marks, &s->mark_capacity, count,
                 sizeof *s->marks))
        return -1;
    if (s->mark_capacity > was)
        memset(s->marks + was, 0, (s->mark_capacity - was) * sizeof *s->marks);
    return 0;
}

/* Gives a list whose marks have room. */
static void give(sessile_state *s, state_list *list, int64_t tokens)
{
    if (s->edited && s->mark_capacity)
        memset(s->marks, 0, s->mark_capacity * sizeof *s->marks);
    s->edited = 0;
    s->insert_count = 0;
    s->is_built = 0;
    s->given = list;
    s->tokens = tokens;
    s->left = list->c.count;
}

static void init(sessile_state *s, const state_setup *setup)
{
    const allocator *a = setup->alloc;
    size_t i;

    s->alloc = a;
    s->window = setup->window;
    s->reserve = setup->reserve;
    s->made_ratio = setup->made_ratio;
    s->floor = setup->floor;
    s->result_limit = setup->result_limit;
    s->vars_limit = setup->vars_limit;
    s->depth = setup->depth;
    s->read = setup->read;
    s->read_arg = setup->read_arg;
    for (i = 0; i < STATE_LISTS; i++)
        state_list_init(&s->lists[i], a);
    finder_init(&s->find, &s->lists[0].c, a);
    facts_init(&s->labels, a);
    map_init(&s->names, a);
    buf_init(&s->vars_given, a);
    buf_init(&s->vars_set, a);
    buf_init(&s->checked, a);
    buf_init(&s->work, a);
}

static int copy_labels(sessile_state *s, const facts *from)
{
    for (size_t i = 0; from && i < from->count; i++)
        if (facts_add(&s->labels, FACT_LABEL, from->at[i].entry, from->at[i].about,
                      fact_name(from, &from->at[i]), from->at[i].name_size, 0))
            return -1;
    return 0;
}

static token_count scale_made(const sessile_state *s, int64_t tokens)
{
    meter_ratio r = {.ratio = s->made_ratio};

    return r.ratio ? (token_count){meter_scale(tokens, &r), TOKENS_FITTED}
                   : (token_count){tokens, TOKENS_ESTIMATE};
}

token_count state_count_text(const sessile_state *s, const char *text, size_t size)
{
    return scale_made(s, tokens_of_text(text, size));
}

token_count state_count_message(const sessile_state *s, const message *m)
{
    return scale_made(s, tokens_of_message(m));
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
    if (context_copy(&first->c, setup->context) || pairing_of(&first->pairs, &first->c) ||
        grow_marks(s, first->c.count) || copy_labels(s, setup->labels))
        goto nomem;
    if (setup->fit)
        meter_scale_context(&first->c, setup->fit);
    first->has_pairs = 1;
    buf_puts(&s->vars_given, "{}");
    if (s->vars_given.failed)
        goto nomem;
    first->previous = setup->previous < first->c.count ? setup->previous : first->c.count;
    give(s, first, context_tokens(&first->c));
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
    puts_cut(s, 0);
    if (s->texts) {
        for (i = 0; i < s->lists[0].c.count; i++)
            mem_free(a, s->texts[i].data, s->texts[i].capacity);
        mem_free(a, s->texts, s->lists[0].c.count * sizeof *s->texts);
    }
    finder_deinit(&s->find);
    facts_deinit(&s->labels);
    for (i = 0; i < STATE_LISTS; i++)
        state_list_deinit(&s->lists[i], a);
    map_deinit(&s->names);
    buf_deinit(&s->vars_given);
    buf_deinit(&s->vars_set);
    buf_deinit(&s->checked);
    buf_deinit(&s->work);
    mem_free(a, s->marks, s->mark_capacity * sizeof *s->marks);
    mem_free(a, s->inserts, s->insert_capacity * sizeof *s->inserts);
    mem_free(a, s->built, s->built_capacity * sizeof *s->built);
    mem_free(a, s->puts, s->put_capacity * sizeof *s->puts);
    mem_free(a, s->put_from, s->from_capacity * sizeof *s->put_from);
    mem_free(a, s->links, s->link_capacity * sizeof *s->links);
    mem_free(a, s->stands, s->stand_capacity * sizeof *s->stands);
    mem_free(a, s->strange, s->strange_capacity * sizeof *s->strange);
    mem_free(a, s, sizeof *s);
}

/* ------------------------------------------------------------------ hooks */

static void forget_hook(sessile_state *s)
{
    s->has_vars = 0;
    if (!s->edited && s->insert_count == 0 && !s->is_built)
        return;
    puts_cut(s, s->puts_before);
    give(s, s->given, context_tokens(&s->given->c));
}

sessile_status state_hook_begin(sessile_state *s, const char *vars, size_t vars_size,
                                sessile_error *err)
{
    forget_hook(s);
    if (!s->given->has_pairs && pairing_of(&s->given->pairs, &s->given->c))
        return fail_nomem(err);
    s->given->has_pairs = 1;
    s->puts_before = s->put_count;
    buf_clear(&s->vars_given);
    if (vars_size)
        buf_put(&s->vars_given, vars, vars_size);
    else
        buf_puts(&s->vars_given, "{}");
    if (s->vars_given.failed)
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

    for (i = s->puts_before; i < s->put_count; i++)
        links += s->puts[i].columns.link_count;
    if (s->left >= UINT32_MAX - 1 || links >= UINT32_MAX - 1)
        return -1;
    context_clear(c);
    c->upto = s->given->c.upto;
    next->previous = 0;
    next->has_pairs = 0;
    return mem_grow(s->alloc, (void **)&c->items, &c->capacity, s->left,
                    sizeof *c->items) ||
                   mem_grow(s->alloc, (void **)&c->links, &c->link_capacity, links,
                            sizeof *c->links) ||
                   mem_grow(s->alloc, (void **)&next->origin, &next->origin_capacity,
                            s->left, sizeof *next->origin)
               ? -1
               : 0;
}

static void add(state_list *to, const item *it, const message_link *links,
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
    add(to, it, s->given->c.links + it->link, origin_of(s, i));
}

static void add_put(sessile_state *s, state_list *to, uint32_t number)
{
    const put *w = put_of(s, number);
    add(to, &w->columns, w->links, ORIGIN_NONE);
}

/* Inserts in the order of their places; those at one place in the order they were made.
 * Linear, since a script may make very many of them in any order. */
static int sort_inserts(sessile_state *s)
{
    size_t places = s->given->c.count + 2, i, at;
    size_t size = places * sizeof(size_t), sorted_size;
    size_t *starts;
    insertion *sorted;

    for (i = 1; i < s->insert_count; i++)
        if (s->inserts[i].at < s->inserts[i - 1].at)
            break;
    if (i >= s->insert_count)
        return 0;
    sorted_size = s->insert_capacity * sizeof *sorted;
    starts = mem_zalloc(s->alloc, size);
    sorted = mem_alloc(s->alloc, sorted_size);
    if (!starts || !sorted) {
        mem_free(s->alloc, starts, size);
        mem_free(s->alloc, sorted, sorted_size);
        return -1;
    }
    for (i = 0; i < s->insert_count; i++)
        starts[s->inserts[i].at + 1]++;
    for (at = 1; at < places; at++)
        starts[at] += starts[at - 1];
    for (i = 0; i < s->insert_count; i++)
        sorted[starts[s->inserts[i].at]++] = s->inserts[i];
    mem_free(s->alloc, starts, size);
    mem_free(s->alloc, s->inserts, sorted_size);
    s->inserts = sorted;
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
        while (k < s->insert_count && s->inserts[k].at == i)
            add_put(s, next, s->inserts[k++].number);
        if (i == count)
            break;
        mark = s->marks[i];
        if (mark == MARK_NONE)
            add_given(s, next, i);
        else if (mark_is_put(mark))
            add_put(s, next, mark);
    }
    if (s->given->previous == count)
        next->previous = next->c.count;
    return 0;
}

/* The list as it was built by hand. */
static void make_built(sessile_state *s, state_list *next)
{
    size_t i;
    for (i = 0; i < s->built_count; i++) {
        if (s->built[i].index == ORIGIN_NONE) {
            add_put(s, next, s->built[i].number);
            continue;
        }
        add_given(s, next, s->built[i].index);
        if (s->built[i].index < s->given->previous)
            next->previous = next->c.count;
    }
    if (s->given->previous == s->given->c.count)
        next->previous = next->c.count;
}

static int differs(const sessile_state *s)
{
    size_t i;
    if (!s->is_built)
        return s->edited || s->insert_count;
    if (s->built_count != s->given->c.count)
        return 1;
    for (i = 0; i < s->built_count; i++)
        if (s->built[i].index != i)
            return 1;
    return 0;
}

sessile_status state_hook_end(sessile_state *s, int *changed, int *vars_changed,
                              sessile_error *err)
{
    state_list *next;

    *changed = 0;
    *vars_changed = s->has_vars &&
                    (s->vars_set.size != s->vars_given.size ||
                     memcmp(s->vars_set.data, s->vars_given.data, s->vars_set.size) != 0);
    if (!differs(s)) {
        give(s, s->given, s->tokens);
        journal_end(s);
        return SESSILE_OK;
    }
    next = free_list(s);
    if (reserve_next(s, next))
        goto nomem;
    if (s->is_built)
        make_built(s, next);
    else if (make_edited(s, next))
        goto nomem;
    if (grow_marks(s, next->c.count))
        goto nomem;
    give(s, next, s->tokens);
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
    s->puts_at_mark = s->put_count;
    journal_mark(s);
    return SESSILE_OK;
}

sessile_status state_rewind(sessile_state *s, sessile_error *err)
{
    if (!s->marked)
        return fail(err, SESSILE_INVALID, "no list was marked to go back to");
    puts_cut(s, s->puts_at_mark);
    s->puts_before = s->put_count;
    s->has_vars = 0;
    give(s, s->marked, context_tokens(&s->marked->c));
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
    out->puts = s->puts;
    out->put_count = s->put_count;
    out->window = s->window;
    out->reserve = s->reserve;
    out->floor = s->floor;
    out->result_limit = s->result_limit;
    return SESSILE_OK;
}
