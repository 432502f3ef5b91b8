#!/bin/sh
# The Lua that the engine has inside is its own: libsessile shows and asks for no name of Lua, and
# policies run in hosts that have LuaJIT, Lua 5.4 or none. Linked without a static Lua it refuses
# policies where the host has another Lua, and crashes nowhere.

cd "$(dirname "$0")/../.." || exit 1
root=$PWD
build=${SESSILE_BUILD:-$root/build}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
number=0

report() {
    number=$((number + 1))
    if [ "$1" = 0 ]; then echo "ok $number - $2"; else echo "not ok $number - $2"; fi
    [ "$1" = 0 ] || sed 's/^/# /' "$work/said"
}
skip() {
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $2"
}

libs=$(sed -n 's/^Libs.private: //p' "$build/sessile.pc")
if nm "$build/libsessile.a" | grep -qE ' [A-Z] __(asan|tsan|ubsan)'; then
    echo "1..0 # SKIP this build has sanitizers, which their hosts would need too"
    exit 0
fi
if ! nm "$build/libsessile.a" | grep -q ' t lua_newstate$'; then
    echo "1..0 # SKIP this build is without a static library of Lua 5.4"
    exit 0
fi

# ---- names

nm -D "$build/libsessile.so" | awk '{ print $NF }' | grep -E '^_?lua' >"$work/said"
[ ! -s "$work/said" ]
report $? "libsessile.so neither shows nor asks for a name of Lua"
nm -g "$build/libsessile.a" | awk '{ print $NF }' | grep -E '^_?lua' >"$work/said"
[ ! -s "$work/said" ]
report $? "nor does libsessile.a"
readelf -d "$build/libsessile.so" | grep -E 'NEEDED.*lua|TEXTREL' >"$work/said"
[ ! -s "$work/said" ]
report $? "libsessile.so needs no library of Lua, and its code is not changed when it is loaded"
grep lua "$build/sessile.pc" >"$work/said"
[ ! -s "$work/said" ]
report $? "nor does sessile.pc name one"

# ---- hosts

cat >"$work/probe.c" <<'C'
#include <sessile.h>
#include <stdio.h>
#include <stdlib.h>
#define TRY(call) if ((status = (call))) goto end
/* Three turns under the policy: 0; or what failed, in said. */
int probe(const char *policy, char *said, size_t size)
{
    sessile_policy_step step = {policy, "{\"messages\":2,\"keep\":0.5}", 0};
    sessile_store_options options;
    sessile_session_options who;
    sessile_store *store = NULL;
    sessile_session *session = NULL;
    sessile_outcome outcome = {0};
    sessile_error err = {0};
    sessile_status status;

    sessile_store_options_init(&options);
    options.key_source = SESSILE_KEY_SECRET;
    options.key = "a test keeps no secrets";
    sessile_session_options_init(&who);
    who.id = sessile_text("s");
    TRY(sessile_open(&store, "ram:", &options, &err));
    TRY(sessile_session_open(&session, store, &who, &err));
    TRY(sessile_append(session, sessile_text("{\"role\":\"user\",\"content\":\"0\"}"), NULL, &err));
    TRY(sessile_session_close(session, &err));
    session = NULL;
    TRY(sessile_policy_load(&who.config.policy, store, &step, 1, &err));
    TRY(sessile_session_open(&session, store, &who, &err));
    for (int i = 0; i < 3; i++) {
        sessile_slice message = sessile_text("{\"role\":\"user\",\"content\":\"more\"}");
        sessile_run *run;
        sessile_need need;
        TRY(sessile_turn_begin(&run, session, &message, 1, NULL, &err));
        TRY(sessile_run_step(run, &need, &err));
        TRY(sessile_run_outcome(run, &outcome, &err));
        sessile_run_free(run);
    }
end:
    snprintf(said, size, "%s %s, %zu removed", sessile_status_name(status), err.message, outcome.removal_count);
    if (session)
        sessile_session_close(session, &err);
    sessile_policy_free(who.config.policy);
    sessile_store_close(store);
    return (int)status;
}
/* As a host of Lua loads it, of which it uses nothing. */
int probe_lua(void *L)
{
    char said[1000];
    (void)L;
    probe(getenv("PROBE_POLICY"), said, sizeof said);
    puts(said);
    fflush(stdout);
    return 0;
}
C
printf '#include <stdio.h>\nint probe_lua(void *);\nint main(void) { return probe_lua(NULL); }\n' >"$work/main.c"
cat >"$work/ffi.lua" <<'LUA'
local ffi = require "ffi"
ffi.cdef "int probe_lua(void *);"
ffi.load(os.getenv "PROBE").probe_lua(nil)
LUA
printf 'while true do end\n' >"$work/loop.lua"
window=$root/policies/sliding_window.lua

# runs TITLE WHAT POLICY COMMAND...: the probe prints WHAT, and no host crashes.
runs() {
    title=$1 what=$2
    PROBE_POLICY=$3
    shift 3
    export PROBE_POLICY
    "$@" >"$work/said" 2>&1 </dev/null && grep -q "$what" "$work/said"
    report $? "$title"
}
compacted='^OK , [1-9]'
in_nvim() { nvim --headless -u NONE -i NONE -c "luafile $work/ffi.lua" -c 'qa!'; }

# shellcheck disable=SC2086  # words
{ cc -I engine/include -shared -fPIC -o "$work/probe.so" "$work/probe.c" -L "$build" -lsessile "-Wl,-rpath,$build" &&
    cc -I engine/include -o "$work/static" "$work/main.c" "$work/probe.c" "$build/libsessile.a" $libs; } >"$work/said" 2>&1
report $? "a program is linked with libsessile.a, without a library of Lua"
runs "and runs policies" "$compacted" "$window" "$work/static"

export PROBE="$work/probe.so"
if command -v luajit >/dev/null; then
    runs "policies run in LuaJIT" "$compacted" "$window" luajit "$work/ffi.lua"
    runs "and an endless one ends there" '^POLICY .*budget' "$work/loop.lua" luajit "$work/ffi.lua"
else
    skip "policies run in LuaJIT" "no luajit here"
fi
if command -v nvim >/dev/null; then
    runs "policies run in Neovim" "$compacted" "$window" in_nvim
else
    skip "policies run in Neovim" "no nvim here"
fi
cat >"$work/both.lua" <<'LUA'
local sessile = require "sessile"
local function turns()
  local store = assert(sessile.open("ram:", { key = false, policy = { os.getenv "PROBE_POLICY", messages = 2 } }))
  local s = assert(store:session "s")
  for _ = 1, 3 do
    assert(s:turn { { role = "user", content = "more" } })
  end
  assert(#s:context() < 3)
  store:close()
end
turns()
assert(package.loadlib(os.getenv "PROBE", "probe_lua"))()
turns()
LUA
runs "two engines in one Lua 5.4, each with a Lua of its own" "$compacted" "$window" lua5.4 "$work/both.lua"
if [ -e "$build/luajit/sessile/core.so" ]; then
    runs "and in one LuaJIT" "$compacted" "$window" env LUA_PATH="$root/lua/?.lua;$root/lua/?/init.lua" \
        LUA_CPATH="$build/luajit/?.so" luajit "$work/both.lua"
else
    skip "and in one LuaJIT" "the module for LuaJIT is not built"
fi

# ---- without a static library of Lua: as it is linked then

mkdir "$work/linked"
# shellcheck disable=SC2086  # words
{ cc -shared -o "$work/linked/libsessile.so.0" -Wl,-soname,libsessile.so.0 -Wl,--whole-archive "$build/internal.a" \
    -Wl,--no-whole-archive $libs -llua5.4 &&
    ln -s libsessile.so.0 "$work/linked/libsessile.so" &&
    cc -I engine/include -shared -fPIC -o "$work/linked/probe.so" "$work/probe.c" -L "$work/linked" -lsessile \
        "-Wl,-rpath,$work/linked" &&
    cc -I engine/include -o "$work/linked/main" "$work/main.c" "$work/probe.c" -L "$work/linked" -lsessile \
        "-Wl,-rpath,$work/linked"; } >"$work/said" 2>&1
report $? "it is linked with the library of Lua instead"
runs "policies run then in a program" "$compacted" "$window" "$work/linked/main"
export PROBE="$work/linked/probe.so"
runs "and in Lua 5.4" "$compacted" "$window" lua5.4 "$work/both.lua"
if command -v luajit >/dev/null; then
    runs "in LuaJIT they are refused, with the reason" '^UNSUPPORTED policies need Lua 5.4, and this process' \
        "$window" luajit "$work/ffi.lua"
else
    skip "in LuaJIT they are refused, with the reason" "no luajit here"
fi

echo "1..$number"
