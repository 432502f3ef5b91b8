/*
 * fuzz_http_query.c: the parameters of a request for events.
 *
 * Holds: what is refused is INVALID, and the sentence has nothing of the input; what is
 * accepted lies inside the query, and means the same when it is encoded and read again.
 */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/http_query.h"

static const char *const words[] = {"agent=", "user=", "id=", "from=", "&",  "%",
                                    "%00",    "%41",   "+",   "%2B",   "%2", NULL};

const fuzz_about fuzz_this = {"http_query", 100000, 1 << 10, words};

static char *put(char *at, const char *name, const char *value)
{
    if (!value)
        return at;
    at += sprintf(at, "&%s=", name);
    for (; *value; value++)
        at += sprintf(at, "%%%02x", (unsigned char)*value);
    return at;
}

static int same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *query = malloc(size + 1), *again = malloc(3 * size + 64);
    http_query first, second;
    sessile_error err;
    sessile_id id;
    FUZZ_CHECK(query && again);
    memcpy(query, data, size);
    query[size] = '\0';
    if (!http_entry_read(query, "from", &id, &err)) {
        char text[16];
        sessile_id other;
        snprintf(text, sizeof text, "%u", (unsigned)id);
        FUZZ_CHECK(!http_entry_read(text, "from", &other, &err) && other == id);
        FUZZ_CHECK(id + 1 < SESSILE_NO_ID);
    }
    sessile_status status = http_query_read(query, &first, &err);
    FUZZ_CHECK(!status || status == SESSILE_INVALID);
    if (!status) {
        char *at = again;
        at = put(at, "agent", first.agent);
        at = put(at, "user", first.user);
        at = put(at, "id", first.id);
        at = put(at, "from", first.from);
        *at = '\0';
        FUZZ_CHECK(!http_query_read(at == again ? again : again + 1, &second, &err));
        FUZZ_CHECK(same(first.agent, second.agent) && same(first.user, second.user));
        FUZZ_CHECK(same(first.id, second.id) && same(first.from, second.from));
    }
    free(query);
    free(again);
    return 0;
}

void fuzz_seeds(fuzz_take take, void *arg)
{
    static const char *const seeds[] = {"id=s",
                                        "agent=a&user=u&id=i&from=0",
                                        "id=gr%C3%B6%C3%9Fe+%26+co&from=4294967293",
                                        "id=&user=",
                                        "id=a&id=b",
                                        "4294967294",
                                        "0"};
    fuzz_give_all(take, arg, seeds, sizeof seeds / sizeof *seeds);
}
