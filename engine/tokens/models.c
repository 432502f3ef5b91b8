/*
 * models.c: what is known of models by their names.
 *
 * Owns the table of encodings and of what providers put around messages and tools. Must
 * never guess: a name that is not here has no encoding.
 *
 * The figures of OpenAI's models are those of its cookbook, "How to count tokens with
 * tiktoken": 3 tokens a message, 1 more for a name, 3 before the reply; a function is
 * rendered as "name:description", its parameters as "name:type:description", with the
 * numbers below around them. They were found out by trying, not published as a promise,
 * and hold for flat parameters; nested ones are counted in the same way here. Anthropic's
 * documentation gives the tokens of the system prompt that comes with tools (346 for
 * models of the fourth generation); its tools are counted as the JSON they are.
 */
#include "tokens/models.h"

#include <ctype.h>
#include <string.h>

#include "base/buf.h"

#define CL100K "cl100k_base"
#define O200K  "o200k_base"

/* Longer prefixes come before their own prefixes. */
static const model_kind kinds[] = {
    {"gpt-4o", O200K, 3, 1, 3, 12, 7},
    {"chatgpt-4o", O200K, 3, 1, 3, 12, 7},
    {"gpt-4.1", O200K, 3, 1, 3, 12, 7},
    {"gpt-4.5", O200K, 3, 1, 3, 12, 7},
    {"gpt-5", O200K, 3, 1, 3, 12, 7},
    {"gpt-oss", O200K, 3, 1, 3, 12, 7},
    {"o1", O200K, 3, 1, 3, 12, 7},
    {"o3", O200K, 3, 1, 3, 12, 7},
    {"o4", O200K, 3, 1, 3, 12, 7},
    {"gpt-4", CL100K, 3, 1, 3, 12, 10},
    {"gpt-3.5", CL100K, 3, 1, 3, 12, 10},
    {"gpt-35", CL100K, 3, 1, 3, 12, 10},
    {"text-embedding-3", CL100K, 0, 0, 0, 0, 0},
    {"text-embedding-ada-002", CL100K, 0, 0, 0, 0, 0},
    {"claude", NULL, 4, 0, 0, 346, 0},
    {"gemini", NULL, 4, 0, 0, 0, 0},
    {"gemma", NULL, 4, 0, 0, 0, 0},
    {"llama", NULL, 4, 0, 0, 0, 0},
    {"mistral", NULL, 4, 0, 0, 0, 0},
    {"mixtral", NULL, 4, 0, 0, 0, 0},
    {"codestral", NULL, 4, 0, 0, 0, 0},
    {"deepseek", NULL, 4, 0, 0, 0, 0},
    {"qwen", NULL, 4, 0, 0, 0, 0},
    {"grok", NULL, 4, 0, 0, 0, 0},
    {"command", NULL, 4, 0, 0, 0, 0},
    {"nova", NULL, 4, 0, 0, 0, 0},
    {"kimi", NULL, 4, 0, 0, 0, 0},
    {"glm", NULL, 4, 0, 0, 0, 0},
};

static int begins_with(const char *name, size_t size, const char *prefix)
{
    size_t n = strlen(prefix);

    if (size < n)
        return 0;
    for (size_t i = 0; i < n; i++)
        if (tolower((unsigned char)name[i]) != prefix[i])
            return 0;
    /* "o1" does not match "o100"; "qwen2" and "llama3" match their prefix */
    return size == n || !isalnum((unsigned char)name[n]) ||
           (isalpha((unsigned char)prefix[n - 1]) && isdigit((unsigned char)name[n]));
}

/* Prefixes of a model's name: providers, regions, routes. */
static const char *own_name(const char *name, size_t *size)
{
    static const char *const vendors[] = {
        "anthropic.", "meta.", "mistral.", "amazon.", "cohere.",    "us.",
        "eu.",        "apac.", "azure:",   "openai:", "anthropic:", "ft:"};
    for (size_t i = *size; i-- > 0;)
        if (name[i] == '/') {
            *size -= i + 1;
            name += i + 1;
            break;
        }
    for (int found = 1; found;) {
        found = 0;
        for (size_t i = 0; i < sizeof vendors / sizeof *vendors; i++) {
            size_t n = strlen(vendors[i]);
            if (*size > n && !memcmp(name, vendors[i], n)) {
                name += n;
                *size -= n;
                found = 1;
            }
        }
    }
    return name;
}

const model_kind *model_find(const char *name, size_t size)
{
    name = own_name(name ? name : "", &size);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (begins_with(name, size, kinds[i].prefix))
            return &kinds[i];
    return NULL;
}

/* ------------------------------------------------------------------ tools */

/* Around parameters, each of them, and the values of an enumeration. */
enum { PARAMETERS = 3, PARAMETER = 3, VALUES = -3, VALUE = 3, MAX_DEPTH = 8 };

typedef struct rendering {
    buf text;
    text_count count;
    void *arg;
    int64_t sum;
    int failed;
} rendering;

static void count_text(rendering *r, const char *text, size_t size)
{
    int64_t n = r->failed ? -1 : r->count(r->arg, size ? text : "", size);

    if (n < 0)
        r->failed = 1;
    else
        r->sum += n;
}

static void put_string(rendering *r, json value)
{
    if (value.type == JSON_STRING && json_string(&r->text, value))
        r->failed = 1;
}

/* Counts a description without its last full stop. */
static void put_description(rendering *r, json value)
{
    put_string(r, value);
    if (r->text.size && r->text.data[r->text.size - 1] == '.')
        r->text.size--;
}

static void end_line(rendering *r)
{
    if (r->text.failed)
        r->failed = 1;
    count_text(r, r->text.data, r->text.size);
    buf_clear(&r->text);
}

static void count_properties(rendering *r, json properties, int depth)
{
    json_iter it = json_begin(properties), values;

    if (properties.type != JSON_OBJECT || depth > MAX_DEPTH)
        return;
    for (int first = 1; json_next(&it); first = 0) {
        json one = it.value, list = json_get(one, "enum");
        if (first)
            r->sum += PARAMETERS;
        r->sum += PARAMETER;
        if (list.type == JSON_ARRAY) {
            r->sum += VALUES;
            for (values = json_begin(list); json_next(&values);) {
                r->sum += VALUE;
                put_string(r, values.value);
                end_line(r);
            }
        }
        put_string(r, it.key);
        buf_putc(&r->text, ':');
        put_string(r, json_get(one, "type"));
        buf_putc(&r->text, ':');
        put_description(r, json_get(one, "description"));
        end_line(r);
        count_properties(r, json_get(one, "properties"), depth + 1);
        count_properties(r, json_get(json_get(one, "items"), "properties"), depth + 1);
    }
}

static void count_function(rendering *r, const model_kind *kind, json tool)
{
    json function = json_get(tool, "function");
    json parameters;

    if (function.type != JSON_OBJECT)
        function = tool;
    parameters = json_get(function, "parameters");
    if (parameters.type != JSON_OBJECT)
        parameters = json_get(function, "input_schema");
    r->sum += kind->tool;
    put_string(r, json_get(function, "name"));
    buf_putc(&r->text, ':');
    put_description(r, json_get(function, "description"));
    end_line(r);
    count_properties(r, json_get(parameters, "properties"), 0);
}

int64_t model_tools(const model_kind *kind, json tools, text_count count, void *arg,
                    const allocator *a)
{
    rendering r = {.count = count, .arg = arg};
    json_iter it = json_begin(tools);
    int any = 0;

    buf_init(&r.text, a);
    for (; tools.type == JSON_ARRAY && json_next(&it); any = 1)
        if (kind && kind->tool)
            count_function(&r, kind, it.value);
        else
            count_text(&r, it.value.at, it.value.size);
    if (any && kind)
        r.sum += kind->tools_once;
    buf_deinit(&r.text);
    return r.failed ? -1 : r.sum;
}
