/*
 * request.c: what a policy asks of ctx.memory, and the answers.
 *
 *     search(question, {limit=, kind=, source=, key_prefix=, memory=})  rows, best first
 *     list({limit=, kind=, source=, key_prefix=, memory=})              newest first
 *     read(key)                                                         a row, or nil
 *     write{…}, delete(ids, reason), confirm(ids, reason)               true: proposed
 *     room()                                            {memory=, writes=, ends=}: left
 *
 * Reading sees the memories as they are, but none whose user does not consent any more;
 * writing only proposes. A wrong argument is raised in the script, like that of any
 * function.
 */
#include "remember/proposal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "memory/kinds.h"

enum { HITS = 10, HITS_MOST = 50, ROWS = 100, PROPOSED_MOST = 256 };

/* The last thing that was asked was wrong: a sentence for the script. */
static sessile_status raise_error(buf *answer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static sessile_status raise_error(buf *answer, const char *format, ...)
{
    char message[800];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    buf_clear(answer);
    buf_puts(answer, "{\"raise\":");
    json_put_string(answer, message, utf8_floor(message, strlen(message), 600));
    buf_putc(answer, '}');
    return SESSILE_OK;
}

static json argument(json arguments, int n)
{
    json_iter it = json_begin(arguments);
    while (json_next(&it))
        if (n-- == 0)
            return it.value;
    return (json){0};
}

static sessile_status decode(json text, buf *out, sessile_error *err)
{
    buf_clear(out);
    return json_string(out, text) ? fail_nomem(err) : SESSILE_OK;
}

/* ------------------------------------------------------------------ reading */

/* Options of search and list. Texts are in `text`. */
typedef struct reading {
    sessile_memory_filter filter;
    size_t limit;
    int memory; /* -1: all */
    buf text;
} reading;

/* 1, or 0: an option is wrong, and the answer says which. */
static int take_option(const proposal *p, reading *r, json name, json value, buf *answer,
                       sessile_error *err)
{
    sessile_memory_kind kind;
    sessile_memory_source source;
    int64_t n;

    if (json_is(name, "limit") && !json_int(value, &n) && n >= 1) {
        r->limit = n < (int64_t)r->limit ? (size_t)n : r->limit;
    } else if (json_is(name, "kind") && !memory_kind_of(value, &kind)) {
        r->filter.kinds |= 1u << kind;
    } else if (json_is(name, "source") && !memory_source_of(value, &source)) {
        r->filter.sources |= 1u << source;
    } else if (json_is(name, "key_prefix") && value.type == JSON_STRING) {
        if (decode(value, &r->text, err))
            return 0;
        r->filter.key_prefix = (sessile_slice){r->text.data, r->text.size};
    } else if (json_is(name, "memory") &&
               (json_is(value, "user") || json_is(value, "agent"))) {
        r->memory = (int)p->memory_count;
        for (size_t i = 0; i < p->memory_count; i++)
            if (json_is(value, proposal_memory_name(p, i)))
                r->memory = (int)i;
    } else {
        raise_error(answer,
                    "ctx.memory: %.*s is no option here, or not of its type: there are "
                    "limit, kind, source, key_prefix and memory (\"user\" or \"agent\")",
                    (int)utf8_floor(name.at, name.size, 40), name.at);
        return 0;
    }
    return 1;
}

static int take_options(const proposal *p, reading *r, json options, size_t usual,
                        size_t most, buf *answer, sessile_error *err)
{
    int limited = 0;

    r->limit = most;
    r->memory = -1;
    if (options.type == JSON_NONE || options.type == JSON_NULL) {
        r->limit = usual;
        return 1;
    }
    if (options.type != JSON_OBJECT) {
        raise_error(answer, "ctx.memory: options are a table");
        return 0;
    }
    for (json_iter it = json_begin(options); json_next(&it);) {
        limited |= json_is(it.key, "limit");
        if (!take_option(p, r, it.key, it.value, answer, err))
            return 0;
    }
    if (!limited)
        r->limit = usual;
    return 1;
}

/* The rows of all memories, those of higher scores first; of equal ones in order. */
static sessile_status put_rows(proposal *p, sessile_memory_row *const *rows,
                               const size_t *counts, size_t limit, buf *answer,
                               sessile_error *err)
{
    size_t next[PROPOSAL_MEMORIES] = {0}, put = 0;
    sessile_status status = SESSILE_OK;

    buf_puts(answer, "{\"value\":[");
    while (!status && put < limit) {
        size_t best = p->memory_count;
        for (size_t i = 0; i < p->memory_count; i++)
            if (next[i] < counts[i] &&
                (best == p->memory_count ||
                 rows[i][next[i]].score > rows[best][next[best]].score))
                best = i;
        if (best == p->memory_count)
            break;
        if (put++)
            buf_putc(answer, ',');
        status = proposal_put_row(p, answer, best, &rows[best][next[best]++], err);
    }
    buf_puts(answer, "]}");
    return status;
}

/* question.type JSON_NONE: a list. */
static sessile_status read_rows(proposal *p, json question, json options, buf *answer,
                                sessile_error *err)
{
    sessile_memory_row *rows[PROPOSAL_MEMORIES] = {NULL};
    size_t counts[PROPOSAL_MEMORIES] = {0};
    int is_search = question.type == JSON_STRING;
    reading r = {.limit = 0};
    sessile_memory_search_options search = {.limit = 0};
    sessile_memory_list_options list = {.offset = 0};
    sessile_status status = SESSILE_OK;
    buf text;

    buf_init(&r.text, p->alloc);
    buf_init(&text, p->alloc);
    if (take_options(p, &r, options, is_search ? HITS : ROWS,
                     is_search ? HITS_MOST : ROWS, answer, err)) {
        search.filter = list.filter = r.filter;
        search.limit = list.limit = r.limit;
        if (is_search)
            status = decode(question, &text, err);
        for (size_t i = 0; !status && i < p->memory_count; i++) {
            int may = r.memory < 0 || r.memory == (int)i;
            if (may)
                status = proposal_may_read(p, i, &may, err);
            if (status || !may)
                continue;
            if (is_search)
                status =
                    memory_search(p->memories[i], (sessile_slice){text.data, text.size},
                                  &search, &rows[i], &counts[i], err);
            else
                status = memory_list(p->memories[i], &list, &rows[i], &counts[i], err);
        }
        if (!status)
            status = put_rows(p, rows, counts, r.limit, answer, err);
    }
    for (size_t i = 0; i < p->memory_count; i++)
        host_free(rows[i]);
    buf_wipe(&r.text);
    buf_wipe(&text);
    return status;
}

static sessile_status read_key(proposal *p, json key, buf *answer, sessile_error *err)
{
    sessile_status status;
    buf text;

    if (key.type != JSON_STRING)
        return raise_error(answer, "ctx.memory.read takes a key");
    buf_init(&text, p->alloc);
    status = decode(key, &text, err);
    /* that of the memory that is written to first */
    for (size_t k = 0; !status && k < p->memory_count && !answer->size; k++) {
        size_t i = (p->target + k) % p->memory_count;
        sessile_memory_row *row = NULL;
        int may;
        status = proposal_may_read(p, i, &may, err);
        if (status || !may)
            continue;
        status =
            memory_read(p->memories[i], (sessile_slice){text.data, text.size}, &row, err);
        if (!status) {
            buf_puts(answer, "{\"value\":");
            status = proposal_put_row(p, answer, i, row, err);
            buf_putc(answer, '}');
        } else if (status == SESSILE_NOTFOUND) {
            error_clear(err);
            status = SESSILE_OK;
        }
        host_free(row);
    }
    if (!status && !answer->size)
        buf_puts(answer, "{\"value\":null}");
    buf_wipe(&text);
    return status;
}

/* ------------------------------------------------------------------ proposing */

/* Adds the id of one of them, unless it is there. */
static sessile_status take_one_id(const proposal *p, json one, const char *what,
                                  entry_ids *out, size_t *memory, sessile_error *err)
{
    size_t named = PROPOSAL_MEMORIES, size;
    const char *text;
    sessile_id id;

    if (one.type == JSON_OBJECT) {
        json of = json_get(one, "memory");
        for (size_t i = 0; i < p->memory_count; i++)
            if (json_is(of, proposal_memory_name(p, i)))
                named = i;
        one = json_get(one, "id");
    }
    if (!json_plain(one, &text, &size) || id_parse(text, size, &id))
        return fail(err, SESSILE_INVALID,
                    "%s: an id, a message or an entry, or a list of these", what);
    if (memory && named < PROPOSAL_MEMORIES) {
        if (*memory < PROPOSAL_MEMORIES && *memory != named)
            return fail(err, SESSILE_INVALID,
                        "%s: all entries are of one memory, and that is written to",
                        what);
        *memory = named;
    }
    for (size_t i = 0; i < out->count; i++)
        if (out->at[i] == id)
            return SESSILE_OK;
    if (out->count == SESSILE_MEMORY_NAMED_MAX)
        return fail(err, SESSILE_INVALID, "%s: at most %d", what,
                    SESSILE_MEMORY_NAMED_MAX);
    return entry_ids_add(out, id, p->alloc) ? fail_nomem(err) : SESSILE_OK;
}

sessile_status proposal_take_ids(const proposal *p, json ids, const char *what,
                                 entry_ids *out, size_t *memory, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    json_iter it = json_begin(ids);

    if (ids.type != JSON_ARRAY)
        return take_one_id(p, ids, what, out, memory, err);
    while (!status && json_next(&it))
        status = take_one_id(p, it.value, what, out, memory, err);
    return status;
}

static sessile_status propose_verdict(proposal *p, size_t step, proposed_kind kind,
                                      json ids, json reason, sessile_error *err)
{
    proposed *x = proposal_add(p, kind, p->target, step);
    size_t memory = PROPOSAL_MEMORIES;
    sessile_status status;

    if (!x)
        return fail_nomem(err);
    status = proposal_take_ids(p, ids, "delete and confirm take", &x->ids, &memory, err);
    if (memory < PROPOSAL_MEMORIES)
        x->memory = memory;
    if (!status && !x->ids.count)
        status = fail(err, SESSILE_INVALID, "delete and confirm name entries");
    if (!status && reason.type == JSON_STRING && json_string(&x->why, reason))
        status = fail_nomem(err);
    if (!status && x->why.size > SESSILE_MEMORY_RUN_VALUE)
        status = fail(err, SESSILE_INVALID, "a reason has at most %d bytes",
                      SESSILE_MEMORY_RUN_VALUE);
    return status;
}

static sessile_status propose(proposal *p, size_t step, json name, json arguments,
                              buf *answer, sessile_error *err)
{
    sessile_error why = {0};
    json first = argument(arguments, 0);
    size_t before = p->count;
    sessile_status status;

    if (p->reads_only)
        return raise_error(answer, "ctx.memory: this hook reads, and writes nothing");
    if (p->count >= PROPOSED_MOST)
        return raise_error(answer, "ctx.memory: a run proposes at most %d changes",
                           PROPOSED_MOST);
    if (json_is(name, "write"))
        status = proposal_take_write(p, step, first, &why);
    else
        status = propose_verdict(
            p, step, json_is(name, "delete") ? PROPOSED_DELETE : PROPOSED_CONFIRM, first,
            argument(arguments, 1), &why);
    if (status == SESSILE_NOMEM)
        return fail_nomem(err);
    if (status) {
        proposal_cut(p, before); /* a script may catch the error and go on */
        return raise_error(answer, "ctx.memory: %s", why.message);
    }
    buf_puts(answer, "{\"value\":true}");
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ bounds */

/* Entries that x would end, if all of them are live. The memory is locked. */
static size_t ends_of(const proposed *x, const states *s, int64_t now_ms)
{
    uint32_t holder = STATE_NONE;

    if (x->kind == PROPOSED_CONFIRM)
        return 0;
    if (x->kind == PROPOSED_WRITE && x->entry.key.size)
        holder = states_holder(s, states_slot(s, x->entry.key), now_ms);
    for (size_t i = 0; holder != STATE_NONE && i < x->ids.count; i++)
        if (x->ids.at[i] == s->records[holder].id)
            holder = STATE_NONE;
    return x->ids.count + (holder != STATE_NONE);
}

/* Where a write goes if nothing else is said, and how many writes and ends laws 6 and 3
 * leave to this run, beside what is proposed. */
static sessile_status tell_room(const proposal *p, buf *answer, sessile_error *err)
{
    memory_core *m = p->memories[p->target];
    size_t writes = p->written, ends = p->ended, most;
    sessile_status status = memory_lock_fresh(m, err);
    int64_t now_ms = memory_now_ms(m);

    if (status)
        return status;
    most = proposal_most_ends(p, m);
    for (size_t i = 0; i < p->count; i++) {
        writes += p->at[i].kind == PROPOSED_WRITE && !p->at[i].is_host;
        if (p->at[i].memory == p->target && !p->at[i].is_host)
            ends += ends_of(&p->at[i], &m->fold->states, now_ms);
    }
    memory_unlock(m);
    buf_printf(answer, "{\"value\":{\"memory\":\"%s\",\"writes\":%zu,\"ends\":%zu}}",
               proposal_memory_name(p, p->target),
               writes < SESSILE_MEMORY_RUN_WRITES ? SESSILE_MEMORY_RUN_WRITES - writes
                                                  : 0,
               ends < most ? most - ends : 0);
    return SESSILE_OK;
}

sessile_status proposal_request(proposal *p, size_t step, sessile_slice request,
                                buf *answer, sessile_error *err)
{
    json root, name, arguments, first;
    sessile_status status;
    buf checked;

    /* from a script, or a process that ran one */
    buf_init(&checked, p->alloc);
    if (json_check(&checked, request.data ? request.data : "", request.size, 64, NULL)) {
        buf_deinit(&checked);
        return raise_error(answer, "ctx.memory: what it was asked is no JSON");
    }
    root = json_of(checked.data, checked.size);
    name = json_get(root, "memory");
    arguments = json_get(root, "arguments");
    first = argument(arguments, 0);
    if (json_is(name, "search") && first.type != JSON_STRING)
        status = raise_error(answer, "ctx.memory.search takes a question");
    else if (json_is(name, "search"))
        status = read_rows(p, first, argument(arguments, 1), answer, err);
    else if (json_is(name, "list"))
        status = read_rows(p, (json){0}, first, answer, err);
    else if (json_is(name, "read"))
        status = read_key(p, first, answer, err);
    else if (json_is(name, "write") || json_is(name, "delete") ||
             json_is(name, "confirm"))
        status = propose(p, step, name, arguments, answer, err);
    else if (json_is(name, "room"))
        status = tell_room(p, answer, err);
    else
        status = raise_error(answer, "ctx.memory has no such function");
    buf_wipe(&checked);
    return !status && answer->failed ? fail_nomem(err) : status;
}
