/* users.c: see users.h. */
#include "users.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sessile_access.h"
#include "support/runs.h"

static void make_key(users *u, int i, const char *user)
{
    const char *editor = "editor";
    sessile_access_key_options o;
    sessile_error err;
    sessile_access_key_options_init(&o);
    o.user = sessile_text(user);
    o.roles = &editor;
    o.role_count = 1;
    if (sessile_access_key(u->store, &o, &u->key[i], &err))
        fail_msg("%s", err.message);
    snprintf(u->bearer[i], sizeof u->bearer[i], "Bearer %s", u->key[i]);
    u->as[i][0] = (rpc_header){"authorization", u->bearer[i]};
    u->as[i][1] = (rpc_header){NULL, NULL};
}

void users_call_as(users *u, int user)
{
    u->s.headers = user < 0 ? NULL : u->as[user];
}

void users_open(users *u)
{
    sessile_guard_options o;
    service_settings settings;
    sessile_error err;
    memset(u, 0, sizeof *u);
    memset(&settings, 0, sizeof settings);
    u->store = run_store("ram:");
    sessile_guard_options_init(&o);
    if (sessile_store_guard(u->store, &o, &err))
        fail_msg("%s", err.message);
    make_key(u, ANN, "ann");
    make_key(u, BOB, "bob");
    settings.guarded = 1;
    serving_start(&u->s, u->store, &settings);
    Sessile__V1__CreateRequest r = SESSILE__V1__CREATE_REQUEST__INIT;
    r.session = names_of("s");
    users_call_as(u, ANN);
    serve_ok(&u->s, "CreateSession", &r);
}

void users_close(users *u)
{
    serving_stop(&u->s);
    for (int i = 0; i < USERS; i++)
        sessile_free(u->key[i]);
    sessile_store_close(u->store);
}
