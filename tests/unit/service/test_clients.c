/*
 * test_clients.c: the service, judged by gRPC's reference core (python3-grpcio), the
 * classes of python3-protobuf, and curl.
 *
 * Each test runs one case of client.py against two servers over one store.
 */
#include "serving.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sessile_access.h"
#include "sessile_guard.h"
#include "support/runs.h"
#include "unit/rpc/program.h"

static const char asker[] =
    "return { name = 'asker', version = 1,\n"
    "  summarize = function(state, ctx)\n"
    "    if #state.messages < 4 then return end\n"
    "    local all = ''\n"
    "    for i = 1, 3 do\n"
    "      local content = i .. ':' .. all\n"
    "      local answer = ctx.model { messages = {{ role = 'user',\n"
    "        content = content }} }\n"
    "      all = all .. (answer or '-')\n"
    "    end\n"
    "    state:insert(1, { content = all }, { covers = { 1, #state.messages - 2 } })\n"
    "  end }\n";

static int make_policies(void **state)
{
    char path[200];
    if (make_folder(state))
        return -1;
    snprintf(path, sizeof path, "%s/asker.lua", runs_folder);
    FILE *f = fopen(path, "w");
    if (!f)
        return -1;
    fputs(asker, f);
    return fclose(f);
}

/* Puts a key of ann's into the environment. */
static void guard_store(sessile_store *store)
{
    const char *editor = "editor";
    sessile_access_key_options o;
    sessile_guard_options guard;
    sessile_error err;
    char *key;
    sessile_guard_options_init(&guard);
    sessile_access_key_options_init(&o);
    o.user = sessile_text("ann");
    o.roles = &editor;
    o.role_count = 1;
    if (sessile_store_guard(store, &guard, &err) ||
        sessile_access_key(store, &o, &key, &err))
        fail_msg("%s", err.message);
    assert_int_equal(setenv("KEY", key, 1), 0);
    sessile_free(key);
}

static void run_case(const char *name)
{
    service_settings settings;
    memset(&settings, 0, sizeof settings);
    settings.no_json = strcmp(name, "no_json") == 0;
    settings.no_reflection = strcmp(name, "no_reflection") == 0;
    settings.guarded = strcmp(name, "guarded") == 0;
    static int n;
    char url[200], proto[500];
    sessile_store *stores[2];
    serving s[2];
    grpcio_needed();
    program_needed("/usr/bin/curl", "curl");
    if (strstr(name, "reflection") || settings.guarded)
        program_needed("/usr/share/grpc-proto/grpc/reflection/v1/reflection.proto",
                       "grpc-proto");
    snprintf(url, sizeof url, "sqlite:%s/clients-%d.db", runs_folder, n++);
    snprintf(proto, sizeof proto, "%s", beside("../../../engine/service/sessile.proto"));
    for (int i = 0; i < 2; i++) {
        stores[i] = run_store(url);
        if (settings.guarded && i == 0)
            guard_store(stores[i]);
        serving_start(&s[i], stores[i], i == 0 ? &settings : NULL);
    }
    const char *argv[] = {PYTHON,
                          beside("../service/client.py"),
                          name,
                          runs_folder,
                          proto,
                          service_address(s[0].service),
                          service_address(s[1].service),
                          NULL};
    program_ok(argv);
    for (int i = 0; i < 2; i++) {
        serving_stop(&s[i]);
        sessile_store_close(stores[i]);
    }
}

#define CASE(name)                        \
    static void test_##name(void **state) \
    {                                     \
        (void)state;                      \
        run_case(#name);                  \
    }

CASE(run)
CASE(cut)
CASE(events)
CASE(json)
CASE(errors)
CASE(sse)
CASE(no_json)
CASE(reflection)
CASE(no_reflection)
CASE(guarded)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run),        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_events),     cmocka_unit_test(test_json),
        cmocka_unit_test(test_errors),     cmocka_unit_test(test_sse),
        cmocka_unit_test(test_no_json),    cmocka_unit_test(test_guarded),
        cmocka_unit_test(test_reflection), cmocka_unit_test(test_no_reflection),
    };
    return cmocka_run_group_tests(tests, make_policies, remove_folder);
}
