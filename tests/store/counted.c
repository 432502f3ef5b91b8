/* counted.c: see counted.h. */
#include "store/counted.h"

struct counted counted;

static const sessile_backend *under;

static sessile_status count_open(void *self, const char *folder, const char *name,
                                 sessile_backend_log **log, sessile_error *err)
{
    counted.open++;
    return under->open(self, folder, name, log, err);
}

static sessile_status count_size(sessile_backend_log *log, uint64_t *bytes, int64_t *time,
                                 sessile_error *err)
{
    counted.size++;
    return under->size(log, bytes, time, err);
}

static sessile_status count_read(sessile_backend_log *log, uint64_t index,
                                 uint64_t offset, void *out, size_t size, size_t *got,
                                 sessile_error *err)
{
    counted.read++;
    return under->read(log, index, offset, out, size, got, err);
}

static sessile_status count_append(sessile_backend_log *log, sessile_log_end *end,
                                   const void *data, size_t size, uint64_t count,
                                   const unsigned char new_tag[16], int *poisoned,
                                   sessile_error *err)
{
    counted.append++;
    return under->append(log, end, data, size, count, new_tag, poisoned, err);
}

sessile_store *counted_store(minimal_medium *medium)
{
    static sessile_backend table;
    sessile_store_options options;
    sessile_store *out;
    void *self;

    under = minimal_store(medium, &self);
    table = *under;
    table.open = count_open;
    table.size = count_size;
    table.read = count_read;
    table.append = count_append;
    sessile_store_options_init(&options);
    options.key_source = SESSILE_KEY_PLAIN;
    return sessile_open_with(&out, &table, self, &options, NULL) ? NULL : out;
}
