/*
 * pages.c: a list of sessions in pages.
 *
 * A page goes on behind the last row of the page before it, wherever that row is by now.
 * So no session is left out because others moved, were made or were removed meanwhile.
 * Only if that row itself moved can rows that are its equals be given twice.
 *
 * A token is base64 of 8 bytes, by which a token of another request is known, and of that
 * row as a Listed. It is not signed, because it grants nothing: the guard filters every
 * page for its caller.
 */
#include "service/server.h"

#include <string.h>

enum { MARK = 8 };

/* ---------------------------------------------------------------------- tokens */

/* What the request asks for, whichever page; equal in each process. */
static void mark_of(call *c, const Sessile__V1__ListRequest *r, unsigned char out[MARK])
{
    static const hash_key none;
    static char empty[1];
    Sessile__V1__ListRequest same = *r;
    same.page_token = empty;
    same.limit = same.skip = 0;
    size_t size = sessile__v1__list_request__get_packed_size(&same);
    unsigned char *bytes = call_new(c, size + 1);
    if (bytes)
        sessile__v1__list_request__pack(&same, bytes);
    uint64_t hash = hash64_keyed(&none, bytes, bytes ? size : 0);
    for (int i = 0; i < MARK; i++)
        out[i] = (unsigned char)(hash >> (8 * i));
}

static sessile_status read_token(call *c, const Sessile__V1__ListRequest *r,
                                 Sessile__V1__Listed **out, sessile_error *err)
{
    unsigned char mark[MARK];
    size_t size = strlen(r->page_token);
    unsigned char *raw = call_new(c, size + 1);
    ProtobufCMessage *key = NULL;
    mark_of(c, r, mark);
    if (c->no_memory)
        return fail_nomem(err);
    int64_t n = base64_decode(raw, r->page_token, size);
    if (n < MARK || memcmp(raw, mark, MARK) != 0 ||
        decode_request(&sessile__v1__listed__descriptor, raw + MARK, (size_t)n - MARK,
                       &c->arena, &key, err))
        key = NULL;
    *out = (Sessile__V1__Listed *)key;
    if (!key || !(*out)->session || (*out)->entries == 0)
        return fail(err, SESSILE_INVALID,
                    "ListRequest.page_token is not of a page of this request: ask for "
                    "the first page");
    return SESSILE_OK;
}

/* The token for what follows a row, before and with which `entries` rows were given. */
static char *token_behind(call *c, const Sessile__V1__ListRequest *r,
                          const sessile_listed *row, uint64_t entries)
{
    Sessile__V1__Listed key = SESSILE__V1__LISTED__INIT;
    key.session = call_session_names(c, row->agent, row->user, row->id);
    key.title = call_text(c, row->title);
    key.modified_ms = row->modified_ms;
    key.created_ms = row->created_ms;
    key.bytes = row->bytes;
    key.messages = row->messages;
    key.entries = entries;
    size_t size = MARK + sessile__v1__listed__get_packed_size(&key);
    unsigned char *raw = call_new(c, size);
    char *out = call_new(c, base64_size(size) + 1);
    if (!raw || !out)
        return out;
    mark_of(c, r, raw);
    sessile__v1__listed__pack(&key, raw + MARK);
    base64_encode(out, raw, size);
    return out;
}

/* ---------------------------------------------------------------------- places */

static int by_size(uint64_t row, uint64_t key)
{
    return row > key ? -1 : row < key;
}

static int by_title(sessile_slice row, const char *key)
{
    size_t size = strlen(key), both = row.size < size ? row.size : size;
    int order = both ? memcmp(row.data, key, both) : 0;
    return order ? order : row.size > size ? 1 : -(row.size < size);
}

/* Where a row is: before the one of the token (< 0), behind it (> 0), or its equal. */
static int order(sessile_sort sort, const sessile_listed *row,
                 const Sessile__V1__Listed *key)
{
    switch (sort) {
    case SESSILE_SORT_CREATED:
        return by_size((uint64_t)row->created_ms, (uint64_t)key->created_ms);
    case SESSILE_SORT_TITLE:
        return by_title(row->title, key->title);
    case SESSILE_SORT_BYTES:
        return by_size(row->bytes, key->bytes);
    case SESSILE_SORT_MESSAGES:
        return by_size(row->messages, key->messages);
    default:
        return by_size((uint64_t)row->modified_ms, (uint64_t)key->modified_ms);
    }
}

static int has_name(sessile_slice name, const char *text, const ProtobufCBinaryData *raw)
{
    const void *data = raw ? (const void *)raw->data : text;
    size_t size = raw ? raw->len : strlen(text);
    return name.size == size && (size == 0 || memcmp(name.data, data, size) == 0);
}

/* 1: it is the row of the token, and it has not moved. */
static int is_key(sessile_sort sort, const sessile_listed *row,
                  const Sessile__V1__Listed *key)
{
    const Sessile__V1__Session *s = key->session;
    return order(sort, row, key) == 0 &&
           has_name(row->id, s->id, s->raw ? &s->raw->id : NULL) &&
           has_name(row->agent, s->agent, s->raw ? &s->raw->agent : NULL) &&
           has_name(row->user, s->user, s->raw ? &s->raw->user : NULL);
}

/* The number of rows before what follows the row of the token. */
static size_t rows_before(sessile_sort sort, const sessile_listed *rows, size_t count,
                          const Sessile__V1__Listed *key)
{
    size_t first = count;
    for (size_t i = 0; i < count; i++) {
        if (is_key(sort, &rows[i], key))
            return i + 1;
        if (first == count && order(sort, &rows[i], key) >= 0)
            first = i;
    }
    return first;
}

/* ---------------------------------------------------------------------- pages */

/* Lists what follows the row of the token: where it was, or else among all rows. */
static sessile_status list_behind(call *c, const Sessile__V1__Listed *key,
                                  sessile_list_options *options, sessile_listed **rows,
                                  size_t *count, size_t *at, sessile_error *err)
{
    options->offset = key->entries - 1;
    options->limit += 2; /* that row, and one that tells whether there are more */
    sessile_status status = sessile_list_with(c->view, options, rows, count, err);
    *at = 1;
    if (status || (*count > 0 && is_key(options->sort, *rows, key)))
        return status;
    sessile_free(*rows);
    options->offset = options->limit = 0;
    status = sessile_list_with(c->view, options, rows, count, err);
    if (!status)
        *at = rows_before(options->sort, *rows, *count, key);
    return status;
}

sessile_status page_list(call *c, const Sessile__V1__ListRequest *r,
                         sessile_list_options *options, page *out, sessile_error *err)
{
    static char none[1];
    Sessile__V1__Listed *key = NULL;
    uint64_t limit = options->limit;
    size_t count, at = 0;
    sessile_status status;
    *out = (page){.next = none};
    if (*r->page_token && r->skip)
        return fail(err, SESSILE_INVALID,
                    "ListRequest.skip is for the first page alone: page_token goes on");
    if (*r->page_token) {
        status = read_token(c, r, &key, err);
        if (!status)
            status = list_behind(c, key, options, &out->all, &count, &at, err);
    } else {
        options->limit = limit + 1;
        status = sessile_list_with(c->view, options, &out->all, &count, err);
    }
    if (status)
        return status;
    out->first = out->all + at;
    out->count = count - at;
    if (out->count <= limit)
        return SESSILE_OK;
    out->count = (size_t)limit;
    out->next = token_behind(c, r, &out->first[limit - 1], options->offset + at + limit);
    return SESSILE_OK;
}
