/* changes.c: what became of a proposal, for the host. */
#include "remember/proposal.h"

#include "base/names.h"
#include "memory/kinds.h"

/* A member with the ids of a list and one more (SESSILE_NO_ID: none), if there are any.
 */
static void put_ids(buf *out, const char *name, const entry_ids *ids, sessile_id more)
{
    const char *before = "";

    if (!ids->count && more == SESSILE_NO_ID)
        return;
    buf_printf(out, ",\"%s\":[", name);
    for (size_t i = 0; i < ids->count; i++, before = ",") {
        buf_puts(out, before);
        memory_put_id(out, ids->at[i]);
    }
    if (more != SESSILE_NO_ID) {
        buf_puts(out, before);
        memory_put_id(out, more);
    }
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
            memory_put_member(out, "key", e->key);
            memory_put_member(out, "value", e->value);
            memory_put_member(out, "also", e->also);
            buf_printf(out, ",\"kind\":\"%s\",\"source\":\"%s\"",
                       memory_kind_name(e->kind), memory_source_name(e->source));
            if (x->lowered)
                buf_puts(out, ",\"lowered\":true");
            put_ids(out, "replaces", &x->ids, x->holder);
            put_ids(out, "contradicts", &x->contradicted, SESSILE_NO_ID);
        } else {
            put_ids(out, "ids", &x->ids, SESSILE_NO_ID);
        }
        buf_printf(out, ",\"state\":\"%s\"", state_of(x));
        if (x->state == PROPOSED_STALE)
            memory_put_member(out, "why", slice_of(x->stale));
        else
            memory_put_member(out, "why", (sessile_slice){x->why.data, x->why.size});
        memory_put_member(out, "policy", slice_of(by.name));
        buf_putc(out, '}');
    }
}
