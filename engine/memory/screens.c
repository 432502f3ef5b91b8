/*
 * screens.c: what a memory is about to be told meets the rules of its store.
 *
 * Must never be asked while a memory is locked: a screen may run Lua.
 */
#include "memory/memory.h"

#include "screen/write.h"

void memory_words_init(memory_words *w, const allocator *a)
{
    buf_init(&w->value, a);
    buf_init(&w->also, a);
}

void memory_words_deinit(memory_words *w)
{
    buf_wipe(&w->value);
    buf_wipe(&w->also);
}

sessile_screen_source memory_screen_source(sessile_memory_source source)
{
    switch (source) {
    case SESSILE_MEMORY_BY_USER:
        return SESSILE_SCREEN_BY_USER;
    case SESSILE_MEMORY_BY_SYSTEM:
        return SESSILE_SCREEN_BY_SYSTEM;
    case SESSILE_MEMORY_BY_AGENT:
        return SESSILE_SCREEN_BY_AGENT;
    default:
        return SESSILE_SCREEN_BY_TOOL;
    }
}

sessile_status memory_screen_fixed(const store_core *st, const char *what,
                                   sessile_slice text, sessile_screen_source source,
                                   sessile_error *err)
{
    sessile_screen_item item = {
        .kind = SESSILE_SCREEN_MEMORY, .source = source, .text = text};
    sessile_status status =
        text.size ? write_screen(st, &item, NULL, NULL, 0, err) : SESSILE_OK;

    if (status)
        fail_prefix(err, "%s", what);
    return status;
}

/* The rules that flag an entry, before the rest of its metadata. */
static sessile_status put_flags(const write_labels *flags, buf *metadata,
                                sessile_error *err)
{
    json_iter it = json_begin(json_of(metadata->size ? metadata->data : "{}",
                                      metadata->size ? metadata->size : 2));
    sessile_status status;
    buf all;

    buf_init(&all, metadata->alloc);
    buf_puts(&all, "{\"flagged\":");
    write_labels_json(flags, 0, &all);
    while (json_next(&it)) {
        if (json_is(it.key, "flagged"))
            continue;
        buf_putc(&all, ',');
        buf_put(&all, it.key.at, it.key.size);
        buf_putc(&all, ':');
        buf_put(&all, it.value.at, it.value.size);
    }
    buf_putc(&all, '}');
    buf_clear(metadata);
    buf_put(metadata, all.data, all.size);
    status = all.failed || metadata->failed ? fail_nomem(err) : SESSILE_OK;
    buf_wipe(&all);
    return status;
}

static sessile_status screen_text(const store_core *st, sessile_screen_item *item,
                                  sessile_slice *text, buf *left, write_labels *flags,
                                  sessile_error *err)
{
    sessile_status status;

    item->text = *text;
    status = text->size ? write_screen(st, item, left, flags, 0, err) : SESSILE_OK;
    if (!status && left->size)
        *text = (sessile_slice){left->data, left->size};
    return status;
}

sessile_status memory_screen_entry(const store_core *st, sessile_memory_write_entry *e,
                                   memory_words *words, buf *metadata, sessile_error *err)
{
    sessile_screen_item item = {.kind = SESSILE_SCREEN_MEMORY,
                                .source = memory_screen_source(e->source),
                                .author = e->author,
                                .key = e->key};
    write_labels flags = {NULL, 0, 0};
    sessile_status status;

    if (!write_is_screened(st, item.kind))
        return SESSILE_OK;
    status = memory_screen_fixed(st, "the key", e->key, item.source, err);
    if (!status)
        status = memory_screen_fixed(st, "the author", e->author, item.source, err);
    if (!status)
        status = screen_text(st, &item, &e->value, &words->value, &flags, err);
    if (!status)
        status = screen_text(st, &item, &e->also, &words->also, &flags, err);
    item.is_json = 1;
    if (!status)
        status = write_screen_in(st, &item, metadata, 0, &flags, 0, err);
    if (!status && flags.count)
        status = put_flags(&flags, metadata, err);
    write_labels_deinit(&flags, &st->alloc);
    return status;
}
