/*
 * idn.c: loads libidn2 when a host name is not ASCII, which is seldom.
 *
 * Without libidn2 no such name is read, and who asked refuses it: a name that is not
 * understood may be an address.
 */
#include "screen/idn.h"

#include <idn2.h>
#include <string.h>

#include "base/os.h"

/* Finds the functions: 0, or -1. */
static int load(idn *with)
{
    if (with->library)
        return 0;
    if (!with->missing)
        with->library = os_library_open(with->name);
    if (with->library &&
        os_library_find(with->library, "idn2_to_ascii_8z", &with->to_ascii,
                        sizeof with->to_ascii) == 0 &&
        os_library_find(with->library, "idn2_free", &with->release,
                        sizeof with->release) == 0)
        return 0;
    idn_close(with);
    with->missing = 1;
    return -1;
}

idn_result idn_map(idn *with, const char *host, char *out, size_t room)
{
    /* The casts compare our types with those of the header. */
    const __typeof__(&idn2_to_ascii_8z) to_ascii = load(with) ? NULL : with->to_ascii;
    const __typeof__(&idn2_free) release = with->release;
    char *made = NULL;
    idn_result result = IDN_REFUSED;

    if (!to_ascii)
        return IDN_MISSING;
    if (to_ascii(host, &made, IDN2_NONTRANSITIONAL | IDN2_NFC_INPUT) != IDN2_OK)
        return IDN_REFUSED;
    if (strlen(made) < room) {
        memcpy(out, made, strlen(made) + 1);
        result = IDN_OK;
    }
    release(made);
    return result;
}

void idn_close(idn *with)
{
    os_library_close(with->library);
    with->library = NULL;
}
