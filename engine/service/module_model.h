/*
 * module_model.h: the server's own model: the configured one, asked by Lua as every
 * command asks it.
 */
#ifndef SERVICE_MODULE_MODEL_H
#define SERVICE_MODULE_MODEL_H

#include <lua.h>

#include "service/service.h"

typedef struct models models;

/* Makes `count` Lua states that ask the model of the configuration (path: the file that
 * is used instead of the user's own, or NULL). 0; or pushes the three values of a
 * failure: 3. */
int models_open(lua_State *L, const char *path, int count, models **out);
/* A service_ask; arg: the models. */
sessile_status models_ask(void *arg, const service_question *question, buf *text);
/* Nobody asks any more. NULL is ignored. */
void models_close(models *m);

#endif
