#!/bin/bash
# A stranger reads a plain log: a reader written from section 1.1 of engine/log/README.md alone, with
# sed and b2sum and nothing of ours, gets the entries that the engine gives, and refuses a changed line.

cd "$(dirname "$0")/../.." || exit 1
sessile=${SESSILE_BIN:-build/bin/sessile}
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export HOME=$folder LC_ALL=C
number=0

report() {
    number=$((number + 1))
    if [ "$1" = 0 ]; then echo "ok $number - $2"; else echo "not ok $number - $2"; fi
    [ "$1" = 0 ] || sed 's/^/# /' "$folder/said"
}

# refuse LINE WHY
refuse() { echo "line $1: $2" >&2; return 1; }

# entries LOG: prints the entry of each line that belongs to a whole write.
entries() {
    local line text sum commit entry held=() n=0
    while IFS= read -r line; do
        [[ $line =~ ^(.*),\"_c\":\"([0-9a-f]{16})\"\}$ ]] || { refuse $n "no checksum"; return; }
        text=${BASH_REMATCH[1]} sum=${BASH_REMATCH[2]} commit=
        [ "$(printf %s "$text" | b2sum -l 256 | cut -c 1-16)" = "$sum" ] ||
            { refuse $n "another checksum"; return; }
        if [[ $text =~ ^(.*),\"commit\":([1-9][0-9]*)(,\"durable\":\"[0-9a-f]{8}\")?$ ]]; then
            text=${BASH_REMATCH[1]} commit=${BASH_REMATCH[2]}
        fi
        [ $n != 0 ] || text=${text%,\"sessile\":1}
        entry=$text\}
        [[ $entry == "{\"id\":\"$(printf %08x $n)\""* ]] || { refuse $n "another id"; return; }
        held+=("$entry")
        n=$((n + 1))
        if [ -n "$commit" ]; then
            [ "$commit" = ${#held[@]} ] || { refuse $n "a write of another size"; return; }
            printf '%s\n' "${held[@]}"
            held=()
        fi
    done <"$1"
}

at="--plain --store $folder/store"
log=$folder/store/agents/main/x.jsonl
{
    "$sessile" new $at --id x
    printf 'say "commit":1,"_c":"0123456789abcdef"}, \\ and \303\251' | "$sessile" append $at x -
    printf '[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]' |
        "$sessile" turn $at x -
    "$sessile" label $at x 1 here
    cat >"$folder/ours.lua" <<'LUA'
local store = assert(require "sessile".open(arg[1], { key = false }))
for entry in assert(store:resume "x"):entries() do print(entry.json) end
LUA
} >"$folder/said" 2>&1
"$sessile" run "$folder/ours.lua" "$folder/store" >"$folder/ours" 2>>"$folder/said"
entries "$log" >"$folder/theirs" 2>>"$folder/said"
diff "$folder/ours" "$folder/theirs" >>"$folder/said" 2>&1 && [ "$(wc -l <"$folder/theirs")" = 6 ]
report $? "the entries are those that the engine gives"

sed '3s/"q"/"Q"/' "$log" >"$folder/changed"
entries "$folder/changed" >"$folder/said" 2>&1
[ $? = 1 ] && grep -q '^line 2: another checksum' "$folder/said"
report $? "a changed line is refused"

sed '4,$d' "$log" >"$folder/cut"
entries "$folder/cut" >"$folder/theirs" 2>"$folder/said"
[ "$(wc -l <"$folder/theirs")" = 2 ]
report $? "a turn that was cut off is not there"

echo "1..$number"
