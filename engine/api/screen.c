/* screen.c: the public functions of screens. */
#include "api/api.h"

#include "base/buf.h"
#include "codec/json.h"
#include "screen/write.h"
#include "policy/screen.h"

#define DEPTH_MAX 1008 /* the greatest limits.depth, and what an entry has around it */

const char *sessile_screen_kind_name(sessile_screen_kind kind)
{
    return screen_kind_name(kind);
}

const char *sessile_screen_source_name(sessile_screen_source source)
{
    return screen_source_name(source);
}

const char *sessile_screen_verdict_name(sessile_screen_verdict verdict)
{
    return screen_verdict_name(verdict);
}

void sessile_screens_options_init(sessile_screens_options *options)
{
    if (options)
        memset(options, 0, sizeof *options);
}

static sessile_status add_schemas(sessile_screens *list,
                                  const sessile_screens_options *options,
                                  sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    size_t i;

    for (i = 0; !status && i < options->schema_count; i++) {
        const sessile_screen_schema *given = &options->schemas[i];
        schema *made = NULL;
        if (!screen_kind_name(given->kind))
            return fail(err, SESSILE_INVALID, "a schema is for one kind of item");
        status = schema_open(&made, given->schema, options->schema_library,
                             screens_allocator(list), err);
        if (!status)
            status = screens_add_schema(list, given->kind, given->key, made, err);
        if (status)
            schema_free(made);
    }
    return status;
}

sessile_status sessile_screens_load(sessile_screens **out,
                                    const sessile_screen_step *steps, size_t count,
                                    const sessile_screens_options *options,
                                    sessile_error *err)
{
    allocator a = allocator_default;
    sessile_screens *list = NULL;
    sessile_status status;
    size_t i;

    error_clear(err);
    API_OUT(out, NULL);
    API_NEED_IF(count, steps);
    API_OPTIONS(sessile_screens_options, options);
    API_NEED_IF(options->schema_count, options->schemas);
    if (!count && !options->schema_count)
        return fail(err, SESSILE_INVALID, "a list has at least one screen or schema");
    if (options->alloc) {
        a.fn = options->alloc;
        a.ud = options->alloc_ud;
    }
    status = screens_new(&list, os_current, &a, err);
    for (i = 0; !status && i < count; i++) {
        if (!steps[i].name || !steps[i].name[0])
            status =
                fail(err, SESSILE_INVALID, "screen %zu of the list has no name", i + 1);
        else if (steps[i].on & ~(unsigned)SESSILE_SCREEN_KINDS)
            status = fail(err, SESSILE_INVALID, "screen %s: on has an unknown kind",
                          steps[i].name);
        else
            status = screen_load(list, &steps[i], options->folders, options->verbose,
                                 os_current, err);
    }
    if (!status)
        status = add_schemas(list, options, err);
    if (!status)
        *out = list;
    else
        screens_release(list);
    return status;
}

void sessile_screens_free(sessile_screens *screens)
{
    screens_release(screens);
}

/* Appends a text with its NUL; the place where it is. */
static size_t put_text(buf *out, const char *text)
{
    size_t at = out->size;
    buf_put(out, text, strlen(text) + 1);
    return at;
}

/* The result as one block of the host: the outcome, its findings, their texts. */
static sessile_status give_outcome(sessile_screen_outcome **out,
                                   const screen_result *result, const allocator *a,
                                   sessile_error *err)
{
    sessile_screen_outcome head = {.verdict = result->verdict, .count = result->count};
    sessile_screen_finding rows[SCREENS_MOST + 2] = {{0}};
    size_t places[SCREENS_MOST + 2][4], text_at, i;
    char *block;
    buf all;

    buf_init(&all, a);
    buf_put(&all, &head, sizeof head);
    buf_put(&all, rows, result->count * sizeof *rows);
    for (i = 0; i < result->count; i++) {
        const screen_finding *f = &result->findings[i];
        places[i][0] = put_text(&all, f->screen);
        places[i][1] = put_text(&all, f->rule);
        places[i][2] = put_text(&all, f->message);
        places[i][3] = put_text(&all, f->pointer);
    }
    text_at = all.size;
    if (result->verdict == SESSILE_SCREEN_REDACT)
        buf_put(&all, result->text.data, result->text.size);
    block = all.failed ? NULL : host_dup(a, all.data, all.size);
    buf_deinit(&all);
    if (!block)
        return fail_nomem(err);
    for (i = 0; i < result->count; i++)
        rows[i] = (sessile_screen_finding){.verdict = result->findings[i].verdict,
                                           .removed = result->findings[i].removed,
                                           .screen = block + places[i][0],
                                           .rule = block + places[i][1],
                                           .message = block + places[i][2],
                                           .pointer = block + places[i][3]};
    memcpy(block + sizeof head, rows, result->count * sizeof *rows);
    head.findings = (const sessile_screen_finding *)(block + sizeof head);
    if (result->verdict == SESSILE_SCREEN_REDACT)
        head.text = (sessile_slice){block + text_at, result->text.size};
    memcpy(block, &head, sizeof head);
    *out = (sessile_screen_outcome *)block;
    return SESSILE_OK;
}

static sessile_status check_item(const sessile_screen_item *item, const allocator *a,
                                 sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    buf checked;

    if (!screen_kind_name(item->kind))
        return fail(err, SESSILE_INVALID, "an item has one kind");
    if (!screen_source_name(item->source))
        return fail(err, SESSILE_INVALID, "an item has a source");
    if ((unsigned)item->role > 31)
        return fail(err, SESSILE_INVALID, "no such role: %d", (int)item->role);
    if (!item->is_json)
        return SESSILE_OK;
    buf_init(&checked, a);
    status = json_check(&checked, item->text.data, item->text.size, DEPTH_MAX, err);
    buf_deinit(&checked);
    return status;
}

/* list NULL: there are no rules. */
static sessile_status run_list(sessile_screen_outcome **out, const sessile_screens *list,
                               const sessile_screen_item *item, const allocator *a,
                               sessile_error *err)
{
    sessile_status status = check_item(item, a, err);
    screen_result result;

    if (status)
        return status;
    status = screens_run(list, item, &result, err);
    if (!status)
        status = give_outcome(out, &result, a, err);
    screen_result_deinit(&result);
    return status;
}

sessile_status sessile_screen(sessile_screen_outcome **out,
                              const sessile_screens *screens,
                              const sessile_screen_item *item, sessile_error *err)
{
    API_MAKE(out, screens);
    API_NEED(item);
    API_TEXT(item->text);
    API_TEXT(item->author);
    API_TEXT(item->key);
    return run_list(out, screens, item, screens_allocator(screens), err);
}

sessile_status sessile_store_screen(sessile_screen_outcome **out,
                                    const sessile_store *store,
                                    const sessile_screen_item *item, sessile_error *err)
{
    API_MAKE(out, store);
    API_NEED(item);
    API_TEXT(item->text);
    API_TEXT(item->author);
    API_TEXT(item->key);
    const store_core *core = GUARD_ALSO(store);
    return run_list(out, write_rules_list(core), item, &core->alloc, err);
}
