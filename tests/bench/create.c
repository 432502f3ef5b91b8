/*
 * create.c: a new session, durable.
 */
#include "bench/measure.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As many bytes under a temporary name, synced, renamed, the folder synced. */
static double floor_create(int dir, int i, size_t size)
{
    static char data[1 << 16];
    char name[64], temporary[64];
    snprintf(name, sizeof name, "floor-%d", i);
    snprintf(temporary, sizeof temporary, ".floor-%d", i);
    memset(data, 'x', size);
    double t = now_us();
    int fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int bad = fd < 0 || write(fd, data, size) != (ssize_t)size || fsync(fd) ||
              close(fd) || renameat(dir, temporary, dir, name) || fsync(dir);
    t = now_us() - t;
    if (bad)
        broken("floor");
    return t;
}

int main(int argc, char **argv)
{
    static samples ours, bare, theirs;
    char id[32], path[4400];
    sessile_error err;
    bench_begin(argc, argv);
    sessile_store *store =
        open_store("create", SESSILE_KEY_SECRET, SESSILE_SYNC, NULL, NULL);
    close_session(open_session(store, "first"));
    snprintf(path, sizeof path, "%s/create/agents/floor", bench_folder);
    if (mkdir(path, 0700))
        broken(path);
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    log_path(path, "create", "first");
    size_t size = (size_t)bench_file_size(path);
    peer *p = peer_open("create");
    for (int i = -5; i < (int)rounds(300); i++) {
        sessile_session_options o;
        sessile_session *s;
        double f = 0, q = 0;
        sessile_session_options_init(&o);
        snprintf(id, sizeof id, "session-%d", i + 5);
        o.id = sessile_text(id);
        if (i & 1)
            f = floor_create(dir, i, size);
        double t = now_us();
        must(sessile_create(&s, store, &o, &err), &err);
        t = now_us() - t;
        close_session(s);
        if (!(i & 1))
            f = floor_create(dir, i, size);
        if (p) {
            q = now_us();
            peer_put(p, i + 5, 0, sessile_text("{\"type\":\"session\"}"));
            q = now_us() - q;
        }
        if (i >= 0)
            sample_round(&ours, t, &bare, f, p ? &theirs : NULL, q);
    }
    row_print(&(row){"create, durable", &ours, &bare, p ? &theirs : NULL,
                     "create + fsync + rename + fsync of the folder", 1.1, 10});
    close(dir);
    peer_close(p);
    sessile_store_close(store);
    return bench_end();
}
