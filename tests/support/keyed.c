/*
 * keyed.c: sealed stores with sessions of users, for tests of keys.
 *
 * Must never hide a refusal: what is not expected to fail fails the test.
 */
#include "support/check.h"
#include "support/keyed.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const keyed_session keyed_sessions[] = {
    {"plain-one", ""}, {"plain two!", ""}, {"a", KEYED_USER},
    {"b", KEYED_USER}, {"a", "bob"},
};
const size_t keyed_count = sizeof keyed_sessions / sizeof *keyed_sessions;

sessile_status keyed_try(sessile_store **out, const char *root, const char *secret,
                         const char *suite, sessile_error *err)
{
    sessile_store_options options;
    sessile_store_options_init(&options);
    options.key_source = SESSILE_KEY_SECRET;
    options.key = secret;
    options.suite = suite;
    options.config.has_timeout = 1;
    options.config.timeout_ms = 60000;
    return sessile_open(out, root, &options, err);
}

sessile_store *keyed_open(const char *root, const char *secret)
{
    sessile_error err;
    sessile_store *store;
    must(keyed_try(&store, root, secret, NULL, &err), &err);
    return store;
}

static sessile_session_options named(const char *id, const char *user)
{
    sessile_session_options options;
    sessile_session_options_init(&options);
    options.id = sessile_text(id);
    options.user = sessile_text(user);
    return options;
}

void keyed_say(sessile_session *s, const char *content)
{
    char text[256];
    sessile_error err;
    sessile_id id;
    snprintf(text, sizeof text, "{\"role\":\"user\",\"content\":\"%s\"}", content);
    must(sessile_append(s, sessile_text(text), &id, &err), &err);
}

void keyed_fill(sessile_store *store)
{
    for (size_t i = 0; i < keyed_count; i++) {
        sessile_session_options options =
            named(keyed_sessions[i].id, keyed_sessions[i].user);
        sessile_session *s;
        sessile_error err;
        options.title = sessile_text("title " KEYED_CANARY);
        must(sessile_create(&s, store, &options, &err), &err);
        for (int n = 0; n < 4; n++)
            keyed_say(s, "message " KEYED_CANARY);
        must(sessile_session_close(s, &err), &err);
    }
}

static sessile_status resume(sessile_session **out, sessile_store *store, const char *id,
                             const char *user, sessile_error *err)
{
    sessile_session_options options = named(id, user);
    return sessile_resume(out, store, &options, err);
}

sessile_session *keyed_resume(sessile_store *store, const char *id, const char *user)
{
    sessile_session *s;
    sessile_error err;
    must(resume(&s, store, id, user, &err), &err);
    return s;
}

static void add(char **text, size_t *size, const char *more, size_t more_size)
{
    *text = realloc(*text, *size + more_size + 2);
    assert_non_null(*text);
    memcpy(*text + *size, more, more_size);
    *size += more_size;
    (*text)[(*size)++] = '\n';
    (*text)[*size] = 0;
}

sessile_status keyed_read(sessile_store *store, const char *id, const char *user,
                          char **out, sessile_error *err)
{
    sessile_session *s;
    sessile_entries *entries;
    size_t size = 0, one = 0;
    const char *json;
    sessile_id at;
    *out = NULL;
    sessile_status status = resume(&s, store, id, user, err);
    if (status)
        return status;
    must(sessile_entries_open(&entries, s, NULL, err), err);
    do {
        status = sessile_entries_next(entries, &at, &json, &one, err);
        if (!status && one > 0)
            add(out, &size, json, one);
    } while (!status && one > 0);
    sessile_entries_close(entries);
    sessile_session_close(s, NULL);
    return status;
}

char *keyed_read_all(sessile_store *store, const char *skip)
{
    char *all = NULL;
    size_t size = 0;
    for (size_t i = 0; i < keyed_count; i++) {
        char *text;
        sessile_error err;
        if (skip && strcmp(skip, keyed_sessions[i].user) == 0)
            continue;
        must(keyed_read(store, keyed_sessions[i].id, keyed_sessions[i].user, &text, &err),
             &err);
        add(&all, &size, text, strlen(text));
        free(text);
    }
    return all;
}

sessile_status keyed_reseal(sessile_store *store, const char *suite,
                            sessile_reseal_state *last, sessile_error *err)
{
    sessile_reseal *r;
    sessile_reseal_state state;
    sessile_status status = sessile_reseal_begin(&r, store, suite, err);
    memset(&state, 0, sizeof state);
    while (!status || status == SESSILE_NEEDS) {
        status = sessile_reseal_step(r, &state, err);
        if (!status)
            break;
    }
    state.log = NULL;
    if (last)
        *last = state;
    sessile_reseal_free(r);
    return status;
}

/* ------------------------------------------------------------------ files */

void keyed_copy(const char *from, const char *to)
{
    char command[1200];
    snprintf(command, sizeof command, "rm -rf '%s' && cp -a '%s' '%s'", to, from, to);
    assert_int_equal(system(command), 0);
}

static const char *wanted_path, *wanted_bytes;
static int found;
static char *found_path;

static int look(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)ftw;
    if (type != FTW_F || (wanted_path && !strstr(path, wanted_path)))
        return 0;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *bytes = malloc((size_t)st->st_size + 1);
    assert_non_null(bytes);
    size_t size = fread(bytes, 1, (size_t)st->st_size, file);
    fclose(file);
    if (memmem(bytes, size, wanted_bytes, strlen(wanted_bytes))) {
        found++;
        free(found_path);
        found_path = strdup(path);
    }
    free(bytes);
    return 0;
}

static int search(const char *folder, const char *in_path, const char *in_bytes)
{
    wanted_path = in_path;
    wanted_bytes = in_bytes;
    found = 0;
    assert_int_equal(nftw(folder, look, 16, FTW_PHYS), 0);
    return found;
}

int keyed_files_with(const char *folder, const char *text)
{
    int count = search(folder, NULL, text);
    free(found_path);
    found_path = NULL;
    return count;
}

char *keyed_file(const char *root, const char *in_path, const char *in_bytes)
{
    int count = search(root, in_path, in_bytes);
    char *path = found_path;
    found_path = NULL;
    assert_int_equal(count, 1);
    return path;
}
