/*
 * backend.h: what the cases about a store's table share: handles of it, and the checks
 * that every answer must stand.
 *
 * Each of these fails the case that calls it when the store does not do what it promised.
 * Include it after <cmocka.h>.
 */
#ifndef STORE_BACKEND_H
#define STORE_BACKEND_H

#include "store/suite.h"
#include "support/check.h"

/* A store in a site's place: what the functions of its table are handed. */
typedef struct opened {
    const sessile_backend *table;
    void *self;
    sessile_error err;
} opened;

opened open_site(const site *g);
void done(opened *o);
/* The same with the log "main/log" of these records, and one or two handles of it; b may
 * be NULL. */
opened open_log(const site *g, const char *records, sessile_backend_log **a,
                sessile_backend_log **b);
/* Closes the handles, then the store; b may be NULL. */
void done_with(opened *o, sessile_backend_log *a, sessile_backend_log *b);
/* Closes the handle and restarts the store; then "main/log" holds exactly this, and the
 * store is closed. */
void done_and_kept(opened *o, const site *g, sessile_backend_log *log,
                   const char *expected);
/* What blob_get or list_cache_get answers is this text. */
typedef sessile_status (*get_blob)(void *self, const char *name, char **out, size_t *size,
                                   sessile_error *err);
void blob_holds(opened *o, get_blob get, const char *name, const char *expected);
/* Closes the store and opens it again, as after a restart; the same one where nothing
 * would be left of it. */
void restarted(opened *o, const site *g);

int has(const opened *o, unsigned capability);

/* An error was promised: this one, with a sentence that tells nobody's password. */
void refused(sessile_status status, sessile_status expected, const sessile_error *err);

void create(opened *o, const char *folder, const char *name, const char *records);
sessile_backend_log *log_in(opened *o, const char *folder, const char *name);
/* In the folder "main". */
sessile_backend_log *log_of(opened *o, const char *name);
/* The log is not there: it can neither be opened nor is it in a list. */
void absent(opened *o, const char *folder, const char *name);

/* Takes the exclusive lock, where there are locks. Returns what lock said of `replaced`.
 */
int locked(opened *o, sessile_backend_log *log);
void unlocked(opened *o, sessile_backend_log *log);

/* append under the lock. The tag is {tag, 1}. */
sessile_status append(opened *o, sessile_backend_log *log, sessile_log_end *end,
                      const void *data, size_t size, uint64_t count, unsigned char tag);
/* An append to a log that is gone is refused: NOTFOUND, or lock says that it was
 * replaced. */
void append_is_gone(opened *o, sessile_backend_log *log, sessile_log_end end);
/* remove under the lock. */
sessile_status removed(opened *o, sessile_backend_log *log);
/* remove of "main"/name through a handle of its own, closed again. */
void remove_log(opened *o, const char *name);

uint64_t size_of(opened *o, sessile_backend_log *log);
/* All bytes of a log, read in pieces of `piece`: free(). */
char *all(opened *o, sessile_backend_log *log, size_t piece, size_t *size);
/* The log's bytes are these, however they are read. */
void holds(opened *o, sessile_backend_log *log, const char *expected);
/* The same of a log by its name. */
void log_holds(opened *o, const char *folder, const char *name, const char *expected);

/* Logs as list visits them, each "FOLDER/NAME "; left: how many more are wanted. */
typedef struct shown {
    char text[8192];
    int left;
} shown;
int show(void *arg, const char *folder, const char *name);
int count_of(const char *text, const char *part);

/* How long a case waits for what must come, in ms: far longer than it takes.
 * SESSILE_PATIENCE. */
int patience(void);

/* The cases, a file each. */
struct CMUnitTest;
typedef struct case_group {
    const struct CMUnitTest *cases;
    size_t count;
} case_group;
extern const case_group cases_logs, cases_reads, cases_lists, cases_writers, cases_blobs,
    cases_caches, cases_drafts, cases_removal, cases_waits, cases_ends;

/* All of them. */
const struct CMUnitTest *backend_cases(size_t *count);
/* All of them whose name holds `part`, over these stores. Returns how many failed. */
int backend_run(const suite_store *kinds, size_t kind_count, const char *part);

#define CASES(group, list) const case_group group = {list, sizeof(list) / sizeof *(list)}

#endif
