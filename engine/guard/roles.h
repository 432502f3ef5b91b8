/* roles.h: permissions, and the roles that give them. */
#ifndef GUARD_ROLES_H
#define GUARD_ROLES_H

#include <stdint.h>

#include "base/alloc.h"
#include "sessile_guard.h"

/* Bits 1 << SESSILE_MAY_…; HOST is beyond them: no role gives it. */
typedef uint32_t permissions;
#define PERMISSION(name) ((permissions)1 << SESSILE_MAY_##name)
#define PERMISSION_OF(p) ((permissions)1 << (p))
#define PERMISSIONS_ALL  (((permissions)1 << SESSILE_PERMISSION_COUNT) - 1)
#define PERMISSION_HOST  ((permissions)1 << 31)

/* One role: its permissions, and whether they hold for the sessions of all users. */
typedef struct role {
    char name[64];
    permissions may;
    int all;
} role;

/* The roles of a store: those that every store has, replaced or joined by its own. */
typedef struct roles {
    role *list;
    size_t count, capacity;
} roles;

/* own: count of them, from the host. INVALID: a name or a permission that cannot be. */
sessile_status roles_init(roles *r, const sessile_role_definition *own, size_t count,
                          const allocator *a, sessile_error *err);
void roles_deinit(roles *r, const allocator *a);
const role *roles_find(const roles *r, const char *name); /* NULL: there is none */
const role *roles_find_slice(const roles *r, sessile_slice name);

/* SESSILE_PERMISSION_COUNT: there is none of that name. */
sessile_permission permission_of(const char *name, size_t size);
const char *permission_name(sessile_permission permission); /* NULL: there is none */

#endif
