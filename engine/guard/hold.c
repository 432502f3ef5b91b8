/*
 * hold.c: what must not be removed.
 *
 * A hold is a fact {"user","agent","session","reason","by","until_ms"}; a release is a
 * fact {"release":ID,"by"}. Owns which holds are in force, and what is under one. Must
 * never let something go because the control log cannot be read.
 *
 * What is under a hold is compared by its place in the store, since a removal may know no
 * names: a log that does not open, or whose user was forgotten.
 */
#include "guard/hold.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/names.h"
#include "base/text.h"
#include "guard/control.h"
#include "session/header.h"

enum { TEXTS = 5 };

/* A hold as it is folded; its texts are parts of holds.texts. */
typedef struct held {
    sessile_id id;
    int is_void; /* its user was forgotten: nothing is under it */
    int64_t time_ms, until_ms;
    struct {
        size_t at, size;
    } text[TEXTS];
} held;

typedef struct holds {
    store_core *store;
    held *list;
    size_t count, capacity;
    buf texts;
} holds;

/* The texts, as the fact and the row name them. */
static const char *const members[TEXTS] = {"agent", "user", "session", "reason", "by"};
static const size_t fields[TEXTS] = {
    offsetof(sessile_hold_row, agent), offsetof(sessile_hold_row, user),
    offsetof(sessile_hold_row, session), offsetof(sessile_hold_row, reason),
    offsetof(sessile_hold_row, by)};
enum { AGENT, USER, SESSION };

typedef struct hook {
    store_holds base;
    store_core *store;
    control *log;
} hook;

/* ------------------------------------------------------------------ the fold */

static sessile_slice text_of(const holds *h, const held *one, size_t which)
{
    return (sessile_slice){h->texts.data + one->text[which].at, one->text[which].size};
}

static void release(holds *h, uint64_t id)
{
    for (size_t i = 0; i < h->count; i++)
        if (h->list[i].id == id) {
            h->list[i] = h->list[--h->count];
            return;
        }
}

static sessile_status visit(void *arg, const control_fact *fact, sessile_error *err)
{
    holds *h = arg;
    int64_t until_ms = 0;
    uint64_t released;
    held *one;

    if (json_uint(json_get(fact->data, "release"), &released) == 0) {
        release(h, released);
        return SESSILE_OK;
    }
    if (mem_grow(&h->store->alloc, (void **)&h->list, &h->capacity, h->count + 1,
                 sizeof *h->list))
        return fail_nomem(err);
    (void)json_int(json_get(fact->data, "until_ms"), &until_ms);
    one = &h->list[h->count++];
    *one = (held){.id = fact->id, .time_ms = fact->time_ms, .until_ms = until_ms};
    one->is_void = control_is_lost(json_get(fact->data, "user"));
    for (size_t i = 0; i < TEXTS; i++) {
        json value = json_get(fact->data, members[i]);
        one->text[i].at = h->texts.size;
        if (value.type == JSON_STRING || value.type == JSON_OBJECT)
            (void)header_get_name(&h->texts, value);
        one->text[i].size = h->texts.size - one->text[i].at;
        buf_putc(&h->texts, 0);
    }
    return h->texts.failed ? fail_nomem(err) : SESSILE_OK;
}

static void holds_deinit(holds *h)
{
    mem_free(&h->store->alloc, h->list, h->capacity * sizeof *h->list);
    buf_wipe(&h->texts);
}

/* Those in force now. To be deinit'ed, also after an error. */
static sessile_status read_holds(holds *h, store_core *st, control *log,
                                 sessile_error *err)
{
    int64_t now_ms;
    sessile_status status;

    memset(h, 0, sizeof *h);
    h->store = st;
    buf_init(&h->texts, &st->alloc);
    status = control_look_now(log, NULL, err);
    if (!status)
        status = control_each(log, CONTROL_HOLD, visit, h, err);
    now_ms = h->count ? st->os->now_ms(st->os->ud) : 0;
    for (size_t i = 0; i < h->count;)
        if (h->list[i].is_void || (h->list[i].until_ms && h->list[i].until_ms <= now_ms))
            h->list[i] = h->list[--h->count];
        else
            i++;
    return status;
}

/* ------------------------------------------------------------------ what is under one */

static int in_folder(const store_core *st, sessile_slice agent, int sessions_alone,
                     const char *folder)
{
    char own[NAME_SIZE + sizeof MEMORY_FOLDER];

    keyring_folder_name(st->keys, agent, own);
    if (strcmp(own, folder) == 0)
        return 1;
    memcpy(own + strlen(own), MEMORY_FOLDER, sizeof MEMORY_FOLDER);
    return !sessions_alone && strcmp(own, folder) == 0;
}

static int of_user(const store_core *st, sessile_slice user, const store_removal *what)
{
    char secret[NAME_SIZE];

    keyring_user_name(st->keys, user, secret);
    if (secret[0])
        return strcmp(secret, what->secret) == 0;
    return slice_same(user, what->user);
}

static int is_under(const holds *h, const held *one, const store_removal *what)
{
    const store_core *st = h->store;
    sessile_slice agent = text_of(h, one, AGENT), user = text_of(h, one, USER);
    sessile_slice session = text_of(h, one, SESSION);
    char name[NAME_SIZE];

    if (!strcmp(what->folder, AUDIT_FOLDER)) /* it has events about anybody */
        return 1;
    /* Everything of a user, from whatever agent: what->folder is "". */
    if (what->folder[0] && agent.size &&
        !in_folder(st, agent, session.size > 0, what->folder))
        return 0;
    if (!what->folder[0] && !user.size)
        return 0;
    if (user.size && !of_user(st, user, what))
        return 0;
    if (!session.size || !what->folder[0])
        return 1;
    keyring_log_name(st->keys, user, session, name);
    return strcmp(name, what->name) == 0;
}

static sessile_status refuse(sessile_id id, sessile_error *err)
{
    char rule[32];

    snprintf(rule, sizeof rule, "hold:%08" PRIx32, id);
    return fail_rule(err, SESSILE_DENIED, rule,
                     "it is under the hold %08" PRIx32
                     ", so nothing of it is removed: release the hold first",
                     id);
}

static sessile_status check(store_holds *base, const store_removal *what,
                            sessile_error *err)
{
    hook *own = (hook *)base;
    holds h;
    sessile_status status = read_holds(&h, own->store, own->log, err);

    for (size_t i = 0; !status && i < h.count; i++)
        if (is_under(&h, &h.list[i], what))
            status = refuse(h.list[i].id, err);
    holds_deinit(&h);
    return status;
}

static void free_hook(store_holds *base)
{
    hook *own = (hook *)base;
    allocator a = own->store->alloc;

    control_close(own->log);
    mem_free(&a, own, sizeof *own);
}

sessile_status holds_attach(store_core *st, sessile_error *err)
{
    hook *own;
    sessile_status status;

    if (st->over_records || st->holds) /* nothing is kept there, so nothing is removed */
        return SESSILE_OK;
    own = mem_zalloc(&st->alloc, sizeof *own);
    if (!own)
        return fail_nomem(err);
    own->base = (store_holds){check, free_hook};
    own->store = st;
    status = control_open(&own->log, st, err);
    if (status) {
        mem_free(&st->alloc, own, sizeof *own);
        return status;
    }
    st->holds = &own->base;
    return SESSILE_OK;
}

control *holds_control(const store_core *st)
{
    return st->holds ? ((hook *)st->holds)->log : NULL;
}

static sessile_status log_of(store_core *st, control **out, sessile_error *err)
{
    if (!st->holds)
        return fail(
            err, SESSILE_UNSUPPORTED,
            "the host keeps the records of this store, so nothing is removed here "
            "that a hold could keep");
    *out = holds_control(st);
    return SESSILE_OK;
}

sessile_status hold_check_any(store_core *st, sessile_error *err)
{
    control *log = NULL;
    sessile_status status = log_of(st, &log, err);
    holds h;

    if (status)
        return status;
    status = read_holds(&h, st, log, err);
    if (!status && h.count)
        status = refuse(h.list[0].id, err);
    holds_deinit(&h);
    return status;
}

/* ------------------------------------------------------------------ the calls */

static void put_text(buf *out, const char *name, sessile_slice text)
{
    if (text.size) {
        buf_printf(out, ",\"%s\":", name);
        json_put_string(out, text.data, text.size);
    }
}

static sessile_status check_options(const store_core *st, const sessile_hold_options *o,
                                    sessile_error *err)
{
    const sessile_slice names[] = {o->agent, o->user, o->session};

    if (!o->agent.size && !o->user.size && !o->session.size)
        return fail(err, SESSILE_INVALID,
                    "a hold is of a user, an agent or a session: name one");
    for (size_t i = 0; i < 3; i++)
        if (names[i].size > st->limits.id)
            return fail(err, SESSILE_LIMIT, "a name has more bytes than the limit [id]");
    if (!o->reason.size)
        return fail(err, SESSILE_INVALID, "a hold needs a reason");
    if (o->reason.size > 4096 || o->by.size > 4096)
        return fail(err, SESSILE_LIMIT, "reason and by have at most 4096 bytes");
    if (!utf8_valid(o->reason.data, o->reason.size) ||
        !utf8_valid(o->by.data ? o->by.data : "", o->by.size))
        return fail(err, SESSILE_INVALID, "reason and by are UTF-8");
    if (o->until_ms && o->until_ms <= st->os->now_ms(st->os->ud))
        return fail(err, SESSILE_INVALID, "the hold would have ended already");
    return SESSILE_OK;
}

sessile_status hold_add(store_core *st, const sessile_hold_options *o, sessile_id *id,
                        sessile_error *err)
{
    sessile_slice agent = o->agent;
    control *log = NULL;
    sessile_status status = log_of(st, &log, err);
    buf data;

    if (!status)
        status = check_options(st, o, err);
    if (status)
        return status;
    if (o->session.size && !agent.size)
        agent = (sessile_slice){st->agent, strlen(st->agent)};
    buf_init(&data, &st->alloc);
    buf_puts(&data, "{\"reason\":");
    json_put_string(&data, o->reason.data, o->reason.size);
    put_text(&data, "by", o->by);
    if (agent.size) {
        buf_puts(&data, ",\"agent\":");
        header_put_name(&data, agent);
    }
    if (o->session.size) {
        buf_puts(&data, ",\"session\":");
        header_put_name(&data, o->session);
    }
    if (o->until_ms)
        buf_printf(&data, ",\"until_ms\":%" PRIi64, o->until_ms);
    if (o->user.size) {
        buf_puts(&data, ",\"user\":");
        status = control_put_user(log, &data, o->user, err);
    }
    buf_putc(&data, '}');
    if (!status && data.failed)
        status = fail_nomem(err);
    if (!status)
        status = control_append(log, CONTROL_HOLD, &data, 1, id, err);
    buf_wipe(&data);
    return status;
}

sessile_status hold_release(store_core *st, sessile_id id, sessile_slice by,
                            sessile_error *err)
{
    int is_there = 0;
    control *log = NULL;
    sessile_status status = log_of(st, &log, err);
    buf data;
    holds h;

    if (status)
        return status;
    if (by.size > 4096 || !utf8_valid(by.data ? by.data : "", by.size))
        return fail(err, SESSILE_INVALID, "by is UTF-8 of at most 4096 bytes");
    status = read_holds(&h, st, log, err);
    for (size_t i = 0; i < h.count; i++)
        is_there |= h.list[i].id == id;
    holds_deinit(&h);
    if (status)
        return status;
    if (!is_there)
        return fail(err, SESSILE_NOTFOUND, "there is no hold %08" PRIx32 " in force", id);
    buf_init(&data, &st->alloc);
    buf_printf(&data, "{\"release\":%" PRIu32, id);
    put_text(&data, "by", by);
    buf_putc(&data, '}');
    status = data.failed ? fail_nomem(err)
                         : control_append(log, CONTROL_HOLD, &data, 1, NULL, err);
    buf_wipe(&data);
    return status;
}

static int by_id(const void *a, const void *b)
{
    sessile_id x = ((const held *)a)->id, y = ((const held *)b)->id;
    return x < y ? -1 : x > y;
}

sessile_status hold_list(store_core *st, sessile_hold_row **out, size_t *count,
                         sessile_error *err)
{
    control *log = NULL;
    sessile_status status = log_of(st, &log, err);
    sessile_hold_row *rows = NULL;
    holds h;

    if (status)
        return status;
    status = read_holds(&h, st, log, err);
    if (!status) {
        rows = host_alloc(&st->alloc, (h.count + 1) * sizeof *rows + h.texts.size);
        if (!rows)
            status = fail_nomem(err);
    }
    if (!status) {
        char *text = (char *)(rows + h.count + 1);
        if (h.texts.size)
            memcpy(text, h.texts.data, h.texts.size);
        if (h.count)
            qsort(h.list, h.count, sizeof *h.list, by_id);
        for (size_t i = 0; i < h.count; i++) {
            const held *one = &h.list[i];
            rows[i] = (sessile_hold_row){
                .id = one->id, .time_ms = one->time_ms, .until_ms = one->until_ms};
            for (size_t k = 0; k < TEXTS; k++)
                *(sessile_slice *)((char *)&rows[i] + fields[k]) =
                    (sessile_slice){text + one->text[k].at, one->text[k].size};
        }
        *out = rows;
        *count = h.count;
    }
    holds_deinit(&h);
    return status;
}
