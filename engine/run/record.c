/*
 * record.c: the JSON of the entries that runs write: compactions and refusals.
 *
 * session/compaction.h describes the list that a reader of the log needs. The rest of the
 * entry is for people: policy, reason, figures and removals. Its size depends on the
 * number of runs of messages in the list, not on their text.
 */
#include "run/run.h"

#include <inttypes.h>

#include "base/names.h"
#include "session/compaction.h"

/* Inserted messages that are still in the list are numbered from 1, in its order. */
typedef struct numbering {
    uint32_t *of; /* [n - 1]: number of inserted message n; 0: it is not in the list */
    size_t count, written;
} numbering;

static int numbering_init(numbering *n, const laws_input *in, const allocator *a)
{
    n->count = in->inserted_count;
    n->written = 0;
    n->of = NULL;
    if (n->count == 0)
        return 0;
    n->of = mem_zalloc(a, n->count * sizeof *n->of);
    if (!n->of)
        return -1;
    for (size_t i = 0; i < in->after->count; i++) {
        sessile_key key = in->after->items[i].key;
        if (key.entry == SESSILE_NO_ID && key.n >= 1 && key.n <= n->count)
            n->of[key.n - 1] = (uint32_t)++n->written;
    }
    return 0;
}

static sessile_key renumber(const numbering *n, sessile_key key)
{
    if (key.entry == SESSILE_NO_ID && key.n >= 1 && key.n <= n->count)
        key.n = n->of[key.n - 1];
    return key;
}

static sessile_status put_context(const run_core *run, const laws_input *in,
                                  const numbering *n, sessile_id self, buf *out,
                                  sessile_error *err)
{
    size_t count = in->after->count;
    sessile_key *keys = mem_alloc(run->alloc, (count ? count : 1) * sizeof *keys);
    if (!keys)
        return fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        keys[i] = renumber(n, in->after->items[i].key);
    buf_puts(out, "\"context\":");
    sessile_status status =
        compaction_put_keys(run->session, keys, count, self, out, err);
    mem_free(run->alloc, keys, (count ? count : 1) * sizeof *keys);
    return status;
}

static sessile_status put_keys(const run_core *run, const char *name,
                               const sessile_key *keys, size_t count, sessile_id self,
                               buf *out, sessile_error *err)
{
    if (count == 0)
        return SESSILE_OK;
    buf_printf(out, "\"%s\":", name);
    sessile_status status =
        compaction_put_keys(run->session, keys, count, self, out, err);
    buf_putc(out, ',');
    return status;
}

static sessile_status put_messages(const run_core *run, const laws_input *in,
                                   const numbering *n, sessile_id self, buf *out,
                                   sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    const char *separator = ",\"inserted\":[";
    for (size_t i = 0; !status && i < in->after->count; i++) {
        sessile_key key = in->after->items[i].key;
        if (key.entry != SESSILE_NO_ID)
            continue;
        const inserted_message *p = &in->inserted[key.n - 1];
        buf_printf(out, "%s{\"n\":%u,\"turn\":%u,\"tokens\":[%u,\"%s\"],", separator,
                   renumber(n, key).n, p->columns.turn, p->columns.tokens,
                   token_unit_name((token_unit)p->columns.unit));
        status = put_keys(run, "replaces", p->replaces, p->replace_count, self, out, err);
        if (!status)
            status = put_keys(run, "covers", p->covers, p->cover_count, self, out, err);
        buf_puts(out, "\"message\":");
        buf_put(out, p->json, p->size);
        buf_putc(out, '}');
        separator = ",";
    }
    if (n->written)
        buf_putc(out, ']');
    return status;
}

void record_step(const policy_step_info *step, buf *out)
{
    buf_puts(out, "{\"name\":");
    json_put_cstring(out, step->name);
    buf_puts(out, ",\"version\":");
    buf_put_i64(out, step->version);
    if (step->hash[0])
        buf_printf(out, ",\"hash\":\"%s\"", step->hash);
    buf_puts(out, ",\"options\":");
    buf_puts(out, step->options);
}

/* Name, version, source and options of the policies whose edits are in the list. */
static void put_policies(const run_core *run, buf *out)
{
    const char *separator = "";
    buf_puts(out, ",\"policy\":[");
    for (size_t i = 0; i < policy_step_count(run->policy); i++) {
        const policy_step_info *step = policy_step_get(run->policy, i);
        if (!(run->schedule.edited & (UINT32_C(1) << (i & 31))))
            continue;
        buf_puts(out, separator);
        record_step(step, out);
        buf_putc(out, '}');
        separator = ",";
    }
    buf_putc(out, ']');
}

sessile_id record_first_kept(const run_core *run, const laws_input *in)
{
    sessile_id left = run->result.removal_count ? run->result.removals[0].key.entry : 0;
    for (size_t i = 0; i < in->after->count; i++) {
        const item *it = &in->after->items[i];
        if (it->key.entry == SESSILE_NO_ID || it->key.n || it->key.entry < left)
            continue;
        return it->key.entry;
    }
    return SESSILE_NO_ID;
}

static sessile_status put_account(const run_core *run, sessile_id self, buf *out,
                                  sessile_error *err)
{
    static const char *const dispositions[] = {"lost", "covered", "replaced"};
    sessile_status status = SESSILE_OK;
    const char *separator = "";
    size_t size =
        (run->result.removal_count ? run->result.removal_count : 1) * sizeof(sessile_key);
    sessile_key *keys = mem_alloc(run->alloc, size);
    if (!keys)
        return fail_nomem(err);
    buf_puts(out, ",\"account\":{");
    for (int disposition = SESSILE_LOST; !status && disposition <= SESSILE_REPLACED;
         disposition++) {
        size_t count = 0;
        int64_t tokens = 0;
        for (size_t i = 0; i < run->result.removal_count; i++) {
            if ((int)run->result.removals[i].disposition != disposition)
                continue;
            keys[count++] = run->result.removals[i].key;
            tokens += run->result.removals[i].tokens;
        }
        if (count == 0)
            continue;
        buf_printf(out, "%s\"%s\":{\"tokens\":%lld,\"entries\":", separator,
                   dispositions[disposition], (long long)tokens);
        status = compaction_put_keys(run->session, keys, count, self, out, err);
        buf_putc(out, '}');
        separator = ",";
    }
    buf_putc(out, '}');
    mem_free(run->alloc, keys, size);
    return status;
}

/* The reason of the compact or flush whose edits are in the list, else the run's. For
 * "turn", which is no compaction, names the last one. */
static sessile_status put_reason(const run_core *run, buf *out, sessile_error *err)
{
    session_core *s = run->session;
    sessile_reason reason = run->schedule.stands != SESSILE_REASON_TURN
                                ? run->schedule.stands
                                : run->options.reason;
    sessile_status status = SESSILE_OK;

    if (run->fallback.runs) {
        buf_puts(out, ",\"fallback_of\":");
        json_put_cstring(out, run->fallback.refusal.policy);
    }
    buf_printf(out, ",\"reason\":\"%s\"", reason_name(reason));
    if (reason == SESSILE_REASON_EVENT && run->options.event) {
        buf_puts(out, ",\"event\":");
        json_put_string(out, run->options.event, run->options.event_size);
    }
    if (run->config.window > 0)
        buf_printf(out, ",\"room\":%lld", (long long)run_room(run));
    if (reason == SESSILE_REASON_TURN) {
        last_compaction last;
        char id[9];
        status = session_last_compaction_locked(
            s, run->turn.beside ? run->saw.entry : s->tree.head, &last, err);
        if (!status && last.id) {
            id_print(last.id, id);
            buf_printf(out, ",\"last_compact\":\"%s\"", id);
        }
    }
    return status;
}

static sessile_status put_list(run_core *run, sessile_id self, buf *out,
                               sessile_error *err)
{
    laws_input in;
    numbering n = {NULL, 0, 0};
    char upto[9];
    sessile_status status = state_laws(run->state, &in, err);
    if (!status && numbering_init(&n, &in, run->alloc))
        status = fail_nomem(err);
    if (!status)
        status = put_context(run, &in, &n, self, out, err);
    id_print(run->saw.entry, upto);
    buf_printf(out, ",\"upto\":\"%s\"", upto);
    if (!status)
        status = put_messages(run, &in, &n, self, out, err);
    if (!status)
        put_policies(run, out);
    if (!status)
        status = put_reason(run, out, err);
    if (run->options.instructions_size) {
        buf_puts(out, ",\"instructions\":");
        json_put_string(out, run->options.instructions, run->options.instructions_size);
    }
    if (run->result.summary_size) {
        buf_puts(out, ",\"summary\":");
        json_put_string(out, run->result.summary, run->result.summary_size);
    }
    if (run->result.outcome.first_kept != SESSILE_NO_ID)
        buf_printf(out, ",\"first_kept_entry_id\":\"%08" PRIx32 "\"",
                   run->result.outcome.first_kept);
    uint64_t now = run->session->store->os->clock_us(run->session->store->os->ud);
    buf_printf(out,
               ",\"tokens_before\":%lld,\"tokens_after\":%lld,\"token_source\":\"%s\","
               "\"duration_ms\":%llu",
               (long long)run->result.outcome.tokens_before,
               (long long)run->result.outcome.tokens_after,
               meter_source(state_before(run->state)),
               (unsigned long long)(now - run->started_us) / 1000);
    if (!status)
        status = put_account(run, self, out, err);
    if (n.of)
        mem_free(run->alloc, n.of, n.count * sizeof *n.of);
    return status;
}

sessile_status record_number(run_core *run, sessile_error *err)
{
    laws_input in;
    numbering n = {NULL, 0, 0};
    sessile_status status = state_laws(run->state, &in, err);
    if (!status && numbering_init(&n, &in, run->alloc))
        status = fail_nomem(err);
    for (size_t i = 0; !status && i < run->result.removal_count; i++)
        run->result.removals[i].by = renumber(&n, run->result.removals[i].by);
    if (n.of)
        mem_free(run->alloc, n.of, n.count * sizeof *n.of);
    return status;
}

sessile_status record_compaction(run_core *run, sessile_id self, int with_context,
                                 buf *out, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    buf_clear(out);
    buf_putc(out, '{');
    if (with_context)
        status = put_list(run, self, out, err);
    if (run->notes.changed) {
        buf_puts(out, with_context ? ",\"vars\":" : "\"vars\":");
        run_vars_write(run, out);
    }
    buf_putc(out, '}');
    if (!status && out->failed)
        status = fail_nomem(err);
    return status;
}

void record_refusal(const run_core *run, buf *out)
{
    buf_puts(out, "{\"policy\":");
    json_put_cstring(out, run->result.policy_name);
    /* Law 6 is judged after all hooks, so there is no hook to name. */
    if (run->result.outcome.hook[0])
        buf_printf(out, ",\"hook\":\"%s\"", run->result.outcome.hook);
    if (run->fallback.runs) {
        buf_puts(out, ",\"fallback_of\":");
        json_put_cstring(out, run->fallback.refusal.policy);
    }
    buf_printf(out, ",\"reason\":\"%s\"", reason_name(run->schedule.why));
    if (run->result.outcome.law)
        buf_printf(out, ",\"law\":%d,\"law_name\":\"%s\"", run->result.outcome.law,
                   law_name((law)run->result.outcome.law));
    if (run->result.outcome.law && run->result.judged.key.entry != SESSILE_NO_ID) {
        char key[SESSILE_KEY_SIZE];
        key_print(run->result.judged.key, key);
        buf_printf(out, ",\"entry\":\"%s\"", key);
    }
    buf_puts(out, ",\"message\":");
    json_put_cstring(out, run->result.message);
    buf_putc(out, '}');
}

sessile_status record_summary(run_core *run, sessile_error *err)
{
    const context *after = state_after(run->state);
    for (size_t i = 0; i < after->count; i++) {
        const item *it = &after->items[i];
        if (it->key.entry != SESSILE_NO_ID || !(it->flags & ITEM_SUMMARY))
            continue;
        sessile_slice text;
        sessile_status status =
            state_text((sessile_state *)run->state, it->key, &text, err);
        if (status)
            return status;
        json content = json_get(json_of(text.data, text.size), "content");
        if (content.type != JSON_STRING)
            return SESSILE_OK;
        buf b;
        buf_init(&b, run->alloc);
        if (json_string(&b, content) || b.failed) {
            buf_deinit(&b);
            return fail_nomem(err);
        }
        run->result.summary = mem_dup(run->alloc, b.size ? b.data : "", b.size);
        run->result.summary_size = run->result.summary ? b.size : 0;
        buf_deinit(&b);
        return run->result.summary ? SESSILE_OK : fail_nomem(err);
    }
    return SESSILE_OK;
}
