/* proposals.c: proposals written in a line, and the law that they break */
#include "support/proposals.h"

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

void proposal_begin(proposal *p, const char *line)
{
    memset(p, 0, sizeof *p);
    list_make(&p->before, line);
    context_init(&p->after, &allocator_default);
    pairing_init(&p->pairs, &allocator_default);
    assert_int_equal(pairing_make(&p->pairs, &p->before.c), 0);
    p->in.before = &p->before.c;
    p->in.after = &p->after;
    p->in.before_pairs = &p->pairs;
    p->in.inserted = p->inserted;
    p->in.floor = 2;
    p->in.result_limit = 1 << 20;
}

void proposal_end(proposal *p)
{
    size_t i;
    for (i = 0; i < p->in.inserted_count; i++)
        put_free(&p->inserted[i]);
    pairing_deinit(&p->pairs);
    context_deinit(&p->after);
    list_free(&p->before);
}

inserted_message *add_inserted(proposal *p, const char *text, const uint32_t *covers,
                               size_t cover_count, const uint32_t *replaces,
                               size_t replace_count)
{
    inserted_message *w = &p->inserted[p->in.inserted_count];
    assert_in_range(p->in.inserted_count, 0, PROPOSAL_PUTS - 1);
    *w = put_make((uint32_t)++p->in.inserted_count, text, covers, cover_count, replaces,
                  replace_count);
    return w;
}

size_t numbers_of(const char *line, uint32_t *out)
{
    size_t count = 0;
    char *at;
    for (; line && *line; line = *at ? at + 1 : at) {
        out[count++] = (uint32_t)strtoul(line, &at, 10);
        assert_in_range(count, 1, 32);
    }
    return count;
}

inserted_message *add_word(proposal *p, const char *word, const char *covers,
                           const char *replaces)
{
    uint32_t c[32], r[32];
    char *text = word_json(word, 900);
    inserted_message *w =
        add_inserted(p, text, c, numbers_of(covers, c), r, numbers_of(replaces, r));
    free(text);
    return w;
}

void add_kept(proposal *p, const context *from, size_t i)
{
    const item *it = &from->items[i];
    assert_int_equal(context_push(&p->after, it, from->links + it->link), 0);
}

void propose(proposal *p, const char *line)
{
    char *copy = strdup(line), *save = NULL, *word;

    context_clear(&p->after);
    for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        size_t n = strtoul(word + (*word == '+'), NULL, 10);
        if (*word == '+') {
            const inserted_message *w = &p->inserted[n - 1];
            assert_int_equal(context_push(&p->after, &w->columns, w->links), 0);
        } else {
            add_kept(p, &p->before.c, n - 1);
        }
    }
    free(copy);
}

law broken_law(const proposal *p, judgement *j)
{
    sessile_error err;
    assert_int_equal(laws_check(&p->in, j, &allocator_default, &err), SESSILE_OK);
    return j->broken;
}

void expect_law(const proposal *p, law expected, const char *words)
{
    judgement j;
    law l = broken_law(p, &j);
    if (l != expected)
        fail_msg("law %d (%s) instead of %d: %s", l, law_name(l), expected, j.message);
    assert_string_equal(j.message, words);
}

void check_law(const char *before, const char *after, law expected, const char *words)
{
    proposal p;
    proposal_begin(&p, before);
    propose(&p, after);
    expect_law(&p, expected, words);
    proposal_end(&p);
}

void keeps_laws(const char *before, const char *after)
{
    check_law(before, after, LAW_NONE, "");
}
