/*
 * edit.c: the edits of a hook: drop, replace, insert, rebuild, vars.
 *
 * Owns which edits are possible. An edit that is out of range or malformed is INVALID
 * and changes nothing; whether an edit is lawful is judged when the hook ends. Must
 * never move an index: an edit is recorded beside the list.
 */
#include "proposal/internal.h"

#include <string.h>

#include "base/error.h"

sessile_status state_check_unbuilt(const sessile_state *s, sessile_error *err)
{
    if (!s->edits.is_built)
        return SESSILE_OK;
    return fail(err, SESSILE_INVALID,
                "the list was built by hand: edit before that, or "
                "build it again");
}

static sessile_status check_range(const sessile_state *s, size_t first, size_t last,
                                  sessile_error *err)
{
    sessile_status status = state_check_index(s, first, err);
    if (!status)
        status = state_check_index(s, last, err);
    if (!status && first > last)
        status = fail(err, SESSILE_INVALID, "the range %zu to %zu goes backwards", first,
                      last);
    return status;
}

/* ------------------------------------------------------------------ drop */

void state_mark_removed(sessile_state *s, size_t i, uint32_t mark)
{
    uint32_t was = s->edits.marks[i];
    if (was == MARK_COVERED || (was == MARK_DROPPED && mark == MARK_DROPPED))
        return;
    s->edits.tokens -= tokens_now(s, i);
    s->edits.left -= was != MARK_DROPPED;
    if (mark_is_inserted(was))
        inserted_clear(s, was);
    s->edits.marks[i] = mark;
    s->edits.marked = 1;
}

sessile_status state_drop(sessile_state *s, size_t first, size_t last, sessile_error *err)
{
    size_t i;
    sessile_status status = state_check_unbuilt(s, err);

    if (!status)
        status = check_range(s, first, last, err);
    if (status)
        return status;
    for (i = first; i <= last; i++)
        state_mark_removed(s, i, MARK_DROPPED);
    journal_drop(s, first, last);
    error_clear(err);
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ replace */

/* A put that replaces given item i: it stands for what that item stands for. */
static sessile_status replace_new(sessile_state *s, size_t i, const message *m,
                                  sessile_error *err)
{
    const item *it = given_item(s, i);
    uint32_t number, origin = origin_of(s, i);
    sessile_key *covers = NULL, *replaces = NULL;
    size_t cover_count = 0, replace_count = 1;
    const inserted_message *was = NULL;
    sessile_status status = inserted_new(s, m, it->turn, &number, err);

    if (status)
        return status;
    if (origin == ORIGIN_NONE) {
        was = inserted_of(s, it->key.n);
        cover_count = was->cover_count;
        replace_count = was->replace_count;
    }
    if (cover_count)
        covers = mem_alloc(s->alloc, cover_count * sizeof *covers);
    if (replace_count)
        replaces = mem_alloc(s->alloc, replace_count * sizeof *replaces);
    if ((cover_count && !covers) || (replace_count && !replaces))
        goto nomem;
    if (cover_count)
        memcpy(covers, was->covers, cover_count * sizeof *covers);
    if (was && replace_count)
        memcpy(replaces, was->replaces, replace_count * sizeof *replaces);
    else if (replace_count)
        replaces[0] = it->key;
    if (inserted_set_covered(s, number, covers, cover_count, replaces, replace_count))
        goto nomem;
    s->edits.tokens += (int64_t)inserted_of(s, number)->columns.tokens - it->tokens;
    s->edits.marks[i] = number;
    s->edits.marked = 1;
    return SESSILE_OK;

nomem:
    mem_free(s->alloc, covers, cover_count * sizeof *covers);
    mem_free(s->alloc, replaces, replace_count * sizeof *replaces);
    inserted_truncate(s, s->made.count - 1);
    return fail_nomem(err);
}

/*
 * Members of `fields` take the place of the message's own, in its order; those it does
 * not have come last; everything else stays byte for byte. "content" over a message whose
 * calls or results are blocks of its content: see put_content() in merge.c.
 */
sessile_status state_replace(sessile_state *s, size_t i, sessile_slice fields,
                             sessile_error *err)
{
    sessile_slice base;
    message m;
    uint32_t mark;
    int64_t tokens;
    sessile_status status = state_check_unbuilt(s, err);

    if (!status)
        status = state_check_index(s, i, err);
    if (status)
        return status;
    mark = s->edits.marks[i];
    if (is_gone(s, i))
        return fail(err, SESSILE_INVALID,
                    "message %zu was dropped: it cannot be replaced", i);
    if (mark_is_inserted(mark)) {
        base.data = inserted_of(s, mark)->json;
        base.size = inserted_of(s, mark)->size;
    } else {
        status = state_json(s, i, &base, err);
    }
    if (!status)
        status = inserted_merge(s, base, fields, err);
    if (!status)
        status = inserted_read(s, &m, err);
    if (status)
        return status;
    if (!inserted_same_links(s, i))
        return fail(err, SESSILE_INVALID,
                    "replacing message %zu must keep its calls and "
                    "results: give text for \"content\", or blocks with the same ids",
                    i);
    if (!mark_is_inserted(mark)) {
        status = replace_new(s, i, &m, err);
    } else {
        tokens = tokens_now(s, i);
        status = inserted_set_text(s, &m, mark, err);
        s->edits.tokens += tokens_now(s, i) - tokens;
    }
    if (!status) {
        journal_replace(s, i, fields);
        error_clear(err);
    }
    return status;
}

/* ------------------------------------------------------------------ insert */

static sessile_status check_covered(const sessile_state *s, size_t first, size_t last,
                                    sessile_error *err)
{
    size_t i;
    for (i = first; i <= last; i++) {
        if (s->edits.marks[i] == MARK_COVERED)
            return fail(err, SESSILE_INVALID,
                        "message %zu is covered by another new "
                        "message already",
                        i);
    }
    return SESSILE_OK;
}

static int stand_for_range(sessile_state *s, size_t first, size_t last)
{
    size_t i;
    for (i = first; i <= last; i++)
        if (covered_add_item(s, i))
            return -1;
    return 0;
}

sessile_status state_insert(sessile_state *s, size_t i, sessile_slice text,
                            int has_covers, size_t cover_first, size_t cover_last,
                            sessile_error *err)
{
    sessile_key *covers = NULL;
    size_t cover_count = 0, k;
    uint32_t number, turn;
    message m;
    sessile_status status = state_check_unbuilt(s, err);

    if (!status && i > s->given->c.count)
        status = fail(err, SESSILE_INVALID,
                      "nothing can be inserted before message %zu: the "
                      "state has %zu",
                      i, s->given->c.count);
    if (!status && has_covers)
        status = check_range(s, cover_first, cover_last, err);
    if (!status && has_covers)
        status = check_covered(s, cover_first, cover_last, err);
    if (!status)
        status = inserted_complete(s, text, SESSILE_USER, has_covers ? "summary" : "note",
                                   NULL, NULL, err);
    if (!status)
        status = inserted_read(s, &m, err);
    if (status)
        return status;

    covered_clear(s);
    if ((has_covers && stand_for_range(s, cover_first, cover_last)) ||
        mem_grow(s->alloc, (void **)&s->edits.inserts, &s->edits.insert_capacity,
                 s->edits.insert_count + 1, sizeof *s->edits.inserts))
        return fail_nomem(err);
    turn = covered_turn(s, i > 0 ? given_item(s, i - 1)->turn : 0);
    status = inserted_new(s, &m, turn, &number, err);
    if (status)
        return status;
    if (covered_keys(s, &covers, &cover_count) ||
        inserted_set_covered(s, number, covers, cover_count, NULL, 0)) {
        mem_free(s->alloc, covers, cover_count * sizeof *covers);
        inserted_truncate(s, s->made.count - 1);
        return fail_nomem(err);
    }
    s->edits.inserts[s->edits.insert_count].at = (uint32_t)i;
    s->edits.inserts[s->edits.insert_count++].number = number;
    s->edits.tokens += inserted_of(s, number)->columns.tokens;
    s->edits.left++;
    for (k = cover_first; has_covers && k <= cover_last; k++)
        state_mark_removed(s, k, MARK_COVERED);
    journal_insert(s, i, text, has_covers, cover_first, cover_last);
    error_clear(err);
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ rebuild */

/* The keys that a hand-built message names, as keys of the first list. */
static int keys_of(sessile_state *s, const sessile_key *named, size_t named_count,
                   sessile_key **out, size_t *count)
{
    size_t k;
    for (k = 0; k < named_count; k++)
        if (covered_add_key(s, named[k]))
            return -1;
    return covered_keys(s, out, count);
}

/* A new message that replaces exactly one is what that one was, in other words: it has
 * its role, and nothing is added to its metadata. */
static sessile_status complete_built(sessile_state *s, const sessile_state_item *given,
                                     sessile_key *name, int *has_name, sessile_error *err)
{
    sessile_role role = SESSILE_USER;
    const char *kind = given->cover_count || given->replace_count ? "summary" : "note";

    if (given->replace_count == 1 && given->cover_count == 0) {
        size_t at;
        sessile_key key = given->replaces[0];
        int found = 0;
        if (key_is_own(key) && key.n >= 1 && key.n <= s->made.before)
            role = (sessile_role)inserted_of(s, key.n)->columns.role;
        else
            found = finder_find(&s->reader.find, key, &at);
        if (found < 0)
            return fail_nomem(err);
        if (found)
            role = (sessile_role)s->lists[0].c.items[at].role;
        kind = NULL;
    }
    return inserted_complete(s, given->json, role, kind, name, has_name, err);
}

static sessile_status build_new(sessile_state *s, const sessile_state_item *given,
                                uint32_t turn, uint32_t *number, sessile_error *err)
{
    sessile_key *covers = NULL, *replaces = NULL;
    size_t cover_count = 0, replace_count = 0;
    sessile_key name = {SESSILE_NO_ID, 0};
    int has_name = 0;
    message m;
    sessile_status status = complete_built(s, given, &name, &has_name, err);

    if (!status)
        status = inserted_read(s, &m, err);
    if (!status)
        status = inserted_new(s, &m, turn, number, err);
    if (status)
        return status;
    covered_clear(s);
    if (keys_of(s, given->replaces, given->replace_count, &replaces, &replace_count))
        goto nomem;
    turn = covered_turn(s, turn);
    covered_clear(s);
    if (keys_of(s, given->covers, given->cover_count, &covers, &cover_count))
        goto nomem;
    turn = covered_turn(s, turn);
    if (inserted_set_covered(s, *number, covers, cover_count, replaces, replace_count))
        goto nomem;
    inserted_of(s, *number)->columns.turn = turn;
    inserted_of(s, *number)->has_name = has_name;
    inserted_of(s, *number)->name = name;
    return SESSILE_OK;

nomem:
    mem_free(s->alloc, covers, cover_count * sizeof *covers);
    mem_free(s->alloc, replaces, replace_count * sizeof *replaces);
    return fail_nomem(err); /* the caller cuts the put off */
}

static sessile_status build_kept(const sessile_state *s, const sessile_state_item *given,
                                 uint8_t *seen, sessile_error *err)
{
    sessile_status status = state_check_index(s, given->index, err);
    if (status)
        return status;
    if (given->cover_count || given->replace_count || given->json.size)
        return fail(err, SESSILE_INVALID,
                    "message %zu is kept as it is: only a new "
                    "message has text, covers or replaces",
                    given->index);
    if (seen[given->index])
        return fail(err, SESSILE_INVALID, "message %zu is in the list twice",
                    given->index);
    seen[given->index] = 1;
    return SESSILE_OK;
}

/* The new messages of edits that a hand-built list wins over go; those of the list, which
 * begin at `from`, move down to their numbers. */
static void forget_edits(sessile_state *s, size_t from)
{
    size_t i, n = from - s->made.before;

    for (i = s->made.before; i < from; i++)
        inserted_clear(s, (uint32_t)(i + 1));
    if (n == 0)
        return;
    memmove(s->made.at + s->made.before, s->made.at + from,
            (s->made.count - from) * sizeof *s->made.at);
    memmove(s->made.from + s->made.before, s->made.from + from,
            (s->made.count - from) * sizeof *s->made.from);
    s->made.count -= n;
    for (i = s->made.before; i < s->made.count; i++)
        s->made.at[i].columns.key.n = (uint32_t)(i + 1);
}

/* The marks that say the same as a hand-built list: what it leaves out is dropped. */
static void mark_built(sessile_state *s, const uint8_t *seen)
{
    size_t i;
    s->edits.tokens = 0;
    s->edits.left = s->edits.built_count;
    for (i = 0; i < s->given->c.count; i++) {
        s->edits.marks[i] = seen[i] ? MARK_NONE : MARK_DROPPED;
        s->edits.tokens += tokens_now(s, i);
    }
    for (i = 0; i < s->edits.built_count; i++)
        if (s->edits.built[i].index == ORIGIN_NONE)
            s->edits.tokens += inserted_of(s, s->edits.built[i].number)->columns.tokens;
    s->edits.insert_count = 0;
    s->edits.marked = 1;
    s->edits.is_built = 1;
}

sessile_status state_rebuild(sessile_state *s, const sessile_state_item *items,
                             size_t count, sessile_error *err)
{
    size_t given_count = s->given->c.count, from = s->made.count, capacity = 0, i;
    uint8_t *seen = mem_zalloc(s->alloc, given_count);
    built *list = NULL;
    uint32_t turn = 0;
    sessile_status status = SESSILE_OK;

    if (!seen || count >= UINT32_MAX ||
        mem_grow(s->alloc, (void **)&list, &capacity, count, sizeof *list)) {
        status = fail_nomem(err);
        goto out;
    }
    for (i = 0; i < count; i++) {
        list[i].index = ORIGIN_NONE;
        list[i].number = 0;
        if (items[i].index == SIZE_MAX) {
            status = build_new(s, &items[i], turn, &list[i].number, err);
            if (!status)
                turn = inserted_of(s, list[i].number)->columns.turn;
        } else {
            status = build_kept(s, &items[i], seen, err);
            if (!status) {
                list[i].index = (uint32_t)items[i].index;
                turn = given_item(s, items[i].index)->turn;
            }
        }
        if (status) {
            if (err)
                (void)fail_prefix(err, "item %zu of the list", i);
            inserted_truncate(s, from);
            goto out;
        }
    }
    for (i = 0; i < count; i++)
        list[i].number -= list[i].number ? (uint32_t)(from - s->made.before) : 0;
    forget_edits(s, from);
    mem_free(s->alloc, s->edits.built, s->edits.built_capacity * sizeof *s->edits.built);
    s->edits.built = list;
    s->edits.built_count = count;
    s->edits.built_capacity = capacity;
    list = NULL;
    mark_built(s, seen);
    journal_rebuild(s, items, count);
    error_clear(err);

out:
    mem_free(s->alloc, list, capacity * sizeof *list);
    mem_free(s->alloc, seen, given_count);
    return status;
}

/* ------------------------------------------------------------------ vars */

sessile_slice state_vars_text(const sessile_state *s)
{
    const buf *b = s->vars.has ? &s->vars.set : &s->vars.given;
    sessile_slice out = {b->data, b->size};
    return out;
}

sessile_status state_set_vars(sessile_state *s, sessile_slice text, sessile_error *err)
{
    sessile_status status;
    json root;

    buf_clear(&s->scratch.checked);
    status = json_check(&s->scratch.checked, text.data, text.size, s->limits.depth, err);
    if (status)
        return status;
    root = json_of(s->scratch.checked.data, s->scratch.checked.size);
    if (root.type != JSON_OBJECT)
        return fail(err, SESSILE_INVALID, "a policy's vars must be a JSON object");
    if (s->scratch.checked.size > s->limits.vars)
        return fail(err, SESSILE_LIMIT,
                    "the vars have %zu bytes, and a policy may keep "
                    "%llu",
                    s->scratch.checked.size, (unsigned long long)s->limits.vars);
    if (buf_reserve(&s->vars.set,
                    s->scratch.checked.size)) /* growing must not lose the old ones */
        return fail_nomem(err);
    buf_clear(&s->vars.set);
    buf_put(&s->vars.set, s->scratch.checked.data, s->scratch.checked.size);
    if (s->vars.set.failed)
        return fail_nomem(err);
    s->vars.has = 1;
    journal_vars(s, text);
    error_clear(err);
    return SESSILE_OK;
}
