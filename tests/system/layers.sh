#!/bin/sh
# tests/layers finds what it is there to find: each rule is broken once, in a small tree of
# its own, and must be reported at its file and line; what is allowed must pass.

layers=$(dirname "$0")/../layers
tree=$(mktemp -d) || exit 1
trap 'rm -rf "$tree"' EXIT
number=0

# plant FILE LINE...: a tree with that one file in it.
plant() {
    file=$1
    shift
    rm -rf "${tree:?}"/*
    mkdir -p "$tree/engine/include" "$tree/lua/binding" "$tree/$(dirname "$file")"
    printf '%s\n' "$@" >"$tree/$file"
}

report() {
    number=$((number + 1))
    if [ "$1" = 0 ]; then echo "ok $number - $2"; else echo "not ok $number - $2"; fi
    [ "$1" = 0 ] || printf '%s\n' "# got: $said"
}

# refused FILE TEXT: TEXT on line 2 of FILE is a violation, and the only one.
refused() {
    plant "$1" '/* first line */' "$2"
    said=$("$layers" "$tree" 2>&1)
    status=$?
    [ $status = 1 ] && [ "$(printf '%s\n' "$said" | wc -l)" = 1 ] &&
        case $said in "$1:2: "*) true ;; *) false ;; esac
    report $? "refused in $1: $2"
}

# allowed FILE TEXT...
allowed() {
    plant "$@"
    said=$("$layers" "$tree" 2>&1)
    [ $? = 0 ] && [ -z "$said" ]
    report $? "allowed in $1: $2"
}

# Floors.
refused engine/base/a.c '#include "codec/entry.h"'
refused engine/codec/a.c '#include "vault/seal.h"'
refused engine/log/a.h '#include "session/tree.h"'
refused engine/session/a.c '  #  include "policy/vm.h"'
refused engine/run/a.c '#include "api/a.h"'
refused engine/api/a.c '#include "command/main.h"'
refused engine/include/sessile.h '#include "base/buf.h"'
refused engine/log/a.c '#include "../store/store.h"'
refused engine/log/a.c '#include "log.h"'
refused engine/log/a.c '/* x */ #include "run/run.h" // y'
allowed engine/vault/a.c '#include "codec/json.h"' '#include "base/buf.h"' '#include <sodium.h>'
allowed engine/base/a.c '#include "sessile.h"' '#include "sessile_store.h"' '#include <errno.h>'
allowed engine/api/a.c '#include "run/run.h"' '#include "base/buf.h"' '#include "api/a.h"'
allowed engine/log/a.c '/* one' '#include "run/run.h"' '*/ // #include "run/run.h"'

# Doors.
refused engine/codec/a.c '#include <modp_b64.h>'
refused engine/store/a.c '#include <sodium.h>'
refused engine/store/a.c '#include <sodium/utils.h>'
refused engine/codec/a.c '#include <cjson/cJSON.h>'
refused lua/binding/a.c '#include <cJSON.h>'
refused engine/base/a.c '#include <uuid/uuid.h>'
refused engine/session/a.c '#include <lua.h>'
refused engine/run/a.c '#include "lauxlib.h"'
refused engine/api/a.c '#include <lualib.h>'
refused engine/store/file/file.c '#include <unistd.h>'
refused engine/base/buf.c '#include <sys/stat.h>'
refused engine/vault/a.c '#include <sys/random.h>'
refused engine/log/a.c '#include <fcntl.h>'
allowed engine/base/os_posix.c '#include <sys/file.h>' '#include <dirent.h>' '#include <unistd.h>'
allowed engine/base/b64.c '#include <modp_b64.h>' '#include <sys/types.h>'
allowed engine/codec/a.c '#include <uuid/uuid.h>'
allowed engine/policy/a.c '#include <lua.h>' '#include <lauxlib.h>' '#include <lualib.h>'
allowed engine/command/a.c '#include <lua.h>' '#include "sessile.h"'

# The binding.
refused lua/binding/a.c '#include "session/tree.h"'
refused lua/binding/a.c '#include "sessile_store.h"'
refused lua/binding/a.c '#include <unistd.h>'
refused lua/binding/a.c '#include "policy/policy.h"'
refused engine/policy/lua_state.h '#include "base/buf.h"'
allowed engine/policy/lua_state.c '#include "policy/lua_state.h"' '#include <lua.h>' '#include "sessile.h"'
allowed lua/binding/a.c '#include "sessile.h"' '#include "policy/lua_state.h"' '#include "own.h"' \
    '#include <lauxlib.h>'

# Names of roles.
refused engine/context/a.c '    if (strcmp(role, "assistant") == 0)'
refused engine/api/a.c 'static const char *const speakers[] = {"tool", "user"};'
allowed engine/codec/message.c '    {"assistant", SESSILE_ROLE_ASSISTANT},'
allowed engine/context/a.c 'f("a tool"); /* "assistant" */ // "tool"' 'json_get(data, "user");'

# Printing and ending.
refused engine/base/a.c 'void f(void) { exit(1); }'
refused engine/log/a.c '    abort ();'
refused engine/run/a.c '    (void)printf("x");'
refused engine/api/a.c '/* a */ puts("x");'
refused engine/policy/a.c '    if (x) fprintf(stderr, "x");'
allowed engine/base/os_posix.c '    _exit(127);'
allowed engine/command/main.c '    printf("x"); exit(1);'
allowed engine/base/a.c '/* never exit(1), never printf("x") */ // abort()' \
    'snprintf(b, n, "call exit(1)"); my_exit(1); os->exit(1); f("a\"b"); /* abort()' 'puts() */' \
    'int f(const char *s, ...) __attribute__((format(printf, 1, 2)));'

# Handles and cores.
refused engine/api/a.c '    return f(session->core, err);'
refused engine/run/a.c '    store_core *s = (*h).core;'
allowed engine/guard/enter.h '#define GUARD_OWN(h) ((h)->core)'
allowed engine/api/a.c '/* session->core */ f(x->core_size); g("sessile.core");'

# Rows of operations.def and functions of the headers.
rm -rf "${tree:?}"/*
mkdir -p "$tree/engine/include" "$tree/engine/guard" "$tree/lua/binding"
cat >"$tree/engine/include/sessile.h" <<'EOF'
SESSILE_API int sessile_one(void);
SESSILE_API sessile_status sessile_two(const char *a,
                                       int b);
EOF
echo 'OPERATION(one, NOTHING)' >"$tree/engine/guard/operations.def"
said=$("$layers" "$tree" 2>&1)
[ $? = 1 ] && [ "$said" = "engine/include/sessile.h: sessile_two() has no row in guard/operations.def" ]
report $? "refused: a public function without a row"
printf 'OPERATION(%s, NOTHING)\n' one two three >"$tree/engine/guard/operations.def"
said=$("$layers" "$tree" 2>&1)
[ $? = 1 ] && [ "$said" = "engine/guard/operations.def:3: there is no sessile_three()" ]
report $? "refused: a row without a function"

# Calls, which are found in what is built.
# object FLOOR TEXT: FLOOR/a.c with that text, and its object file.
object() {
    mkdir -p "$tree/engine/$1" "$tree/build/obj/engine/$1"
    printf '%s\n' "$2" >"$tree/engine/$1/a.c"
    ${CC:-cc} -c -o "$tree/build/obj/engine/$1/a.o" "$tree/engine/$1/a.c"
}

rm -rf "${tree:?}"/*
mkdir -p "$tree/engine/include" "$tree/lua/binding"
object log 'void run_it(void); void log_it(void) { run_it(); }'
object run 'void run_it(void) { }'
said=$(BUILD=build "$layers" "$tree" 2>&1)
status=$?
[ $status = 1 ] && [ "$said" = "build/obj/engine/log/a.o: log/ may not call run_it() of run/: it is not below" ]
report $? "refused: a function of log/ calls one of run/ that it declared itself"

object log 'void log_it(void) { }'
object run 'void log_it(void); void run_it(void) { log_it(); }'
said=$(BUILD=build "$layers" "$tree" 2>&1)
[ $? = 0 ] && [ -z "$said" ]
report $? "allowed: a function of run/ calls one of log/"

object log 'void run_it(void); void log_it(void) { run_it(); }'
object run 'void run_it(void) { }'
rm "$tree/engine/log/a.c"
said=$(BUILD=build "$layers" "$tree" 2>&1)
[ $? = 0 ] && [ -z "$said" ]
report $? "ignored: the object file of a source that is gone"

# The tree it came with.
said=$("$layers" 2>&1)
report $? "the sources of this tree keep the rules"

echo "1..$number"
