/* roles.c: the roles that every store has, and those that a host defines. */
#include "guard/roles.h"

#include <string.h>

#include "base/error.h"

static const char *const names[SESSILE_PERMISSION_COUNT] = {
    [SESSILE_MAY_VIEW_SESSION] = "view_session",
    [SESSILE_MAY_MODIFY_SESSION] = "modify_session",
    [SESSILE_MAY_CREATE_SESSION] = "create_session",
    [SESSILE_MAY_DELETE_SESSION] = "delete_session",
    [SESSILE_MAY_CREATE_CHECKPOINT] = "create_checkpoint",
    [SESSILE_MAY_READ_MEMORY] = "read_memory",
    [SESSILE_MAY_WRITE_MEMORY] = "write_memory",
    [SESSILE_MAY_READ_AUDIT] = "read_audit",
    [SESSILE_MAY_CHECK_STORE] = "check_store",
    [SESSILE_MAY_MOVE_STORE] = "move_store",
    [SESSILE_MAY_MANAGE_KEYS] = "manage_keys",
    [SESSILE_MAY_MANAGE_ACCESS] = "manage_access",
    [SESSILE_MAY_MANAGE_PRIVACY] = "manage_privacy",
    [SESSILE_MAY_ERASE_USER] = "erase_user",
    [SESSILE_MAY_IMPERSONATE] = "impersonate",
};

#define VIEWER (PERMISSION(VIEW_SESSION) | PERMISSION(READ_MEMORY))
#define EDITOR                                                          \
    (VIEWER | PERMISSION(MODIFY_SESSION) | PERMISSION(CREATE_SESSION) | \
     PERMISSION(CREATE_CHECKPOINT) | PERMISSION(WRITE_MEMORY))

static const role built_in[] = {
    {"viewer", VIEWER, 0},
    {"editor", EDITOR, 0},
    {"admin", PERMISSIONS_ALL & ~PERMISSION(IMPERSONATE), 1},
    {"auditor", PERMISSION(READ_AUDIT) | PERMISSION(CHECK_STORE), 1},
};
#define BUILT_IN (sizeof built_in / sizeof *built_in)

const char *permission_name(sessile_permission permission)
{
    return (unsigned)permission < SESSILE_PERMISSION_COUNT ? names[permission] : NULL;
}

sessile_permission permission_of(const char *name, size_t size)
{
    unsigned i = 0;
    while (i < SESSILE_PERMISSION_COUNT &&
           (strlen(names[i]) != size || memcmp(names[i], name, size) != 0))
        i++;
    return (sessile_permission)i;
}

const role *roles_find(const roles *r, const char *name)
{
    for (size_t i = 0; i < r->count; i++)
        if (!strcmp(r->list[i].name, name))
            return &r->list[i];
    return NULL;
}

const role *roles_find_slice(const roles *r, sessile_slice name)
{
    for (size_t i = 0; i < r->count; i++)
        if (name.size && strlen(r->list[i].name) == name.size &&
            !memcmp(r->list[i].name, name.data, name.size))
            return &r->list[i];
    return NULL;
}

static sessile_status read_one(role *out, const sessile_role_definition *own,
                               sessile_error *err)
{
    size_t size = own->name ? strlen(own->name) : 0;

    memset(out, 0, sizeof *out);
    if (!size || size >= sizeof out->name)
        return fail(err, SESSILE_INVALID, "the name of a role has 1 to %zu bytes",
                    sizeof out->name - 1);
    memcpy(out->name, own->name, size);
    out->all = own->all != 0;
    for (size_t i = 0; i < own->permission_count; i++) {
        const char *name = own->permissions[i] ? own->permissions[i] : "";
        sessile_permission p = permission_of(name, strlen(name));
        if (p == SESSILE_PERMISSION_COUNT)
            return fail(err, SESSILE_INVALID,
                        "role \"%s\": there is no permission \"%.40s\"", out->name, name);
        out->may |= (permissions)1 << p;
    }
    return SESSILE_OK;
}

sessile_status roles_init(roles *r, const sessile_role_definition *own, size_t count,
                          const allocator *a, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    r->count = 0;
    r->capacity = BUILT_IN + count;
    r->list = mem_zalloc(a, r->capacity * sizeof *r->list);
    if (!r->list)
        return fail_nomem(err);
    for (size_t i = 0; !status && i < count; i++) {
        role *one = &r->list[r->count];
        status = read_one(one, &own[i], err);
        if (!status && roles_find(r, one->name))
            status =
                fail(err, SESSILE_INVALID, "role \"%s\" is defined twice", one->name);
        r->count += !status;
    }
    for (size_t i = 0; i < BUILT_IN; i++)
        if (!roles_find(r, built_in[i].name))
            r->list[r->count++] = built_in[i];
    if (status)
        roles_deinit(r, a);
    return status;
}

void roles_deinit(roles *r, const allocator *a)
{
    mem_free(a, r->list, r->capacity * sizeof *r->list);
    memset(r, 0, sizeof *r);
}
