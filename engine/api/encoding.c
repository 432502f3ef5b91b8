/* encoding.c: the public functions that count tokens exactly. */
#include "api/api.h"

#include "tokens/encoding.h"

void sessile_encoding_options_init(sessile_encoding_options *options)
{
    if (options)
        memset(options, 0, sizeof *options);
}

sessile_status sessile_encoding_open(sessile_encoding **out, const char *name,
                                     const sessile_encoding_options *options,
                                     sessile_error *err)
{
    allocator a = allocator_default;

    API_MAKE(out, name);
    if (options && options->alloc) {
        a.fn = options->alloc;
        a.ud = options->alloc_ud;
    }
    return encoding_open_with(out, name, options ? options->folders : NULL,
                              options ? options->pattern : NULL, &a, err);
}

void sessile_encoding_close(sessile_encoding *encoding)
{
    encoding_free(encoding);
}

const char *sessile_encoding_name(const sessile_encoding *encoding)
{
    return encoding ? encoding_name(encoding) : "";
}

sessile_status sessile_encoding_count(const sessile_encoding *encoding,
                                      sessile_slice text, int64_t *tokens,
                                      sessile_error *err)
{
    error_clear(err);
    API_OUT(tokens, 0);
    API_NEED(encoding);
    API_TEXT(text);
    return encoding_count(encoding, text.data, text.size, tokens, err);
}

/* What a buffer holds as a block for the host. */
static sessile_status hand_out(sessile_status status, const encoding *e, buf *made,
                               void **out, size_t *size, sessile_error *err)
{
    if (!status) {
        *out = host_dup(encoding_allocator(e), made->data, made->size);
        if (!*out)
            status = fail_nomem(err);
    }
    if (!status)
        *size = made->size;
    buf_deinit(made);
    return status;
}

sessile_status sessile_encoding_encode(const sessile_encoding *encoding,
                                       sessile_slice text, uint32_t **ids, size_t *count,
                                       sessile_error *err)
{
    sessile_status status;
    size_t size = 0;
    void *given = NULL;
    buf made;

    API_LIST(ids, count, encoding);
    API_TEXT(text);
    buf_init(&made, encoding_allocator(encoding));
    status = encoding_encode(encoding, text.data, text.size, &made, err);
    status = hand_out(status, encoding, &made, &given, &size, err);
    *ids = given;
    *count = size / sizeof **ids;
    return status;
}

sessile_status sessile_encoding_decode(const sessile_encoding *encoding,
                                       const uint32_t *ids, size_t count, char **text,
                                       size_t *size, sessile_error *err)
{
    sessile_status status;
    void *given = NULL;
    buf made;

    API_LIST(text, size, encoding);
    API_NEED_IF(count, ids);
    buf_init(&made, encoding_allocator(encoding));
    status = encoding_decode(encoding, ids, count, &made, err);
    status = hand_out(status, encoding, &made, &given, size, err);
    *text = given;
    return status;
}
