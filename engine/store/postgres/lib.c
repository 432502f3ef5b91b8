/*
 * lib.c: loads libpq on first use.
 *
 * The engine is not linked with libpq, which would bring two dozen libraries and some
 * milliseconds into every process; most processes never see a server. All calls of libpq
 * go through the table that is filled here.
 */
#include "store/postgres/postgres.h"

#include <string.h>

#define LIBRARY "libpq.so.5"

sessile_status pg_lib_open(pg_lib *lib, sessile_error *err)
{
    memset(lib, 0, sizeof *lib);
    lib->library = os_library_open(LIBRARY);
    if (!lib->library) {
        return fail(err, SESSILE_UNSUPPORTED,
                    "PostgreSQL's client library (" LIBRARY
                    ") is not on this machine: install libpq5");
    }
    const struct {
        const char *name;
        void *out;
        size_t size;
    } functions[] = {
#define PG_ROW(name) {#name, &lib->name, sizeof lib->name},
        PG_FUNCTIONS(PG_ROW)
#undef PG_ROW
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (os_library_find(lib->library, functions[i].name, functions[i].out,
                            functions[i].size) != 0) {
            pg_lib_close(lib);
            return fail(err, SESSILE_UNSUPPORTED,
                        LIBRARY " of this machine has no %s: install libpq5 14 or newer",
                        functions[i].name);
        }
    }
    return SESSILE_OK;
}

void pg_lib_close(pg_lib *lib)
{
    os_library_close(lib->library);
    lib->library = NULL;
}
