/*
 * claims.c: the claims of a token whose signature is right.
 *
 * Owns what a payload must say to be accepted. Must never guess: a claim of another form
 * than it should have refuses the token, rather than being as good as missing.
 */
#include "vault/claims.h"

#include <string.h>

/* A block being filled: slices and texts are in the room behind held_claims. */
typedef struct maker {
    sessile_slice *slice;
    char *text;
} maker;

/* ---------------------------------------------------------------------- finding */

/* The member that the next part of a JSON pointer (RFC 6901) names. Moves *at past it. */
static json pointed(json object, const char **at)
{
    char name[128];
    size_t size = 0;
    const char *from = *at + 1;
    json nothing = {NULL, 0, JSON_NONE};
    while (*from && *from != '/') {
        char c = *from++;
        if (c == '~' && (*from == '0' || *from == '1'))
            c = *from++ == '0' ? '~' : '/';
        if (size == sizeof name - 1)
            return nothing;
        name[size++] = c;
    }
    name[size] = '\0';
    *at = from;
    return json_get(object, name);
}

static json claim(json payload, const char *name)
{
    if (*name != '/')
        return json_get(payload, name);
    while (*name && payload.type == JSON_OBJECT)
        payload = pointed(payload, &name);
    /* A parent that is no object is a claim of the wrong form, and none that is missing.
     */
    if (*name && payload.type != JSON_NONE)
        payload = (json){NULL, 0, JSON_NULL};
    return payload;
}

/* ---------------------------------------------------------------------- texts */

/*
 * Decodes a string behind the texts so far: 0, or -1: it is no string, is empty, or has a
 * character that could make two names look or compare alike (control characters, a NUL, a
 * lone surrogate, which would be decoded to U+FFFD).
 */
static int put_text(maker *m, json value, sessile_slice *out)
{
    const char *at, *end;
    char *start = m->text;
    if (value.type != JSON_STRING || value.size < 3)
        return -1;
    end = value.at + value.size - 1;
    for (at = value.at + 1; at < end;) {
        size_t size = 1;
        if (*at == '\\')
            size = json_unescape(&at, end, m->text);
        else
            *m->text = *at++;
        if ((unsigned char)*m->text < 0x20 || *m->text == 0x7f ||
            (size == 3 && memcmp(m->text, "\xef\xbf\xbd", 3) == 0))
            return -1;
        m->text += size;
    }
    *out = (sessile_slice){start, (size_t)(m->text - start)};
    *m->text++ = '\0'; /* in place of a quote */
    return 0;
}

/* The same; a claim that is missing is empty. */
static int put_optional(maker *m, json value, sessile_slice *out)
{
    *out = (sessile_slice){"", 0};
    return value.type == JSON_NONE ? 0 : put_text(m, value, out);
}

/* Cuts a text at its spaces, in place. */
static void put_words(maker *m, sessile_slice all)
{
    char *at = m->text - all.size - 1, *end = m->text - 1;
    while (at < end) {
        char *space = memchr(at, ' ', (size_t)(end - at));
        char *stop = space ? space : end;
        *stop = '\0';
        if (stop > at)
            *m->slice++ = (sessile_slice){at, (size_t)(stop - at)};
        at = stop + 1;
    }
}

/* A list of names: an array of strings, or one string of words, as `scope` is. */
static int put_list(maker *m, json value, const sessile_slice **out, size_t *count)
{
    sessile_slice *first = m->slice;
    if (value.type == JSON_STRING && value.size > 2) {
        sessile_slice all;
        if (put_text(m, value, &all))
            return -1;
        put_words(m, all);
    } else if (value.type == JSON_ARRAY) {
        for (json_iter it = json_begin(value); json_next(&it);)
            if (put_text(m, it.value, m->slice++))
                return -1;
    } else if (value.type != JSON_NONE && value.type != JSON_STRING) {
        return -1;
    }
    *out = first;
    *count = (size_t)(m->slice - first);
    return 0;
}

/* How many names put_list() finds at most: each takes two bytes, with what follows it. */
static size_t list_most(json value)
{
    return value.size / 2 + 1;
}

/* ---------------------------------------------------------------------- times */

/* A NumericDate, whose seconds may have a fraction, up to the year 9999: 0 or -1. */
static int get_time(json value, int64_t *ms)
{
    const double last = 253402300799.0;
    double seconds;
    if (json_double(value, &seconds) || !(seconds >= 0 && seconds <= last))
        return -1;
    *ms = (int64_t)(seconds * 1000);
    return 0;
}

/* 1: it is there; 0: it is missing; -1: it is no time. */
static int get_optional_time(json value, int64_t *ms)
{
    *ms = 0;
    if (value.type == JSON_NONE)
        return 0;
    return get_time(value, ms) ? -1 : 1;
}

jws_reason claims_judge_times(const held_claims *c, int64_t now)
{
    /* Where it is not said when the life began, it is not longer than it is from now on.
     */
    int64_t from = c->has_issued ? c->issued_ms : now + JWS_SKEW_MS;
    if (now >= c->expires_ms + JWS_SKEW_MS)
        return JWS_EXPIRED;
    if ((c->has_not_before && c->not_before_ms > now + JWS_SKEW_MS) ||
        (c->has_issued && c->issued_ms > now + JWS_SKEW_MS))
        return JWS_EARLY;
    if (c->expires_ms - from > JWS_LIFE_MS ||
        (c->has_issued && c->expires_ms <= c->issued_ms) ||
        (c->has_not_before && c->expires_ms <= c->not_before_ms))
        return JWS_LIFE;
    return JWS_ACCEPTED;
}

static jws_reason read_times(held_claims *c, json payload, int64_t now)
{
    json expires = json_get(payload, "exp");
    if (expires.type == JSON_NONE)
        return JWS_MISSING;
    if (get_time(expires, &c->expires_ms))
        return JWS_CLAIM;
    c->has_not_before = get_optional_time(json_get(payload, "nbf"), &c->not_before_ms);
    c->has_issued = get_optional_time(json_get(payload, "iat"), &c->issued_ms);
    if (c->has_not_before < 0 || c->has_issued < 0)
        return JWS_CLAIM;
    c->is.expires_ms = c->expires_ms + JWS_SKEW_MS;
    return claims_judge_times(c, now);
}

/* ---------------------------------------------------------------------- the rest */

static jws_reason judge_issuer(json issuer, const char *wanted)
{
    if (issuer.type == JSON_NONE)
        return JWS_MISSING;
    if (issuer.type != JSON_STRING)
        return JWS_CLAIM;
    return json_is(issuer, wanted) ? JWS_ACCEPTED : JWS_ISSUER;
}

static jws_reason judge_audience(json audience, const char *wanted)
{
    int found = 0;
    if (audience.type == JSON_NONE)
        return JWS_MISSING;
    if (audience.type == JSON_STRING)
        return json_is(audience, wanted) ? JWS_ACCEPTED : JWS_AUDIENCE;
    if (audience.type != JSON_ARRAY)
        return JWS_CLAIM;
    for (json_iter it = json_begin(audience); json_next(&it);) {
        if (it.value.type != JSON_STRING)
            return JWS_CLAIM;
        found = found || json_is(it.value, wanted);
    }
    return found ? JWS_ACCEPTED : JWS_AUDIENCE;
}

jws_reason claims_read(held_claims **out, json payload, const jws_options *options,
                       int64_t now, const allocator *a)
{
    json user = claim(payload, options->user), actor = claim(payload, options->actor);
    json roles = claim(payload, options->roles), agents = claim(payload, options->agents);
    json issuer = json_get(payload, "iss");
    size_t size =
        sizeof **out + (list_most(roles) + list_most(agents)) * sizeof(sessile_slice);
    jws_reason reason;
    held_claims *c;
    maker m;
    *out = NULL;
    reason = judge_issuer(issuer, options->issuer);
    if (!reason)
        reason = judge_audience(json_get(payload, "aud"), options->audience);
    if (!reason && user.type == JSON_NONE)
        reason = JWS_MISSING;
    if (reason)
        return reason;

    /* Two claims may be one member: each of the six texts has room for all of it. */
    size_t text = user.size + actor.size + roles.size + agents.size + issuer.size +
                  json_get(payload, "jti").size;
    c = mem_zalloc(a, size + text);
    if (!c)
        return JWS_REASON_COUNT;
    c->size = size + text;
    c->refs = 1;
    m.slice = (sessile_slice *)(void *)(c + 1);
    m.text = (char *)c + size;
    reason = read_times(c, payload, now);
    if (!reason &&
        (put_text(&m, user, &c->is.user) || put_text(&m, issuer, &c->is.issuer) ||
         put_optional(&m, actor, &c->is.actor) ||
         put_optional(&m, json_get(payload, "jti"), &c->is.token_id) ||
         put_list(&m, roles, &c->is.roles, &c->is.role_count) ||
         put_list(&m, agents, &c->is.agents, &c->is.agent_count) ||
         /* an empty list is of no agent, not of every one */
         (agents.type != JSON_NONE && !c->is.agent_count)))
        reason = JWS_CLAIM;
    if (reason)
        mem_free(a, c, c->size);
    else
        *out = c;
    return reason;
}
