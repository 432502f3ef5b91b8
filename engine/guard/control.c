/*
 * control.c: the control log: opened, folded, written to.
 *
 * Owns what a fact looks like in the log, and that the fold is that of the whole log or
 * of nothing: after a failure it is read again from the first entry.
 */
#include "guard/control_names.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "codec/entry.h"
#include "log/log.h"
#include "session/handle.h"
#include "session/header.h"

#define CONTROL_LOG "000"
enum { FACT_MOST = 65536, TRIES = 8 };

static const char *const kind_names[CONTROL_KINDS] = {
    [CONTROL_GUARD] = "guard", [CONTROL_GRANT] = "grant", [CONTROL_KEY] = "key",
    [CONTROL_LOCK] = "lock",   [CONTROL_HOLD] = "hold",   [CONTROL_ERASURE] = "erasure",
};

/* A fact; its data is in the texts, with the names of users open. */
typedef struct held_fact {
    sessile_id id;
    control_kind kind;
    int64_t time_ms;
    size_t at, size;
} held_fact;

struct control {
    store_core *store;
    uint32_t pid;
    _Atomic uint64_t looked_us; /* 0: never, or it failed */
    pthread_mutex_t mutex;      /* guards what follows */
    log_t *log;                 /* NULL: not open, or there is none */
    int stale;                  /* the fold is not that of the log */
    sessile_id most;            /* entries that it had once: it never has fewer */
    _Atomic uint64_t version;
    held_fact *facts;
    size_t count, capacity;
    buf texts;
    buf names; /* of users, open: "ID NUL NAME-AS-JSON NUL" … */
};

const char *control_kind_name(control_kind kind)
{
    return (unsigned)kind < CONTROL_KINDS ? kind_names[kind] : "unknown";
}

static int kind_of(json value, control_kind *out)
{
    for (int i = 0; i < CONTROL_KINDS; i++)
        if (json_is(value, kind_names[i])) {
            *out = (control_kind)i;
            return 1;
        }
    return 0; /* of a newer version */
}

sessile_status control_open(control **out, store_core *st, sessile_error *err)
{
    control *c = mem_zalloc(&st->alloc, sizeof *c);

    *out = c;
    if (!c)
        return fail_nomem(err);
    c->store = st;
    c->pid = st->os->pid(st->os->ud);
    pthread_mutex_init(&c->mutex, NULL);
    buf_init(&c->texts, &st->alloc);
    buf_init(&c->names, &st->alloc);
    return SESSILE_OK;
}

void control_close(control *c)
{
    if (!c)
        return;
    log_close(c->log);
    mem_free(&c->store->alloc, c->facts, c->capacity * sizeof *c->facts);
    buf_wipe(&c->texts);
    buf_wipe(&c->names);
    pthread_mutex_destroy(&c->mutex);
    mem_free(&c->store->alloc, c, sizeof *c);
}

/* ------------------------------------------------------------------ the fold */

/* The name of a user whose pseudonym was opened before, as JSON, or NULL. */
static const char *known_name(const control *c, sessile_slice id)
{
    const char *at = c->names.data, *end = at + c->names.size;

    while (at < end) {
        const char *name = at + strlen(at) + 1;
        if (strlen(at) == id.size && !memcmp(at, id.data, id.size))
            return name;
        at = name + strlen(name) + 1;
    }
    return NULL;
}

/* What stands for a name that does not open: whose secret it was sealed with. */
static void put_lost(buf *out, json value)
{
    json secret = json_get(value, "secret");

    buf_puts(out, "{\"lost\":");
    buf_put(out, secret.at, secret.size);
    buf_putc(out, '}');
}

/* Appends a user's name as JSON, or what stands for one that is lost. */
static sessile_status put_open(control *c, json value, buf *out, sessile_error *err)
{
    sessile_slice id = control_pseudonym(value);
    const char *known;
    sessile_status status = SESSILE_OK;
    int lost;
    buf name;

    if (!id.size) {
        put_lost(out, value);
        return SESSILE_OK;
    }
    known = known_name(c, id);
    if (known) {
        buf_puts(out, known);
        return SESSILE_OK;
    }
    buf_init(&name, &c->store->alloc);
    status = control_open_user(c->store, value, &name, &lost, err);
    if (!status && lost) {
        put_lost(out, value);
    } else if (!status) {
        buf_put(&c->names, id.data, id.size);
        buf_putc(&c->names, 0);
        header_put_name(&c->names, (sessile_slice){name.data, name.size});
        buf_putc(&c->names, 0);
        known = c->names.failed ? NULL : known_name(c, id);
        if (known)
            buf_puts(out, known);
        else
            status = fail_nomem(err);
    }
    buf_wipe(&name);
    return status;
}

static sessile_status open_member(void *arg, json user, buf *out, sessile_error *err)
{
    return put_open(arg, user, out, err);
}

static sessile_status add_fact(control *c, const entry *e, sessile_error *err)
{
    json data = json_get(e->data, "data");
    size_t at = c->texts.size;
    sessile_status status;
    control_kind kind;

    if (e->type != ENTRY_FACT || !kind_of(json_get(e->data, "kind"), &kind))
        return SESSILE_OK;
    if (data.type != JSON_OBJECT)
        return fail(err, SESSILE_DAMAGED,
                    "fact %08" PRIx32 " of the control log says "
                    "nothing",
                    e->id);
    if (mem_grow(&c->store->alloc, (void **)&c->facts, &c->capacity, c->count + 1,
                 sizeof *c->facts))
        return fail_nomem(err);
    status = control_put_data(&c->texts, data, open_member, c, err);
    if (status)
        return status;
    if (kind == CONTROL_ERASURE)
        c->stale = 1; /* names that were open may be lost: all is read again */
    c->facts[c->count++] = (held_fact){e->id, kind, e->time_ms, at, c->texts.size - at};
    return SESSILE_OK;
}

static sessile_status visit(void *arg, sessile_id id, const char *text, size_t size,
                            sessile_error *err)
{
    control *c = arg;
    sessile_status status;
    entry e;

    status = entry_read(&e, text, size, err);
    if (!status && id == 0 && e.type != ENTRY_CONTROL)
        status = fail(err, SESSILE_DAMAGED, "it does not begin as the control log does");
    if (!status && id)
        status = add_fact(c, &e, err);
    c->version++;
    c->most = id >= c->most ? id + 1 : c->most;
    return status;
}

static void forget_fold(control *c)
{
    c->count = 0;
    buf_clear(&c->texts);
    buf_clear(&c->names);
    c->version++;
}

/* Opens the log and folds all of it; NOTFOUND: there is none. */
static sessile_status open_log(control *c, sessile_error *err)
{
    store_core *st = c->store;
    sessile_status status;
    uint64_t torn;

    log_close(c->log);
    c->log = NULL;
    c->stale = 1;
    forget_fold(c);
    status = log_open(&c->log, &st->backend, st->keys, CONTROL_FOLDER, CONTROL_LOG,
                      session_read_depth(st), st->config.timeout_ms, visit, c, &torn,
                      &st->alloc, err);
    if (!status)
        status = log_damage(c->log, err);
    if (status == SESSILE_NOTFOUND ? c->most > 0 : !status && log_count(c->log) < c->most)
        status = fail(err, SESSILE_DAMAGED,
                      "the control log was removed or cut: bring back a copy of it");
    c->stale = status != SESSILE_OK;
    return status;
}

/* The fold as the log is now. */
static sessile_status look(control *c, sessile_error *err)
{
    const os_table *os = c->store->os;
    sessile_status status = SESSILE_OK;
    uint64_t now_us = os->clock_us(os->ud);

    if (c->store->over_records)
        return SESSILE_OK;
    if (c->log && !c->stale) {
        status = log_refresh(c->log, visit, c, err);
        if (log_replaced(c->log)) {
            error_clear(err);
            status = SESSILE_OK;
            c->stale = 1;
        }
        if (status == SESSILE_NOTFOUND) { /* open_log() says whether it may be gone */
            error_clear(err);
            status = SESSILE_OK;
            c->stale = 1;
        }
        c->stale |= status != SESSILE_OK;
    }
    if (!status && (!c->log || c->stale)) {
        status = open_log(c, err);
        if (status == SESSILE_NOTFOUND) {
            error_clear(err);
            status = SESSILE_OK; /* nobody has decided anything */
        }
    }
    if (status)
        c->stale = 1;
    atomic_store(&c->looked_us, status ? 0 : now_us ? now_us : 1);
    return status;
}

static sessile_status look_if(control *c, int now, uint64_t *version, sessile_error *err)
{
    const os_table *os = c->store->os;
    sessile_error local = {0};
    sessile_status status = SESSILE_OK;
    uint64_t looked;

    err = err ? err : &local;
    looked = atomic_load(&c->looked_us);
    if (!now && looked && os->clock_us(os->ud) - looked < CONTROL_LOOK_US) {
        if (version)
            *version = atomic_load(&c->version);
        return SESSILE_OK;
    }
    pthread_mutex_lock(&c->mutex);
    looked = atomic_load(&c->looked_us);
    if (now || !looked || os->clock_us(os->ud) - looked >= CONTROL_LOOK_US)
        status = look(c, err);
    if (version)
        *version = c->version;
    pthread_mutex_unlock(&c->mutex);
    return status;
}

sessile_status control_look(control *c, uint64_t *version, sessile_error *err)
{
    return look_if(c, 0, version, err);
}

sessile_status control_look_now(control *c, uint64_t *version, sessile_error *err)
{
    return look_if(c, 1, version, err);
}

sessile_status control_each(control *c, control_kind kind, control_visit visit_fact,
                            void *arg, sessile_error *err)
{
    sessile_error local = {0};
    sessile_status status = SESSILE_OK;

    err = err ? err : &local;
    pthread_mutex_lock(&c->mutex);
    if (!atomic_load(&c->looked_us))
        status = look(c, err);
    for (size_t i = 0; !status && i < c->count; i++) {
        const held_fact *f = &c->facts[i];
        control_fact shown = {
            f->id, f->time_ms, f->kind, {c->texts.data + f->at, f->size, JSON_OBJECT}};
        if (f->kind == kind)
            status = visit_fact(arg, &shown, err);
    }
    pthread_mutex_unlock(&c->mutex);
    return status;
}

/* ------------------------------------------------------------------ writing */

static sessile_status make_log(store_core *st, sessile_error *err)
{
    sessile_slice name = {CONTROL_LOG, sizeof CONTROL_LOG - 1};
    sessile_slice agent = {"control", 7};
    sessile_status status;
    buf text;

    buf_init(&text, &st->alloc);
    header_put(&text, &(session_names){name, agent, {"", 0}, NAMES_CONTROL},
               &(header_fields){.now_ms = st->os->now_ms(st->os->ud)});
    status = text.failed ? fail_nomem(err)
                         : log_create(&st->backend, st->keys, CONTROL_FOLDER, CONTROL_LOG,
                                      text.data, text.size, st->config.timeout_ms,
                                      &st->alloc, err);
    buf_deinit(&text);
    if (status == SESSILE_EXISTS) { /* somebody else made it */
        error_clear(err);
        status = SESSILE_OK;
    }
    return status;
}

/* Takes the lock of the log as it is now, which is made when there is none. */
static sessile_status begin(control *c, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    for (int i = 0; i < TRIES; i++) {
        if (!c->log || c->stale)
            status = open_log(c, err);
        if (status == SESSILE_NOTFOUND) {
            error_clear(err);
            status = make_log(c->store, err);
            if (!status)
                status = open_log(c, err);
        }
        if (status)
            return status;
        log_set_timeout(c->log, c->store->config.timeout_ms);
        status = log_begin(c->log, visit, c, err);
        if (!status)
            return SESSILE_OK;
        c->stale = 1;
        if (!log_replaced(c->log))
            return status;
        error_clear(err);
        status = SESSILE_OK;
    }
    return fail(err, SESSILE_BUSY, "the control log is sealed again all the time");
}

sessile_status control_put_user(control *c, buf *out, sessile_slice user,
                                sessile_error *err)
{
    return control_seal_user(c->store, out, user, err);
}

static sessile_status append(control *c, const buf *text_data, sessile_id *id,
                             sessile_error *err)
{
    store_core *st = c->store;
    entry_fields fields = {.parent = 0,
                           .time_ms = st->os->now_ms(st->os->ud),
                           .type = ENTRY_FACT,
                           .source = SOURCE_HOST,
                           .tokens = -1};
    sessile_slice line;
    sessile_status status;
    buf text;

    buf_init(&text, &st->alloc);
    fields.id = *id = log_count(c->log);
    entry_put_data(&text, &fields, text_data);
    line = (sessile_slice){text.data, text.size};
    status = text.failed ? fail_nomem(err) : log_append(c->log, &line, 1, 0, err);
    /* It is written: want of memory from here on is made up for at the next look. */
    if (!status && visit(c, *id, line.data, line.size, NULL))
        c->stale = 1;
    if (c->stale)
        atomic_store(&c->looked_us, 0);
    buf_deinit(&text);
    return status;
}

/* Appends, also in a store without locks, where others may be faster. */
static sessile_status write(control *c, const buf *data, int sync, sessile_id *id,
                            sessile_error *err)
{
    enum { FASTER = 1000 };
    sessile_status status = SESSILE_CONFLICT;
    sessile_id target;

    for (int i = 0; status == SESSILE_CONFLICT && i < FASTER; i++) {
        error_clear(err);
        status = begin(c, err);
        if (status)
            return status;
        status = append(c, data, id, err);
        log_end(c->log);
    }
    if (status || !sync)
        return status;
    target = log_count(c->log);
    return log_sync(c->log, target, err);
}

sessile_status control_append(control *c, control_kind kind, const buf *data, int sync,
                              sessile_id *id, sessile_error *err)
{
    store_core *st = c->store;
    sessile_error local = {0};
    sessile_id own = SESSILE_NO_ID;
    sessile_status status;
    buf whole;

    err = err ? err : &local;
    if (data->failed)
        return fail_nomem(err);
    if (data->size < 2 || data->data[0] != '{' || data->size > FACT_MOST)
        return fail(err, SESSILE_INVALID, "a fact is an object of at most %d bytes",
                    FACT_MOST);
    if (st->over_records)
        return fail(err, SESSILE_UNSUPPORTED,
                    "the host keeps the records of this store: it has no control log");
    if (st->os->pid(st->os->ud) != c->pid)
        return fail(err, SESSILE_FORKED,
                    "this store was opened by process %" PRIu32 ": open it again here",
                    c->pid);
    buf_init(&whole, &st->alloc);
    buf_printf(&whole, "{\"kind\":\"%s\",\"data\":", control_kind_name(kind));
    buf_put(&whole, data->data, data->size);
    buf_putc(&whole, '}');
    if (whole.failed) {
        status = fail_nomem(err);
    } else {
        pthread_mutex_lock(&c->mutex);
        status = write(c, &whole, sync, &own, err);
        pthread_mutex_unlock(&c->mutex);
        if (status)
            fail_prefix(err, "the control log of the guard");
    }
    buf_deinit(&whole);
    if (id)
        *id = own;
    return status;
}
