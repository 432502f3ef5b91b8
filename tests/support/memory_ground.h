/* memory_ground.h: memories of random entries over files, and all that they show as one
 * text.
 *
 * What a memory shows follows from its log alone. So the text must be the same whether
 * the memory was opened by its index, by a wrong one, or by its lines.
 */
#ifndef SUPPORT_MEMORY_GROUND_H
#define SUPPORT_MEMORY_GROUND_H

#include <stddef.h>
#include <stdint.h>

#include "sessile_memory.h"

enum { MEMORY_GROUND_DIMS = 8, MEMORY_WORDS = 18 };

/* A store in a folder of its own, sealed or plain, and the state of a generator. */
typedef struct memory_ground {
    char *root;
    int plain;
    sessile_store *store;
    uint64_t seed;
} memory_ground;

/* Opens the store at root, which may have been open before. */
void memory_ground_open(memory_ground *g);
/* Fixtures of cmocka: *state is a memory_ground. */
int memory_ground_set_up(void **state);
int memory_ground_tear_down(void **state);

/* A random number below `below`. */
uint32_t memory_draw(memory_ground *g, uint32_t below);
/* The words that random entries and questions are made of. */
extern const char *const memory_vocabulary[MEMORY_WORDS];
/* Writes `count` random words to out, which has room for seven bytes each. */
void memory_put_words(memory_ground *g, char *out, int count);
/* Writes random entries, verdicts and vectors until the log has count entries or a few
 * more. */
void memory_tell(memory_ground *g, sessile_memory *m, size_t count);

/* The answers to random questions and lists, and the state of every entry: the same for
 * the same seed. free(). */
char *memory_shown(sessile_memory *m, uint64_t seed);
/* The same of the agent's memory, opened by another store handle. blocks: how many blocks
 * of the index were used; may be NULL. free(). */
char *memory_shown_again(memory_ground *g, uint64_t seed, uint64_t *blocks);
/* Fails unless another handle shows `truth`. used: whether it must have used the index;
 * -1: either. */
void memory_expect_shown(memory_ground *g, uint64_t seed, const char *truth, int used);
/* How many blocks of the index a handle was opened from. */
uint64_t memory_blocks_restored(const sessile_memory *m);

/* The path of the agent's memory, with this suffix: ".jsonl", ".idx". free(). */
char *memory_file(const memory_ground *g, const char *suffix);
/* The bytes of a file; free data. */
typedef struct file_bytes {
    char *data;
    size_t size;
} file_bytes;
file_bytes bytes_read(const char *path);

/* A memory with an index of some blocks: the index's path and bytes, and what the memory
 * shows for seed 7. */
typedef struct memory_told {
    char *idx, *truth;
    file_bytes good;
} memory_told;
memory_told memory_told_make(memory_ground *g, size_t count);
void memory_told_free(memory_told *t);

/* How many findings a check of the store has, notes aside. */
size_t memory_findings(sessile_store *st);

#endif
