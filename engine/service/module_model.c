/*
 * module_model.c: Lua states that ask the configured model.
 *
 * A state belongs to one question at a time: a worker takes one that is idle, waits in it
 * for the answer, and puts it back. States are made before anything is served, so that a
 * model that cannot be asked is an error at the start, and all of them have read the same
 * configuration. There are half as many as workers, so calls that need no model always
 * find a worker; a single worker has one.
 *
 * An error of Lua ends a question, and nothing else.
 */
#include "service/module_model.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "binding.h"

#define PREPARE "sessile.prepare" /* in the registry, by command/sessile.c */

typedef struct model_state {
    struct model_state *next;
    lua_State *L; /* its function that asks is the value at 1 */
} model_state;

struct models {
    pthread_mutex_t mutex; /* of what follows */
    model_state *idle;
    int count;
    model_state states[];
};

/* ---------------------------------------------------------------------- opening */

typedef struct setting_up {
    lua_CFunction prepare;
    const char *path;
} setting_up;

/* Leaves the function that asks, or the three values of a failure. */
static int set_up(lua_State *L)
{
    const setting_up *how = lua_touserdata(L, 1);
    lua_settop(L, 0);
    lua_pushcfunction(L, how->prepare);
    lua_call(L, 0, 0);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "sessile.cli.served_model");
    lua_call(L, 1, 1);
    lua_getfield(L, -1, "make");
    lua_pushstring(L, how->path);
    lua_call(L, 1, 3);
    return 3;
}

static int fail_to_open(lua_State *L, models *m, const char *message, const char *code)
{
    lua_pushnil(L);
    lua_pushstring(L, message);
    lua_pushstring(L, code ? code : "EIO");
    models_close(m);
    return 3;
}

int models_open(lua_State *L, const char *path, int count, models **out)
{
    models *m = calloc(1, sizeof *m + (size_t)count * sizeof *m->states);
    setting_up how = {NULL, path};
    *out = NULL;
    if (!m)
        return fail_to_open(L, NULL, "out of memory", "ENOMEM");
    pthread_mutex_init(&m->mutex, NULL);
    lua_getfield(L, LUA_REGISTRYINDEX, PREPARE);
    how.prepare = lua_tocfunction(L, -1);
    lua_pop(L, 1);
    if (!how.prepare)
        return fail_to_open(L, m, "this program makes no further states", NULL);
    while (m->count < count) {
        model_state *one = &m->states[m->count];
        one->L = luaL_newstate();
        if (!one->L)
            return fail_to_open(L, m, "out of memory", "ENOMEM");
        m->count++;
        lua_pushcfunction(one->L, set_up);
        lua_pushlightuserdata(one->L, &how);
        if (lua_pcall(one->L, 1, 3, 0) != LUA_OK)
            return fail_to_open(L, m, lua_tostring(one->L, -1), NULL);
        if (!lua_isfunction(one->L, 1))
            return fail_to_open(L, m, lua_tostring(one->L, 2), lua_tostring(one->L, 3));
        lua_settop(one->L, 1);
        one->next = m->idle;
        m->idle = one;
    }
    *out = m;
    return 0;
}

void models_close(models *m)
{
    if (!m)
        return;
    for (int i = 0; i < m->count; i++)
        lua_close(m->states[i].L);
    pthread_mutex_destroy(&m->mutex);
    free(m);
}

/* ---------------------------------------------------------------------- asking */

static model_state *take(models *m)
{
    pthread_mutex_lock(&m->mutex);
    model_state *one = m->idle;
    if (one)
        m->idle = one->next;
    pthread_mutex_unlock(&m->mutex);
    return one;
}

static void put_back(models *m, model_state *one)
{
    pthread_mutex_lock(&m->mutex);
    one->next = m->idle;
    m->idle = one;
    pthread_mutex_unlock(&m->mutex);
}

static int is_over(lua_State *L)
{
    const service_question *q = lua_touserdata(L, lua_upvalueindex(1));
    lua_pushboolean(L, q->over(q->over_arg));
    return 1;
}

static void push_slice(lua_State *L, sessile_slice text)
{
    lua_pushlstring(L, text.size ? text.data : "", text.size);
}

/* ask(request, about, over) -> text; nil, reason. */
static int ask(lua_State *L)
{
    const service_question *q = lua_touserdata(L, 2);
    lua_pushvalue(L, 1);
    push_slice(L, q->request);
    lua_createtable(L, 0, 4);
    push_slice(L, q->agent);
    lua_setfield(L, -2, "agent");
    push_slice(L, q->user);
    lua_setfield(L, -2, "user");
    push_slice(L, q->session);
    lua_setfield(L, -2, "id");
    push_slice(L, q->settings);
    lua_setfield(L, -2, "settings");
    lua_pushlightuserdata(L, (void *)(uintptr_t)q);
    lua_pushcclosure(L, is_over, 1);
    lua_call(L, 3, 2);
    return 2;
}

sessile_status models_ask(void *arg, const service_question *question, buf *text)
{
    models *m = arg;
    model_state *one = take(m);
    sessile_status status = SESSILE_OK;
    size_t size = 0;
    if (!one)
        return SESSILE_BUSY;
    lua_State *L = one->L;
    lua_pushcfunction(L, ask);
    lua_pushvalue(L, 1);
    lua_pushlightuserdata(L, (void *)(uintptr_t)question);
    if (lua_pcall(L, 2, 2, 0) != LUA_OK || lua_type(L, -2) != LUA_TSTRING)
        status = question->over(question->over_arg) ? SESSILE_CANCELLED : SESSILE_IO;
    const char *said = lua_tolstring(L, status ? -1 : -2, &size);
    if (said)
        buf_put(text, said, size);
    else
        buf_puts(text, "the model failed");
    lua_settop(L, 1);
    put_back(m, one);
    return status;
}
