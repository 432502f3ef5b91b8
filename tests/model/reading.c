/*
 * reading.c: the operations that read, each compared with the model.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/model.h"
#include "support/logs.h"
#include "support/sessions.h"

static int same_rows(world *w, const sessile_message *rows, size_t count,
                     const sessile_id *ids, size_t expected)
{
    if (count != expected)
        return wrong(w, "%zu messages, not %zu", count, expected);
    for (size_t i = 0; i < count; i++) {
        const said *e = &w->log[ids[i]];
        if (rows[i].key.entry != ids[i] || rows[i].key.n != 0 || rows[i].role != e->role)
            return wrong(w, "message %zu is %x, not %x", i, rows[i].key.entry, ids[i]);
        if (rows[i].json.size != strlen(e->text) ||
            memcmp(rows[i].json.data, e->text, rows[i].json.size) != 0)
            return wrong(w, "message %x says %.*s, not %s", ids[i],
                         (int)rows[i].json.size, rows[i].json.data, e->text);
        if (rows[i].tokens != e->tokens)
            return wrong(w, "message %x has %" PRId64 " tokens, not %" PRId64, ids[i],
                         rows[i].tokens, e->tokens);
    }
    return 0;
}

/* The context: at the head, or (L) at any entry of a path. */
int do_context(world *w, unsigned h, uint64_t r, char kind)
{
    sessile_id ids[SAID_MOST], leaf = w->head, asked = SESSILE_NO_ID;
    sessile_message *rows;
    sessile_context_info info;
    sessile_error err;
    size_t count;
    if (kind == 'L') {
        asked = (sessile_id)(random_next(&r) % w->count);
        if (!world_is_leaf(w, asked))
            asked = w->head;
        leaf = asked;
    }
    if (sessile_context(w->s[h], asked, &rows, &count, &info, &err))
        return wrong(w, "context at %x: %s", leaf, err.message);
    int bad = same_rows(w, rows, count, ids, world_path(w, leaf, ids));
    sessile_free(rows);
    if (!bad && (info.head != w->head || info.dropped || info.orphans || info.unanswered))
        bad = wrong(w, "context at %x: head %x, not %x", leaf, info.head, w->head);
    if (leaf == w->head)
        w->base[h] = w->head;
    return bad;
}

int do_messages(world *w, unsigned h, uint64_t r, char kind)
{
    sessile_id all[SAID_MOST], ids[SAID_MOST], leaf = w->head;
    sessile_messages_options o;
    sessile_message *rows;
    sessile_error err;
    size_t count, n = 0;
    sessile_messages_options_init(&o);
    if (kind == 'G') {
        o.limit = random_next(&r) % 8;
        o.last = random_next(&r) % 8;
        if (o.last)
            o.limit = 0;
        o.role = random_next(&r) % 2 ? SESSILE_ROLE_NONE : SESSILE_USER;
        sessile_id at = (sessile_id)(random_next(&r) % w->count);
        if (world_is_leaf(w, at))
            o.at = leaf = at;
    }
    size_t said_there = world_path(w, leaf, all);
    if (kind == 'G' && said_there > 0 && random_next(&r) % 2)
        o.from = all[random_next(&r) % said_there];
    for (size_t i = 0; i < said_there; i++)
        if ((o.from == SESSILE_NO_ID || all[i] >= o.from) &&
            (o.role == SESSILE_ROLE_NONE || w->log[all[i]].role == o.role))
            ids[n++] = all[i];
    const sessile_id *from = ids;
    if (o.limit && n > o.limit)
        n = o.limit;
    if (o.last && n > o.last) {
        from += n - o.last;
        n = o.last;
    }
    if (sessile_messages(w->s[h], kind == 'G' ? &o : NULL, &rows, &count, &err))
        return wrong(w, "messages: %s", err.message);
    int bad = same_rows(w, rows, count, from, n);
    sessile_free(rows);
    if (leaf == w->head)
        w->base[h] = w->head;
    return bad;
}

static int same_entry(world *w, sessile_id id, const char *text, size_t size)
{
    const said *e = &w->log[id];
    sessile_error err;
    entry got;
    if (entry_read(&got, text, size, &err))
        return wrong(w, "entry %x does not read: %s", id, err.message);
    if (got.id != id || got.type != e->type || got.parent != e->parent)
        return wrong(w, "entry %x is %.*s", id, (int)size, text);
    if (e->text && (got.data.size != strlen(e->text) ||
                    memcmp(got.data.at, e->text, got.data.size) != 0))
        return wrong(w, "entry %x says %.*s, not %s", id, (int)got.data.size, got.data.at,
                     e->text);
    return 0;
}

int do_entries(world *w, unsigned h)
{
    sessile_entries *all;
    sessile_error err;
    sessile_id id, next = 0;
    const char *text;
    size_t size;
    int bad = 0;
    if (sessile_entries_open(&all, w->s[h], NULL, &err))
        return wrong(w, "entries: %s", err.message);
    for (;; next++) {
        if (sessile_entries_next(all, &id, &text, &size, &err))
            bad = wrong(w, "entry %x: %s", next, err.message);
        if (bad || size == 0)
            break;
        bad = id != next || id >= w->count ? wrong(w, "entry %x in place %x", id, next)
                                           : same_entry(w, id, text, size);
        if (bad)
            break;
    }
    sessile_entries_close(all);
    return bad                ? bad
           : next == w->count ? 0
                              : wrong(w, "%x entries, not %x", next, w->count);
}

static int64_t total(const sessile_usage *u)
{
    return u->input + u->output + u->cache_read + u->cache_write;
}

int do_figures(world *w, unsigned h)
{
    sessile_error err;
    sessile_tokens t;
    sessile_usage u, all = {0};
    uint64_t events, expected = 0;
    int64_t tokens = 0, since = 0;
    const char *source = "estimate";
    char *title = NULL;
    size_t size;
    for (sessile_id at = w->head; at != 0; at = w->log[at].parent) {
        const said *e = &w->log[at];
        expected += e->type == ENTRY_TURN;
        if (e->type == ENTRY_TURN && total(&e->usage) && !strcmp(source, "estimate")) {
            source = "usage";
            tokens = total(&e->usage) + since;
        }
        since += e->tokens;
        if (e->type == ENTRY_TURN)
            for (unsigned i = 0; i < e->count; i++) {
                at = w->log[at].parent;
                since += w->log[at].tokens;
            }
        else
            expected++;
    }
    if (!strcmp(source, "estimate"))
        tokens = since;
    for (sessile_id i = 0; i < w->count; i++) {
        all.input += w->log[i].usage.input;
        all.output += w->log[i].usage.output;
        all.cache_read += w->log[i].usage.cache_read;
    }
    if (sessile_count_tokens(w->s[h], &t, &err) ||
        sessile_total_usage(w->s[h], &u, &err) ||
        sessile_event_count(w->s[h], &events, &err) ||
        sessile_title(w->s[h], &title, &size, &err))
        return wrong(w, "figures: %s", err.message);
    int same = !strcmp(title, w->title) && size == strlen(w->title);
    sessile_free(title);
    if (!same)
        return wrong(w, "the title is not %s", w->title);
    if (t.tokens != tokens || strcmp(t.source, source))
        return wrong(w, "%" PRId64 " tokens by %s, not %" PRId64 " by %s", t.tokens,
                     t.source, tokens, source);
    if (memcmp(&u, &all, sizeof u))
        return wrong(w, "usage is %" PRId64 " in, %" PRId64 " out", u.input, u.output);
    return events == expected
               ? 0
               : wrong(w, "%" PRIu64 " events, not %" PRIu64, events, expected);
}

static int same_ids(world *w, const char *what, sessile_status status,
                    sessile_id *const *given, const size_t *counted,
                    const sessile_id *expected, size_t n)
{
    sessile_id *ids = *given;
    size_t count = *counted;
    int same =
        !status && count == n && (n == 0 || memcmp(ids, expected, n * sizeof *ids) == 0);
    sessile_free(ids);
    return same ? 0 : wrong(w, "%s: %zu, not %zu, or others", what, count, n);
}

/* The tree, and each question about it, of some entry. */
int do_tree(world *w, unsigned h, uint64_t r)
{
    static sessile_id children[SAID_MOST], siblings[SAID_MOST], leaves[SAID_MOST];
    static sessile_id up[SAID_MOST];
    sessile_id at = (sessile_id)(random_next(&r) % w->count), other = w->head, *ids, got;
    size_t child_count = 0, sibling_count = 0, leaf_count = 0, up_count = 0, count;
    sessile_node *rows;
    sessile_error err;
    sessile_session *s = w->s[h];
    while (!world_is_leaf(w, at))
        at--;
    for (sessile_id id = 0; id < w->count; id++) {
        int is_last = world_is_leaf(w, id);
        if (!is_last)
            continue;
        if (id && w->log[id].parent == at)
            children[child_count++] = id;
        if (id && at && id != at && w->log[id].parent == w->log[at].parent)
            siblings[sibling_count++] = id;
        for (sessile_id below = id + 1; is_last && below < w->count; below++)
            is_last = w->log[below].parent != id || !world_is_leaf(w, below);
        if (is_last)
            leaves[leaf_count++] = id;
        if (world_descends(w, at, id))
            up[up_count++] = id;
    }
    while (!world_descends(w, at, other))
        other = w->log[other].parent;
    if (same_ids(w, "children", sessile_children(s, at, &ids, &count, &err), &ids, &count,
                 children, child_count) ||
        same_ids(w, "siblings", sessile_siblings(s, at, &ids, &count, &err), &ids, &count,
                 siblings, sibling_count) ||
        same_ids(w, "leaves", sessile_leaves(s, &ids, &count, &err), &ids, &count, leaves,
                 leaf_count) ||
        same_ids(w, "path", sessile_path(s, at, &ids, &count, &err), &ids, &count, up,
                 up_count))
        return 1;
    if (sessile_common_ancestor(s, at, w->head, &got, &err) || got != other)
        return wrong(w, "%x and the head come from %x, not %x", at, got, other);
    if (sessile_tree(s, NULL, &rows, &count, &err) || count != w->count) {
        sessile_free(rows);
        return wrong(w, "the tree has %zu rows", count);
    }
    int bad = 0;
    for (sessile_id id = 0; !bad && id < w->count; id++) {
        const said *e = &w->log[id];
        int64_t total = 0;
        for (sessile_id to = id; id && to; to = w->log[to].parent)
            total += w->log[to].tokens;
        if (rows[id].id != id || rows[id].parent != e->parent ||
            rows[id].total_tokens != total || rows[id].is_path != world_is_leaf(w, id) ||
            rows[id].on_path != world_descends(w, w->head, id) ||
            rows[id].is_head != (id == w->head) ||
            rows[id].in_context != (said_is_message(e) && world_descends(w, w->head, id)))
            bad = wrong(w, "row %x of the tree is another", id);
    }
    sessile_free(rows);
    return bad;
}

int do_head(world *w, unsigned h)
{
    sessile_error err;
    sessile_id head;
    if (sessile_head(w->s[h], &head, &err))
        return wrong(w, "head: %s", err.message);
    w->base[h] = w->head;
    return head == w->head ? 0 : wrong(w, "the head is %x, not %x", head, w->head);
}

int do_list(world *w, unsigned h)
{
    sessile_listed *rows;
    sessile_error err;
    sessile_id ids[SAID_MOST];
    size_t count;
    int bad = 0;
    if (sessile_list(w->stores[h / 2], "main", &rows, &count, &err))
        return wrong(w, "list: %s", err.message);
    if (count != 1)
        bad = wrong(w, "%zu rows", count);
    else if (rows->status || rows->entries != w->count ||
             rows->messages != world_path(w, w->head, ids) ||
             rows->title.size != strlen(w->title) ||
             memcmp(rows->title.data, w->title, rows->title.size) != 0)
        bad = wrong(w, "the row says %s, %" PRIu64 " entries, %" PRIu64 " messages, %.*s",
                    sessile_status_name(rows->status), rows->entries, rows->messages,
                    (int)rows->title.size, rows->title.data);
    sessile_free(rows);
    world_check_torn(w);
    return bad;
}

/* A fork at any leaf: what was said up to it, under the same ids, and the title. */
int do_fork(world *w, unsigned h, uint64_t r)
{
    static unsigned forks;
    sessile_session_options o;
    sessile_session *f = NULL;
    sessile_message *rows = NULL;
    sessile_error err;
    sessile_id ids[SAID_MOST], head, leaf = w->head;
    int named = random_next(&r) % 4 != 0, bad = 0;
    char id[32], *text = NULL;
    size_t count = 0, size;
    if (named)
        for (leaf = (sessile_id)(random_next(&r) % w->count);
             leaf != 0 && w->log[leaf].type != ENTRY_MESSAGE &&
             w->log[leaf].type != ENTRY_TURN;)
            leaf--;
    snprintf(id, sizeof id, "fork-%u", forks++);
    sessile_session_options_init(&o);
    o.id = sessile_text(id);
    o.agent = sessile_text("forks");
    if (sessile_fork(&f, w->s[h], named ? leaf : SESSILE_NO_ID, &o, &err))
        return wrong(w, "fork at %x: %s", leaf, err.message);
    if (sessile_head(f, &head, &err) || head != leaf)
        bad = wrong(w, "the fork's head is %x, not %x", head, leaf);
    for (sessile_id i = 1; !bad && i <= leaf; i++) {
        if (sessile_entry(f, i, &text, &size, &err))
            bad = wrong(w, "entry %x of a fork: %s", i, err.message);
        else
            bad = same_entry(w, i, text, size);
        sessile_free(text);
    }
    if (!bad && sessile_messages(f, NULL, &rows, &count, &err))
        bad = wrong(w, "messages of a fork: %s", err.message);
    if (!bad && count != world_path(w, leaf, ids))
        bad = wrong(w, "a fork at %x has %zu messages", leaf, count);
    for (size_t i = 0; !bad && i < count; i++)
        if (rows[i].key.entry != ids[i])
            bad = wrong(w, "a fork has message %x, not %x", rows[i].key.entry, ids[i]);
    sessile_free(rows);
    text = NULL;
    if (!bad && (sessile_title(f, &text, &size, &err) || strcmp(text, w->title) != 0))
        bad = wrong(w, "the title of a fork is not %s", w->title);
    sessile_free(text);
    sessile_session_close(f, NULL);
    return bad;
}
