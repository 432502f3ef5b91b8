/*
 * laws.c: the laws of context, judged on what a proposal does.
 *
 * Owns the exact meaning of each law. Must never change a list, and must never refuse a
 * proposal for something that was there before it: a broken pair may stay broken.
 *
 * First every message of `before` gets its place in `after`: its own, or that of the
 * message that covers it (disposition.c). Each law is then one loop over columns.
 *
 * Law 1 is judged by its effect. The list after the proposal is paired like any other
 * list. A result that had a call must still have that call, and must still be in time if
 * it was. So a replaced message is judged by the calls and results in its own text.
 * Rejected: "members of a group are all kept or all gone". It needs exceptions for
 * replaced and covered messages, and each exception let a broken pair through. If the
 * list has no new messages and the old order, both rules are equivalent: when a whole
 * group leaves, every other result still finds its call, no later than before. Most
 * proposals only remove messages, and are judged without pairing.
 */
#include "context/laws.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/names.h"
#include "codec/message.h"
#include "context/disposition.h"

const char *law_name(law l)
{
    static const char *const names[] = {
        [LAW_NONE] = "none",           [LAW_PAIRS] = "pairs",
        [LAW_OPEN_WORK] = "open work", [LAW_TRUTH] = "truth",
        [LAW_ORDER] = "order",         [LAW_PINNED] = "pinned",
        [LAW_PROGRESS] = "progress",   [LAW_FLOOR] = "floor",
        [LAW_ACCOUNT] = "account",     [LAW_BUDGET] = "budget",
        [LAW_BOUNDS] = "bounds",
    };
    size_t at = (size_t)l;
    return at < sizeof names / sizeof *names ? names[at] : names[LAW_NONE];
}

/* ------------------------------------------------------------------ sentences */

static void clear(judgement *out)
{
    memset(out, 0, sizeof *out);
    out->key.entry = SESSILE_NO_ID;
}

static int broken(judgement *out, law l, sessile_key key, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static int broken(judgement *out, law l, sessile_key key, const char *format, ...)
{
    va_list args;
    out->broken = l;
    out->key = key;
    va_start(args, format);
    (void)vsnprintf(out->message, sizeof out->message, format, args);
    va_end(args);
    return 1;
}

/* A message's name in a sentence: its key, or "new message 2". */
typedef struct name {
    char text[SESSILE_KEY_SIZE + 16];
} name;

static name name_of(sessile_key key)
{
    name out = {""};
    if (key_is_own(key))
        (void)snprintf(out.text, sizeof out.text, "new message %u", (unsigned)key.n);
    else
        key_print(key, out.text);
    return out;
}

/* ------------------------------------------------------------------ 1: pairs */

/* The data for judging pairs. */
typedef struct pairs_case {
    const laws_input *in;
    const dispositions *places;
    const pairing *was;
    const pairing *is; /* NULL: messages were only removed */
    judgement *out;
} pairs_case;

/* The link of `it` (in c) of that id and kind, tried at `offset` first; PAIR_NONE. */
static uint32_t link_like(const context *c, const item *it, const message_link *like,
                          uint32_t offset)
{
    const message_link *links = c->links + it->link;
    uint32_t k;

    if (offset < it->link_count && links[offset].id == like->id &&
        links[offset].is_result == like->is_result)
        return it->link + offset;
    for (k = 0; k < it->link_count; k++)
        if (links[k].id == like->id && links[k].is_result == like->is_result)
            return it->link + k;
    return PAIR_NONE;
}

/* The place in after of a link of before: in its item, or in the message that replaces
 * it. */
static uint32_t link_after(const pairs_case *j, uint32_t link)
{
    const context *before = j->in->before, *after = j->in->after;
    uint32_t from = j->was->links[link].item, at = j->places->place[from];
    uint32_t offset = link - before->items[from].link;

    if (at == PLACE_NONE)
        return PAIR_NONE;
    if (j->places->disposition[from] == DISPOSITION_KEPT)
        return after->items[at].link + offset;
    return link_like(after, &after->items[at], &before->links[link], offset);
}

/* One pair of before. */
static int pair_broken(const pairs_case *j, uint32_t result)
{
    const pairing *was = j->was;
    uint32_t call = was->links[result].mate;
    sessile_key call_key = j->in->before->items[was->links[call].item].key;
    sessile_key key = j->in->before->items[was->links[result].item].key;
    uint32_t result_now = link_after(j, result), call_now = link_after(j, call);

    if ((result_now == PAIR_NONE) == (call_now == PAIR_NONE) &&
        (result_now == PAIR_NONE || !j->is))
        return 0;
    if (result_now == PAIR_NONE)
        return broken(j->out, LAW_PAIRS, call_key, "the call in %s lost its result %s",
                      name_of(call_key).text, name_of(key).text);
    if (call_now == PAIR_NONE)
        return broken(j->out, LAW_PAIRS, key, "the result %s lost its call in %s",
                      name_of(key).text, name_of(call_key).text);
    if (j->is->links[result_now].mate != call_now)
        return broken(j->out, LAW_PAIRS, key,
                      "the result %s no longer answers its call in %s", name_of(key).text,
                      name_of(call_key).text);
    if (j->is->links[result_now].late && !was->links[result].late)
        return broken(j->out, LAW_PAIRS, key,
                      "something else stands between the call in "
                      "%s and its result %s",
                      name_of(call_key).text, name_of(key).text);
    return 0;
}

/* A new message that replaces a single message may keep its faults. Returns the same link
 * of the replaced message, or PAIR_NONE. */
static uint32_t link_before(const pairs_case *j, uint32_t number, uint32_t offset,
                            const message_link *link)
{
    uint32_t from = j->places->inserted_from[number - 1];
    if (from == PLACE_NONE)
        return PAIR_NONE;
    return link_like(j->in->before, &j->in->before->items[from], link, offset);
}

/* New messages must have no call without a result and no result without a call. */
static int new_links_broken(const pairs_case *j, const item *it)
{
    uint32_t k;
    for (k = 0; k < it->link_count; k++) {
        const message_link *link = &j->in->after->links[it->link + k];
        const struct pair_link *now = &j->is->links[it->link + k];
        uint32_t was;

        if (now->mate != PAIR_NONE && !now->late)
            continue;
        was = link_before(j, it->key.n, k, link);
        if (was != PAIR_NONE && (j->was->links[was].mate == PAIR_NONE ||
                                 (now->late && j->was->links[was].late)))
            continue;
        if (!link->is_result)
            return broken(j->out, LAW_PAIRS, it->key, "%s has a call without a result",
                          name_of(it->key).text);
        return broken(j->out, LAW_PAIRS, it->key,
                      now->late ? "%s has a result that does not follow its call"
                                : "%s has a result without a call",
                      name_of(it->key).text);
    }
    return 0;
}

static int law_pairs(const pairs_case *j)
{
    const context *before = j->in->before, *after = j->in->after;
    uint32_t k, i;

    for (k = 0; k < j->was->link_count; k++) {
        uint32_t mate = j->was->links[k].mate;
        if (before->links[k].is_result && mate != PAIR_NONE &&
            j->was->links[mate].item != j->was->links[k].item && pair_broken(j, k))
            return 1;
    }
    for (i = 0; j->places->inserted_places && i < after->count; i++) {
        const item *it = &after->items[i];
        if (it->link_count && key_is_own(it->key) &&
            it->key.n - 1 < j->in->inserted_count && new_links_broken(j, it))
            return 1;
    }
    return 0;
}

/* ------------------------------------------------------------------ 2 to 5 */

static int law_open_work(const laws_input *in, judgement *out)
{
    const context *before = in->before, *after = in->after;
    size_t first = in->before_pairs->first_open, i, tail = before->count - first;
    sessile_key open;

    if (tail == 0)
        return 0;
    open = before->items[first].key;
    for (i = 0; i < tail; i++) {
        sessile_key key = before->items[first + i].key;
        if (after->count < tail ||
            !key_same(after->items[after->count - tail + i].key, key))
            return broken(out, LAW_OPEN_WORK, key,
                          "a call in %s still waits for its "
                          "result: it and what follows must stay last and as they are, "
                          "and %s did not",
                          name_of(open).text, name_of(key).text);
    }
    return 0;
}

static int law_truth(const laws_input *in, const dispositions *places, judgement *out)
{
    size_t i;

    switch (places->untruth) {
    case UNTRUE_NONE:
        break;
    case UNTRUE_UNKNOWN:
        return broken(out, LAW_TRUTH, places->untruth_key,
                      "%s is no message of this context",
                      name_of(places->untruth_key).text);
    case UNTRUE_FOREIGN:
        return broken(out, LAW_TRUTH, places->untruth_key,
                      "a new message stands for %s, "
                      "which is no message of this context",
                      name_of(places->untruth_key).text);
    case UNTRUE_STAYS:
        return broken(out, LAW_TRUTH, places->untruth_key,
                      "a new message stands for %s, which stays",
                      name_of(places->untruth_key).text);
    case UNTRUE_TWICE:
        return broken(out, LAW_TRUTH, places->untruth_key,
                      "two new messages stand for %s", name_of(places->untruth_key).text);
    }
    for (i = 0; i < in->inserted_count; i++) {
        sessile_key key = in->inserted[i].columns.key;
        if (places->inserted_at[i] != PLACE_NONE && in->inserted[i].invalid_role)
            return broken(out, LAW_TRUTH, key,
                          "%s has the role %s, but does not replace one message of "
                          "that role: write it as user",
                          name_of(key).text,
                          role_name((sessile_role)in->inserted[i].columns.role));
        if (places->inserted_at[i] != PLACE_NONE && in->inserted[i].new_call)
            return broken(out, LAW_TRUTH, key,
                          "%s calls a tool, which only the model does: keep the message "
                          "that has the call, or leave the call out",
                          name_of(key).text);
        if (places->inserted_at[i] != PLACE_NONE && in->inserted[i].of_model)
            return broken(out, LAW_TRUTH, key,
                          "%s has \"%s\", which only the model writes: leave it out, or "
                          "write it as text",
                          name_of(key).text, in->inserted[i].of_model);
    }
    return 0;
}

/* A message that claims to be an entry and is not. This is judged first: the policy meant
 * to keep the message, so an error about its absence would mislead. */
static int law_names(const laws_input *in, const dispositions *places, judgement *out)
{
    size_t i;

    for (i = 0; i < in->inserted_count; i++) {
        const inserted_message *w = &in->inserted[i];
        int is_key = w->name.entry != SESSILE_NO_ID;
        if (places->inserted_at[i] == PLACE_NONE || !w->has_name)
            continue;
        return broken(out, LAW_TRUTH, w->name,
                      "%s claims %s%s: a message that a policy writes has none, it names "
                      "what it stands for in covers or replaces",
                      name_of(w->columns.key).text, is_key ? "the id " : "an id",
                      is_key ? name_of(w->name).text : "");
    }
    return 0;
}

static int law_order(const dispositions *places, judgement *out)
{
    if (!places->disorder)
        return 0;
    if (key_same(places->disorder_key, places->disorder_after))
        return broken(out, LAW_ORDER, places->disorder_key, "%s stands there twice",
                      name_of(places->disorder_key).text);
    return broken(
        out, LAW_ORDER, places->disorder_key, "%s stands behind %s, which it came before",
        name_of(places->disorder_key).text, name_of(places->disorder_after).text);
}

static int law_pinned(const laws_input *in, const dispositions *places, judgement *out)
{
    const context *before = in->before;
    size_t i, last_user = context_last_user(before);

    for (i = 0; i < before->count; i++) {
        const item *it = &before->items[i];
        if (places->disposition[i] == DISPOSITION_KEPT)
            continue;
        if (it->flags & ITEM_PINNED)
            return broken(out, LAW_PINNED, it->key, "%s is pinned and must stay unedited",
                          name_of(it->key).text);
        if (i == last_user)
            return broken(out, LAW_PINNED, it->key,
                          "%s is the last message of the user "
                          "and must stay unedited",
                          name_of(it->key).text);
    }
    return 0;
}

/* ------------------------------------------------------------------ 7 and 10 */

int64_t laws_room(int64_t window, int64_t reserve)
{
    if (reserve <= 0)
        return window;
    return window > reserve ? window - reserve : 0;
}

size_t laws_floor(const context *before, uint32_t floor, int64_t window, int64_t reserve)
{
    int64_t room = laws_room(window, reserve), tokens = 0;
    size_t count = 0;

    while (count < floor && count < before->count) {
        tokens += before->items[before->count - count - 1].tokens;
        if (window > 0 && tokens > room)
            break;
        count++;
    }
    return count;
}

static int law_floor(const laws_input *in, const dispositions *places, judgement *out)
{
    const context *before = in->before;
    size_t count = laws_floor(before, in->floor, in->window, in->reserve), i;

    for (i = before->count - count; i < before->count; i++) {
        const item *it = &before->items[i];
        if (places->disposition[i] == DISPOSITION_KEPT)
            continue;
        if (places->place[i] != PLACE_NONE &&
            places->inserted_from[in->after->items[places->place[i]].key.n - 1] == i)
            continue;
        return broken(out, LAW_FLOOR, it->key,
                      "%s is one of the newest %zu messages, which "
                      "stay or are replaced one for one",
                      name_of(it->key).text, count);
    }
    return 0;
}

static int law_bounds(const laws_input *in, const dispositions *places, judgement *out)
{
    sessile_key none = {SESSILE_NO_ID, 0};
    uint64_t bytes = 0;
    size_t i;

    for (i = 0; i < in->inserted_count; i++)
        if (places->inserted_at[i] != PLACE_NONE)
            bytes += in->inserted[i].size;
    if (bytes <= in->result_limit)
        return 0;
    return broken(out, LAW_BOUNDS, none,
                  "the new messages have %llu bytes of [policy_result] "
                  "%llu",
                  (unsigned long long)bytes, (unsigned long long)in->result_limit);
}

/* ------------------------------------------------------------------ all of them */

static int unchanged(const context *before, const context *after)
{
    size_t i;
    if (before->count != after->count)
        return 0;
    for (i = 0; i < before->count; i++)
        if (!key_same(before->items[i].key, after->items[i].key))
            return 0;
    return 1;
}

sessile_status laws_check(const laws_input *in, judgement *out, const allocator *a,
                          sessile_error *err)
{
    dispositions places;
    pairing after;
    pairs_case pairs = {in, &places, in->before_pairs, NULL, out};
    sessile_status status = SESSILE_OK;

    clear(out);
    if (unchanged(in->before, in->after))
        return SESSILE_OK;
    dispositions_init(&places, a);
    pairing_init(&after, a);
    if (dispositions_find(&places, in)) {
        status = fail_nomem(err);
        goto out;
    }
    if (places.inserted_places || places.disorder || places.untruth != UNTRUE_NONE) {
        if (pairing_make(&after, in->after)) {
            status = fail_nomem(err);
            goto out;
        }
        pairs.is = &after;
    }
    /* Law 1 looks at every message with a place; one that law 3 refuses has none. */
    (void)(law_names(in, &places, out) || law_pairs(&pairs) || law_open_work(in, out) ||
           law_truth(in, &places, out) || law_order(&places, out) ||
           law_pinned(in, &places, out) || law_floor(in, &places, out) ||
           law_bounds(in, &places, out));

out:
    pairing_deinit(&after);
    dispositions_deinit(&places);
    return status;
}

void laws_progress(const laws_input *in, judgement *out)
{
    sessile_key none = {SESSILE_NO_ID, 0};
    int64_t tokens_before, tokens_after;
    size_t i, kept = 0;

    clear(out);
    for (i = 0; i < in->after->count; i++)
        kept += !key_is_own(in->after->items[i].key);
    if (kept >= in->before->count)
        return;
    tokens_before = context_tokens(in->before);
    tokens_after = context_tokens(in->after);
    if (tokens_after >= tokens_before)
        (void)broken(out, LAW_PROGRESS, none,
                     "%zu messages left the context, and of %lld "
                     "tokens %lld remain: what takes something out must leave fewer",
                     in->before->count - kept, (long long)tokens_before,
                     (long long)tokens_after);
}

int64_t laws_cannot_fit(const context *after, int64_t window, int64_t reserve)
{
    int64_t room = laws_room(window, reserve), tokens;
    if (window <= 0)
        return 0;
    tokens = context_tokens(after);
    return tokens > room ? tokens - room : 0;
}
