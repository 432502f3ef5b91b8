#!/bin/sh
# What `make install` leaves behind can be used: a C program is built through pkg-config and
# runs, the Lua module loads from the installed places, and no internal name is exported.

cd "$(dirname "$0")/../.." || exit 1
build=${SESSILE_BUILD:-build}
stage=$(mktemp -d) || exit 1
copy=$(mktemp -d "$PWD/build-install.XXXXXX") || exit 1 # beside lua/, as a build has to be
trap 'rm -rf "$stage" "$copy"' EXIT
number=0

# Objects that know their prefix are compiled again for it: in a copy, other tests use the build.
mkdir "$copy/obj"
cp -a "$build/obj/engine" "$build/obj/lua" "$copy/obj"
[ ! -d "$build/obj/luajit" ] || cp -a "$build/obj/luajit" "$copy/obj"
cp -a "$build/include" "$build/share" "$copy"
build=$copy

report() {
    number=$((number + 1))
    if [ "$1" = 0 ]; then echo "ok $number - $2"; else echo "not ok $number - $2"; fi
    [ "$1" = 0 ] || sed 's/^/# /' "$stage/said"
}

make --no-print-directory install BUILD="$build" DESTDIR="$stage" PREFIX=/usr >"$stage/said" 2>&1
report $? "make install DESTDIR="

cat >"$stage/host.c" <<'C'
#include <sessile.h>
#include <sessile_store.h>
#include <string.h>
int main(void) { return strcmp(sessile_version(), SESSILE_VERSION) != 0; }
C
export PKG_CONFIG_PATH="$stage/usr/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$stage"
flags="$(pkg-config --cflags sessile) -I$stage/usr/include -L$stage/usr/lib"

# shellcheck disable=SC2086  # words
{ cc $flags -o "$stage/shared" "$stage/host.c" $(pkg-config --libs sessile) &&
    LD_LIBRARY_PATH="$stage/usr/lib" "$stage/shared"; } >"$stage/said" 2>&1
report $? "a C program, linked with the shared library"

# shellcheck disable=SC2086
{ cc $flags -o "$stage/static" "$stage/host.c" "$stage/usr/lib/libsessile.a" \
    $(pkg-config --static --libs sessile | sed 's/-lsessile//g') &&
    "$stage/static"; } >"$stage/said" 2>&1
report $? "a C program, linked with the static library"

# Examples are a stranger's programs: nothing of ours but what is installed.
for example in embed needs; do
    # shellcheck disable=SC2086
    { cc -std=c11 -Wall -Wextra -Werror $flags -o "$stage/$example" "examples/$example.c" \
        $(pkg-config --libs sessile) &&
        LD_LIBRARY_PATH="$stage/usr/lib" TMPDIR="$stage" "$stage/$example"; } >"$stage/said" 2>&1
    report $? "examples/$example.c"
done

LUA_PATH_5_4="$stage/usr/share/lua/5.4/?.lua;$stage/usr/share/lua/5.4/?/init.lua;;" \
LUA_CPATH_5_4="$stage/usr/lib/lua/5.4/?.so;;" \
    lua5.4 -e 'assert(require "sessile")
        assert(assert(require "sessile".encoding "o200k_base"):count "hello world" == 2)' \
    >"$stage/said" 2>&1
report $? "the Lua module, and the encodings that it counts with"

# exported TITLE PATTERN NM-ARGUMENT...: every name it defines for others matches PATTERN.
exported() {
    title=$1 pattern=$2
    shift 2
    nm --defined-only "$@" | awk 'NF == 3 { print $3 }' >"$stage/names"
    grep -vE "$pattern" "$stage/names" >"$stage/said"
    [ -s "$stage/names" ] && [ ! -s "$stage/said" ]
    report $? "$title"
}
exported "libsessile.a exports sessile_* only" '^sessile_' -g "$stage/usr/lib/libsessile.a"
exported "libsessile.so exports sessile_* only" '^sessile_' -D "$stage/usr/lib/libsessile.so"
exported "core.so exports luaopen_* only" '^luaopen_' -D "$stage/usr/lib/lua/5.4/sessile/core.so"

# What LuaJIT loads: there where a static library of Lua 5.4 and the headers of LuaJIT are.
jit=$stage/usr/lib/lua/5.1/sessile/core.so
if [ -e "$jit" ]; then
    exported "core.so for LuaJIT exports luaopen_* only" '^luaopen_' -D "$jit"
    in_share() { (cd "$stage/usr/share/lua/5.1/sessile" && find . -type f); }
    cat >"$stage/jit.lua" <<'LUA'
local sessile = require "sessile"
assert(assert(sessile.encoding "o200k_base"):count "hello world" == 2)
local store = assert(sessile.open("ram:", { key = false, policy = { "sliding_window", messages = 2 } }))
local s = assert(store:session "s")
for _ = 1, 3 do
  assert(s:turn { { role = "user", content = "hello" } })
end
assert(#s:context() < 3)
LUA
    { LUA_PATH="$stage/usr/share/lua/5.1/?.lua;$stage/usr/share/lua/5.1/?/init.lua;;" \
        LUA_CPATH="$stage/usr/lib/lua/5.1/?.so;;" luajit "$stage/jit.lua" &&
        ! in_share | grep -E '/(cli|rpc|mcp|testing)/|/demo'; } >"$stage/said" 2>&1
    report $? "the module for LuaJIT, the encodings and policies, and nothing that only Lua 5.4 reads"
    in_share | while read -r file; do
        luajit -bl "$stage/usr/share/lua/5.1/sessile/$file" >/dev/null || echo "$file"
    done >"$stage/said" 2>&1
    [ ! -s "$stage/said" ]
    report $? "LuaJIT reads each file of it"
else
    for title in "core.so for LuaJIT exports luaopen_* only" "the module for LuaJIT" "LuaJIT reads each file"; do
        number=$((number + 1))
        echo "ok $number - $title # SKIP the module for LuaJIT is not built"
    done
fi

# A prefix that nothing looks into: the lines that it prints are all that is needed.
make --no-print-directory install BUILD="$build" PREFIX="$stage/mine" >"$stage/printed" 2>&1
grep '^export ' "$stage/printed" >"$stage/environment"
lines=3
[ ! -e "$jit" ] || lines=4
[ "$(wc -l <"$stage/environment")" = "$lines" ] &&
    env -i HOME="$stage" PATH=/usr/bin:/bin sh -c ". $stage/environment
        cd / && sessile --version && lua5.4 -e 'require \"sessile\"' &&
        if [ $lines = 4 ]; then luajit -e 'require \"sessile\"'; fi &&
        cc -o $stage/third $stage/host.c \$(pkg-config --cflags --libs sessile) && $stage/third" \
        >"$stage/said" 2>&1
report $? "make install PREFIX= prints the lines that it needs"

# As in a chroot: nothing tells a program where it is.
if unshare -m true 2>/dev/null; then alone="unshare -m"; else alone="unshare -rm"; fi
if $alone true 2>/dev/null; then
    cat >"$stage/bare.sh" <<SH
mount -t tmpfs none /proc && cd / &&
    "$stage/mine/bin/sessile" --version &&
    "$stage/mine/bin/sessile" new --id bare &&
    "$stage/mine/bin/sessile" append bare hello &&
    "$stage/mine/bin/sessile" export bare "$stage/bare.md" && grep -q hello "$stage/bare.md"
SH
    # shellcheck disable=SC2086  # words
    env -i HOME="$stage" PATH=/usr/bin:/bin $alone sh "$stage/bare.sh" >"$stage/said" 2>&1
    report $? "the executable runs without /proc"
else
    number=$((number + 1))
    echo "ok $number - the executable runs without /proc # SKIP no mount namespaces here"
fi

# Without the packages: what to type, before anything is compiled.
mkdir "$stage/bare" && printf '#!/bin/sh\nexit 1\n' >"$stage/bare/dpkg-query" && chmod +x "$stage/bare/dpkg-query"
! PATH="$stage/bare:$PATH" make --no-print-directory BUILD="$stage/none" >"$stage/said" 2>&1 &&
    grep -q 'apt-get install gcc ' "$stage/said" && [ ! -e "$stage/none" ]
report $? "make without the packages names the command that installs them"

# Another Lua, whatever it is called.
! LUA_PATH_5_4="lua/?.lua;lua/?/init.lua" lua5.4 -e '_VERSION = "Lua 5.3" require "sessile"' >"$stage/said" 2>&1 &&
    grep -q 'sessile needs Lua 5.4 or LuaJIT, and this is Lua 5.3' "$stage/said"
report $? "another version of Lua is told what sessile needs"

echo "1..$number"
