/* screened.c: a store whose rules look for one word. */
#include "support/screened.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/check.h"

sessile_screens *screened_list(unsigned kinds, sessile_screen_verdict action)
{
    screen s = {.kinds = kinds, .action = action, .on_error = SESSILE_SCREEN_REFUSE};
    sessile_screens *list;
    sessile_error err;

    snprintf(s.name, sizeof s.name, "canary");
    must(screens_new(&list, os_current, &allocator_default, &err), &err);
    must(pattern_set_new(&s.patterns, &allocator_default, &err), &err);
    must(pattern_set_add(s.patterns, "word", sessile_text(CANARY), &err), &err);
    pattern_set_ready(s.patterns);
    must(screens_add(list, &s, &err), &err);
    return list;
}

void screened_open(screened *w, unsigned kinds, sessile_screen_verdict action)
{
    sessile_guard_options o;
    sessile_session_options so;
    sessile_memory_options mo;

    memset(w, 0, sizeof *w);
    place_open(&w->place, STORE_PLAIN);
    w->store = w->place.store;
    sessile_guard_options_init(&o);
    o.screens = screened_list(kinds, action);
    must(sessile_store_guard(w->store, &o, &w->err), &w->err);
    sessile_screens_free(o.screens); /* the store has its own reference */
    so = named("s");
    so.user = sessile_text("ann");
    must(sessile_create(&w->s, w->store, &so, &w->err), &w->err);
    must(sessile_append(w->s, sessile_text(HELLO), NULL, &w->err), &w->err);
    sessile_memory_options_init(&mo);
    mo.user = sessile_text("ann");
    mo.consent = sessile_text("yes");
    must(sessile_memory_open(&w->m, w->store, &mo, &w->err), &w->err);
}

void screened_close(screened *w)
{
    sessile_memory_close(w->m);
    sessile_session_close(w->s, NULL);
    place_close(&w->place);
}

static int canaries;

static int look_into(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    static char bytes[1 << 20];
    FILE *f = type == FTW_F ? fopen(path, "rb") : NULL;
    size_t size;

    (void)st, (void)ftw;
    if (!f)
        return 0;
    size = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    canaries += memmem(bytes, size, CANARY, strlen(CANARY)) != NULL;
    return 0;
}

int screened_files(const screened *w)
{
    canaries = 0;
    if (w->place.folder)
        nftw(w->place.folder, look_into, 8, FTW_PHYS);
    return canaries;
}

sessile_session_options screened_titled(const char *id)
{
    sessile_session_options o = named(id);
    o.user = sessile_text("ann");
    o.title = sessile_text("a " CANARY);
    return o;
}

sessile_memory_write_entry screened_entry(const char *key, const char *value)
{
    sessile_memory_write_entry e;
    sessile_memory_write_init(&e);
    e.key = sessile_text(key);
    e.value = sessile_text(value);
    return e;
}
