/*
 * said.c: the messages of a session that a memory has not heard yet.
 *
 * How far a session was heard is an entry of the memory, found by the session's id and
 * nonce. Messages are those of the path after it: what was left behind on another branch
 * is not heard. Recalled blocks and summaries are left out, so that nothing is remembered
 * because it was remembered.
 *
 * Whose words a message has does not depend on its role alone: results of tools are a
 * tool's, whoever sends them, and so is what the host marks `metadata.untrusted`.
 */
#include "remember/proposal.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "codec/message.h"
#include "memory/kinds.h"
#include "remember/decoded.h"
#include "session/fold.h"
#include "session/read.h"

/* "2026-05-02", of a time. */
#define DAY_SIZE 10
/* How deep the content of a result is looked into. */
#define RESULT_DEPTH 4
/* Messages, and bytes of them, that are looked at before what is heard now. */
#define BEFORE_MESSAGES 400
#define BEFORE_BYTES    ((size_t)16 << 20)

/* ------------------------------------------------------------------ one message */

static void put_text(buf *out, json text)
{
    if (out->size && text.size > 2)
        buf_putc(out, '\n');
    (void)json_string(out, text);
}

/* "tool_result", and "web_search_tool_result" and the like. */
static int is_result(json type)
{
    static const char end[] = "tool_result";
    const char *name;
    size_t size, most = sizeof end - 1;
    return json_plain(type, &name, &size) && size >= most &&
           memcmp(name + size - most, end, most) == 0;
}

/* Members of a result that a model does not read as text. `data` is text in a document.
 */
static int is_no_text(json name, json result)
{
    static const char *const names[] = {
        "type",     "id",         "tool_use_id", "mime_type",
        "mimeType", "media_type", "signature",   "encrypted_content"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (json_is(name, names[i]))
            return 1;
    return json_is(name, "data") && !json_is(json_get(result, "type"), "text");
}

/* Texts at any depth of the content of a result. */
static void put_result(buf *out, json content, int depth)
{
    if (content.type == JSON_STRING)
        put_text(out, content);
    for (json_iter it = json_begin(content); depth && json_next(&it);)
        if (content.type == JSON_ARRAY || it.value.type != JSON_STRING ||
            !is_no_text(it.key, content))
            put_result(out, it.value, depth - 1);
}

/* The words of a message: its text, and that of results. Thinking is not said.
 * *has_result: a result of a tool is among them. */
static void put_words(buf *out, json content, int *has_result)
{
    if (content.type == JSON_STRING)
        put_text(out, content);
    for (json_iter it = json_begin(content);
         content.type == JSON_ARRAY && json_next(&it);) {
        json type = json_get(it.value, "type"), text = json_get(it.value, "text");
        if (is_result(type)) {
            *has_result = 1;
            put_result(out, json_get(it.value, "content"), RESULT_DEPTH);
        } else if (text.type == JSON_STRING && !json_is(type, "thinking") &&
                   !json_is(type, "reasoning")) {
            put_text(out, text);
        }
    }
}

/* What tools answered inside of the calls of a message. */
static void put_outputs(buf *out, json calls)
{
    for (json_iter it = json_begin(calls); calls.type == JSON_ARRAY && json_next(&it);)
        put_result(out, json_get(it.value, "output"), RESULT_DEPTH);
}

static int is_of_memory_or_summary(json metadata)
{
    json kind = json_get(metadata, "kind");
    return json_is(kind, "memory") || json_is(kind, "summary") ||
           json_is(kind, "branch_summary");
}

static sessile_memory_source source_of(const message *m, int has_result)
{
    sessile_role speaker = message_speaker(m->role, m->flags);
    json untrusted = json_get(m->metadata, "untrusted");
    if (has_result || (untrusted.type != JSON_NONE && untrusted.type != JSON_NULL &&
                       untrusted.type != JSON_FALSE))
        return SESSILE_MEMORY_BY_TOOL;
    return speaker == SESSILE_USER        ? SESSILE_MEMORY_BY_USER
           : speaker == SESSILE_ASSISTANT ? SESSILE_MEMORY_BY_AGENT
           : speaker == SESSILE_SYSTEM || speaker == SESSILE_DEVELOPER
               ? SESSILE_MEMORY_BY_SYSTEM
               : SESSILE_MEMORY_BY_TOOL;
}

/* Keeps the words of a message for law 2: with who said it, and on which day. */
static int show_message(proposal *p, const entry *e, const message *m,
                        sessile_memory_source source, const buf *words)
{
    char day[WORDS_DAY_SIZE], time[TIME_SIZE];
    size_t at = p->said_text.size;

    if (mem_grow(p->alloc, (void **)&p->messages, &p->message_capacity,
                 p->message_count + 1, sizeof *p->messages))
        return -1;
    if (e->author.type == JSON_STRING && json_string(&p->said_text, e->author))
        return -1;
    words_day(p->words, message_time(m->timestamp, e->time_ms), day);
    buf_printf(&p->said_text, " %s\n", day);
    buf_put(&p->said_text, words->data, words->size);
    buf_putc(&p->said_text, '\n');
    p->messages[p->message_count++] =
        (shown_message){e->id, source, at, p->said_text.size - at};
    if (source == SESSILE_MEMORY_BY_USER) {
        word_set_add(&p->user_words, p->words, p->said_text.data + at,
                     p->said_text.size - at);
        time_print(message_time(m->timestamp, e->time_ms), time);
        word_set_add(&p->user_words, p->words, time, DAY_SIZE);
    }
    return p->said_text.failed || p->user_words.failed ? -1 : 0;
}

typedef struct hearing {
    proposal *p;
    buf *out; /* NULL: shown, not told */
    buf words, outputs, decoded;
    size_t bytes;  /* of text so far */
    int told;      /* 1: out has a message */
    int before;    /* 1: it was heard already: only the words of tools are kept */
    size_t looked; /* bytes that were looked at */
} hearing;

static void tell(hearing *h, const entry *e, const message *m,
                 sessile_memory_source source)
{
    size_t size = h->words.size;
    char id[9], time[TIME_SIZE];
    buf *out = h->out;

    id_print(e->id, id);
    time_print(message_time(m->timestamp, e->time_ms), time);
    buf_printf(out,
               "%s{\"id\":\"%s\",\"role\":\"%s\",\"source\":\"%s\",\"time\":%" PRIi64
               ",\"day\":\"%.10s\"",
               h->told ? "," : "", id, role_name(m->role), memory_source_name(source),
               message_time(m->timestamp, e->time_ms), time);
    if (e->author.type == JSON_STRING) {
        buf_puts(out, ",\"author\":");
        buf_put(out, e->author.at, e->author.size);
    }
    if (size > SAID_MESSAGE_BYTES) {
        size = utf8_floor(h->words.data, size, SAID_MESSAGE_BYTES);
        buf_puts(out, ",\"cut\":true");
    }
    buf_puts(out, ",\"content\":");
    json_put_string(out, h->words.data ? h->words.data : "", size);
    buf_putc(out, '}');
    h->bytes += size;
    h->told = 1;
}

/* Keeps what tools said: 0, or -1: no memory. */
static int keep_tool_words(hearing *h, sessile_memory_source source)
{
    proposal *p = h->p;
    const buf *texts[] = {&h->outputs,
                          source == SESSILE_MEMORY_BY_TOOL ? &h->words : NULL};

    for (int i = 0; i < 2 && texts[i]; i++) {
        buf_clear(&h->decoded);
        decoded_put(&h->decoded, (sessile_slice){texts[i]->data, texts[i]->size});
        word_set_add(&p->tool_words, p->words, texts[i]->data, texts[i]->size);
        word_set_add(&p->tool_words, p->words, h->decoded.data, h->decoded.size);
    }
    h->looked += h->outputs.size + h->words.size;
    return p->tool_words.failed || h->decoded.failed ? -1 : 0;
}

/* A log_visit of one entry. */
static sessile_status hear_entry(void *arg, sessile_id id, const char *text, size_t size,
                                 sessile_error *err)
{
    hearing *h = arg;
    sessile_memory_source source;
    sessile_status status;
    int has_result = 0;
    message m;
    entry e;

    (void)id;
    status = entry_read(&e, text, size, err);
    if (!status)
        status =
            message_read(&m, e.data.at, e.data.size, NULL, NULL, NULL, h->p->alloc, err);
    if (status || e.source == SOURCE_POLICY)
        return status;
    buf_clear(&h->words);
    buf_clear(&h->outputs);
    put_words(&h->words, m.content, &has_result);
    put_outputs(&h->outputs, m.tool_calls);
    source = source_of(&m, has_result);
    if (source == SESSILE_MEMORY_BY_TOOL && m.content.type == JSON_ARRAY) {
        buf_clear(&h->words); /* images and documents too */
        put_result(&h->words, m.content, RESULT_DEPTH + 2);
    }
    if (h->words.failed || h->outputs.failed || keep_tool_words(h, source))
        return fail_nomem(err);
    /* what the host tells the model is not said by anybody */
    if (h->before || !h->words.size || is_of_memory_or_summary(m.metadata) ||
        (h->out && source == SESSILE_MEMORY_BY_SYSTEM))
        return SESSILE_OK;
    if (h->out)
        tell(h, &e, &m, source);
    return show_message(h->p, &e, &m, source, &h->words) || (h->out && h->out->failed)
               ? fail_nomem(err)
               : SESSILE_OK;
}

/* ------------------------------------------------------------------ all of them */

/* The hash under which a memory keeps how far the session was heard. Its mutex is held.
 */
static uint64_t heard_hash(const memory_core *m, const session_core *s, buf *scratch)
{
    json id, nonce;
    size_t size;

    buf_clear(scratch);
    header_put_name(scratch, (sessile_slice){s->identity.id, s->identity.id_size});
    size = scratch->size;
    json_put_cstring(scratch, s->header.nonce);
    if (scratch->failed)
        return 0;
    id = (json){scratch->data, size, JSON_STRING};
    nonce = (json){scratch->data + size, scratch->size - size, JSON_STRING};
    return memory_heard_hash(m->fold, id, nonce);
}

sessile_status proposal_heard(const proposal *p, sessile_id *upto, sessile_error *err)
{
    memory_core *m = p->memories[p->target];
    sessile_status status = SESSILE_OK;
    buf scratch;

    buf_init(&scratch, p->alloc);
    *upto = memory_fold_heard(m->fold, heard_hash(m, p->session, &scratch));
    if (scratch.failed)
        status = fail_nomem(err);
    buf_deinit(&scratch);
    return status;
}

/* The messages of the path that come after `after`: ids, oldest first. */
static sessile_status find_new(proposal *p, sessile_id after, sessile_id **ids,
                               size_t *count, size_t *first, sessile_error *err)
{
    session_core *s = p->session;
    sessile_status status = session_path_locked(s, s->tree.head, ids, count, err);

    *first = 0;
    while (!status && *first < *count && (*ids)[*first] <= after)
        ++*first;
    return status;
}

/* The newest of the messages before `first`, newest first: an agent may repeat them. */
static sessile_status look_back(hearing *h, const sessile_id *ids, size_t first,
                                sessile_error *err)
{
    size_t last = first > BEFORE_MESSAGES ? first - BEFORE_MESSAGES : 0;
    sessile_status status = SESSILE_OK;

    for (size_t i = first; !status && i > last && h->looked < BEFORE_BYTES; i--)
        status = session_texts_locked(h->p->session, ids[i - 1], ids[i - 1], hear_entry,
                                      h, err);
    return status;
}

static void begin_hearing(hearing *h)
{
    buf_init(&h->words, h->p->alloc);
    buf_init(&h->outputs, h->p->alloc);
    buf_init(&h->decoded, h->p->alloc);
}

static void end_hearing(hearing *h)
{
    buf_wipe(&h->words);
    buf_wipe(&h->outputs);
    buf_wipe(&h->decoded);
}

sessile_status proposal_hear(proposal *p, buf *out, sessile_error *err)
{
    session_core *s = p->session;
    memory_core *m = p->memories[p->target];
    hearing h = {.p = p, .out = out};
    sessile_id *ids = NULL, upto = 0;
    size_t count = 0, i = 0, first = 0;
    sessile_status status = proposal_open_words(p, err);

    if (!status)
        status = memory_lock_fresh(m, err);
    if (status)
        return status;
    status = memory_name_error(m, memory_check_consent(m, err), err);
    if (!status)
        status = proposal_heard(p, &upto, err);
    memory_unlock(m);
    if (!status)
        status = session_lock_fresh(s, err);
    if (status)
        return status;
    begin_hearing(&h);
    buf_putc(out, '[');
    p->heard.from = p->heard.upto = upto;
    status = find_new(p, upto, &ids, &count, &first, err);
    h.before = 1;
    if (!status && first < count)
        status = look_back(&h, ids, first, err);
    h.before = 0;
    for (i = first;
         !status && i < count && p->message_count < SAID_MESSAGES && h.bytes < SAID_BYTES;
         i++) {
        status = session_texts_locked(s, ids[i], ids[i], hear_entry, &h, err);
        p->heard.upto = ids[i];
    }
    session_unlock(s);
    buf_putc(out, ']');
    p->heard.left = count - i;
    p->heard.moves = p->heard.upto != p->heard.from;
    mem_free(p->alloc, ids, count * sizeof *ids);
    end_hearing(&h);
    return !status && out->failed ? fail_nomem(err) : status;
}

sessile_status proposal_show_context(proposal *p, const context *c, sessile_error *err)
{
    session_core *s = p->session;
    hearing h = {.p = p};
    sessile_status status = proposal_open_words(p, err);

    if (!status)
        status = session_lock(s, err);
    if (status)
        return status;
    begin_hearing(&h);
    for (size_t i = 0; !status && i < c->count; i++) {
        const item *it = &c->items[i];
        /* in the order of ids, each once */
        if (it->key.n ||
            (p->message_count && it->key.entry <= p->messages[p->message_count - 1].id))
            continue;
        status =
            session_texts_locked(s, it->key.entry, it->key.entry, hear_entry, &h, err);
    }
    session_unlock(s);
    end_hearing(&h);
    return status;
}

sessile_status proposal_look_back(proposal *p, sessile_error *err)
{
    session_core *s = p->session;
    hearing h = {.p = p};
    sessile_id *ids = NULL;
    size_t count = 0;
    sessile_status status = proposal_open_words(p, err);

    if (!status)
        status = session_lock_fresh(s, err);
    if (status)
        return status;
    begin_hearing(&h);
    status = session_path_locked(s, s->tree.head, &ids, &count, err);
    if (!status)
        status = look_back(&h, ids, count, err);
    session_unlock(s);
    mem_free(p->alloc, ids, count * sizeof *ids);
    end_hearing(&h);
    return status;
}
