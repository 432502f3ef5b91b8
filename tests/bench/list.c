/*
 * list.c: what a list of ten thousand sessions costs beside reading the names of their
 * files, and beside asking the system about each of them, which no list that is checked
 * against the files can go under.
 */
#include "bench/measure.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static size_t sessions;
static char logs[4200], list_cache[4300];

static void make_sessions(sessile_store *store)
{
    for (size_t i = 0; i < sessions; i++)
        make_short_session(store, 2);
}

static double read_names(int with_stat)
{
    struct dirent *e;
    struct stat st;
    double t = now_us();
    off_t bytes = 0;
    DIR *d = opendir(logs);
    if (!d)
        broken(logs);
    while ((e = readdir(d)))
        if (with_stat && e->d_name[0] != '.' &&
            !fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW))
            bytes += st.st_size;
    closedir(d);
    t = now_us() - t;
    if (with_stat && !bytes)
        broken("no logs");
    return t;
}

/* Every hundredth file looks changed: its mtime is another one. */
static void touch_some(void)
{
    struct timespec times[2];
    struct dirent *e;
    DIR *d = opendir(logs);
    int i = 0;
    if (!d)
        broken(logs);
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= 600;
    times[1] = times[0];
    while ((e = readdir(d)))
        if (e->d_name[0] != '.' && i++ % 100 == 0)
            utimensat(dirfd(d), e->d_name, times, 0);
    closedir(d);
}

static void measure(const char *name, sessile_key_source source)
{
    static samples names[3], stats, all, newest, stat_all, changed, none, newest_none,
        few;
    sessile_store *store = open_store(name, source, SESSILE_NONE, NULL, NULL);
    snprintf(logs, sizeof logs, "%s/%s/agents/main", bench_folder, name);
    snprintf(list_cache, sizeof list_cache, "%s/.list_cache", logs);
    make_sessions(store);
    sleep(3); /* logs of the last two seconds are looked at each time */
    for (size_t r = 0; r < rounds(5); r++) {
        unlink(list_cache);
        sample(&newest_none, timed_list(store, 50, sessions));
        unlink(list_cache);
        sample(&none, timed_list(store, 0, sessions));
        sample(&few, read_names(0));
    }
    for (size_t r = 0; r < rounds(60); r++) {
        double t = read_names(0), s = read_names(1);
        for (int i = 0; i < 3; i++)
            sample(&names[i], t);
        sample(&stats, s);
        sample(&stat_all, s);
        sample(&all, timed_list(store, 0, sessions));
        sample(&newest, timed_list(store, 50, sessions));
    }
    samples again = {0};
    for (size_t i = 0; i < all.count; i++)
        sample(&again, all.at[i]);
    row_print(
        &(row){"readdir and fstatat of each", &stats, &names[0], NULL, "readdir", 0, 0});
    row_print(
        &(row){"list, nothing changed", &all, &names[1], NULL, "readdir", 3.5, 100});
    row_print(
        &(row){"the same", &again, &stat_all, NULL, "readdir, fstatat of each", 0, 0});
    row_print(&(row){"list, the newest 50", &newest, &names[2], NULL, "readdir", 1.0, 0});
    for (size_t r = 0; r < rounds(5); r++) {
        touch_some();
        sleep(3);
        sample(&names[0], read_names(0));
        sample(&changed, timed_list(store, 0, sessions));
    }
    row_print(
        &(row){"list, 1 in 100 changed", &changed, &names[0], NULL, "readdir", 0, 0});
    for (size_t i = 0; i < few.count; i++)
        sample(&names[0], few.at[i]);
    row_print(
        &(row){"list, no list_cache", &none, &few, NULL, "readdir (pi: 1,700 ms)", 0, 0});
    row_print(&(row){"the newest 50, no list_cache", &newest_none, &names[0], NULL,
                     "readdir", 0, 0});
    sessile_store_close(store);
}

int main(int argc, char **argv)
{
    bench_begin(argc, argv);
    sessions = bench_short() ? 500 : 10000;
    note("%zu sessions, sealed:", sessions);
    measure("list", SESSILE_KEY_SECRET);
    note("%zu sessions, plain:", sessions);
    measure("list-plain", SESSILE_KEY_PLAIN);
    return bench_end();
}
