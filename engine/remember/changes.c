/* changes.c: what became of a proposal, for the host. */
#include "remember/proposal.h"

#include <string.h>

#include "base/text.h"
#include "memory/kinds.h"

static void put_text(buf *out, const char *name, const char *data, size_t size)
{
    if (!size)
        return;
    buf_printf(out, ",\"%s\":", name);
    json_put_string(out, data, size);
}

static void put_ids(buf *out, const char *name, const entry_ids *ids)
{
    if (!ids->count)
        return;
    buf_printf(out, ",\"%s\":[", name);
    for (size_t i = 0; i < ids->count; i++) {
        buf_puts(out, i ? "," : "");
        memory_put_id(out, ids->at[i]);
    }
    buf_putc(out, ']');
}

/* What it replaces, and the entry that had its key. */
static void put_replaced(buf *out, const proposed *x)
{
    put_ids(out, "replaces", &x->ids);
    if (x->holder == SESSILE_NO_ID)
        return;
    if (x->ids.count)
        out->size--; /* the bracket */
    buf_puts(out, x->ids.count ? "," : ",\"replaces\":[");
    memory_put_id(out, x->holder);
    buf_putc(out, ']');
}

static const char *state_of(const proposed *x)
{
    if (x->state == PROPOSED_STALE)
        return "stale";
    if (x->state == PROPOSED_NOT_ADMITTED)
        return "not admitted";
    return x->kind == PROPOSED_WRITE && x->entry.pending ? "pending" : "live";
}

void proposal_put_changes(const proposal *p, buf *out, proposal_author_of author,
                          void *arg)
{
    static const char *const does[] = {"write", "delete", "confirm"};

    for (size_t i = 0; i < p->count; i++) {
        const proposed *x = &p->at[i];
        const sessile_memory_write_entry *e = &x->entry;
        proposal_author by = author(arg, x->step);
        buf_printf(out, "%s{\"do\":\"%s\",\"memory\":\"%s\"", i ? "," : "", does[x->kind],
                   proposal_memory_name(p, x->memory));
        if (x->kind == PROPOSED_WRITE) {
            if (x->id != SESSILE_NO_ID) {
                buf_puts(out, ",\"id\":");
                memory_put_id(out, x->id);
            }
            put_text(out, "key", e->key.data, e->key.size);
            put_text(out, "value", e->value.data, e->value.size);
            put_text(out, "also", e->also.data, e->also.size);
            buf_printf(out, ",\"kind\":\"%s\",\"source\":\"%s\"",
                       memory_kind_name(e->kind), memory_source_name(e->source));
            if (x->lowered)
                buf_puts(out, ",\"lowered\":true");
            put_replaced(out, x);
            put_ids(out, "contradicts", &x->contradicted);
        } else {
            put_ids(out, "ids", &x->ids);
        }
        buf_printf(out, ",\"state\":\"%s\"", state_of(x));
        if (x->state == PROPOSED_STALE)
            put_text(out, "why", x->stale, strlen(x->stale));
        else
            put_text(out, "why", x->why.data, x->why.size);
        put_text(out, "policy", by.name, strlen(by.name));
        buf_putc(out, '}');
    }
}
