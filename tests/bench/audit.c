/*
 * audit.c: the audit: an event, a seal of 1,000 events, and verifying many, each beside
 * its floor.
 */
#include "bench/measure.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "audit/audit.h"
#include "guard/enter.h"
#include "audit/read.h"
#include "audit/verify.h"

enum { LEAF = 330, LINE = 700 }; /* bytes of an event, and of its line */

static audit_event an_event(void)
{
    audit_event e;

    audit_event_init(&e);
    e.operation.name = sessile_text("append");
    e.operation.permission = sessile_text("modify_session");
    e.operation.session = sessile_text("bug-42");
    e.operation.entry = 42;
    e.who.agent = sessile_text("coder");
    e.who.role = sessile_text("editor");
    e.who.method = sessile_text("token");
    e.who.user = sessile_text("ann");
    return e;
}

static void bench_event(audit_log *a)
{
    static samples ours, bare;
    static char line[LINE];
    audit_event e = an_event();
    int fd = floor_open("event");
    off_t end = 0;
    sessile_error err;

    memset(line, 'x', sizeof line);
    for (int i = -100; i < (int)rounds(5000); i++) {
        double t = now_us();
        must(audit_write(a, AUDIT_WRITE, &e, NULL, &err), &err);
        t = now_us() - t;
        double f = floor_write(fd, &end, line, sizeof line, 0);
        if (i >= 0) {
            sample(&ours, t);
            sample(&bare, f);
        }
    }
    row_print(
        &(row){"an event, not synced", &ours, &bare, NULL, "a write of 700 bytes", 0, 0});
    close(fd);
}

/* The floor: the leaves hashed, a signature, three syncs of small writes. */
static double floor_seal(int fd, off_t *end)
{
    static char leaf[LEAF + 1], seal[LINE];
    unsigned char hash[32], seed[SIGN_SEED] = {1}, signature[SIGN_BYTES];
    merkle tree;
    double t;

    for (int i = 0; i < 1000; i++) /* the first sync takes the events too */
        (void)floor_write(fd, end, seal, sizeof seal, 0);
    t = now_us();

    merkle_init(&tree);
    for (int i = 0; i < 1000; i++) {
        leaf[1] = (char)i;
        hash256(hash, leaf, sizeof leaf, NULL, 0);
        merkle_add(&tree, hash);
    }
    merkle_root(&tree, hash);
    sign_make(seed, hash, sizeof hash, signature);
    t = now_us() - t;
    for (int i = 0; i < 3; i++)
        t += floor_write(fd, end, seal, sizeof seal, 1);
    return t;
}

static void bench_seal(audit_log *a)
{
    static samples ours, bare;
    audit_event e = an_event();
    int fd = floor_open("seal");
    off_t end = 0;
    sessile_error err;

    for (int i = -2; i < (int)rounds(60); i++) {
        double last = 0, t;
        for (int k = 0; k < 1000; k++)
            must(audit_write(a, AUDIT_WRITE, &e, NULL, &err), &err);
        t = now_us();
        must(audit_seal(a, &err), &err);
        t = now_us() - t;
        last = floor_seal(fd, &end);
        if (i >= 0) {
            sample(&ours, t);
            sample(&bare, last);
        }
    }
    row_print(&(row){"seal of 1,000 events", &ours, &bare, NULL,
                     "1,000 leaves, a signature, 3 syncs", 1.2, 0});
    close(fd);
}

static void bench_verify(sessile_store *store, audit_log *a, int count)
{
    static samples ours, bare;
    audit_event e = an_event();
    char root[SEAL_HEX], label[64];
    sessile_audit_report v;
    sessile_error err;

    must(audit_root(a, root, &err), &err);
    for (int i = 0; i < count; i++)
        must(audit_write(a, AUDIT_WRITE, &e, NULL, &err), &err);
    must(audit_seal(a, &err), &err);
    floor_log_make("verify", (size_t)count);
    for (int i = 0; i < (int)rounds(5); i++) {
        double t = now_us();
        must(audit_verify(store->core, root, NULL, &v, &err), &err);
        t = now_us() - t;
        if (!v.holds)
            broken(v.why);
        sample(&ours, t / (double)v.events * count);
        sample(&bare, floor_log_read("verify", (size_t)count));
    }
    snprintf(label, sizeof label, "verify %d events", count);
    row_print(&(row){label, &ours, &bare, NULL, "as many lines read and opened", 1.5, 0});
}

/* The events that bench_verify() has written, and those before it. */
static void bench_read(sessile_store *store, int count)
{
    static samples ours, bare;
    sessile_audit_filter filter = {.names = 1};
    char label[64];
    sessile_error err;

    for (int i = 0; i < (int)rounds(5); i++) {
        sessile_audit_event e = {.id = {"", 1}};
        audit_reader_core *r;
        double t = now_us();
        uint64_t read = 0;
        must(audit_read_open(&r, store->core, &filter, &err), &err);
        for (; e.id.size; read++)
            must(audit_read_next(r, &e, &err), &err);
        audit_read_close(r);
        t = now_us() - t;
        sample(&ours, t / (double)read * count);
        sample(&bare, floor_log_read("verify", (size_t)count));
    }
    snprintf(label, sizeof label, "read %d events, with names", count);
    row_print(&(row){label, &ours, &bare, NULL, "as many lines read and opened", 0, 0});
}

int main(int argc, char **argv)
{
    sessile_store *store;
    sessile_error err;
    audit_log *a;

    bench_begin(argc, argv);
    store = open_store("audit", SESSILE_KEY_SECRET, SESSILE_SYNC, NULL, NULL);
    must(audit_open(&a, store->core, NULL, &err), &err);
    bench_event(a);
    bench_seal(a);
    bench_verify(store, a, bench_short() ? 10000 : 1000000);
    bench_read(store, bench_short() ? 10000 : 1000000);
    must(audit_close(a, &err), &err);
    sessile_store_close(store);
    return bench_end();
}
