/*
 * fuzz_memory.c: whatever the entries of a memory's log say, the fold of it holds.
 *
 * An input is lines: a letter for the type of an entry, and JSON, its data. Holds: an
 * entry is folded or DAMAGED; the number of live entries is that of the live bits, words
 * and states agree on them; a history ends; a search finds entries, each once, and the
 * states that are told are states.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "memory/fold.h"

static const char *const pieces[] = {
    "\nm{\"value\":\"a\"}",
    "\nm{\"value\":\"a\",\"key\":\"k\"}",
    "\nv{\"of\":[\"00000001\"],\"to\":\"deleted\"}",
    "\nv{\"of\":[\"00000001\",\"00000002\"],\"to\":\"",
    "rejected\"",
    "restored\"",
    "approved\"",
    ",\"replaces\":[\"00000001\"]",
    ",\"pending\":true",
    ",\"ttl_ms\":1",
    ",\"importance\":0.5",
    ",\"also\":\"b c\"",
    ",\"from\":[{\"session\":\"s\",\"agent\":\"a\"}]",
    ",\"holds\":{\"from\":\"2026-01-02T03:04:05.678Z\"}",
    "\ne{\"model\":\"x\",\"dims\":2,\"of\":[\"00000001\"],",
    "\"v\":\"AACAPwEC\"}",
    "\nh{\"session\":\"s\",\"nonce\":\"n\",\"upto\":\"",
    "\nc{\"given\":true}",
    NULL};

const fuzz_about fuzz_this = {"memory", 20000, 1 << 12, pieces};

static entry_type type_of(char letter)
{
    switch (letter) {
    case 'v':
        return ENTRY_VERDICT;
    case 'e':
        return ENTRY_VECTOR;
    case 'h':
        return ENTRY_HEARD;
    case 'c':
        return ENTRY_CONSENT;
    case 'r':
        return ENTRY_REFUSAL;
    case 's':
        return ENTRY_SESSION;
    default:
        return ENTRY_MEMORY;
    }
}

/* Folds an entry of that data: 1 when it became one. */
static int fold_one(memory_fold *f, sessile_id id, char letter, const char *data,
                    size_t size)
{
    entry_fields fields = {.id = id,
                           .parent = 0,
                           .time_ms = 1000 + id,
                           .type = type_of(letter),
                           .source = (entry_source)(id % 7),
                           .tokens = -1};
    sessile_error err = {0};
    sessile_status status;
    buf checked, text;

    buf_init(&checked, &allocator_default);
    buf_init(&text, &allocator_default);
    status = json_check(&checked, data, size, 64, NULL);
    if (!status && json_of(checked.data, checked.size).type == JSON_OBJECT) {
        entry_put_data(&text, &fields, &checked);
        FUZZ_CHECK(!text.failed);
        status = memory_fold_visit(f, id, text.data, text.size, &err);
        FUZZ_CHECK(status == SESSILE_OK || status == SESSILE_DAMAGED);
    } else {
        status = SESSILE_INVALID;
    }
    buf_deinit(&checked);
    buf_deinit(&text);
    return !status;
}

static void begin(memory_fold *f)
{
    static const session_names names = {
        {MEMORY_ID, 6}, {"coder", 5}, {"", 0}, NAMES_MEMORY};
    header_fields fields = {.now_ms = 1};
    buf text;

    memory_fold_init(f, &allocator_default);
    buf_init(&text, &allocator_default);
    header_put(&text, &names, &fields);
    FUZZ_CHECK(memory_fold_visit(f, 0, text.data, text.size, NULL) == SESSILE_OK);
    buf_deinit(&text);
}

static void check_states(const memory_fold *f)
{
    const states *s = &f->states;
    size_t live = 0;

    FUZZ_CHECK(s->count == f->postings.count);
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t *list;
        size_t count;
        sessile_memory_state state = states_of(s, i, 1);
        live += (size_t)states_is_live(s, i);
        FUZZ_CHECK(states_is_live(s, i) == postings_is_live(&f->postings, i));
        FUZZ_CHECK(memory_state_name(state) != NULL);
        FUZZ_CHECK(state != SESSILE_MEMORY_REPLACED ||
                   states_replaced_by(s, i) != STATE_NONE);
        FUZZ_CHECK(states_history(s, i, &list, &count) == 0 && count >= 1 &&
                   list[0] == i);
        mem_free(&allocator_default, list, count * sizeof *list);
    }
    FUZZ_CHECK(live == s->live_count && live == f->postings.live_count);
}

static void check_search(memory_fold *f)
{
    enum { HITS = 8 };
    uint64_t term = hash64_lasting("a", 1);
    int8_t vector[VECTOR_DIMS_MAX] = {1, 2, 3};
    const memory_model *m = memory_fold_model(f);
    rank_question q = {.terms = &term, .term_count = 1, .weight = 0.5, .limit = HITS};
    rank_hit hits[HITS];
    int64_t count;

    q.vector = m ? vector : NULL;
    q.scale = vector_scale(vector, sizeof vector);
    count = rank(&f->postings, m ? &m->vectors : NULL, &q, hits);
    FUZZ_CHECK(count >= 0 && count <= HITS);
    for (int64_t i = 0; i < count; i++) {
        FUZZ_CHECK(states_is_live(&f->states, hits[i].entry) && hits[i].score > 0);
        FUZZ_CHECK(hits[i].cover >= 0 && hits[i].cover <= 1);
        for (int64_t k = 0; k < i; k++)
            FUZZ_CHECK(hits[k].entry != hits[i].entry && hits[k].score >= hits[i].score);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *at = (const char *)data, *end = at + size;
    memory_fold f;
    sessile_id next = 1;

    begin(&f);
    while (at < end) {
        const char *line = at;
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        at = stop < end ? stop + 1 : end;
        if (stop > line)
            next += (sessile_id)fold_one(&f, next, *line, line + 1,
                                         (size_t)(stop - line - 1));
    }
    check_states(&f);
    check_search(&f);
    memory_fold_deinit(&f);
    return 0;
}

void fuzz_seeds(fuzz_take take, void *arg)
{
    static const char *const texts[] = {
        "m{\"value\":\"a b\",\"key\":\"k\"}\nm{\"value\":\"a c\",\"key\":\"k\"}\n"
        "v{\"of\":[\"00000002\"],\"to\":\"rejected\"}\n"
        "v{\"of\":[\"00000002\"],\"to\":\"restored\"}\n"
        "v{\"of\":[\"00000001\",\"00000002\"],\"to\":\"deleted\",\"reason\":\"r\"}",
        "m{\"value\":\"a\",\"pending\":true,\"importance\":1,\"ttl_ms\":5}\n"
        "v{\"of\":[\"00000001\"],\"to\":\"approved\"}\n"
        "m{\"value\":\"merge\",\"replaces\":[\"00000001\"],\"also\":\"a\",\"metadata\":{}"
        "}\n"
        "c{\"given\":true,\"text\":\"yes\"}\nh{\"session\":\"s\",\"nonce\":\"n\","
        "\"upto\":"
        "\"00000007\"}",
        "m{\"value\":\"a\"}\nm{\"value\":\"b\"}\n"
        "e{\"model\":\"x\",\"dims\":2,\"of\":[\"00000001\",\"00000002\"],"
        "\"v\":\"AACAPwECAACAPwMB\"}\ne{\"model\":\"y\",\"dims\":1,\"of\":[\"00000001\"],"
        "\"v\":\"AACAP4A=\"}",
    };
    fuzz_give_all(take, arg, texts, sizeof texts / sizeof *texts);
}
