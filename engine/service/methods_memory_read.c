/* methods_memory_read.c: entries of a memory: read, listed, found; what has no vector. */
#include "service/memories.h"

#include <string.h>

#include "codec/entry.h"
#include "codec/json.h"

enum { ROWS = 100, FOUND = 10, ROWS_MOST = 1000 };

/* ---------------------------------------------------------------------- one entry */

static sessile_status read_memory(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__ReadMemoryRequest *r = request;
    sessile_memory_row *row;
    sessile_memory *memory;
    sessile_status status = call_memory(c, r->memory, 0, &memory, err);
    if (!status)
        status = sessile_memory_read(memory, sessile_text(r->key), &row, err);
    return status ? status : reply_row(c, row, err);
}

static sessile_status get_memory_row(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__MemoryEntryRequest *r = request;
    sessile_memory_row *row;
    sessile_memory *memory;
    sessile_status status = call_memory(c, r->memory, 0, &memory, err);
    if (!status)
        status = sessile_memory_get(memory, r->entry, &row, err);
    return status ? status : reply_row(c, row, err);
}

static sessile_status get_memory_entry(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__MemoryEntryRequest *r = request;
    Sessile__V1__EntryText out = SESSILE__V1__ENTRY_TEXT__INIT;
    sessile_memory *memory;
    char *text;
    size_t size;
    sessile_status status = call_memory(c, r->memory, 0, &memory, err);
    if (!status)
        status = sessile_memory_entry(memory, r->entry, &text, &size, err);
    if (status)
        return status;
    out.entry = r->entry;
    out.json = call_json(c, (sessile_slice){text, size});
    sessile_free(text);
    return call_reply(c, &out.base, err);
}

/* ---------------------------------------------------------------------- lists */

/* A list, and what it was asked for with. */
typedef struct reading {
    row_list list; /* first */
    sessile_memory *memory;
    const void *request;
    union {
        sessile_memory_list_options list;
        sessile_memory_search_options search;
        struct {
            uint64_t skip, limit;
        } history;
    } by;
} reading;

static sessile_status read_limit(uint64_t given, uint64_t standard, uint64_t *out,
                                 sessile_error *err)
{
    *out = given ? given : standard;
    return *out <= ROWS_MOST ? SESSILE_OK
                             : fail(err, SESSILE_LIMIT, "limit is at most %d", ROWS_MOST);
}

static sessile_status find_list(call *c, row_list *l, sessile_memory_row **rows,
                                size_t *count, sessile_error *err)
{
    const reading *all = (const reading *)l;
    (void)c;
    return sessile_memory_list(all->memory, &all->by.list, rows, count, err);
}

static sessile_status list_memory(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__ListMemoryRequest *r = request;
    reading *all = call_new(c, sizeof *all);
    if (!all)
        return fail_nomem(err);
    all->list.find = find_list;
    all->by.list.offset = r->skip;
    sessile_status status = read_limit(r->limit, ROWS, &all->by.list.limit, err);
    if (!status)
        status = read_filter(r->filter, &all->by.list.filter, err);
    if (!status)
        status = call_memory(c, r->memory, 0, &all->memory, err);
    return status ? status : reply_rows(c, &all->list, err);
}

/* Of the history, which is read whole, the rows that were asked for. */
static sessile_status find_history(call *c, row_list *l, sessile_memory_row **rows,
                                   size_t *count, sessile_error *err)
{
    const reading *all = (const reading *)l;
    const Sessile__V1__MemoryHistoryRequest *r = all->request;
    (void)c;
    sessile_status status = sessile_memory_history(all->memory, sessile_text(r->key),
                                                   r->entry, rows, count, err);
    if (status)
        return status;
    const size_t skip =
        all->by.history.skip < *count ? (size_t)all->by.history.skip : *count;
    const size_t left = *count - skip;
    *count = left < all->by.history.limit ? left : (size_t)all->by.history.limit;
    if (skip && *count)
        memmove(*rows, *rows + skip, *count * sizeof **rows);
    return SESSILE_OK;
}

static sessile_status get_memory_history(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__MemoryHistoryRequest *r = request;
    reading *all = call_new(c, sizeof *all);
    if (!all)
        return fail_nomem(err);
    all->list.find = find_history;
    all->request = r;
    all->by.history.skip = r->skip;
    sessile_status status = read_limit(r->limit, ROWS_MOST, &all->by.history.limit, err);
    if (!status)
        status = call_memory(c, r->memory, 0, &all->memory, err);
    return status ? status : reply_rows(c, &all->list, err);
}

static sessile_status read_search(call *c, const Sessile__V1__SearchMemoryRequest *r,
                                  sessile_memory_search_options *out, sessile_error *err)
{
    sessile_memory_outside *outside;
    uint64_t limit;
    sessile_memory_search_init(out);
    out->weight = real_or(r->weight, out->weight);
    out->recency = r->recency;
    out->importance = r->importance;
    out->min_cover = r->min_cover;
    out->explain = r->explain;
    out->model = sessile_text(r->model);
    if (r->vector) {
        out->vector = r->vector->v;
        out->dims = r->vector->n_v;
    }
    sessile_status status = read_limit(r->limit, FOUND, &limit, err);
    out->limit = status ? 0 : (size_t)limit;
    if (!status)
        status = read_filter(r->filter, &out->filter, err);
    if (!status)
        status = read_outside(c, r->outside, NULL, &outside, &out->outside_count, err);
    out->outside = status ? NULL : outside;
    return status;
}

static sessile_status find_words(call *c, row_list *l, sessile_memory_row **rows,
                                 size_t *count, sessile_error *err)
{
    const reading *all = (const reading *)l;
    const Sessile__V1__SearchMemoryRequest *r = all->request;
    (void)c;
    return sessile_memory_search(all->memory, sessile_text(r->question), &all->by.search,
                                 rows, count, err);
}

static sessile_status search_memory(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__SearchMemoryRequest *r = request;
    reading *all = call_new(c, sizeof *all);
    if (!all)
        return fail_nomem(err);
    all->list.find = find_words;
    all->request = r;
    sessile_status status = read_search(c, r, &all->by.search, err);
    if (!status)
        status = call_memory(c, r->memory, 0, &all->memory, err);
    return status ? status : reply_rows(c, &all->list, err);
}

/* ---------------------------------------------------------------------- vectors */

static sessile_status list_models(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__MemoryRequest *r = request;
    Sessile__V1__MemoryModels out = SESSILE__V1__MEMORY_MODELS__INIT;
    sessile_memory_model *rows = NULL;
    sessile_memory *memory;
    size_t count = 0;
    sessile_status status = call_memory(c, r->memory, 0, &memory, err);
    if (!status)
        status = sessile_memory_models(memory, &rows, &count, err);
    if (status)
        return status;
    out.models = call_rows(c, count, &sessile__v1__memory_model__descriptor);
    for (size_t i = 0; out.models && i < count; i++) {
        out.models[i]->name = call_text(c, rows[i].name);
        out.models[i]->dims = (uint32_t)rows[i].dims;
        out.models[i]->vectors = rows[i].vectors;
        out.models[i]->live = rows[i].live;
        out.models[i]->missing = rows[i].missing;
        out.models[i]->used = rows[i].used;
    }
    out.n_models = out.models ? count : 0;
    sessile_free(rows);
    return call_reply(c, &out.base, err);
}

/* What a run that embeds asks for: {"texts":[…],"ids":["0000002a",…],…}. */
static sessile_status reply_unembedded(call *c, sessile_slice asked, sessile_error *err)
{
    Sessile__V1__Unembedded out = SESSILE__V1__UNEMBEDDED__INIT;
    json request = json_of(asked.data, asked.size);
    json_iter id = json_begin(json_get(request, "ids"));
    json_iter text = json_begin(json_get(request, "texts"));
    size_t count = 0, size;
    const char *digits;
    buf plain;
    for (json_iter all = text; json_next(&all);)
        count++;
    out.texts = call_rows(c, count, &sessile__v1__text_to_embed__descriptor);
    buf_init(&plain, &c->server->alloc);
    while (out.texts && out.n_texts < count && json_next(&id) && json_next(&text)) {
        Sessile__V1__TextToEmbed *row = out.texts[out.n_texts++];
        buf_clear(&plain);
        c->no_memory |= json_string(&plain, text.value) != 0;
        row->text = call_text(c, (sessile_slice){plain.data, plain.size});
        if (json_plain(id.value, &digits, &size))
            (void)id_parse(digits, size, &row->entry);
    }
    buf_deinit(&plain);
    return call_reply(c, &out.base, err);
}

/* A run that asks and is not answered has written nothing. */
static sessile_status list_unembedded(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__UnembeddedRequest *r = request;
    sessile_memory_run_options options;
    sessile_memory_run *run = NULL;
    sessile_memory *memory;
    sessile_need need = {.request = {NULL, 0}};
    sessile_memory_run_options_init(&options);
    options.embed_model = sessile_text(r->model);
    options.embed_dims = r->dims;
    options.embed_batch = r->limit ? r->limit : options.embed_batch;
    sessile_status status = call_memory(c, r->memory, 0, &memory, err);
    if (!status)
        status = sessile_embed_begin(&run, memory, &options, err);
    if (!status)
        status = sessile_memory_run_step(run, &need, err);
    if (status == SESSILE_NEEDS || !status)
        status = reply_unembedded(c, need.request, err);
    sessile_memory_run_free(run);
    return status;
}

const method methods_memory_read[] = {
    METHOD("ReadMemory", read_memory, read_memory_request, METHOD_READS),
    METHOD("GetMemoryRow", get_memory_row, memory_entry_request, METHOD_READS),
    METHOD("GetMemoryEntry", get_memory_entry, memory_entry_request, METHOD_READS),
    METHOD("ListMemory", list_memory, list_memory_request, METHOD_READS | METHOD_STREAMS),
    METHOD("GetMemoryHistory", get_memory_history, memory_history_request,
           METHOD_READS | METHOD_STREAMS),
    METHOD("SearchMemory", search_memory, search_memory_request,
           METHOD_READS | METHOD_STREAMS),
    METHOD("ListModels", list_models, memory_request, METHOD_READS),
    METHOD("ListUnembedded", list_unembedded, unembedded_request, METHOD_READS),
    {NULL, NULL, 0, NULL},
};
