/*
 * fuzz_memory_index.c: whatever a block of a memory's index says, the fold of it holds.
 *
 * An input is a list of edits (four bytes each: where, two bytes; how; with what) of a
 * block as it was written, from its records on: as somebody could who has the key, or of
 * a plain log anybody. What begins with a zero byte replaces the extra data instead.
 *
 * Holds: the block is taken or INVALID. If it is taken, the number of live entries is
 * that of the live bits, words and states agree on them, and a search finds live entries.
 * The block as it was written gives the fold that its entries gave.
 */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/fold.h"
#include "session/fold.h"

#define RECORDS ((size_t)LOG_BLOCK * SESSION_RECORD)

static const char *const words_of_blocks[] = {"\1", "\xff\xff\xff\xff", "\x80\x80\x80",
                                              NULL};
const fuzz_about fuzz_this = {"memory_index", 2000, 1 << 12, words_of_blocks};

static void visit(memory_fold *f, sessile_id id, entry_type type, const char *json_text)
{
    entry_fields fields = {.id = id,
                           .parent = 0,
                           .time_ms = 1000 + id,
                           .type = type,
                           .source = SOURCE_USER,
                           .tokens = -1};
    buf checked, text;

    buf_init(&checked, &allocator_default);
    buf_init(&text, &allocator_default);
    FUZZ_CHECK(!json_check(&checked, json_text, strlen(json_text), 64, NULL));
    entry_put_data(&text, &fields, &checked);
    FUZZ_CHECK(!text.failed &&
               memory_fold_visit(f, id, text.data, text.size, NULL) == SESSILE_OK);
    buf_deinit(&checked);
    buf_deinit(&text);
}

static void begin(memory_fold *f)
{
    static const session_names names = {{MEMORY_ID, 6}, {"coder", 5}, {"", 0}, 1};
    header_fields fields = {.now_ms = 1};
    static buf text; /* one header: its nonce is in the key of the chain */

    memory_fold_init(f, &allocator_default);
    memory_fold_index(f, NULL);
    if (!text.size) {
        buf_init(&text, &allocator_default);
        header_put(&text, &names, &fields);
    }
    FUZZ_CHECK(memory_fold_visit(f, 0, text.data, text.size, NULL) == SESSILE_OK);
}

/* Entries of every kind. */
static void tell(memory_fold *f)
{
    char text[200];
    for (sessile_id id = 1; id < LOG_BLOCK; id++)
        if (id % 16 == 3) {
            snprintf(text, sizeof text, "{\"of\":[\"%08x\",\"%08x\"],\"to\":\"%s\"}",
                     id - 1, id / 2, id % 3 ? "deleted" : "restored");
            visit(f, id, ENTRY_VERDICT, text);
        } else if (id % 16 == 5) {
            snprintf(text, sizeof text,
                     "{\"model\":\"x\",\"dims\":2,\"of\":[\"%08x\",\"%08x\"],"
                     "\"v\":\"AACAPwECAACAPwMB\"}",
                     id - 1, id - 3);
            visit(f, id, ENTRY_VECTOR, text);
        } else if (id % 32 == 7) {
            visit(f, id, ENTRY_HEARD,
                  "{\"session\":\"s\",\"nonce\":\"n\",\"upto\":\"00000007\"}");
        } else if (id % 32 == 9) {
            visit(f, id, ENTRY_CONSENT, "{\"given\":true}");
        } else {
            snprintf(text, sizeof text,
                     "{\"value\":\"a %c %c\",\"key\":\"k%u\",\"also\":\"b\","
                     "\"replaces\":[\"%08x\"],\"pending\":%s}",
                     'a' + (char)(id % 7), 'a' + (char)(id % 5), id % 20, id / 3,
                     id % 11 ? "false" : "true");
            visit(f, id, ENTRY_MEMORY, text);
        }
}

static void check_fold(memory_fold *f)
{
    enum { HITS = 8 };
    uint64_t term = hash64_lasting("a", 1);
    int8_t vector[VECTOR_DIMS_MAX] = {1, 2, 3};
    const memory_model *m = memory_fold_model(f);
    rank_question q = {.terms = &term, .term_count = 1, .weight = 0.5, .limit = HITS};
    rank_hit hits[HITS];
    const states *s = &f->states;
    size_t live = 0;
    int64_t count;

    FUZZ_CHECK(s->count == f->postings.count);
    for (uint32_t i = 0; i < s->count; i++) {
        live += (size_t)states_is_live(s, i);
        FUZZ_CHECK(states_is_live(s, i) == postings_is_live(&f->postings, i));
        FUZZ_CHECK(memory_state_name(states_of(s, i, 1)) != NULL);
    }
    FUZZ_CHECK(live == s->live_count && live == f->postings.live_count);
    q.vector = m ? vector : NULL;
    q.scale = vector_scale(vector, sizeof vector);
    count = rank(&f->postings, m ? &m->vectors : NULL, &q, hits);
    FUZZ_CHECK(count >= 0 && count <= HITS);
    for (int64_t i = 0; i < count; i++)
        FUZZ_CHECK(states_is_live(s, hits[i].entry) && hits[i].score > 0);
}

static sessile_status take_block(memory_fold *f, const buf *block)
{
    log_index_callbacks callbacks = memory_index_callbacks(f, 0);
    sessile_error err;

    begin(f);
    f->blocks.chain = 0; /* as when it is restored */
    return callbacks.take(f, 0, block->data, block->data + RECORDS, block->size - RECORDS,
                          &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static buf good;
    memory_fold f;
    sessile_status status;
    buf block;

    if (!good.size) {
        buf_init(&good, &allocator_default);
        begin(&f);
        tell(&f);
        FUZZ_CHECK(f.blocks.built_count == 1);
        buf_put(&good, f.blocks.built[0].data, f.blocks.built[0].size);
        memory_fold_deinit(&f);
        FUZZ_CHECK(take_block(&f, &good) == SESSILE_OK && f.restoring.blocks == 1);
        check_fold(&f);
        memory_fold_deinit(&f);
    }
    buf_init(&block, &allocator_default);
    if (size && !data[0]) {
        buf_put(&block, good.data, RECORDS);
        buf_put(&block, data + 1, size - 1);
    } else {
        buf_put(&block, good.data, good.size);
        for (; size >= 4; size -= 4, data += 4) {
            char *at = block.data + (data[0] | (size_t)data[1] << 8) % block.size;
            *at = (char)(data[2] & 1 ? *at ^ data[3] : data[3]);
        }
    }
    status = take_block(&f, &block);
    FUZZ_CHECK(status == SESSILE_OK || status == SESSILE_INVALID);
    if (!status)
        check_fold(&f);
    memory_fold_deinit(&f);
    buf_deinit(&block);
    return 0;
}

void fuzz_seeds(fuzz_take take, void *arg)
{
    static const char *const texts[] = {"", "\1\1\1\1", "\x80\x10\1\1\x90\x2c\1\1",
                                        "\x30\x2c\1\x7f\x40\x2d\1\x80"};
    fuzz_give_all(take, arg, texts, sizeof texts / sizeof *texts);
}
