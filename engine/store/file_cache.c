/*
 * file_cache.c: NAME.idx, the cache beside a log.
 *
 * Owns its name and its bytes, which may be lost or wrong at any time: nothing here is
 * synced, and who reads it must be able to do without.
 */
#include "store/file.h"

#include <string.h>

#define CACHE_SUFFIX ".idx"

/* The cache of a log, by the log's file name. out has room for FILE_NAME_SIZE. */
static void cache_name(char out[FILE_NAME_SIZE], const char *log)
{
    size_t size = strlen(log) - strlen(FILE_SUFFIX);
    memcpy(out, log, size);
    memcpy(out + size, CACHE_SUFFIX, sizeof(CACHE_SUFFIX));
}

void file_cache_drop(file_store *fs, const file_folder *folder, const char *log)
{
    char name[FILE_NAME_SIZE];
    cache_name(name, log);
    fs->os->unlink_at(fs->os->ud, folder->fd, name); /* there may be none */
}
