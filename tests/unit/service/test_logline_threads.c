/*
 * test_logline_threads.c: lines of several threads into one pipe do not mix.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "service/logline.h"

enum { THREADS = 4, LINES = 300 };

static logger l;
static pthread_barrier_t begin;

static void *write_lines(void *arg)
{
    char long_text[400];
    int64_t thread = *(int *)arg;
    memset(long_text, 'a' + (int)thread, sizeof long_text);
    pthread_barrier_wait(&begin);
    for (int i = 0; i < LINES; i++) {
        attribute text =
            attribute_slice("text", (sessile_slice){long_text, sizeof long_text});
        logline_write(&l, LEVEL_INFO, NULL, "line",
                      (attribute[]){attribute_number("thread", thread),
                                    attribute_number("i", i), text, text, text, text,
                                    text},
                      7);
    }
    return NULL;
}

static int number(const cJSON *line, const char *name)
{
    const cJSON *found = cJSON_GetObjectItem(line, name);
    assert_true(cJSON_IsNumber(found));
    return found->valueint;
}

static void lines_of_threads_do_not_mix(void **state)
{
    pthread_t threads[THREADS];
    int ids[THREADS], next[THREADS] = {0}, fds[2];
    char line[LOGLINE_SIZE + 2];
    (void)state;
    assert_int_equal(pipe(fds), 0);
    l = (logger){.fd = fds[1], .least = LEVEL_INFO};
    pthread_barrier_init(&begin, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        ids[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, &ids[i]), 0);
    }
    FILE *in = fdopen(fds[0], "r");
    assert_non_null(in);
    for (int i = 0; i < THREADS * LINES; i++) {
        assert_non_null(fgets(line, sizeof line, in));
        cJSON *one = cJSON_Parse(line);
        assert_non_null(one);
        int thread = number(one, "thread");
        assert_in_range(thread, 0, THREADS - 1);
        assert_int_equal(number(one, "i"), next[thread]++); /* each thread's in order */
        cJSON_Delete(one);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&begin);
    fclose(in);
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines_of_threads_do_not_mix)};
    return cmocka_run_group_tests_name("log lines of threads", tests, NULL, NULL);
}
