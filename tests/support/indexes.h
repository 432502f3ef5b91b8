/* indexes.h: sessions opened by their index, compared as one text */
#ifndef SUPPORT_INDEXES_H
#define SUPPORT_INDEXES_H

#include "support/logs.h"
#include "support/sessions.h"

/* Fills what it hands out, and what it takes back: a node that was never
 * brought shows. */
extern long allocations_left;
void *index_filling(void *ud, void *ptr, size_t osize, size_t nsize);
sessile_store *index_store_on(const char *folder, store_kind kind);
typedef struct index_bed {
    char *folder;
    store_kind kind;
    sessile_store *st;
} index_bed;

index_bed bed_make(store_kind kind);
void bed_end(index_bed *b);
const char *bed_path(const index_bed *b, const char *name, const char *suffix);
/* What is durable is in the index from here on. */
void index_settle(sessile_session *s);
/* Entries of every kind, different for every seed; count of them or a few more.
 */
void index_tell(sessile_session *s, size_t count, uint64_t *seed);
void make_story(index_bed *b, const char *name, size_t count, uint64_t seed);
void put_rows(buf *out, const sessile_message *rows, size_t count);
sessile_status put_context(sessile_session *s, sessile_id leaf, buf *out,
                           sessile_error *err);
/* Everything that an open handle shows. */
sessile_status put_state(sessile_session *s, buf *out, sessile_error *err);
/* Opens with another store handle; restored says whether the index was used. */
sessile_status state_of(const index_bed *b, const char *name, char **out, int *restored,
                        sessile_error *err);
char *state_must(const index_bed *b, const char *name, int *restored);
void assert_same_text(const char *a, const char *b, const char *what, size_t n);
/* The state that the lines alone give. Leaves no index. */
char *truth_of(const index_bed *b, const char *name);
typedef struct index_files {
    char *log, *idx;
    size_t log_size, idx_size;
} index_files;

index_files take_files(const index_bed *b, const char *name);
void drop_files(index_files *f);
void log_is(const index_bed *b, const char *name, const index_files *f);
void index_shows(const index_bed *b, const char *truth, const index_files *f,
                 const char *what, size_t n);
void put_index(const index_bed *b, const void *data, size_t size);

#endif
