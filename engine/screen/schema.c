/*
 * schema.c: JSON Schema, by a library that is loaded when the first schema is opened.
 *
 * Owns the table of its functions, and the expressions that a schema has, which PCRE2
 * matches within limits: the one of C++ (std::regex) recurses for each character, and a
 * long text overflows the stack. Must never hand it a text that is no JSON, or one that
 * is nested too deep.
 */
#include "screen/schema.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/os.h"
#include "base/text.h"
#include "codec/json.h"
#include "screen/pattern.h"
#include "screen/schema_library.h"

#ifndef SESSILE_LIBEXEC
#define SESSILE_LIBEXEC "/usr/local/libexec/sessile"
#endif
#define LIBRARY SESSILE_LIBEXEC "/schema.so"

struct schema {
    allocator alloc;
    void *library, *handle;
    schema_library_close *close;
    schema_library_check *check;
};

/* ------------------------------------------------------------------ expressions */

/* An expression of a schema: a set of one. */
static void *expression_new(const char *text, size_t size)
{
    pattern_set *set;
    if (pattern_set_new(&set, &allocator_default, NULL))
        return NULL;
    if (pattern_set_add_exact(set, "pattern", (sessile_slice){text, size}, NULL)) {
        pattern_set_free(set);
        return NULL;
    }
    pattern_set_ready(set);
    return set;
}

static int expression_search(const void *expression, const char *text, size_t size)
{
    pattern_hits hits;
    sessile_status status;
    int found;

    if (size > PATTERN_REACH) /* a match could be longer */
        return -1;
    pattern_hits_init(&hits, &allocator_default);
    status = pattern_set_match(expression, (sessile_slice){text, size}, 1, os_current,
                               &hits, NULL);
    found = status ? -1 : hits.matched != 0;
    pattern_hits_deinit(&hits);
    return found;
}

static void expression_free(void *expression)
{
    pattern_set_free(expression);
}

static const schema_expressions expressions = {expression_new, expression_search,
                                               expression_free};

/* ------------------------------------------------------------------ schemas */

static sessile_status load(schema *s, const char *library, schema_library_open **open,
                           sessile_error *err)
{
    schema_library_version *version;

    s->library = os_library_open(library);
    if (!s->library)
        return fail(err, SESSILE_UNSUPPORTED,
                    "this build has no JSON Schema: %s is not there; install g++, "
                    "libvalijson-dev and rapidjson-dev, and build sessile again",
                    library);
    if (os_library_find(s->library, "sessile_schema_version", &version, sizeof version) ||
        version() != SCHEMA_LIBRARY_VERSION ||
        os_library_find(s->library, "sessile_schema_open", open, sizeof *open) ||
        os_library_find(s->library, "sessile_schema_check", &s->check, sizeof s->check) ||
        os_library_find(s->library, "sessile_schema_close", &s->close, sizeof s->close))
        return fail(err, SESSILE_UNSUPPORTED,
                    "%s belongs to another version of sessile: build it again", library);
    return SESSILE_OK;
}

/* Checks the text, and appends it without white space. */
static sessile_status read_json(buf *out, sessile_slice text, const char *what,
                                sessile_error *err)
{
    sessile_status status;
    if (text.size > SCHEMA_SIZE_MAX * 64)
        return fail(err, SESSILE_LIMIT, "%s is larger than 64 MiB", what);
    status = json_check(out, text.data, text.size, SCHEMA_DEPTH, err);
    return status ? fail_prefix(err, "%s", what) : SESSILE_OK;
}

sessile_status schema_open(schema **out, sessile_slice text, const char *library,
                           const allocator *a, sessile_error *err)
{
    schema *s = mem_zalloc(a, sizeof *s);
    schema_library_open *open = NULL;
    sessile_status status;
    char why[200] = "";
    buf checked;

    *out = NULL;
    if (!s)
        return fail_nomem(err);
    s->alloc = *a;
    buf_init(&checked, a);
    status = load(s, library ? library : LIBRARY, &open, err);
    if (!status && text.size > SCHEMA_SIZE_MAX)
        status =
            fail(err, SESSILE_LIMIT, "a schema has at most %zu bytes", SCHEMA_SIZE_MAX);
    if (!status)
        status = read_json(&checked, text, "the schema", err);
    if (!status) {
        int failed =
            open(&s->handle, checked.data, checked.size, &expressions, why, sizeof why);
        if (failed == SCHEMA_NOMEM)
            status = fail_nomem(err);
        else if (failed)
            status = fail(err, SESSILE_INVALID, "the schema is wrong: %s", why);
    }
    buf_deinit(&checked);
    if (status)
        schema_free(s);
    else
        *out = s;
    return status;
}

void schema_free(schema *s)
{
    allocator a;
    if (!s)
        return;
    a = s->alloc;
    if (s->handle)
        s->close(s->handle);
    os_library_close(s->library);
    mem_free(&a, s, sizeof *s);
}

sessile_status schema_check(const schema *s, sessile_slice text, schema_fault *fault,
                            sessile_error *err)
{
    sessile_status status;
    buf checked;

    memset(fault, 0, sizeof *fault);
    buf_init(&checked, &s->alloc);
    status = read_json(&checked, text, "what the schema is for", err);
    if (!status) {
        schema_report report = {fault->pointer, sizeof fault->pointer, fault->message,
                                sizeof fault->message};
        switch (s->check(s->handle, checked.data, checked.size, &report)) {
        case SCHEMA_OK:
            break;
        case SCHEMA_BROKEN:
            fault->broken = 1;
            break;
        case SCHEMA_NOMEM:
            status = fail_nomem(err);
            break;
        default:
            status = fail(err, SESSILE_LIMIT, "the schema cannot be applied: %s",
                          fault->message);
        }
    }
    buf_deinit(&checked);
    return status;
}
