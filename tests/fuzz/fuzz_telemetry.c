/*
 * fuzz_telemetry.c: what the service's telemetry reads: the header traceparent, lists and
 * URLs of the environment, answers of a receiver, and texts in which secrets are hidden.
 *
 * Holds: a header that is accepted reads back as itself; what a list gives is fit for a
 * header, and reads back as itself; a secret behind its mark does not come out, whatever
 * is before and behind it; what comes out is JSON; no error quotes a variable.
 */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "codec/json.h"
#include "service/otlp.h"
#include "service/redact.h"
#include "service/telemetry_list.h"
#include "service/telemetry_settings.h"

enum { HEADER, LIST, SECRET, ANSWER, VARIABLE, WAYS };

static const char *const words[] = {"00-",
                                    "-01",
                                    "0af7651916cd43dd8448eb211c80319c",
                                    "-b7ad6b7169203331-",
                                    "=",
                                    ",",
                                    "%2C",
                                    "%",
                                    "://",
                                    ":",
                                    "@",
                                    "Bearer ",
                                    "basic\t",
                                    "password=",
                                    "token=",
                                    "&",
                                    "sesk_",
                                    "eyJ",
                                    "***",
                                    "\xc3\xa4",
                                    "\xff",
                                    "{\"partialSuccess\":",
                                    "\"rejectedSpans\":",
                                    "\"7\"",
                                    "http://",
                                    "https://[::1]:4318/",
                                    "?x",
                                    "#",
                                    NULL};

const fuzz_about fuzz_this = {"telemetry", 60000, 1 << 10, words};

static void header(const char *text, size_t size)
{
    trace_context c, again;
    char out[TRACEPARENT_SIZE];
    int refused = traceparent_parse(&c, text, size);
    FUZZ_CHECK(trace_context_is_set(&c) == !refused);
    traceparent_print(&c, out);
    FUZZ_CHECK(strlen(out) == (refused ? 0 : 55));
    if (refused)
        return;
    FUZZ_CHECK(memcmp(out + 2, text + 2, 51) == 0);
    FUZZ_CHECK(!traceparent_parse(&again, out, 55) && !memcmp(&c, &again, sizeof c));
}

/* ---- lists */

/* The list again, with all that may be escaped as an escape. */
static int again(void *arg, const char *name, const char *value)
{
    buf *out = arg;
    FUZZ_CHECK(*name && utf8_valid(value, strlen(value)));
    for (const char *c = name; *c; c++)
        FUZZ_CHECK(*c > ' ' && *c < 0x7f && !strchr(",;=:\"", *c));
    buf_printf(out, "%s=", name);
    for (; *value; value++) {
        FUZZ_CHECK((unsigned char)*value >= ' ' && *value != 0x7f);
        buf_printf(out, "%%%02X", (unsigned char)*value);
    }
    buf_putc(out, ',');
    return 0;
}

static void list(const char *text, size_t size)
{
    char *copy = mem_dup(&allocator_default, text, size);
    buf one, two;
    buf_init(&one, &allocator_default);
    buf_init(&two, &allocator_default);
    FUZZ_CHECK(copy != NULL);
    if (!telemetry_list_read(copy, &allocator_default, again, &one) && one.size > 0) {
        FUZZ_CHECK(!telemetry_list_read(one.data, &allocator_default, again, &two));
        FUZZ_CHECK(one.size == two.size && memcmp(one.data, two.data, one.size) == 0);
    }
    buf_deinit(&one);
    buf_deinit(&two);
    free(copy);
}

/* ---- secrets */

#define PLANTED "qZ7qZ7qZ7qZ7qZ7qZ7"

/* The text in two halves, with a secret between them. */
static void planted(const char *text, size_t size)
{
    static const struct {
        const char *before, *behind;
    } marks[] = {{" redis://:", "@h"},
                 {" postgres://u:p@", "@h/d?x=1 "},
                 {" password=", " "},
                 {" a?token=", "&b=1 "},
                 {" Bearer ", " "},
                 {" sesk_abcd_", "_x "},
                 {" eyJhbGciOiJub25lIn0.", " "}};
    buf in, out, checked;
    if (memmem(text, size, "qZ7", 3))
        return;
    buf_init(&in, &allocator_default);
    buf_init(&out, &allocator_default);
    buf_init(&checked, &allocator_default);
    size_t half = size / 2, mark = size % (sizeof marks / sizeof *marks);
    buf_put(&in, text, half);
    buf_puts(&in, marks[mark].before);
    buf_puts(&in, PLANTED);
    buf_puts(&in, marks[mark].behind);
    buf_put(&in, text + half, size - half);
    redact_put_json(&out, in.data, in.size, SIZE_MAX);
    FUZZ_CHECK(!out.failed && !memmem(out.data, out.size, "qZ7", 3));
    FUZZ_CHECK(!json_check(&checked, out.data, out.size, 1, NULL));
    buf_clear(&out);
    redact_put_json(&out, text, size, 20);
    FUZZ_CHECK(!json_check(&checked, out.data, out.size, 1, NULL));
    FUZZ_CHECK(out.size <= 6 * 20 + 5);
    buf_deinit(&in);
    buf_deinit(&out);
    buf_deinit(&checked);
}

/* ---- variables */

static const char *variable(void *ud, const char *name)
{
    const char *text = ud;
    static const char *const names[] = {
        "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_RESOURCE_ATTRIBUTES",
        "OTEL_TRACES_SAMPLER_ARG", "OTEL_EXPORTER_OTLP_TIMEOUT",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"};
    if (strcmp(name, names[*text & 3]) == 0 || (*text & 4 && strcmp(name, names[4]) == 0))
        return text + 1;
    if (strcmp(name, "OTEL_TRACES_SAMPLER") == 0)
        return "traceidratio";
    return strcmp(name, "OTEL_EXPORTER_OTLP_ENDPOINT") == 0 ? "http://h" : NULL;
}

/* The first byte says which variable has the rest. */
static void variables(const char *text, size_t size)
{
    telemetry_program program = {"1", NULL};
    telemetry_settings s;
    sessile_error err;
    if (size == 0)
        return;
    char *copy = mem_dup(&allocator_default, text, size);
    FUZZ_CHECK(copy != NULL);
    sessile_status status =
        telemetry_settings_read(&s, &allocator_default, variable, copy, &program, &err);
    FUZZ_CHECK(status == err.code && s.to[SIGNAL_TRACES].on == !status);
    FUZZ_CHECK(!status || strncmp(err.message, "OTEL_", 5) == 0);
    FUZZ_CHECK(!status || strlen(copy + 1) < 30 || !strstr(err.message, copy + 1));
    FUZZ_CHECK(status || s.sampler.below <= UINT64_C(1) << 63);
    telemetry_settings_deinit(&s);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_copy(data + (size > 0), size - (size > 0));
    int way = size > 0 ? data[0] % WAYS : HEADER;
    size -= size > 0;
    switch (way) {
    case HEADER:
        header(text, size);
        break;
    case LIST:
        list(text, size);
        break;
    case SECRET:
        planted(text, size);
        break;
    case ANSWER:
        (void)otlp_rejected(SIGNAL_TRACES, text, size, &allocator_default);
        break;
    case VARIABLE:
        variables(text, size);
        break;
    }
    free(text);
    return 0;
}

void fuzz_seeds(fuzz_take take, void *arg)
{
    fuzz_give_text(take, arg, HEADER,
                   "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    fuzz_give_text(take, arg, HEADER,
                   "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff-x");
    fuzz_give_text(take, arg, LIST, " api-key = a%3Db=c , ,x=,y=z%C3%A4");
    fuzz_give_text(take, arg, SECRET,
                   "at postgres://me:Pa:s/s@w@db1/agents?password=x&y Bearer abcdef");
    fuzz_give_text(take, arg, SECRET, "://:@ sesk_a_b eyJhbGciOiJFUzI1NiJ9.e30.x Basic ");
    fuzz_give_text(
        take, arg, ANSWER,
        "{\"partialSuccess\":{\"rejectedSpans\":\"5\",\"errorMessage\":\"\"}}");
    fuzz_give_text(take, arg, ANSWER,
                   "{\"partialSuccess\":{\"rejectedSpans\":18446744073709551615}}");
    fuzz_give_text(take, arg, VARIABLE, "0x-key=a,y=b");
    fuzz_give_text(take, arg, VARIABLE, "1team=a%20b");
    fuzz_give_text(take, arg, VARIABLE, "20.25");
    fuzz_give_text(take, arg, VARIABLE, "310000");
    fuzz_give_text(take, arg, VARIABLE, "4https://[::1]:4318/v1/traces?x=1");
}
