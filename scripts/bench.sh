#!/bin/sh
# Measures what benchproxy adds to an engine's answers, beside httputil.ReverseProxy, and prints a table. Flags: -rounds N,
# -streams N, -json, -only and -targets for a part (-help lists them all). It takes several minutes and asserts
# nothing. What tracing costs is a table of its own; scripts/bench-tracing.sh measures it alone, in more rounds.
# scripts/bench-peers.sh adds nginx and haproxy.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
(cd "$root" && CGO_ENABLED=0 go build -trimpath -o "$tmp/benchproxy" ./cmd/benchproxy)
(cd "$root/test/load" && CGO_ENABLED=0 go build -trimpath -o "$tmp/" ./bench ./reverseproxy)
commit=$(git -C "$root" rev-parse --short HEAD 2>/dev/null || echo unknown)
[ -z "$(git -C "$root" status --porcelain -- . ':!bench' 2>/dev/null)" ] || commit="$commit with changes"
TMPDIR=$tmp "$tmp/bench" -benchproxy "$tmp/benchproxy" -reverseproxy "$tmp/reverseproxy" -commit "$commit" \
	-command "${BENCH_COMMAND:-scripts/bench.sh${*:+ $*}}" "$@"
