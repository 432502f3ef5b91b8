/*
 * memory.h: a long-term memory that is open.
 *
 *   memory.c   opening, keeping up with others, the one way to write
 *   consent.c  whether the user agrees
 *   write.c    entries
 *   verdict.c  verdicts about entries
 *   embed.c    vectors
 *   erase.c    takes the texts of entries out of the log
 *   rows.c     entries as a caller reads them
 *   find.c     read, list, history, search, stats
 *   watch.c    waiting for what others write
 *   several.c  a search in several memories, for recall
 *
 * Functions that are named as in sessile_memory.h, without `sessile_`, do what that
 * header says. Their callers have checked the arguments: pointers are not NULL, slices
 * have data.
 */
#ifndef MEMORY_MEMORY_H
#define MEMORY_MEMORY_H

#include <pthread.h>

#include "base/counted.h"
#include "log/log.h"
#include "memory/fold.h"
#include "sessile_screen.h"
#include "session/write.h"

struct memory_core {
    counted references; /* of the caller and of runs: see memory_retain() */
    store_core *store;
    log_t *log; /* another one when the log was replaced */
    memory_fold *fold;
    pthread_mutex_t mutex; /* guards all that changes */
    char *agent, *user;    /* NUL-terminated, any byte */
    size_t agent_size, user_size;
    uint32_t pid; /* of the process that opened it */
    int timeout_ms;
    size_t forgotten_before; /* store->forgotten_count when it was opened */
};

sessile_status memory_open(memory_core **out, store_core *st,
                           const sessile_memory_options *options, sessile_error *err);
/* Takes one more reference, so that the memory stays open while a run uses it. Each
 * reference is given back with memory_close(). */
void memory_retain(memory_core *m);
void memory_close(memory_core *m);
/* DAMAGED or TRUNCATED when the log can be read but not written, else OK. */
sessile_status memory_damage(memory_core *m, sessile_error *err);

/* The folder and name of its log. */
void memory_place(const memory_core *m, char folder[NAME_SIZE], char name[NAME_SIZE]);

/* DENIED when a hold keeps its texts from being removed. */
sessile_status memory_check_removal(const memory_core *m, sessile_error *err);

/* FORKED in a process that did not open the memory, where the mutex may be held by a
 * thread that does not exist. */
sessile_status memory_check_process(const memory_core *m, sessile_error *err);
/* Locks the mutex and reads what others have written. On OK the caller unlocks it with
 * memory_unlock(); after an error it is not locked. */
sessile_status memory_lock_fresh(memory_core *m, sessile_error *err);
void memory_unlock(memory_core *m);
int64_t memory_now_ms(const memory_core *m);
/* Adds which memory it is to an error. Returns status. */
sessile_status memory_name_error(const memory_core *m, sessile_status status,
                                 sessile_error *err);

/* Adds entries to a batch, for the memory as it is now. The mutex and the log's lock are
 * held. It is called again when another process was faster. Nothing is written if it adds
 * nothing or fails. */
typedef sessile_status (*memory_build)(void *arg, memory_core *m, batch *b,
                                       sessile_error *err);
/* Writes what build builds, as one commit, and makes it durable. Takes the mutex. */
sessile_status memory_commit(memory_core *m, memory_build build, void *arg,
                             sessile_error *err);

/* ---- consent.c */
sessile_status memory_consent(memory_core *m, int given, sessile_slice by,
                              sessile_slice text, sessile_slice scope,
                              sessile_error *err);
/* The user consents with text, unless another process wrote a consent meanwhile. */
sessile_status memory_consent_once(memory_core *m, sessile_slice text,
                                   sessile_error *err);
/* DENIED when the user does not consent. The mutex is held. */
sessile_status memory_check_consent(const memory_core *m, sessile_error *err);
/* 1: a search must find nothing, since the user does not consent and the store's guard
 * asks for it. The mutex is held. */
int memory_is_hidden(const memory_core *m);

/* ---- write.c */
sessile_status memory_write(memory_core *m, const sessile_memory_write_entry *entries,
                            size_t count, sessile_id *ids, sessile_error *err);
sessile_status memory_change(memory_core *m, const sessile_memory_change *change,
                             sessile_id *ids, sessile_error *err);
/* Checks a text that will be written. LIMIT: it is longer than `most` bytes; INVALID: it
 * is not UTF-8. limit: the name of the limit that a host can set; NULL: it is fixed. */
sessile_status memory_check_text(sessile_slice text, const char *what, size_t most,
                                 const char *limit, sessile_error *err);
void memory_put_id(buf *out, sessile_id id);                        /* as a JSON string */
void memory_put_ids(buf *out, const sessile_id *ids, size_t count); /* as an array */
/* Appends `,"name":"text"`, or nothing if the text is empty. */
void memory_put_member(buf *out, const char *name, sessile_slice text);
/* Adds an entry with its envelope to a batch, and returns its id. An empty author means
 * the agent, whose name is left out if it is not UTF-8. */
sessile_id memory_add(memory_core *m, batch *b, entry_type type, entry_source source,
                      sessile_slice author, const buf *data);

/* Checks an entry before the lock is taken, except its metadata. */
sessile_status memory_check_entry(const memory_core *m,
                                  const sessile_memory_write_entry *e,
                                  sessile_error *err);
/* ---- screens.c: the rules of the store. No lock is held. DENIED, with the rule. */

/* What an entry says instead of words that were removed. */
typedef struct memory_words {
    buf value, also;
} memory_words;
void memory_words_init(memory_words *w, const allocator *a);
void memory_words_deinit(memory_words *w);
/* Screens the texts of a checked entry and its checked metadata. Where words were
 * removed, e then points into `words`. What is flagged has its rules in the metadata, as
 * "flagged". */
sessile_status memory_screen_entry(const store_core *st, sessile_memory_write_entry *e,
                                   memory_words *words, buf *metadata,
                                   sessile_error *err);
sessile_screen_source memory_screen_source(sessile_memory_source source);
/* Screens a text that nothing can be removed from. A flag of it is not kept. */
sessile_status memory_screen_fixed(const store_core *st, const char *what,
                                   sessile_slice text, sessile_screen_source source,
                                   sessile_error *err);

/* Checks `was` and `replaces` of an entry. The mutex is held. NOTFOUND, CONFLICT. */
sessile_status memory_check_was(const memory_core *m, const sessile_memory_write_entry *e,
                                int64_t now_ms, sessile_error *err);
/* Adds an entry that was checked, with its metadata and the policy that wrote it (JSON
 * objects, or empty), and returns its id. */
sessile_id memory_add_entry(memory_core *m, batch *b, const sessile_memory_write_entry *e,
                            sessile_slice metadata, sessile_slice policy);

/* ---- verdict.c */
sessile_status memory_verdict(memory_core *m, const sessile_id *ids, size_t count,
                              sessile_memory_verdict_kind to, sessile_slice reason,
                              sessile_slice by, size_t *changed, sessile_error *err);
/* Checks a verdict before the lock is taken, except its ids. */
sessile_status memory_check_verdict(const memory_core *m, sessile_memory_verdict_kind to,
                                    sessile_slice reason, sessile_slice by,
                                    sessile_error *err);
/* Adds verdicts about entries, as many as their number asks for; entries that it would
 * not change are left out. NOTFOUND: an id is no entry, or was erased. */
sessile_status memory_add_verdicts(memory_core *m, batch *b, const sessile_id *ids,
                                   size_t count, sessile_memory_verdict_kind to,
                                   sessile_slice reason, sessile_slice by,
                                   sessile_error *err);

/* ---- embed.c */
sessile_status memory_embed(memory_core *m, sessile_slice model, size_t dims,
                            const sessile_id *ids, const float *vectors, size_t count,
                            sessile_error *err);
/*
 * Live entries that have no vector of the model (dims 0: of the newest of that name), in
 * the order of the log, as memory_list() gives them: at most `most`, from record *from
 * on, which is then where to go on. *left: how many there are from *from on, without
 * those. DENIED: the user does not consent, so that nobody is shown a text.
 */
sessile_status memory_unembedded(memory_core *m, sessile_slice model, size_t dims,
                                 size_t *from, size_t most, sessile_memory_row **rows,
                                 size_t *count, size_t *left, sessile_error *err);
sessile_status memory_models(memory_core *m, sessile_memory_model **out, size_t *count,
                             sessile_error *err);

/* ---- erase.c */
sessile_status memory_erase(memory_core *m, const sessile_memory_erase_options *options,
                            size_t *erased, sessile_error *err);
/* How many entries, erased ones left out, were written before that. */
sessile_status memory_count_before(memory_core *m, int64_t before_ms, uint64_t *count,
                                   sessile_error *err);
/* How many entries are from a session, erased ones left out. */
sessile_status memory_count_from(memory_core *m, sessile_slice agent,
                                 sessile_slice session, size_t *count,
                                 sessile_error *err);
sessile_status memory_delete_from(memory_core *m, sessile_slice agent,
                                  sessile_slice session, sessile_slice by,
                                  size_t *changed, sessile_error *err);

/* ---- rows.c */

/* Rows on their way to a caller. */
typedef struct row_list {
    sessile_memory_row *at;
    size_t count, capacity;
    struct row_text {
        size_t row, field; /* which slice of which row */
        size_t from, size; /* in text */
    } * texts;
    size_t text_count, text_capacity;
    buf text, entry, scratch;
} row_list;
void rows_init(row_list *l, const allocator *a);
void rows_deinit(row_list *l);
/* Adds the row of a record, read from the log. Its hit's numbers are 0. */
sessile_status rows_add(row_list *l, memory_core *m, uint32_t record, int64_t now_ms,
                        sessile_error *err);
/* The last row's slice at this offset is these bytes: 0, or -1: no memory. */
int rows_put(row_list *l, size_t field, const char *data, size_t size);
/* Sets the texts of the rows in the list, until another one is added: 0, or -1: no
 * memory. */
int rows_place(row_list *l);
/* All rows as one block for the caller; NULL when there are none. */
sessile_status rows_finish(row_list *l, memory_core *m, sessile_memory_row **out,
                           size_t *count, sessile_error *err);

/* The JSON text of any entry of the log. */
sessile_status memory_entry_text(memory_core *m, sessile_id id, char **out, size_t *size,
                                 sessile_error *err);

/* ---- explain.c */

/* Says of the last row, which is that of this hit, how its score came about. q and its
 * factors are those of the search. */
sessile_status memory_explain(row_list *l, memory_fold *f, sessile_slice question,
                              const rank_question *q, const rank_hit *hit,
                              sessile_error *err);

/* ---- watch.c */
sessile_status memory_watch(memory_core *m, sessile_id *seen, int timeout_ms,
                            int *changed, sessile_error *err);

/* ---- find.c */
sessile_status memory_read(memory_core *m, sessile_slice key, sessile_memory_row **out,
                           sessile_error *err);
sessile_status memory_get(memory_core *m, sessile_id id, sessile_memory_row **out,
                          sessile_error *err);
sessile_status memory_list(memory_core *m, const sessile_memory_list_options *options,
                           sessile_memory_row **rows, size_t *count, sessile_error *err);
sessile_status memory_history(memory_core *m, sessile_slice key, sessile_id id,
                              sessile_memory_row **rows, size_t *count,
                              sessile_error *err);
sessile_status memory_search(memory_core *m, sessile_slice question,
                             const sessile_memory_search_options *options,
                             sessile_memory_row **rows, size_t *count,
                             sessile_error *err);
sessile_status memory_stats(memory_core *m, sessile_memory_stats *out,
                            sessile_error *err);
/* INVALID, LIMIT: numbers of a search that are out of range. */
sessile_status memory_check_search(const sessile_memory_search_options *o,
                                   sessile_error *err);
/* The question's vector as the model's rows are: padded, quantised; or what an outside
 * index found. */
typedef struct asked_vector {
    const memory_model *model; /* NULL: none was asked for, or there is none here */
    int8_t values[(SESSILE_MEMORY_DIMS_MAX + 31) / 32 * 32];
    float scale;
    rank_outside *outside; /* of live entries; or NULL */
    size_t outside_count, outside_size /* bytes */;
} asked_vector;
/* memory: the index by which o->outside names this memory. Call memory_drop_vector() in
 * any case. */
sessile_status memory_take_vector(asked_vector *v, const memory_fold *f,
                                  const sessile_memory_search_options *o, size_t memory,
                                  sessile_error *err);
void memory_drop_vector(asked_vector *v, const memory_fold *f);
/* Sets what of a question is not about words. */
void memory_ask_vector(rank_question *q, const asked_vector *v);
/* What a rank_question's `about` says of a record. */
void memory_about(const memory_core *m, uint32_t record, int64_t *time_ms,
                  double *importance);

/* ---- several.c */

/* 1: as trusted as `least`, or more: system, user, agent, tool. */
int memory_trusts(sessile_memory_source source, sessile_memory_source least);
/* 1: the record may be recalled: it is live, and as trusted as `least` or approved. */
int memory_may_recall(const memory_core *m, uint32_t record, int64_t now_ms,
                      sessile_memory_source least);

typedef struct memory_several {
    memory_core *const *at; /* locked and fresh; NULL: left out */
    size_t count;
    const sessile_recall_options *options;
    sessile_slice question;
    int start; /* 1: pinned entries and procedures come first */
    /* 1: it may not be found. */
    int (*refuses)(void *arg, size_t memory, sessile_id id);
    void *arg;
} memory_several;
/* Finds at most `limit` entries of all of them, best first. */
sessile_status memory_find_several(const memory_several *of, size_t limit, row_list *l,
                                   sessile_error *err);

#endif
