/*
 * remote.c: loads libsessile-remote.so on first use.
 *
 * The library stays loaded: its functions are in the tables of stores, the last of which
 * is closed by one of them.
 */
#include "store/remote.h"

#ifndef SESSILE_LIBEXEC
#define SESSILE_LIBEXEC "/usr/local/libexec/sessile"
#endif
#define LIBRARY  "libsessile-remote.so"
#define FUNCTION "remote_store_open"

sessile_status store_remote_open(store *out, const char *url, const store_setup *setup,
                                 sessile_error *err)
{
    const char *const places[] = {setup->remote, SESSILE_LIBEXEC "/" LIBRARY, LIBRARY};
    store_remote_function *open;
    void *library = NULL;
    *out = (store){NULL, NULL};
    for (size_t i = 0; i < sizeof places / sizeof *places && !library; i++)
        library = places[i] ? os_library_open(places[i]) : NULL;
    if (!library)
        return fail(err, SESSILE_UNSUPPORTED,
                    LIBRARY ", which talks to servers of records, was not installed: "
                            "build it with `make service`, and install again");
    if (os_library_find(library, FUNCTION, &open, sizeof open) != 0) {
        os_library_close(library);
        return fail(err, SESSILE_UNSUPPORTED,
                    LIBRARY " has no " FUNCTION "(): install the one of this version");
    }
    return open(STORE_REMOTE_VERSION, out, url, setup, err);
}
