/*
 * os_library.c: shared libraries that are loaded when they are first needed.
 *
 * It is for a library that most processes never use and that takes long to load with
 * all of its dependencies.
 */
#include "base/os.h"

#include <dlfcn.h>
#include <string.h>

void *os_library_open(const char *name)
{
    /* The code stays mapped after the last close. Otherwise functions that it
     * registered for the end of the process (OpenSSL does) would be called at unmapped
     * addresses. */
    return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

int os_library_find(void *library, const char *symbol, void *out, size_t size)
{
    void *found = dlsym(library, symbol);
    if (!found || size != sizeof found)
        return -1;
    memcpy(out, &found, sizeof found);
    return 0;
}

void os_library_close(void *library)
{
    if (library)
        dlclose(library);
}

const void *os_symbol(const char *symbol)
{
    return dlsym(RTLD_DEFAULT, symbol);
}

int os_same_object(const void *one, const void *other)
{
    Dl_info of_one, of_other;
    return dladdr(one, &of_one) && dladdr(other, &of_other) &&
           of_one.dli_fbase == of_other.dli_fbase;
}
