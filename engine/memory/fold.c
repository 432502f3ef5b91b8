/*
 * fold.c: a memory as its log says it is.
 *
 * Must never read from the log, because it runs as the visitor of a scan. Entries of
 * unknown types change nothing.
 */
#include "memory/fold.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "base/wire.h"

/* Ids that one entry may name; what is more is left out. */
enum { NAMED_MAX = UINT16_MAX, ID_SIZE = 11 /* of an id in an array, with its comma */ };

static void note_change(void *arg, uint32_t record, int live)
{
    memory_fold *f = arg;
    postings_set_live(&f->postings, record, live);
}

void memory_fold_init(memory_fold *f, const allocator *a)
{
    memset(f, 0, sizeof *f);
    f->alloc = a;
    header_init(&f->header, a);
    states_init(&f->states, a);
    f->states.changed = note_change;
    f->states.arg = f;
    postings_init(&f->postings, a);
    map_init(&f->heard, a);
    buf_init(&f->scratch, a);
    buf_init(&f->key, a);
    blocks_init(&f->blocks, a);
    buf_init(&f->restoring.block, a);
    for (int i = 0; i < FIELDS; i++)
        terms_init(&f->terms[i], a);
}

void memory_fold_deinit(memory_fold *f)
{
    const allocator *a = f->alloc;
    for (size_t i = 0; i < f->model_count; i++) {
        mem_free(a, f->models[i].name, f->models[i].name_size + 1);
        vectors_deinit(&f->models[i].vectors);
    }
    mem_free(a, f->models, f->model_capacity * sizeof *f->models);
    header_deinit(&f->header);
    words_close(f->words);
    states_deinit(&f->states);
    postings_deinit(&f->postings);
    map_deinit(&f->heard);
    buf_wipe(&f->scratch);
    buf_wipe(&f->key);
    blocks_deinit(&f->blocks);
    buf_wipe(&f->restoring.block);
    for (int i = 0; i < FIELDS; i++)
        terms_deinit(&f->terms[i]);
    memory_fold_init(f, a);
}

void memory_fold_index(memory_fold *f, log_t **log)
{
    f->log = log;
    f->blocks.on = 1;
    blocks_start(&f->blocks, &f->postings);
}

void memory_fold_forget(memory_fold *f)
{
    log_t **log = f->log;
    memory_fold_deinit(f);
    if (log)
        memory_fold_index(f, log);
}

/* ------------------------------------------------------------------ entries */

static sessile_status take_header(memory_fold *f, const entry *e, sessile_error *err)
{
    sessile_status status = header_read(&f->header, e, err);
    const char *language;

    if (!status && f->header.kind != NAMES_MEMORY)
        status = fail(err, SESSILE_DAMAGED,
                      "its header is of a session: its file was moved or replaced");
    if (status)
        return status;
    /* Keys are often a model's words: who could make two of them equal could replace what
     * a person said. The nonce is as secret as the log. */
    f->states.key =
        hash_key_of("sessile memory hash 1", f->header.nonce, strlen(f->header.nonce));
    language = f->header.language.size ? f->header.language.data : WORDS_LANGUAGE;
    status = words_open(&f->words, language, f->alloc, err);
    if (status == SESSILE_INVALID)
        status =
            fail(err, SESSILE_UNSUPPORTED,
                 "this memory is in the language \"%.40s\", for which this libstemmer "
                 "has no stemmer",
                 language);
    if (!status && words_fingerprint(f->words, &f->blocks.words))
        status = fail_nomem(err);
    f->has_header = !status;
    return status;
}

/* The terms of a JSON string into a field. */
static int add_terms(memory_fold *f, int field, json text)
{
    if (text.type != JSON_STRING)
        return 0;
    buf_clear(&f->scratch);
    if (json_string(&f->scratch, text))
        return -1;
    return terms_add(&f->terms[field], f->words, f->scratch.data ? f->scratch.data : "",
                     f->scratch.size, 0);
}

/* Who said it, unless it is the agent, who would be in every entry. */
static int add_author(memory_fold *f, const entry *e)
{
    const buf *agent = &f->header.agent;

    if (e->author.type != JSON_STRING)
        return 0;
    buf_clear(&f->scratch);
    if (json_string(&f->scratch, e->author))
        return -1;
    if (f->scratch.size == agent->size &&
        (!agent->size || !memcmp(f->scratch.data, agent->data, agent->size)))
        return 0;
    return terms_add(&f->terms[FIELD_MAIN], f->words,
                     f->scratch.data ? f->scratch.data : "", f->scratch.size, 0);
}

static int add_words(memory_fold *f, const entry *e, const memory_entry *m, int live)
{
    char day[WORDS_DAY_SIZE];
    int64_t day_ms = m->from_ms == INT64_MIN ? e->time_ms : m->from_ms;

    f->terms[FIELD_MAIN].count = f->terms[FIELD_ALSO].count = 0;
    words_day(f->words, day_ms, day);
    if (!m->erased &&
        (add_terms(f, FIELD_MAIN, m->value) || add_terms(f, FIELD_MAIN, m->key) ||
         add_author(f, e) || add_terms(f, FIELD_ALSO, m->also) ||
         terms_add(&f->terms[FIELD_MAIN], f->words, day, strlen(day), 0)))
        return -1;
    return postings_add(
        &f->postings,
        (posting_terms[FIELDS]){{f->terms[FIELD_MAIN].at, f->terms[FIELD_MAIN].count},
                                {f->terms[FIELD_ALSO].at, f->terms[FIELD_ALSO].count}},
        live);
}

/* For the index: what was just taken in. The key is in f->key. */
static void note_memory(memory_fold *f, const states_entry *s, uint32_t record)
{
    block_record *r = &f->blocks.record;
    *r = (block_record){.op = BLOCK_MEMORY,
                        .what = s->kind,
                        .source = s->source,
                        .flags = (uint8_t)((s->pending ? BLOCK_PENDING : 0) |
                                           (s->erased ? BLOCK_ERASED : 0)),
                        .time_ms = s->time_ms,
                        .expires_ms = s->expires_ms,
                        .session = s->session,
                        .importance = f->states.records[record].importance,
                        .count = (uint32_t)s->replace_count};
    for (int i = 0; i < FIELDS; i++)
        r->lengths[i] = f->postings.fields[i].lengths[record];
    if (!f->blocks.on)
        return;
    wire_put_text(&f->blocks.parts, s->key.data, s->key.size);
    for (size_t i = 0; i < s->replace_count; i++)
        wire_put_u32(&f->blocks.parts, s->replaces[i]);
}

static sessile_status take_memory(memory_fold *f, const entry *e, sessile_error *err)
{
    sessile_id few[SESSILE_MEMORY_NAMED_MAX], *replaces = few;
    size_t room = SESSILE_MEMORY_NAMED_MAX;
    memory_entry m;
    states_entry s = {.id = e->id, .time_ms = e->time_ms};
    sessile_status status = memory_entry_read(&m, e, err);
    uint32_t record = (uint32_t)f->states.count;

    if (status)
        return status;
    s.expires_ms = m.expires_ms;
    /* Only an erased entry may name more than a few. */
    if (m.replaces.type == JSON_ARRAY && m.replaces.size / ID_SIZE >= room) {
        room = m.replaces.size / ID_SIZE + 1;
        room = room < NAMED_MAX ? room : NAMED_MAX;
        replaces = mem_alloc(f->alloc, room * sizeof *replaces);
        if (!replaces)
            return fail_nomem(err);
    }
    s.replaces = replaces;
    s.replace_count = memory_ids(m.replaces, replaces, room);
    s.importance = m.importance;
    s.pending = m.pending;
    s.erased = m.erased;
    s.kind = (uint8_t)m.kind;
    s.source = (uint8_t)m.source;
    buf_clear(&f->key);
    if ((m.key.type == JSON_STRING && json_string(&f->key, m.key)) ||
        memory_from_hash(&m, 0, &f->states.key, f->alloc, &s.session) < 0)
        status = fail_nomem(err);
    s.key = (sessile_slice){f->key.data, f->key.size};
    if (!status && (states_write(&f->states, &s) ||
                    add_words(f, e, &m, states_is_live(&f->states, record))))
        status = fail_nomem(err);
    if (!status)
        note_memory(f, &s, record);
    if (replaces != few)
        mem_free(f->alloc, replaces, room * sizeof *replaces);
    return status;
}

static sessile_status take_verdict(memory_fold *f, const entry *e, sessile_error *err)
{
    block_record *r = &f->blocks.record;
    sessile_memory_verdict_kind to;
    sessile_id id;

    if (memory_verdict_of(json_get(e->data, "to"), &to))
        return SESSILE_OK; /* one of another version */
    *r = (block_record){.op = BLOCK_VERDICT, .what = (uint8_t)to, .time_ms = e->time_ms};
    for (json_iter it = json_begin(json_get(e->data, "of")); json_next(&it);) {
        const char *text;
        size_t size;
        uint32_t record = STATE_NONE;
        if (json_plain(it.value, &text, &size) && !id_parse(text, size, &id))
            record = states_find(&f->states, id);
        if (record == STATE_NONE)
            continue;
        if (states_judge(&f->states, e->id, e->time_ms, record, to))
            return fail_nomem(err);
        if (f->blocks.on)
            wire_put_u32(&f->blocks.parts, id);
        r->count++;
    }
    f->verdicts++;
    return SESSILE_OK;
}

uint64_t memory_heard_hash(const memory_fold *f, json session, json nonce)
{
    uint64_t parts[] = {hash64_keyed(&f->states.key, session.at, session.size),
                        hash64_keyed(&f->states.key, nonce.at, nonce.size)};
    return hash64_keyed(&f->states.key, parts, sizeof parts);
}

static sessile_status take_heard(memory_fold *f, const entry *e, sessile_error *err)
{
    uint64_t hash =
        memory_heard_hash(f, json_get(e->data, "session"), json_get(e->data, "nonce"));
    const char *text;
    size_t size;
    sessile_id upto;

    if (!json_plain(json_get(e->data, "upto"), &text, &size) ||
        id_parse(text, size, &upto))
        return SESSILE_OK;
    if (map_put(&f->heard, hash, upto))
        return fail_nomem(err);
    f->blocks.record = (block_record){.op = BLOCK_HEARD, .session = hash, .count = upto};
    return SESSILE_OK;
}

sessile_id memory_fold_heard(const memory_fold *f, uint64_t session_and_nonce)
{
    uint32_t upto;
    return map_get(&f->heard, session_and_nonce, &upto) ? upto : 0;
}

/* ------------------------------------------------------------------ vectors */

static memory_model *find_model(const memory_fold *f, sessile_slice name, size_t dims)
{
    for (size_t i = 0; i < f->model_count; i++)
        if (f->models[i].vectors.dims == dims && f->models[i].name_size == name.size &&
            !memcmp(f->models[i].name, name.data, name.size))
            return &f->models[i];
    return NULL;
}

memory_model *memory_fold_make_model(memory_fold *f, sessile_slice name, size_t dims)
{
    memory_model *m = find_model(f, name, dims);
    if (m)
        return m;
    if (mem_grow(f->alloc, (void **)&f->models, &f->model_capacity, f->model_count + 1,
                 sizeof *f->models))
        return NULL;
    m = &f->models[f->model_count];
    memset(m, 0, sizeof *m);
    m->name = mem_dup(f->alloc, name.data ? name.data : "", name.size);
    m->name_size = name.size;
    vectors_init(&m->vectors, dims, f->alloc);
    if (!m->name)
        return NULL;
    f->model_count++;
    return m;
}

/* One vector: a scale, which follows from the values and is computed, and the values. */
static int take_vector(memory_fold *f, memory_model *m, sessile_id id,
                       const unsigned char *bytes)
{
    const int8_t *values = (const int8_t *)bytes + sizeof(float);
    uint32_t record = states_find(&f->states, id);
    float scale;

    if (record == STATE_NONE || !vector_good(values, m->vectors.dims))
        return 0;
    scale = vector_scale(values, m->vectors.dims);
    if (scale == 0)
        return 0;
    if (vectors_put(&m->vectors, record, values, scale))
        return -1;
    if (f->blocks.on)
        blocks_put_vector(&f->blocks, id, vectors_get(&m->vectors, record, &scale));
    return 0;
}

static int take_ids(memory_fold *f, memory_model *m, json of, const unsigned char *bytes,
                    size_t count)
{
    size_t size, one = sizeof(float) + m->vectors.dims;
    const char *text;
    sessile_id id;

    for (json_iter it = json_begin(of); count && json_next(&it); count--, bytes += one)
        if (json_plain(it.value, &text, &size) && !id_parse(text, size, &id) &&
            take_vector(f, m, id, bytes))
            return -1;
    return 0;
}

static sessile_status take_vectors(memory_fold *f, const entry *e, sessile_error *err)
{
    json name = json_get(e->data, "model"), v = json_get(e->data, "v");
    memory_model *m = NULL;
    const char *text;
    size_t size, room;
    unsigned char *bytes;
    uint64_t dims;
    int64_t raw;
    int failed = 0;

    if (name.type != JSON_STRING || json_uint(json_get(e->data, "dims"), &dims) ||
        dims < 1 || dims > VECTOR_DIMS_MAX || !json_plain(v, &text, &size))
        return SESSILE_OK;
    room = size / 4 * 3 + 1;
    bytes = mem_alloc(f->alloc, room);
    buf_clear(&f->scratch);
    if (!bytes || json_string(&f->scratch, name)) {
        mem_free(f->alloc, bytes, room);
        return fail_nomem(err);
    }
    raw = base64_decode(bytes, text, size);
    if (raw > 0) {
        sessile_slice model = {f->scratch.data, f->scratch.size};
        m = memory_fold_make_model(f, model, (size_t)dims);
        f->blocks.record = (block_record){.op = BLOCK_VECTORS, .dims = (uint32_t)dims};
        if (f->blocks.on)
            wire_put_text(&f->blocks.parts, model.data, model.size);
        failed = !m || take_ids(f, m, json_get(e->data, "of"), bytes,
                                (size_t)raw / (sizeof(float) + (size_t)dims));
    }
    if (m)
        m->newest = e->id;
    wipe(bytes, room);
    mem_free(f->alloc, bytes, room);
    return failed ? fail_nomem(err) : SESSILE_OK;
}

const memory_model *memory_fold_model_of(const memory_fold *f, sessile_slice name,
                                         size_t dims)
{
    const memory_model *found = NULL;
    if (dims)
        return find_model(f, name, dims);
    for (size_t i = 0; i < f->model_count; i++) {
        const memory_model *m = &f->models[i];
        if (m->name_size == name.size && !memcmp(m->name, name.data, name.size) &&
            (!found || m->newest > found->newest))
            found = m;
    }
    return found;
}

static size_t live_vectors(const memory_fold *f, const memory_model *m)
{
    size_t live = 0;
    for (size_t i = 0; i < m->vectors.count; i++)
        live += (size_t)states_is_live(&f->states, m->vectors.entries[i]);
    return live;
}

const memory_model *memory_fold_model(const memory_fold *f)
{
    const memory_model *best = NULL;
    size_t most = 0;
    for (size_t i = 0; i < f->model_count; i++) {
        const memory_model *m = &f->models[i];
        size_t live = live_vectors(f, m);
        if (live > most || (live && live == most && m->newest > best->newest)) {
            best = m;
            most = live;
        }
    }
    return best;
}

size_t memory_fold_bytes(const memory_fold *f)
{
    size_t sum = sizeof *f + states_bytes(&f->states) + postings_bytes(&f->postings) +
                 map_bytes(&f->heard) + blocks_bytes(&f->blocks) + f->scratch.capacity +
                 f->key.capacity + f->model_capacity * sizeof *f->models;

    for (int i = 0; i < FIELDS; i++)
        sum += f->terms[i].capacity * sizeof *f->terms[i].at;
    for (size_t i = 0; i < f->model_count; i++)
        sum += f->models[i].name_size + 1 + vectors_bytes(&f->models[i].vectors) -
               sizeof f->models[i].vectors;
    return sum;
}

/* ------------------------------------------------------------------ the visitor */

static sessile_status take_entry(memory_fold *f, const entry *e, sessile_error *err)
{
    switch (e->type) {
    case ENTRY_MEMORY:
        return take_memory(f, e, err);
    case ENTRY_VERDICT:
        return take_verdict(f, e, err);
    case ENTRY_HEARD:
        return take_heard(f, e, err);
    case ENTRY_VECTOR:
        return take_vectors(f, e, err);
    case ENTRY_CONSENT:
        f->consent = e->id;
        f->consented = json_get(e->data, "given").type == JSON_TRUE;
        f->blocks.record =
            (block_record){.op = BLOCK_CONSENT, .flags = f->consented ? BLOCK_GIVEN : 0};
        return SESSILE_OK;
    case ENTRY_REFUSAL:
        f->refusals++;
        f->blocks.record.op = BLOCK_REFUSAL;
        return SESSILE_OK;
    case ENTRY_SESSION:
        return fail(err, SESSILE_DAMAGED, "a memory has an entry of type session");
    default:
        return SESSILE_OK;
    }
}

sessile_status memory_fold_take(memory_fold *f, sessile_id id, const char *text,
                                size_t size, sessile_error *err)
{
    sessile_status status;
    entry e;

    if (f->failed)
        return fail_nomem(err);
    status = entry_read(&e, text, size, err);
    if (!status && e.id != id)
        status = fail(err, SESSILE_DAMAGED, "an entry has the id of another one");
    if (!status)
        status = id == 0 ? take_header(f, &e, err) : take_entry(f, &e, err);
    f->failed = status == SESSILE_NOMEM;
    return status;
}

sessile_status memory_fold_visit(void *arg, sessile_id id, const char *text, size_t size,
                                 sessile_error *err)
{
    memory_fold *f = arg;
    sessile_status status;

    blocks_begin(&f->blocks);
    status = memory_fold_take(f, id, text, size, err);
    if (status) {
        blocks_stop(&f->blocks);
        return status;
    }
    blocks_end(&f->blocks, &f->postings, &f->states.key, id, text, size);
    f->count = id + 1;
    return SESSILE_OK;
}
