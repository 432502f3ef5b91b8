/*
 * trace_context.c: the header traceparent, read strictly and written.
 *
 * Everything that is not exactly in the form of the specification is refused, upper-case
 * hex and ids of zeros included: a header that is read wrongly would join strangers'
 * traces. https://www.w3.org/TR/trace-context/#traceparent-header
 */
#include "service/trace_context.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Where the fields are in the text. */
enum { AT_TRACE = 3, AT_SPAN = 36, AT_FLAGS = 53, LENGTH = 55 };

static int is_zero(const unsigned char *id, size_t size)
{
    unsigned char any = 0;
    while (size-- > 0)
        any |= id[size];
    return !any;
}

int trace_context_is_set(const trace_context *c)
{
    return c && !is_zero(c->trace, TRACE_ID_SIZE) && !is_zero(c->span, SPAN_ID_SIZE);
}

int traceparent_parse(trace_context *out, const char *text, size_t size)
{
    trace_context c;
    unsigned char version;

    memset(out, 0, sizeof *out);
    if (size < LENGTH || text[AT_TRACE - 1] != '-' || text[AT_SPAN - 1] != '-' ||
        text[AT_FLAGS - 1] != '-')
        return -1;
    if (hex_decode(&version, text, 1) || version == 0xff ||
        hex_decode(c.trace, text + AT_TRACE, TRACE_ID_SIZE) ||
        hex_decode(c.span, text + AT_SPAN, SPAN_ID_SIZE) ||
        hex_decode(&c.flags, text + AT_FLAGS, 1))
        return -1;
    if (size > LENGTH && (version == 0 || text[LENGTH] != '-'))
        return -1;
    if (!trace_context_is_set(&c))
        return -1;
    c.flags &= TRACE_SAMPLED | TRACE_RANDOM;
    *out = c;
    return 0;
}

void traceparent_print(const trace_context *c, char out[TRACEPARENT_SIZE])
{
    char trace[2 * TRACE_ID_SIZE + 1], span[2 * SPAN_ID_SIZE + 1];
    out[0] = 0;
    if (!trace_context_is_set(c))
        return;
    hex_encode(trace, c->trace, TRACE_ID_SIZE);
    hex_encode(span, c->span, SPAN_ID_SIZE);
    snprintf(out, TRACEPARENT_SIZE, "00-%s-%s-%02x", trace, span, c->flags & 3u);
}
