/* names.c: the public functions for memory, slices, keys and names. */
#include "api/api.h"

#include "base/alloc.h"
#include "base/names.h"
#include "codec/message.h"
#include "sessile_store.h"

const char *sessile_version(void)
{
    return SESSILE_VERSION;
}

void sessile_free(void *ptr)
{
    host_free(ptr);
}

char *sessile_copy(const void *data, size_t size)
{
    return size && !data ? NULL : host_dup(&allocator_default, data, size);
}

sessile_slice sessile_text(const char *text)
{
    return slice_of(text);
}

void sessile_key_print(sessile_key key, char out[SESSILE_KEY_SIZE])
{
    if (out)
        key_print(key, out);
}

sessile_status sessile_key_parse(sessile_slice text, sessile_key *out)
{
    return out ? key_parse(text, out) : SESSILE_INVALID;
}

const char *sessile_status_name(sessile_status status)
{
    return status_name(status);
}

const char *sessile_hook_name(sessile_hook hook)
{
    return hook_name(hook);
}

const char *sessile_reason_name(sessile_reason reason)
{
    return reason_name(reason);
}

const char *sessile_checkpoint_reason_name(sessile_checkpoint_reason reason)
{
    return checkpoint_reason_name(reason);
}

const char *sessile_role_name(sessile_role role)
{
    return role_name(role);
}
