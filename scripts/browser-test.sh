#!/bin/sh
# Holds the pages of benchproxy to their promises in Chromium (Debian's package): test/browser against the program as it is
# released, a scripted engine, and a store of 100,000 exchanges made here. TEST_PICTURES names a directory in which pictures
# of the pages are left. It takes about two minutes and reaches no network beyond this machine.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
command -v "${TEST_CHROMIUM:=chromium}" >/dev/null || { echo "browser-test: there is no $TEST_CHROMIUM; scripts/setup-debian.sh installs it" >&2; exit 1; }
pictures=${TEST_PICTURES:-$tmp/pictures}
mkdir -p "$pictures"
(cd "$root" && CGO_ENABLED=0 go build -o "$tmp/benchproxy" ./cmd/benchproxy)
(cd "$root/test/browser" && CGO_ENABLED=0 go build -o "$tmp/mkstore" ./mkstore && CGO_ENABLED=0 go test -c -o "$tmp/browser.test" .)
"$tmp/mkstore" -store "$tmp/store" -n 100000 -hostile
cd "$tmp" # Chromium leaves files where it stands
TEST_BENCHPROXY=$tmp/benchproxy TEST_STORE=$tmp/store TEST_PICTURES=$pictures TEST_CHROMIUM=$TEST_CHROMIUM "$tmp/browser.test" -test.v -test.timeout 20m
