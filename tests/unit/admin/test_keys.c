/*
 * test_keys.c: keyrings that change, secrets of users, logs resealed, users forgotten.
 *
 * Owns the promises of the section "keys" of sessile.h, as far as nobody is killed and no
 * call fails (test_keys_killed.c does that).
 */
#include "support/check.h"
#include "support/keyed.h"
#include "support/sessions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *folder, root[600], copy[600];

static int set_up(void **state)
{
    (void)state;
    folder = folder_make();
    snprintf(root, sizeof root, "%s/store", folder);
    snprintf(copy, sizeof copy, "%s/copy", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    folder_remove(folder);
    return 0;
}

static sessile_store *filled(void)
{
    sessile_store *st = keyed_open(root, KEYED_OLD);
    keyed_fill(st);
    return st;
}

static sessile_status change_secret(sessile_store *st, const char *key,
                                    sessile_error *err)
{
    sessile_rotate_options options = {1, SESSILE_KEY_SECRET, key, 0};
    return sessile_keys_rotate(st, &options, NULL, err);
}

/* Of the first lines of logs: free(). */
static char *header_of(const char *file)
{
    char *line = NULL;
    size_t room = 0;
    FILE *f = fopen(file, "r");
    assert_non_null(f);
    assert_true(getline(&line, &room, f) > 0);
    fclose(f);
    return line;
}

static char *log_file(const char *in, const char *name)
{
    char *path = malloc(800);
    assert_non_null(path);
    snprintf(path, 800, "%s/agents/main/%s.jsonl", in, name);
    return path;
}

/* ------------------------------------------------------------------ secrets */

static void old_secret_is_refused_and_the_new_one_opens_everything(void **state)
{
    static const char *const secrets[] = {KEYED_NEW, "correct horse battery staple",
                                          KEYED_OLD};
    (void)state;
    sessile_error err;
    sessile_store *st = filled(), *refused;
    char *before = keyed_read_all(st, NULL);
    const char *old = KEYED_OLD;
    for (size_t i = 0; i < 3; i++) { /* a key, a passphrase, a key */
        must(change_secret(st, secrets[i], &err), &err);
        char *still = keyed_read_all(st, NULL); /* the handle that did it goes on */
        assert_string_equal(before, still);
        free(still);
        sessile_store_close(st);
        assert_int_equal(keyed_try(&refused, root, old, NULL, &err), SESSILE_SEALED);
        assert_null(strstr(err.message, old));
        st = keyed_open(root, secrets[i]);
        char *after = keyed_read_all(st, NULL);
        assert_string_equal(before, after);
        free(after);
        old = secrets[i];
    }
    free(before);
    sessile_store_close(st);
}

static void new_secret_that_is_none_changes_nothing(void **state)
{
    (void)state;
    sessile_error err;
    sessile_store *st = filled();
    assert_int_equal(change_secret(st, "short", &err), SESSILE_INVALID);
    assert_int_equal(change_secret(st, "", &err), SESSILE_INVALID);
    sessile_rotate_options options = {1, SESSILE_KEY_DEFAULT, "x", 0};
    assert_int_equal(sessile_keys_rotate(st, &options, NULL, &err), SESSILE_INVALID);
    options = (sessile_rotate_options){1, SESSILE_KEY_FILE, "/nonexistent/key", 0};
    assert_int_equal(sessile_keys_rotate(st, &options, NULL, &err), SESSILE_SEALED);
    sessile_store_close(st);
    sessile_store_close(keyed_open(root, KEYED_OLD));
}

static void key_file_is_made_for_a_new_secret(void **state)
{
    char path[700];
    struct stat info;
    sessile_store *st = filled(), *again;
    sessile_store_options options;
    sessile_error err;
    (void)state;
    snprintf(path, sizeof path, "%s/new.key", folder);
    sessile_rotate_options rotate = {1, SESSILE_KEY_FILE, path, 1};
    must(sessile_keys_rotate(st, &rotate, NULL, &err), &err);
    sessile_store_close(st);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    sessile_store_options_init(&options);
    options.key_source = SESSILE_KEY_FILE;
    options.key = path;
    must(sessile_open(&again, root, &options, &err), &err);
    free(keyed_read_all(again, NULL));
    sessile_store_close(again);
}

static void handle_with_a_changed_secret_reads_and_appends_but_makes_nothing(void **state)
{
    (void)state;
    sessile_error err;
    sessile_store *st = filled(), *other = keyed_open(root, KEYED_OLD);
    sessile_session *s = keyed_resume(other, "plain-one", ""), *made;
    must(change_secret(st, KEYED_NEW, &err), &err);
    keyed_say(s, "goes on");
    free(keyed_read_all(other, NULL));
    sessile_session_options options;
    sessile_session_options_init(&options);
    options.id = sessile_text("new");
    assert_int_equal(sessile_create(&made, other, &options, &err), SESSILE_SEALED);
    must(sessile_create(&made, st, &options, &err), &err);
    sessile_session_close(made, NULL);
    sessile_session_close(s, NULL);
    sessile_store_close(other);
    sessile_store_close(st);
}

/* ------------------------------------------------------------------ epochs */

static void new_epoch_seals_new_logs_and_old_ones_stay(void **state)
{
    (void)state;
    sessile_error err;
    uint64_t epoch;
    sessile_session *s;
    sessile_keys *keys;
    sessile_store *st = filled(), *other = keyed_open(root, KEYED_OLD);
    char *before = keyed_read_all(st, NULL);
    must(sessile_keys_rotate(st, NULL, &epoch, &err), &err);
    assert_int_equal(epoch, 2);
    sessile_session_options options;
    sessile_session_options_init(&options);
    options.id = sessile_text("newer");
    /* a handle that has not heard of it seals with it all the same */
    must(sessile_create(&s, other, &options, &err), &err);
    sessile_session_close(s, NULL);
    char *path = log_file(root, "newer"), *header = header_of(path);
    assert_non_null(strstr(header, "\"epoch\":2,"));
    free(header);
    free(path);
    path = log_file(root, "plain-one");
    header = header_of(path);
    assert_non_null(strstr(header, "\"epoch\":1,"));
    free(header);
    free(path);
    must(sessile_keys_status(other, &keys, &err), &err);
    assert_int_equal(keys->epoch_count, 2);
    assert_int_equal(keys->epochs[0].epoch, 2);
    assert_int_equal(keys->epochs[0].logs, 1);
    assert_int_equal(keys->epochs[1].logs, keyed_count);
    assert_int_equal(keys->old_logs, keyed_count);
    assert_int_equal(keys->user_logs, 3);
    assert_int_equal(keys->users, 2);
    assert_string_equal(keys->kdf, "none");
    sessile_free(keys);
    char *after = keyed_read_all(other, NULL);
    assert_string_equal(before, after);
    free(before);
    free(after);
    sessile_store_close(other);
    sessile_store_close(st);
}

/* An open handle meets a log of an epoch that it does not know. */
static void unknown_epoch_is_looked_up_once_more(void **state)
{
    (void)state;
    sessile_error err;
    sessile_session *s;
    sessile_store *st = filled(), *other = keyed_open(root, KEYED_OLD);
    must(sessile_keys_rotate(st, NULL, NULL, &err), &err);
    sessile_session_options options;
    sessile_session_options_init(&options);
    options.id = sessile_text("newer");
    must(sessile_create(&s, st, &options, &err), &err);
    sessile_session_close(s, NULL);
    sessile_session_close(keyed_resume(other, "newer", ""), NULL);
    sessile_store_close(other);
    sessile_store_close(st);
}

static void two_who_rotate_at_once_make_two_epochs(void **state)
{
    enum { PROCESSES = 4, EACH = 5 };
    pid_t pids[PROCESSES];
    (void)state;
    sessile_store_close(filled());
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            sessile_store *st;
            int bad = keyed_try(&st, root, KEYED_OLD, NULL, NULL) != SESSILE_OK;
            for (int n = 0; n < EACH && !bad; n++)
                bad = sessile_keys_rotate(st, NULL, NULL, NULL) != SESSILE_OK;
            _exit(bad);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        waitpid(pids[i], &status, 0);
        assert_int_equal(status, 0);
    }
    sessile_error err;
    sessile_keys *keys;
    sessile_store *st = keyed_open(root, KEYED_OLD);
    must(sessile_keys_status(st, &keys, &err), &err);
    assert_int_equal(keys->epoch_count, 1 + PROCESSES * EACH);
    sessile_free(keys);
    free(keyed_read_all(st, NULL));
    sessile_store_close(st);
}

/* ------------------------------------------------------------------ resealed */

static void resealed_logs_hold_the_same_and_old_keys_open_nothing(void **state)
{
    (void)state;
    sessile_error err;
    sessile_reseal_state done;
    sessile_keys *keys;
    char from[700], to[700], *text;
    sessile_store *st = filled();
    char *before = keyed_read_all(st, NULL);
    char *path = log_file(root, "plain-one"), *old_header = header_of(path);
    keyed_copy(root, copy); /* who has this has the keyring of epoch 1, and its secret */
    must(sessile_keys_rotate(st, NULL, NULL, &err), &err);
    must(keyed_reseal(st, NULL, &done, &err), &err);
    assert_int_equal(done.resealed, keyed_count);
    assert_int_equal(done.logs, keyed_count);
    assert_int_equal(done.seen, keyed_count);
    assert_int_equal(done.failed, 0);
    assert_int_equal(done.dropped, 1);
    char *after = keyed_read_all(st, NULL), *new_header = header_of(path);
    assert_string_equal(before, after);
    free(after);
    assert_non_null(strstr(new_header, "\"epoch\":2,"));
    assert_memory_not_equal(strstr(old_header, "\"key\":"),
                            strstr(new_header, "\"key\":"), 60);
    must(sessile_keys_status(st, &keys, &err), &err);
    assert_int_equal(keys->epoch_count, 1);
    assert_int_equal(keys->old_logs, 0);
    assert_int_equal(keys->users, 2);
    sessile_free(keys);
    /* again: nothing to do */
    must(keyed_reseal(st, NULL, &done, &err), &err);
    assert_int_equal(done.resealed, 0);
    assert_int_equal(done.dropped, 0);
    sessile_store_close(st);
    st = keyed_open(root, KEYED_OLD);
    after = keyed_read_all(st, NULL);
    assert_string_equal(before, after);
    sessile_store_close(st);

    /* The saved keyring and the saved secrets of users, with the logs of now: nothing
     * opens. With the logs of then everything did. */
    st = keyed_open(copy, KEYED_OLD);
    free(keyed_read_all(st, NULL));
    sessile_store_close(st);
    snprintf(from, sizeof from, "%s/agents", root);
    snprintf(to, sizeof to, "%s/agents", copy);
    keyed_copy(from, to);
    st = keyed_open(copy, KEYED_OLD);
    for (size_t i = 0; i < keyed_count; i++) {
        assert_int_equal(
            keyed_read(st, keyed_sessions[i].id, keyed_sessions[i].user, &text, &err),
            SESSILE_SEALED);
        assert_null(text);
    }
    sessile_store_close(st);
    free(before);
    free(after);
    free(path);
    free(old_header);
    free(new_header);
}

static void suite_is_changed_both_ways(void **state)
{
    static const char *const suites[] = {"xchacha20-poly1305", "aes-256-gcm",
                                         "xchacha20-poly1305"};
    (void)state;
    sessile_error err;
    sessile_reseal_state done;
    sessile_store *st = filled();
    char *before = keyed_read_all(st, NULL), *path = log_file(root, "plain-one");
    for (size_t i = 0; i < 3; i++) {
        sessile_status status = keyed_reseal(st, suites[i], &done, &err);
        if (status == SESSILE_UNSUPPORTED)
            continue; /* this CPU has no AES */
        must(status, &err);
        assert_int_equal(done.failed, 0);
        char *after = keyed_read_all(st, NULL), *header = header_of(path);
        assert_string_equal(before, after);
        assert_non_null(strstr(header, suites[i]));
        free(after);
        free(header);
    }
    assert_int_equal(keyed_reseal(st, "rot13", &done, &err), SESSILE_UNSUPPORTED);
    sessile_store_close(st);
    free(before);
    free(path);
}

static void damaged_log_keeps_its_epoch_and_is_named(void **state)
{
    (void)state;
    sessile_error err;
    sessile_reseal *r;
    sessile_reseal_state now, done;
    sessile_keys *keys;
    int named = 0;
    sessile_store *st = filled();
    char *path = log_file(root, "plain-one");
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    char *header = header_of(path);
    fseek(file, (long)strlen(header) + 80, SEEK_SET);
    int c = fgetc(file);
    fseek(file, (long)strlen(header) + 80, SEEK_SET);
    fputc(c == 'A' ? 'B' : 'A', file);
    fclose(file);
    free(header);
    must(sessile_keys_rotate(st, NULL, NULL, &err), &err);
    must(sessile_reseal_begin(&r, st, NULL, &err), &err);
    while (sessile_reseal_step(r, &now, &err) == SESSILE_NEEDS) {
        if (now.log) {
            named++;
            assert_string_equal(now.log, "main/plain-one");
            assert_int_equal(now.why.code, SESSILE_DAMAGED);
        }
    }
    sessile_reseal_free(r);
    assert_int_equal(named, 1);
    must(keyed_reseal(st, NULL, &done, &err), &err);
    assert_int_equal(done.failed, 1);
    assert_int_equal(done.dropped, 0);
    must(sessile_keys_status(st, &keys, &err), &err);
    assert_int_equal(keys->epoch_count, 2);
    assert_int_equal(keys->old_logs, 1);
    sessile_free(keys);
    sessile_store_close(st);
    free(path);
}

/* ------------------------------------------------------------------ users */

static void users_logs_name_the_blob(void **state)
{
    (void)state;
    sessile_store_close(filled());
    assert_int_equal(keyed_files_with(root, "\"user\":\"user-"), 3);
    assert_int_equal(keyed_files_with(root, "\"sessile_user\":1,\"epoch\":1,"), 2);
}

static void forgotten_user_is_SEALED_in_copies_too(void **state)
{
    (void)state;
    sessile_error err;
    uint64_t count;
    char *text, from[700], to[700];
    sessile_store *st = filled(), *other = keyed_open(root, KEYED_OLD);
    char *others = keyed_read_all(st, KEYED_USER);
    sessile_session *open = keyed_resume(st, "a", KEYED_USER);
    sessile_entries *shown;
    const char *bytes;
    size_t size;
    must(sessile_entries_open(&shown, open, NULL, &err), &err);
    must(sessile_entries_next(shown, NULL, &bytes, &size, &err), &err);
    keyed_copy(root, copy);
    must(sessile_forget(st, sessile_text(KEYED_USER), &count, &err), &err);
    assert_int_equal(count, 2);
    /* also through a handle that was open, in this process and elsewhere */
    sessile_store *stores[] = {st, other};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(keyed_read(stores[i], "a", KEYED_USER, &text, &err),
                         SESSILE_SEALED);
        assert_non_null(strstr(err.message, "forgotten"));
        assert_null(strstr(err.message, KEYED_CANARY));
        char *still = keyed_read_all(stores[i], KEYED_USER);
        assert_string_equal(others, still);
        free(still);
    }
    sessile_id id;
    assert_int_equal(sessile_append(open,
                                    sessile_text("{\"role\":\"user\",\"content\":\"x\"}"),
                                    &id, &err),
                     SESSILE_SEALED);
    assert_int_equal(sessile_head(open, &id, &err), SESSILE_SEALED);
    /* nor does it go on with what it had begun to show */
    assert_int_equal(sessile_entries_next(shown, NULL, &bytes, &size, &err),
                     SESSILE_SEALED);
    sessile_entries_close(shown);
    sessile_session_close(open, NULL);
    /* the logs out of a backup, beside the keyring and blobs of now */
    snprintf(from, sizeof from, "%s/agents", copy);
    snprintf(to, sizeof to, "%s/agents", root);
    keyed_copy(from, to);
    sessile_store_close(other);
    other = keyed_open(root, KEYED_OLD);
    assert_int_equal(keyed_read(other, "b", KEYED_USER, &text, &err), SESSILE_SEALED);
    /* again: harmless, and nothing more becomes unreadable */
    must(sessile_forget(other, sessile_text(KEYED_USER), &count, &err), &err);
    assert_int_equal(count, 0);
    free(others);
    sessile_store_close(other);
    sessile_store_close(st);
}

static void forgotten_user_may_come_back_with_a_new_secret(void **state)
{
    (void)state;
    sessile_error err;
    char *text;
    sessile_session *s;
    sessile_reseal_state done;
    sessile_store *st = filled();
    must(sessile_forget(st, sessile_text(KEYED_USER), NULL, &err), &err);
    sessile_session_options options;
    sessile_session_options_init(&options);
    options.id = sessile_text("c");
    options.user = sessile_text(KEYED_USER);
    must(sessile_create(&s, st, &options, &err), &err);
    keyed_say(s, "here again");
    sessile_session_close(s, NULL);
    must(keyed_read(st, "c", KEYED_USER, &text, &err), &err);
    assert_non_null(strstr(text, "here again"));
    free(text);
    /* the old ones stay what they are, whatever is resealed */
    assert_int_equal(keyed_read(st, "a", KEYED_USER, &text, &err), SESSILE_SEALED);
    must(sessile_keys_rotate(st, NULL, NULL, &err), &err);
    must(keyed_reseal(st, NULL, &done, &err), &err);
    assert_int_equal(done.forgotten, 2);
    assert_int_equal(done.failed, 0);
    assert_int_equal(done.dropped, 1);
    assert_int_equal(keyed_read(st, "a", KEYED_USER, &text, &err), SESSILE_SEALED);
    must(keyed_read(st, "c", KEYED_USER, &text, &err), &err);
    free(text);
    sessile_store_close(st);
}

static void nobody_and_plain_stores_have_nothing_to_forget(void **state)
{
    (void)state;
    sessile_error err;
    sessile_store *st;
    sessile_keys *keys;
    sessile_reseal *r;
    sessile_store_options options;
    sessile_store_options_init(&options);
    options.key_source = SESSILE_KEY_PLAIN;
    static const char *const urls[] = {NULL, "ram:"};
    for (int i = 0; i < 2; i++) {
        must(sessile_open(&st, urls[i] ? urls[i] : root, &options, &err), &err);
        keyed_fill(st);
        assert_int_equal(sessile_forget(st, sessile_text("bob"), NULL, &err),
                         SESSILE_UNSUPPORTED);
        assert_int_equal(sessile_forget(st, sessile_text(""), NULL, &err),
                         SESSILE_INVALID);
        assert_int_equal(sessile_keys_rotate(st, NULL, NULL, &err), SESSILE_UNSUPPORTED);
        assert_int_equal(sessile_reseal_begin(&r, st, NULL, &err), SESSILE_UNSUPPORTED);
        must(sessile_keys_status(st, &keys, &err), &err);
        assert_int_equal(keys->sealed, 0);
        assert_int_equal(keys->logs, keyed_count);
        sessile_free(keys);
        sessile_store_close(st);
    }
}

static void many_who_make_a_users_first_session_share_one_secret(void **state)
{
    enum { PROCESSES = 8 };
    pid_t pids[PROCESSES];
    (void)state;
    sessile_store_close(keyed_open(root, KEYED_OLD));
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            sessile_store *st;
            sessile_session *s;
            sessile_session_options options;
            char id[16];
            snprintf(id, sizeof id, "s%d", i);
            sessile_session_options_init(&options);
            options.id = sessile_text(id);
            options.user = sessile_text("cy");
            _exit(keyed_try(&st, root, KEYED_OLD, NULL, NULL) ||
                  sessile_create(&s, st, &options, NULL));
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        waitpid(pids[i], &status, 0);
        assert_int_equal(status, 0);
    }
    sessile_store *st = keyed_open(root, KEYED_OLD);
    for (int i = 0; i < PROCESSES; i++) {
        char id[16];
        snprintf(id, sizeof id, "s%d", i);
        sessile_session_close(keyed_resume(st, id, "cy"), NULL);
    }
    assert_int_equal(keyed_files_with(root, "\"sessile_user\":1"), 1);
    sessile_store_close(st);
}

/* ------------------------------------------------------------------ at rest */

/* Promise 13, after all that can be done to keys. */
static void nothing_shows_on_disk_after_rotate_reseal_and_forget(void **state)
{
    (void)state;
    sessile_error err;
    sessile_store *st = filled();
    static const char *const secrets[] = {KEYED_CANARY,
                                          KEYED_USER,
                                          "\"bob\"", /* base64 may well have bob in it */
                                          "\"content\"",
                                          "000102030405060708090a0b",
                                          "AAECAwQFBgcICQoLDA0ODw",
                                          "ff0102030405060708090a0b"};
    must(sessile_keys_rotate(st, NULL, NULL, &err), &err);
    must(keyed_reseal(st, NULL, NULL, &err), &err);
    must(change_secret(st, KEYED_NEW, &err), &err);
    must(sessile_forget(st, sessile_text(KEYED_USER), NULL, &err), &err);
    sessile_store_close(st);
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
        assert_int_equal(keyed_files_with(root, secrets[i]), 0);
    /* it looks: one more is the control log, which says that a user was forgotten */
    assert_int_equal(keyed_files_with(root, "\"sessile\":1"), keyed_count + 1);
}

/* ------------------------------------------------------------------ tampered */

static sessile_status open_all(const char *secret, size_t *opened, sessile_error *err)
{
    sessile_store *st;
    *opened = 0;
    sessile_status status = keyed_try(&st, root, secret, NULL, err);
    if (status)
        return status;
    for (size_t i = 0; i < keyed_count; i++) {
        char *text;
        sessile_status one =
            keyed_read(st, keyed_sessions[i].id, keyed_sessions[i].user, &text, err);
        *opened += one == SESSILE_OK;
        status = one ? one : status;
        free(text);
    }
    sessile_store_close(st);
    return status;
}

/* Every byte of a file of the store flipped: what hangs on it opens no more. */
static unsigned long flip_each(const char *path, size_t others, int may_be_unsupported)
{
    unsigned long flips = 0;
    size_t opened;
    sessile_error err;
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    setvbuf(file, NULL, _IONBF, 0);
    for (long at = 0;; at++) {
        fseek(file, at, SEEK_SET);
        int c = fgetc(file);
        if (c == EOF)
            break;
        for (int bit = 0; bit < 8; bit += 3) {
            fseek(file, at, SEEK_SET);
            fputc(c ^ (1 << bit), file);
            sessile_status status = open_all(KEYED_OLD, &opened, &err);
            if (!(status == SESSILE_DAMAGED || status == SESSILE_SEALED ||
                  (may_be_unsupported && status == SESSILE_UNSUPPORTED)))
                fail_msg("byte %ld, bit %d: %s", at, bit, sessile_status_name(status));
            assert_int_equal(opened, others);
            flips++;
        }
        fseek(file, at, SEEK_SET);
        fputc(c, file);
    }
    fclose(file);
    return flips;
}

static void changed_keyring_and_users_blobs_are_refused(void **state)
{
    (void)state;
    sessile_error err;
    size_t opened;
    char keyring[700];
    sessile_store_close(filled());
    snprintf(keyring, sizeof keyring, "%s/keyring", root);
    unsigned long flips = flip_each(keyring, 0, 1);
    must(open_all(KEYED_OLD, &opened, &err), &err);
    assert_int_equal(opened, keyed_count);

    /* the blob of the user of one log: known by removing the others' secret */
    sessile_store *st = keyed_open(root, KEYED_OLD);
    must(sessile_forget(st, sessile_text(KEYED_USER), NULL, &err), &err);
    sessile_store_close(st);
    char *blob = keyed_file(root, "/user-", "sessile_user");
    flips += flip_each(blob, 2, 0);
    printf("# figure: bits flipped in keyrings and blobs of users, all refused = %lu\n",
           flips);
    free(blob);
}

static void blob_of_another_user_opens_nothing(void **state)
{
    (void)state;
    sessile_error err;
    sessile_store *st = filled();
    char *text, command[2000];
    sessile_store_close(st);
    /* two blobs, swapped */
    snprintf(command, sizeof command,
             "cd '%s' && set -- user-* && mv $1 x && mv $2 $1 && mv x $2", root);
    assert_int_equal(system(command), 0);
    st = keyed_open(root, KEYED_OLD);
    assert_int_equal(keyed_read(st, "a", KEYED_USER, &text, &err), SESSILE_DAMAGED);
    assert_int_equal(keyed_read(st, "a", "bob", &text, &err), SESSILE_DAMAGED);
    sessile_store_close(st);
}

/* ------------------------------------------------------------------ with writers */

typedef struct writer {
    pthread_t thread;
    int number;
    unsigned said;
} writer;

static atomic_int stop;

static void *write_on(void *arg)
{
    writer *w = arg;
    sessile_store *st = NULL;
    sessile_session *s = NULL;
    sessile_session_options options;
    sessile_session_options_init(&options);
    options.id = sessile_text(w->number % 2 ? "a" : "plain-one");
    options.user = sessile_text(w->number % 2 ? KEYED_USER : "");
    if (keyed_try(&st, root, KEYED_OLD, NULL, NULL) ||
        sessile_resume(&s, st, &options, NULL))
        return "cannot open";
    while (!atomic_load(&stop)) {
        char text[100];
        sessile_id id;
        sessile_error err;
        snprintf(text, sizeof text, "{\"role\":\"user\",\"content\":\"<%d.%u>\"}",
                 w->number, w->said);
        sessile_status status = sessile_append(s, sessile_text(text), &id, &err);
        if (status) {
            fprintf(stderr, "# %s\n", err.message);
            return "cannot append";
        }
        w->said++;
    }
    sessile_session_close(s, NULL);
    sessile_store_close(st);
    return NULL;
}

static void writers_lose_nothing_while_logs_are_sealed_anew(void **state)
{
    enum { WRITERS = 4, ROUNDS = 8 };
    (void)state;
    sessile_error err;
    writer writers[WRITERS];
    unsigned long resealed = 0, said = 0;
    sessile_store *st = filled();
    atomic_store(&stop, 0);
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (writer){.number = i};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_on, &writers[i]),
                         0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        sessile_reseal_state done;
        usleep(20000);
        must(sessile_keys_rotate(st, NULL, NULL, &err), &err);
        must(keyed_reseal(st, NULL, &done, &err), &err);
        assert_int_equal(done.failed, 0);
        resealed += done.resealed;
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < WRITERS; i++) {
        void *why;
        pthread_join(writers[i].thread, &why);
        if (why)
            fail_msg("writer %d: %s", i, (char *)why);
    }
    for (int i = 0; i < WRITERS; i++) {
        char *text, word[40];
        must(keyed_read(st, i % 2 ? "a" : "plain-one", i % 2 ? KEYED_USER : "", &text,
                        &err),
             &err);
        char *at = text;
        for (unsigned n = 0; n < writers[i].said; n++) {
            snprintf(word, sizeof word, "<%d.%u>", i, n);
            at = strstr(at, word); /* each, in order */
            if (!at)
                fail_msg("%s was acknowledged and is gone", word);
        }
        said += writers[i].said;
        free(text);
    }
    printf("# figure: messages appended while logs were resealed, all there = %lu\n",
           said);
    printf("# figure: logs resealed beside writers = %lu\n", resealed);
    sessile_store_close(st);
}

static void keys_init_makes_a_keyring_once(void **state)
{
    (void)state;
    sessile_error err;
    sessile_store_options options;
    sessile_store_options_init(&options);
    options.key_source = SESSILE_KEY_SECRET;
    options.key = KEYED_OLD;
    must(sessile_keys_init(root, &options, &err), &err);
    assert_int_equal(sessile_keys_init(root, &options, &err), SESSILE_EXISTS);
    sessile_store_close(keyed_open(root, KEYED_OLD));
    assert_int_equal(sessile_keys_init("ram:", &options, &err), SESSILE_UNSUPPORTED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(keys_init_makes_a_keyring_once),
        TEST(old_secret_is_refused_and_the_new_one_opens_everything),
        TEST(new_secret_that_is_none_changes_nothing),
        TEST(key_file_is_made_for_a_new_secret),
        TEST(handle_with_a_changed_secret_reads_and_appends_but_makes_nothing),
        TEST(new_epoch_seals_new_logs_and_old_ones_stay),
        TEST(unknown_epoch_is_looked_up_once_more),
        TEST(two_who_rotate_at_once_make_two_epochs),
        TEST(resealed_logs_hold_the_same_and_old_keys_open_nothing),
        TEST(suite_is_changed_both_ways),
        TEST(damaged_log_keeps_its_epoch_and_is_named),
        TEST(users_logs_name_the_blob),
        TEST(forgotten_user_is_SEALED_in_copies_too),
        TEST(forgotten_user_may_come_back_with_a_new_secret),
        TEST(nobody_and_plain_stores_have_nothing_to_forget),
        TEST(many_who_make_a_users_first_session_share_one_secret),
        TEST(nothing_shows_on_disk_after_rotate_reseal_and_forget),
        TEST(changed_keyring_and_users_blobs_are_refused),
        TEST(blob_of_another_user_opens_nothing),
        TEST(writers_lose_nothing_while_logs_are_sealed_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
