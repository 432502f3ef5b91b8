/* hooks.c: hooks on a list, their edits, and what came of them */
#include "support/hooks.h"

#include "support/lists.h"
#include "support/rations.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokens/tokens.h"

sessile_error hook_err;

void hook_begin_with(hook *h, const char *line, uint32_t floor, int64_t window)
{
    list_make(&h->l, line);
    h->s = list_state_with(&h->l, floor, window, 0);
}

void hook_begin(hook *h, const char *line)
{
    hook_begin_with(h, line, 2, 0);
}

void hook_end(hook *h)
{
    state_free(h->s);
    list_free(&h->l);
}

int hook_finish(hook *h)
{
    int changed, vars_changed;
    assert_int_equal(state_hook_end(h->s, &changed, &vars_changed, &hook_err),
                     SESSILE_OK);
    assert_int_equal(state_after(h->s)->upto, h->l.c.upto);
    return changed;
}

void next_hook(hook *h)
{
    assert_int_equal(state_hook_begin(h->s, NULL, 0, &hook_err), SESSILE_OK);
}

void expect_list(hook *h, const char *keys)
{
    int64_t foretold = sessile_state_tokens(h->s);
    (void)hook_finish(h);
    assert_string_equal(list_keys(state_after(h->s)), keys);
    assert_int_equal(context_tokens(state_after(h->s)), foretold);
    assert_int_equal(sessile_state_tokens(h->s), foretold);
}

void expect_put(const hook *h, uint32_t n, const char *text)
{
    laws_input in;
    assert_int_equal(state_laws(h->s, &in, &hook_err), SESSILE_OK);
    assert_in_range(n, 1, in.inserted_count);
    assert_string_equal(in.inserted[n - 1].json, text);
    assert_int_equal(in.inserted[n - 1].size, strlen(text));
}

void expect_stands(const hook *h, uint32_t n, const char *keys)
{
    char out[1024] = "";
    laws_input in;
    const inserted_message *w;
    size_t k;

    assert_int_equal(state_laws(h->s, &in, &hook_err), SESSILE_OK);
    w = &in.inserted[n - 1];
    for (k = 0; k < w->cover_count; k++)
        sprintf(out + strlen(out), "%s%u", k ? " " : "", w->covers[k].entry);
    strcat(out, "/");
    for (k = 0; k < w->replace_count; k++)
        sprintf(out + strlen(out), "%s%u", k ? " " : "", w->replaces[k].entry);
    assert_string_equal(out, keys);
}

law hook_judge(const hook *h)
{
    judgement j;
    laws_input in;
    assert_int_equal(state_laws(h->s, &in, &hook_err), SESSILE_OK);
    assert_int_equal(laws_check(&in, &j, &allocator_default, &hook_err), SESSILE_OK);
    return j.broken;
}

sessile_status hook_drop(hook *h, size_t first, size_t last)
{
    return sessile_state_drop(h->s, first, last, &hook_err);
}

sessile_status hook_replace(hook *h, size_t i, const char *fields)
{
    return sessile_state_replace(h->s, i, sessile_text(fields), &hook_err);
}

sessile_status hook_insert(hook *h, size_t i, const char *text)
{
    return sessile_state_insert(h->s, i, sessile_text(text), 0, 0, 0, &hook_err);
}

sessile_status hook_cover(hook *h, size_t i, const char *text, size_t first, size_t last)
{
    return sessile_state_insert(h->s, i, sessile_text(text), 1, first, last, &hook_err);
}
