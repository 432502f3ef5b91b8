/* pair.c: begins and ends the two nodes of a case. Knows nothing of what they do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <stdlib.h>

#include "nodes/pair.h"

pair *pair_new(const char *kind, int own)
{
    const char *why = "";
    pair *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->d = database_new(kind, 1, own, &why);
    if (!p->d) {
        print_message("# %s\n", why);
        return p;
    }
    node_start(&p->a, p->d, NULL);
    node_start(&p->b, p->d, NULL);
    node_must(&p->a, NODE_OPEN, 0, 0, NULL);
    node_must(&p->b, NODE_OPEN, 0, 0, NULL);
    node_must(&p->a, NODE_CREATE, 0, 0, "shared");
    node_must(&p->b, NODE_RESUME, 0, 0, "shared");
    return p;
}

int pair_close(void **state)
{
    pair *p = *state;
    node_kill(&p->a);
    node_kill(&p->b);
    database_free(p->d);
    free(p);
    return 0;
}

pair *both(void **state)
{
    pair *p = *state;
    if (!p->d)
        skip();
    return p;
}
