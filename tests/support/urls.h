/* urls.h: texts with URLs: attacks that must be refused, and ordinary ones that must not.
 */
#ifndef SUPPORT_URLS_H
#define SUPPORT_URLS_H

#include <stddef.h>

typedef struct url_attack {
    const char *rule, *text;
} url_attack;

extern const url_attack url_attacks[];
extern const size_t url_attack_count;
extern const char *const url_ordinary[];
extern const size_t url_ordinary_count;

#endif
