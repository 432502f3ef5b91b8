/*
 * checkpoint.c: where an agent stands, kept and gone back to.
 */
#include "bench/measure.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A checkpoint about a session of n messages, beside a write of the same bytes. */
static void bench_keep(sessile_session *s, const char *store, const char *id, size_t n)
{
    static samples ours, bare;
    static char line[1 << 16];
    char path[4400], label[64];
    sessile_error err;
    sessile_checkpoint_options o;
    int fd = floor_open("floor");
    off_t end = 0, known;
    size_t size = 1000;
    memset(&o, 0, sizeof o);
    o.state = sessile_text("{\"step\":17,\"plan\":[\"read\",\"write\",\"test\"]}");
    memset(line, 'x', sizeof line);
    log_path(path, store, id);
    known = bench_file_size(path);
    for (int i = -60; i < (int)rounds(500); i++) {
        double f = 0;
        if (i & 1)
            f = floor_write(fd, &end, line, size, 1);
        double t = now_us();
        must(sessile_checkpoint(s, &o, NULL, &err), &err);
        t = now_us() - t;
        off_t now = bench_file_size(path);
        size = (size_t)(now - known) < sizeof line ? (size_t)(now - known) : sizeof line;
        known = now;
        if (!(i & 1))
            f = floor_write(fd, &end, line, size, 1);
        if (i >= 0) { /* the first fifty push nobody out */
            sample(&ours, t);
            sample(&bare, f);
        }
    }
    snprintf(label, sizeof label, "checkpoint at %zu, durable", n);
    row_print(&(row){label, &ours, &bare, NULL, "the same bytes written, synced", 1.05,
                     n == 1000 ? 10 : 0});
    close(fd);
}

/* Back to one where the head is: verified, its state handed out. */
static void bench_restore(sessile_session *s, size_t n)
{
    static samples ours, moved;
    char label[64], text[2 * MESSAGE];
    sessile_checkpoint_options o;
    sessile_restored *r;
    sessile_error err;
    sessile_id here;
    memset(&o, 0, sizeof o);
    o.state = sessile_text("{\"step\":17}");
    must(sessile_checkpoint(s, &o, &here, &err), &err);
    for (int i = -10; i < (int)rounds(500); i++) {
        double t = now_us();
        must(sessile_restore(s, here, 0, &r, &err), &err);
        t = now_us() - t;
        sessile_free(r);
        if (i >= 0)
            sample(&ours, t);
    }
    snprintf(label, sizeof label, "restore at %zu, head there", n);
    row_print(&(row){label, &ours, NULL, NULL, "", 0, n == 1000 ? 0.05 : 0});
    for (int i = 0; i < (int)rounds(100); i++) {
        must(sessile_append(s, message_text(text, i), NULL, &err), &err);
        double t = now_us();
        must(sessile_restore(s, here, 0, &r, &err), &err);
        t = now_us() - t;
        sessile_free(r);
        sample(&moved, t);
    }
    snprintf(label, sizeof label, "restore at %zu, head moved", n);
    row_print(&(row){label, &moved, NULL, NULL, "", 0, n == 1000 ? 5 : 0});
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {1000, 10000};
    char name[64];
    bench_begin(argc, argv);
    sessile_store *filled =
        open_store("checkpoint", SESSILE_KEY_SECRET, SESSILE_NONE, NULL, NULL);
    for (size_t i = 0; i < (bench_short() ? 1 : 2); i++) {
        snprintf(name, sizeof name, "of-%zu", sizes[i]);
        make_filled_session(filled, name, sizes[i]);
    }
    sessile_store_close(filled);
    sessile_store *store =
        open_store("checkpoint", SESSILE_KEY_SECRET, SESSILE_SYNC, NULL, NULL);
    for (size_t i = 0; i < (bench_short() ? 1 : 2); i++) {
        snprintf(name, sizeof name, "of-%zu", sizes[i]);
        sessile_session *s = open_session(store, name);
        bench_keep(s, "checkpoint", name, sizes[i]);
        bench_restore(s, sizes[i]);
        close_session(s);
    }
    sessile_store_close(store);
    return bench_end();
}
