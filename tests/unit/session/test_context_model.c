/*
 * test_context_model.c: the context at every leaf against a naive model.
 *
 * The model keeps each entry's whole context as a list of keys, copied from its parent
 * and changed: no ranges, no walk, no cache, no `nearest compaction`. Random operations
 * go to the engine and to the model; after each, the context at the head must be the
 * model's, and now and then the context at every leaf, by each handle and after a
 * reopening.
 *
 * SEED=n runs one seed. A failure prints it.
 */
#include "guard/enter.h"
#include "support/sessions.h"
#include "base/text.h"
#include "session/fold.h"
#include "session/compaction.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES = 400, HANDLES = 3 };

/* ------------------------------------------------------------------ the model */

typedef struct known {
    sessile_key key;
    sessile_role role;
    uint32_t tokens, turn, links;
    unsigned flags;
} known;

typedef struct list {
    known *at;
    size_t count;
} list;

typedef struct model_entry {
    int on_path, is_message;
    sessile_id parent;
    list context; /* at this leaf */
    known self;   /* of a message */
    uint32_t events, messages;
    char vars[32]; /* in force here */
} model_entry;

typedef struct model {
    model_entry entries[ENTRIES + 16];
    sessile_id count, head;
    char title[32];
    int64_t input; /* of all usage */
    uint64_t random;
    uint64_t seed;
} model;

static uint32_t draw(model *m, uint32_t below)
{
    /* splitmix64 */
    uint64_t z = m->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return below ? (uint32_t)((z ^ z >> 31) % below) : 0;
}

static void list_push(list *l, const known *k)
{
    l->at = realloc(l->at, (l->count + 1) * sizeof *l->at);
    assert_non_null(l->at);
    l->at[l->count++] = *k;
}

static list list_dup(const list *l)
{
    list out = {NULL, 0};

    for (size_t i = 0; i < l->count; i++)
        list_push(&out, &l->at[i]);
    return out;
}

/* The next entry, as its parent was. */
static model_entry *follow(model *m, sessile_id parent, int on_path)
{
    model_entry *e = &m->entries[m->count];
    const model_entry *from = &m->entries[parent];

    memset(e, 0, sizeof *e);
    e->on_path = on_path;
    e->parent = parent;
    e->context = list_dup(&from->context);
    e->events = from->events;
    e->messages = from->messages;
    memcpy(e->vars, from->vars, sizeof e->vars);
    if (on_path)
        m->head = m->count;
    m->count++;
    return e;
}

static uint32_t turns_before(const model *m, sessile_id id)
{
    uint32_t turns = 0;

    for (; id; id = m->entries[id].parent)
        if (m->entries[id].is_message &&
            (m->entries[id].self.flags & MESSAGE_STARTS_TURN))
            turns++;
    return turns;
}

static int is_above(const model *m, sessile_id id, sessile_id above)
{
    while (id > above)
        id = m->entries[id].parent;
    return id == above;
}

/* ------------------------------------------------------------------ operations */

/* A message of a random kind; *k says what the engine must see in it. */
static void random_message(model *m, char *text, size_t size, known *k, int64_t *input)
{
    uint32_t n = draw(m, 1000);

    memset(k, 0, sizeof *k);
    *input = 0;
    switch (draw(m, 8)) {
    case 0:
        snprintf(text, size, "{\"role\":\"system\",\"content\":\"rule %" PRIu32 "\"}", n);
        k->role = SESSILE_SYSTEM;
        break;
    case 1:
        snprintf(text, size,
                 "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":"
                 "\"c%" PRIu32
                 "\",\"name\":\"f\",\"arguments\":\"{}\"},{\"id\":\"d\",\"name\":"
                 "\"g\",\"arguments\":\"\"}]}",
                 n);
        k->role = SESSILE_ASSISTANT;
        k->links = 2;
        break;
    case 2:
        snprintf(text, size,
                 "{\"role\":\"tool\",\"tool_call_id\":\"c%" PRIu32 "\",\"content\":"
                 "\"out\",\"is_error\":true}",
                 n);
        k->role = SESSILE_TOOL;
        k->links = 1;
        k->flags = MESSAGE_ERROR;
        break;
    case 3:
        snprintf(text, size,
                 "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
                 "\"tool_use_id\":\"c%" PRIu32 "\",\"content\":\"x\"}]}",
                 n);
        k->role = SESSILE_USER;
        k->links = 1;
        break;
    case 4:
        snprintf(text, size,
                 "{\"role\":\"user\",\"content\":\"note %" PRIu32 "\",\"metadata\":"
                 "{\"kind\":\"note\"}}",
                 n);
        k->role = SESSILE_USER;
        k->flags = MESSAGE_KIND;
        break;
    case 5:
        snprintf(text, size,
                 "{\"role\":\"assistant\",\"content\":\"said %" PRIu32 "\",\"usage\":"
                 "{\"input\":%" PRIu32 "}}",
                 n, n);
        k->role = SESSILE_ASSISTANT;
        *input = n;
        break;
    default:
        snprintf(text, size, "{\"role\":\"user\",\"content\":\"question %" PRIu32 "\"}",
                 n);
        k->role = SESSILE_USER;
        k->flags = MESSAGE_STARTS_TURN;
    }
}

static void model_message(model *m, sessile_id parent, known *k)
{
    model_entry *e = follow(m, parent, 1);

    k->key = (sessile_key){m->count - 1, 0};
    k->turn = turns_before(m, parent) + !!(k->flags & MESSAGE_STARTS_TURN);
    e->is_message = 1;
    e->self = *k;
    e->events++;
    e->messages++;
    list_push(&e->context, k);
}

/* The engine counts tokens; that it keeps what it counted is what is checked. */
static void learn_tokens(model *m, const sessile_session *s, sessile_id id)
{
    m->entries[id].self.tokens = s->core->tree.nodes[id].tokens;
    m->entries[id].context.at[m->entries[id].context.count - 1].tokens =
        s->core->tree.nodes[id].tokens;
}

static void do_message(model *m, sessile_session *s)
{
    char text[512];
    int64_t input;
    known k;

    random_message(m, text, sizeof text, &k, &input);
    assert_int_equal(say_json(s, text), m->count);
    model_message(m, m->head, &k);
    m->input += input;
    learn_tokens(m, s, m->head);
}

static void do_turn(model *m, sessile_session *s)
{
    static char texts[4][512];
    const char *pointers[4] = {texts[0], texts[1], texts[2], texts[3]};
    size_t count = 1 + draw(m, 4);
    int64_t input, inputs = 0;
    sessile_id head = m->head;
    char rest[64] = "";
    model_entry *e;
    known k[4];

    for (size_t i = 0; i < count; i++) {
        random_message(m, texts[i], sizeof texts[i], &k[i], &input);
        inputs += input;
    }
    if (draw(m, 2)) {
        inputs = 1 + draw(m, 50);
        snprintf(rest, sizeof rest, ",\"usage\":{\"input\":%" PRId64 "}", inputs);
    }
    say_turn(s, pointers, count, rest);
    for (size_t i = 0; i < count; i++) {
        model_message(m, m->head, &k[i]);
        learn_tokens(m, s, m->head);
    }
    e = follow(m, m->head, 1);
    e->events = m->entries[head].events + 1;
    m->input += inputs;
}

/* A message of another branch: the head stays where it is. */
static void do_sibling(model *m, sessile_session *s, sessile_id parent)
{
    sessile_id head = m->head;
    known k = {.role = SESSILE_USER, .flags = MESSAGE_STARTS_TURN};

    put_entry(s, "message", parent, "{\"role\":\"user\",\"content\":\"beside\"}");
    model_message(m, parent, &k);
    learn_tokens(m, s, m->count - 1);
    move_head(s, head);
    follow(m, head, 0);
    m->head = head;
}

/* Keys as JSON, ranges where the path's messages are neighbours; sometimes split at
 * random, for a range is not the only way to write a list. */
static void print_keys(model *m, buf *out, const list *l)
{
    char name[SESSILE_KEY_SIZE];

    buf_putc(out, '[');
    for (size_t i = 0; i < l->count; i++) {
        const known *first = &l->at[i], *last = first;
        sessile_key_print(first->key, name);
        buf_printf(out, "%s\"%s", i ? "," : "", name);
        while (!last->key.n && i + 1 < l->count && !l->at[i + 1].key.n && draw(m, 9)) {
            sessile_id before = m->entries[l->at[i + 1].key.entry].parent;
            while (before && !m->entries[before].is_message)
                before = m->entries[before].parent;
            if (before != last->key.entry)
                break;
            last = &l->at[++i];
        }
        if (last != first)
            buf_printf(out, "-%08" PRIx32, last->key.entry);
        buf_putc(out, '"');
    }
    buf_putc(out, ']');
}

static void do_compaction(model *m, sessile_session *s)
{
    sessile_id upto = m->head, self = m->count;
    list now = {NULL, 0}, later = {NULL, 0};
    const list *before;
    model_entry *e;
    uint32_t puts = 0;
    buf data, put;

    buf_init(&data, &allocator_default);
    buf_init(&put, &allocator_default);
    for (uint32_t i = draw(m, 3); upto && i; i--) /* it thought while others wrote */
        upto = m->entries[upto].parent;
    before = &m->entries[upto].context;
    for (size_t i = 0; i <= before->count; i++) {
        uint32_t disposition = draw(m, 10);
        if (disposition < 2 && puts < 5) {
            known k = {.key = {self, ++puts},
                       .role = SESSILE_USER,
                       .tokens = draw(m, 100),
                       .turn = draw(m, 9),
                       .flags = MESSAGE_KIND | MESSAGE_SUMMARY};
            buf_printf(
                &put,
                "%s{\"n\":%" PRIu32 ",\"turn\":%" PRIu32 ",\"tokens\":[%" PRIu32
                ",\"estimate\"],\"covers\":[],\"message\":{\"role\":\"user\",\"content\":"
                "\"sum\",\"metadata\":{\"kind\":\"summary\"}}}",
                puts > 1 ? "," : "", puts, k.turn, k.tokens);
            list_push(&now, &k);
        } else if (disposition < 7 && i < before->count) {
            list_push(&now, &before->at[i]);
        }
    }
    for (sessile_id id = m->head; id > upto; id = m->entries[id].parent)
        if (m->entries[id].is_message)
            list_push(&later, &m->entries[id].self);

    buf_puts(&data, "{\"context\":");
    if (draw(m, 2)) {
        sessile_key *keys = calloc(now.count + 1, sizeof *keys);
        assert_non_null(keys);
        for (size_t i = 0; i < now.count; i++) {
            keys[i] = now.at[i].key;
            if (keys[i].entry == self)
                keys[i].entry = SESSILE_NO_ID;
        }
        assert_int_equal(compaction_put_keys(s->core, keys, now.count, self, &data, NULL),
                         0);
        free(keys);
    } else {
        print_keys(m, &data, &now);
    }
    buf_printf(&data, ",\"upto\":\"%08" PRIx32 "\",\"inserted\":[%s]", upto,
               puts ? put.data : "");
    e = follow(m, m->head, 1);
    if (!draw(m, 3)) {
        snprintf(e->vars, sizeof e->vars, "{\"p\":%" PRIu32 "}", draw(m, 100));
        buf_printf(&data, ",\"vars\":%s", e->vars);
    }
    buf_putc(&data, '}');
    e->events++;
    free(e->context.at);
    e->context = now;
    for (size_t i = later.count; i; i--)
        list_push(&e->context, &later.at[i - 1]);
    free(later.at);
    assert_int_equal(put_entry(s, "compaction", SESSILE_NO_ID, data.data), self);
    buf_deinit(&data);
    buf_deinit(&put);
}

static void do_vars(model *m, sessile_session *s)
{
    model_entry *e = follow(m, m->head, 1);
    char data[64];

    e->events++;
    snprintf(e->vars, sizeof e->vars, "{\"q\":%" PRIu32 "}", draw(m, 100));
    snprintf(data, sizeof data, "{\"vars\":%s}", e->vars);
    put_entry(s, "compaction", SESSILE_NO_ID, data);
}

static sessile_id random_leaf(model *m)
{
    sessile_id id;

    do
        id = draw(m, m->count);
    while (id && !m->entries[id].on_path);
    return id;
}

static void do_fact(model *m, sessile_session *s)
{
    static const char *const types[] = {"label", "custom", "checkpoint", "hologram"};
    char data[64];

    if (draw(m, 3)) {
        sessile_id about = random_leaf(m);
        put_entry(s, types[draw(m, 4)], about, "{\"any\":[]}");
        follow(m, about, 0);
    } else {
        snprintf(m->title, sizeof m->title, "title %" PRIu32, draw(m, 100));
        snprintf(data, sizeof data, "{\"title\":\"%s\"}", m->title);
        put_entry(s, "metadata", 0, data);
        follow(m, 0, 0);
    }
}

static void do_head(model *m, sessile_session *s, sessile_id to)
{
    move_head(s, to);
    follow(m, m->head, 0);
    m->head = to;
}

/* ------------------------------------------------------------------ comparison */

static void wrong(const model *m, sessile_id leaf, const char *what, size_t i)
{
    fail_msg("SEED=%" PRIu64 ": at leaf %08" PRIx32 " of %" PRIu32
             " entries, item %zu: %s",
             m->seed, leaf, m->count, i, what);
}

static void compare(const model *m, sessile_id leaf, const context *c)
{
    const list *l = &m->entries[leaf].context;
    int opening = 1;

    if (c->upto != leaf)
        wrong(m, leaf, "upto is not the leaf", 0);
    for (size_t i = 0; i < l->count || i < c->count; i++) {
        const item *it = &c->items[i];
        const known *k = &l->at[i];
        if (i >= l->count)
            wrong(m, leaf, "more than there should be", i);
        if (i >= c->count)
            wrong(m, leaf, "missing", i);
        opening = opening && k->role == SESSILE_SYSTEM;
        if (it->key.entry != k->key.entry || it->key.n != k->key.n)
            wrong(m, leaf, "another message", i);
        if (it->tokens != k->tokens)
            wrong(m, leaf, "tokens", i);
        if (it->turn != k->turn)
            wrong(m, leaf, "turn", i);
        if (it->role != k->role)
            wrong(m, leaf, "role", i);
        if (it->link_count != k->links || it->link + it->link_count > c->link_count)
            wrong(m, leaf, "links", i);
        if (it->flags != (k->flags | (opening ? ITEM_PINNED | ITEM_OPENING : 0)))
            wrong(m, leaf, "flags", i);
    }
}

static void check_head(const model *m, sessile_session *s)
{
    const context *c;
    sessile_error err;
    buf vars;

    pthread_mutex_lock(&s->core->mutex);
    if (session_refresh_locked(s->core, &err) ||
        session_context_locked(s->core, &c, &err))
        fail_msg("SEED=%" PRIu64 ": %s", m->seed, err.message);
    if (s->core->tree.head != m->head)
        wrong(m, s->core->tree.head, "the head", 0);
    compare(m, m->head, c);
    buf_init(&vars, &allocator_default);
    if (session_vars_locked(s->core, s->core->tree.head, &vars, &err))
        fail_msg("SEED=%" PRIu64 ": %s", m->seed, err.message);
    if (strcmp(vars.data, m->entries[m->head].vars[0] ? m->entries[m->head].vars : "{}"))
        wrong(m, s->core->tree.head, "vars", 0);
    buf_deinit(&vars);
    if (m->title[0] && strcmp(s->core->fold.title, m->title))
        wrong(m, s->core->tree.head, "title", 0);
    if (s->core->fold.usage.input != m->input)
        wrong(m, s->core->tree.head, "usage", 0);
    pthread_mutex_unlock(&s->core->mutex);
}

static void check_every_leaf(const model *m, sessile_session *s)
{
    sessile_error err;
    context c;

    context_init(&c, &allocator_default);
    pthread_mutex_lock(&s->core->mutex);
    if (session_refresh_locked(s->core, &err))
        fail_msg("SEED=%" PRIu64 ": %s", m->seed, err.message);
    for (sessile_id leaf = 0; leaf < m->count; leaf++) {
        const model_entry *e = &m->entries[leaf];
        sessile_status status = session_context_at_locked(s->core, leaf, &c, &err);
        if (leaf && !e->on_path) {
            if (status != SESSILE_NOTFOUND)
                wrong(m, leaf, "a fact has a context", 0);
            continue;
        }
        if (status)
            fail_msg("SEED=%" PRIu64 ": %s", m->seed, err.message);
        compare(m, leaf, &c);
        if (s->core->tree.nodes[leaf].events != e->events)
            wrong(m, leaf, "events", s->core->tree.nodes[leaf].events);
        if (s->core->tree.nodes[leaf].messages != e->messages)
            wrong(m, leaf, "messages", s->core->tree.nodes[leaf].messages);
        if (!is_above(m, leaf, e->parent) ||
            session_descends_locked(s->core, m->head, leaf) != is_above(m, m->head, leaf))
            wrong(m, leaf, "descent", 0);
    }
    pthread_mutex_unlock(&s->core->mutex);
    context_deinit(&c);
}

/* ------------------------------------------------------------------ the runs */

static void one_operation(model *m, sessile_session *s)
{
    switch (draw(m, 20)) {
    case 0:
    case 1:
    case 2:
        do_compaction(m, s);
        break;
    case 3:
        do_head(m, s, draw(m, 8) ? random_leaf(m) : 0);
        break;
    case 4:
    case 5:
        do_fact(m, s);
        break;
    case 6:
        do_vars(m, s);
        break;
    case 7:
        do_sibling(m, s, random_leaf(m));
        break;
    case 8:
    case 9:
    case 10:
    case 11:
        do_turn(m, s);
        break;
    default:
        do_message(m, s);
    }
}

static void run_seed(store_kind kind, uint64_t seed)
{
    model *m = calloc(1, sizeof *m);
    sessile_session *handles[HANDLES];
    sessile_store *again;
    place p;

    assert_non_null(m);
    m->seed = m->random = seed;
    m->count = 1;
    m->entries[0].on_path = 1;
    place_open(&p, kind);
    again = place_again(&p);
    handles[0] = session_made(p.store, "model");
    handles[1] = session_resumed(p.store, "model");
    handles[2] = session_resumed(again, "model");
    while (m->count < ENTRIES) {
        uint32_t writer = draw(m, HANDLES), reader = draw(m, HANDLES);
        /* the handle looks before it writes, so that its base is the head */
        pthread_mutex_lock(&handles[writer]->core->mutex);
        assert_int_equal(session_refresh_locked(handles[writer]->core, NULL), SESSILE_OK);
        handles[writer]->core->tree.base = handles[writer]->core->tree.head;
        pthread_mutex_unlock(&handles[writer]->core->mutex);
        one_operation(m, handles[writer]);
        if (draw(m, 3))
            check_head(m, handles[reader]);
        if (!draw(m, 60))
            check_every_leaf(m, handles[reader]);
        if (!draw(m, 60)) {
            session_closed(handles[reader]);
            handles[reader] = session_resumed(reader == 2 ? again : p.store, "model");
            check_head(m, handles[reader]);
        }
    }
    for (int i = 0; i < HANDLES; i++) {
        check_head(m, handles[i]);
        check_every_leaf(m, handles[i]);
        session_closed(handles[i]);
    }
    for (sessile_id i = 0; i < m->count; i++)
        free(m->entries[i].context.at);
    place_again_close(&p, again);
    place_close(&p);
    free(m);
}

static void run_seeds(store_kind kind, uint64_t first, int count)
{
    const char *wanted = getenv("SEED");

    if (wanted) {
        run_seed(kind, strtoull(wanted, NULL, 10));
        return;
    }
    for (int i = 0; i < count; i++)
        run_seed(kind, first + (uint64_t)i);
}

static void contexts_are_the_models_over_ram(void **state)
{
    (void)state;
    run_seeds(STORE_RAM, 1000, 40);
}

static void contexts_are_the_models_over_sealed_files(void **state)
{
    (void)state;
    run_seeds(STORE_SEALED, 2000, 5);
}

static void contexts_are_the_models_over_plain_files(void **state)
{
    (void)state;
    run_seeds(STORE_PLAIN, 3000, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contexts_are_the_models_over_ram),
        cmocka_unit_test(contexts_are_the_models_over_sealed_files),
        cmocka_unit_test(contexts_are_the_models_over_plain_files),
    };

    return cmocka_run_group_tests_name("context model", tests, NULL, NULL);
}
