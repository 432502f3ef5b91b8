/*
 * write.c: the rules of a store, and what they make of a text that is about to be
 * written.
 *
 * Must never be asked while a lock is held: a screen may run Lua.
 */
#include "screen/write.h"

#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "codec/message.h"
#include "screen/url.h"

struct write_rules {
    counted references; /* first: see base/counted.h */
    allocator alloc;
    sessile_screens *list; /* with the check of URLs */
    unsigned kinds;        /* that are looked at */
    sessile_url_rules urls;
    sessile_slice *allow; /* urls.options.allow: its texts are in allow_text */
    buf allow_text;
};

/* ------------------------------------------------------------------ the rules */

static void rules_free(void *object)
{
    write_rules *r = object;
    allocator a = r->alloc;

    screens_release(r->list);
    mem_free(&a, r->allow, r->urls.options.allow_count * sizeof *r->allow);
    buf_deinit(&r->allow_text);
    mem_free(&a, r, sizeof *r);
}

static sessile_status check_urls(void *arg, const sessile_screen_item *item,
                                 sessile_slice text, screen_urls *out, sessile_error *err)
{
    const write_rules *r = arg;
    sessile_url_found found;
    sessile_status status;

    if (!((r->urls.refuse | r->urls.flag) & (unsigned)item->kind))
        return SESSILE_OK;
    status = url_check(text, &r->urls.options, IDN_LIBRARY, &found, err);
    if (status != SESSILE_DENIED)
        return status;
    out->verdict = r->urls.refuse & (unsigned)item->kind ? SESSILE_SCREEN_REFUSE
                                                         : SESSILE_SCREEN_FLAG;
    snprintf(out->rule, sizeof out->rule, "%s", found.rule);
    return SESSILE_OK;
}

static sessile_status copy_allow(write_rules *r, const sessile_url_options *from,
                                 sessile_error *err)
{
    size_t at = 0;

    for (size_t i = 0; i < from->allow_count; i++)
        buf_put(&r->allow_text, from->allow[i].data, from->allow[i].size);
    if (from->allow_count)
        r->allow = mem_alloc(&r->alloc, from->allow_count * sizeof *r->allow);
    if (r->allow_text.failed || (from->allow_count && !r->allow))
        return fail_nomem(err);
    for (size_t i = 0; i < from->allow_count; i++) {
        r->allow[i] = (sessile_slice){r->allow_text.data + at, from->allow[i].size};
        at += from->allow[i].size;
    }
    r->urls.options.allow = r->allow;
    r->urls.options.allow_count = from->allow_count;
    return SESSILE_OK;
}

sessile_status write_rules_new(write_rules **out, sessile_screens *screens,
                               const sessile_url_rules *urls, const os_table *os,
                               const allocator *a, sessile_error *err)
{
    unsigned of_urls = urls->refuse | urls->flag;
    sessile_status status = url_allow_check(&urls->options, err);
    write_rules *r;

    *out = NULL;
    if (!status && (of_urls & ~(unsigned)SESSILE_SCREEN_KINDS))
        status = fail(err, SESSILE_INVALID, "urls: there is no such kind of text");
    if (!status && urls->options.allow_count > SIZE_MAX / sizeof *r->allow)
        status = fail_nomem(err);
    if (status || (!screens && !of_urls))
        return status;
    r = mem_zalloc(a, sizeof *r);
    if (!r)
        return fail_nomem(err);
    counted_init(&r->references, rules_free);
    r->alloc = *a;
    buf_init(&r->allow_text, &r->alloc);
    r->urls = *urls;
    r->urls.options.allow_count = 0;
    status = copy_allow(r, &urls->options, err);
    if (!status)
        status = screens_new_over(&r->list, screens, os, a, err);
    if (status) {
        counted_release(r);
        return status;
    }
    r->kinds = of_urls | screens_kinds(r->list);
    screens_set_urls(r->list, check_urls, r);
    *out = r;
    return SESSILE_OK;
}

const sessile_screens *write_rules_list(const store_core *st)
{
    return st->rules ? st->rules->list : NULL;
}

int write_is_screened(const store_core *st, sessile_screen_kind kind)
{
    return st->rules && (st->rules->kinds & (unsigned)kind);
}

/* ------------------------------------------------------------------ labels */

void write_labels_deinit(write_labels *labels, const allocator *a)
{
    mem_free(a, labels->list, labels->capacity * sizeof *labels->list);
    memset(labels, 0, sizeof *labels);
}

static int is_there(const write_labels *labels, size_t of, const char *name)
{
    for (size_t i = 0; i < labels->count; i++)
        if (labels->list[i].of == of && strcmp(labels->list[i].name, name) == 0)
            return 1;
    return 0;
}

static sessile_status add_labels(write_labels *labels, size_t of,
                                 const screen_result *result, const allocator *a,
                                 sessile_error *err)
{
    char name[SCREEN_LABEL];

    for (size_t i = 0; i < result->count; i++) {
        if (!screen_label(&result->findings[i], name) || is_there(labels, of, name))
            continue;
        if (mem_grow(a, (void **)&labels->list, &labels->capacity, labels->count + 1,
                     sizeof *labels->list))
            return fail_nomem(err);
        labels->list[labels->count].of = of;
        memcpy(labels->list[labels->count++].name, name, sizeof name);
    }
    return SESSILE_OK;
}

void write_labels_put(const write_labels *labels, batch *b, size_t of, sessile_id id)
{
    char data[SCREEN_LABEL + 16];

    for (size_t i = 0; i < labels->count; i++)
        if (labels->list[i].of == of) { /* a rule's name has no byte that is escaped */
            int size =
                snprintf(data, sizeof data, "{\"label\":\"%s\"}", labels->list[i].name);
            batch_put(b, id, ENTRY_LABEL, SOURCE_HOST, data, (size_t)size);
        }
}

void write_labels_json(const write_labels *labels, size_t of, buf *out)
{
    const char *before = "[";

    for (size_t i = 0; i < labels->count; i++)
        if (labels->list[i].of == of) {
            buf_printf(out, "%s\"%s\"", before,
                       labels->list[i].name + sizeof "screen:" - 1);
            before = ",";
        }
    buf_puts(out, *before == '[' ? "[]" : "]");
}

/* ------------------------------------------------------------------ a text */

/* What is removed where nothing can be removed: a name would be another one. */
static sessile_status refuse_removal(const screen_result *result, sessile_error *err)
{
    size_t i = 0;

    while (result->findings[i].verdict != SESSILE_SCREEN_REDACT)
        i++;
    return fail_rule(
        err, SESSILE_DENIED, result->findings[i].rule,
        "the screen %s would remove words of it by its rule %s, which cannot "
        "be done here: leave them out",
        result->findings[i].screen, result->findings[i].rule);
}

sessile_status write_screen(const store_core *st, const sessile_screen_item *item,
                            buf *left, write_labels *labels, size_t of,
                            sessile_error *err)
{
    screen_result result;
    sessile_status status;

    if (!write_is_screened(st, item->kind))
        return SESSILE_OK;
    status = screens_run(st->rules->list, item, &result, err);
    if (!status)
        status = screen_refusal(&result, err);
    if (!status && labels)
        status = add_labels(labels, of, &result, &st->alloc, err);
    if (!status && result.verdict == SESSILE_SCREEN_REDACT && !left) {
        status = refuse_removal(&result, err);
    } else if (!status && result.verdict == SESSILE_SCREEN_REDACT) {
        buf_put(left, result.text.data, result.text.size);
        if (left->failed)
            status = fail_nomem(err);
    }
    screen_result_deinit(&result);
    return status;
}

sessile_status write_screen_in(const store_core *st, const sessile_screen_item *item,
                               buf *text, size_t from, write_labels *labels, size_t of,
                               sessile_error *err)
{
    sessile_screen_item one = *item;
    sessile_status status;
    buf left;

    if (!write_is_screened(st, item->kind) || text->size == from)
        return SESSILE_OK;
    one.text = (sessile_slice){text->data + from, text->size - from};
    buf_init(&left, &st->alloc);
    status = write_screen(st, &one, &left, labels, of, err);
    if (!status && left.size) {
        text->size = from;
        buf_put(text, left.data, left.size);
        if (text->failed)
            status = fail_nomem(err);
    }
    buf_wipe(&left);
    return status;
}

/* Whose words a message has: with results of tools, a tool's. */
static sessile_status read_speaker(const store_core *st, sessile_screen_item *item,
                                   const char *text, size_t size, message *columns,
                                   sessile_error *err)
{
    message_link *links = NULL;
    size_t count = 0, capacity = 0;
    sessile_status status =
        message_read(columns, text, size, &links, &count, &capacity, &st->alloc, err);

    item->role = columns->role;
    for (size_t i = 0; !status && i < count; i++)
        if (links[i].is_result)
            item->role = SESSILE_TOOL;
    mem_free(&st->alloc, links, capacity * sizeof *links);
    switch (item->role) {
    case SESSILE_USER:
        item->source = SESSILE_SCREEN_BY_USER;
        break;
    case SESSILE_ASSISTANT:
    case SESSILE_MODEL:
        item->source = SESSILE_SCREEN_BY_AGENT;
        break;
    case SESSILE_TOOL:
    case SESSILE_FUNCTION:
        item->source = SESSILE_SCREEN_BY_TOOL;
        break;
    default:
        item->source = SESSILE_SCREEN_BY_SYSTEM;
    }
    return status;
}

sessile_status write_screen_message(const store_core *st, buf *text, size_t from,
                                    write_labels *labels, size_t of, sessile_error *err)
{
    sessile_screen_item item = {.kind = SESSILE_SCREEN_MESSAGE, .is_json = 1};
    sessile_status status;
    message columns;
    buf author;

    if (!write_is_screened(st, item.kind))
        return SESSILE_OK;
    status = read_speaker(st, &item, text->data + from, text->size - from, &columns, err);
    if (status)
        return status;
    buf_init(&author, &st->alloc);
    if (columns.author.type == JSON_STRING)
        (void)json_string(&author, columns.author);
    item.author = (sessile_slice){author.data, author.size};
    status = author.failed ? fail_nomem(err)
                           : write_screen_in(st, &item, text, from, labels, of, err);
    buf_deinit(&author);
    return status;
}

sessile_status write_screen_json(const store_core *st, sessile_screen_kind kind,
                                 buf *text, size_t from, write_labels *labels, size_t of,
                                 sessile_error *err)
{
    sessile_screen_item item = {
        .kind = kind, .source = SESSILE_SCREEN_BY_HOST, .role = SESSILE_ROLE_NONE};

    item.is_json = 1;
    return write_screen_in(st, &item, text, from, labels, of, err);
}

sessile_status write_screen_fixed(const store_core *st, sessile_screen_kind kind,
                                  const char *what, sessile_slice text, int is_json,
                                  sessile_error *err)
{
    const sessile_screen_item item = {.kind = kind,
                                      .source = SESSILE_SCREEN_BY_HOST,
                                      .role = SESSILE_ROLE_NONE,
                                      .key = slice_of(what),
                                      .text = text,
                                      .is_json = is_json};
    sessile_status status =
        text.size ? write_screen(st, &item, NULL, NULL, 0, err) : SESSILE_OK;

    if (status)
        fail_prefix(err, "the %s", what);
    return status;
}
