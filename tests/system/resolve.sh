#!/bin/sh
# A name that leads inwards, as the system resolves it, is refused at the write and where a
# connection is made. /etc/hosts is another one, in a mount namespace of the test's own.

number=0
report() {
    number=$((number + 1))
    if [ "$1" = 0 ]; then echo "ok $number - $2"; else echo "not ok $number - $2"; fi
    [ "$1" = 0 ] || printf '%s\n' "$3" | sed 's/^/# /'
}

cd "$(dirname "$0")/../.." || exit 1
SESSILE_BIN=$(realpath "${SESSILE_BIN:-build/bin/sessile}")
export SESSILE_BIN
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cat >"$folder/hosts" <<HOSTS
127.0.0.1 localhost
10.11.12.13 inwards.example.org
93.184.216.34 outwards.example.org
93.184.216.34 half.example.org
127.0.0.9 half.example.org
HOSTS
cat >"$folder/try.lua" <<'LUA'
local sessile = require "sessile"

local function say(...)
  local ok, message, code, more, rule = ...
  print(ok and "passes" or ("%s %s"):format(code, rule or type(more) == "table" and more.rule or ""))
  return message
end

for _, host in ipairs { "inwards", "outwards", "half", "none" } do
  say(sessile.url_check(("http://%s.example.org/"):format(host), { resolve = true }))
end
local store = assert(sessile.open("ram:", { key = false,
  guard = { profile = "standard", urls = { state = "refuse", resolve = true } } }))
local s = assert(store:create { id = "s" })
say(s:checkpoint { state = { see = "http://inwards.example.org/" } })
say(s:checkpoint { state = { see = "http://outwards.example.org/" } })
say(sessile.url_check "http://inwards.example.org/") -- not asked for
-- at use: whoever connects judges the address
local model = sessile.model { endpoint = "http://inwards.example.org:9/v1", name = "m",
  public_only = true }
local text, message, code = model { messages = { { role = "user", content = "hello" } } }
print(text == nil and code or "connected", message)
LUA

inside='mount --bind "$1/hosts" /etc/hosts && exec env HOME="$1" "$SESSILE_BIN" run "$1/try.lua"'
if [ "$(id -u)" = 0 ]; then alone="unshare -m"; else alone="unshare -rm"; fi
if ! $alone true 2>"$folder/why"; then
    echo "1..0 # SKIP there are no mount namespaces here: $(cat "$folder/why")"
    exit 0
fi
said=$($alone sh -c "$inside" sh "$folder" 2>&1)

expect() {
    [ "$(printf '%s\n' "$said" | sed -n "$1p" | cut -c1-"${#2}")" = "$2" ]
    report $? "$3" "$said"
}
expect 1 "EDENIED private" "a name of 10.x is refused"
expect 2 "passes" "one of a public address passes"
expect 3 "EDENIED loopback" "one address of two is enough"
expect 4 "EDENIED unresolved" "one without an address is refused"
expect 5 "EDENIED private" "a write with a name of 10.x is refused"
expect 6 "passes" "one with a public name is done"
expect 7 "passes" "without resolve no name is resolved"
expect 8 "EDENIED" "a name of 10.x is not connected to"
case $said in *"private address"*) true ;; *) false ;; esac
report $? "and the sentence names the block" "$said"
echo "1..$number"
