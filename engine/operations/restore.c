/*
 * restore.c: lists, verifies and restores checkpoints.
 *
 * Restoring returns the state and moves the head to where it was. Later entries become a
 * branch; they are not lost. Must never return a state, nor move the head, unless the
 * checksum is right. Reports how the agent that restores differs from the one that wrote.
 */
#include "operations/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "base/text.h"
#include "codec/compress.h"
#include "operations/read.h"
#include "session/fold.h"
#include "session/life.h"

/* ------------------------------------------------------------------ verified */

/* The data of a checkpoint is an object whose last member is its checksum. */
static int is_sound(json data)
{
    static const char member[] = ",\"checksum\":\"";
    size_t tail = sizeof member - 1 + 64 + 2;
    char sum[65];

    if (data.type != JSON_OBJECT || data.size <= tail)
        return 0;
    const char *at = data.at + data.size - tail;
    if (memcmp(at, member, sizeof member - 1) || memcmp(at + tail - 2, "\"}", 2))
        return 0;
    checkpoint_checksum(data.at, (size_t)(at - data.at), sum);
    return memcmp(at + sizeof member - 1, sum, 64) == 0;
}

static sessile_status read_checkpoint(session_core *s, sessile_id id, buf *text, entry *e,
                                      sessile_error *err)
{
    sessile_status status = session_read_entry(s, id, text, e, err);

    if (!status && (e->type != ENTRY_CHECKPOINT || !is_sound(e->data)))
        return session_fail_damaged(s, id, err,
                                    "this checkpoint is not what was written");
    return status;
}

/* ------------------------------------------------------------------ a list */

typedef struct listing {
    session_core *s;
    const sessile_checkpoint_filter *filter;
    sessile_checkpoint_row *rows; /* texts: offsets, until they are packed */
    size_t count;
    buf texts, text;
} listing;

static sessile_slice keep_text(listing *l, json value)
{
    size_t at = l->texts.size;

    if (value.type == JSON_STRING)
        (void)json_string(&l->texts, value);
    else if (value.type != JSON_NONE)
        buf_put(&l->texts, value.at, value.size);
    sessile_slice kept = {(const char *)(uintptr_t)at, l->texts.size - at};
    buf_putc(&l->texts, 0);
    return kept;
}

static sessile_checkpoint_reason reason_of(json value)
{
    const char *text;
    size_t size;
    int r;

    if (!json_plain(value, &text, &size))
        return SESSILE_CHECKPOINT_MANUAL;
    for (r = SESSILE_CHECKPOINT_THRESHOLD; r > SESSILE_CHECKPOINT_MANUAL; r--) {
        const char *name = checkpoint_reason_name((sessile_checkpoint_reason)r);
        if (strlen(name) == size && !memcmp(name, text, size))
            break;
    }
    return (sessile_checkpoint_reason)r;
}

static int wanted(const sessile_checkpoint_filter *f, const sessile_checkpoint_row *row,
                  const char *name, size_t name_size)
{
    if (f->since_ms && row->time_ms < f->since_ms)
        return 0;
    if (f->until_ms && row->time_ms > f->until_ms)
        return 0;
    if (f->named && !name_size)
        return 0;
    if (f->name.size &&
        (f->name.size != name_size || memcmp(f->name.data, name, name_size) != 0))
        return 0;
    return !f->reason || *f->reason == row->reason;
}

static void fill(const entry *e, sessile_checkpoint_row *row)
{
    json tokens = json_get(e->data, "tokens");
    json_iter it = json_begin(tokens);
    uint64_t n;

    if (!json_uint(json_get(e->data, "messages"), &n))
        row->messages = n;
    if (json_next(&it) && !json_uint(it.value, &n) && n <= INT64_MAX)
        row->tokens = (int64_t)n;
    if (!json_uint(json_get(e->data, "bytes"), &n))
        row->state_bytes = n;
    else
        row->state_bytes = json_get(e->data, "state").size;
    row->head = read_earlier_id(e, "head");
    row->time_ms = e->time_ms;
    row->reason = reason_of(json_get(e->data, "reason"));
}

static sessile_status add_checkpoint(listing *l, const fact *one, sessile_error *err)
{
    sessile_checkpoint_row row = {.entry = one->about};
    entry e;
    sessile_status status = session_read_entry(l->s, one->about, &l->text, &e, err);

    if (status)
        return status;
    fill(&e, &row);
    row.sound = is_sound(e.data);
    if (!wanted(l->filter, &row, fact_name(&l->s->fold.facts, one), one->name_size))
        return SESSILE_OK;
    row.name = keep_text(l, json_get(e.data, "name"));
    row.version = keep_text(l, json_get(json_get(e.data, "agent"), "version"));
    row.event = keep_text(l, json_get(e.data, "event"));
    row.metadata = keep_text(l, json_get(e.data, "metadata"));
    l->rows[l->count++] = row;
    return l->texts.failed ? fail_nomem(err) : SESSILE_OK;
}

static void settle(sessile_slice *text, char *texts)
{
    text->data = texts + (uintptr_t)text->data;
}

static sessile_checkpoint_row *pack(listing *l)
{
    size_t size = l->count * sizeof *l->rows;
    sessile_checkpoint_row *out =
        host_alloc(&l->s->store->alloc, size + l->texts.size + 1);
    char *texts;

    if (!out)
        return NULL;
    if (size)
        memcpy(out, l->rows, size);
    texts = (char *)out + size;
    if (l->texts.size)
        memcpy(texts, l->texts.data, l->texts.size);
    for (size_t i = 0; i < l->count; i++) {
        settle(&out[i].name, texts);
        settle(&out[i].version, texts);
        settle(&out[i].event, texts);
        settle(&out[i].metadata, texts);
    }
    return out;
}

static sessile_status list_locked(listing *l, sessile_checkpoint_row **out, size_t *count,
                                  sessile_error *err)
{
    const allocator *a = &l->s->store->alloc;
    sessile_status status = SESSILE_OK;
    size_t n;
    fact *list;

    if (facts_in_force(&l->s->fold.facts, FACT_CHECKPOINT, a, &list, &n))
        return fail_nomem(err);
    if (n) {
        l->rows = mem_zalloc(a, n * sizeof *l->rows);
        if (!l->rows)
            status = fail_nomem(err);
    }
    for (size_t i = n; !status && i-- > 0;)
        status = add_checkpoint(l, &list[i], err);
    if (!status) {
        *out = pack(l);
        if (*out)
            *count = l->count;
        else
            status = fail_nomem(err);
    }
    mem_free(a, l->rows, n * sizeof *l->rows);
    mem_free(a, list, n * sizeof *list);
    return status;
}

sessile_status session_checkpoints(session_core *s,
                                   const sessile_checkpoint_filter *filter,
                                   sessile_checkpoint_row **out, size_t *count,
                                   sessile_error *err)
{
    static const sessile_checkpoint_filter all;
    listing l = {.s = s, .filter = filter ? filter : &all};
    sessile_status status = session_lock_fresh(s, err);

    if (status)
        return status;
    buf_init(&l.texts, &s->store->alloc);
    buf_init(&l.text, &s->store->alloc);
    status = list_locked(&l, out, count, err);
    session_unlock(s);
    buf_deinit(&l.texts);
    buf_deinit(&l.text);
    return status;
}

/* ------------------------------------------------------------------ who made it */

/* Appends a warning. */
static void warn(buf *out, const char *text)
{
    if (out->size)
        buf_putc(out, '\n');
    buf_puts(out, text);
}

static int same_text(const buf *mine, json theirs, buf *work)
{
    buf_clear(work);
    if (theirs.type == JSON_STRING)
        (void)json_string(work, theirs);
    return mine->size == work->size &&
           (!mine->size || !memcmp(mine->data, work->data, mine->size));
}

static int has_tool(const session_core *s, const buf *name, buf *work)
{
    json_iter it =
        json_begin(json_of(s->identity.info.tools.data, s->identity.info.tools.size));

    while (json_next(&it))
        if (same_text(name, it.value, work))
            return 1;
    return 0;
}

/* Tools of the checkpoint that the restoring agent does not have. */
static void compare_tools(const session_core *s, json tools, buf *out, buf *work)
{
    json_iter it = json_begin(tools);
    buf name;

    buf_init(&name, out->alloc);
    while (s->identity.info.tools.size && json_next(&it)) {
        buf_clear(&name);
        if (it.value.type == JSON_STRING && !json_string(&name, it.value) &&
            !has_tool(s, &name, work)) {
            warn(out, "the tool '");
            buf_put(out, name.data, name.size);
            buf_puts(out, "' that the agent had is not there any more");
        }
    }
    buf_deinit(&name);
}

static sessile_status compare_agent(const session_core *s, const entry *e, int force,
                                    buf *warnings, sessile_error *err)
{
    json agent = json_get(e->data, "agent"), version = json_get(agent, "version");
    const buf *mine = &s->identity.info.version;
    sessile_status status = SESSILE_OK;
    buf work;

    buf_init(&work, &s->store->alloc);
    if (mine->size && version.type == JSON_STRING && !same_text(mine, version, &work)) {
        char text[256];
        snprintf(text, sizeof text,
                 "checkpoint %08" PRIx32 " was made by version %.80s of the agent, and "
                 "this is %.80s",
                 e->id, work.size ? work.data : "", mine->data);
        if (force)
            warn(warnings, text);
        else
            status = session_name_error(
                s, fail(err, SESSILE_CONFLICT, "%s: force it, or use that version", text),
                err);
    }
    if (s->identity.info.config.size && json_get(agent, "config").type == JSON_STRING &&
        !same_text(&s->identity.info.config, json_get(agent, "config"), &work))
        warn(warnings, "the agent's configuration has changed since");
    compare_tools(s, json_get(agent, "tools"), warnings, &work);
    buf_deinit(&work);
    return status;
}

/* ------------------------------------------------------------------ restored */

typedef struct restoring {
    sessile_id id, head;
    int force;
    buf text, state, warnings;
    entry e;
} restoring;

static sessile_status read_state(session_core *s, restoring *r, sessile_error *err)
{
    json state = json_get(r->e.data, "state"), packed = json_get(r->e.data, "zstd");
    sessile_status status;
    const char *text;
    uint64_t bytes;
    size_t size;
    buf raw;

    if (packed.type == JSON_NONE) {
        if (state.type != JSON_NONE)
            buf_put(&r->state, state.at, state.size);
        return r->state.failed ? fail_nomem(err) : SESSILE_OK;
    }
    if (!json_plain(packed, &text, &size) || size > PTRDIFF_MAX / 2 ||
        json_uint(json_get(r->e.data, "bytes"), &bytes) || bytes > CHECKPOINT_STATE_MOST)
        return session_fail_damaged(s, r->id, err, "its state cannot be read");
    buf_init(&raw, &s->store->alloc);
    if (buf_reserve(&raw, size / 4 * 3 + 3)) {
        status = fail_nomem(err);
    } else {
        int64_t got = base64_decode(raw.data, text, size);
        status =
            got < 0 ? SESSILE_DAMAGED
                    : compress_read(&r->state, raw.data, (size_t)got, (size_t)bytes, err);
        if (status == SESSILE_DAMAGED)
            status = session_fail_damaged(s, r->id, err, "its state cannot be read");
    }
    buf_deinit(&raw);
    return status;
}

/* session_build: the head is moved to where it was, unless it is there. */
static sessile_status build_restore(void *arg, session_core *s, batch *b,
                                    sessile_error *err)
{
    restoring *r = arg;
    char data[80];
    sessile_status status = session_check_running_locked(s, err);

    if (!status)
        status = checkpoint_find_locked(s, r->id, err);
    buf_clear(&r->state);
    buf_clear(&r->warnings);
    if (!status)
        status = read_checkpoint(s, r->id, &r->text, &r->e, err);
    if (status)
        return status;
    r->head = read_earlier_id(&r->e, "head");
    if (r->head == SESSILE_NO_ID)
        return session_fail_damaged(s, r->id, err, "it names no entry before it");
    status = session_check_at(s, r->head, err);
    if (!status)
        status = compare_agent(s, &r->e, r->force, &r->warnings, err);
    if (!status)
        status = read_state(s, r, err);
    if (status || s->tree.head == r->head) {
        s->tree.base = status ? s->tree.base : r->head;
        return status;
    }
    int size = snprintf(data, sizeof data,
                        "{\"head\":\"%08" PRIx32 "\",\"restored\":\"%08" PRIx32 "\"}",
                        r->head, r->id);
    batch_put(b, s->tree.head, ENTRY_HEAD, SOURCE_HOST, data, (size_t)size);
    return SESSILE_OK;
}

static sessile_restored *make_restored(const session_core *s, const restoring *r)
{
    sessile_restored *out =
        host_alloc(&s->store->alloc, sizeof *out + r->state.size + r->warnings.size + 2);
    char *to;

    if (!out)
        return NULL;
    to = (char *)(out + 1);
    *out = (sessile_restored){.checkpoint = r->id, .head = r->head};
    out->state = (sessile_slice){to, r->state.size};
    if (r->state.size)
        memcpy(to, r->state.data, r->state.size);
    to[r->state.size] = 0;
    to += r->state.size + 1;
    out->warnings = (sessile_slice){to, r->warnings.size};
    if (r->warnings.size)
        memcpy(to, r->warnings.data, r->warnings.size);
    to[r->warnings.size] = 0;
    return out;
}

sessile_status session_restore(session_core *s, sessile_id id, int force,
                               sessile_restored **out, sessile_error *err)
{
    const allocator *a = &s->store->alloc;
    restoring r = {.id = id, .force = force, .head = SESSILE_NO_ID};
    sessile_status status;

    buf_init(&r.text, a);
    buf_init(&r.state, a);
    buf_init(&r.warnings, a);
    status = session_write(s, build_restore, &r, NULL, err);
    if (!status && (r.state.failed || r.warnings.failed))
        status = fail_nomem(err);
    if (!status) {
        *out = make_restored(s, &r);
        if (!*out)
            status = fail_nomem(err);
    }
    buf_deinit(&r.text);
    buf_deinit(&r.state);
    buf_deinit(&r.warnings);
    return status;
}
