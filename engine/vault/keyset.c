/*
 * keyset.c: a JWKS file, read and decoded once.
 *
 * Owns whose file is believed, and which keys of it are taken. Must never fetch one: who
 * can answer a request for keys can sign anything. A sidecar or a timer writes the file,
 * under another name that it then renames.
 */
#include "vault/keyset.h"

#include <errno.h>
#include <string.h>

#include "vault/guarded.h"
#include "vault/jose.h"

typedef struct named_key {
    signature_key key;
    char *kid; /* decoded; NULL: it has none */
    size_t kid_size;
} named_key;

struct keyset {
    named_key *keys;
    size_t count, capacity;
    signature_library *library;
    const allocator *alloc;

    os_stat_info file;
    int is_settled; /* a later change shows in the file's times */
};

void keyset_free(keyset *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < set->count; i++) {
        signature_key_deinit(&set->keys[i].key, set->library);
        mem_free(set->alloc, set->keys[i].kid, set->keys[i].kid_size + 1);
    }
    mem_free(set->alloc, set->keys, set->capacity * sizeof *set->keys);
    mem_free(set->alloc, set, sizeof *set);
}

/* ---------------------------------------------------------------------- the file */

static int same_file(const os_stat_info *a, const os_stat_info *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns && a->uid == b->uid &&
           a->mode == b->mode && a->is_regular == b->is_regular;
}

int keyset_stale(const keyset *set, const char *path, const os_table *os)
{
    os_stat_info now;
    return !set->is_settled || os->stat_at(os->ud, -1, path, &now) != 0 ||
           !same_file(&set->file, &now);
}

static sessile_status check_file(const char *path, const os_stat_info *st,
                                 const os_table *os, sessile_error *err)
{
    if (!st->is_regular)
        return fail(err, SESSILE_DENIED, "the key set %s is not a regular file", path);
    if (st->uid != 0 && st->uid != os->uid(os->ud)) {
        return fail(err, SESSILE_DENIED,
                    "the key set %s belongs to another user: make it yours or root's",
                    path);
    }
    if (st->mode & 022) {
        return fail(err, SESSILE_DENIED, "others may write the key set %s: chmod go-w it",
                    path);
    }
    if (st->size > KEYSET_FILE_MOST) {
        return fail(err, SESSILE_LIMIT, "the key set %s has more than %d bytes", path,
                    KEYSET_FILE_MOST);
    }
    return SESSILE_OK;
}

/* Reads all of an open file; *again: it changed meanwhile. */
static sessile_status read_open(buf *out, os_stat_info *st, int fd, const char *path,
                                int *again, const os_table *os, sessile_error *err)
{
    os_stat_info after;
    sessile_status status;
    int64_t got;
    *again = 0;
    buf_clear(out);
    if (os->stat_fd(os->ud, fd, st) != 0)
        return fail_errno(err, errno, "cannot look at the key set %s", path);
    status = check_file(path, st, os, err);
    if (status)
        return status;
    /* one byte more, to see that it has grown */
    if (buf_reserve(out, (size_t)st->size + 1))
        return fail_nomem(err);
    got = os_read_full(os, fd, out->data, (size_t)st->size + 1, 0);
    if (got < 0 || os->stat_fd(os->ud, fd, &after) != 0)
        return fail_errno(err, errno, "cannot read the key set %s", path);
    *again = (uint64_t)got != st->size || !same_file(st, &after);
    out->size = (size_t)got;
    return SESSILE_OK;
}

static sessile_status read_file(buf *out, os_stat_info *st, const char *path,
                                const os_table *os, sessile_error *err)
{
    enum { TRIES = 3 };
    for (int i = 0; i < TRIES; i++) {
        sessile_status status;
        int again;
        int fd = os->open_at(os->ud, -1, path, OS_READ);
        if (fd < 0 && errno == ELOOP) {
            return fail(err, SESSILE_DENIED,
                        "the key set %s is a link: name the file itself", path);
        }
        if (fd < 0)
            return fail_errno(err, errno, "cannot open the key set %s", path);
        status = read_open(out, st, fd, path, &again, os, err);
        os->close(os->ud, fd);
        if (status || !again)
            return status;
    }
    return fail(
        err, SESSILE_BUSY,
        "the key set %s changes while it is read: write it under another name and "
        "rename that",
        path);
}

/* ---------------------------------------------------------------------- its keys */

/* What is known of each kind of key. */
typedef struct kind {
    const char *type, *curve;
    signature_algorithm algorithm; /* without "alg" */
    signature_algorithm also;
    const char *first, *second; /* members */
} kind;
static const kind kinds[] = {
    {"OKP", "Ed25519", SIGNATURE_EDDSA, SIGNATURE_NONE, "x", NULL},
    {"EC", "P-256", SIGNATURE_ES256, SIGNATURE_NONE, "x", "y"},
    {"RSA", NULL, SIGNATURE_RS256, SIGNATURE_PS256, "n", "e"},
    {"oct", NULL, SIGNATURE_HS256, SIGNATURE_NONE, "k", NULL},
};

/* Whether a key is for verifying signatures, as far as it says so. */
static int is_for_signatures(json key)
{
    json use = json_get(key, "use"), operations = json_get(key, "key_ops");
    if (use.type != JSON_NONE && !json_is(use, "sig"))
        return 0;
    if (operations.type == JSON_NONE)
        return 1;
    for (json_iter it = json_begin(operations); json_next(&it);)
        if (json_is(it.value, "verify"))
            return 1;
    return 0;
}

static int is_ours(json name)
{
    for (signature_algorithm i = SIGNATURE_EDDSA; i <= SIGNATURE_HS256; i++)
        if (json_is(name, signature_name(i)))
            return 1;
    return 0;
}

/* Finds the kind of a key and its algorithm. Sets *out to NULL if the key is to be
 * skipped. */
static sessile_status kind_of(const kind **out, signature_algorithm *algorithm, json key,
                              sessile_error *err)
{
    json type = json_get(key, "kty"), curve = json_get(key, "crv");
    json name = json_get(key, "alg");
    *out = NULL;
    if (type.type != JSON_STRING)
        return fail(err, SESSILE_INVALID, "it has no kty");
    if (!is_for_signatures(key) || (name.type != JSON_NONE && !is_ours(name)))
        return SESSILE_OK;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const kind *k = &kinds[i];
        if (!json_is(type, k->type))
            continue;
        if (k->curve && !json_is(curve, k->curve)) {
            if (name.type == JSON_NONE)
                return SESSILE_OK; /* a curve that is not known here */
            return fail(err, SESSILE_INVALID, "its crv does not go with its alg");
        }
        *algorithm = k->algorithm;
        if (k->also && json_is(name, signature_name(k->also)))
            *algorithm = k->also;
        else if (name.type != JSON_NONE && !json_is(name, signature_name(k->algorithm)))
            return fail(err, SESSILE_INVALID, "its alg does not go with its kty");
        *out = k;
        return SESSILE_OK;
    }
    if (name.type != JSON_NONE)
        return fail(err, SESSILE_INVALID, "its alg does not go with its kty");
    return SESSILE_OK;
}

/* Decodes a member into guarded memory. */
static sessile_status get_part(buf *out, signature_part *part, json key, const char *name,
                               sessile_error *err)
{
    const char *text;
    size_t size, raw;
    json value = json_get(key, name);
    if (!json_plain(value, &text, &size))
        return fail(err, SESSILE_INVALID, "it has no %s", name);
    if (buf_reserve(out, size + 1))
        return fail_nomem(err);
    if (jose_decode(out->data, size, text, size, &raw) != 0)
        return fail(err, SESSILE_INVALID, "its %s is no base64url", name);
    out->size = raw;
    *part = (signature_part){(const unsigned char *)out->data, raw};
    return SESSILE_OK;
}

static sessile_status make_key(keyset *set, named_key *out, const kind *k,
                               signature_algorithm algorithm, json key,
                               sessile_error *err)
{
    signature_part first = {NULL, 0}, second = {NULL, 0};
    sessile_status status;
    buf one, two;
    buf_init(&one, &allocator_guarded);
    buf_init(&two, &allocator_guarded);
    status = get_part(&one, &first, key, k->first, err);
    if (!status && k->second)
        status = get_part(&two, &second, key, k->second, err);
    if (!status)
        status =
            signature_key_init(&out->key, set->library, algorithm, first, second, err);
    buf_deinit(&one); /* guarded memory is wiped */
    buf_deinit(&two);
    return status;
}

static sessile_status take_kid(keyset *set, named_key *out, json kid, sessile_error *err)
{
    buf text;
    if (kid.type == JSON_NONE)
        return SESSILE_OK;
    if (kid.type != JSON_STRING)
        return fail(err, SESSILE_INVALID, "its kid is no string");
    for (size_t i = 0; i < set->count; i++)
        if (&set->keys[i] != out && set->keys[i].kid && json_is(kid, set->keys[i].kid))
            return fail(err, SESSILE_INVALID, "another key has the same kid");
    buf_init(&text, set->alloc);
    if (json_string(&text, kid) || buf_reserve(&text, 1) ||
        !(out->kid = mem_dup(set->alloc, text.data, text.size))) {
        buf_deinit(&text);
        return fail_nomem(err);
    }
    out->kid_size = text.size;
    buf_deinit(&text);
    if (out->kid_size == 0 || strlen(out->kid) != out->kid_size)
        return fail(err, SESSILE_INVALID, "its kid is empty or has a NUL");
    return SESSILE_OK;
}

static sessile_status take_key(keyset *set, json key, const os_stat_info *st,
                               sessile_error *err)
{
    signature_algorithm algorithm = SIGNATURE_NONE;
    sessile_status status;
    named_key *added;
    const kind *k;
    if (key.type != JSON_OBJECT)
        return fail(err, SESSILE_INVALID, "it is no object");
    /* What signs does not belong here, whether it is used or not. */
    if (json_get(key, "d").type != JSON_NONE) {
        return fail(err, SESSILE_INVALID,
                    "it is a private key: write only its public members");
    }
    if (json_is(json_get(key, "kty"), "oct") && (st->mode & 077)) {
        return fail(err, SESSILE_DENIED,
                    "it is a secret that others may read: chmod 600 "
                    "the file");
    }
    status = kind_of(&k, &algorithm, key, err);
    if (status || !k)
        return status;
    if (mem_grow(set->alloc, (void **)&set->keys, &set->capacity, set->count + 1,
                 sizeof *set->keys) != 0)
        return fail_nomem(err);
    added = &set->keys[set->count++];
    memset(added, 0, sizeof *added);
    status = take_kid(set, added, json_get(key, "kid"), err);
    if (!status)
        status = make_key(set, added, k, algorithm, key, err);
    return status;
}

/* With several keys, a key without a kid could never be meant. */
static sessile_status check_kids(const keyset *set, const char *path, sessile_error *err)
{
    if (set->count == 0) {
        return fail(
            err, SESSILE_INVALID,
            "the key set %s has no key that tokens can be verified with: it needs "
            "Ed25519, P-256, RSA or oct",
            path);
    }
    for (size_t i = 0; set->count > 1 && i < set->count; i++)
        if (!set->keys[i].kid) {
            return fail(err, SESSILE_INVALID,
                        "the key set %s has several keys, and one of them has no kid",
                        path);
        }
    return SESSILE_OK;
}

static sessile_status take_keys(keyset *set, const char *path, json object,
                                const os_stat_info *st, sessile_error *err)
{
    json keys = json_get(object, "keys");
    size_t number = 0;
    if (keys.type != JSON_ARRAY)
        return fail(err, SESSILE_INVALID, "the key set %s has no array \"keys\"", path);
    for (json_iter it = json_begin(keys); json_next(&it);) {
        if (++number > KEYSET_KEYS_MOST) {
            return fail(err, SESSILE_LIMIT, "the key set %s has more than %d keys", path,
                        KEYSET_KEYS_MOST);
        }
        sessile_status status = take_key(set, it.value, st, err);
        if (status) {
            fail_prefix(err, "key %zu of the key set %s", number, path);
            return status;
        }
    }
    return check_kids(set, path, err);
}

const signature_key *keyset_find(const keyset *set, json kid)
{
    if (kid.type == JSON_NONE)
        return set->count == 1 ? &set->keys[0].key : NULL;
    for (size_t i = 0; i < set->count; i++)
        if (set->keys[i].kid && json_is(kid, set->keys[i].kid))
            return &set->keys[i].key;
    return NULL;
}

/* The clock of a file system has ticks: a second change within one would not show. */
static int is_settled(const os_stat_info *st, const os_table *os)
{
    enum { TICK_MS = 1000 };
    int64_t age = os->now_ms(os->ud) - st->ctime_ns / 1000000;
    return age > TICK_MS || age < -TICK_MS;
}

sessile_status keyset_read(keyset **out, const char *path, signature_library *library,
                           const os_table *os, const allocator *a, sessile_error *err)
{
    sessile_status status;
    buf text, checked;
    json object;
    keyset *set = mem_zalloc(a, sizeof *set);
    *out = NULL;
    if (!set)
        return fail_nomem(err);
    set->alloc = a;
    set->library = library;
    buf_init(&text, &allocator_guarded);
    buf_init(&checked, &allocator_guarded);
    status = read_file(&text, &set->file, path, os, err);
    if (!status) {
        set->is_settled = is_settled(&set->file, os);
        switch (jose_object(&checked, text.data, text.size, &object)) {
        case JOSE_OK:
            status = take_keys(set, path, object, &set->file, err);
            break;
        case JOSE_NOMEM:
            status = fail_nomem(err);
            break;
        case JOSE_DOUBLED:
            status = fail(err, SESSILE_INVALID,
                          "the key set %s has a member twice in an object, or an object "
                          "with more than %d members",
                          path, JOSE_MEMBERS);
            break;
        default:
            status = fail(err, SESSILE_INVALID, "the key set %s is no JSON object", path);
            break;
        }
    }
    buf_deinit(&text); /* guarded memory is wiped */
    buf_deinit(&checked);
    if (status)
        keyset_free(set);
    else
        *out = set;
    return status;
}
