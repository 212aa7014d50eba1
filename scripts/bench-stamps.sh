#!/bin/sh
# Measures how far the stamps of the kernel and those of the reads are off from the engine's own write stamps, 256 streams
# with every core busy, and prints a table. Flags: -streams N, -events N, -rate N, -rounds N, -idle, -json. It takes under a
# minute and asserts nothing.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
(cd "$root" && CGO_ENABLED=0 go build -trimpath -o "$tmp/benchproxy" ./cmd/benchproxy)
(cd "$root/test/load" && CGO_ENABLED=0 go build -trimpath -o "$tmp/" ./stamps)
"$tmp/stamps" -benchproxy "$tmp/benchproxy" "$@"
