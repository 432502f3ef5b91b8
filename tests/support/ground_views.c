/*
 * ground_views.c: what a host sees of a log that is open, be it a session or a memory.
 *
 * What a memory answers is compared with what its entries say, read from their texts.
 */
#include "guard/enter.h"
#include "support/ground.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/memory.h"

static void *must(void *block)
{
    if (!block)
        abort();
    return block;
}

sessile_status ground_view_open(ground_view *out, sessile_store *st, const ground_log *l,
                                int create, sessile_error *err)
{
    *out = (ground_view){NULL, NULL};
    if (strcmp(l->id, GROUND_MEMORY) == 0) {
        sessile_memory_options o;
        sessile_memory_options_init(&o);
        o.user = sessile_text(l->user);
        o.must_exist = !create;
        return sessile_memory_open(&out->memory, st, &o, err);
    }
    sessile_session_options o;
    ground_session_options(&o, l);
    return create ? sessile_create(&out->session, st, &o, err)
                  : sessile_resume(&out->session, st, &o, err);
}

ground_view ground_view_of(const ground *g, int h)
{
    return (ground_view){g->sessions[h], g->memories[h]};
}

int ground_view_is_open(const ground_view *v)
{
    return v->session || v->memory;
}

sessile_status ground_view_add(const ground_view *v, const char *text, sessile_id *id,
                               sessile_error *err)
{
    sessile_memory_write_entry e;
    char message[200];
    if (v->session) {
        snprintf(message, sizeof message, "{\"role\":\"user\",\"content\":\"%s\"}", text);
        return sessile_append(v->session, sessile_text(message), id, err);
    }
    sessile_memory_write_init(&e);
    e.value = sessile_text(text);
    return sessile_memory_write(v->memory, &e, 1, id, err);
}

sessile_status ground_view_damage(const ground_view *v, sessile_error *err)
{
    return v->session ? sessile_session_damage(v->session, NULL, err)
                      : sessile_memory_damage(v->memory, err);
}

uint64_t ground_view_torn(const ground_view *v)
{
    return v->session ? sessile_session_torn(v->session) : log_torn(v->memory->core->log);
}

sessile_status ground_view_close(ground_view *v, sessile_error *err)
{
    sessile_status status = sessile_session_close(v->session, err);
    sessile_memory_close(v->memory);
    *v = (ground_view){NULL, NULL};
    return status;
}

/* ---------------------------------------------------------------------- entries */

/* A header's nonce is another one each time that a scenario is played. */
static void mask_nonce(char *text)
{
    char *nonce = strstr(text, "\"nonce\":\"");
    for (nonce = nonce ? nonce + 9 : NULL; nonce && *nonce && *nonce != '"'; nonce++)
        *nonce = '0';
}

static void keep(char ***texts, size_t *count, const char *json, size_t size)
{
    *texts = must(realloc(*texts, (*count + 2) * sizeof **texts));
    (*texts)[*count] = must(strndup(json, size));
    if (!*count)
        mask_nonce((*texts)[0]);
    ++*count;
}

static sessile_status memory_entries(sessile_memory *m, char ***texts, size_t *count,
                                     sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    /* not by statistics, which ask the clock: the next entry would have another time */
    while (!status && (!*count || *count < log_count(m->core->log))) {
        char *json;
        size_t size;
        status = sessile_memory_entry(m, (sessile_id)*count, &json, &size, err);
        if (!status) {
            keep(texts, count, json, size);
            sessile_free(json);
        }
    }
    return status;
}

sessile_status ground_entries(const ground_view *v, char ***texts, size_t *count,
                              sessile_error *err)
{
    sessile_entries *entries;
    const char *json;
    size_t size;
    *texts = NULL;
    *count = 0;
    if (v->memory)
        return memory_entries(v->memory, texts, count, err);
    sessile_status status = sessile_entries_open(&entries, v->session, NULL, err);
    while (!status &&
           !(status = sessile_entries_next(entries, NULL, &json, &size, err)) && size)
        keep(texts, count, json, size);
    sessile_entries_close(entries);
    return status;
}

/* ---------------------------------------------------------------------- questions */

static sessile_status ask_session(sessile_session *s, sessile_error *err)
{
    sessile_message *list;
    size_t count;
    sessile_status status = sessile_context(s, SESSILE_NO_ID, &list, &count, NULL, err);
    if (!status) {
        sessile_free(list);
        status = sessile_messages(s, NULL, &list, &count, err);
    }
    if (!status)
        sessile_free(list);
    return status;
}

/* The hexadecimal id behind a mark in a text, or 0. */
static size_t id_behind(const char *text, const char *mark)
{
    const char *at = strstr(text, mark);
    return at ? (size_t)strtoull(at + strlen(mark), NULL, 16) : 0;
}

/* Which entries are live, from their texts: one byte for each. Scenarios delete, restore
 * and erase entries that no other has taken the place of. */
static unsigned char *live_entries(char **texts, size_t count)
{
    unsigned char *live = must(calloc(count + 1, 1));
    size_t holders[3] = {0}; /* of the keys k0, k1, k2 */
    for (size_t i = 1; i < count; i++) {
        const char *key = strstr(texts[i], "\"key\":\"");
        size_t of = id_behind(texts[i], "\"of\":[\"");
        if (strstr(texts[i], "\"type\":\"verdict\"") && of < count) {
            live[of] = strstr(texts[i], "\"to\":\"restored\"") != NULL;
            continue;
        }
        live[i] = strstr(texts[i], "\"type\":\"memory\"") &&
                  !strstr(texts[i], "\"erased\":true");
        of = id_behind(texts[i], "\"replaces\":[\"");
        live[of < count ? of : 0] = 0;
        if (key) {
            size_t *holder = &holders[(key[8] - '0') % 3];
            live[*holder] = 0;
            *holder = i;
        }
    }
    live[0] = 0;
    return live;
}

static sessile_status compare_rows(const sessile_memory_row *rows, size_t found,
                                   const unsigned char *live, size_t count,
                                   const char *what, sessile_error *err)
{
    size_t expected = 0;
    for (size_t i = 0; i < count; i++)
        expected += live[i];
    if (found != expected)
        return fail(err, SESSILE_INVALID,
                    "%s of the memory has %zu entries, %zu are live", what, found,
                    expected);
    for (size_t i = 0; i < found; i++)
        if (rows[i].id >= count || !live[rows[i].id])
            return fail(err, SESSILE_INVALID,
                        "%s of the memory has %08" PRIx32 ", which is not live", what,
                        rows[i].id);
    return SESSILE_OK;
}

static sessile_status ask_memory(const ground_view *v, sessile_error *err)
{
    sessile_memory_search_options o;
    sessile_memory_row *rows;
    unsigned char *live = NULL;
    char **texts;
    size_t count, found;
    sessile_status status = ground_entries(v, &texts, &count, err);

    sessile_memory_search_init(&o);
    o.limit = 1000;
    if (!status) {
        live = live_entries(texts, count);
        status = sessile_memory_list(v->memory, NULL, &rows, &found, err);
    }
    if (!status) {
        status = compare_rows(rows, found, live, count, "the list", err);
        sessile_free(rows);
    }
    if (!status)
        status = sessile_memory_search(v->memory, sessile_text("common"), &o, &rows,
                                       &found, err);
    if (!status) {
        status = compare_rows(rows, found, live, count, "a search", err);
        sessile_free(rows);
    }
    free(live);
    ground_texts_free(texts, count);
    return status;
}

sessile_status ground_view_ask(const ground_view *v, sessile_error *err)
{
    return v->session ? ask_session(v->session, err) : ask_memory(v, err);
}
