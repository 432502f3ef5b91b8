/* proposal.c: a proposal: what policies were shown, and what they propose. */
#include "remember/proposal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

int entry_ids_add(entry_ids *l, sessile_id id, const allocator *a)
{
    if (mem_grow(a, (void **)&l->at, &l->capacity, l->count + 1, sizeof *l->at))
        return -1;
    l->at[l->count++] = id;
    return 0;
}

const char *proposal_memory_name(const proposal *p, size_t memory)
{
    return p->memories[memory]->user_size ? "user" : "agent";
}

void proposal_start(proposal *p, store_core *st, session_core *s)
{
    memset(p, 0, sizeof *p);
    p->alloc = &st->alloc;
    p->store = st;
    p->session = s;
    p->refusal = SESSILE_NO_ID;
    buf_init(&p->said_text, p->alloc);
    word_set_init(&p->tool_words, p->alloc);
    word_set_init(&p->user_words, p->alloc);
    map_init(&p->shown, p->alloc);
}

sessile_status proposal_init(proposal *p, store_core *st, session_core *s,
                             memory_core *const *memories, size_t memory_count,
                             sessile_error *err)
{
    proposal_start(p, st, s);
    for (size_t i = 0; i < memory_count; i++) {
        memory_core *m = memories[i];
        sessile_status status = memory_lock_fresh(m, err);
        if (status)
            return status;
        status = memory_check_consent(m, err);
        p->memories[p->memory_count] = m;
        p->seen[p->memory_count] = log_count(m->log);
        memory_unlock(m);
        /* the user's own memory is what a session writes to: without consent, nothing */
        if (status)
            return memory_name_error(m, status, err);
        if (m->user_size)
            p->target = p->memory_count;
        p->memory_count++;
    }
    if (!p->memory_count)
        return fail(err, SESSILE_INVALID, "no memory was given");
    return SESSILE_OK;
}

sessile_status proposal_open_words(proposal *p, sessile_error *err)
{
    memory_core *m = p->memories[p->target];
    sessile_status status = SESSILE_OK;
    char *language = NULL;
    size_t size = 0;

    if (p->words)
        return SESSILE_OK;
    status = memory_lock_fresh(m, err);
    if (status)
        return status;
    size = m->fold->header.language.size;
    language = size ? mem_dup(p->alloc, m->fold->header.language.data, size) : NULL;
    memory_unlock(m);
    if (size && !language)
        return fail_nomem(err);
    status = words_open(&p->words, language ? language : WORDS_LANGUAGE, p->alloc, err);
    if (language)
        mem_free(p->alloc, language, size + 1);
    return status;
}

sessile_status proposal_may_read(const proposal *p, size_t memory, int *may,
                                 sessile_error *err)
{
    memory_core *m = p->memories[memory];
    sessile_status status = memory_lock_fresh(m, err);

    *may = !status && !memory_check_consent(m, NULL);
    if (!status)
        memory_unlock(m);
    return status;
}

static void deinit_proposed(proposed *x, const allocator *a)
{
    buf_wipe(&x->text);
    buf_wipe(&x->source_text);
    memory_words_deinit(&x->words);
    buf_deinit(&x->why);
    mem_free(a, x->from.at, x->from.capacity * sizeof *x->from.at);
    mem_free(a, x->of.at, x->of.capacity * sizeof *x->of.at);
    mem_free(a, x->ids.at, x->ids.capacity * sizeof *x->ids.at);
    mem_free(a, x->contradicted.at, x->contradicted.capacity * sizeof *x->ids.at);
    mem_free(a, x->sources, x->source_count * sizeof *x->sources);
}

void proposal_cut(proposal *p, size_t count)
{
    for (size_t i = count; i < p->count; i++)
        deinit_proposed(&p->at[i], p->alloc);
    p->count = count;
}

void proposal_clear(proposal *p)
{
    proposal_cut(p, 0);
    p->heard.moves = 0;
    p->broken = MEMORY_LAW_NONE;
}

void proposal_deinit(proposal *p)
{
    proposal_clear(p);
    mem_free(p->alloc, p->at, p->capacity * sizeof *p->at);
    mem_free(p->alloc, p->messages, p->message_capacity * sizeof *p->messages);
    buf_wipe(&p->said_text);
    word_set_deinit(&p->tool_words);
    word_set_deinit(&p->user_words);
    map_deinit(&p->shown);
    words_close(p->words);
}

static uint64_t shown_hash(size_t memory, sessile_id id)
{
    const uint32_t parts[] = {(uint32_t)memory, id};
    return hash64(parts, sizeof parts);
}

int proposal_has_shown(const proposal *p, size_t memory, sessile_id id)
{
    uint32_t value;
    return map_get(&p->shown, shown_hash(memory, id), &value);
}

int proposal_show_entry(proposal *p, size_t memory, sessile_id id)
{
    return map_put(&p->shown, shown_hash(memory, id), 1);
}

const shown_message *proposal_message(const proposal *p, sessile_id id)
{
    size_t low = 0, high = p->message_count; /* by id */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->messages[middle].id == id)
            return &p->messages[middle];
        if (p->messages[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

proposed *proposal_add(proposal *p, proposed_kind kind, size_t memory, size_t step)
{
    proposed *x;
    if (mem_grow(p->alloc, (void **)&p->at, &p->capacity, p->count + 1, sizeof *p->at))
        return NULL;
    x = &p->at[p->count++];
    memset(x, 0, sizeof *x);
    x->kind = kind;
    x->memory = memory;
    x->step = step;
    x->of_memory = memory;
    x->id = x->holder = SESSILE_NO_ID;
    buf_init(&x->text, p->alloc);
    buf_init(&x->source_text, p->alloc);
    memory_words_init(&x->words, p->alloc);
    buf_init(&x->why, p->alloc);
    return x;
}

void proposal_break(proposal *p, memory_law law, size_t culprit, const char *format, ...)
{
    char message[2 * sizeof p->message];
    va_list args;
    if (p->broken)
        return; /* the first one is told */
    p->broken = law;
    p->culprit = culprit;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    message[utf8_floor(message, strlen(message), sizeof p->message - 1)] = 0;
    memcpy(p->message, message, strlen(message) + 1);
}
