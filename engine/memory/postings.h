/*
 * postings.h: which entry has which terms, and how well it answers a question.
 *
 * Entries are numbered from 0 in the order in which they were added. Terms are hashes
 * (hash64_lasting). Not thread-safe.
 *
 * Each entry has two fields. FIELD_MAIN is what is shown, FIELD_ALSO what it should be
 * found by beside that, at half the weight and with counts of its own.
 */
#ifndef MEMORY_POSTINGS_H
#define MEMORY_POSTINGS_H

#include "base/buf.h"
#include "base/map.h"
#include "base/text.h"

enum { FIELD_MAIN, FIELD_ALSO, FIELDS };

/* The entries that have one term; posting_lists.h has the format. Most lists are short
 * and need no block of memory of their own. */
typedef struct posting_list {
    union {
        unsigned char near[16];
        unsigned char *far;
    } bytes;
    uint32_t size, capacity; /* capacity 0: near */
    uint32_t next;           /* the first entry that is not covered */
    uint32_t live;           /* how many live entries the list had */
    uint32_t counted;        /* what postings.changes was at that count */
} posting_list;

typedef struct posting_field {
    map terms; /* term: index of lists */
    posting_list *lists;
    size_t count, capacity;
    uint16_t *lengths; /* terms of each entry, at most 65,535 */
    size_t length_capacity;
    uint64_t live_length; /* sums over live entries: of lengths, */
    uint32_t live_filled; /* and how many have any term here */
} posting_field;

/* A list as it was before the first of the marked entries was put into it. */
typedef struct posting_mark {
    uint64_t term;
    uint32_t list, size, next;
    int field;
} posting_mark;

typedef struct postings {
    const allocator *alloc;
    posting_field fields[FIELDS];
    posting_mark *marked; /* lists with entries from `mark` on */
    size_t marked_count, marked_capacity;
    uint32_t mark;
    int marking;    /* 1: marked is kept; -1: there was no memory for it */
    uint64_t *live; /* a bit for each entry */
    size_t live_capacity;
    uint32_t count, live_count;
    uint32_t
        changes;    /* counts how often an entry that was there began or ended to live */
    float *ratings; /* kept between searches: to get new pages costs more */
    size_t rating_capacity;
    int failed; /* no memory in the middle of an addition: only clearing helps */
} postings;

typedef struct posting_terms {
    uint64_t *at; /* will be sorted */
    size_t count;
} posting_terms;

void postings_init(postings *p, const allocator *a);
void postings_deinit(postings *p);
/* Adds the next entry: 0, or -1: no memory. Then everything fails until deinit. */
int postings_add(postings *p, const posting_terms terms[FIELDS], int live);
/* Says whether an entry counts. */
void postings_set_live(postings *p, uint32_t entry, int live);

static inline int postings_is_live(const postings *p, uint32_t entry)
{
    return (int)(p->live[entry / 64] >> entry % 64 & 1);
}

/* What the weights of a question's terms come from, of live entries in each field: how
 * many have any term, the sum of their lengths, and for each term how many have it. */
typedef struct postings_counts {
    double filled[FIELDS], length[FIELDS];
    double *with[FIELDS]; /* as many as terms */
} postings_counts;
/* Adds those of one postings to a sum that begins with zeros. */
void postings_count(postings *p, const uint64_t *terms, size_t count,
                    postings_counts *sum);

/*
 * Rates every entry, live or not, for a question of distinct terms. scores has room for
 * p->count numbers, and is overwritten; an entry without any of the terms gets 0.
 *
 *     lex   = sum over terms of  w(t) * 1.9 tf / (tf + 0.9 (0.6 + 0.4 len / avg))
 *     w(t)  = ln(1 + (N - n + 1/2) / (n + 1/2))
 *
 * N, n and avg are of live entries, in each field for itself. This is BM25 with k = 0.9
 * and b = 0.4. Returns the sum of 1.9 w(t) in the main field: what an entry would get
 * that answers all of the question. of: N, n and avg of several postings together, so
 * that their scores can be compared; NULL: of this one.
 */
double postings_score(postings *p, const uint64_t *terms, size_t count,
                      const postings_counts *of, float *scores);

/* Room for `each` numbers for each entry, kept until the next call; NULL: no memory. */
float *postings_ratings(postings *p, size_t each);

/* What one term adds to the score of an entry in one field; 0 if the entry lacks it. */
double postings_explain(postings *p, int field, uint64_t term, uint32_t entry);

/*
 * The terms of some entries, as bytes, for the index. postings_mark() begins with the
 * next entry; postings_pack() appends what was added to a field since: 0, or -1: no
 * memory, or nothing was marked.
 */
void postings_mark(postings *p);
int postings_pack(const postings *p, int field, buf *out);
/* Adds entries of given lengths, not live and without terms: 0, or -1: no memory. */
int postings_extend(postings *p, uint16_t lengths[][FIELDS], size_t count);
/* Gives the last `count` entries the terms that were packed: 0; 1: these are no such
 * bytes; -1: no memory. After 1 nothing but deinit helps. */
int postings_unpack(postings *p, int field, uint32_t count, const void *data,
                    size_t size);

/* How many bytes of memory it uses. */
size_t postings_bytes(const postings *p);

#endif
