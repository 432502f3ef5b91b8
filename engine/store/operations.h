/*
 * operations.h: what the tables of functions of file/, sqlite/ and postgres/ have in
 * common, so that a new function of sessile_backend is declared and entered in one place.
 */
#ifndef STORE_OPERATIONS_H
#define STORE_OPERATIONS_H

#include "sessile_store.h"

/* Declares PREFIX_create(), PREFIX_open(), …: see sessile_store.h. */
#define STORE_DECLARE(p)                                                                \
    sessile_status p##_create(void *self, const char *folder, const char *name,         \
                              const void *data, size_t size, sessile_error *err);       \
    sessile_status p##_open(void *self, const char *folder, const char *name,           \
                            sessile_backend_log **out, sessile_error *err);             \
    void p##_close(sessile_backend_log *log);                                           \
    sessile_status p##_size(sessile_backend_log *log, uint64_t *bytes,                  \
                            int64_t *mtime_ms, sessile_error *err);                     \
    sessile_status p##_read(sessile_backend_log *log, uint64_t index, uint64_t offset,  \
                            void *out, size_t size, size_t *got, sessile_error *err);   \
    sessile_status p##_append(sessile_backend_log *log, sessile_log_end *end,           \
                              const void *data, size_t size, uint64_t count,            \
                              const unsigned char new_tag[16], int *poisoned,           \
                              sessile_error *err);                                      \
    sessile_status p##_sync(sessile_backend_log *log, sessile_error *err);              \
    int p##_replaced(sessile_backend_log *log);                                         \
    void p##_set_stop(sessile_backend_log *log, int (*ask)(void *arg), void *arg);      \
    sessile_status p##_remove(sessile_backend_log *log, uint64_t head,                  \
                              sessile_error *err);                                      \
    sessile_status p##_rename(sessile_backend_log *log, const char *folder,             \
                              const char *name, sessile_error *err);                    \
    sessile_status p##_list(                                                            \
        void *self, const char *folder,                                                 \
        int (*visit)(void *arg, const char *folder, const char *name), void *arg,       \
        sessile_error *err);                                                            \
    sessile_status p##_list_stat(void *self, const char *folder,                        \
                                 int (*visit)(void *arg, const char *folder,            \
                                              const char *name,                         \
                                              const sessile_backend_stat *stat),        \
                                 void *arg, sessile_error *err);                        \
    sessile_status p##_list_others(                                                     \
        void *self, const char *folder,                                                 \
        int (*visit)(void *arg, const char *folder, const char *file, uint64_t bytes),  \
        void *arg, sessile_error *err);                                                 \
    sessile_status p##_sweep(                                                           \
        void *self,                                                                     \
        int (*visit)(void *arg, const char *folder, const char *file, uint64_t bytes),  \
        void *arg, sessile_error *err);                                                 \
    sessile_status p##_has_logs(void *self, int *found, sessile_error *err);            \
    sessile_status p##_stat(void *self, const char *folder, const char *name,           \
                            sessile_backend_stat *out, sessile_error *err);             \
    sessile_status p##_blob_get(void *self, const char *name, char **out, size_t *size, \
                                sessile_error *err);                                    \
    sessile_status p##_blob_put_new(void *self, const char *name, const void *data,     \
                                    size_t size, sessile_error *err);                   \
    sessile_status p##_blob_replace(void *self, const char *name, const void *was,      \
                                    size_t was_size, const void *data, size_t size,     \
                                    sessile_error *err);                                \
    sessile_status p##_blob_remove(void *self, const char *name, sessile_error *err);   \
    sessile_status p##_blob_list(void *self, const char *prefix,                        \
                                 int (*visit)(void *arg, const char *name), void *arg,  \
                                 sessile_error *err);                                   \
    sessile_status p##_cache_size(sessile_backend_log *log, uint64_t *bytes,            \
                                  sessile_error *err);                                  \
    sessile_status p##_cache_read(sessile_backend_log *log, uint64_t offset, void *out, \
                                  size_t size, size_t *got, sessile_error *err);        \
    sessile_status p##_cache_write(sessile_backend_log *log, uint64_t offset,           \
                                   const void *data, size_t size, sessile_error *err);  \
    sessile_status p##_list_cache_get(void *self, const char *folder, char **out,       \
                                      size_t *size, sessile_error *err);                \
    sessile_status p##_list_cache_put(void *self, const char *folder, const void *data, \
                                      size_t size, sessile_error *err);                 \
    sessile_status p##_list_cache_drop(void *self, const char *folder,                  \
                                       sessile_error *err);                             \
    sessile_status p##_draft_new(void *self, const char *folder, const char *name,      \
                                 sessile_backend_draft **out, sessile_error *err);      \
    sessile_status p##_draft_write(sessile_backend_draft *draft, const void *data,      \
                                   size_t size, sessile_error *err);                    \
    sessile_status p##_draft_replace(sessile_backend_draft *draft,                      \
                                     sessile_backend_log *old, int keep, char *kept,    \
                                     size_t kept_size, sessile_error *err);             \
    sessile_status p##_draft_publish(sessile_backend_draft *draft, sessile_error *err); \
    void p##_draft_drop(sessile_backend_draft *draft);                                  \
    sessile_status p##_ends(void *self, sessile_backend_log *const *logs, size_t n,     \
                            uint64_t *bytes, sessile_error *err)

/* The same functions as members of a sessile_backend, and its version. */
#define STORE_TABLE(p)                                                              \
    .version = SESSILE_BACKEND_VERSION, .create = p##_create, .open = p##_open,     \
    .close = p##_close, .size = p##_size, .read = p##_read, .append = p##_append,   \
    .sync = p##_sync, .replaced = p##_replaced, .set_stop = p##_set_stop,           \
    .remove = p##_remove, .rename = p##_rename, .list = p##_list,                   \
    .list_stat = p##_list_stat, .list_others = p##_list_others, .sweep = p##_sweep, \
    .has_logs = p##_has_logs, .stat = p##_stat, .blob_get = p##_blob_get,           \
    .blob_put_new = p##_blob_put_new, .blob_replace = p##_blob_replace,             \
    .blob_remove = p##_blob_remove, .blob_list = p##_blob_list,                     \
    .cache_size = p##_cache_size, .cache_read = p##_cache_read,                     \
    .cache_write = p##_cache_write, .list_cache_get = p##_list_cache_get,           \
    .list_cache_put = p##_list_cache_put, .list_cache_drop = p##_list_cache_drop,   \
    .draft_new = p##_draft_new, .draft_write = p##_draft_write,                     \
    .draft_replace = p##_draft_replace, .draft_publish = p##_draft_publish,         \
    .draft_drop = p##_draft_drop, .ends = p##_ends

#endif
