/* idn.h: host names that are not ASCII, through libidn2. */
#ifndef SCREEN_IDN_H
#define SCREEN_IDN_H

#include <stddef.h>

#define IDN_LIBRARY "libidn2.so.0"

/* libidn2, opened when it is first needed. Begin with {.name = IDN_LIBRARY}. */
typedef struct idn {
    const char *name;
    void *library;
    int missing; /* it was looked for, and is not there */
    int (*to_ascii)(const char *, char **, int);
    void (*release)(void *);
} idn;

typedef enum idn_result {
    IDN_OK,
    IDN_REFUSED, /* it is no host name, or too long */
    IDN_MISSING  /* libidn2 is not on this machine */
} idn_result;

/* Maps a host name (UTF-8, ends with a NUL) to ASCII as browsers do (UTS 46): full-width
 * letters, circled digits and ideographic dots become plain ones, other letters
 * "xn--…". */
idn_result idn_map(idn *with, const char *host, char *out, size_t room);
void idn_close(idn *with);

#endif
