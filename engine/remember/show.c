/* show.c: entries of memories as a policy sees them. */
#include "remember/proposal.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "memory/kinds.h"

/* Neighbours have at least this share of the score that an entry's own words give it. */
#define NEAR_SHARE 0.5

static void put_json(buf *out, const char *name, sessile_slice text)
{
    if (!text.size)
        return;
    buf_printf(out, ",\"%s\":", name);
    buf_put(out, text.data, text.size);
}

static void put_time(buf *out, const char *name, int64_t ms)
{
    if (ms)
        buf_printf(out, ",\"%s\":%" PRIi64, name, ms);
}

/* A share or a score; nothing if it is 0. */
static void put_number(buf *out, const char *name, double value)
{
    if (!(value > 0 && value < 1e9))
        return;
    buf_printf(out, ",\"%s\":", name);
    json_put_millionths(out, value);
}

sessile_status proposal_put_row(proposal *p, buf *out, size_t memory,
                                const sessile_memory_row *row, sessile_error *err)
{
    char id[9], time[TIME_SIZE];

    id_print(row->id, id);
    time_print(row->time_ms, time);
    buf_printf(out,
               "{\"id\":\"%s\",\"memory\":\"%s\",\"state\":\"%s\",\"kind\":\"%s\""
               ",\"source\":\"%s\"",
               id, proposal_memory_name(p, memory), memory_state_name(row->state),
               memory_kind_name(row->kind), memory_source_name(row->source));
    memory_put_member(out, "key", row->key);
    memory_put_member(out, "value", row->value);
    memory_put_member(out, "also", row->also);
    memory_put_member(out, "author", row->author);
    put_json(out, "from", row->from);
    put_json(out, "replaces", row->replaces);
    put_json(out, "metadata", row->metadata);
    put_time(out, "time", row->time_ms);
    buf_printf(out, ",\"day\":\"%.10s\"", time);
    put_time(out, "expires", row->expires_ms);
    put_time(out, "holds_from", row->holds_from_ms);
    put_time(out, "holds_until", row->holds_until_ms);
    put_number(out, "importance", row->importance);
    put_number(out, "score", row->score);
    put_number(out, "cover", row->cover);
    buf_printf(out, ",\"pinned\":%s,\"approved\":%s,\"confirmed\":%u}",
               row->pinned ? "true" : "false", row->approved ? "true" : "false",
               row->confirmed);
    return out->failed || proposal_show_entry(p, memory, row->id) ? fail_nomem(err)
                                                                  : SESSILE_OK;
}

/* ------------------------------------------------------------------ neighbours */

static sessile_status put_neighbours(proposal *p, buf *out, size_t memory,
                                     const sessile_memory_row *entry, sessile_error *err)
{
    const sessile_memory_search_options options = {.limit = PROPOSAL_NEAR + 1};
    sessile_memory_row *hits = NULL;
    double own = 0;
    size_t count = 0, put = 0;
    sessile_status status;

    status =
        memory_search(p->memories[memory], entry->value, &options, &hits, &count, err);
    for (size_t i = 0; i < count; i++)
        if (hits[i].id == entry->id)
            own = hits[i].score;
    buf_putc(out, '[');
    for (size_t i = 0; !status && i < count && put < PROPOSAL_NEAR; i++) {
        if (hits[i].id == entry->id || hits[i].score < NEAR_SHARE * own)
            continue;
        if (put++)
            buf_putc(out, ',');
        status = proposal_put_row(p, out, memory, &hits[i], err);
    }
    buf_putc(out, ']');
    host_free(hits);
    return !status && out->failed ? fail_nomem(err) : status;
}

sessile_status proposal_put_near(proposal *p, buf *out, size_t memory, sessile_id id,
                                 int *live, sessile_error *err)
{
    sessile_memory_row *entry = NULL;
    int may;
    sessile_status status = proposal_may_read(p, memory, &may, err);

    *live = 0;
    if (!status && !may)
        status = fail(err, SESSILE_DENIED, "the user does not consent any more");
    if (!status)
        status = memory_get(p->memories[memory], id, &entry, err);
    *live = !status && entry->state == SESSILE_MEMORY_LIVE;
    if (*live) {
        status = proposal_put_row(p, out, memory, entry, err);
        buf_putc(out, ',');
        if (!status)
            status = put_neighbours(p, out, memory, entry, err);
    }
    host_free(entry);
    return status;
}

/* ------------------------------------------------------------------ proposed entries */

void proposal_put_proposed(const proposal *p, buf *out, size_t i)
{
    const proposed *x = &p->at[i];
    const sessile_memory_write_entry *e = &x->entry;

    buf_printf(out, "{\"memory\":\"%s\",\"kind\":\"%s\",\"source\":\"%s\"",
               proposal_memory_name(p, x->memory), memory_kind_name(e->kind),
               memory_source_name(e->source));
    memory_put_member(out, "key", e->key);
    memory_put_member(out, "value", e->value);
    memory_put_member(out, "also", e->also);
    put_json(out, "metadata", e->metadata);
    put_number(out, "importance", e->importance);
    if (x->ids.count) {
        buf_puts(out, ",\"replaces\":");
        memory_put_ids(out, x->ids.at, x->ids.count);
    }
    buf_printf(out, ",\"lowered\":%s,\"pending\":%s}", x->lowered ? "true" : "false",
               x->waits ? "true" : "false");
}
