/*
 * test_pool.c: workers and lanes: what runs at one time, in which order, and what is
 * refused.
 */
#include "service/server.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { LANE_MOST = 32 };

static pool *pool_of(int workers, size_t waiting)
{
    pool *p;
    assert_int_equal(pool_open(&p, workers, waiting, &allocator_default, NULL),
                     SESSILE_OK);
    assert_int_equal(pool_start(p, NULL), SESSILE_OK);
    return p;
}

/* ---------------------------------------------------------------------- order */

enum { LANES = 8, JOBS = 400, WORKERS = 4 };

typedef struct step {
    job job;
    int lane, number;
} step;

static struct {
    atomic_int inside[LANES], next[LANES], wrong;
} seen;

static void note(job *j)
{
    const step *s = (const step *)j;
    if (atomic_fetch_add(&seen.inside[s->lane], 1) != 0 ||
        atomic_fetch_add(&seen.next[s->lane], 1) != s->number)
        atomic_fetch_add(&seen.wrong, 1);
    usleep(10);
    atomic_fetch_sub(&seen.inside[s->lane], 1);
}

static void test_jobs_of_a_lane_run_one_after_the_other_as_they_came(void **state)
{
    static step steps[LANES][JOBS];
    pool *p = pool_of(WORKERS, 100);
    (void)state;
    memset(&seen, 0, sizeof seen);
    for (int i = 0; i < JOBS; i++)
        for (int lane = 0; lane < LANES; lane++) {
            step *s = &steps[lane][i];
            s->job.run = note;
            s->job.lane = (uint64_t)lane + 1;
            s->lane = lane;
            s->number = i;
            pool_put(p, &s->job);
        }
    pool_end(p);
    assert_int_equal(seen.wrong, 0);
    for (int lane = 0; lane < LANES; lane++)
        assert_int_equal(seen.next[lane], JOBS);
    assert_int_equal(pool_jobs(p), 0);
    pool_close(p);
}

/* ---------------------------------------------------------------------- who is held */

/* A job that runs until it is let go. */
typedef struct held {
    job job;
    sem_t began, go;
} held;

static void be_held(job *j)
{
    held *h = (held *)j;
    sem_post(&h->began);
    sem_wait(&h->go);
}

static void held_init(held *h, uint64_t lane)
{
    memset(h, 0, sizeof *h);
    sem_init(&h->began, 0, 0);
    sem_init(&h->go, 0, 0);
    h->job.run = be_held;
    h->job.lane = lane;
}

static void hold(pool *p, held *h, uint64_t lane)
{
    held_init(h, lane);
    assert_int_equal(pool_submit(p, &h->job, NULL), SESSILE_OK);
    sem_wait(&h->began);
}

static atomic_int ran;

static void count(job *j)
{
    (void)j;
    atomic_fetch_add(&ran, 1);
}

static sessile_status submit_as(pool *p, job *j, uint64_t lane, uint64_t share,
                                sessile_error *err)
{
    memset(j, 0, sizeof *j);
    j->run = count;
    j->lane = lane;
    j->share = share;
    return pool_submit(p, j, err);
}

static sessile_status submit(pool *p, job *j, uint64_t lane, sessile_error *err)
{
    return submit_as(p, j, lane, 0, err);
}

static void test_lanes_and_jobs_of_none_run_at_one_time(void **state)
{
    held a, b, c;
    pool *p = pool_of(3, 100);
    (void)state;
    hold(p, &a, 1); /* each returns only once its job runs */
    hold(p, &b, 0);
    hold(p, &c, 0);
    assert_int_equal(pool_waiting(p), 0);
    sem_post(&a.go);
    sem_post(&b.go);
    sem_post(&c.go);
    pool_close(p);
}

/* With one worker, which goes from lane to lane. */
static void test_a_lane_with_many_jobs_holds_up_no_other(void **state)
{
    enum { MANY = 20 };
    static step many[MANY];
    step other = {.job = {.run = note, .lane = 2}, .lane = 1};
    held h, second;
    pool *p = pool_of(1, 100);
    (void)state;
    memset(&seen, 0, sizeof seen);
    hold(p, &h, 3);
    for (int i = 0; i < MANY; i++) {
        many[i] = (step){.job = {.run = note, .lane = 1}, .number = i};
        pool_put(p, &many[i].job);
    }
    held_init(&second, 2);
    pool_put(p, &second.job);
    pool_put(p, &other.job);
    sem_post(&h.go);
    sem_wait(&second.began);
    assert_int_equal(seen.next[0], 1); /* one of the twenty */
    sem_post(&second.go);
    pool_end(p);
    assert_int_equal(seen.next[0], MANY);
    assert_int_equal(seen.next[1], 1);
    pool_close(p);
}

/* ---------------------------------------------------------------------- refusals */

static void test_a_session_has_so_many_calls_waiting(void **state)
{
    job jobs[LANE_MOST + 2];
    held h;
    sessile_error err;
    pool *p = pool_of(1, 1000);
    (void)state;
    atomic_store(&ran, 0);
    hold(p, &h, 1);
    for (int i = 1; i < LANE_MOST; i++)
        assert_int_equal(submit(p, &jobs[i], 1, &err), SESSILE_OK);
    assert_int_equal(submit(p, &jobs[LANE_MOST], 1, &err), SESSILE_BUSY);
    assert_non_null(strstr(err.message, "too many calls wait for this session"));
    assert_int_equal(submit(p, &jobs[0], 2, &err), SESSILE_OK); /* of another one */
    memset(&jobs[LANE_MOST], 0, sizeof(job));
    jobs[LANE_MOST].run = count;
    jobs[LANE_MOST].lane = 1;
    pool_put(p, &jobs[LANE_MOST]); /* what was begun goes on */
    assert_int_equal(pool_waiting(p), LANE_MOST + 1);
    sem_post(&h.go);
    pool_end(p);
    assert_int_equal(ran, LANE_MOST + 1);
    pool_close(p);
}

static void test_so_many_calls_wait_in_all(void **state)
{
    enum { MOST = 10 };
    job jobs[MOST + 2];
    held h;
    sessile_error err;
    pool *p = pool_of(1, MOST);
    (void)state;
    atomic_store(&ran, 0);
    hold(p, &h, 1);
    for (uint64_t i = 1; i < MOST; i++)
        assert_int_equal(submit(p, &jobs[i], i + 1, &err), SESSILE_OK);
    assert_int_equal(submit(p, &jobs[MOST], 100, &err), SESSILE_BUSY);
    assert_non_null(strstr(err.message, "too many calls wait: ask again"));
    sem_post(&h.go);
    while (pool_jobs(p) > 0)
        usleep(1000);
    assert_int_equal(submit(p, &jobs[MOST], 100, &err), SESSILE_OK); /* now it may */
    pool_end(p);
    assert_int_equal(ran, MOST);
    assert_int_equal(submit(p, &jobs[MOST + 1], 1, &err), SESSILE_BUSY);
    assert_non_null(strstr(err.message, "the server is ending"));
    pool_close(p);
}

static void test_each_user_has_places_of_his_own_for_a_session(void **state)
{
    job jobs[2 * LANE_MOST + 1];
    held h;
    sessile_error err;
    pool *p = pool_of(1, 1000);
    (void)state;
    hold(p, &h, 1);
    for (uint64_t user = 1; user <= 2; user++)
        for (int i = 0; i < LANE_MOST; i++)
            assert_int_equal(
                submit_as(p, &jobs[(user - 1) * LANE_MOST + (unsigned)i], 1, user, &err),
                SESSILE_OK);
    assert_int_equal(submit_as(p, &jobs[2 * LANE_MOST], 1, 2, &err), SESSILE_BUSY);
    assert_non_null(strstr(err.message, "too many calls wait for this session"));
    sem_post(&h.go);
    pool_close(p);
}

static void test_a_user_has_a_quarter_of_all_places(void **state)
{
    enum { MOST = 40, OWN = MOST / 4 };
    job jobs[MOST];
    held h;
    sessile_error err;
    pool *p = pool_of(1, MOST);
    (void)state;
    hold(p, &h, 1);
    for (uint64_t i = 0; i < OWN; i++)
        assert_int_equal(submit_as(p, &jobs[i], 10 + i, 7, &err), SESSILE_OK);
    assert_int_equal(submit_as(p, &jobs[OWN], 100, 7, &err), SESSILE_BUSY);
    assert_non_null(strstr(err.message, "too many of your calls wait"));
    assert_int_equal(submit_as(p, &jobs[OWN], 100, 8, &err), SESSILE_OK);
    sem_post(&h.go);
    while (pool_jobs(p) > 0)
        usleep(1000);
    assert_int_equal(submit_as(p, &jobs[0], 10, 7, &err), SESSILE_OK);
    pool_close(p);
}

static sessile_status submit_new(pool *p, job *j, uint64_t source, sessile_error *err)
{
    memset(j, 0, sizeof *j);
    j->run = count;
    j->lane = j->share = source;
    j->unjudged = 1;
    return pool_submit(p, j, err);
}

/* An eighth of all places is for the new ones of one address, a quarter for all. */
static void test_calls_that_are_not_judged_have_few_places(void **state)
{
    enum { MOST = 80, SOURCE = MOST / 8 };
    job jobs[MOST];
    held h;
    sessile_error err;
    size_t n = 0;
    pool *p = pool_of(1, MOST);
    (void)state;
    hold(p, &h, 1);
    for (uint64_t source = 1; source <= 2; source++) {
        for (int i = 0; i < SOURCE; i++)
            assert_int_equal(submit_new(p, &jobs[n++], source, &err), SESSILE_OK);
        assert_int_equal(submit_new(p, &jobs[n], source, &err), SESSILE_BUSY);
        assert_non_null(strstr(err.message, "whose credential is new"));
    }
    assert_int_equal(submit_new(p, &jobs[n], 3, &err), SESSILE_BUSY);
    assert_int_equal(submit_as(p, &jobs[n], 10, 7, &err), SESSILE_OK); /* a known one */
    sem_post(&h.go);
    pool_close(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jobs_of_a_lane_run_one_after_the_other_as_they_came),
        cmocka_unit_test(test_lanes_and_jobs_of_none_run_at_one_time),
        cmocka_unit_test(test_a_lane_with_many_jobs_holds_up_no_other),
        cmocka_unit_test(test_a_session_has_so_many_calls_waiting),
        cmocka_unit_test(test_so_many_calls_wait_in_all),
        cmocka_unit_test(test_each_user_has_places_of_his_own_for_a_session),
        cmocka_unit_test(test_a_user_has_a_quarter_of_all_places),
        cmocka_unit_test(test_calls_that_are_not_judged_have_few_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
