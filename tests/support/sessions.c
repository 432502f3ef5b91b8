/*
 * sessions.c: stores and sessions for tests, and entries written by hand.
 *
 * Must never hide a refusal: what is not expected to fail fails the test with the
 * engine's own sentence.
 */
#include "guard/enter.h"
#include "support/sessions.h"
#include "base/text.h"
#include "support/check.h"
#include "support/postgres.h"
#include "tokens/tokens.h"
#include "session/read.h"
#include "session/write.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const store_kind_names[STORE_KINDS] = {"ram", "sealed", "plain"};

/* ------------------------------------------------------------------ places */

char *folder_make(void)
{
    const char *top = getenv("TMPDIR");
    char *folder = malloc(512);

    assert_non_null(folder);
    snprintf(folder, 512, "%s/session.XXXXXX", top ? top : "/tmp");
    assert_non_null(mkdtemp(folder));
    return folder;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void folder_remove(char *folder)
{
    if (folder)
        nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(folder);
}

const char *place_elsewhere(void)
{
    const char *kind = getenv("TEST_STORE");

    return kind && *kind && strcmp(kind, "file") ? kind : NULL;
}

void place_files_only(void)
{
    if (place_elsewhere())
        skip();
}

char *place_url(const char *folder)
{
    const char *elsewhere = place_elsewhere(), *why = NULL;
    const postgres_server *server;
    char text[600];

    if (elsewhere && !strcmp(elsewhere, "postgres")) {
        server = postgres_shared(&why);
        if (!server)
            fail_msg("%s", why);
        return postgres_place(server->url);
    }
    if (elsewhere && strcmp(elsewhere, "sqlite"))
        fail_msg("TEST_STORE is %s: sqlite, postgres or file", elsewhere);
    snprintf(text, sizeof text, elsewhere ? "sqlite:%s/sessions.db" : "%s", folder);
    return strdup(text);
}

void place_url_free(char *url)
{
    if (url && !strncmp(url, "postgres", 8))
        postgres_drop(url);
    else
        free(url);
}

/* ------------------------------------------------------------------ under a guard */

/* Handles behind the views that tests get, each closed after its view. */
enum { GUARDED_AT_ONCE = 64 };
static struct {
    sessile_store *view, *host;
} guarded[GUARDED_AT_ONCE];

const char *place_guard(void)
{
    const char *profile = getenv("TEST_GUARD");

    return profile && *profile ? profile : NULL;
}

void place_unguarded_only(void)
{
    if (place_guard())
        skip();
}

/* What the command line gets of a guarded store: the view of whoever has it. Nothing is
 * counted: a test does in a second what a person does in an hour. */
static sessile_store *guarded_view(sessile_store *host, int keeps_audit)
{
    sessile_guard_options options;
    sessile_credential credential;
    sessile_store *view = NULL;
    sessile_error err;
    size_t i = 0;

    sessile_guard_options_init(&options);
    options.profile = place_guard();
    options.require_principal = !strcmp(options.profile, "strict");
    options.limits.on = 0;
    options.audit.on = keeps_audit;
    options.consent = 1;
    must(sessile_store_guard(host, &options, &err), &err);
    sessile_credential_init(&credential);
    credential.os = 1;
    must(sessile_store_as(&view, host, &credential, &err), &err);
    while (i < GUARDED_AT_ONCE && guarded[i].view)
        i++;
    if (i == GUARDED_AT_ONCE)
        fail_msg("more than %d guarded stores are open", GUARDED_AT_ONCE);
    guarded[i].view = view;
    guarded[i].host = host;
    return view;
}

/* Which of them a view is; GUARDED_AT_ONCE: none. */
static size_t guarded_at(const sessile_store *view)
{
    size_t i = 0;

    while (i < GUARDED_AT_ONCE && (!view || guarded[i].view != view))
        i++;
    return i;
}

sessile_store *place_host(sessile_store *st)
{
    size_t i = guarded_at(st);

    return i < GUARDED_AT_ONCE ? guarded[i].host : st;
}

static void store_closed(sessile_store *st)
{
    size_t i = guarded_at(st);

    sessile_store_close(st);
    if (i < GUARDED_AT_ONCE) {
        sessile_store_close(guarded[i].host);
        guarded[i].view = NULL;
    }
}

static sessile_store *store_of(const place *p)
{
    sessile_store_options options;
    sessile_store *st = NULL;
    sessile_error err;

    memset(&options, 0, sizeof options);
    options.config.has_timeout = 1;
    options.config.timeout_ms = 60000;
    options.durability = SESSILE_NONE;
    options.key_source = p->kind == STORE_SEALED ? SESSILE_KEY_SECRET : SESSILE_KEY_PLAIN;
    options.key = "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    must(sessile_open(&st, p->url, &options, &err), &err);
    return place_guard() ? guarded_view(st, strcmp(p->url, "ram:") != 0) : st;
}

void place_open(place *p, store_kind kind)
{
    p->kind = kind;
    p->folder = folder_make();
    p->url =
        kind == STORE_RAM && !place_elsewhere() ? strdup("ram:") : place_url(p->folder);
    assert_non_null(p->url);
    p->store = store_of(p);
}

void place_close(place *p)
{
    store_closed(p->store);
    place_url_free(p->url);
    folder_remove(p->folder);
}

sessile_store *place_again(const place *p)
{
    return p->kind == STORE_RAM ? p->store : store_of(p);
}

void place_again_close(const place *p, sessile_store *again)
{
    if (again != p->store)
        store_closed(again);
}

/* ------------------------------------------------------------------ sessions */

sessile_session_options named(const char *id)
{
    sessile_session_options options;

    memset(&options, 0, sizeof options);
    options.id = (sessile_slice){id, strlen(id)};
    return options;
}

sessile_session *session_resumed(sessile_store *st, const char *id)
{
    sessile_session_options options = named(id);
    sessile_session *s = NULL;
    sessile_error err;

    must(sessile_resume(&s, st, &options, &err), &err);
    return s;
}

sessile_session *session_made(sessile_store *st, const char *id)
{
    sessile_session_options options = named(id);
    sessile_error err;

    must(session_create(st->core, &options, &err, NULL), &err);
    return session_resumed(st, id);
}

sessile_session *session_in(void **state, const char *id)
{
    const place *p = *state;
    return session_made(p->store, id);
}

void session_closed(sessile_session *s)
{
    sessile_error err;

    must(sessile_session_close(s, &err), &err);
}

/* ------------------------------------------------------------------ writing */

typedef struct written {
    const char *const *messages;
    size_t count;
    int turn;
    const char *rest, *type, *data;
    sessile_id parent, out;
} written;

/* An entry of any type, spelled out. */
static void add_raw(batch *b, const char *type, sessile_id parent, const char *data)
{
    char time[TIME_SIZE];

    if (mem_grow(b->alloc, (void **)&b->starts, &b->capacity, b->count + 1,
                 sizeof *b->starts)) {
        b->text.failed = 1;
        return;
    }
    time_print(b->now_ms, time);
    b->starts[b->count] = b->text.size;
    buf_printf(&b->text,
               "{\"id\":\"%08" PRIx32 "\",\"parent_id\":\"%08" PRIx32
               "\",\"timestamp\":\"%s\",\"type\":\"%s\",\"data\":%s}",
               batch_next(b), parent, time, type, data);
    b->count++;
}

static sessile_status build_messages(void *arg, session_core *s, batch *b,
                                     sessile_error *err)
{
    written *w = arg;
    sessile_id parent = s->tree.head, first = batch_next(b);
    sessile_status status = session_check_base_locked(s, s->tree.base, 0, err);

    for (size_t i = 0; !status && i < w->count; i++) {
        message m;
        buf text;
        buf_init(&text, b->alloc);
        status = json_check(&text, w->messages[i], strlen(w->messages[i]), 128, err);
        if (!status)
            status =
                message_read(&m, text.data, text.size, NULL, NULL, NULL, b->alloc, err);
        if (!status)
            parent = batch_message(b, parent, text.data, text.size, &m,
                                   (token_count){tokens_of_message(&m), TOKENS_ESTIMATE});
        buf_deinit(&text);
    }
    if (!status && w->turn) {
        char data[512];
        snprintf(data, sizeof data, "{\"first\":\"%08" PRIx32 "\",\"count\":%zu%s}",
                 first, w->count, w->rest);
        parent = batch_next(b);
        add_raw(b, "turn", first + (sessile_id)w->count - 1, data);
    }
    w->out = parent;
    return status;
}

static sessile_status build_entry(void *arg, session_core *s, batch *b,
                                  sessile_error *err)
{
    written *w = arg;

    (void)err;
    w->out = batch_next(b);
    add_raw(b, w->type, w->parent == SESSILE_NO_ID ? s->tree.head : w->parent, w->data);
    return SESSILE_OK;
}

sessile_status try_say(sessile_session *s, const char *text, sessile_id *out,
                       sessile_error *err)
{
    written w = {.messages = &text, .count = 1};
    sessile_status status = session_write(s->core, build_messages, &w, NULL, err);

    *out = w.out;
    return status;
}

sessile_id say_json(sessile_session *s, const char *text)
{
    sessile_error err;
    sessile_id id;

    must(try_say(s, text, &id, &err), &err);
    return id;
}

sessile_id say(sessile_session *s, const char *role, const char *content)
{
    char text[1024];

    snprintf(text, sizeof text, "{\"role\":\"%s\",\"content\":\"%s\"}", role, content);
    return say_json(s, text);
}

sessile_id say_turn(sessile_session *s, const char *const *messages, size_t count,
                    const char *rest)
{
    written w = {.messages = messages, .count = count, .turn = 1, .rest = rest};
    sessile_error err;

    must(session_write(s->core, build_messages, &w, NULL, &err), &err);
    return w.out;
}

sessile_status try_entry(sessile_session *s, const char *type, sessile_id parent,
                         const char *data, sessile_id *out, sessile_error *err)
{
    written w = {.type = type, .parent = parent, .data = data};
    sessile_status status = session_write(s->core, build_entry, &w, NULL, err);

    *out = w.out;
    return status;
}

sessile_id put_entry(sessile_session *s, const char *type, sessile_id parent,
                     const char *data)
{
    sessile_error err;
    sessile_id id;

    must(try_entry(s, type, parent, data, &id, &err), &err);
    return id;
}

void move_head(sessile_session *s, sessile_id to)
{
    char data[32];

    snprintf(data, sizeof data, "{\"head\":\"%08" PRIx32 "\"}", to);
    put_entry(s, "head", SESSILE_NO_ID, data);
}

/* ------------------------------------------------------------------ reading */

char *context_keys(sessile_session *s, sessile_id leaf)
{
    const context *c = NULL;
    sessile_error err;
    context at;
    char *out;

    context_init(&at, &s->core->store->alloc);
    pthread_mutex_lock(&s->core->mutex);
    must(session_refresh_locked(s->core, &err), &err);
    if (leaf == SESSILE_NO_ID) {
        must(session_context_locked(s->core, &c, &err), &err);
    } else {
        must(session_context_at_locked(s->core, leaf, &at, &err), &err);
        c = &at;
    }
    out = calloc(1, c->count * SESSILE_KEY_SIZE + 1);
    assert_non_null(out);
    for (size_t i = 0, used = 0; i < c->count; i++) {
        char key[SESSILE_KEY_SIZE];
        sessile_key_print(c->items[i].key, key);
        used += (size_t)sprintf(out + used, "%s%s", i ? " " : "", key);
    }
    pthread_mutex_unlock(&s->core->mutex);
    context_deinit(&at);
    return out;
}

static int set_up(void **state, store_kind kind)
{
    place *p = calloc(1, sizeof *p);

    assert_non_null(p);
    place_open(p, kind);
    *state = p;
    return 0;
}

int place_set_up_ram(void **state)
{
    return set_up(state, STORE_RAM);
}

int place_set_up_sealed(void **state)
{
    return set_up(state, STORE_SEALED);
}

int place_set_up_plain(void **state)
{
    return set_up(state, STORE_PLAIN);
}

int place_tear_down(void **state)
{
    place_close(*state);
    free(*state);
    return 0;
}

int run_over_kinds(const char *what, store_kind first, const struct CMUnitTest *tests,
                   size_t count)
{
    static const CMFixtureFunction set_ups[] = {place_set_up_ram, place_set_up_sealed,
                                                place_set_up_plain};
    struct CMUnitTest *own = malloc(count * sizeof *own);
    int failed = 0;

    assert_non_null(own);
    memcpy(own, tests, count * sizeof *own);
    for (store_kind kind = first; kind < STORE_KINDS; kind++) {
        char name[80];
        snprintf(name, sizeof name, "%s over %s", what, store_kind_names[kind]);
        for (size_t i = 0; i < count; i++)
            own[i].setup_func = set_ups[kind];
        failed += _cmocka_run_group_tests(name, own, count, NULL, NULL);
    }
    free(own);
    return failed;
}

void refresh(sessile_session *s)
{
    sessile_error err;

    pthread_mutex_lock(&s->core->mutex);
    must(session_refresh_locked(s->core, &err), &err);
    pthread_mutex_unlock(&s->core->mutex);
}

void log_path(const place *p, const char *id, char out[600])
{
    snprintf(out, 600, "%s/agents/main/%s.jsonl", p->folder, id);
}
