/*
 * fork.c: a fork of a sealed session, durable: made, and made and opened.
 */
#include "bench/measure.h"

#include <stdio.h>

static void bench_fork(sessile_store *store, const char *from, size_t n, int opened)
{
    static samples ours, bare;
    char id[64], label[64];
    sessile_error err;
    sessile_session *s = open_session(store, from);
    for (int i = -2; i < (int)rounds(n > 5000 ? 20 : 150); i++) {
        sessile_session_options o;
        sessile_session *f = NULL;
        double b = 0;
        sessile_session_options_init(&o);
        snprintf(id, sizeof id, "fork-%zu-%d-%d", n, opened, i + 2);
        o.id = sessile_text(id);
        if (i & 1)
            b = floor_log_copy(from, n, "floor-copy");
        double t = now_us();
        must(sessile_fork(opened ? &f : NULL, s, SESSILE_NO_ID, &o, &err), &err);
        t = now_us() - t;
        if (!(i & 1))
            b = floor_log_copy(from, n, "floor-copy");
        if (f)
            close_session(f);
        if (i >= 0) {
            sample(&ours, t);
            sample(&bare, b);
        }
    }
    snprintf(label, sizeof label, "fork %zu%s", n, opened ? ", and opened" : "");
    row_print(&(row){label, &ours, &bare, NULL, "the same lines opened, sealed, written",
                     opened ? 0 : 1.3, n == 1000 ? 1000 : 0});
    close_session(s);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {1000, 10000};
    char name[64];
    bench_begin(argc, argv);
    sessile_store *store =
        open_store("fork", SESSILE_KEY_SECRET, SESSILE_NONE, NULL, NULL);
    for (size_t i = 0; i < (bench_short() ? 1 : 2); i++) {
        snprintf(name, sizeof name, "of-%zu", sizes[i]);
        make_filled_session(store, name, sizes[i]);
        floor_log_make(name, sizes[i]);
        bench_fork(store, name, sizes[i], 0);
        bench_fork(store, name, sizes[i], 1);
    }
    sessile_store_close(store);
    return bench_end();
}
