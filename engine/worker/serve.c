/*
 * serve.c: reads frames, runs hooks, writes frames.
 *
 * Owns the chain, the pipeline and the state of the session that it serves, one of each.
 * It only answers requests, and ends at the first malformed frame; the engine then starts
 * another worker.
 */
#include "worker/serve.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "policy/chain.h"
#include "policy/describe.h"
#include "policy/worker.h"
#include "proposal/journal.h"

typedef struct server {
    int fd;
    const allocator *alloc;
    sessile_policy *policy;
    policy_pipeline *pipeline;
    sessile_state *state;
    buf in, out, journal, spare;
    size_t logged; /* bytes of the pipeline's log that were sent */
    uint64_t us;   /* time spent in Lua that was reported */
    int broken;    /* the socket was closed, or a frame was malformed */
} server;

/* ------------------------------------------------------------------ the socket */

static int receive_all(server *s, char *out, size_t size)
{
    while (size > 0) {
        ssize_t n = read(s->fd, out, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        out += n;
        size -= (size_t)n;
    }
    return 0;
}

static int send_all(server *s)
{
    size_t sent = 0;
    frame_end(&s->out);
    while (!s->out.failed && sent < s->out.size) {
        ssize_t n = write(s->fd, s->out.data + sent, s->out.size - sent);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        sent += (size_t)n;
    }
    if (s->out.failed || sent < s->out.size)
        s->broken = 1;
    return s->broken ? -1 : 0;
}

/* Reads the next frame. Its body is valid until the next call. */
static int next_frame(server *s, frame *kind, wire *body)
{
    char head[5];
    wire w;
    if (receive_all(s, head, sizeof head))
        return -1;
    wire_init(&w, head, sizeof head);
    size_t size = wire_u32(&w);
    *kind = (frame)wire_u8(&w);
    if (size < 1 || size - 1 > FRAME_MOST)
        return -1;
    buf_clear(&s->in);
    if (buf_reserve(&s->in, size) || receive_all(s, s->in.data, size - 1))
        return -1;
    s->in.size = size - 1;
    wire_init(body, s->in.data, s->in.size);
    return 0;
}

/* ------------------------------------------------------------------ the chain */

static void close_pipeline(server *s)
{
    policy_pipeline_free(s->pipeline);
    state_free(s->state);
    s->pipeline = NULL;
    s->state = NULL;
}

static char *dup_slice(const server *s, sessile_slice text)
{
    return mem_dup(s->alloc, text.data, text.size);
}

static int read_step(server *s, wire *w, chain_step *step)
{
    sessile_slice name = wire_text(w), options = wire_text(w), file = wire_text(w);
    sessile_slice hash = wire_text(w), source;
    step->info.version = wire_i64(w);
    step->info.hooks = wire_u32(w);
    step->info.is_host = wire_u8(w);
    source = wire_text(w);
    step->node = wire_u32(w);
    if (w->bad || hash.size >= sizeof step->info.hash)
        return -1;
    memcpy(step->info.hash, hash.data, hash.size);
    step->name = dup_slice(s, name);
    step->options = dup_slice(s, options);
    step->file = dup_slice(s, file);
    step->path = mem_dup(s->alloc, "", 0);
    if (!step->info.is_host) {
        step->source = dup_slice(s, source);
        step->source_size = source.size;
        if (!step->source)
            return -1;
    }
    step->info.name = step->name;
    step->info.options = step->options;
    step->info.path = step->path;
    return step->name && step->options && step->file && step->path ? 0 : -1;
}

/* Reads the files that policies require. Each is counted before it is filled, so that
 * policy_release() frees a partial one. */
static int read_required(server *s, wire *w, sessile_policy *p)
{
    uint32_t count = wire_count(w, 1), i;
    if (w->bad || count > CHAIN_REQUIRED)
        return -1;
    for (i = 0; i < count; i++) {
        chain_required *r = &p->required[p->required_count++];
        sessile_slice file = wire_text(w), source = wire_text(w);
        r->node = wire_u32(w);
        if (w->bad)
            return -1;
        r->file = dup_slice(s, file);
        r->source = dup_slice(s, source);
        if (r->source)
            r->source_size = source.size;
        if (!r->file || !r->source)
            return -1;
    }
    count = wire_count(w, 1);
    if (w->bad || count > CHAIN_REQUIRES)
        return -1;
    for (i = 0; i < count; i++) {
        chain_require *edge = &p->requires[p->require_count++];
        edge->node = wire_u32(w);
        sessile_slice name = wire_text(w);
        edge->to = wire_u32(w);
        if (w->bad || edge->to >= p->required_count)
            return -1;
        edge->name = dup_slice(s, name);
        if (!edge->name)
            return -1;
    }
    return 0;
}

static policy_limits read_limits(wire *w)
{
    policy_limits limits;
    limits.gas = wire_u64(w);
    limits.ms = wire_u32(w);
    limits.memory = wire_u64(w);
    limits.result = wire_u64(w);
    return limits;
}

/* Describes a policy file without running its hooks. */
static int serve_describe(server *s, wire *w)
{
    sessile_error why = {0};
    policy_limits limits = read_limits(w);
    sessile_slice file = wire_text(w), source = wire_text(w);
    char *name = dup_slice(s, file), wanted[CHAIN_NAME] = "";
    sessile_policy *with = NULL;
    sessile_status status = chain_new(&with, &limits, &os_posix, s->alloc, &why);
    uint32_t node = 0;
    int result = -1, whole = with && read_required(s, w, with) == 0;

    node = wire_u32(w);
    whole = whole && !w->bad && w->at == w->end;
    buf_clear(&s->spare);
    if (whole && !name)
        status = SESSILE_NOMEM;
    if (whole && !status)
        status = describe_file(&s->spare, name, source, with, node, wanted, &why);
    if (whole) {
        frame_begin(&s->out, FRAME_FACTS);
        wire_put_u32(&s->out, (uint32_t)status);
        wire_put_text(&s->out, why.message, strlen(why.message));
        wire_put_text(&s->out, s->spare.data, !status ? s->spare.size : 0);
        wire_put_text(&s->out, wanted, strlen(wanted));
        result = send_all(s);
    }
    if (name)
        mem_free(s->alloc, name, file.size + 1);
    policy_release(with);
    return result;
}

static int serve_chain(server *s, wire *w)
{
    policy_limits limits;
    close_pipeline(s);
    policy_release(s->policy);
    s->policy = NULL;
    limits = read_limits(w);
    uint32_t count = wire_count(w, 1);
    if (w->bad || count > CHAIN_STEPS ||
        chain_new(&s->policy, &limits, &os_posix, s->alloc, NULL))
        return -1;
    for (uint32_t i = 0; i < count; i++) {
        s->policy->count++;
        if (read_step(s, w, &s->policy->steps[i]))
            return -1;
    }
    return read_required(s, w, s->policy) == 0 && w->at == w->end ? 0 : -1;
}

/* ------------------------------------------------------------------ the pipeline */

/* Asks the engine for the text of a message. */
static sessile_status read_text(void *arg, sessile_key key, buf *out, sessile_error *err)
{
    server *s = arg;
    frame kind;
    wire body;
    frame_begin(&s->out, FRAME_READ);
    wire_put_u32(&s->out, key.entry);
    wire_put_u32(&s->out, key.n);
    if (send_all(s) || next_frame(s, &kind, &body) || kind != FRAME_TEXT) {
        s->broken = 1;
        return fail(err, SESSILE_IO, "the engine went away");
    }
    sessile_status status = (sessile_status)wire_u32(&body);
    sessile_slice text = wire_text(&body);
    if (body.bad || body.at != body.end) {
        s->broken = 1;
        return fail(err, SESSILE_IO, "the engine sent a malformed text");
    }
    if (status)
        return fail(err, status, "%.*s", (int)(text.size < 500 ? text.size : 500),
                    text.data);
    buf_put(out, text.data, text.size);
    return SESSILE_OK;
}

static int serve_open(server *s, wire *w)
{
    policy_setup about;
    state_setup setup;
    context given;
    facts labels;
    int result = -1;

    close_pipeline(s);
    if (!s->policy)
        return -1;
    memset(&about, 0, sizeof about);
    memset(&setup, 0, sizeof setup);
    about.session_id = wire_text(w);
    about.agent = wire_text(w);
    about.title = wire_text(w);
    about.metadata = wire_text(w);
    about.instructions = wire_text(w);
    about.turn = wire_u32(w);
    about.now_ms = wire_i64(w);
    about.has_memory = wire_u8(w);
    context_init(&given, s->alloc);
    facts_init(&labels, s->alloc);
    if (!state_image_get(w, &setup, &given, &labels, NULL) && w->at == w->end) {
        setup.read = read_text;
        setup.read_arg = s;
        setup.alloc = s->alloc;
        if (!state_new(&s->state, &setup, NULL) &&
            !policy_pipeline_new(&s->pipeline, s->policy, &about, NULL))
            result = 0;
    }
    context_deinit(&given);
    facts_deinit(&labels);
    s->logged = 0;
    s->us = 0;
    return result;
}

/* Sends the result of a hook. */
static int send_result(server *s, sessile_status status, const policy_result *result,
                       const sessile_error *why)
{
    const char *log = policy_pipeline_log(s->pipeline);
    size_t log_size = strlen(log);
    uint64_t us = policy_pipeline_us(s->pipeline);

    if (status == SESSILE_NEEDS) {
        frame_begin(&s->out, FRAME_ASK);
        wire_put_text(&s->out, result->request.data, result->request.size);
        wire_put_u8(&s->out, (uint8_t)(result->asks_memory != 0));
        return send_all(s);
    }
    if (status && status != SESSILE_NOMEM)
        status = SESSILE_POLICY;
    if (s->journal.failed)
        status = SESSILE_NOMEM;
    frame_begin(&s->out, FRAME_END);
    wire_put_u32(&s->out, (uint32_t)status);
    wire_put_text(&s->out, why->message, strlen(why->message));
    wire_put_u8(&s->out, (uint8_t)(result->spent != 0));
    wire_put_u8(&s->out, (uint8_t)(result->verdict != 0));
    wire_put_u64(&s->out, us - s->us);
    wire_put_text(&s->out, result->text.data, result->text.size);
    wire_put_text(&s->out, log + s->logged, log_size - s->logged);
    wire_put_text(&s->out, s->journal.data, s->journal.size);
    s->logged = log_size;
    s->us = us;
    return send_all(s);
}

static int serve_call(server *s, wire *w)
{
    sessile_error why = {0};
    policy_result result;
    sessile_status status;

    if (!s->pipeline)
        return -1;
    sessile_slice journal = wire_text(w);
    uint32_t step = wire_u32(w), hook = wire_u32(w), reason = wire_u32(w);
    sessile_slice arguments = wire_text(w);
    if (w->bad || w->at != w->end)
        return -1;
    /* copied, because reading a text overwrites the frame */
    buf_clear(&s->spare);
    buf_put(&s->spare, journal.data, journal.size);
    state_journal_to(s->state, NULL);
    if (s->spare.failed ||
        state_journal_replay(s->state, s->spare.data, s->spare.size, 0, &why))
        return -1;
    buf_clear(&s->journal);
    state_journal_to(s->state, &s->journal);
    status = policy_pipeline_call_with(s->pipeline, step, (sessile_hook)hook, arguments,
                                       s->state, (sessile_reason)reason, &result, &why);
    return send_result(s, status, &result, &why);
}

static int serve_answer(server *s, wire *w)
{
    sessile_error why = {0};
    sessile_answer answer;
    policy_result result;

    if (!s->pipeline)
        return -1;
    memset(&answer, 0, sizeof answer);
    answer.status = (sessile_status)wire_u32(w);
    sessile_slice text = wire_text(w);
    if (w->bad || w->at != w->end)
        return -1;
    /* copied, because reading a text overwrites the frame */
    buf_clear(&s->spare);
    buf_put(&s->spare, text.data, text.size);
    if (s->spare.failed)
        return -1;
    answer.text.data = text.size ? s->spare.data : "";
    answer.text.size = text.size;
    sessile_status status = policy_pipeline_answer(s->pipeline, &answer, &result, &why);
    return send_result(s, status, &result, &why);
}

int serve(int fd)
{
    server s;
    frame kind;
    wire body;
    int wrong = 0;

    memset(&s, 0, sizeof s);
    s.fd = fd;
    s.alloc = &allocator_default;
    buf_init(&s.in, s.alloc);
    buf_init(&s.out, s.alloc);
    buf_init(&s.journal, s.alloc);
    buf_init(&s.spare, s.alloc);
    while (!wrong && !s.broken && next_frame(&s, &kind, &body) == 0) {
        switch (kind) {
        case FRAME_CHAIN:
            wrong = serve_chain(&s, &body);
            break;
        case FRAME_DESCRIBE:
            wrong = serve_describe(&s, &body);
            break;
        case FRAME_OPEN:
            wrong = serve_open(&s, &body);
            break;
        case FRAME_CALL:
            wrong = serve_call(&s, &body);
            break;
        case FRAME_ANSWER:
            wrong = serve_answer(&s, &body);
            break;
        default:
            wrong = 1;
        }
    }
    close_pipeline(&s);
    policy_release(s.policy);
    buf_deinit(&s.in);
    buf_deinit(&s.out);
    buf_deinit(&s.journal);
    buf_deinit(&s.spare);
    return wrong != 0;
}
