/*
 * guard.c: calls through a view of a guarded store, with limits and an audit, beside the
 * same calls on a store without a guard; and a call of which a rule of the host's is
 * asked, beside one of which it is not.
 */
#include "bench/measure.h"

#include <stdio.h>

#include "sessile_guard.h"

enum { READS = 50 };

typedef struct pair {
    sessile_store *off, *on, *view;
    sessile_session *bare, *guarded;
} pair;

static void pair_open(pair *p, const char *name, sessile_durability durability)
{
    const char *editor = "editor";
    char off[64], on[64];
    sessile_guard_options go;
    sessile_credential c;
    sessile_error err;

    snprintf(off, sizeof off, "%s-off", name);
    snprintf(on, sizeof on, "%s-on", name);
    p->off = open_store(off, SESSILE_KEY_SECRET, durability, NULL, NULL);
    p->on = open_store(on, SESSILE_KEY_SECRET, durability, NULL, NULL);
    sessile_guard_options_init(&go);
    go.limits.on = go.audit.on = 1;
    must(sessile_store_guard(p->on, &go, &err), &err);
    sessile_credential_init(&c);
    c.user = sessile_text("ann");
    c.roles = &editor;
    c.role_count = 1;
    must(sessile_store_as(&p->view, p->on, &c, &err), &err);
    p->bare = open_session(p->off, "s");
    p->guarded = open_session(p->view, "s");
    fill_session(p->bare, 10);
    fill_session(p->guarded, 10);
}

static void pair_close(pair *p)
{
    close_session(p->bare);
    close_session(p->guarded);
    sessile_store_close(p->view);
    sessile_store_close(p->on);
    sessile_store_close(p->off);
}

/* A view of a store whose guard has that rule; NULL: none. */
static sessile_session *ruled(sessile_store **store, sessile_store **view,
                              const char *name, const char *rule)
{
    const char *editor = "editor";
    sessile_guard_options go;
    sessile_credential c;
    sessile_session *s;
    sessile_error err;

    *store = open_store(name, SESSILE_KEY_SECRET, SESSILE_NONE, NULL, NULL);
    sessile_guard_options_init(&go);
    go.authorize = rule;
    must(sessile_store_guard(*store, &go, &err), &err);
    sessile_credential_init(&c);
    c.user = sessile_text("ann");
    c.roles = &editor;
    c.role_count = 1;
    must(sessile_store_as(view, *store, &c, &err), &err);
    s = open_session(*view, "s");
    fill_session(s, 10);
    return s;
}

static const char *write_rule(char path[4400])
{
    FILE *f;

    snprintf(path, 4400, "%s/rule.lua", bench_folder);
    f = fopen(path, "w");
    if (!f ||
        fputs("return { authorize = function(who, operation, object)\n"
              "  return who.user == object.user and operation.name ~= 'purge'\n"
              "end }\n",
              f) < 0 ||
        fclose(f))
        broken("writing a rule");
    return path;
}

static double timed_read(sessile_session *s)
{
    sessile_message *messages;
    sessile_error err;
    size_t count;
    double t = now_us();

    for (int i = 0; i < READS; i++) {
        must(sessile_messages(s, NULL, &messages, &count, &err), &err);
        sessile_free(messages);
    }
    return (now_us() - t) / READS;
}

static double timed_append(sessile_session *s)
{
    sessile_error err;
    double t = now_us();

    must(sessile_append(s,
                        sessile_text("{\"role\":\"user\",\"content\":\"hello there\"}"),
                        NULL, &err),
         &err);
    return now_us() - t;
}

/* Both in each round, in turn first. */
static void bench_pair(const pair *p, const char *name,
                       double (*timed)(sessile_session *), size_t n, double wanted,
                       const char *bare_is)
{
    static samples ours, bare;

    for (int i = -20; i < (int)rounds(n); i++) {
        double b = i & 1 ? timed(p->bare) : 0, g = timed(p->guarded);
        b = i & 1 ? b : timed(p->bare);
        if (i >= 0) {
            sample(&ours, g);
            sample(&bare, b);
        }
    }
    note("%s: %.0f ns more", name, 1000 * (median(&ours) - median(&bare)));
    row_print(&(row){name, &ours, &bare, NULL, bare_is, wanted, 0});
}

int main(int argc, char **argv)
{
    pair p;

    bench_begin(argc, argv);
    pair_open(&p, "durable", SESSILE_SYNC);
    bench_pair(&p, "read of 10 messages, guarded", timed_read, 2000, 0,
               "without a guard");
    bench_pair(&p, "durable append, guarded", timed_append, 2000, 1.07,
               "without a guard");
    pair_close(&p);
    pair_open(&p, "unsynced", SESSILE_NONE);
    bench_pair(&p, "unsynced append, guarded", timed_append, 5000, 0, "without a guard");
    pair_close(&p);

    sessile_store *views[2];
    char rule[4400];
    p.guarded = ruled(&p.on, &views[0], "ruled", write_rule(rule));
    p.bare = ruled(&p.off, &views[1], "unruled", NULL);
    bench_pair(&p, "read of 10 messages, authorize", timed_read, 2000, 0,
               "without the rule");
    close_session(p.guarded);
    close_session(p.bare);
    for (int i = 0; i < 2; i++)
        sessile_store_close(views[i]);
    sessile_store_close(p.on);
    sessile_store_close(p.off);
    return bench_end();
}
