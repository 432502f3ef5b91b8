/*
 * pool.c: workers, and the jobs that wait for one.
 *
 * Jobs of one lane (a session or a memory) run one after the other, in the order in which
 * they came: two workers in one session would wait for each other. A lane that has jobs
 * is in the ready list once; a worker takes its first job, and puts the lane back behind
 * the others when there are more. So a session with many calls holds one worker, and no
 * other session waits for more than one of its calls.
 *
 * A new call is refused when too many wait. Each user has places of his own in a lane,
 * and no more than a share of all places, so whoever calls without end keeps out only
 * himself. Calls whose credential is not known yet have a share together, and each of
 * their addresses a part of it. What was begun goes on by pool_put(), which cannot fail:
 * without memory for a lane it takes one that is always there.
 */
#include "service/server.h"

#include <string.h>

enum {
    LANES = 4096,
    USERS = 1024,
    LANE_MOST = 32,  /* of one user */
    USER_OF = 4,     /* a user may have 1/USER_OF of all places */
    UNJUDGED_OF = 4, /* and so may all calls that are not judged together */
    SOURCE_OF = 8    /* and an address of theirs that much */
};

/* Calls that wait or run, of one user. */
typedef struct counter {
    struct counter *next;
    uint64_t key;
    size_t count;
} counter;

typedef struct lane {
    struct lane *same;  /* in the table */
    struct lane *ready; /* in the list */
    uint64_t key;       /* 0: of one call without a session; not in the table */
    job *first, *last;
    size_t count;  /* with the one that runs */
    counter *held; /* those of pool_submit(), by their users */
} lane;

struct pool {
    allocator alloc;
    size_t most;
    pthread_mutex_t mutex; /* all that follows */
    pthread_cond_t work;
    lane *table[LANES];
    lane *first, *last; /* ready */
    size_t jobs;        /* that wait or run */
    size_t running;     /* of them */
    size_t refusable;   /* of them, those of pool_submit() */
    size_t unjudged;    /* of those, the ones that are not judged */
    counter *users[USERS];
    lane spare; /* for jobs whose lane there is no memory for */
    int ending;
    int wanted, threads; /* threads: that were started */
    pthread_t *ids;
};

sessile_status pool_open(pool **out, int workers, size_t waiting, const allocator *a,
                         sessile_error *err)
{
    pool *p = mem_zalloc(a, sizeof *p);
    *out = NULL;
    if (!p)
        return fail_nomem(err);
    p->alloc = *a;
    p->most = waiting;
    p->wanted = workers;
    p->ids = mem_zalloc(a, (size_t)workers * sizeof *p->ids);
    if (!p->ids) {
        mem_free(a, p, sizeof *p);
        return fail_nomem(err);
    }
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->work, NULL);
    *out = p;
    return SESSILE_OK;
}

/* ---------------------------------------------------------------------- counting */

static counter **find_counter(counter **list, uint64_t key)
{
    while (*list && (*list)->key != key)
        list = &(*list)->next;
    return list;
}

static size_t counted(counter **list, uint64_t key)
{
    const counter *one = *find_counter(list, key);
    return one ? one->count : 0;
}

/* 0, or -1: no memory. */
static int count_up(pool *p, counter **list, uint64_t key)
{
    counter **at = find_counter(list, key);
    if (!*at && (*at = mem_zalloc(&p->alloc, sizeof **at)))
        (*at)->key = key;
    if (!*at)
        return -1;
    (*at)->count++;
    return 0;
}

static void count_down(pool *p, counter **list, uint64_t key)
{
    counter **at = find_counter(list, key), *one = *at;
    if (--one->count > 0)
        return;
    *at = one->next;
    mem_free(&p->alloc, one, sizeof *one);
}

static counter **users_of(pool *p, uint64_t share)
{
    return &p->users[share % USERS];
}

/* Counts a job of a lane. 0, or -1: no memory. */
static int take_place(pool *p, lane *l, job *j)
{
    if (count_up(p, &l->held, j->share))
        return -1;
    if (j->share && count_up(p, users_of(p, j->share), j->share)) {
        count_down(p, &l->held, j->share);
        return -1;
    }
    p->refusable++;
    p->unjudged += j->unjudged;
    j->place.share = j->share;
    j->place.unjudged = j->unjudged;
    j->place.taken = 1;
    return 0;
}

static void leave_place(pool *p, lane *l, const job_place *place)
{
    if (!place->taken)
        return;
    count_down(p, &l->held, place->share);
    if (place->share)
        count_down(p, users_of(p, place->share), place->share);
    p->refusable--;
    p->unjudged -= place->unjudged;
}

static size_t part(const pool *p, size_t of)
{
    return p->most / of ? p->most / of : 1;
}

/* What keeps a job out; NULL: nothing does. A job that runs has a place, which it leaves
 * soon. */
static const char *keeps_out(pool *p, const job *j)
{
    const job_place *has = &j->place;
    const size_t own = j->share ? counted(users_of(p, j->share), j->share) -
                                      (has->taken && has->share == j->share)
                                : 0;
    if (p->ending)
        return "the server is ending: ask another one";
    if (p->refusable - has->taken >= p->most)
        return "too many calls wait: ask again";
    if (j->unjudged &&
        (p->unjudged - (has->taken && has->unjudged) >= part(p, UNJUDGED_OF) ||
         own >= part(p, SOURCE_OF)))
        return "too many calls wait whose credential is new to this server: ask again";
    if (!j->unjudged && own >= part(p, USER_OF))
        return "too many of your calls wait: ask again";
    return NULL;
}

/* ---------------------------------------------------------------------- lanes */

static lane **find_lane(pool *p, uint64_t key)
{
    lane **at = &p->table[key % LANES];
    while (*at && (*at)->key != key)
        at = &(*at)->same;
    return at;
}

static void put_ready(pool *p, lane *l)
{
    l->ready = NULL;
    if (p->last)
        p->last->ready = l;
    else
        p->first = l;
    p->last = l;
    pthread_cond_signal(&p->work);
}

/* The lane of a call, made if there is none; NULL: no memory. */
static lane *lane_of(pool *p, uint64_t key)
{
    lane *none = NULL, **at = key ? find_lane(p, key) : &none;
    if (!*at && (*at = mem_zalloc(&p->alloc, sizeof **at)))
        (*at)->key = key;
    return *at;
}

static void drop_lane(pool *p, lane *l)
{
    if (l == &p->spare)
        return;
    if (l->key)
        *find_lane(p, l->key) = l->same;
    mem_free(&p->alloc, l, sizeof *l);
}

static void add(pool *p, lane *l, job *j)
{
    j->next = NULL;
    if (l->last)
        l->last->next = j;
    else
        l->first = j;
    l->last = j;
    p->jobs++;
    if (l->count++ == 0)
        put_ready(p, l);
}

void pool_put(pool *p, job *j)
{
    pthread_mutex_lock(&p->mutex);
    lane *l = lane_of(p, j->lane);
    j->place.taken = 0;
    add(p, l ? l : &p->spare, j);
    pthread_mutex_unlock(&p->mutex);
}

sessile_status pool_submit(pool *p, job *j, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    pthread_mutex_lock(&p->mutex);
    const char *why = keeps_out(p, j);
    lane *l = NULL;
    if (why)
        status = fail(err, SESSILE_BUSY, "%s", why);
    else if (!(l = lane_of(p, j->lane)))
        status = fail_nomem(err);
    else if (!j->unjudged && counted(&l->held, j->share) >= LANE_MOST)
        status =
            fail(err, SESSILE_BUSY, "too many calls wait for this session: ask again");
    else if (take_place(p, l, j))
        status = fail_nomem(err);
    if (!status)
        add(p, l, j);
    else if (l && l->count == 0)
        drop_lane(p, l);
    pthread_mutex_unlock(&p->mutex);
    return status;
}

static void *work(void *arg)
{
    pool *p = arg;
    pthread_mutex_lock(&p->mutex);
    for (;;) {
        while (!p->first && !p->ending)
            pthread_cond_wait(&p->work, &p->mutex);
        if (!p->first)
            break;
        lane *l = p->first;
        p->first = l->ready;
        if (!p->first)
            p->last = NULL;
        job *j = l->first;
        const job_place place = j->place;
        l->first = j->next;
        if (!l->first)
            l->last = NULL;
        p->running++;
        pthread_mutex_unlock(&p->mutex);
        j->run(j); /* it may be gone afterwards */
        pthread_mutex_lock(&p->mutex);
        p->running--;
        p->jobs--;
        leave_place(p, l, &place);
        if (--l->count > 0)
            put_ready(p, l);
        else
            drop_lane(p, l);
    }
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}

sessile_status pool_start(pool *p, sessile_error *err)
{
    while (p->threads < p->wanted) {
        int why = pthread_create(&p->ids[p->threads], NULL, work, p);
        if (why)
            return fail_errno(err, why, "a worker cannot be started");
        p->threads++;
    }
    return SESSILE_OK;
}

size_t pool_jobs(pool *p)
{
    pthread_mutex_lock(&p->mutex);
    size_t jobs = p->jobs;
    pthread_mutex_unlock(&p->mutex);
    return jobs;
}

size_t pool_waiting(pool *p)
{
    pthread_mutex_lock(&p->mutex);
    size_t waiting = p->jobs - p->running;
    pthread_mutex_unlock(&p->mutex);
    return waiting;
}

void pool_end(pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->mutex);
    p->ending = 1;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->mutex);
    /* What waits is run by the workers before they end: the calls are over by then, and
     * call_run() only ends them. */
    for (int i = 0; i < p->threads; i++)
        pthread_join(p->ids[i], NULL);
    p->threads = 0;
}

void pool_close(pool *p)
{
    if (!p)
        return;
    pool_end(p);
    pthread_mutex_destroy(&p->mutex);
    pthread_cond_destroy(&p->work);
    mem_free(&p->alloc, p->ids, (size_t)p->wanted * sizeof *p->ids);
    mem_free(&p->alloc, p, sizeof *p);
}
