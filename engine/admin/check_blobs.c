/*
 * check_blobs.c: checks the blobs of a store: users' secrets, markers, records of
 * deletions.
 *
 * A blob that lost its name is found by nobody who needs it. Names what seems to be such
 * a blob. Must never change one, nor show what is in it. Files that somebody else put
 * beside the blobs are nobody's business.
 */
#include "admin/check_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "store/wait.h"

/* What the names of blobs begin with, and what those are. */
static const struct {
    const char *prefix, *what;
} kinds[] = {{USER_PREFIX, "a user's secret"},
             {FORGOTTEN_PREFIX, "the marker of a forgotten user"},
             {"deleted-", "the record of a deletion"},
             {KEYRING_BLOB, "a keyring"}};
enum { KINDS = sizeof kinds / sizeof *kinds, SECRET = 0, KEYRING = 3 };

/* In how many letters the name begins otherwise. */
static size_t differs(const char *name, const char *prefix)
{
    size_t count = 0;

    for (; *prefix; prefix++) {
        count += *name != *prefix;
        name += *name != 0;
    }
    return count;
}

/* Which of the kinds a name seems to be of, and in how many letters it is not; KINDS. */
static size_t kind_of(const char *name, size_t *letters)
{
    for (size_t i = 0; i < KINDS; i++) {
        *letters = differs(name, kinds[i].prefix);
        if (*letters <= 1 && (i != KEYRING || strlen(name) == strlen(KEYRING_BLOB)))
            return i;
    }
    return KINDS;
}

/* 1: a user's secret opens under its name, or that is not known. */
static int secret_opens(const check_core *c, const char *name)
{
    const store *b = &c->store->backend;
    const keyring *keys = c->store->keys;
    const char *digits = strrchr(name, '-') + 1;
    uint64_t epoch = strtoull(digits, NULL, 10);
    char *text;
    size_t size;
    int opens;

    if (!keyring_sealed(keys))
        return 1;
    if (!keyring_has(keys, epoch))
        /* dropped, or newer than what this handle knows; or no epoch at all */
        return epoch > 0 && digits[strspn(digits, "0123456789")] == 0;
    if (b->table->blob_get(b->self, name, &text, &size, NULL))
        return 1; /* forgotten meanwhile; or what needs it says more */
    opens = keyring_secret_look(keys, name, text, size) >= 0;
    host_free(text);
    return opens;
}

static void report(check_core *c, const char *name, size_t kind, int misnamed)
{
    uint64_t number = 0;
    check_row *r = check_add(
        c, SESSILE_DAMAGE, SESSILE_DAMAGED,
        misnamed ? "%s, as it seems, whose name is damaged: nothing finds it. A finding "
                   "about a session says which name it should have"
                 : "%s, which does not open under this name: its bytes or its name are "
                   "damaged. A finding about a session says which name it should have",
        kinds[kind].what);

    if (!r)
        return;
    snprintf(r->file, sizeof r->file, "%s", name);
    if (store_is_misnamed(name, &number) && check_is_of_files(c))
        snprintf(r->next, sizeof r->next,
                 "in the folder of the store, find it and give it its name back: find . "
                 "-maxdepth 1 -inum %" PRIu64,
                 number);
    else
        snprintf(r->next, sizeof r->next,
                 check_is_of_files(c)
                     ? "give the file its name back, or bring back a copy of it"
                     : "give it its name back in the table blobs, or bring back a copy");
}

/* The name that a damaged one had, as far as a list shows it. */
static const char *shown(const char *name)
{
    const char *dot;
    uint64_t number;

    if (!store_is_misnamed(name, &number))
        return name;
    dot = strchr(name + sizeof STORE_MISNAMED - 1, '.');
    return dot ? dot + 1 : "";
}

sessile_status check_blobs(check_core *c, sessile_error *err)
{
    const store *b = &c->store->backend;
    blob_names all;
    sessile_status status;

    if (!(b->table->capabilities & SESSILE_BACKEND_SEALS))
        return SESSILE_OK;
    status = blob_names_find(&all, b->table, b->self, "", &c->store->alloc, err);
    const char *name = all.text.data;
    for (size_t i = 0; !status && i < all.count; i++, name += strlen(name) + 1) {
        size_t letters, kind = kind_of(shown(name), &letters);
        uint64_t number;
        if (kind == KINDS)
            continue;
        if (letters || store_is_misnamed(name, &number))
            report(c, name, kind, 1);
        else if (kind == SECRET && strrchr(name, '-') && !secret_opens(c, name))
            report(c, name, kind, 0);
    }
    buf_deinit(&all.text);
    return status;
}
