/*
 * erasure.c: erasures of users in the control log: begun, completed; what they end there.
 *
 * Owns which logs an erasure has found, so that one that is completed after an
 * interruption says what was removed in all. Must never write the name of the user: where
 * users have secrets, that would make a new one.
 */
#include "guard/erasure.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "guard/hold.h"
#include "session/header.h"

enum { LOGS_IN_A_FACT = 1000, KEY_ID = 64 };

void erasure_subject(const store_core *st, sessile_slice user, char out[ERASURE_SUBJECT])
{
    snprintf(out, ERASURE_SUBJECT, "%016" PRIx64, keyring_name_hash(st->keys, &user, 1));
}

/* ------------------------------------------------------------------ reading */

static sessile_status add(erasure_record *r, const erasure_log *log, sessile_error *err)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->logs[i].hash == log->hash)
            return SESSILE_OK;
    if (mem_grow(&r->store->alloc, (void **)&r->logs, &r->capacity, r->count + 1,
                 sizeof *r->logs))
        return fail_nomem(err);
    r->logs[r->count++] = *log;
    return SESSILE_OK;
}

static sessile_status read_log(erasure_record *r, json row, sessile_error *err)
{
    erasure_log log = {.is_noted = 1};
    json_iter it = json_begin(row);
    const char *hex;
    uint64_t is_memory;
    size_t size;
    unsigned char hash[8];

    if (!json_next(&it) || !json_plain(it.value, &hex, &size) || size != 16 ||
        hex_decode(hash, hex, sizeof hash) || !json_next(&it) ||
        json_uint(it.value, &log.bytes) || !json_next(&it) ||
        json_uint(it.value, &is_memory))
        return SESSILE_OK; /* of a newer version */
    for (size_t i = 0; i < sizeof hash; i++)
        log.hash = log.hash << 8 | hash[i];
    log.is_memory = is_memory == 1;
    return add(r, &log, err);
}

/* The members of erasure_counts, as a fact names them. */
static const struct {
    const char *name;
    size_t at;
} members[] = {{"shared_entries", offsetof(erasure_counts, shared_entries)},
               {"consents", offsetof(erasure_counts, consents)},
               {"grants", offsetof(erasure_counts, grants)},
               {"access_keys", offsetof(erasure_counts, access_keys)},
               {"locks", offsetof(erasure_counts, locks)}};
enum { MEMBERS = sizeof members / sizeof *members };

static uint64_t *count_of(erasure_counts *c, size_t i)
{
    return (uint64_t *)(void *)((char *)c + members[i].at);
}

static void raise_to(erasure_counts *most, erasure_counts by)
{
    for (size_t i = 0; i < MEMBERS; i++)
        if (*count_of(&by, i) > *count_of(most, i))
            *count_of(most, i) = *count_of(&by, i);
}

void erasure_raise(erasure_record *r, const erasure_counts *found)
{
    raise_to(&r->most, *found);
}

static sessile_status read_begun(erasure_record *r, json data, sessile_error *err)
{
    json_iter it = json_begin(json_get(data, "logs"));
    sessile_status status = SESSILE_OK;
    erasure_counts found = {0};

    r->is_begun = 1;
    for (size_t i = 0; i < MEMBERS; i++)
        (void)json_uint(json_get(data, members[i].name), count_of(&found, i));
    raise_to(&r->most, found);
    while (!status && json_next(&it))
        status = read_log(r, it.value, err);
    return status;
}

static sessile_status visit(void *arg, const control_fact *f, sessile_error *err)
{
    erasure_record *r = arg;
    json step = json_get(f->data, "step");

    if (!json_is(json_get(f->data, "subject"), r->subject))
        return SESSILE_OK;
    if (json_is(step, "begin"))
        return read_begun(r, f->data, err);
    if (json_is(step, "forgotten")) {
        r->forgotten_ms = f->time_ms;
    } else if (json_is(step, "done")) {
        r->done_ms = f->time_ms;
        r->is_begun = 0;
        r->count = 0;
        r->most = (erasure_counts){0};
    }
    return SESSILE_OK;
}

sessile_status erasure_read(erasure_record *out, store_core *st, sessile_slice user,
                            sessile_error *err)
{
    sessile_status status;

    memset(out, 0, sizeof *out);
    out->store = st;
    out->user = user;
    erasure_subject(st, user, out->subject);
    out->log = holds_control(st);
    if (!out->log)
        return SESSILE_OK;
    status = control_look_now(out->log, NULL, err);
    return status ? status : control_each(out->log, CONTROL_ERASURE, visit, out, err);
}

void erasure_deinit(erasure_record *r)
{
    if (!r->store) /* it was not read */
        return;
    mem_free(&r->store->alloc, r->logs, r->capacity * sizeof *r->logs);
}

/* ------------------------------------------------------------------ writing */

sessile_status erasure_add_log(erasure_record *r, const char *folder, const char *name,
                               uint64_t bytes, int is_memory, sessile_error *err)
{
    const sessile_slice place[] = {{folder, strlen(folder)}, {name, strlen(name)}};
    const erasure_log log = {
        .hash = keyring_name_hash(r->store->keys, place, 2),
        .bytes = bytes,
        .is_memory = is_memory,
    };

    return add(r, &log, err);
}

static void put_step(const erasure_record *r, buf *out, const char *step)
{
    buf_clear(out);
    buf_printf(out, "{\"subject\":\"%s\",\"step\":\"%s\"", r->subject, step);
}

/* Ends the data, and appends it durably. */
static sessile_status append(erasure_record *r, control_kind kind, buf *data,
                             sessile_error *err)
{
    buf_putc(data, '}');
    return r->log ? control_append(r->log, kind, data, 1, NULL, err) : SESSILE_OK;
}

/* The next logs that are in no fact. */
static size_t put_logs(erasure_record *r, buf *out)
{
    size_t n = 0;

    buf_puts(out, ",\"logs\":[");
    for (size_t i = 0; i < r->count && n < LOGS_IN_A_FACT; i++) {
        erasure_log *log = &r->logs[i];
        if (log->is_noted)
            continue;
        buf_printf(out, "%s[\"%016" PRIx64 "\",%" PRIu64 ",%d]", n++ ? "," : "",
                   log->hash, log->bytes, log->is_memory);
        log->is_noted = 1;
    }
    buf_putc(out, ']');
    return n;
}

sessile_status erasure_begin(erasure_record *r, const erasure_counts *found,
                             sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    size_t n;
    buf data;

    raise_to(&r->most, *found);
    buf_init(&data, &r->store->alloc);
    do {
        put_step(r, &data, "begin");
        for (size_t i = 0; i < MEMBERS; i++)
            buf_printf(&data, ",\"%s\":%" PRIu64, members[i].name,
                       *count_of(&r->most, i));
        n = put_logs(r, &data);
        status = append(r, CONTROL_ERASURE, &data, err);
    } while (!status && n == LOGS_IN_A_FACT);
    r->is_begun = 1;
    buf_deinit(&data);
    return status;
}

sessile_status erasure_done(erasure_record *r, sessile_error *err)
{
    sessile_status status;
    buf data;

    buf_init(&data, &r->store->alloc);
    put_step(r, &data, "done");
    status = append(r, CONTROL_ERASURE, &data, err);
    buf_deinit(&data);
    return status;
}

sessile_status erasure_forgotten(store_core *st, sessile_slice user, sessile_error *err)
{
    erasure_record r = {.store = st, .log = holds_control(st)};
    char secret[NAME_SIZE];
    sessile_status status;
    buf data;

    erasure_subject(st, user, r.subject);
    buf_init(&data, &st->alloc);
    keyring_user_name(st->keys, user, secret);
    put_step(&r, &data, "forgotten");
    buf_printf(&data, ",\"secret\":\"%s\"", secret);
    status = append(&r, CONTROL_ERASURE, &data, err);
    buf_deinit(&data);
    return status;
}

/* ------------------------------------------------------------------ times */

static sessile_status visit_time(void *arg, const control_fact *f, sessile_error *err)
{
    erasure_times *t = arg;
    const char *secret;
    size_t size, i = 0;

    if (!json_is(json_get(f->data, "step"), "forgotten") ||
        !json_plain(json_get(f->data, "secret"), &secret, &size) || size >= NAME_SIZE)
        return SESSILE_OK;
    while (i < t->count &&
           (strlen(t->list[i].secret) != size || memcmp(t->list[i].secret, secret, size)))
        i++;
    if (mem_grow(t->alloc, (void **)&t->list, &t->capacity, i + 1, sizeof *t->list))
        return fail_nomem(err);
    memcpy(t->list[i].secret, secret, size);
    t->list[i].secret[size] = 0;
    t->list[i].ms = f->time_ms;
    t->count += i == t->count;
    return SESSILE_OK;
}

sessile_status erasure_times_read(erasure_times *out, store_core *st, sessile_error *err)
{
    control *log = holds_control(st);
    sessile_status status;

    memset(out, 0, sizeof *out);
    out->alloc = &st->alloc;
    if (!log)
        return SESSILE_OK;
    status = control_look_now(log, NULL, err);
    return status ? status : control_each(log, CONTROL_ERASURE, visit_time, out, err);
}

void erasure_times_deinit(erasure_times *t)
{
    mem_free(t->alloc, t->list, t->capacity * sizeof *t->list);
}

int64_t erasure_time_of(const erasure_times *t, const char *secret)
{
    for (size_t i = 0; i < t->count; i++)
        if (!strcmp(t->list[i].secret, secret))
            return t->list[i].ms;
    return 0;
}

/* ------------------------------------------------------------------ access */

/* A grant, a key or a lock that is in force. */
typedef struct given {
    sessile_id id;
    char key[KEY_ID];
} given;

typedef struct search {
    const erasure_record *of;
    given *list;
    size_t count, capacity;
} search;

static int is_of(const search *s, json data, const char *member)
{
    return control_is_user(s->of->store, json_get(data, member), s->of->user);
}

static int has_ended(const search *s, json data, const char *member)
{
    const store_core *st = s->of->store;
    int64_t until_ms;

    return !json_int(json_get(data, member), &until_ms) && until_ms > 0 &&
           until_ms <= st->os->now_ms(st->os->ud);
}

static void drop(search *s, sessile_id id, json key)
{
    for (size_t i = s->count; i-- > 0;)
        if (s->list[i].key[0] ? json_is(key, s->list[i].key) : s->list[i].id == id)
            s->list[i] = s->list[--s->count];
}

static sessile_status keep(search *s, const given *one, sessile_error *err)
{
    if (mem_grow(&s->of->store->alloc, (void **)&s->list, &s->capacity, s->count + 1,
                 sizeof *s->list))
        return fail_nomem(err);
    s->list[s->count++] = *one;
    return SESSILE_OK;
}

static sessile_status find_grant(void *arg, const control_fact *f, sessile_error *err)
{
    search *s = arg;
    uint64_t end;

    if (!json_uint(json_get(f->data, "end"), &end)) {
        drop(s, (sessile_id)end, (json){0});
        return SESSILE_OK;
    }
    return !has_ended(s, f->data, "until") &&
                   (is_of(s, f->data, "user") || is_of(s, f->data, "owner"))
               ? keep(s, &(given){.id = f->id}, err)
               : SESSILE_OK;
}

static sessile_status find_key(void *arg, const control_fact *f, sessile_error *err)
{
    search *s = arg;
    json revoked = json_get(f->data, "revoke");
    given one = {0};
    const char *id;
    size_t size;

    if (revoked.type == JSON_STRING) {
        drop(s, 0, revoked);
    } else if (json_plain(json_get(f->data, "key"), &id, &size) && size &&
               size < sizeof one.key && is_of(s, f->data, "user") &&
               !has_ended(s, f->data, "expires")) {
        memcpy(one.key, id, size);
        return keep(s, &one, err);
    }
    return SESSILE_OK;
}

static sessile_status find_lock(void *arg, const control_fact *f, sessile_error *err)
{
    search *s = arg;
    uint64_t end;

    if (!json_uint(json_get(f->data, "end"), &end)) {
        drop(s, (sessile_id)end, (json){0});
        return SESSILE_OK;
    }
    if (!is_of(s, f->data, "user"))
        return SESSILE_OK;
    s->count = 0; /* the newest says what is so */
    return json_get(f->data, "locked").type == JSON_FALSE
               ? SESSILE_OK
               : keep(s, &(given){.id = f->id}, err);
}

/* What is in force of one kind. */
static sessile_status find(search *s, const erasure_record *r, control_kind kind,
                           sessile_error *err)
{
    static const control_visit finds[CONTROL_KINDS] = {
        [CONTROL_GRANT] = find_grant,
        [CONTROL_KEY] = find_key,
        [CONTROL_LOCK] = find_lock,
    };

    memset(s, 0, sizeof *s);
    s->of = r;
    return control_each(r->log, kind, finds[kind], s, err);
}

static sessile_status end_each(erasure_record *r, control_kind kind, const search *s,
                               sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    buf data;

    buf_init(&data, &r->store->alloc);
    for (size_t i = 0; !status && i < s->count; i++) {
        buf_clear(&data);
        if (kind == CONTROL_KEY) {
            buf_printf(&data, "{\"revoke\":\"%s\"", s->list[i].key);
        } else if (kind == CONTROL_LOCK && !keyring_sealed(r->store->keys)) {
            buf_puts(&data, "{\"locked\":false,\"user\":"); /* it stands there in clear */
            header_put_name(&data, r->user);
        } else {
            buf_printf(&data, "{\"end\":%" PRIu32, s->list[i].id);
        }
        status = append(r, kind, &data, err);
    }
    buf_deinit(&data);
    return status;
}

sessile_status erasure_end_access(erasure_record *r, int dry_run, erasure_counts *counts,
                                  sessile_error *err)
{
    static const control_kind kinds[] = {CONTROL_GRANT, CONTROL_KEY, CONTROL_LOCK};
    uint64_t *const numbers[] = {&counts->grants, &counts->access_keys, &counts->locks};
    sessile_status status = SESSILE_OK;

    if (!r->log)
        return SESSILE_OK;
    for (size_t i = 0; !status && i < sizeof kinds / sizeof *kinds; i++) {
        search s;
        status = find(&s, r, kinds[i], err);
        *numbers[i] = s.count;
        if (!status && !dry_run)
            status = end_each(r, kinds[i], &s, err);
        mem_free(&r->store->alloc, s.list, s.capacity * sizeof *s.list);
    }
    return status;
}
