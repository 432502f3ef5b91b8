/* cursor.c: where a reader of the audit is, as text. */
#include "audit/read.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codec/entry.h"

sessile_status audit_cursor_parse(audit_cursor *out, sessile_slice text,
                                  sessile_error *err)
{
    const char *at = text.data, *end = text.data + text.size;
    uint32_t before = 0;

    memset(out, 0, sizeof *out);
    if (text.size < 1 || *at++ != '1')
        goto bad;
    while (at < end) {
        const char *slash = *at == ' ' ? memchr(at, '/', (size_t)(end - at)) : NULL;
        char name[LANE_NAME] = "";
        uint32_t lane, part;
        size_t size = slash ? (size_t)(slash - at - 1) : 0;
        if (!slash || size >= sizeof name || end - slash < 9)
            goto bad;
        memcpy(name, at + 1, size);
        if (strlen(name) != size || lane_part_parse(name, &lane, &part) ||
            lane + 1 <= before || id_parse(slash + 1, 8, &out->entry[lane]))
            goto bad;
        out->is[lane] = 1;
        out->part[lane] = part;
        before = lane + 1;
        at = slash + 9;
    }
    return SESSILE_OK;
bad:
    return fail(err, SESSILE_INVALID,
                "this is no cursor of an audit: take what sessile_audit_cursor() "
                "returned, or read from the beginning");
}

void audit_cursor_print(const audit_cursor *c, buf *out)
{
    char name[LANE_NAME];

    buf_puts(out, "1");
    for (uint32_t i = 0; i < LANE_MOST; i++)
        if (c->is[i]) {
            lane_part_name(i, c->part[i], name);
            buf_printf(out, " %s/%08" PRIx32, name, c->entry[i]);
        }
}
