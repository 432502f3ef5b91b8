/*
 * read.c: reads the events of all lanes, in the order of their times.
 *
 * Of the lanes' next events the oldest is returned. So memory does not grow with the
 * audit, and a lane that others write to delays nobody.
 */
#include "audit/read_internal.h"

#include <inttypes.h>
#include <string.h>

#include "audit/audit.h"
#include "base/alloc.h"
#include "base/text.h"
#include "codec/entry.h"
#include "session/handle.h"
#include "session/header.h"

enum {
    POLL_MS = 50,             /* between two looks at the lanes, for a waiting reader */
    LANES_MS = 1000,          /* and whether there are new ones */
    CLOCK_MS = 60 * 60 * 1000 /* clocks of the writers are not further apart */
};

/* ------------------------------------------------------------------ all lanes */

/* The first part that may have events since then: a header says when its log began. */
static sessile_status find_begin(audit_reader_core *r, uint32_t lane,
                                 const lane_parts *parts, uint32_t *out,
                                 sessile_error *err)
{
    lane_head head;

    *out = parts->first[lane];
    if (!r->filter.since_ms)
        return SESSILE_OK;
    for (uint32_t part = parts->last[lane]; part > parts->first[lane]; part--) {
        sessile_error why;
        sessile_status status = lane_part_peek(&head, r->store, lane, part, &why);
        if (status == SESSILE_NOMEM || status == SESSILE_IO)
            return fail(err, status, "%s", why.message);
        if (!status && head.created_ms <= r->filter.since_ms - CLOCK_MS) {
            *out = part;
            break;
        }
    }
    return SESSILE_OK;
}

static sessile_status add_lane(audit_reader_core *r, uint32_t lane,
                               const lane_parts *parts, sessile_error *err)
{
    const audit_cursor *c = &r->cursor;
    lane_reader *l = mem_zalloc(&r->store->alloc, sizeof *l);
    sessile_status status = l ? SESSILE_OK : fail_nomem(err);

    if (status)
        return status;
    l->of = r;
    l->lane = lane;
    l->last = parts->last[lane];
    buf_init(&l->texts, &r->store->alloc);
    if (c->is[lane] && c->part[lane] >= parts->first[lane]) {
        l->part = c->part[lane];
        l->pass = c->entry[lane] + 1;
    } else {
        status = find_begin(r, lane, parts, &l->part, err);
    }
    if (status)
        lane_reader_free(l);
    else
        r->lanes[lane] = l;
    return status;
}

/* Lanes that are new, and all of them to be looked at again. */
static sessile_status find_lanes(audit_reader_core *r, sessile_error *err)
{
    lane_parts parts;
    sessile_status status = lane_parts_find(&parts, r->store, err);

    for (uint32_t i = 0; !status && i < LANE_MOST; i++) {
        if (!parts.there[i])
            continue;
        if (!r->lanes[i])
            status = add_lane(r, i, &parts, err);
        if (status)
            break;
        lane_reader *l = r->lanes[i];
        l->last = l->last < parts.last[i] ? parts.last[i] : l->last;
        if (l->broken && l->part < l->last && l->next == l->count)
            lane_reader_part(l, l->part + 1);
        l->at_end = l->broken;
    }
    r->ended = 0;
    return status;
}

/* The lane whose next event is the oldest; NULL: there is none now. */
static sessile_status oldest(audit_reader_core *r, lane_reader **out, sessile_error *err)
{
    *out = NULL;
    for (uint32_t i = 0; i < LANE_MOST; i++) {
        lane_reader *l = r->lanes[i];
        if (l && l->next == l->count && !l->at_end) {
            sessile_status status = lane_reader_fill(l, err);
            if (status)
                return status;
        }
        if (l && l->next < l->count &&
            (!*out || l->list[l->next].time_ms < (*out)->list[(*out)->next].time_ms))
            *out = l;
    }
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ events */

static int is_text(const audit_reader_core *r, sessile_slice wanted, json value)
{
    const char *text;
    size_t size;
    buf decoded;
    int is;

    if (!wanted.size)
        return 1;
    if (value.type != JSON_STRING)
        return 0;
    if (json_plain(value, &text, &size))
        return size == wanted.size && !memcmp(text, wanted.data, size);
    buf_init(&decoded, &r->store->alloc);
    is = !json_string(&decoded, value) && decoded.size == wanted.size &&
         !memcmp(decoded.data, wanted.data, decoded.size);
    buf_deinit(&decoded);
    return is;
}

static int is_of_user(const audit_reader_core *r, json user)
{
    if (is_text(r, r->filter.user, user))
        return 1;
    for (size_t i = 0; i < r->pseudonym_count; i++)
        if (json_is(user, r->pseudonyms[i]))
            return 1;
    return 0;
}

/* What is a user's: it names them as the owner, or it is their own. */
static int is_about(const audit_reader_core *r, json data)
{
    json owner = json_get(data, "owner"), user = json_get(data, "user");

    if (!r->filter.about.size)
        return 1;
    if (owner.type == JSON_STRING)
        return json_is(owner, r->owner) || is_text(r, r->filter.about, owner);
    for (size_t i = 0; i < r->about_count; i++)
        if (json_is(user, r->about[i]))
            return 1;
    return 0;
}

static int is_wanted(const audit_reader_core *r, const entry *e)
{
    const sessile_audit_filter *o = &r->filter;

    return (!o->since_ms || e->time_ms >= o->since_ms) &&
           (!o->until_ms || e->time_ms < o->until_ms) &&
           is_text(r, o->operation, json_get(e->data, "operation")) &&
           is_text(r, o->outcome, json_get(e->data, "outcome")) &&
           is_text(r, o->session, json_get(e->data, "session")) &&
           is_text(r, o->agent, json_get(e->data, "agent")) &&
           is_of_user(r, json_get(e->data, "user")) && is_about(r, e->data);
}

/* Appends a member, decoded, with a NUL; *size: of it. */
static void decode(buf *out, json data, const char *member, size_t *size)
{
    size_t before = out->size;

    if (json_string(out, json_get(data, member)))
        out->size = before;
    *size = out->size - before;
    buf_putc(out, 0);
}

static sessile_status give(audit_reader_core *r, const lane_reader *l, const entry *e,
                           sessile_audit_event *out, sessile_error *err)
{
    static const char *const members[] = {"operation", "outcome", "user",
                                          "agent",     "session", "code"};
    sessile_slice *to[] = {&out->operation, &out->outcome, &out->user,
                           &out->agent,     &out->session, &out->code};
    enum { MEMBERS = sizeof members / sizeof *members };
    size_t sizes[MEMBERS], json_at, at = 0;
    char part[LANE_NAME];
    sessile_status status = SESSILE_OK;

    buf_clear(&r->text);
    buf_clear(&r->id);
    lane_part_name(l->lane, l->part, part);
    buf_printf(&r->id, "%s/%08" PRIx32, part, e->id);
    for (size_t i = 0; i < MEMBERS; i++)
        decode(&r->text, e->data, members[i], &sizes[i]);
    json_at = r->text.size;
    buf_put(&r->text, e->data.at, e->data.size);
    if (r->text.failed || r->id.failed)
        return fail_nomem(err);
    for (size_t i = 0; i < MEMBERS; at += sizes[i++] + 1)
        *to[i] = (sessile_slice){r->text.data + at, sizes[i]};
    out->id = (sessile_slice){r->id.data, r->id.size};
    out->json = (sessile_slice){r->text.data + json_at, e->data.size};
    out->time_ms = e->time_ms;
    if (json_uint(json_get(e->data, "count"), &out->count) || !out->count)
        out->count = 1;
    if (r->filter.names && out->user.size)
        status = audit_names_find(&r->names, out->user, &out->name, err);
    return status;
}

sessile_status audit_read_next(audit_reader_core *r, sessile_audit_event *out,
                               sessile_error *err)
{
    sessile_status status = r->ended ? find_lanes(r, err) : SESSILE_OK;

    memset(out, 0, sizeof *out);
    while (!status && (!r->filter.limit || r->returned < r->filter.limit)) {
        lane_reader *l;
        const waiting *w;
        entry e;
        status = oldest(r, &l, err);
        if (status || !l)
            break;
        w = &l->list[l->next];
        if (!entry_read(&e, l->texts.data + w->at, w->size, NULL) && is_wanted(r, &e)) {
            status = give(r, l, &e, out, err);
            r->returned += !status;
        }
        if (status)
            break;
        l->next++;
        l->pass = w->id + 1;
        r->cursor.is[l->lane] = 1;
        r->cursor.part[l->lane] = l->part;
        r->cursor.entry[l->lane] = w->id;
        if (out->id.size)
            return SESSILE_OK;
    }
    r->ended = !status;
    return status;
}

/* ------------------------------------------------------------------ waiting */

static int never(void *arg)
{
    (void)arg;
    return 0;
}

/* 1: a lane has more bytes than were read of it, or another log. */
static sessile_status look(const lane_reader *l, int timeout_ms, int *changed,
                           sessile_error *err)
{
    store_core *st = l->of->store;
    char name[LANE_NAME];
    sessile_status status;

    if (!l->log || l->next < l->count) {
        *changed = 1;
        return SESSILE_OK;
    }
    lane_part_name(l->lane, l->part, name);
    status = log_watch(&st->backend, AUDIT_FOLDER, name, l->seen_bytes, st->os,
                       timeout_ms, never, NULL, changed, err);
    if (status == SESSILE_NOTFOUND) {
        error_clear(err);
        *changed = 1;
        status = SESSILE_OK;
    }
    return status;
}

/* What listing the logs again shows that is new. */
static sessile_status look_for_lanes(const audit_reader_core *r, int *changed,
                                     sessile_error *err)
{
    lane_parts parts;
    sessile_status status = lane_parts_find(&parts, r->store, err);

    for (uint32_t i = 0; !status && i < LANE_MOST; i++)
        if (parts.there[i] && (!r->lanes[i] || r->lanes[i]->last < parts.last[i]))
            *changed = 1;
    return status;
}

sessile_status audit_read_wait(audit_reader_core *r, int timeout_ms, int *changed,
                               sessile_error *err)
{
    const os_table *os = r->store->os;
    const uint64_t begin = os->clock_us(os->ud);
    sessile_status status = SESSILE_OK;
    uint64_t listed_ms = 0;

    audit_names_reset(&r->names);
    *changed = !r->ended;
    while (!status && !*changed) {
        uint64_t gone_ms = (os->clock_us(os->ud) - begin) / 1000;
        int left = gone_ms < (uint64_t)timeout_ms ? timeout_ms - (int)gone_ms : 0;
        for (uint32_t i = 0; !status && !*changed && i < LANE_MOST; i++)
            if (r->lanes[i])
                status = look(r->lanes[i], 0, changed, err);
        if (!status && !*changed && (!left || gone_ms - listed_ms >= LANES_MS)) {
            status = look_for_lanes(r, changed, err);
            listed_ms = gone_ms;
        }
        if (status || *changed || !left)
            break;
        os->sleep_ms(os->ud, left < POLL_MS ? left : POLL_MS);
    }
    return status;
}

/* ------------------------------------------------------------------ opening */

static void keep(buf *kept, sessile_slice text)
{
    buf_put(kept, text.data, text.size);
}

/* Copies the texts of the options. */
static sessile_status keep_filter(audit_reader_core *r, const sessile_audit_filter *from,
                                  sessile_error *err)
{
    sessile_audit_filter *o = &r->filter;
    sessile_slice *texts[] = {&o->user,    &o->about,   &o->operation,
                              &o->outcome, &o->session, &o->agent};
    sessile_status status = SESSILE_OK;
    size_t at = 0;

    *o = *from;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        keep(&r->kept, *texts[i]);
    buf_putc(&r->kept, 0);
    if (r->kept.failed)
        return fail_nomem(err);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; at += texts[i++]->size)
        texts[i]->data = r->kept.data + at;
    if (o->outcome.size && audit_outcome_of(o->outcome) < 0)
        return fail(err, SESSILE_INVALID,
                    "an outcome is success, failure, intent or unknown");
    if (o->user.size)
        status = pseudonym_find(r->store->keys, o->user, r->pseudonyms, PSEUDONYMS,
                                &r->pseudonym_count, err);
    if (!status && o->about.size) {
        pseudonym_under_name_key(r->store->keys, o->about, r->owner);
        status = pseudonym_find(r->store->keys, o->about, r->about, PSEUDONYMS,
                                &r->about_count, err);
    }
    return status;
}

static sessile_status begin(audit_reader_core *r, const sessile_audit_filter *options,
                            sessile_error *err)
{
    sessile_status status = keep_filter(r, options, err);

    if (!status && options->cursor.size)
        status = audit_cursor_parse(&r->cursor, options->cursor, err);
    if (!status)
        status = find_lanes(r, err);
    for (uint32_t i = 0; !status && i < LANE_MOST; i++)
        if (r->lanes[i])
            return SESSILE_OK;
    return status
               ? status
               : fail(err, SESSILE_NOTFOUND,
                      "there is no audit in this store: nothing was written to it yet");
}

sessile_status audit_read_open(audit_reader_core **out, store_core *st,
                               const sessile_audit_filter *options, sessile_error *err)
{
    audit_reader_core *r;
    sessile_status status;

    *out = NULL;
    if (st->over_records)
        return fail(err, SESSILE_UNSUPPORTED,
                    "this store is opened over records, and has no audit");
    r = mem_zalloc(&st->alloc, sizeof *r);
    if (!r)
        return fail_nomem(err);
    r->store = st;
    buf_init(&r->kept, &st->alloc);
    buf_init(&r->text, &st->alloc);
    buf_init(&r->id, &st->alloc);
    audit_names_init(&r->names, st);
    status = begin(r, options, err);
    if (status)
        audit_read_close(r);
    else
        *out = r;
    return status;
}

sessile_status audit_read_cursor(const audit_reader_core *r, buf *out, sessile_error *err)
{
    audit_cursor_print(&r->cursor, out);
    return out->failed ? fail_nomem(err) : SESSILE_OK;
}

void audit_read_close(audit_reader_core *r)
{
    const allocator *a;

    if (!r)
        return;
    a = &r->store->alloc;
    for (uint32_t i = 0; i < LANE_MOST; i++)
        if (r->lanes[i])
            lane_reader_free(r->lanes[i]);
    audit_names_deinit(&r->names);
    buf_deinit(&r->kept);
    buf_deinit(&r->text);
    buf_deinit(&r->id);
    mem_free(a, r, sizeof *r);
}
