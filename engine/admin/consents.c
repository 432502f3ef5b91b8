/*
 * consents.c: the consents of users to what agents keep of them.
 *
 * A consent is an entry of the memory that it is about (memory/consent.c), sealed with
 * the secret of its user. So it is kept as long as the memory, and is erased with the
 * user. The entries about a consent outlive its withdrawal: that it was given can be
 * shown.
 */
#include "admin/consents.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "admin/memories.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"

sessile_status consent_set(store_core *st, const sessile_consent_options *o,
                           size_t *erased, sessile_error *err)
{
    const sessile_memory_options which = {
        .agent = o->agent, .user = o->user, .must_exist = !o->given};
    const sessile_memory_erase_options all = {.written_before_ms = INT64_MAX};
    sessile_status status;
    memory_core *m;

    if (!o->user.size)
        return fail(err, SESSILE_INVALID, "a consent is a user's: name the user");
    status = memory_open(&m, st, &which, err);
    if (status)
        return status;
    status = memory_consent(m, o->given, o->by, o->text, o->scope, err);
    if (!status && !o->given && !o->keep) {
        status = memory_erase(m, &all, erased, err);
        if (status && err)
            fail_prefix(err, "the consent is withdrawn, but what is kept was not erased");
    }
    memory_close(m);
    return status;
}

/* ------------------------------------------------------------------ the list */

enum { TEXTS = 5 };
static const size_t fields[TEXTS] = {
    offsetof(sessile_consent_row, agent), offsetof(sessile_consent_row, user),
    offsetof(sessile_consent_row, by), offsetof(sessile_consent_row, text),
    offsetof(sessile_consent_row, scope)};

/* Rows on their way; the texts of each follow one another in `texts`, with their NUL. */
typedef struct listing {
    const allocator *alloc;
    struct listed_consent {
        sessile_consent_row row;
        size_t at[TEXTS];
    } * rows;
    size_t count, capacity;
    buf texts;
} listing;

static sessile_slice *slice_of(sessile_consent_row *row, size_t which)
{
    return (sessile_slice *)((char *)row + fields[which]);
}

static void put_text(listing *l, struct listed_consent *to, size_t which,
                     const char *data, size_t size)
{
    to->at[which] = l->texts.size;
    slice_of(&to->row, which)->size = size;
    if (size)
        buf_put(&l->texts, data, size);
    buf_putc(&l->texts, 0);
}

/* What the newest entry about consent says. */
static sessile_status read_newest(memory_core *m, sessile_id id, listing *l,
                                  struct listed_consent *to, sessile_error *err)
{
    static const char *const names[] = {"by", "text", "scope"};
    unsigned char hash[32];
    char *text = NULL;
    size_t size = 0;
    entry e = {.time_ms = 0};
    sessile_status status = id ? memory_entry_text(m, id, &text, &size, err) : SESSILE_OK;

    if (!status && id)
        status = entry_read(&e, text, size, err);
    to->row.time_ms = e.time_ms;
    for (size_t i = 0; !status && i < 3; i++) {
        json value = id ? json_get(e.data, names[i]) : (json){0};
        size_t from = l->texts.size;
        if (value.type == JSON_STRING)
            (void)json_string(&l->texts, value);
        to->at[i + 2] = from;
        slice_of(&to->row, i + 2)->size = l->texts.size - from;
        buf_putc(&l->texts, 0);
    }
    if (!status && !l->texts.failed && to->row.text.size) {
        hash256(hash, l->texts.data + to->at[3], to->row.text.size, NULL, 0);
        hex_encode(to->row.text_hash, hash, sizeof hash);
    }
    host_free(text);
    return status;
}

static sessile_status add_row(void *arg, memory_core *m, sessile_error *err)
{
    listing *l = arg;
    struct listed_consent *to;
    sessile_memory_stats stats = {0};
    sessile_status status;

    if (!m->user_size)
        return SESSILE_OK; /* of no user: nobody can consent */
    status = memory_stats(m, &stats, err);
    if (status)
        return status;
    if (mem_grow(l->alloc, (void **)&l->rows, &l->capacity, l->count + 1,
                 sizeof *l->rows))
        return fail_nomem(err);
    to = &l->rows[l->count++];
    memset(to, 0, sizeof *to);
    to->row.given = stats.consented;
    status = memory_count_before(m, INT64_MAX, &to->row.entries, err);
    put_text(l, to, 0, m->agent, m->agent_size);
    put_text(l, to, 1, m->user, m->user_size);
    return status ? status
                  : read_newest(m, stats.consent == SESSILE_NO_ID ? 0 : stats.consent, l,
                                to, err);
}

static int compare(sessile_slice a, sessile_slice b)
{
    size_t most = a.size < b.size ? a.size : b.size;
    int order = most ? memcmp(a.data, b.data, most) : 0;
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

static int by_agent(const void *a, const void *b)
{
    const sessile_consent_row *x = a, *y = b;
    int order = compare(x->agent, y->agent);
    return order ? order : compare(x->user, y->user);
}

static sessile_status give(listing *l, sessile_consent_row **out, sessile_error *err)
{
    sessile_consent_row *rows =
        host_alloc(l->alloc, (l->count + 1) * sizeof *rows + l->texts.size);
    char *text;

    if (!rows || l->texts.failed) {
        host_free(rows);
        return fail_nomem(err);
    }
    text = (char *)(rows + l->count + 1);
    if (l->texts.size)
        memcpy(text, l->texts.data, l->texts.size);
    for (size_t i = 0; i < l->count; i++) {
        rows[i] = l->rows[i].row;
        for (size_t k = 0; k < TEXTS; k++)
            slice_of(&rows[i], k)->data = text + l->rows[i].at[k];
    }
    if (l->count)
        qsort(rows, l->count, sizeof *rows, by_agent);
    *out = rows;
    return SESSILE_OK;
}

sessile_status consent_list(store_core *st, sessile_slice user, sessile_consent_row **out,
                            size_t *count, sessile_error *err)
{
    listing l = {.alloc = &st->alloc};
    sessile_slice whose = {user.size ? user.data : NULL, user.size};
    uint64_t closed = 0;
    sessile_status status;

    buf_init(&l.texts, &st->alloc);
    status = memories_each(st, whose, add_row, &l, &closed, err);
    if (!status)
        status = give(&l, out, err);
    if (!status)
        *count = l.count;
    mem_free(&st->alloc, l.rows, l.capacity * sizeof *l.rows);
    buf_wipe(&l.texts);
    return status;
}
