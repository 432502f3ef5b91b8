/*
 * recall.c: entries of memories quoted in a session's context.
 *
 * First they are found, for the question and the context as they are then. Then, under
 * the lock of the session's log, each is read again and judged: what ended meanwhile, or
 * was recalled by somebody else, is left out. Only then the message is written, behind
 * the newest one. So it has what the memories say at that moment, and an entry never
 * appears twice in a context.
 *
 * The mutex of a session is taken before those of memories, and that of a user's before
 * that of the one for all.
 */
#include "operations/recall.h"

#include <inttypes.h>
#include <string.h>

#include "context/laws.h"
#include "memory/quote.h"
#include "memory/memory.h"
#include "operations/recall_screen.h"
#include "session/count.h"
#include "session/fold.h"
#include "session/life.h"
#include "session/read.h"

enum { MEMORIES = SESSILE_RECALL_MEMORIES_MAX, WRITTEN = 8, FOUND = 24 };

/* Entries that a context has from recalled messages: of the user's memory and the one
 * for all. */
typedef struct known {
    sessile_id *ids[2];
    size_t count[2], capacity[2];
    const allocator *alloc;
    size_t messages; /* recalled messages that are in the context */
} known;

typedef struct recall {
    session_core *session;
    memory_core *const *memories;
    size_t memory_count;
    const sessile_recall_options *options;
    memory_core *locked[MEMORIES]; /* NULL: not, or its user does not consent */
    size_t denied;
    known known;
    buf question;
    row_list rows;                    /* found; or the one that is being judged */
    const sessile_recall_item *items; /* to be written */
    size_t item_count, most;
    uint64_t budget;
    recall_screened screened; /* of items */
    buf text, of, message, scratch;
    sessile_recall_outcome *out;
} recall;

/* ------------------------------------------------------------------ memories */

/* 0: of the user, 1: of the agent alone. */
static int place_of(const memory_core *m)
{
    return m->user_size == 0;
}

sessile_status recall_check_memories(const session_core *s, memory_core *const *memories,
                                     size_t memory_count, sessile_error *err)
{
    const session_identity *own = &s->identity;
    for (size_t i = 0; i < memory_count; i++) {
        const memory_core *m = memories[i];
        if (m->store != s->store || m->agent_size != own->agent_size ||
            memcmp(m->agent, own->agent, own->agent_size) != 0 ||
            (m->user_size && (m->user_size != own->user_size ||
                              memcmp(m->user, own->user, own->user_size) != 0)))
            return session_fail(s, err, SESSILE_INVALID,
                                "memory %zu is of another agent, user or store: open "
                                "those of the session's agent",
                                i + 1);
        if (i && place_of(m) == place_of(memories[0]))
            return fail(err, SESSILE_INVALID, "the same memory is given twice");
    }
    return SESSILE_OK;
}

static void unlock_memories(recall *r)
{
    for (size_t i = 0; i < r->memory_count; i++)
        if (r->locked[i])
            memory_unlock(r->locked[i]);
    memset(r->locked, 0, sizeof r->locked);
}

static sessile_status lock_memories(recall *r, sessile_error *err)
{
    int swapped = r->memory_count == 2 && place_of(r->memories[0]) != 0;
    sessile_status status = SESSILE_OK;

    r->denied = 0;
    for (size_t k = 0; !status && k < r->memory_count; k++) {
        size_t i = swapped ? 1 - k : k;
        memory_core *m = r->memories[i];
        status = memory_lock_fresh(m, err);
        if (status)
            break;
        r->locked[i] = m;
        if (m->user_size && !m->fold->consented) {
            memory_unlock(m);
            r->locked[i] = NULL;
            r->denied++;
        }
    }
    if (status)
        unlock_memories(r);
    return status;
}

/* ------------------------------------------------------------------ the context */

static int know(known *k, int place, sessile_id id)
{
    if (mem_grow(k->alloc, (void **)&k->ids[place], &k->capacity[place],
                 k->count[place] + 1, sizeof **k->ids))
        return -1;
    k->ids[place][k->count[place]++] = id;
    return 0;
}

static int knows(const known *k, int place, sessile_id id)
{
    for (size_t i = 0; i < k->count[place]; i++)
        if (k->ids[place][i] == id)
            return 1;
    return 0;
}

static int refuses(void *arg, size_t memory, sessile_id id)
{
    const recall *r = arg;
    return knows(&r->known, place_of(r->memories[memory]), id);
}

/* Takes in the entries that a message of the context quotes. */
static sessile_status know_message(recall *r, sessile_id id, sessile_error *err)
{
    entry e;
    json_iter it;
    json metadata;
    sessile_status status;

    status = session_load_locked(r->session, id, err);
    if (!status)
        status = session_read_entry(r->session, id, &r->scratch, &e, err);
    if (status)
        return status;
    metadata = json_get(e.data, "metadata");
    if (e.source != SOURCE_POLICY || !json_is(json_get(metadata, "kind"), "memory"))
        return SESSILE_OK; /* somebody else's message of that kind */
    r->known.messages++;
    for (it = json_begin(json_get(metadata, "of")); json_next(&it);) {
        int place = !json_is(json_get(it.value, "memory"), "user");
        const char *text;
        size_t size;
        sessile_id entry;
        if (json_plain(json_get(it.value, "id"), &text, &size) &&
            !id_parse(text, size, &entry) && know(&r->known, place, entry))
            return fail_nomem(err);
    }
    return SESSILE_OK;
}

static sessile_status know_context(recall *r, const context *c, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    r->known.count[0] = r->known.count[1] = r->known.messages = 0;
    for (size_t i = 0; !status && i < c->count; i++) {
        const item *it = &c->items[i];
        if (it->role == SESSILE_USER && !it->key.n && (it->flags & ITEM_KIND) &&
            !(it->flags & ITEM_SUMMARY))
            status = know_message(r, it->key.entry, err);
    }
    return status;
}

/* The text of the newest message of the user, unless the caller asks something else. */
static sessile_status find_question(recall *r, const context *c, sessile_error *err)
{
    size_t last = context_last_user(c);
    json content;
    json_iter it;
    sessile_status status;

    buf_clear(&r->question);
    buf_put(&r->question, r->options->question.data, r->options->question.size);
    if (r->options->question.size || last == c->count)
        return r->question.failed ? fail_nomem(err) : SESSILE_OK;
    buf_clear(&r->message);
    status = session_message_locked(r->session, c->items[last].key, &r->message, err);
    if (status)
        return status;
    content = json_get(json_of(r->message.data, r->message.size), "content");
    if (content.type == JSON_STRING && json_string(&r->question, content))
        return fail_nomem(err);
    for (it = json_begin(content); content.type == JSON_ARRAY && json_next(&it);) {
        json text = json_get(it.value, "text");
        if (text.type == JSON_STRING && json_string(&r->question, text))
            return fail_nomem(err);
        buf_putc(&r->question, '\n');
    }
    return r->question.failed ? fail_nomem(err) : SESSILE_OK;
}

/* ------------------------------------------------------------------ finding */

static sessile_status find(recall *r, size_t limit, sessile_error *err)
{
    const context *c;
    sessile_status status = session_lock_fresh(r->session, err);
    if (status)
        return status;
    status = session_context_locked(r->session, &c, err);
    if (!status)
        status = know_context(r, c, err);
    if (!status)
        status = find_question(r, c, err);
    session_unlock(r->session);
    if (!status)
        status = lock_memories(r, err);
    if (status)
        return status;
    status = memory_find_several(
        &(memory_several){.at = r->locked,
                          .count = r->memory_count,
                          .options = r->options,
                          .question = {r->question.data, r->question.size},
                          .start = r->options->start && !r->known.messages,
                          .refuses = refuses,
                          .arg = r},
        limit, &r->rows, err);
    unlock_memories(r);
    return status;
}

/* ------------------------------------------------------------------ writing */

/* The message with the lines and entries gathered so far, and its tokens. */
static sessile_status make_message(recall *r, int64_t now_ms, message *columns,
                                   token_count *tokens, sessile_error *err)
{
    char time[TIME_SIZE];
    sessile_status status;

    time_print(now_ms, time);
    buf_clear(&r->message);
    buf_puts(&r->message, "{\"role\":\"user\",\"content\":");
    json_put_string(&r->message, r->text.data, r->text.size);
    buf_puts(&r->message, ",\"metadata\":{\"kind\":\"memory\",\"of\":[");
    buf_put(&r->message, r->of.data, r->of.size);
    buf_printf(&r->message, "],\"at\":\"%s\"}}", time);
    if (r->message.failed || r->text.failed || r->of.failed)
        return fail_nomem(err);
    status = message_read(columns, r->message.data, r->message.size, NULL, NULL, NULL,
                          &r->session->store->alloc, err);
    if (!status)
        *tokens = session_count_locked(r->session, columns);
    return status;
}

/* Adds the line of an item, unless a law refuses it. */
static sessile_status add_item(recall *r, const sessile_recall_item *item, int64_t now_ms,
                               sessile_error *err)
{
    memory_core *m = r->locked[item->memory];
    size_t text = r->text.size, of = r->of.size;
    int place = place_of(r->memories[item->memory]);
    token_count tokens;
    message columns;
    uint32_t record;
    sessile_status status;

    if (!m)
        return SESSILE_OK;
    record = states_find(&m->fold->states, item->id);
    if (record == STATE_NONE)
        return memory_name_error(
            m, fail(err, SESSILE_NOTFOUND, "%08" PRIx32 " is no entry here", item->id),
            err);
    if (recall_is_refused(&r->screened, (size_t)(item - r->items)) ||
        !memory_may_recall(m, record, now_ms, r->options->trust) ||
        knows(&r->known, place, item->id)) {
        r->out->not_allowed++;
        return SESSILE_OK;
    }
    rows_deinit(&r->rows);
    status = rows_add(&r->rows, m, record, now_ms, err);
    if (!status && rows_place(&r->rows))
        status = fail_nomem(err);
    if (status)
        return status;
    recall_replace(&r->screened, (size_t)(item - r->items), &r->rows.at[0].value);
    if (!text)
        buf_puts(&r->text, QUOTE_OPENING);
    quote_put_entry(&r->text, &r->rows.at[0]);
    buf_printf(&r->of, "%s{\"memory\":\"%s\",\"id\":\"%08" PRIx32 "\"}", of ? "," : "",
               place ? "agent" : "user", item->id);
    status = make_message(r, now_ms, &columns, &tokens, err);
    if (status)
        return status;
    if ((uint64_t)tokens.tokens > r->budget) {
        r->text.size = text;
        r->of.size = of;
        r->out->not_fitting++;
        return SESSILE_OK;
    }
    r->out->recalled++;
    return know(&r->known, place, item->id) ? fail_nomem(err) : SESSILE_OK;
}

static sessile_status check_place(session_core *s, const context *c, sessile_error *err)
{
    pairing pairs;
    sessile_status status = SESSILE_OK;
    pairing_init(&pairs, &s->store->alloc);
    if (pairing_make(&pairs, c))
        status = fail_nomem(err);
    else if (pairs.first_open < c->count)
        status = session_fail(s, err, SESSILE_CONFLICT,
                              "the newest message has calls whose results are to come: "
                              "recall after them");
    pairing_deinit(&pairs);
    return status;
}

/* A session_build: may be called again. */
static sessile_status build(void *arg, session_core *s, batch *b, sessile_error *err)
{
    recall *r = arg;
    sessile_recall_outcome *out = r->out;
    token_count tokens;
    message columns;
    const context *c;
    sessile_status status = session_check_running_locked(s, err);
    buf_clear(&r->text);
    buf_clear(&r->of);
    out->recalled = out->not_fitting = out->not_allowed = 0;
    out->entry = SESSILE_NO_ID;
    if (!status)
        status = session_check_base_locked(s, s->tree.base, 0, err);
    if (!status)
        status = session_context_locked(s, &c, err);
    if (!status)
        status = check_place(s, c, err);
    if (!status)
        status = know_context(r, c, err);
    if (!status)
        status = lock_memories(r, err);
    if (status)
        return status;
    for (size_t i = 0; !status && i < r->item_count && out->recalled < r->most; i++)
        status = add_item(r, &r->items[i], b->now_ms, err);
    unlock_memories(r);
    if (status || !out->recalled)
        return status;
    status = make_message(r, b->now_ms, &columns, &tokens, err);
    if (status)
        return status;
    out->tokens = (uint64_t)tokens.tokens;
    out->entry = batch_message_from(b, s->tree.head, SOURCE_POLICY, r->message.data,
                                    r->message.size, &columns, tokens);
    write_labels_put(&r->screened.labels, b, 0, out->entry);
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ the two calls */

static sessile_status begin(recall *r, session_core *s, memory_core *const *memories,
                            size_t memory_count, const sessile_recall_options *options,
                            sessile_error *err)
{
    const allocator *a = &s->store->alloc;

    memset(r, 0, sizeof *r);
    r->session = s;
    r->memories = memories;
    r->memory_count = memory_count;
    r->options = options;
    r->known.alloc = a;
    buf_init(&r->question, a);
    rows_init(&r->rows, a);
    buf_init(&r->screened.text, a);
    buf_init(&r->text, a);
    buf_init(&r->of, a);
    buf_init(&r->message, a);
    buf_init(&r->scratch, a);
    if (!(options->share >= 0 && options->share <= 1))
        return fail(err, SESSILE_INVALID, "the share of the window is from 0 to 1");
    if (!(options->min_cosine >= 0 && options->min_cosine <= 1))
        return fail(err, SESSILE_INVALID, "the least cosine is from 0 to 1");
    if (!memory_source_name(options->trust))
        return fail(err, SESSILE_INVALID, "there is no such source to trust");
    if (options->limit > SESSILE_RECALL_ITEMS_MAX ||
        options->item_count > SESSILE_RECALL_ITEMS_MAX)
        return fail(err, SESSILE_LIMIT, "at most %d entries are recalled at once",
                    SESSILE_RECALL_ITEMS_MAX);
    return recall_check_memories(r->session, r->memories, r->memory_count, err);
}

static void end(recall *r)
{
    for (int i = 0; i < 2; i++)
        mem_free(r->known.alloc, r->known.ids[i],
                 r->known.capacity[i] * sizeof **r->known.ids);
    buf_wipe(&r->question);
    rows_deinit(&r->rows);
    recall_screened_deinit(&r->screened, r->known.alloc);
    buf_wipe(&r->text);
    buf_wipe(&r->of);
    buf_wipe(&r->message);
    buf_wipe(&r->scratch);
}

sessile_status recall_question(session_core *s, const sessile_recall_options *options,
                               buf *out, sessile_error *err)
{
    const context *c;
    recall r;
    sessile_status status = begin(&r, s, NULL, 0, options, err);

    if (!status)
        status = session_lock_fresh(s, err);
    if (!status) {
        status = session_context_locked(s, &c, err);
        if (!status)
            status = find_question(&r, c, err);
        session_unlock(s);
    }
    buf_put(out, r.question.data, r.question.size);
    end(&r);
    return !status && out->failed ? fail_nomem(err) : status;
}

sessile_status session_recall_find(session_core *s, memory_core *const *memories,
                                   size_t memory_count,
                                   const sessile_recall_options *options,
                                   sessile_memory_row **rows, size_t *count,
                                   sessile_error *err)
{
    recall r;
    sessile_status status = begin(&r, s, memories, memory_count, options, err);

    if (!status)
        status = find(&r, options->limit ? options->limit : FOUND, err);
    if (!status && memory_count)
        status = rows_finish(&r.rows, memories[0], rows, count, err);
    end(&r);
    return status;
}

sessile_status session_recall(session_core *s, memory_core *const *memories,
                              size_t memory_count, const sessile_recall_options *options,
                              sessile_recall_outcome *out, sessile_error *err)
{
    const sessile_config config = session_config(s);
    sessile_recall_item
        items[FOUND > SESSILE_RECALL_ITEMS_MAX ? FOUND : SESSILE_RECALL_ITEMS_MAX];
    recall r;
    sessile_status status = begin(&r, s, memories, memory_count, options, err);

    r.out = out;
    r.budget = options->budget;
    if (config.window > 0) {
        double share = options->share * (double)laws_room(config.window, config.reserve);
        r.budget = share < (double)r.budget ? (uint64_t)share : r.budget;
    }
    r.items = options->items;
    r.item_count = options->item_count;
    r.most = options->limit ? options->limit : WRITTEN;
    for (size_t i = 0; !status && options->has_items && i < r.item_count; i++)
        if (options->items[i].memory >= memory_count)
            status = fail(err, SESSILE_INVALID, "item %zu names memory %zu of %zu", i + 1,
                          options->items[i].memory + 1, memory_count);
    if (!status && options->has_items)
        r.most = r.item_count;
    if (!status && !options->has_items) {
        status = find(&r, r.most > FOUND ? r.most : FOUND, err);
        for (r.item_count = 0; !status && r.item_count < r.rows.count; r.item_count++)
            items[r.item_count] = (sessile_recall_item){r.rows.at[r.item_count].memory,
                                                        r.rows.at[r.item_count].id};
        r.items = items;
    }
    out->found = status ? 0 : r.item_count;
    if (!status)
        status =
            recall_screen(&r.screened, s->store, memories, r.items, r.item_count, err);
    if (!status && r.item_count)
        status = session_write(s, build, &r, &(session_writing){.known = 1}, err);
    out->denied = r.denied;
    if (status)
        out->entry = SESSILE_NO_ID;
    end(&r);
    return status;
}
