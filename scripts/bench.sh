#!/bin/sh
# Measures what benchproxy adds to an engine's answers, beside httputil.ReverseProxy, and prints a table. Flags: -rounds N,
# -streams N, -json. It takes under three minutes and asserts nothing.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
(cd "$root" && CGO_ENABLED=0 go build -trimpath -o "$tmp/benchproxy" ./cmd/benchproxy)
(cd "$root/test/load" && CGO_ENABLED=0 go build -o "$tmp/" ./bench ./reverseproxy)
TMPDIR=$tmp "$tmp/bench" -benchproxy "$tmp/benchproxy" -reverseproxy "$tmp/reverseproxy" "$@"
