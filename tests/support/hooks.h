/* hooks.h: hooks on a list, their edits, and what came of them */
#ifndef SUPPORT_HOOKS_H
#define SUPPORT_HOOKS_H

#include "support/lists.h"

extern sessile_error hook_err;
typedef struct hook {
    list l;
    sessile_state *s;
} hook;

void hook_begin_with(hook *h, const char *line, uint32_t floor, int64_t window);
void hook_begin(hook *h, const char *line);
void hook_end(hook *h);
int hook_finish(hook *h);
void next_hook(hook *h);
/* Ends the hook: its list must be that, with tokens as they were foretold. */
void expect_list(hook *h, const char *keys);
void expect_put(const hook *h, uint32_t n, const char *text);
/* "1 2/3": keys covered, a slash, keys replaced. */
void expect_stands(const hook *h, uint32_t n, const char *keys);
law hook_judge(const hook *h);
#define OK(call) assert_int_equal(call, SESSILE_OK)

#define INVALID(call) assert_int_equal(call, SESSILE_INVALID)

sessile_status hook_drop(hook *h, size_t first, size_t last);
sessile_status hook_replace(hook *h, size_t i, const char *fields);
sessile_status hook_insert(hook *h, size_t i, const char *text);
sessile_status hook_cover(hook *h, size_t i, const char *text, size_t first, size_t last);
#define SUMMARY "{\"content\":\"in short\"}"

#endif
