/*
 * jws.c: a verifier: its key set, the tokens it knows, and the way of a token through it.
 *
 * Owns the order in which a token is judged: its size, its header, its key, its
 * signature, and only then what it says, so that nothing of a payload is parsed that
 * nobody signed. Must never tell a caller why a token was refused, must never keep a
 * token (its hash is enough), and must never use keys that the file does not have any
 * more.
 *
 * A token that was verified is found again by its BLAKE2b, until it expires or the key
 * set changes. Verifying costs 30 to 90 us, finding about one.
 */
#include "vault/jws.h"

#include <pthread.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "vault/claims.h"
#include "vault/jose.h"
#include "vault/keyset.h"

enum { KNOWN = 64, PART_MOST = JWS_MOST / 4 * 3 };

/* A key set and the tokens that were verified with it. */
typedef struct generation {
    keyset *set;
    size_t refs;
    struct known {
        unsigned char hash[32];
        held_claims *claims; /* NULL: the place is free */
    } known[KNOWN]; /* by the first byte of the hash; a newer token takes the place */
} generation;

struct jws_verifier {
    const os_table *os;
    const allocator *alloc;
    signature_library library;
    jws_options options; /* all set, and ours to free */

    pthread_mutex_t mutex; /* over what follows, and over all refs */
    generation *now;       /* NULL: the file cannot be used; `broken` says why */
    sessile_error broken;
    uint64_t looked_us;
};

static const struct {
    const char *name, *sentence;
} reasons[] = {
#define REASON_ROW(value, name, sentence) {name, sentence},
    JWS_REASONS(REASON_ROW)
#undef REASON_ROW
};

const char *jws_reason_name(jws_reason reason)
{
    return reason < JWS_REASON_COUNT ? reasons[reason].name : "";
}

const char *jws_reason_sentence(jws_reason reason)
{
    return reason < JWS_REASON_COUNT ? reasons[reason].sentence : "";
}

/* ---------------------------------------------------------------------- known tokens */

static void held_release(held_claims *c, const allocator *a)
{
    if (c && --c->refs == 0)
        mem_free(a, c, c->size);
}

static struct known *known_place(generation *g, const unsigned char hash[32])
{
    return &g->known[hash[0] % KNOWN];
}

static void known_drop(struct known *place, const allocator *a)
{
    held_release(place->claims, a);
    place->claims = NULL;
}

static void known_put(generation *g, const unsigned char hash[32], held_claims *c,
                      const allocator *a)
{
    struct known *place = known_place(g, hash);
    known_drop(place, a);
    memcpy(place->hash, hash, sizeof place->hash);
    place->claims = c;
    c->refs++;
}

/* ---------------------------------------------------------------------- the key set */

static void generation_release(generation *g, const allocator *a)
{
    if (!g || --g->refs > 0)
        return;
    for (size_t i = 0; i < KNOWN; i++)
        known_drop(&g->known[i], a);
    keyset_free(g->set);
    mem_free(a, g, sizeof *g);
}

/* Reads the key set; v->now is NULL and v->broken set when it cannot be used. NOMEM:
 * nothing is known of it, and v->now is NULL as well. */
static sessile_status read_keys(jws_verifier *v, sessile_error *err)
{
    sessile_status status;
    generation *g = mem_zalloc(v->alloc, sizeof *g);
    generation_release(v->now, v->alloc);
    v->now = NULL;
    if (!g)
        return fail_nomem(err);
    status = keyset_read(&g->set, v->options.keys, &v->library, v->os, v->alloc, err);
    if (status) {
        mem_free(v->alloc, g, sizeof *g);
        return status;
    }
    g->refs = 1;
    v->now = g;
    return SESSILE_OK;
}

/* Looks whether the file is another one, at most once a second. */
static sessile_status look(jws_verifier *v, sessile_error *err)
{
    uint64_t now = v->os->clock_us(v->os->ud);
    if (now - v->looked_us < JWS_LOOK_US)
        return SESSILE_OK;
    if (!v->now || keyset_stale(v->now->set, v->options.keys, v->os)) {
        sessile_error why = {SESSILE_OK, ""};
        sessile_status status = read_keys(v, &why);
        if (status == SESSILE_NOMEM)
            return fail_nomem(err); /* looked at again by the next call */
        v->broken = why;
    }
    v->looked_us = now;
    return SESSILE_OK;
}

/* ---------------------------------------------------------------------- one token */

typedef struct parts {
    sessile_slice header, payload, signature;
    size_t signed_size; /* of what was signed, from the header's first byte on */
} parts;

static int split(parts *out, sessile_slice token)
{
    const char *end = token.data + token.size;
    const char *first = memchr(token.data, '.', token.size), *second;
    if (!first)
        return -1;
    second = memchr(first + 1, '.', (size_t)(end - first - 1));
    if (!second || memchr(second + 1, '.', (size_t)(end - second - 1)))
        return -1;
    out->header = (sessile_slice){token.data, (size_t)(first - token.data)};
    out->payload = (sessile_slice){first + 1, (size_t)(second - first - 1)};
    out->signature = (sessile_slice){second + 1, (size_t)(end - second - 1)};
    out->signed_size = (size_t)(second - token.data);
    return 0;
}

/* A part that is a JSON object. `wrong`: the reason when it is none. */
static jws_reason read_object(buf *checked, char raw[PART_MOST], sessile_slice part,
                              jws_reason wrong, json *out)
{
    size_t size;
    if (jose_decode(raw, PART_MOST, part.data, part.size, &size) != 0)
        return JWS_ENCODING;
    switch (jose_object(checked, raw, size, out)) {
    case JOSE_OK:
        return JWS_ACCEPTED;
    case JOSE_DOUBLED:
        return JWS_DOUBLED;
    case JOSE_NOMEM:
        return JWS_REASON_COUNT;
    default:
        return wrong;
    }
}

/* What would have keys fetched, brings its own, changes what is signed, or is no JWS of
 * claims. Other members that are not known are ignored, as RFC 7515 has it. */
static int is_forbidden(json name)
{
    static const char *const names[] = {"jku", "jwk", "x5u", "x5c", "crit",
                                        "b64", "zip", "enc", "cty", NULL};
    for (size_t i = 0; names[i]; i++)
        if (json_is(name, names[i]))
            return 1;
    return 0;
}

/* JWTs of other uses (logout+jwt, dpop+jwt, secevent+jwt) are signed with the same keys.
 */
static int is_access_type(json type)
{
    static const char prefix[] = "application/";
    const char *text;
    size_t size;
    if (type.type == JSON_NONE)
        return 1;
    if (!json_plain(type, &text, &size))
        return 0;
    if (size >= sizeof prefix - 1 && strncasecmp(text, prefix, sizeof prefix - 1) == 0) {
        text += sizeof prefix - 1;
        size -= sizeof prefix - 1;
    }
    return (size == 3 && strncasecmp(text, "jwt", size) == 0) ||
           (size == 6 && strncasecmp(text, "at+jwt", size) == 0);
}

/* Finds the key that a header names. */
static jws_reason judge_header(const signature_key **key, json header, const keyset *set)
{
    json algorithm = json_get(header, "alg"), kid = json_get(header, "kid");
    for (json_iter it = json_begin(header); json_next(&it);)
        if (is_forbidden(it.key))
            return JWS_FORBIDDEN;
    if (algorithm.type != JSON_STRING ||
        (kid.type != JSON_NONE && kid.type != JSON_STRING))
        return JWS_HEADER;
    if (!is_access_type(json_get(header, "typ")))
        return JWS_TYPE;
    *key = keyset_find(set, kid);
    if (!*key)
        return JWS_KEY;
    return json_is(algorithm, signature_name((*key)->algorithm)) ? JWS_ACCEPTED
                                                                 : JWS_ALGORITHM;
}

static jws_reason judge_signature(const jws_verifier *v, const signature_key *key,
                                  const parts *p, char raw[PART_MOST])
{
    size_t size;
    if (jose_decode(raw, PART_MOST, p->signature.data, p->signature.size, &size) != 0)
        return JWS_ENCODING;
    if (size > SIGNATURE_MOST ||
        signature_verify(key, &v->library, p->header.data, p->signed_size,
                         (const unsigned char *)raw, size) != 0)
        return JWS_SIGNATURE;
    return JWS_ACCEPTED;
}

/* JWS_REASON_COUNT: no memory. */
static jws_reason judge(held_claims **out, const jws_verifier *v, const keyset *set,
                        sessile_slice token, int64_t now)
{
    const signature_key *key = NULL;
    char raw[PART_MOST];
    json header = {NULL, 0, JSON_NONE}, payload = header;
    jws_reason reason;
    buf checked;
    parts p;
    if (split(&p, token))
        return JWS_FORM;
    buf_init(&checked, v->alloc);
    reason = read_object(&checked, raw, p.header, JWS_HEADER, &header);
    if (!reason)
        reason = judge_header(&key, header, set);
    if (!reason)
        reason = judge_signature(v, key, &p, raw);
    buf_clear(&checked);
    if (!reason)
        reason = read_object(&checked, raw, p.payload, JWS_PAYLOAD, &payload);
    if (!reason)
        reason = claims_read(out, payload, &v->options, now, v->alloc);
    wipe(raw, sizeof raw);
    buf_wipe(&checked);
    return reason;
}

/* Finds a token that was verified; 0: it is not known. */
static int recall(held_claims **out, jws_reason *reason, generation *g,
                  const unsigned char hash[32], int64_t now, const allocator *a)
{
    struct known *place = known_place(g, hash);
    if (!place->claims || memcmp(place->hash, hash, sizeof place->hash) != 0)
        return 0;
    *reason = claims_judge_times(place->claims, now);
    if (*reason) {
        known_drop(place, a);
    } else {
        *out = place->claims;
        place->claims->refs++;
    }
    return 1;
}

/* The lock is not held while a signature is verified. */
static sessile_status decide(jws_verifier *v, sessile_slice token, held_claims **out,
                             jws_refusal *refusal, sessile_error *err)
{
    int64_t now = v->os->now_ms(v->os->ud);
    unsigned char hash[32];
    sessile_status status;
    generation *g;
    hash256(hash, token.data, token.size, NULL, 0);
    pthread_mutex_lock(&v->mutex);
    status = look(v, err);
    g = v->now;
    if (status || !g) {
        refusal->reason = JWS_KEYSET;
        refusal->keyset = v->broken;
        pthread_mutex_unlock(&v->mutex);
        return status;
    }
    if (recall(out, &refusal->reason, g, hash, now, v->alloc)) {
        pthread_mutex_unlock(&v->mutex);
        return SESSILE_OK;
    }
    g->refs++;
    pthread_mutex_unlock(&v->mutex);

    refusal->reason = judge(out, v, g->set, token, now);

    pthread_mutex_lock(&v->mutex);
    if (*out)
        known_put(g, hash, *out, v->alloc);
    generation_release(g, v->alloc);
    pthread_mutex_unlock(&v->mutex);
    return refusal->reason == JWS_REASON_COUNT ? fail_nomem(err) : SESSILE_OK;
}

sessile_status jws_verify(jws_verifier *v, sessile_slice token, const jws_claims **out,
                          jws_refusal *refusal, sessile_error *err)
{
    held_claims *claims = NULL;
    sessile_status status = SESSILE_OK;
    *out = NULL;
    memset(refusal, 0, sizeof *refusal);
    if (token.size > JWS_MOST || (!token.data && token.size))
        refusal->reason = JWS_SIZE;
    else if (token.size == 0)
        refusal->reason = JWS_FORM;
    else
        status = decide(v, token, &claims, refusal, err);
    if (status)
        return status;
    if (refusal->reason)
        return fail(err, SESSILE_DENIED, "the credential is not accepted");
    *out = &claims->is;
    return SESSILE_OK;
}

void jws_release(jws_verifier *v, const jws_claims *claims)
{
    if (!claims)
        return;
    pthread_mutex_lock(&v->mutex);
    held_release((held_claims *)claims, v->alloc); /* the first member of it */
    pthread_mutex_unlock(&v->mutex);
}

/* ---------------------------------------------------------------------- life */

enum { OPTIONS = 7 };
_Static_assert(sizeof(jws_options) == OPTIONS * sizeof(char *), "options are strings");

/* Copies the options, with their defaults. 0, or -1: no memory. */
static int copy_options(jws_options *to, const jws_options *from, const allocator *a)
{
    const char *texts[OPTIONS] = {from->keys,
                                  from->issuer,
                                  from->audience,
                                  from->user ? from->user : "sub",
                                  from->roles ? from->roles : "roles",
                                  from->agents ? from->agents : "agents",
                                  from->actor ? from->actor : "/act/sub"};
    const char **fields[OPTIONS] = {&to->keys,  &to->issuer, &to->audience, &to->user,
                                    &to->roles, &to->agents, &to->actor};
    for (size_t i = 0; i < OPTIONS; i++) {
        *fields[i] = mem_dup(a, texts[i], strlen(texts[i]));
        if (!*fields[i])
            return -1;
    }
    return 0;
}

static void free_options(const jws_options *o, const allocator *a)
{
    const char *texts[OPTIONS] = {o->keys,  o->issuer, o->audience, o->user,
                                  o->roles, o->agents, o->actor};
    for (size_t i = 0; i < OPTIONS; i++)
        if (texts[i])
            mem_free(a, (void *)texts[i], strlen(texts[i]) + 1);
}

static sessile_status check_options(const jws_options *o, sessile_error *err)
{
    const struct {
        const char *name, *value;
    } required[] = {{"keys", o->keys}, {"issuer", o->issuer}, {"audience", o->audience}};
    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        if (!required[i].value || !*required[i].value) {
            return fail(err, SESSILE_INVALID,
                        "tokens cannot be verified without `%s`: set it",
                        required[i].name);
        }
    return SESSILE_OK;
}

sessile_status jws_open(jws_verifier **out, const jws_options *options,
                        const os_table *os, const allocator *a, sessile_error *err)
{
    sessile_error why = {SESSILE_OK, ""};
    sessile_status status = check_options(options, err);
    jws_verifier *v;
    *out = NULL;
    if (status)
        return status;
    if (base_init() != 0)
        return fail(err, SESSILE_UNSUPPORTED, "libsodium cannot be initialized");
    v = mem_zalloc(a, sizeof *v);
    if (!v)
        return fail_nomem(err);
    v->os = os;
    v->alloc = v->library.alloc = a;
    if (pthread_mutex_init(&v->mutex, NULL) != 0) {
        mem_free(a, v, sizeof *v);
        return fail_nomem(err);
    }
    status =
        copy_options(&v->options, options, a) ? fail_nomem(&why) : read_keys(v, &why);
    v->looked_us = os->clock_us(os->ud);
    if (status) {
        if (err)
            *err = why;
        jws_close(v);
        return status;
    }
    *out = v;
    return SESSILE_OK;
}

void jws_close(jws_verifier *v)
{
    if (!v)
        return;
    generation_release(v->now, v->alloc);
    signature_library_close(&v->library);
    pthread_mutex_destroy(&v->mutex);
    free_options(&v->options, v->alloc);
    mem_free(v->alloc, v, sizeof *v);
}
